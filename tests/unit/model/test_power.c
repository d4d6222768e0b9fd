/* Which wish wins, and which wishes make sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/power.h"

#define NOW 1000
#define STATE(n) .wish = {.state = (n), .limit_mw = NONE}
#define LIMIT(mw) .wish = {.state = -1, .limit_mw = (mw)}
#define FOR_EVER .expires_ms = NONE

/* 25, 15 and 10 W, then a non-operational state and one that does not say. */
static const struct power_table table = {.count = 5,
	.states = {
		{.state = 0, .operational = true, .max_uw = 25000000},
		{.state = 1, .operational = true, .max_uw = 15000000},
		{.state = 2, .operational = true, .max_uw = 10000000},
		{.state = 3, .operational = false, .max_uw = 5000},
		{.state = 4, .operational = true, .max_uw = NONE},
	}};

struct effective_case {
	const char *name;
	struct claim claims[4];
	size_t n;
	struct {
		int state;
		int64_t limit_mw;
		int8_t holder;
		bool capped, unsatisfiable;
	} want;
};

static const struct effective_case effective_cases[] = {
	{"nobody wishes anything", {{.kind = CLAIM_DESIRED}}, 0, {-1, NONE, -1, false, false}},
	{"a desired state", {{.kind = CLAIM_DESIRED, STATE(1), FOR_EVER}}, 1,
		{1, NONE, 0, false, false}},
	{"a desired limit", {{.kind = CLAIM_DESIRED, LIMIT(12000), FOR_EVER}}, 1,
		{2, 12000, 0, false, false}},
	{"lease before desired before policy",
		{{.kind = CLAIM_POLICY, STATE(2), FOR_EVER},
			{.kind = CLAIM_DESIRED, STATE(1), FOR_EVER},
			{.kind = CLAIM_LEASE, STATE(0), FOR_EVER}},
		3, {0, NONE, 2, false, false}},
	{"desired before a newer policy",
		{{.kind = CLAIM_DESIRED, STATE(1), FOR_EVER, .created_ms = 1},
			{.kind = CLAIM_POLICY, STATE(2), FOR_EVER, .created_ms = 2}},
		2, {1, NONE, 0, false, false}},
	{"among equals the newest",
		{{.kind = CLAIM_POLICY, STATE(1), FOR_EVER, .created_ms = 5},
			{.kind = CLAIM_POLICY, STATE(2), FOR_EVER, .created_ms = 9},
			{.kind = CLAIM_POLICY, STATE(0), FOR_EVER, .created_ms = 7}},
		3, {2, NONE, 1, false, false}},
	{"an expired lease counts as absent",
		{{.kind = CLAIM_LEASE, STATE(0), .expires_ms = NOW},
			{.kind = CLAIM_DESIRED, STATE(1), .expires_ms = NOW + 1}},
		2, {1, NONE, 1, false, false}},
	{"a budget bounds a lease",
		{{.kind = CLAIM_LEASE, STATE(0), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(16000), FOR_EVER}},
		2, {1, 16000, 0, true, false}},
	{"a budget that is wide enough changes nothing",
		{{.kind = CLAIM_DESIRED, STATE(1), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(15000), FOR_EVER}},
		2, {1, 15000, 0, false, false}},
	{"the most restrictive cap counts",
		{{.kind = CLAIM_EMERGENCY, LIMIT(16000), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(11000), FOR_EVER},
			{.kind = CLAIM_DESIRED, STATE(0), FOR_EVER}},
		3, {2, 11000, 2, true, false}},
	{"an expired cap counts as absent",
		{{.kind = CLAIM_DESIRED, STATE(0), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(11000), .expires_ms = NOW - 1}},
		2, {0, NONE, 0, false, false}},
	{"a cap without a setting", {{.kind = CLAIM_BUDGET, LIMIT(16000), FOR_EVER}}, 1,
		{1, 16000, -1, true, false}},
	{"a cap tighter than the winning limit",
		{{.kind = CLAIM_DESIRED, LIMIT(20000), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(12000), FOR_EVER}},
		2, {2, 12000, 0, true, false}},
	{"a cap wider than the winning limit",
		{{.kind = CLAIM_DESIRED, LIMIT(12000), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(20000), FOR_EVER}},
		2, {2, 12000, 0, false, false}},
	{"a cap that nothing fits takes the lowest operational state",
		{{.kind = CLAIM_DESIRED, STATE(0), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(9000), FOR_EVER}},
		2, {2, 9000, 0, true, true}},
	{"a non-operational wish fits any cap",
		{{.kind = CLAIM_DESIRED, .wish = {3, true, NONE}, FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(9000), FOR_EVER}},
		2, {3, 9000, 0, false, false}},
	{"a cap by state bounds by that state's power",
		{{.kind = CLAIM_DESIRED, STATE(0), FOR_EVER},
			{.kind = CLAIM_EMERGENCY, STATE(1), FOR_EVER}},
		2, {1, 15000, 0, true, false}},
	{"a cap by a state of unknown power allows nothing",
		{{.kind = CLAIM_DESIRED, STATE(0), FOR_EVER},
			{.kind = CLAIM_EMERGENCY, STATE(4), FOR_EVER}},
		2, {2, 0, 0, true, true}},
	{"a state of unknown power is good without a cap",
		{{.kind = CLAIM_DESIRED, STATE(4), FOR_EVER}}, 1, {4, NONE, 0, false, false}},
	{"a state of unknown power fits no cap",
		{{.kind = CLAIM_DESIRED, STATE(4), FOR_EVER},
			{.kind = CLAIM_BUDGET, LIMIT(15000), FOR_EVER}},
		2, {1, 15000, 0, true, false}},
	{"a state that the table lost is left alone", {{.kind = CLAIM_DESIRED, STATE(9), FOR_EVER}},
		1, {-1, NONE, 0, false, true}},
};

static void one_setting_wins_and_caps_bound_it(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(effective_cases); i++) {
		const struct effective_case *c = &effective_cases[i];
		const struct power_effective got =
			power_effective_compute(&table, c->claims, c->n, NOW);
		if (got.state != c->want.state || got.limit_mw != c->want.limit_mw ||
			got.holder != c->want.holder || got.capped != c->want.capped ||
			got.unsatisfiable != c->want.unsatisfiable)
			fail_msg("%s: state %d limit %lld holder %d capped %d unsatisfiable %d",
				c->name, got.state, (long long)got.limit_mw, got.holder, got.capped,
				got.unsatisfiable);
	}
}

static void a_target_without_states_is_left_alone(void **state) {
	(void)state;
	const struct power_table none = {0};
	const struct claim claims[] = {{.kind = CLAIM_BUDGET, LIMIT(9000), FOR_EVER}};
	const struct power_effective got = power_effective_compute(&none, claims, 1, NOW);
	assert_int_equal(got.state, -1);
	assert_true(got.unsatisfiable);
}

static const struct {
	struct power_wish wish;
	enum rc rc;
	const char *field, *msg;
} wish_cases[] = {
	{{0, false, NONE}, RC_OK, "", ""},
	{{4, false, NONE}, RC_OK, "", ""},
	{{-1, false, 10000}, RC_OK, "", ""},
	{{3, true, NONE}, RC_OK, "", ""},
	{{3, false, NONE}, RC_INVALID, "/desired/state", "power state 3 is non-operational"},
	{{5, false, NONE}, RC_INVALID, "/desired/state", "the drive has the power states 0 to 4"},
	{{-1, false, NONE}, RC_INVALID, "/desired", "either state or limit_w is needed"},
	{{1, false, 10000}, RC_INVALID, "/desired", "either state or limit_w is needed"},
	{{-1, false, 9999}, RC_INVALID, "/desired/limit_w",
		"the least that an operational state allows is 10.000 W"},
	{{-1, false, 0}, RC_INVALID, "/desired/limit_w",
		"the least that an operational state allows is 10.000 W"},
	{{-1, false, -5}, RC_INVALID, "/desired/limit_w",
		"the least that an operational state allows is 10.000 W"},
};

static void wishes_are_checked_against_the_table(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(wish_cases); i++) {
		struct err err = {0};
		assert_int_equal(power_wish_check(&table, &wish_cases[i].wish, "/desired", &err),
			wish_cases[i].rc);
		assert_string_equal(err.field, wish_cases[i].field);
		assert_string_equal(err.msg, wish_cases[i].msg);
	}
}

static void wishes_that_no_table_can_meet(void **state) {
	(void)state;
	const struct power_table none = {0};
	const struct power_table silent = {
		.count = 1, .states = {{.operational = true, .max_uw = NONE}}};
	const struct power_wish by_state = {0, false, NONE};
	const struct power_wish by_limit = {-1, false, 10000};
	struct err err;
	assert_int_equal(power_wish_check(&none, &by_state, "", &err), RC_UNSUPPORTED);
	assert_int_equal(power_wish_check(&silent, &by_limit, "", &err), RC_UNSUPPORTED);
	assert_string_equal(err.field, "/limit_w");
	assert_int_equal(power_wish_check(&silent, &by_state, "", &err), RC_OK);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_setting_wins_and_caps_bound_it),
		cmocka_unit_test(a_target_without_states_is_left_alone),
		cmocka_unit_test(wishes_are_checked_against_the_table),
		cmocka_unit_test(wishes_that_no_table_can_meet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
