/* Enum names and the small tables behind them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/account.h"
#include "model/drive.h"
#include "model/event.h"
#include "model/host.h"
#include "model/run.h"
#include "model/sample.h"
#include "model/task.h"

/* One table's ends: its names as the wire has them, and what is past them. */
#define CHECK_NAMES(fn, type, ...) \
	do { \
		const char *const want[] = {__VA_ARGS__}; \
		for (unsigned i = 0; i < array_len(want); i++) \
			assert_string_equal(fn((type)i), want[i]); \
		assert_string_equal(fn((type)array_len(want)), "unknown"); \
	} while (0)

static void names_are_those_of_the_wire(void **state) {
	(void)state;
	CHECK_NAMES(quality_name, enum quality, "measured", "bmc", "derived", "declared",
		"estimated", "simulated");
	CHECK_NAMES(role_name, enum role, "None", "ReadOnly", "Operator", "Administrator");
	CHECK_NAMES(run_state_name, enum run_state, "queued", "preparing", "running", "completed",
		"failed", "cancelled", "interrupted");
	CHECK_NAMES(drive_kind_name, enum drive_kind, "nvme", "simulated", "block", "file");
	CHECK_NAMES(drive_state_name, enum drive_state, "live", "resetting", "unresponsive",
		"failed", "gone", "arriving");
	CHECK_NAMES(task_state_name, enum task_state, "queued", "running", "completed", "failed",
		"cancelled", "interrupted");
	CHECK_NAMES(target_state_name, enum target_state, "waiting", "running", "completed",
		"failed", "cancelled");
	CHECK_NAMES(bmc_tls_name, enum bmc_tls, "ca", "pin", "none");
	CHECK_NAMES(baseline_kind_name, enum baseline_kind, "idle_with_drives", "no_drives");
	CHECK_NAMES(
		baseline_source_name, enum baseline_source, "measured", "declared", "simulated");
	CHECK_NAMES(claim_kind_name, enum claim_kind, "desired", "lease", "policy", "budget",
		"emergency");
	CHECK_NAMES(quantity_unit, enum quantity, "W", "kWh", "Cel", "1", "By/s", "By/s");
	CHECK_NAMES(use_kind_name, enum use_kind, "mount", "holder", "swap", "export", "process",
		"open", "reserved", "unknown", "partition", "zoned", "shared", "unseen",
		"signature");
	assert_string_equal(event_type_name(EVENT_RUN_STATE), "benchmark.state_changed");
	assert_string_equal(event_type_severity(EVENT_POWER_DRIFT), "warning");
	assert_string_equal(event_type_severity(EVENT_TYPE_COUNT_), "unknown");
}

static void names_lead_back_to_their_values(void **state) {
	(void)state;
	for (unsigned i = 0; i < QUALITY_COUNT_; i++) {
		enum quality q;
		assert_true(quality_from_name(quality_name((enum quality)i), &q));
		assert_int_equal(q, i);
	}
	for (unsigned i = 0; i < RUN_STATE_COUNT_; i++) {
		enum run_state s;
		assert_true(run_state_from_name(run_state_name((enum run_state)i), &s));
		assert_int_equal(s, i);
	}
	for (unsigned i = 0; i < CLAIM_KIND_COUNT_; i++) {
		enum claim_kind k;
		assert_true(claim_kind_from_name(claim_kind_name((enum claim_kind)i), &k));
		assert_int_equal(k, i);
	}
	for (unsigned i = 0; i < QUANTITY_COUNT_; i++) {
		enum quantity q;
		assert_int_equal(quantity_from_name(quantity_name((enum quantity)i), &q), 1);
		assert_int_equal(q, i);
	}
	for (unsigned i = 0; i < EVENT_TYPE_COUNT_; i++) {
		enum event_type t;
		assert_true(event_type_from_name(event_type_name((enum event_type)i), &t));
		assert_int_equal(t, i);
	}
}

static void other_words_are_no_names(void **state) {
	(void)state;
	enum quality q;
	enum role r = ROLE_OPERATOR;
	enum bmc_tls tls;
	enum quantity quantity;
	assert_false(quality_from_name("Measured", &q));
	assert_false(quality_from_name("", &q));
	assert_false(quality_from_name(NULL, &q));
	assert_false(bmc_tls_from_name("pins", &tls));
	assert_int_equal(quantity_from_name("pow", &quantity), 0);
	assert_false(role_from_name("None", &r));
	assert_int_equal(r, ROLE_OPERATOR);
	assert_true(role_from_name("ReadOnly", &r));
	assert_int_equal(r, ROLE_READ_ONLY);
}

static void runs_move_by_the_table(void **state) {
	(void)state;
	/* Rows from, columns to, in the order of the enum. */
	static const char *const want[RUN_STATE_COUNT_] = {
		[RUN_QUEUED] = ".P..FCI",
		[RUN_PREPARING] = "..R.FCI",
		[RUN_RUNNING] = "...DFCI",
		[RUN_COMPLETED] = ".......",
		[RUN_FAILED] = ".......",
		[RUN_CANCELLED] = ".......",
		[RUN_INTERRUPTED] = ".......",
	};
	for (unsigned from = 0; from < RUN_STATE_COUNT_; from++) {
		for (unsigned to = 0; to < RUN_STATE_COUNT_; to++)
			assert_int_equal(
				run_state_may_move((enum run_state)from, (enum run_state)to),
				want[from][to] != '.');
		assert_int_equal(run_state_is_final((enum run_state)from), from >= RUN_COMPLETED);
	}
	assert_false(run_state_is_final(RUN_STATE_COUNT_));
	assert_false(run_state_may_move(RUN_STATE_COUNT_, RUN_QUEUED));
	assert_false(run_state_may_move(RUN_QUEUED, RUN_STATE_COUNT_));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_the_wire),
		cmocka_unit_test(names_lead_back_to_their_values),
		cmocka_unit_test(other_words_are_no_names),
		cmocka_unit_test(runs_move_by_the_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
