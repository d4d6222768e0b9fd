/* Remote write's message: labels in order, bytes as the protocol wants them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <snappy-c.h>
#include <string.h>

#include "base/parse.h"
#include "core/remote/message.h"

#define DRIVE "0123456789abcdefghijkl"

static struct series series_of(const char *object, enum quantity q, enum quality quality) {
	struct series s = {.id = 1};
	str_copy(s.key.host_id, sizeof(s.key.host_id), "h");
	str_copy(s.key.object, sizeof(s.key.object), object);
	s.key.quantity = (uint8_t)q;
	s.key.quality = (uint8_t)quality;
	return s;
}

static const char *value_of(const struct message_labels *l, const char *name) {
	for (unsigned i = 0; i < l->count; i++) {
		if (strcmp(l->all[i].name, name) == 0)
			return l->all[i].value;
	}
	return "";
}

static void is_in_order(const struct message_labels *l) {
	for (unsigned i = 1; i < l->count; i++)
		assert_true(strcmp(l->all[i - 1].name, l->all[i].name) < 0);
}

static void test_names(void **state unused_arg) {
	static const struct {
		const char *object;
		enum quantity q;
		const char *name;
	} cases[] = {
		{"host", QUANTITY_POWER, "drivewatt_host_power_watts"},
		{"host", QUANTITY_ENERGY_COUNTER, "drivewatt_host_energy_joules_total"},
		{"host", QUANTITY_TEMPERATURE, "drivewatt_host_inlet_temperature_celsius"},
		{DRIVE, QUANTITY_POWER, "drivewatt_drive_power_watts"},
		{DRIVE, QUANTITY_TEMPERATURE, "drivewatt_drive_temperature_celsius"},
		{"cpu", QUANTITY_POWER, "drivewatt_component_power_watts"},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct message_labels l;
		char name[64];
		const struct series s = series_of(cases[i].object, cases[i].q, QUALITY_BMC);
		message_series_labels(&l, &s, name);
		is_in_order(&l);
		assert_string_equal(value_of(&l, "__name__"), cases[i].name);
		assert_string_equal(value_of(&l, "quality"), "bmc");
		assert_string_equal(value_of(&l, "host"), "h");
	}
}

static void test_the_object_is_a_label(void **state unused_arg) {
	struct message_labels l;
	char name[64];
	struct series s = series_of(DRIVE, QUANTITY_POWER, QUALITY_SIMULATED);
	message_series_labels(&l, &s, name);
	assert_string_equal(value_of(&l, "drive"), DRIVE);
	s = series_of("cpu", QUANTITY_POWER, QUALITY_DERIVED);
	message_series_labels(&l, &s, name);
	assert_string_equal(value_of(&l, "component"), "cpu");
}

static void test_a_label_replaces_its_namesake(void **state unused_arg) {
	struct message_labels l = {.count = 0};
	assert_true(message_label(&l, "job", "drivewatt"));
	assert_true(message_label(&l, "zone", "a"));
	assert_true(message_label(&l, "area", "b"));
	assert_true(message_label(&l, "job", "other"));
	assert_int_equal(l.count, 3);
	is_in_order(&l);
	assert_string_equal(value_of(&l, "job"), "other");
	assert_true(message_label_is_free("zone"));
	assert_false(message_label_is_free("quality"));
	assert_false(message_label_is_free("__name__"));
}

static void test_labels_are_bounded(void **state unused_arg) {
	struct message_labels l = {.count = 0};
	char names[MESSAGE_MAX_LABELS + 1][4];
	for (unsigned i = 0; i <= MESSAGE_MAX_LABELS; i++) {
		names[i][0] = (char)('a' + i);
		names[i][1] = '\0';
		assert_int_equal(message_label(&l, names[i], "v"), i < MESSAGE_MAX_LABELS);
	}
	assert_true(message_label(&l, "b", "still replaced"));
}

/* As the encoding's guide says: label a = b, 1.5 at 1,790,000,000,000. */
static void test_bytes(void **state unused_arg) {
	static const unsigned char want[] = {0x0a, 0x1a, 0x0a, 0x06, 0x0a, 0x01, 0x61, 0x12, 0x01,
		0x62, 0x12, 0x10, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x10, 0x80,
		0xd8, 0xc1, 0xa2, 0x8c, 0x34};
	struct message_labels l = {.count = 0};
	const struct sample s = {.at_ms = INT64_C(1790000000000), .value_milli = 1500};
	struct buf out;
	(void)message_label(&l, "a", "b");
	buf_init(&out, 1024);
	message_add(&out, &l, QUANTITY_POWER, &s, 1);
	assert_int_equal(out.len, sizeof(want));
	assert_memory_equal(out.data, want, sizeof(want));
	buf_release(&out);
}

/* kWh are kept as Wh. */
static void test_energy_is_joules(void **state unused_arg) {
	struct message_labels l = {.count = 0};
	const struct sample s = {.at_ms = 1, .value_milli = 2};
	struct buf out;
	double value;
	(void)message_label(&l, "a", "b");
	buf_init(&out, 1024);
	message_add(&out, &l, QUANTITY_ENERGY_COUNTER, &s, 1);
	memcpy(&value, out.data + 13, sizeof(value));
	assert_true(value == 7200);
	buf_release(&out);
}

static void test_compressed(void **state unused_arg) {
	struct buf raw, packed;
	char again[4096];
	size_t len = sizeof(again);
	struct err err;
	buf_init(&raw, sizeof(again));
	buf_init(&packed, 2 * sizeof(again));
	for (int i = 0; i < 100; i++)
		buf_printf(&raw, "drivewatt %d ", i % 7);
	assert_int_equal(message_compress(&raw, &packed, &err), RC_OK);
	assert_true(packed.len < raw.len);
	assert_int_equal(snappy_uncompress(packed.data, packed.len, again, &len), SNAPPY_OK);
	assert_int_equal(len, raw.len);
	assert_memory_equal(again, raw.data, len);
	buf_release(&raw);
	buf_release(&packed);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_the_object_is_a_label),
		cmocka_unit_test(test_a_label_replaces_its_namesake),
		cmocka_unit_test(test_labels_are_bounded),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_energy_is_joules),
		cmocka_unit_test(test_compressed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
