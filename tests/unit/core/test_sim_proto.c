/* The NBD protocol as bytes. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/sim/proto.h"

#define SIZE UINT64_C(1000000 * 512)
#define IHAVEOPT UINT64_C(0x49484156454f5054)

enum { EXPORT_NAME = 1, ABORT = 2, LIST = 3, STARTTLS = 5, INFO = 6, GO = 7, STRUCTURED = 8 };
enum { ACK = 1, SERVER = 2, REPLY_INFO = 3 };
#define UNSUPPORTED 0x80000001u
#define INVALID 0x80000003u
#define UNKNOWN 0x80000006u

static void put(struct buf *b, uint64_t v, size_t bytes) {
	const uint64_t be = htobe64(v);
	buf_add(b, (const uint8_t *)&be + 8 - bytes, bytes);
}

static uint64_t get(const struct buf *b, size_t at, size_t bytes) {
	uint64_t v = 0;
	assert_true(at + bytes <= b->len);
	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | (uint8_t)b->data[at + i];
	return v;
}

struct fixture {
	struct sim_nbd_session s;
	struct buf in, out;
	struct err err;
	enum rc rc;
	size_t taken;
};

static void negotiate(struct fixture *f) {
	f->rc = sim_nbd_negotiate(
		&f->s, (const uint8_t *)f->in.data, f->in.len, &f->taken, &f->out, &f->err);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	buf_init(&f->in, 8192);
	buf_init(&f->out, 8192);
	sim_nbd_session_init(&f->s, "sim07", SIZE, 512);
	put(&f->in, 3, 4);
	negotiate(f);
	assert_int_equal(f->rc, RC_OK);
	assert_int_equal(f->s.phase, SIM_NBD_OPTIONS);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	buf_release(&f->in);
	buf_release(&f->out);
	free(f);
	return 0;
}

static void option(struct fixture *f, uint32_t number, const void *data, size_t len) {
	buf_reset(&f->in);
	buf_reset(&f->out);
	put(&f->in, IHAVEOPT, 8);
	put(&f->in, number, 4);
	put(&f->in, len, 4);
	buf_add(&f->in, data, len);
	negotiate(f);
}

/* The data of an INFO or GO option. */
static void info_option(struct fixture *f, uint32_t number, const char *name) {
	struct buf data;
	buf_init(&data, 256);
	put(&data, strlen(name), 4);
	buf_adds(&data, name);
	put(&data, 1, 2);
	put(&data, 3, 2);
	option(f, number, data.data, data.len);
	buf_release(&data);
}

static void assert_reply(const struct fixture *f, size_t at, uint32_t number, uint32_t type) {
	assert_true(get(&f->out, at, 8) == UINT64_C(0x3e889045565a9));
	assert_int_equal(get(&f->out, at + 8, 4), number);
	assert_int_equal(get(&f->out, at + 12, 4), type);
}

/* --- negotiation --- */

static void the_greeting_offers_fixed_newstyle(void **state) {
	struct fixture *f = *state;
	buf_reset(&f->out);
	sim_nbd_greet(&f->out);
	assert_int_equal(f->out.len, 18);
	assert_memory_equal(f->out.data, "NBDMAGICIHAVEOPT", 16);
	assert_int_equal(get(&f->out, 16, 2), 3);
}

static void go_tells_size_flags_and_block_size(void **state) {
	struct fixture *f = *state;
	info_option(f, GO, "sim07");
	assert_int_equal(f->rc, RC_OK);
	assert_int_equal(f->s.phase, SIM_NBD_TRANSMISSION);
	assert_reply(f, 0, GO, REPLY_INFO);
	assert_int_equal(get(&f->out, 20, 2), 0);
	assert_true(get(&f->out, 22, 8) == SIZE);
	assert_int_equal(get(&f->out, 30, 2), 1 | 4 | 8 | 32 | 64 | 256);
	assert_reply(f, 32, GO, REPLY_INFO);
	assert_int_equal(get(&f->out, 54, 4), 512);
	assert_int_equal(get(&f->out, 62, 4), SIM_NBD_MAX_PAYLOAD);
	assert_reply(f, 66, GO, ACK);
	assert_int_equal(f->out.len, 86);
}

static void the_empty_name_means_the_export_too(void **state) {
	struct fixture *f = *state;
	info_option(f, GO, "");
	assert_int_equal(f->s.phase, SIM_NBD_TRANSMISSION);
}

static void another_name_is_unknown(void **state) {
	struct fixture *f = *state;
	info_option(f, GO, "sim08");
	assert_int_equal(f->rc, RC_OK);
	assert_int_equal(f->s.phase, SIM_NBD_OPTIONS);
	assert_reply(f, 0, GO, UNKNOWN);
}

static void info_does_not_begin_the_transmission(void **state) {
	struct fixture *f = *state;
	info_option(f, INFO, "sim07");
	assert_int_equal(f->s.phase, SIM_NBD_OPTIONS);
	assert_reply(f, 66, INFO, ACK);
}

static void ill_formed_info_is_invalid(void **state) {
	struct fixture *f = *state;
	static const uint8_t cases[][8] = {
		{0, 0, 0, 0, 0, 1},                /* a request is missing */
		{0, 0, 0, 9, 's', 'i', 0, 0},      /* the name is longer than the option */
		{0xff, 0xff, 0xff, 0xff, 0, 0, 0}, /* by far */
		{0, 0, 0, 0, 0, 0, 1, 1},          /* something follows */
	};
	static const size_t lens[] = {6, 8, 7, 8};
	for (size_t i = 0; i < array_len(cases); i++) {
		option(f, GO, cases[i], lens[i]);
		assert_int_equal(f->rc, RC_OK);
		assert_reply(f, 0, GO, INVALID);
		assert_int_equal(f->s.phase, SIM_NBD_OPTIONS);
	}
	option(f, GO, cases[0], 5);
	assert_reply(f, 0, GO, INVALID);
}

static void export_name_begins_without_a_reply_head(void **state) {
	struct fixture *f = *state;
	option(f, EXPORT_NAME, "sim07", 5);
	assert_int_equal(f->s.phase, SIM_NBD_TRANSMISSION);
	assert_int_equal(f->out.len, 10);
	assert_true(get(&f->out, 0, 8) == SIZE);
}

static void old_clients_get_zeroes_after_export_name(void **state) {
	struct fixture *f = *state;
	f->s.no_zeroes = false;
	option(f, EXPORT_NAME, "", 0);
	assert_int_equal(f->out.len, 134);
}

static void export_name_of_another_hangs_up(void **state) {
	struct fixture *f = *state;
	option(f, EXPORT_NAME, "other", 5);
	assert_int_equal(f->rc, RC_CORRUPT);
}

static void list_names_the_export(void **state) {
	struct fixture *f = *state;
	option(f, LIST, "", 0);
	assert_reply(f, 0, LIST, SERVER);
	assert_int_equal(get(&f->out, 20, 4), 5);
	assert_memory_equal(f->out.data + 24, "sim07", 5);
	assert_reply(f, 29, LIST, ACK);
	option(f, LIST, "x", 1);
	assert_reply(f, 0, LIST, INVALID);
}

static void abort_is_acknowledged_and_closes(void **state) {
	struct fixture *f = *state;
	option(f, ABORT, "", 0);
	assert_reply(f, 0, ABORT, ACK);
	assert_int_equal(f->s.phase, SIM_NBD_CLOSED);
}

static void other_options_are_declined(void **state) {
	struct fixture *f = *state;
	static const uint32_t numbers[] = {0, 4, STARTTLS, STRUCTURED, 9, 10, 0xffffffff};
	for (size_t i = 0; i < array_len(numbers); i++) {
		option(f, numbers[i], "data", 4);
		assert_int_equal(f->rc, RC_OK);
		assert_reply(f, 0, numbers[i], UNSUPPORTED);
		assert_int_equal(f->taken, 20);
	}
}

static void an_option_that_is_not_whole_waits(void **state) {
	struct fixture *f = *state;
	option(f, LIST, "", 0);
	for (size_t len = 0; len < f->in.len; len++) {
		assert_int_equal(sim_nbd_negotiate(&f->s, (const uint8_t *)f->in.data, len,
					 &f->taken, &f->out, &f->err),
			RC_OK);
		assert_int_equal(f->taken, 0);
	}
}

static void negotiations_have_limits(void **state) {
	struct fixture *f = *state;
	static const char big[SIM_NBD_MAX_OPTION_BYTES + 1];
	option(f, STARTTLS, big, sizeof(big));
	assert_int_equal(f->rc, RC_CORRUPT);
	for (int i = 0; i < SIM_NBD_MAX_OPTIONS; i++) {
		option(f, STARTTLS, "", 0);
		assert_int_equal(f->rc, RC_OK);
	}
	option(f, STARTTLS, "", 0);
	assert_int_equal(f->rc, RC_CORRUPT);
}

static void a_wrong_magic_or_flag_hangs_up(void **state) {
	struct fixture *f = *state;
	option(f, LIST, "", 0);
	f->in.data[0] ^= 1;
	negotiate(f);
	assert_int_equal(f->rc, RC_CORRUPT);
	sim_nbd_session_init(&f->s, "sim07", SIZE, 512);
	buf_reset(&f->in);
	put(&f->in, 7, 4);
	negotiate(f);
	assert_int_equal(f->rc, RC_CORRUPT);
}

/* --- transmission --- */

static struct sim_nbd_request request(
	struct fixture *f, uint16_t command, uint64_t offset, uint32_t length) {
	struct sim_nbd_request r;
	buf_reset(&f->in);
	put(&f->in, 0x25609513, 4);
	put(&f->in, 0, 2);
	put(&f->in, command, 2);
	put(&f->in, 0x1122334455667788, 8);
	put(&f->in, offset, 8);
	put(&f->in, length, 4);
	f->rc = sim_nbd_take_request(
		&f->s, (const uint8_t *)f->in.data, f->in.len, &f->taken, &r, &f->err);
	assert_int_equal(f->rc, RC_OK);
	assert_int_equal(f->taken, 28);
	return r;
}

static void requests_are_read(void **state) {
	const struct sim_nbd_request r = request(*state, SIM_NBD_WRITE, 512 * 7, 4096);
	assert_int_equal(r.command, SIM_NBD_WRITE);
	assert_true(r.tag == 0x1122334455667788);
	assert_true(r.offset == 512 * 7);
	assert_int_equal(r.length, 4096);
	assert_true(r.payload == 4096);
	assert_int_equal(r.error, SIM_NBD_OK);
}

struct checked {
	uint16_t command;
	uint64_t offset;
	uint32_t length;
	enum sim_nbd_error error;
};

static const struct checked checked[] = {
	{SIM_NBD_READ, 0, 512, SIM_NBD_OK},
	{SIM_NBD_READ, SIZE - 512, 512, SIM_NBD_OK},
	{SIM_NBD_READ, SIZE - 512, 1024, SIM_NBD_EINVAL},
	{SIM_NBD_READ, UINT64_MAX - 511, 1024, SIM_NBD_EINVAL},
	{SIM_NBD_READ, 0, 0, SIM_NBD_EINVAL},
	{SIM_NBD_READ, 100, 512, SIM_NBD_EINVAL},
	{SIM_NBD_READ, 0, 513, SIM_NBD_EINVAL},
	{SIM_NBD_READ, 0, SIM_NBD_MAX_PAYLOAD, SIM_NBD_OK},
	{SIM_NBD_READ, 0, SIM_NBD_MAX_PAYLOAD + 512, SIM_NBD_EOVERFLOW},
	{SIM_NBD_WRITE, SIZE, 512, SIM_NBD_ENOSPC},
	{SIM_NBD_WRITE, 0, SIM_NBD_MAX_PAYLOAD + 512, SIM_NBD_EOVERFLOW},
	{SIM_NBD_TRIM, 0, 256u << 20, SIM_NBD_OK},
	{SIM_NBD_WRITE_ZEROES, SIZE, 512, SIM_NBD_ENOSPC},
	{SIM_NBD_FLUSH, 0, 0, SIM_NBD_OK},
	{SIM_NBD_DISC, 0, 0, SIM_NBD_OK},
	{SIM_NBD_CACHE, 0, 512, SIM_NBD_ENOTSUP},
	{99, 0, 512, SIM_NBD_ENOTSUP},
};

static void requests_are_checked(void **state) {
	for (size_t i = 0; i < array_len(checked); i++) {
		const struct checked *c = &checked[i];
		const struct sim_nbd_request r = request(*state, c->command, c->offset, c->length);
		assert_int_equal(r.error, c->error);
		assert_true(r.payload == (c->command == SIM_NBD_WRITE ? c->length : 0));
	}
}

static void a_request_with_another_magic_hangs_up(void **state) {
	struct fixture *f = *state;
	struct sim_nbd_request r;
	const uint8_t bytes[28] = {0x25, 0x60, 0x95, 0x14};
	assert_int_equal(sim_nbd_take_request(&f->s, bytes, 27, &f->taken, &r, &f->err), RC_OK);
	assert_int_equal(f->taken, 0);
	assert_int_equal(
		sim_nbd_take_request(&f->s, bytes, 28, &f->taken, &r, &f->err), RC_CORRUPT);
}

static void replies_repeat_the_tag(void **state) {
	(void)state;
	static const uint8_t wanted[] = {
		0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t out[SIM_NBD_REPLY_BYTES];
	sim_nbd_reply(0x0102030405060708, SIM_NBD_ENOSPC, out);
	assert_memory_equal(out, wanted, sizeof(wanted));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(the_greeting_offers_fixed_newstyle),
		TEST(go_tells_size_flags_and_block_size),
		TEST(the_empty_name_means_the_export_too),
		TEST(another_name_is_unknown),
		TEST(info_does_not_begin_the_transmission),
		TEST(ill_formed_info_is_invalid),
		TEST(export_name_begins_without_a_reply_head),
		TEST(old_clients_get_zeroes_after_export_name),
		TEST(export_name_of_another_hangs_up),
		TEST(list_names_the_export),
		TEST(abort_is_acknowledged_and_closes),
		TEST(other_options_are_declined),
		TEST(an_option_that_is_not_whole_waits),
		TEST(negotiations_have_limits),
		TEST(a_wrong_magic_or_flag_hangs_up),
		TEST(requests_are_read),
		TEST(requests_are_checked),
		TEST(a_request_with_another_magic_hangs_up),
		TEST(replies_repeat_the_tag),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
