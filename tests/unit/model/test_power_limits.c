/* What a drive is set to, to keep a limit in watts, by the means that it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "model/power.h"

/* 25, 15 and 10 W, and one that is not operational. */
static const struct power_table by_state = {.count = 4,
	.states = {
		{.state = 0, .operational = true, .max_uw = 25000000},
		{.state = 1, .operational = true, .max_uw = 15000000},
		{.state = 2, .operational = true, .max_uw = 10000000},
		{.state = 3, .operational = false, .max_uw = 5000},
	}};

static struct power_table with(enum power_means means) {
	struct power_table t = by_state;
	t.limits.means = (uint8_t)means;
	t.limits.ocp_states[10] = OCP_POWER_STATE_VALID | 2;
	t.limits.ocp_states[12] = OCP_POWER_STATE_VALID | 2;
	t.limits.ocp_states[13] = 1;                         /* not valid */
	t.limits.ocp_states[14] = OCP_POWER_STATE_VALID | 9; /* no such state */
	t.limits.ocp_states[25] = OCP_POWER_STATE_VALID;
	return t;
}

static void a_limit_becomes_what_the_drive_can_take(void **state) {
	static const struct {
		enum power_means means;
		int64_t limit_mw;
		struct power_setting want;
		bool missed;
	} cases[] = {
		{POWER_MEANS_STATE, 20000, {1, -1, NONE}, false},
		{POWER_MEANS_STATE, 25000, {0, -1, NONE}, false},
		{POWER_MEANS_STATE, 9999, {2, -1, NONE}, true},
		/* Its fastest state, held down; where the limit forbids that, one that fits. */
		{POWER_MEANS_LIMIT, 20000, {0, 1, 20000}, false},
		{POWER_MEANS_LIMIT, 20009, {0, 1, 20000}, false},
		{POWER_MEANS_LIMIT, 700000, {0, 0, 655350}, false},
		{POWER_MEANS_LIMIT, 9999, {2, -1, NONE}, true},
		/* Whole watts that the drive lists, each with its state. */
		{POWER_MEANS_OCP, 12000, {2, -1, 12000}, false},
		{POWER_MEANS_OCP, 14999, {2, -1, 12000}, false},
		{POWER_MEANS_OCP, 24999, {2, -1, 12000}, false},
		{POWER_MEANS_OCP, 500000, {0, -1, 25000}, false},
		{POWER_MEANS_OCP, 9000, {2, -1, NONE}, true},
	};
	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		const struct power_table t = with(cases[i].means);
		bool missed = !cases[i].missed;
		const struct power_setting s = power_limits_setting(&t, cases[i].limit_mw, &missed);
		if (!power_setting_is_same(&s, &cases[i].want) ||
			s.fallback_state != cases[i].want.fallback_state ||
			missed != cases[i].missed)
			fail_msg("case %zu: state %d, fallback %d, %lld mW", i, s.state,
				s.fallback_state, (long long)s.limit_mw);
	}
}

static void a_drive_that_tells_no_watts_is_asked(void **state) {
	struct power_table t = with(POWER_MEANS_LIMIT);
	bool missed = true;
	(void)state;
	for (int i = 0; i < t.count; i++)
		t.states[i].max_uw = NONE;
	assert_int_equal(power_limits_setting(&t, 3000, &missed).limit_mw, 3000);
	assert_false(missed);
	t.limits.means = POWER_MEANS_STATE;
	power_limits_setting(&t, 3000, &missed);
	assert_true(missed);
}

static void what_is_kept_depends_on_the_means(void **state) {
	static const struct {
		enum power_means means;
		struct power_setting set;
		int observed_state;
		int64_t observed_mw;
		bool kept;
	} cases[] = {
		{POWER_MEANS_STATE, {1, -1, NONE}, 1, NONE, true},
		{POWER_MEANS_STATE, {1, -1, NONE}, 0, NONE, false},
		{POWER_MEANS_LIMIT, {0, 1, 20000}, 0, 20000, true},
		{POWER_MEANS_LIMIT, {0, 1, 20000}, 1, 20000, true},
		{POWER_MEANS_LIMIT, {0, 1, 20000}, 2, 20000, false},
		{POWER_MEANS_LIMIT, {0, 1, 20000}, 3, 20000, false},
		{POWER_MEANS_LIMIT, {0, 1, 20000}, 0, NONE, false},
		{POWER_MEANS_LIMIT, {0, 1, 20000}, 0, 15000, false},
		/* A limit that nobody wishes holds the state down. */
		{POWER_MEANS_LIMIT, {0, -1, NONE}, 0, 15000, false},
		{POWER_MEANS_LIMIT, {0, -1, NONE}, 0, NONE, true},
		{POWER_MEANS_OCP, {2, -1, 12000}, 2, 12000, true},
		{POWER_MEANS_OCP, {2, -1, 12000}, 2, 10000, false},
		/* It says the watts of its state whoever set it. */
		{POWER_MEANS_OCP, {2, -1, NONE}, 2, 10000, true},
	};
	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		const struct power_table t = with(cases[i].means);
		if (power_setting_is_kept(&t, &cases[i].set, cases[i].observed_state,
			    cases[i].observed_mw) != cases[i].kept)
			fail_msg("case %zu", i);
	}
}

static void limits_below_the_means_are_refused_by_field(void **state) {
	const struct power_table t = with(POWER_MEANS_LIMIT);
	struct err err = {0};
	struct power_wish w = {.state = -1, .limit_mw = 9000};
	(void)state;
	assert_int_equal(power_wish_check(&t, &w, "", &err), RC_INVALID);
	assert_string_equal(err.field, "/limit_w");
	w.limit_mw = 10001;
	assert_int_equal(power_wish_check(&t, &w, "", &err), RC_OK);
}

static void the_limit_in_force_is_the_means_own(void **state) {
	const struct claim claim = {.kind = CLAIM_DESIRED,
		.wish = {.state = -1, .limit_mw = 20005},
		.expires_ms = NONE};
	static const int64_t wants[POWER_MEANS_COUNT_] = {
		[POWER_MEANS_STATE] = 15000,
		[POWER_MEANS_OCP] = 12000,
		[POWER_MEANS_LIMIT] = 20000,
	};
	(void)state;
	for (int m = 0; m < POWER_MEANS_COUNT_; m++) {
		const struct power_table t = with((enum power_means)m);
		const struct power_effective e = power_effective_compute(&t, &claim, 1, 0);
		assert_int_equal(power_limit_in_force(&t, &e), wants[m]);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_becomes_what_the_drive_can_take),
		cmocka_unit_test(a_drive_that_tells_no_watts_is_asked),
		cmocka_unit_test(what_is_kept_depends_on_the_means),
		cmocka_unit_test(limits_below_the_means_are_refused_by_field),
		cmocka_unit_test(the_limit_in_force_is_the_means_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
