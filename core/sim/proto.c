#include "core/sim/proto.h"

#include <endian.h>
#include <string.h>

#define MAGIC_HELLO UINT64_C(0x4e42444d41474943)  /* "NBDMAGIC" */
#define MAGIC_OPTION UINT64_C(0x49484156454f5054) /* "IHAVEOPT" */
#define MAGIC_OPTION_REPLY UINT64_C(0x0003e889045565a9)
#define MAGIC_REQUEST 0x25609513u
#define MAGIC_REPLY 0x67446698u

#define FLAG_FIXED_NEWSTYLE 1u
#define FLAG_NO_ZEROES 2u

#define EXPORT_HAS_FLAGS 1u
#define EXPORT_FLUSH 4u
#define EXPORT_FUA 8u
#define EXPORT_TRIM 32u
#define EXPORT_WRITE_ZEROES 64u
#define EXPORT_MULTI_CONN 256u
#define EXPORT_FLAGS \
	(EXPORT_HAS_FLAGS | EXPORT_FLUSH | EXPORT_FUA | EXPORT_TRIM | EXPORT_WRITE_ZEROES | \
		EXPORT_MULTI_CONN)

#define REPLY_ACK 1u
#define REPLY_SERVER 2u
#define REPLY_INFO 3u
#define REPLY_UNSUPPORTED 0x80000001u
#define REPLY_INVALID 0x80000003u
#define REPLY_UNKNOWN 0x80000006u

#define INFO_EXPORT 0
#define INFO_BLOCK_SIZE 3

#define OPTION_HEADER_BYTES 16
#define REQUEST_BYTES 28
#define CLIENT_FLAGS_BYTES 4
#define EXPORT_NAME_ZEROES 124
#define PREFERRED_BLOCK_BYTES 4096

/* --- bytes --- */

static uint64_t get(const uint8_t *p, size_t bytes) {
	uint64_t v = 0;
	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static void put(struct buf *out, uint64_t v, size_t bytes) {
	const uint64_t be = htobe64(v);
	buf_add(out, (const uint8_t *)&be + sizeof(be) - bytes, bytes);
}

/* --- negotiation --- */

struct option {
	uint32_t number;
	const uint8_t *data;
	uint32_t len;
};

static void reply_head(struct buf *out, uint32_t option, uint32_t type, uint32_t len) {
	put(out, MAGIC_OPTION_REPLY, 8);
	put(out, option, 4);
	put(out, type, 4);
	put(out, len, 4);
}

static void answer(struct buf *out, const struct option *o, uint32_t type) {
	reply_head(out, o->number, type, 0);
}

static bool names_us(const struct sim_nbd_session *s, const uint8_t *name, size_t len) {
	return len == 0 || (len == strlen(s->name) && memcmp(name, s->name, len) == 0);
}

/* The old way to begin: no error can be told, so a wrong name ends the connection. */
static enum rc option_export_name(
	struct sim_nbd_session *s, const struct option *o, struct buf *out, struct err *err) {
	static const uint8_t zeroes[EXPORT_NAME_ZEROES];
	if (!names_us(s, o->data, o->len))
		return err_set(err, RC_CORRUPT, "no such export");
	put(out, s->size_bytes, 8);
	put(out, EXPORT_FLAGS, 2);
	if (!s->no_zeroes)
		buf_add(out, zeroes, sizeof(zeroes));
	s->phase = SIM_NBD_TRANSMISSION;
	return RC_OK;
}

static enum rc option_abort(struct sim_nbd_session *s, const struct option *o, struct buf *out,
	struct err *err unused_arg) {
	answer(out, o, REPLY_ACK);
	s->phase = SIM_NBD_CLOSED;
	return RC_OK;
}

static enum rc option_list(struct sim_nbd_session *s, const struct option *o, struct buf *out,
	struct err *err unused_arg) {
	const uint32_t len = (uint32_t)strlen(s->name);
	if (o->len) {
		answer(out, o, REPLY_INVALID);
		return RC_OK;
	}
	reply_head(out, o->number, REPLY_SERVER, 4 + len);
	put(out, len, 4);
	buf_adds(out, s->name);
	answer(out, o, REPLY_ACK);
	return RC_OK;
}

/* Length of the name in an INFO or GO option, or -1 when its parts do not fill it. */
static int64_t info_name_len(const struct option *o) {
	if (o->len < 6)
		return -1;
	const uint64_t name_len = get(o->data, 4);
	if (name_len > o->len - 6)
		return -1;
	const uint64_t requests = get(o->data + 4 + name_len, 2);
	return 6 + name_len + 2 * requests == o->len ? (int64_t)name_len : -1;
}

static enum rc option_info(struct sim_nbd_session *s, const struct option *o, struct buf *out,
	struct err *err unused_arg) {
	const int64_t name_len = info_name_len(o);
	if (name_len < 0) {
		answer(out, o, REPLY_INVALID);
		return RC_OK;
	}
	if (!names_us(s, o->data + 4, (size_t)name_len)) {
		answer(out, o, REPLY_UNKNOWN);
		return RC_OK;
	}
	reply_head(out, o->number, REPLY_INFO, 12);
	put(out, INFO_EXPORT, 2);
	put(out, s->size_bytes, 8);
	put(out, EXPORT_FLAGS, 2);
	reply_head(out, o->number, REPLY_INFO, 14);
	put(out, INFO_BLOCK_SIZE, 2);
	put(out, s->block_bytes, 4);
	put(out, PREFERRED_BLOCK_BYTES, 4);
	put(out, SIM_NBD_MAX_PAYLOAD, 4);
	answer(out, o, REPLY_ACK);
	return RC_OK;
}

static enum rc option_go(
	struct sim_nbd_session *s, const struct option *o, struct buf *out, struct err *err) {
	enum rc rc = option_info(s, o, out, err);
	const int64_t name_len = info_name_len(o);
	if (name_len >= 0 && names_us(s, o->data + 4, (size_t)name_len))
		s->phase = SIM_NBD_TRANSMISSION;
	return rc;
}

/* By the option's number. */
static enum rc (*const options[])(
	struct sim_nbd_session *s, const struct option *o, struct buf *out, struct err *err) = {
	[1] = option_export_name,
	[2] = option_abort,
	[3] = option_list,
	[6] = option_info,
	[7] = option_go,
};

static enum rc take_hello(struct sim_nbd_session *s, const uint8_t *data, size_t len, size_t *taken,
	struct err *err) {
	if (len < CLIENT_FLAGS_BYTES)
		return RC_OK;
	const uint64_t flags = get(data, CLIENT_FLAGS_BYTES);
	if (flags & ~(uint64_t)(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES))
		return err_set(err, RC_CORRUPT, "unknown client flags");
	s->no_zeroes = flags & FLAG_NO_ZEROES;
	s->phase = SIM_NBD_OPTIONS;
	*taken = CLIENT_FLAGS_BYTES;
	return RC_OK;
}

static enum rc take_option(struct sim_nbd_session *s, const uint8_t *data, size_t len,
	size_t *taken, struct buf *out, struct err *err) {
	if (len < OPTION_HEADER_BYTES)
		return RC_OK;
	const struct option o = {
		.number = (uint32_t)get(data + 8, 4),
		.data = data + OPTION_HEADER_BYTES,
		.len = (uint32_t)get(data + 12, 4),
	};
	if (get(data, 8) != MAGIC_OPTION)
		return err_set(err, RC_CORRUPT, "not an option");
	if (o.len > SIM_NBD_MAX_OPTION_BYTES || s->options >= SIM_NBD_MAX_OPTIONS)
		return err_set(err, RC_CORRUPT, "too large or too many options");
	if (len - OPTION_HEADER_BYTES < o.len)
		return RC_OK;
	s->options++;
	*taken = OPTION_HEADER_BYTES + o.len;
	if (o.number < array_len(options) && options[o.number])
		return options[o.number](s, &o, out, err);
	answer(out, &o, REPLY_UNSUPPORTED);
	return RC_OK;
}

void sim_nbd_session_init(
	struct sim_nbd_session *s, const char *name, uint64_t size_bytes, uint32_t block_bytes) {
	*s = (struct sim_nbd_session){
		.name = name, .size_bytes = size_bytes, .block_bytes = block_bytes};
}

void sim_nbd_greet(struct buf *out) {
	put(out, MAGIC_HELLO, 8);
	put(out, MAGIC_OPTION, 8);
	put(out, FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES, 2);
}

enum rc sim_nbd_negotiate(struct sim_nbd_session *s, const uint8_t *data, size_t len, size_t *taken,
	struct buf *out, struct err *err) {
	*taken = 0;
	switch (s->phase) {
	case SIM_NBD_HELLO:
		return take_hello(s, data, len, taken, err);
	case SIM_NBD_OPTIONS:
		return take_option(s, data, len, taken, out, err);
	default:
		return err_set(err, RC_INTERNAL, "negotiation is over");
	}
}

/* --- transmission --- */

static enum sim_nbd_error check(const struct sim_nbd_session *s, const struct sim_nbd_request *r) {
	switch (r->command) {
	case SIM_NBD_DISC:
	case SIM_NBD_FLUSH:
		return SIM_NBD_OK;
	case SIM_NBD_READ:
	case SIM_NBD_WRITE:
		if (r->length > SIM_NBD_MAX_PAYLOAD)
			return SIM_NBD_EOVERFLOW;
		break;
	case SIM_NBD_TRIM:
	case SIM_NBD_WRITE_ZEROES:
		break;
	default:
		return SIM_NBD_ENOTSUP;
	}
	if (r->length == 0 || (r->offset | r->length) % s->block_bytes)
		return SIM_NBD_EINVAL;
	if (r->offset > s->size_bytes || r->length > s->size_bytes - r->offset)
		return r->command == SIM_NBD_READ ? SIM_NBD_EINVAL : SIM_NBD_ENOSPC;
	return SIM_NBD_OK;
}

enum rc sim_nbd_take_request(struct sim_nbd_session *s, const uint8_t *data, size_t len,
	size_t *taken, struct sim_nbd_request *out, struct err *err) {
	*taken = 0;
	if (len < REQUEST_BYTES)
		return RC_OK;
	if (get(data, 4) != MAGIC_REQUEST)
		return err_set(err, RC_CORRUPT, "not a request");
	*taken = REQUEST_BYTES;
	*out = (struct sim_nbd_request){
		.command = (enum sim_nbd_command)get(data + 6, 2),
		.tag = get(data + 8, 8),
		.offset = get(data + 16, 8),
		.length = (uint32_t)get(data + 24, 4),
	};
	out->payload = out->command == SIM_NBD_WRITE ? out->length : 0;
	out->error = check(s, out);
	return RC_OK;
}

void sim_nbd_reply(uint64_t tag, enum sim_nbd_error error, uint8_t out[SIM_NBD_REPLY_BYTES]) {
	const uint32_t head[2] = {htobe32(MAGIC_REPLY), htobe32((uint32_t)error)};
	const uint64_t be = htobe64(tag);
	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), &be, sizeof(be));
}
