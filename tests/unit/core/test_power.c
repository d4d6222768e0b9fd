/* Power against made-up drives: claims, what they make of a drive, and what becomes of failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "db/drives.h"
#include "tests/support/eventually.h"
#include "tests/support/power_fixture.h"

/* --- desired --- */

static void a_wish_is_set_read_back_and_kept(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	const struct power_outcome o = pf_set(f, 1);
	assert_int_equal(o.rc, RC_OK);
	assert_int_equal(o.observed_state, 1);
	assert_true(o.in_sync && o.recorded && o.created);
	assert_string_equal(o.held_by, "admin");
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
	const struct power_view v = pf_view(f);
	assert_int_equal(v.effective.state, 1);
	assert_int_equal(v.claim_count, 1);
	assert_true(v.in_sync);
	assert_int_equal(pf_count_events(f, EVENT_POWER_DESIRED), 1);
	assert_int_equal(pf_count_events(f, EVENT_POWER_APPLIED), 1);
	assert_int_equal(pf_count_audits(f, "intent"), 1);
	assert_int_equal(pf_count_audits(f, "ok"), 1);
}

static void a_limit_chooses_a_state(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish w = {.state = -1, .limit_mw = 20000};
	pf_start(f, &(struct power_options){0});
	const struct power_outcome o = pf_outcome_of(pf_begin_set(f, &w));
	assert_int_equal(o.observed_state, 1);
	assert_int_equal(pf_view(f).limit_mw, 18000);
}

static struct power_outcome set_limit(struct power_fixture *f, int64_t limit_mw) {
	const struct power_wish w = {.state = -1, .limit_mw = limit_mw};
	return pf_outcome_of(pf_begin_set(f, &w));
}

static void a_limit_is_kept_by_the_drives_own_means(void **state) {
	struct power_fixture *f = *state;
	fake_drive_offer(f->fake, f->n, POWER_MEANS_LIMIT);
	pf_start(f, &(struct power_options){0});
	const struct power_outcome o = set_limit(f, 20004);
	assert_int_equal(o.rc, RC_OK);
	assert_true(o.in_sync);
	/* The fastest state, held down by the drive itself. */
	assert_int_equal(o.observed_state, 0);
	assert_int_equal(o.observed_limit_mw, 20000);
	assert_int_equal(o.limit_mw, 20000);
	assert_int_equal(o.wish.limit_mw, 20004);
	assert_int_equal(o.limit_means, POWER_MEANS_LIMIT);
	assert_int_equal(pf_view(f).limit_mw, 20000);
	/* Who wishes a state wishes it without a limit. */
	pf_set(f, 1);
	assert_int_equal(fake_drive_limit(f->fake, f->n), NONE);
	set_limit(f, 15000);
	assert_int_equal(fake_drive_limit(f->fake, f->n), 15000);
	pf_clear(f, false);
	assert_int_equal(fake_drive_limit(f->fake, f->n), NONE);
}

static void a_limit_that_is_lost_is_set_again(void **state) {
	struct power_fixture *f = *state;
	fake_drive_offer(f->fake, f->n, POWER_MEANS_LIMIT);
	pf_start(f, &(struct power_options){.reconcile_ms = PF_SHORT_MS});
	set_limit(f, 20000);
	fake_drive_set_limit(f->fake, f->n, NONE);
	pf_wait_for_events(f, EVENT_POWER_DRIFT, 1);
	pf_wait_for_events(f, EVENT_POWER_APPLIED, 2);
	assert_int_equal(fake_drive_limit(f->fake, f->n), 20000);
}

static void a_lease_gives_the_limit_back(void **state) {
	struct power_fixture *f = *state;
	fake_drive_offer(f->fake, f->n, POWER_MEANS_LIMIT);
	fake_drive_set_limit(f->fake, f->n, 17000);
	pf_start(f, &(struct power_options){0});
	pf_wait_for_observed(f, 0);
	assert_int_equal(pf_take_lease(f, "r1", 2).observed_state, 2);
	assert_int_equal(fake_drive_limit(f->fake, f->n), NONE);
	power_lease_end(f->power, "r1");
	pf_wait_for_power(f, 0);
	pf_wait_for_observed(f, 0);
	assert_int_equal(fake_drive_limit(f->fake, f->n), 17000);
}

static void an_ocp_limit_brings_its_state(void **state) {
	struct power_fixture *f = *state;
	fake_drive_offer(f->fake, f->n, POWER_MEANS_OCP);
	pf_start(f, &(struct power_options){0});
	const struct power_outcome o = set_limit(f, 17900);
	assert_true(o.in_sync);
	assert_int_equal(o.observed_state, 2);
	assert_int_equal(o.limit_mw, 12000);
	assert_int_equal(fake_drive_limit(f->fake, f->n), 12000);
}

static void the_same_wish_again_is_no_change(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 1);
	const uint32_t version = pf_view(f).config_version;
	const struct power_outcome o = pf_set(f, 1);
	assert_int_equal(o.rc, RC_OK);
	assert_false(o.created);
	assert_true(o.in_sync);
	assert_int_equal(pf_view(f).config_version, version);
	assert_int_equal(pf_count_events(f, EVENT_POWER_DESIRED), 1);
	assert_int_equal(pf_count_events(f, EVENT_POWER_APPLIED), 1);
	assert_int_equal(pf_count_audits(f, "intent"), 1);
	/* … but it is brought back when it was out of sync. */
	fake_drive_set_power(f->fake, f->n, 0);
	assert_true(pf_set(f, 1).in_sync);
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
}

static void wishes_without_meaning_are_refused_by_field(void **state) {
	struct power_fixture *f = *state;
	const struct {
		struct power_wish wish;
		const char *field;
	} cases[] = {
		{{.state = 5, .limit_mw = NONE}, "/state"},
		{{.state = 3, .limit_mw = NONE}, "/state"},
		{{.state = -1, .limit_mw = 1000}, "/limit_w"},
	};
	struct err err;
	pf_start(f, &(struct power_options){0});
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(pf_try_set(f, &cases[i].wish, 0, &err), RC_INVALID);
		assert_string_equal(err.field, cases[i].field);
	}
	assert_int_equal(pf_view(f).claim_count, 0);
	const struct power_wish asleep = {
		.state = 3, .allow_non_operational = true, .limit_mw = NONE};
	assert_int_equal(pf_outcome_of(pf_begin_set(f, &asleep)).observed_state, 3);
}

static void versions_guard_the_claims(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish w = pf_state_wish(2);
	struct claim claim;
	uint32_t version;
	struct err err;
	pf_start(f, &(struct power_options){0});
	assert_int_equal(power_desired_get(f->power, f->id, &claim, &version, &err), RC_NOT_FOUND);
	assert_int_equal(pf_view(f).config_version, VERSION_ABSENT);
	assert_int_equal(pf_try_set(f, &w, 7, &err), RC_PRECONDITION);
	pf_set(f, 1);
	assert_int_equal(pf_try_set(f, &w, VERSION_ABSENT, &err), RC_PRECONDITION);
	assert_int_equal(power_desired_get(f->power, f->id, &claim, &version, &err), RC_OK);
	assert_int_equal(claim.wish.state, 1);
	assert_int_equal(pf_try_set(f, &w, version + 1, &err), RC_PRECONDITION);
	struct latch *l = pf_latch_for_outcome();
	assert_int_equal(power_set_desired(f->power, &pf_admin, f->id, &w, NONE, version,
				 pf_on_outcome, l, &err),
		RC_OK);
	assert_int_equal(pf_outcome_of(l).rc, RC_OK);
}

static void a_wish_survives_a_restart_with_its_version(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 2);
	const uint32_t version = pf_view(f).config_version;
	pf_restart(f, &(struct power_options){0});
	assert_int_equal(pf_view(f).effective.state, 2);
	assert_int_equal(pf_view(f).config_version, version);
	pf_wait_for_observed(f, 2);
}

static void clearing_goes_back_to_the_default(void **state) {
	struct power_fixture *f = *state;
	struct err err;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 2);
	const struct power_outcome o = pf_clear(f, false);
	assert_int_equal(o.rc, RC_OK);
	assert_int_equal(o.observed_state, 0);
	assert_int_equal(fake_drive_power(f->fake, f->n), 0);
	assert_int_equal(pf_view(f).effective.state, -1);
	assert_true(pf_view(f).in_sync);
	assert_int_equal(power_clear_desired(
				 f->power, &pf_admin, f->id, false, 0, pf_on_outcome, NULL, &err),
		RC_NOT_FOUND);
}

/* What was seen before the earlier wish arrived at the drive says nothing of afterwards. */
static void clearing_waits_for_a_wish_on_its_way(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish two = pf_state_wish(2);
	pf_start(f, &(struct power_options){0});
	pf_wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	struct latch *set = pf_begin_set(f, &two), *cleared = pf_begin_clear(f, false);
	fake_drive_hang(f->fake, f->n, false);
	assert_int_equal(pf_outcome_of(set).rc, RC_OK);
	assert_int_equal(pf_outcome_of(cleared).rc, RC_OK);
	assert_int_equal(fake_drive_power(f->fake, f->n), 0);
}

static void leaving_only_lets_go(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 2);
	assert_int_equal(pf_clear(f, true).rc, RC_OK);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	assert_int_equal(pf_view(f).claim_count, 0);
}

static void an_observer_changes_nothing(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish w = pf_state_wish(1);
	struct err err;
	pf_start(f, &(struct power_options){.observe_only = true});
	assert_int_equal(pf_try_set(f, &w, 0, &err), RC_FORBIDDEN);
	assert_int_equal(power_clear_desired(
				 f->power, &pf_admin, f->id, false, 0, pf_on_outcome, NULL, &err),
		RC_FORBIDDEN);
	assert_int_equal(power_lease(f->power, f->id, "r", 1, NONE, pf_on_outcome, NULL, &err),
		RC_FORBIDDEN);
	pf_wait_for_observed(f, 0);
	assert_int_equal(fake_drive_asked(f->fake, f->n, DRIVE_POWER_SET), 0);
}

/* --- failures --- */

static void a_refusal_withdraws_the_wish(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	fake_drive_refuse(f->fake, f->n, 2, RC_REFUSED, 0x410e);
	struct power_outcome o = pf_set(f, 2);
	assert_int_equal(o.rc, RC_REFUSED);
	assert_int_equal(o.err.nvme_status, 0x410e);
	assert_int_equal(pf_view(f).claim_count, 0);
	assert_int_equal(pf_count_events(f, EVENT_POWER_REFUSED), 1);
	assert_int_equal(pf_count_audits(f, "refused"), 1);
	pf_set(f, 1);
	o = pf_set(f, 2);
	assert_int_equal(o.rc, RC_REFUSED);
	const struct power_view v = pf_view(f);
	assert_int_equal(v.claim_count, 1);
	assert_int_equal(v.effective.state, 1);
	pf_wait_for_power(f, 1);
	pf_restart(f, &(struct power_options){0});
	assert_int_equal(pf_view(f).effective.state, 1);
}

static void a_late_answer_still_counts(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){.timeout_ms = PF_SHORT_MS});
	pf_wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	const struct power_outcome o = pf_set(f, 2);
	assert_int_equal(o.rc, RC_TIMEOUT);
	assert_false(o.in_sync);
	assert_int_equal(pf_view(f).effective.state, 2);
	assert_false(pf_view(f).in_sync);
	fake_drive_hang(f->fake, f->n, false);
	pf_wait_for_observed(f, 2);
	assert_true(pf_view(f).in_sync);
	pf_wait_for_events(f, EVENT_POWER_APPLIED, 1);
}

static void power_goes_on_without_the_store(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){.reconcile_ms = 100000});
	pf_wait_for_observed(f, 0);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	const struct power_outcome o = pf_set(f, 2);
	assert_int_equal(o.rc, RC_OK);
	assert_true(o.in_sync);
	assert_false(o.recorded);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	assert_int_equal(pf_view(f).effective.state, 2);
	assert_false(pf_view(f).recorded);
}

static bool is_recorded(void *arg) {
	return pf_view(arg).recorded;
}

static bool note_claim(void *arg, const struct claim *claim unused_arg) {
	*(bool *)arg = true;
	return false;
}

static bool is_stored(void *arg) {
	struct power_fixture *f = arg;
	struct db_conn *c;
	struct err err;
	bool any = false;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_claim_each(c, f->id, note_claim, &any, &err), RC_OK);
	db_read_end(c);
	return any;
}

static void what_was_not_recorded_is_recorded_later(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){.reconcile_ms = 1000});
	pf_wait_for_observed(f, 0);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	assert_false(pf_set(f, 2).recorded);
	const uint64_t version = pf_view(f).observed_version;
	db_fail_nth(f->control->db, 0, RC_OK);
	assert_true(eventually(is_stored, f));
	assert_true(eventually(is_recorded, f));
	assert_true(pf_view(f).observed_version > version);
}

static void who_waits_at_the_end_hears_of_it(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish one = pf_state_wish(1), two = pf_state_wish(2);
	pf_start(f, &(struct power_options){0});
	pf_wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	struct latch *asked = pf_begin_set(f, &one), *waiting = pf_begin_set(f, &two);
	pf_stop(f);
	assert_int_equal(pf_outcome_of(asked).rc, RC_UNAVAILABLE);
	assert_int_equal(pf_outcome_of(waiting).rc, RC_UNAVAILABLE);
	f->fake = fake_drives_new();
}

static void two_wait_and_the_third_is_sent_away(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish one = pf_state_wish(1), two = pf_state_wish(2),
				zero = pf_state_wish(0);
	struct err err;
	pf_start(f, &(struct power_options){0});
	pf_wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	struct latch *first = pf_begin_set(f, &one);
	struct latch *second = pf_begin_set(f, &two);
	assert_int_equal(pf_try_set(f, &zero, 0, &err), RC_FULL);
	assert_int_equal(pf_view(f).effective.state, 2);
	fake_drive_hang(f->fake, f->n, false);
	assert_int_equal(pf_outcome_of(first).rc, RC_OK);
	assert_int_equal(pf_outcome_of(second).observed_state, 2);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
}

static void a_drive_that_is_not_there_cannot_be_asked(void **state) {
	struct power_fixture *f = *state;
	const struct power_wish w = pf_state_wish(1);
	struct pf_wish gone = {.f = f, .value = -1};
	struct err err;
	pf_start(f, &(struct power_options){0});
	pf_wait_for_observed(f, 0);
	fake_drive_remove(f->fake, f->n);
	drives_rescan(f->drives);
	assert_true(eventually(pf_is_observed, &gone));
	assert_int_equal(pf_try_set(f, &w, 0, &err), RC_UNAVAILABLE);
	assert_int_equal(power_set_desired(f->power, &pf_admin, "nobody", &w, NONE, 0,
				 pf_on_outcome, NULL, &err),
		RC_NOT_FOUND);
}

/* --- leases --- */

static void a_lease_is_above_desired_and_gives_back(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 1);
	assert_int_equal(pf_take_lease(f, "r1", 2).observed_state, 2);
	struct power_outcome o = pf_set(f, 0);
	assert_int_equal(o.rc, RC_OK);
	assert_false(o.in_sync);
	assert_string_equal(o.held_by, "run:r1");
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	power_lease_end(f->power, "r1");
	pf_wait_for_power(f, 0);
	assert_int_equal(pf_view(f).claim_count, 1);
}

static void a_lease_alone_leaves_the_drive_as_it_was(void **state) {
	struct power_fixture *f = *state;
	fake_drive_set_power(f->fake, f->n, 1);
	pf_start(f, &(struct power_options){0});
	pf_wait_for_observed(f, 1);
	pf_take_lease(f, "r1", 2);
	power_lease_end(f->power, "r1");
	pf_wait_for_power(f, 1);
	power_lease_end(f->power, "r1");
	assert_int_equal(pf_view(f).claim_count, 0);
}

static void a_run_at_the_heels_of_another_leaves_the_drive_as_before_both(void **state) {
	struct power_fixture *f = *state;
	struct err err;
	pf_start(f, &(struct power_options){0});
	pf_take_lease(f, "r1", 2);
	fake_drive_hang(f->fake, f->n, true);
	power_lease_end(f->power, "r1");
	struct latch *l = pf_latch_for_outcome();
	assert_int_equal(
		power_lease(f->power, f->id, "r2", 1, NONE, pf_on_outcome, l, &err), RC_OK);
	fake_drive_hang(f->fake, f->n, false);
	assert_int_equal(pf_outcome_of(l).observed_state, 1);
	power_lease_end(f->power, "r2");
	pf_wait_for_power(f, 0);
}

static void a_lease_ends_by_itself(void **state) {
	struct power_fixture *f = *state;
	struct err err;
	pf_start(f, &(struct power_options){.reconcile_ms = 100});
	pf_set(f, 1);
	struct latch *l = pf_latch_for_outcome();
	assert_int_equal(power_lease(f->power, f->id, "r1", 2, clock_wall_ms() + 300, pf_on_outcome,
				 l, &err),
		RC_OK);
	assert_int_equal(pf_outcome_of(l).rc, RC_OK);
	pf_wait_for_power(f, 1);
}

static void no_lease_outlives_the_daemon(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_take_lease(f, "r1", 2);
	pf_restart(f, &(struct power_options){0});
	assert_int_equal(pf_view(f).claim_count, 0);
	pf_wait_for_power(f, 0);
	pf_wait_for_claims(f, 0);
}

static void a_life_too_short_to_bring_a_drive_back_leaves_it_to_the_next(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_take_lease(f, "r1", 2);
	pf_restart(f, &(struct power_options){.observe_only = true});
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	pf_restart(f, &(struct power_options){0});
	pf_wait_for_power(f, 0);
	pf_wait_for_claims(f, 0);
}

static void a_run_just_ended_is_no_excuse(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_take_lease(f, "r1", 2);
	fake_drive_hang(f->fake, f->n, true);
	power_lease_end(f->power, "r1");
	pf_restart(f, &(struct power_options){0});
	pf_wait_for_power(f, 0);
	pf_wait_for_claims(f, 0);
}

static void a_default_is_restored_after_a_restart_too(void **state) {
	struct power_fixture *f = *state;
	struct err err;
	pf_start(f, &(struct power_options){.timeout_ms = PF_SHORT_MS});
	pf_set(f, 2);
	fake_drive_hang(f->fake, f->n, true);
	assert_int_equal(pf_clear(f, false).rc, RC_TIMEOUT);
	pf_restart(f, &(struct power_options){0});
	assert_int_equal(
		power_desired_get(f->power, f->id, &(struct claim){0}, &(uint32_t){0}, &err),
		RC_NOT_FOUND);
	pf_wait_for_power(f, 0);
	pf_wait_for_claims(f, 0);
}

static void a_refused_lease_is_withdrawn(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 1);
	fake_drive_refuse(f->fake, f->n, 2, RC_REFUSED, 0x4002);
	assert_int_equal(pf_take_lease(f, "r1", 2).rc, RC_REFUSED);
	assert_int_equal(pf_view(f).claim_count, 1);
	assert_int_equal(pf_view(f).effective.state, 1);
}

static void put_cap(struct power_fixture *f, int64_t limit_mw) {
	struct claim cap = {.id = "0190a000-0000-7000-8000-000000000001",
		.kind = CLAIM_BUDGET,
		.owner = "budget:rack",
		.wish = {.state = -1, .limit_mw = limit_mw},
		.created_ms = 1,
		.expires_ms = NONE};
	struct err err;
	memcpy(cap.drive_id, f->id, sizeof(cap.drive_id));
	struct db_conn *c = temp_db_begin(f->control);
	assert_int_equal(db_claim_put(c, &cap, &err), RC_OK);
	temp_db_commit(f->control);
}

static void a_cap_bounds_desired_and_lease(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	put_cap(f, 19000);
	pf_restart(f, &(struct power_options){0});
	struct power_outcome o = pf_set(f, 0);
	assert_int_equal(o.observed_state, 1);
	assert_string_equal(o.held_by, "budget:rack");
	assert_true(pf_view(f).effective.capped);
	assert_int_equal(pf_take_lease(f, "r1", 0).observed_state, 1);
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
}

/* --- keeping it so --- */

static void a_reset_is_followed_by_the_wish(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 2);
	fake_drive_set_state(f->fake, f->n, DRIVE_RESETTING);
	drives_rescan(f->drives);
	fake_drive_set_state(f->fake, f->n, DRIVE_LIVE);
	drives_rescan(f->drives);
	fake_drive_remove(f->fake, f->n);
	drives_rescan(f->drives);
	struct pf_wish gone = {.f = f, .value = -1};
	assert_true(eventually(pf_is_observed, &gone));
	fake_drive_return(f->fake, f->n);
	assert_int_equal(fake_drive_power(f->fake, f->n), 0);
	drives_rescan(f->drives);
	pf_wait_for_power(f, 2);
	pf_wait_for_events(f, EVENT_POWER_APPLIED, 2);
}

static void a_hint_of_a_reset_is_followed_at_once(void **state) {
	struct power_fixture *f = *state;
	struct drive d;
	pf_start(f, &(struct power_options){0});
	pf_set(f, 2);
	assert_int_equal(drives_get(f->drives, f->id, &d, NULL, NULL, NULL), RC_OK);
	fake_drive_set_power(f->fake, f->n, 0);
	drives_hint(f->drives, d.name, true);
	pf_wait_for_power(f, 2);
}

static void drift_is_told_and_mended(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){.reconcile_ms = 50, .backoff_ms = 20});
	pf_set(f, 2);
	const int64_t before = metric_get(METRIC_DRIVE_DRIFT);
	fake_drive_set_power(f->fake, f->n, 0);
	pf_wait_for_power(f, 2);
	pf_wait_for_events(f, EVENT_POWER_DRIFT, 1);
	assert_true(metric_get(METRIC_DRIVE_DRIFT) > before);
}

static void a_drive_that_cannot_is_told_of_once(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){.reconcile_ms = 20, .backoff_ms = 10});
	pf_set(f, 2);
	fake_drive_refuse(f->fake, f->n, 2, RC_REFUSED, 0x4002);
	fake_drive_set_power(f->fake, f->n, 0);
	pf_wait_for_events(f, EVENT_POWER_REFUSED, 1);
	pf_wait_for_asked(f, DRIVE_POWER_SET, 5);
	assert_int_equal(pf_count_events(f, EVENT_POWER_REFUSED), 1);
	assert_int_equal(pf_view(f).claim_count, 1);
	fake_drive_refuse(f->fake, f->n, -1, RC_OK, 0);
	pf_wait_for_power(f, 2);
}

static void sleep_by_apst_is_no_drift(void **state) {
	struct power_fixture *f = *state;
	fake_drive_set_apst(f->fake, f->n, true);
	pf_start(f, &(struct power_options){.reconcile_ms = 20, .backoff_ms = 10});
	pf_set(f, 1);
	fake_drive_set_power(f->fake, f->n, 3);
	pf_wait_for_observed(f, 3);
	pf_wait_for_asked(f, DRIVE_POWER_GET, 3);
	assert_int_equal(fake_drive_power(f->fake, f->n), 3);
	assert_true(pf_view(f).in_sync);
	/* An operational state that was not wished is drift all the same. */
	fake_drive_set_power(f->fake, f->n, 0);
	pf_wait_for_power(f, 1);
}

static void *change_often(void *arg) {
	struct power_fixture *f = arg;
	struct err err;
	for (int i = 0; i < 40; i++) {
		const struct power_wish w = pf_state_wish(i % 3);
		struct latch *l = pf_latch_for_outcome();
		if (power_set_desired(
			    f->power, &pf_admin, f->id, &w, NONE, 0, pf_on_outcome, l, &err)) {
			latch_unref(l);
			latch_unref(l);
		} else {
			pf_outcome_of(l);
		}
		pf_view(f);
	}
	return NULL;
}

static void many_at_once_agree_in_the_end(void **state) {
	struct power_fixture *f = *state;
	pthread_t threads[3];
	pf_start(f, &(struct power_options){.reconcile_ms = 20, .backoff_ms = 10});
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(thread_start(&threads[i], "change", change_often, f, NULL), RC_OK);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	const struct power_view v = pf_view(f);
	pf_wait_for_power(f, v.effective.state);
	pf_wait_for_observed(f, v.effective.state);
	pf_restart(f, &(struct power_options){0});
	assert_int_equal(pf_view(f).effective.state, v.effective.state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pf_setup, pf_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_wish_is_set_read_back_and_kept),
		TEST(a_limit_chooses_a_state),
		TEST(a_limit_is_kept_by_the_drives_own_means),
		TEST(a_limit_that_is_lost_is_set_again),
		TEST(a_lease_gives_the_limit_back),
		TEST(an_ocp_limit_brings_its_state),
		TEST(the_same_wish_again_is_no_change),
		TEST(wishes_without_meaning_are_refused_by_field),
		TEST(versions_guard_the_claims),
		TEST(a_wish_survives_a_restart_with_its_version),
		TEST(clearing_goes_back_to_the_default),
		TEST(clearing_waits_for_a_wish_on_its_way),
		TEST(leaving_only_lets_go),
		TEST(an_observer_changes_nothing),
		TEST(a_refusal_withdraws_the_wish),
		TEST(a_late_answer_still_counts),
		TEST(power_goes_on_without_the_store),
		TEST(what_was_not_recorded_is_recorded_later),
		TEST(who_waits_at_the_end_hears_of_it),
		TEST(two_wait_and_the_third_is_sent_away),
		TEST(a_drive_that_is_not_there_cannot_be_asked),
		TEST(a_lease_is_above_desired_and_gives_back),
		TEST(a_lease_alone_leaves_the_drive_as_it_was),
		TEST(a_run_at_the_heels_of_another_leaves_the_drive_as_before_both),
		TEST(a_lease_ends_by_itself),
		TEST(no_lease_outlives_the_daemon),
		TEST(a_life_too_short_to_bring_a_drive_back_leaves_it_to_the_next),
		TEST(a_run_just_ended_is_no_excuse),
		TEST(a_default_is_restored_after_a_restart_too),
		TEST(a_refused_lease_is_withdrawn),
		TEST(a_cap_bounds_desired_and_lease),
		TEST(a_reset_is_followed_by_the_wish),
		TEST(a_hint_of_a_reset_is_followed_at_once),
		TEST(drift_is_told_and_mended),
		TEST(a_drive_that_cannot_is_told_of_once),
		TEST(sleep_by_apst_is_no_drift),
		TEST(many_at_once_agree_in_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
