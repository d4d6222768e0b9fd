/* Wishes that end by themselves: by the time of day, or by the time that has passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/power_fixture.h"

#define HOUR_MS INT64_C(3600000)
#define T_MS INT64_C(1767225600000)

/* The wall clock stands still where a test has put it; the monotonic one goes on. */
static _Atomic int64_t wall_ms;

static int64_t frozen_ms(void) {
	return wall_ms;
}

static int setup(void **state) {
	wall_ms = T_MS;
	clock_replace(frozen_ms, NULL);
	return pf_setup(state);
}

static int teardown(void **state) {
	const int rc = pf_teardown(state);
	clock_replace(NULL, NULL);
	return rc;
}

static const struct power_options quick = {.reconcile_ms = 50, .backoff_ms = 20};

static struct power_outcome set_until(struct power_fixture *f, int state, int64_t expires_ms) {
	const struct power_wish w = pf_state_wish(state);
	struct latch *l = pf_latch_for_outcome();
	struct err err;
	assert_int_equal(power_set_desired(f->power, &pf_admin, f->id, &w, expires_ms, VERSION_ANY,
				 pf_on_outcome, l, &err),
		RC_OK);
	return pf_outcome_of(l);
}

static void wait_for_nobody(struct power_fixture *f) {
	struct pf_wish none = {.f = f, .value = 0};
	assert_true(eventually(pf_has_claims_now, &none));
}

static void when_its_time_has_come_the_drive_goes_back(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	assert_int_equal(set_until(f, 2, T_MS + HOUR_MS).expires_ms, T_MS + HOUR_MS);
	assert_int_equal(pf_view(f).claims[0].expires_ms, T_MS + HOUR_MS);
	pf_wait_for_asked(f, DRIVE_POWER_GET, 3);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	wall_ms = T_MS + HOUR_MS;
	pf_wait_for_power(f, 0);
	wait_for_nobody(f);
	pf_wait_for_claims(f, 0);
	assert_int_equal(pf_count_events(f, EVENT_POWER_DESIRED), 2);
	assert_int_equal(pf_count_audits(f, "intent"), 1);
	/* The administrator's: the end is the service's own. */
	assert_int_equal(pf_count_audits(f, "ok"), 1);
}

static void another_end_is_another_wish(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	set_until(f, 2, T_MS + HOUR_MS);
	const uint32_t version = pf_view(f).config_version;
	set_until(f, 2, T_MS + HOUR_MS);
	assert_int_equal(pf_view(f).config_version, version);
	set_until(f, 2, NONE);
	assert_int_not_equal(pf_view(f).config_version, version);
	wall_ms = T_MS + 2 * HOUR_MS;
	pf_wait_for_asked(f, DRIVE_POWER_GET, 3);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	assert_int_equal(pf_view(f).claims[0].expires_ms, NONE);
}

static void an_end_that_is_over_is_refused(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish w = pf_state_wish(1);
	struct err err;
	pf_start(f, &quick);
	assert_int_equal(power_set_desired(f->power, &pf_admin, f->id, &w, T_MS, VERSION_ANY,
				 pf_on_outcome, NULL, &err),
		RC_INVALID);
	assert_string_equal(err.field, "/expires_at");
}

static void under_a_lease_it_ends_for_afterwards(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	set_until(f, 2, T_MS + HOUR_MS);
	wall_ms = T_MS + HOUR_MS - 1;
	assert_int_equal(pf_take_lease(f, "r1", 1).rc, RC_OK);
	wall_ms = T_MS + HOUR_MS;
	struct pf_wish one = {.f = f, .value = 1};
	assert_true(eventually(pf_has_claims_now, &one));
	assert_int_equal(pf_view(f).claims[0].kind, CLAIM_LEASE);
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
	power_lease_end(f->power, "r1");
	pf_wait_for_power(f, 0);
}

static void it_ends_after_a_restart_too(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	set_until(f, 2, T_MS + HOUR_MS);
	pf_restart(f, &quick);
	assert_int_equal(pf_view(f).claims[0].expires_ms, T_MS + HOUR_MS);
	pf_wait_for_observed(f, 2);
	wall_ms = T_MS + HOUR_MS;
	pf_wait_for_power(f, 0);
}

static void one_that_ended_meanwhile_holds_no_more(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	set_until(f, 2, T_MS + HOUR_MS);
	pf_stop(f);
	wall_ms = T_MS + 2 * HOUR_MS;
	f->fake = fake_drives_new();
	f->n = fake_drive_add(f->fake, "S1");
	fake_drive_set_power(f->fake, f->n, 2);
	pf_start(f, &quick);
	pf_wait_for_power(f, 0);
	pf_wait_for_claims(f, 0);
}

static void a_clock_that_was_set_back_keeps_nobody(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	set_until(f, 2, T_MS + 300);
	wall_ms = T_MS - 24 * HOUR_MS;
	pf_wait_for_power(f, 0);
	wait_for_nobody(f);
}

static void nor_over_a_restart(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &quick);
	set_until(f, 2, T_MS + 300);
	pf_stop(f);
	wall_ms = T_MS - 24 * HOUR_MS;
	f->fake = fake_drives_new();
	f->n = fake_drive_add(f->fake, "S1");
	fake_drive_set_power(f->fake, f->n, 2);
	pf_start(f, &quick);
	pf_wait_for_power(f, 0);
	wait_for_nobody(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(when_its_time_has_come_the_drive_goes_back),
		TEST(another_end_is_another_wish),
		TEST(an_end_that_is_over_is_refused),
		TEST(under_a_lease_it_ends_for_afterwards),
		TEST(it_ends_after_a_restart_too),
		TEST(one_that_ended_meanwhile_holds_no_more),
		TEST(a_clock_that_was_set_back_keeps_nobody),
		TEST(nor_over_a_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
