/* Decoding of the SMART / Health Information log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
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

static void ocps_log_is_known_by_its_guid(void **state) {
	static const uint8_t guid[] = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f,
		0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf};
	uint8_t log[NVME_SMART_BYTES] = {[96] = 9, [97] = 2, [120] = 88};
	struct drive_ocp o = {0};
	(void)state;
	assert_false(drive_ocp_decode(log, &o));
	memcpy(log + 496, guid, sizeof(guid));
	put(log, 1234567, 8);
	memset(log + 16, 0xff, 16);
	put(log + 32, 0xaaaa000000000011, 8); /* six bytes, then another field */
	put(log + 40, 0x12, 6);
	put(log + 56, 13, 8);
	put(log + 104, 14, 8);
	put(log + 112, 15, 4);
	put(log + 200, 16, 8);
	put(log + 494, 3, 2);
	assert_true(drive_ocp_decode(log, &o));
	const struct {
		int64_t got, want;
	} fields[] = {
		{o.version, 3},
		{o.media_written_bytes, 1234567},
		{o.media_read_bytes, INT64_MAX},
		{o.bad_user_blocks, 0x11},
		{o.bad_system_blocks, 0x12},
		{o.uncorrectable_reads, 13},
		{o.pcie_correctable_errors, 14},
		{o.incomplete_shutdowns, 15},
		{o.free_blocks_pct, 88},
		{o.throttling_events, 9},
		{o.throttling, 2},
		{o.power_state_changes, 16},
	};
	for (size_t i = 0; i < array_len(fields); i++)
		if (fields[i].got != fields[i].want)
			fail_msg("field %zu: %lld", i, (long long)fields[i].got);
}

static void a_measurement_counts_while_it_is_enabled(void **state) {
	uint8_t log[NVME_MEASUREMENT_BYTES] = {[2] = 5, [14] = 30, [56] = 10};
	struct drive_health h = {.interval_power_mw = NONE, .logs = DRIVE_LOG_MEASUREMENT};
	(void)state;
	put(log + 40, 0x000204d2, 4);
	put(log + 44, 0x0003ffff, 4); /* of an unknown scale */
	drive_measurement_decode(log, &h.measurement);
	assert_true(h.measurement.enabled && h.measurement.estimated);
	assert_int_equal(h.measurement.minutes_left, 30);
	assert_int_equal(h.measurement.average_mw, 12340);
	assert_int_equal(h.measurement.maximum_mw, NONE);
	assert_int_equal(h.measurement.error_pct, 10);
	assert_int_equal(drive_health_power_mw(&h), 12340);
	/* The interval power of SMART is newer. */
	h.interval_power_mw = 9000;
	assert_int_equal(drive_health_power_mw(&h), 9000);
	h.interval_power_mw = NONE;
	log[2] = 0;
	log[56] = 255;
	drive_measurement_decode(log, &h.measurement);
	assert_int_equal(h.measurement.error_pct, NONE);
	assert_int_equal(drive_health_power_mw(&h), NONE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_read_from_its_place),
		cmocka_unit_test(what_is_not_reported_is_unknown),
		cmocka_unit_test(big_counters_saturate),
		cmocka_unit_test(interval_power_follows_its_scale),
		cmocka_unit_test(health_is_told_in_one_word),
		cmocka_unit_test(ocps_log_is_known_by_its_guid),
		cmocka_unit_test(a_measurement_counts_while_it_is_enabled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
