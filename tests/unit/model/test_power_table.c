/* Decoding of Identify Controller, against descriptors built byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/power.h"

/* A descriptor as the controller sends it. */
struct psd {
	uint16_t max;
	uint8_t flags;
	uint32_t entry, exit;
	uint8_t ranks[4];
	uint16_t idle;
	uint8_t idle_scale;
	uint16_t active;
	uint8_t active_workload, active_scale;
};

static void put(uint8_t *p, uint64_t v, int bytes) {
	for (int i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void identify_build(uint8_t *id, uint8_t npss, const struct psd *psds, size_t n) {
	memset(id, 0, NVME_IDENTIFY_BYTES);
	id[263] = npss;
	for (size_t i = 0; i < n; i++) {
		uint8_t *p = id + 2048 + i * NVME_PSD_BYTES;
		put(p, psds[i].max, 2);
		p[3] = psds[i].flags;
		put(p + 4, psds[i].entry, 4);
		put(p + 8, psds[i].exit, 4);
		memcpy(p + 12, psds[i].ranks, 4);
		put(p + 16, psds[i].idle, 2);
		p[18] = (uint8_t)(psds[i].idle_scale << 6);
		put(p + 20, psds[i].active, 2);
		p[22] = (uint8_t)(psds[i].active_scale << 6 | psds[i].active_workload);
	}
}

struct expected {
	int64_t max_uw, idle_uw, active_uw, entry_us, exit_us;
	bool operational;
	uint8_t active_workload;
	int8_t rank;
};

static void check_table(uint8_t npss, const struct psd *psds, const struct expected *want) {
	uint8_t id[NVME_IDENTIFY_BYTES];
	struct power_table t;
	identify_build(id, npss, psds, npss + 1u);
	assert_int_equal(power_table_decode(id, &t, NULL), RC_OK);
	assert_int_equal(t.count, npss + 1);
	for (int i = 0; i <= npss; i++) {
		const struct power_state *s = power_table_find(&t, i);
		assert_non_null(s);
		assert_int_equal(s->state, i);
		assert_int_equal(s->max_uw, want[i].max_uw);
		assert_int_equal(s->idle_uw, want[i].idle_uw);
		assert_int_equal(s->active_uw, want[i].active_uw);
		assert_int_equal(s->entry_latency_us, want[i].entry_us);
		assert_int_equal(s->exit_latency_us, want[i].exit_us);
		assert_int_equal(s->operational, want[i].operational);
		assert_int_equal(s->active_workload, want[i].active_workload);
		assert_int_equal(s->relative_read_throughput, want[i].rank);
		assert_int_equal(s->relative_read_latency, want[i].rank);
		assert_int_equal(s->relative_write_throughput, want[i].rank);
		assert_int_equal(s->relative_write_latency, want[i].rank);
	}
}

/* A drive of five states whose deepest ones count in 0.1 mW: 450 is 0.045 W, not 4.5 W. */
static void small_states_count_in_tenths_of_a_milliwatt(void **state) {
	(void)state;
	const struct psd psds[] = {
		{.max = 700},
		{.max = 460, .ranks = {1, 1, 1, 1}},
		{.max = 380, .ranks = {2, 2, 2, 2}},
		{.max = 450, .flags = 3, .entry = 2000, .exit = 2000, .ranks = {3, 3, 3, 3}},
		{.max = 50, .flags = 3, .entry = 15000, .exit = 15000, .ranks = {4, 4, 4, 4}},
	};
	const struct expected want[] = {
		{7000000, NONE, NONE, NONE, NONE, true, 0, 0},
		{4600000, NONE, NONE, NONE, NONE, true, 0, 1},
		{3800000, NONE, NONE, NONE, NONE, true, 0, 2},
		{45000, NONE, NONE, 2000, 2000, false, 0, 3},
		{5000, NONE, NONE, 15000, 15000, false, 0, 4},
	};
	check_table(4, psds, want);
}

static void idle_and_active_power_have_their_own_scale(void **state) {
	(void)state;
	const struct psd psds[] = {
		{.max = 2500,
			.entry = 100,
			.exit = 100,
			.idle = 500,
			.idle_scale = 2,
			.active = 1800,
			.active_workload = 2,
			.active_scale = 2},
		{.max = 1200, .entry = 100, .exit = 100, .ranks = {1, 1, 1, 1}},
		{.max = 0, .flags = 2, .ranks = {2, 2, 2, 2}, .idle_scale = 3},
	};
	const struct expected want[] = {
		{25000000, 5000000, 18000000, 100, 100, true, 2, 0},
		{12000000, NONE, NONE, 100, 100, true, 0, 1},
		{NONE, NONE, NONE, NONE, NONE, false, 0, 2},
	};
	check_table(2, psds, want);
}

static void invalid_ranks_and_reserved_scales_are_unknown(void **state) {
	(void)state;
	const struct psd psds[] = {
		{.max = 2500,
			.idle = 500,
			.idle_scale = 2,
			.active = 1800,
			.active_workload = 2,
			.active_scale = 2},
		{.max = 1, .ranks = {1, 1, 1, 1}},
		{.max = 65535, .flags = 3, .entry = 5, .exit = 5, .ranks = {2, 2, 2, 2}},
		{.max = 0,
			.flags = 2,
			.entry = 9,
			.exit = 9,
			.ranks = {9, 9, 9, 9},
			.idle = 7,
			.idle_scale = 3,
			.active = 7,
			.active_scale = 3},
	};
	const struct expected want[] = {
		{25000000, 5000000, 18000000, NONE, NONE, true, 2, 0},
		{10000, NONE, NONE, NONE, NONE, true, 0, 1},
		{6553500, NONE, NONE, 5, 5, false, 0, 2},
		{NONE, NONE, NONE, 9, 9, false, 0, -1},
	};
	check_table(3, psds, want);
}

static void the_ends_of_the_ranges(void **state) {
	(void)state;
	const struct psd psds[] = {
		{.max = 65535,
			.entry = UINT32_MAX,
			.exit = UINT32_MAX,
			.idle = 65535,
			.idle_scale = 1,
			.active = 65535,
			.active_workload = 7,
			.active_scale = 1},
	};
	const struct expected want[] = {
		{655350000, 6553500, 6553500, UINT32_MAX, UINT32_MAX, true, 0, 0},
	};
	check_table(0, psds, want);
}

/* Bits 7:5 of the rank bytes are reserved. */
static void reserved_bits_of_ranks_are_ignored(void **state) {
	(void)state;
	const struct psd psds[] = {{.max = 1}, {.max = 1, .ranks = {0xe1, 0xe1, 0xe1, 0xe1}}};
	const struct expected want[] = {
		{10000, NONE, NONE, NONE, NONE, true, 0, 0},
		{10000, NONE, NONE, NONE, NONE, true, 0, 1},
	};
	check_table(1, psds, want);
}

static void thirty_two_states_fit_and_more_are_refused(void **state) {
	(void)state;
	uint8_t id[NVME_IDENTIFY_BYTES] = {[263] = 31};
	struct power_table t;
	struct err err = {0};
	assert_int_equal(power_table_decode(id, &t, &err), RC_OK);
	assert_int_equal(t.count, 32);
	id[263] = 32;
	assert_int_equal(power_table_decode(id, &t, &err), RC_CORRUPT);
	assert_int_equal(t.count, 0);
	assert_string_equal(err.msg, "the drive claims 33 power states");
}

static void only_states_of_the_table_are_found(void **state) {
	(void)state;
	const struct power_table t = {.count = 3};
	assert_ptr_equal(power_table_find(&t, 0), &t.states[0]);
	assert_ptr_equal(power_table_find(&t, 2), &t.states[2]);
	assert_null(power_table_find(&t, 3));
	assert_null(power_table_find(&t, -1));
}

static void a_limit_finds_the_fastest_state_that_fits(void **state) {
	(void)state;
	/* Not in falling order, one not reported, one non-operational, two alike. */
	const struct power_table t = {.count = 6,
		.states = {
			{.state = 0, .operational = true, .max_uw = 15000000},
			{.state = 1, .operational = true, .max_uw = 25000000},
			{.state = 2, .operational = true, .max_uw = NONE},
			{.state = 3, .operational = false, .max_uw = 5000},
			{.state = 4, .operational = true, .max_uw = 10000100},
			{.state = 5, .operational = true, .max_uw = 15000000},
		}};
	static const struct {
		int64_t limit_mw;
		int want;
	} cases[] = {
		{INT64_MAX, 1},
		{25000, 1},
		{24999, 0},
		{15000, 0},
		{14999, 4},
		{10001, 4},
		{10000, -1}, /* 10.0001 W does not fit 10 W */
		{5, -1},
		{0, -1},
		{-1, -1},
	};
	for (size_t i = 0; i < array_len(cases); i++)
		assert_int_equal(power_table_state_for_limit(&t, cases[i].limit_mw), cases[i].want);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_states_count_in_tenths_of_a_milliwatt),
		cmocka_unit_test(idle_and_active_power_have_their_own_scale),
		cmocka_unit_test(invalid_ranks_and_reserved_scales_are_unknown),
		cmocka_unit_test(the_ends_of_the_ranges),
		cmocka_unit_test(reserved_bits_of_ranks_are_ignored),
		cmocka_unit_test(thirty_two_states_fit_and_more_are_refused),
		cmocka_unit_test(only_states_of_the_table_are_found),
		cmocka_unit_test(a_limit_finds_the_fastest_state_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
