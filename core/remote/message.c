#include "core/remote/message.h"

#include <endian.h>
#include <snappy-c.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"

/* --- labels ----------------------------------------------------------------------------------- */

bool message_label(struct message_labels *l, const char *name, const char *value) {
	unsigned at = 0;
	while (at < l->count && strcmp(l->all[at].name, name) < 0)
		at++;
	bool there = at < l->count && strcmp(l->all[at].name, name) == 0;
	if (!there) {
		if (l->count == MESSAGE_MAX_LABELS)
			return false;
		memmove(l->all + at + 1, l->all + at, (l->count - at) * sizeof(l->all[0]));
		l->count++;
	}
	l->all[at] = (struct message_label){name, value};
	return true;
}

bool message_label_is_free(const char *name) {
	static const char *const ours[] = {"component", "drive", "host", "quality"};
	for (size_t i = 0; i < array_len(ours); i++) {
		if (strcmp(ours[i], name) == 0)
			return false;
	}
	return strncmp(name, "__", 2) != 0;
}

/* What a metric is called, and what thousandths of the stored unit are in its base unit. */
static const struct {
	const char *name;
	double unit;
} metrics[QUANTITY_COUNT_] = {
	[QUANTITY_POWER] = {"power_watts", 1e-3},
	[QUANTITY_ENERGY_COUNTER] = {"energy_joules_total", 3600},
	[QUANTITY_TEMPERATURE] = {"temperature_celsius", 1e-3},
	[QUANTITY_POWER_STATE] = {"power_state", 1e-3},
	[QUANTITY_READ_RATE] = {"read_bytes_per_second", 1e-3},
	[QUANTITY_WRITE_RATE] = {"write_bytes_per_second", 1e-3},
};

/* Ids of drives are hashes; everything else that is not the host is one of its parts. */
static const char *kind_of(const struct series *s) {
	if (strcmp(s->key.object, "host") == 0)
		return "host";
	return strlen(s->key.object) == ID_HASH_SIZE - 1 ? "drive" : "component";
}

void message_series_labels(struct message_labels *l, const struct series *s, char name[64]) {
	const char *kind = kind_of(s);
	const bool inlet = kind[0] == 'h' && s->key.quantity == QUANTITY_TEMPERATURE;
	snprintf(name, 64, "drivewatt_%s_%s%s", kind, inlet ? "inlet_" : "",
		metrics[s->key.quantity].name);
	l->count = 0;
	(void)message_label(l, "__name__", name);
	(void)message_label(l, "host", s->key.host_id);
	(void)message_label(l, "quality", quality_name(s->key.quality));
	if (kind[0] != 'h')
		(void)message_label(l, kind, s->key.object);
}

/* --- Protocol Buffers -------------------------------------------------------------------------
 * Encoding as its guide says: a field is its key, number << 3 | wire type, and its value. */

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

#define VARINT_MAX 10
#define KEY(number, wire) ((char)((number) << 3 | (wire)))

static size_t varint_size(uint64_t v) {
	size_t n = 1;
	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

static void add_varint(struct buf *out, uint64_t v) {
	char bytes[VARINT_MAX];
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (char)(v | 0x80);
	bytes[n++] = (char)v;
	buf_add(out, bytes, n);
}

static size_t bytes_size(size_t len) {
	return 1 + varint_size(len) + len;
}

static void begin_bytes(struct buf *out, unsigned number, size_t len) {
	buf_addc(out, KEY(number, WIRE_BYTES));
	add_varint(out, len);
}

/* message Label { string name = 1; string value = 2; } */
static size_t label_size(const struct message_label *l) {
	return bytes_size(strlen(l->name)) + bytes_size(strlen(l->value));
}

static void add_label(struct buf *out, const struct message_label *l) {
	begin_bytes(out, 1, strlen(l->name));
	buf_adds(out, l->name);
	begin_bytes(out, 2, strlen(l->value));
	buf_adds(out, l->value);
}

/* message Sample { double value = 1; int64 timestamp = 2; } */
static size_t sample_size(const struct sample *s) {
	return 1 + sizeof(double) + 1 + varint_size((uint64_t)s->at_ms);
}

static void add_sample(struct buf *out, const struct sample *s, double unit) {
	const double value = (double)s->value_milli * unit;
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	bits = htole64(bits);
	buf_addc(out, KEY(1, WIRE_FIXED64));
	buf_add(out, &bits, sizeof(bits));
	buf_addc(out, KEY(2, WIRE_VARINT));
	add_varint(out, (uint64_t)s->at_ms);
}

/* message WriteRequest { repeated TimeSeries timeseries = 1; }
 * message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; } */
void message_add(struct buf *out, const struct message_labels *l, enum quantity q,
	const struct sample *samples, size_t n) {
	size_t len = 0;
	for (unsigned i = 0; i < l->count; i++)
		len += bytes_size(label_size(&l->all[i]));
	for (size_t i = 0; i < n; i++)
		len += bytes_size(sample_size(&samples[i]));
	begin_bytes(out, 1, len);
	for (unsigned i = 0; i < l->count; i++) {
		begin_bytes(out, 1, label_size(&l->all[i]));
		add_label(out, &l->all[i]);
	}
	for (size_t i = 0; i < n; i++) {
		begin_bytes(out, 2, sample_size(&samples[i]));
		add_sample(out, &samples[i], metrics[q].unit);
	}
}

/* --- Snappy ----------------------------------------------------------------------------------- */

enum rc message_compress(const struct buf *message, struct buf *out, struct err *err) {
	size_t len = snappy_max_compressed_length(message->len);
	char *room = buf_make_room(out, len);
	if (!room)
		return buf_status(out, err);
	if (snappy_compress(message->data, message->len, room, &len) != SNAPPY_OK)
		return err_set(err, RC_INTERNAL, "a message was not compressed");
	buf_added(out, len);
	return RC_OK;
}
