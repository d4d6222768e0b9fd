/* Decoding of the SMART / Health Information log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/drive.h"

static void put(uint8_t *p, uint64_t v, int bytes) {
	for (int i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void every_field_is_read_from_its_place(void **state) {
	(void)state;
	uint8_t log[NVME_SMART_BYTES] = {[0] = 0x15, [3] = 99, [4] = 10, [5] = 101};
	struct drive_health h;
	put(log + 1, 323, 2);
	for (int i = 0; i < 10; i++)
		put(log + 32 + 16 * i, 1000u + (unsigned)i, 8);
	put(log + 192, 7, 4);
	put(log + 196, 8, 4);
	for (int i = 0; i < DRIVE_MAX_SENSORS; i++)
		put(log + 200 + 2 * i, 300u + (unsigned)i, 2);
	put(log + 216, 21, 4);
	put(log + 220, 22, 4);
	put(log + 224, 23, 4);
	put(log + 228, 24, 4);
	put(log + 232, 123456, 8);
	put(log + 240, 0x000205dc, 4);
	drive_health_decode(log, &h);

	const struct {
		int64_t got, want;
	} fields[] = {
		{h.read_ms, NONE},
		{h.critical_warning, 0x15},
		{h.temperature_mc, 49850},
		{h.available_spare_pct, 99},
		{h.spare_threshold_pct, 10},
		{h.percentage_used, 101},
		{h.data_units_read, 1000},
		{h.data_units_written, 1001},
		{h.host_reads, 1002},
		{h.host_writes, 1003},
		{h.controller_busy_min, 1004},
		{h.power_cycles, 1005},
		{h.power_on_h, 1006},
		{h.unsafe_shutdowns, 1007},
		{h.media_errors, 1008},
		{h.error_log_entries, 1009},
		{h.warning_temperature_min, 7},
		{h.critical_temperature_min, 8},
		{h.sensors_mc[0], 26850},
		{h.sensors_mc[7], 33850},
		{h.tmt1_transitions, 21},
		{h.tmt2_transitions, 22},
		{h.tmt1_s, 23},
		{h.tmt2_s, 24},
		{h.lifetime_energy_wh, 123456},
		{h.interval_power_mw, 15000},
	};
	for (size_t i = 0; i < array_len(fields); i++) {
		if (fields[i].got != fields[i].want)
			fail_msg("field %zu: %lld, not %lld", i, (long long)fields[i].got,
				(long long)fields[i].want);
	}
}

static void what_is_not_reported_is_unknown(void **state) {
	(void)state;
	const uint8_t log[NVME_SMART_BYTES] = {0};
	struct drive_health h;
	drive_health_decode(log, &h);
	assert_int_equal(h.temperature_mc, NONE);
	for (int i = 0; i < DRIVE_MAX_SENSORS; i++)
		assert_int_equal(h.sensors_mc[i], NONE);
	assert_int_equal(h.lifetime_energy_wh, NONE);
	assert_int_equal(h.interval_power_mw, NONE);
	assert_int_equal(h.data_units_written, 0);
}

static void big_counters_saturate(void **state) {
	(void)state;
	static const struct {
		uint64_t low, high;
		int64_t want;
	} cases[] = {
		{INT64_MAX, 0, INT64_MAX},
		{(uint64_t)INT64_MAX + 1, 0, INT64_MAX},
		{0, 1, INT64_MAX},
		{UINT64_MAX, UINT64_MAX, INT64_MAX},
		{INT64_MAX - 1, 0, INT64_MAX - 1},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		uint8_t log[NVME_SMART_BYTES] = {0};
		struct drive_health h;
		put(log + 48, cases[i].low, 8);
		put(log + 56, cases[i].high, 8);
		put(log + 232, cases[i].low, 8);
		drive_health_decode(log, &h);
		assert_int_equal(h.data_units_written, cases[i].want);
		if (cases[i].low)
			assert_in_range(h.lifetime_energy_wh, 1, INT64_MAX);
	}
}

static void interval_power_follows_its_scale(void **state) {
	(void)state;
	static const struct {
		uint32_t field;
		int64_t want_mw;
	} cases[] = {
		{0x000005dc, NONE},  /* not reported */
		{0x000105dc, 150},   /* 1500 × 0.1 mW */
		{0x000205dc, 15000}, /* 1500 × 10 mW */
		{0x000305dc, NONE},  /* reserved */
		{0x00010004, 0},     /* rounded */
		{0x00010005, 1},
		{0xfffe05dc, 15000}, /* bits 31:18 are reserved */
		{0x0002ffff, 655350},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		uint8_t log[NVME_SMART_BYTES] = {0};
		struct drive_health h;
		put(log + 240, cases[i].field, 4);
		drive_health_decode(log, &h);
		assert_int_equal(h.interval_power_mw, cases[i].want_mw);
	}
}

static void health_is_told_in_one_word(void **state) {
	(void)state;
	static const struct {
		uint8_t warning;
		int64_t used, spare, threshold;
		enum drive_health_level want;
	} cases[] = {
		{0, 99, 11, 10, DRIVE_HEALTH_OK},
		{0, 100, 11, 10, DRIVE_HEALTH_WARNING},
		{0, 0, 10, 10, DRIVE_HEALTH_WARNING},
		{0, 0, 0, 0, DRIVE_HEALTH_OK},
		{0, NONE, NONE, 10, DRIVE_HEALTH_OK},
		{0, NONE, 5, NONE, DRIVE_HEALTH_OK},
		{4, 100, 0, 10, DRIVE_HEALTH_CRITICAL},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		const struct drive_health h = {.critical_warning = cases[i].warning,
			.percentage_used = cases[i].used,
			.available_spare_pct = cases[i].spare,
			.spare_threshold_pct = cases[i].threshold};
		assert_int_equal(drive_health_judge(&h), cases[i].want);
	}
	assert_string_equal(drive_health_name(DRIVE_HEALTH_CRITICAL), "critical");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_read_from_its_place),
		cmocka_unit_test(what_is_not_reported_is_unknown),
		cmocka_unit_test(big_counters_saturate),
		cmocka_unit_test(interval_power_follows_its_scale),
		cmocka_unit_test(health_is_told_in_one_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
