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
#include "base/latch.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/secret.h"
#include "base/thread.h"
#include "core/power.h"
#include "db/drives.h"
#include "db/events.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_drives.h"
#include "tests/support/temp_db.h"

#define HOST "6f1c1f1e-0000-4000-8000-000000000001"
#define LONG_MS 60000
#define SHORT_MS 50

struct options {
	int64_t timeout_ms, reconcile_ms, backoff_ms;
	bool observe_only;
};

struct fixture {
	struct temp_db *control;
	struct events *events;
	struct timers *timers;
	struct pool *jobs;
	struct fake_drives *fake;
	struct drives *drives;
	struct power *power;
	int n;
	char id[DRIVE_ID_SIZE];
};

static const struct actor admin = {.account_id = "a", .name = "admin", .role = ROLE_ADMINISTRATOR};

/* --- life --- */

static void start(struct fixture *f, const struct options *o) {
	const struct drives_config drives = {
		.timeout_ms = o->timeout_ms ? o->timeout_ms : LONG_MS, .host_id = HOST};
	const struct power_config power = {.observe_only = o->observe_only,
		.reconcile_ms = o->reconcile_ms,
		.backoff_max_ms = o->backoff_ms ? o->backoff_ms : LONG_MS};
	struct err err;
	f->drives = drives_new(&drives, f->control->db, f->events, NULL, f->timers, f->jobs, &err);
	assert_non_null(f->drives);
	f->power =
		power_new(&power, f->control->db, f->events, f->drives, f->timers, f->jobs, &err);
	assert_non_null(f->power);
	const struct drive_source source = fake_drives_source(f->fake);
	assert_int_equal(drives_add_source(f->drives, &source, &err), RC_OK);
	assert_int_equal(power_start(f->power, &err), RC_OK);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	assert_true(drives_settled(f->drives, LONG_MS));
	fake_drive_id(f->drives, "S1", f->id);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(secret_init(&err), RC_OK);
	f->control = temp_db_new(DB_CONTROL);
	f->events = events_new(f->control->db, &err);
	f->timers = timers_new(64, &err);
	f->jobs = pool_new("jobs", 3, 1024, &err);
	f->fake = fake_drives_new();
	f->n = fake_drive_add(f->fake, "S1");
	*state = f;
	return 0;
}

static void stop(struct fixture *f) {
	if (f->drives)
		drives_stop(f->drives);
	fake_drives_free(f->fake);
	if (f->drives)
		drives_drain(f->drives);
	power_free(f->power);
	drives_free(f->drives);
	f->power = NULL;
	f->drives = NULL;
}

/* The drive keeps the state it is in, as drives do while a daemon restarts. */
static void restart(struct fixture *f, const struct options *o) {
	const int power_state = fake_drive_power(f->fake, f->n);
	stop(f);
	f->fake = fake_drives_new();
	f->n = fake_drive_add(f->fake, "S1");
	fake_drive_set_power(f->fake, f->n, power_state);
	start(f, o);
}

static int teardown(void **state) {
	struct fixture *f = *state;
	stop(f);
	pool_free(f->jobs);
	timers_free(f->timers);
	events_free(f->events);
	temp_db_free(f->control);
	free(f);
	return 0;
}

/* --- asking --- */

static void on_outcome(void *arg, const struct power_outcome *o) {
	latch_open(arg, o);
	latch_unref(arg);
}

static struct latch *latch_for_outcome(void) {
	struct latch *l = latch_new(sizeof(struct power_outcome));
	return latch_ref(l);
}

static struct power_outcome outcome_of(struct latch *l) {
	struct power_outcome o;
	assert_true(latch_wait(l, LONG_MS, &o));
	latch_unref(l);
	return o;
}

static struct power_wish state_wish(int state) {
	return (struct power_wish){.state = (int8_t)state, .limit_mw = NONE};
}

static struct latch *begin_set(struct fixture *f, const struct power_wish *w) {
	struct err err;
	struct latch *l = latch_for_outcome();
	const enum rc rc = power_set_desired(f->power, &admin, f->id, w, 0, on_outcome, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return l;
}

static struct power_outcome set(struct fixture *f, int state) {
	const struct power_wish w = state_wish(state);
	return outcome_of(begin_set(f, &w));
}

static enum rc try_set(
	struct fixture *f, const struct power_wish *w, uint32_t if_version, struct err *err) {
	return power_set_desired(f->power, &admin, f->id, w, if_version, on_outcome, NULL, err);
}

static struct power_outcome clear(struct fixture *f, bool leave) {
	struct err err;
	struct latch *l = latch_for_outcome();
	const enum rc rc =
		power_clear_desired(f->power, &admin, f->id, leave, 0, on_outcome, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return outcome_of(l);
}

static struct power_outcome take_lease(struct fixture *f, const char *run, int state) {
	struct err err;
	struct latch *l = latch_for_outcome();
	const enum rc rc = power_lease(
		f->power, f->id, run, state, clock_wall_ms() + LONG_MS, on_outcome, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return outcome_of(l);
}

static struct power_view view(struct fixture *f) {
	struct power_view v;
	struct err err;
	assert_int_equal(power_view_get(f->power, f->id, &v, &err), RC_OK);
	return v;
}

/* --- waiting --- */

struct wish {
	struct fixture *f;
	int value;
	enum event_type type;
	enum drive_verb verb;
	int count;
};

static bool drive_is_at(void *arg) {
	const struct wish *w = arg;
	return fake_drive_power(w->f->fake, w->f->n) == w->value;
}

static void wait_for_power(struct fixture *f, int state) {
	struct wish w = {.f = f, .value = state};
	assert_true(eventually(drive_is_at, &w));
}

static bool was_asked(void *arg) {
	const struct wish *w = arg;
	return fake_drive_asked(w->f->fake, w->f->n, w->verb) >= w->value;
}

/* So many times more than by now. */
static void wait_for_asked(struct fixture *f, enum drive_verb verb, int more) {
	struct wish w = {.f = f, .verb = verb};
	w.value = fake_drive_asked(f->fake, f->n, verb) + more;
	assert_true(eventually(was_asked, &w));
}

static bool is_observed(void *arg) {
	const struct wish *w = arg;
	return view(w->f).observed_state == w->value;
}

static void wait_for_observed(struct fixture *f, int state) {
	struct wish w = {.f = f, .value = state};
	assert_true(eventually(is_observed, &w));
}

static bool count_event(void *arg, const struct event *e) {
	struct wish *w = arg;
	w->count += e->type == w->type;
	return true;
}

static int count_events(struct fixture *f, enum event_type type) {
	struct wish w = {.f = f, .type = type};
	struct db_conn *c;
	struct err err;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_event_list(c, 0, 1000, count_event, &w, &err), RC_OK);
	db_read_end(c);
	return w.count;
}

static bool has_events(void *arg) {
	const struct wish *w = arg;
	return count_events(w->f, w->type) >= w->value;
}

static void wait_for_events(struct fixture *f, enum event_type type, int count) {
	struct wish w = {.f = f, .type = type, .value = count};
	assert_true(eventually(has_events, &w));
}

static bool count_claim(void *arg, const struct claim *c unused_arg) {
	struct wish *w = arg;
	w->count++;
	return true;
}

static bool has_claims(void *arg) {
	struct wish *w = arg;
	struct db_conn *c;
	struct err err;
	w->count = 0;
	assert_int_equal(db_read_begin(w->f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_claim_each(c, w->f->id, count_claim, w, &err), RC_OK);
	db_read_end(c);
	return w->count == w->value;
}

/* In the store. */
static void wait_for_claims(struct fixture *f, int count) {
	struct wish w = {.f = f, .value = count};
	assert_true(eventually(has_claims, &w));
}

struct trail {
	const char *outcome;
	int count;
};

static bool count_audit(void *arg, const struct audit_entry *a) {
	struct trail *t = arg;
	t->count += strcmp(a->outcome, t->outcome) == 0 && strcmp(a->actor, "admin") == 0;
	return true;
}

static int count_audits(struct fixture *f, const char *outcome) {
	struct trail t = {outcome, 0};
	struct db_conn *c;
	struct err err;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_audit_list(c, INT64_MAX, 100, count_audit, &t, &err), RC_OK);
	db_read_end(c);
	return t.count;
}

/* --- desired --- */

static void a_wish_is_set_read_back_and_kept(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	const struct power_outcome o = set(f, 1);
	assert_int_equal(o.rc, RC_OK);
	assert_int_equal(o.observed_state, 1);
	assert_true(o.in_sync && o.recorded && o.created);
	assert_string_equal(o.held_by, "admin");
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
	const struct power_view v = view(f);
	assert_int_equal(v.effective.state, 1);
	assert_int_equal(v.claim_count, 1);
	assert_true(v.in_sync);
	assert_int_equal(count_events(f, EVENT_POWER_DESIRED), 1);
	assert_int_equal(count_events(f, EVENT_POWER_APPLIED), 1);
	assert_int_equal(count_audits(f, "intent"), 1);
	assert_int_equal(count_audits(f, "ok"), 1);
}

static void a_limit_chooses_a_state(void **state) {
	struct fixture *f = *state;
	const struct power_wish w = {.state = -1, .limit_mw = 20000};
	start(f, &(struct options){0});
	const struct power_outcome o = outcome_of(begin_set(f, &w));
	assert_int_equal(o.observed_state, 1);
	assert_int_equal(view(f).limit_mw, 18000);
}

static void the_same_wish_again_is_no_change(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	set(f, 1);
	const uint32_t version = view(f).config_version;
	const struct power_outcome o = set(f, 1);
	assert_int_equal(o.rc, RC_OK);
	assert_false(o.created);
	assert_true(o.in_sync);
	assert_int_equal(view(f).config_version, version);
	assert_int_equal(count_events(f, EVENT_POWER_DESIRED), 1);
	assert_int_equal(count_events(f, EVENT_POWER_APPLIED), 1);
	assert_int_equal(count_audits(f, "intent"), 1);
	/* … but it is brought back when it was out of sync. */
	fake_drive_set_power(f->fake, f->n, 0);
	assert_true(set(f, 1).in_sync);
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
}

static void wishes_without_meaning_are_refused_by_field(void **state) {
	struct fixture *f = *state;
	const struct {
		struct power_wish wish;
		const char *field;
	} cases[] = {
		{{.state = 5, .limit_mw = NONE}, "/state"},
		{{.state = 3, .limit_mw = NONE}, "/state"},
		{{.state = -1, .limit_mw = 1000}, "/limit_w"},
	};
	struct err err;
	start(f, &(struct options){0});
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(try_set(f, &cases[i].wish, 0, &err), RC_INVALID);
		assert_string_equal(err.field, cases[i].field);
	}
	assert_int_equal(view(f).claim_count, 0);
	const struct power_wish asleep = {
		.state = 3, .allow_non_operational = true, .limit_mw = NONE};
	assert_int_equal(outcome_of(begin_set(f, &asleep)).observed_state, 3);
}

static void versions_guard_the_claims(void **state) {
	struct fixture *f = *state;
	const struct power_wish w = state_wish(2);
	struct claim claim;
	uint32_t version;
	struct err err;
	start(f, &(struct options){0});
	assert_int_equal(power_desired_get(f->power, f->id, &claim, &version, &err), RC_NOT_FOUND);
	assert_int_equal(view(f).config_version, VERSION_ABSENT);
	assert_int_equal(try_set(f, &w, 7, &err), RC_PRECONDITION);
	set(f, 1);
	assert_int_equal(try_set(f, &w, VERSION_ABSENT, &err), RC_PRECONDITION);
	assert_int_equal(power_desired_get(f->power, f->id, &claim, &version, &err), RC_OK);
	assert_int_equal(claim.wish.state, 1);
	assert_int_equal(try_set(f, &w, version + 1, &err), RC_PRECONDITION);
	struct latch *l = latch_for_outcome();
	assert_int_equal(
		power_set_desired(f->power, &admin, f->id, &w, version, on_outcome, l, &err),
		RC_OK);
	assert_int_equal(outcome_of(l).rc, RC_OK);
}

static void a_wish_survives_a_restart_with_its_version(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	set(f, 2);
	const uint32_t version = view(f).config_version;
	restart(f, &(struct options){0});
	assert_int_equal(view(f).effective.state, 2);
	assert_int_equal(view(f).config_version, version);
	wait_for_observed(f, 2);
}

static void clearing_goes_back_to_the_default(void **state) {
	struct fixture *f = *state;
	struct err err;
	start(f, &(struct options){0});
	set(f, 2);
	const struct power_outcome o = clear(f, false);
	assert_int_equal(o.rc, RC_OK);
	assert_int_equal(o.observed_state, 0);
	assert_int_equal(fake_drive_power(f->fake, f->n), 0);
	assert_int_equal(view(f).effective.state, -1);
	assert_true(view(f).in_sync);
	assert_int_equal(
		power_clear_desired(f->power, &admin, f->id, false, 0, on_outcome, NULL, &err),
		RC_NOT_FOUND);
}

static void leaving_only_lets_go(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	set(f, 2);
	assert_int_equal(clear(f, true).rc, RC_OK);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	assert_int_equal(view(f).claim_count, 0);
}

static void an_observer_changes_nothing(void **state) {
	struct fixture *f = *state;
	const struct power_wish w = state_wish(1);
	struct err err;
	start(f, &(struct options){.observe_only = true});
	assert_int_equal(try_set(f, &w, 0, &err), RC_FORBIDDEN);
	assert_int_equal(
		power_clear_desired(f->power, &admin, f->id, false, 0, on_outcome, NULL, &err),
		RC_FORBIDDEN);
	assert_int_equal(
		power_lease(f->power, f->id, "r", 1, NONE, on_outcome, NULL, &err), RC_FORBIDDEN);
	wait_for_observed(f, 0);
	assert_int_equal(fake_drive_asked(f->fake, f->n, DRIVE_POWER_SET), 0);
}

/* --- failures --- */

static void a_refusal_withdraws_the_wish(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	fake_drive_refuse(f->fake, f->n, 2, RC_REFUSED, 0x410e);
	struct power_outcome o = set(f, 2);
	assert_int_equal(o.rc, RC_REFUSED);
	assert_int_equal(o.err.nvme_status, 0x410e);
	assert_int_equal(view(f).claim_count, 0);
	assert_int_equal(count_events(f, EVENT_POWER_REFUSED), 1);
	assert_int_equal(count_audits(f, "refused"), 1);
	set(f, 1);
	o = set(f, 2);
	assert_int_equal(o.rc, RC_REFUSED);
	const struct power_view v = view(f);
	assert_int_equal(v.claim_count, 1);
	assert_int_equal(v.effective.state, 1);
	wait_for_power(f, 1);
	restart(f, &(struct options){0});
	assert_int_equal(view(f).effective.state, 1);
}

static void a_late_answer_still_counts(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){.timeout_ms = SHORT_MS});
	wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	const struct power_outcome o = set(f, 2);
	assert_int_equal(o.rc, RC_TIMEOUT);
	assert_false(o.in_sync);
	assert_int_equal(view(f).effective.state, 2);
	assert_false(view(f).in_sync);
	fake_drive_hang(f->fake, f->n, false);
	wait_for_observed(f, 2);
	assert_true(view(f).in_sync);
	wait_for_events(f, EVENT_POWER_APPLIED, 1);
}

static void power_goes_on_without_the_store(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){.reconcile_ms = 100000});
	wait_for_observed(f, 0);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	const struct power_outcome o = set(f, 2);
	assert_int_equal(o.rc, RC_OK);
	assert_true(o.in_sync);
	assert_false(o.recorded);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	assert_int_equal(view(f).effective.state, 2);
	assert_false(view(f).recorded);
}

static bool is_recorded(void *arg) {
	return view(arg).recorded;
}

static bool note_claim(void *arg, const struct claim *claim unused_arg) {
	*(bool *)arg = true;
	return false;
}

static bool is_stored(void *arg) {
	struct fixture *f = arg;
	struct db_conn *c;
	struct err err;
	bool any = false;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_claim_each(c, f->id, note_claim, &any, &err), RC_OK);
	db_read_end(c);
	return any;
}

static void what_was_not_recorded_is_recorded_later(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){.reconcile_ms = 1000});
	wait_for_observed(f, 0);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	assert_false(set(f, 2).recorded);
	const uint64_t version = view(f).observed_version;
	db_fail_nth(f->control->db, 0, RC_OK);
	assert_true(eventually(is_stored, f));
	assert_true(eventually(is_recorded, f));
	assert_true(view(f).observed_version > version);
}

static void who_waits_at_the_end_hears_of_it(void **state) {
	struct fixture *f = *state;
	const struct power_wish one = state_wish(1), two = state_wish(2);
	start(f, &(struct options){0});
	wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	struct latch *asked = begin_set(f, &one), *waiting = begin_set(f, &two);
	stop(f);
	assert_int_equal(outcome_of(asked).rc, RC_UNAVAILABLE);
	assert_int_equal(outcome_of(waiting).rc, RC_UNAVAILABLE);
	f->fake = fake_drives_new();
}

static void two_wait_and_the_third_is_sent_away(void **state) {
	struct fixture *f = *state;
	const struct power_wish one = state_wish(1), two = state_wish(2), zero = state_wish(0);
	struct err err;
	start(f, &(struct options){0});
	wait_for_observed(f, 0);
	fake_drive_hang(f->fake, f->n, true);
	struct latch *first = begin_set(f, &one);
	struct latch *second = begin_set(f, &two);
	assert_int_equal(try_set(f, &zero, 0, &err), RC_FULL);
	assert_int_equal(view(f).effective.state, 2);
	fake_drive_hang(f->fake, f->n, false);
	assert_int_equal(outcome_of(first).rc, RC_OK);
	assert_int_equal(outcome_of(second).observed_state, 2);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
}

static void a_drive_that_is_not_there_cannot_be_asked(void **state) {
	struct fixture *f = *state;
	const struct power_wish w = state_wish(1);
	struct wish gone = {.f = f, .value = -1};
	struct err err;
	start(f, &(struct options){0});
	wait_for_observed(f, 0);
	fake_drive_remove(f->fake, f->n);
	drives_rescan(f->drives);
	assert_true(eventually(is_observed, &gone));
	assert_int_equal(try_set(f, &w, 0, &err), RC_UNAVAILABLE);
	assert_int_equal(
		power_set_desired(f->power, &admin, "nobody", &w, 0, on_outcome, NULL, &err),
		RC_NOT_FOUND);
}

/* --- leases --- */

static void a_lease_is_above_desired_and_gives_back(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	set(f, 1);
	assert_int_equal(take_lease(f, "r1", 2).observed_state, 2);
	struct power_outcome o = set(f, 0);
	assert_int_equal(o.rc, RC_OK);
	assert_false(o.in_sync);
	assert_string_equal(o.held_by, "run:r1");
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	power_lease_end(f->power, "r1");
	wait_for_power(f, 0);
	assert_int_equal(view(f).claim_count, 1);
}

static void a_lease_alone_leaves_the_drive_as_it_was(void **state) {
	struct fixture *f = *state;
	fake_drive_set_power(f->fake, f->n, 1);
	start(f, &(struct options){0});
	wait_for_observed(f, 1);
	take_lease(f, "r1", 2);
	power_lease_end(f->power, "r1");
	wait_for_power(f, 1);
	power_lease_end(f->power, "r1");
	assert_int_equal(view(f).claim_count, 0);
}

static void a_lease_ends_by_itself(void **state) {
	struct fixture *f = *state;
	struct err err;
	start(f, &(struct options){.reconcile_ms = 100});
	set(f, 1);
	struct latch *l = latch_for_outcome();
	assert_int_equal(
		power_lease(f->power, f->id, "r1", 2, clock_wall_ms() + 300, on_outcome, l, &err),
		RC_OK);
	assert_int_equal(outcome_of(l).rc, RC_OK);
	wait_for_power(f, 1);
}

static void no_lease_outlives_the_daemon(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	take_lease(f, "r1", 2);
	restart(f, &(struct options){0});
	assert_int_equal(view(f).claim_count, 0);
	wait_for_power(f, 0);
	wait_for_claims(f, 0);
}

static void a_life_too_short_to_bring_a_drive_back_leaves_it_to_the_next(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	take_lease(f, "r1", 2);
	restart(f, &(struct options){.observe_only = true});
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	restart(f, &(struct options){0});
	wait_for_power(f, 0);
	wait_for_claims(f, 0);
}

static void a_run_just_ended_is_no_excuse(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	take_lease(f, "r1", 2);
	fake_drive_hang(f->fake, f->n, true);
	power_lease_end(f->power, "r1");
	restart(f, &(struct options){0});
	wait_for_power(f, 0);
	wait_for_claims(f, 0);
}

static void a_default_is_restored_after_a_restart_too(void **state) {
	struct fixture *f = *state;
	struct err err;
	start(f, &(struct options){.timeout_ms = SHORT_MS});
	set(f, 2);
	fake_drive_hang(f->fake, f->n, true);
	assert_int_equal(clear(f, false).rc, RC_TIMEOUT);
	restart(f, &(struct options){0});
	assert_int_equal(
		power_desired_get(f->power, f->id, &(struct claim){0}, &(uint32_t){0}, &err),
		RC_NOT_FOUND);
	wait_for_power(f, 0);
	wait_for_claims(f, 0);
}

static void a_refused_lease_is_withdrawn(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	set(f, 1);
	fake_drive_refuse(f->fake, f->n, 2, RC_REFUSED, 0x4002);
	assert_int_equal(take_lease(f, "r1", 2).rc, RC_REFUSED);
	assert_int_equal(view(f).claim_count, 1);
	assert_int_equal(view(f).effective.state, 1);
}

static void put_cap(struct fixture *f, int64_t limit_mw) {
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
	struct fixture *f = *state;
	start(f, &(struct options){0});
	put_cap(f, 19000);
	restart(f, &(struct options){0});
	struct power_outcome o = set(f, 0);
	assert_int_equal(o.observed_state, 1);
	assert_string_equal(o.held_by, "budget:rack");
	assert_true(view(f).effective.capped);
	assert_int_equal(take_lease(f, "r1", 0).observed_state, 1);
	assert_int_equal(fake_drive_power(f->fake, f->n), 1);
}

/* --- keeping it so --- */

static void a_reset_is_followed_by_the_wish(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){0});
	set(f, 2);
	fake_drive_set_state(f->fake, f->n, DRIVE_RESETTING);
	drives_rescan(f->drives);
	fake_drive_set_state(f->fake, f->n, DRIVE_LIVE);
	drives_rescan(f->drives);
	fake_drive_remove(f->fake, f->n);
	drives_rescan(f->drives);
	struct wish gone = {.f = f, .value = -1};
	assert_true(eventually(is_observed, &gone));
	fake_drive_return(f->fake, f->n);
	assert_int_equal(fake_drive_power(f->fake, f->n), 0);
	drives_rescan(f->drives);
	wait_for_power(f, 2);
	wait_for_events(f, EVENT_POWER_APPLIED, 2);
}

static void drift_is_told_and_mended(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){.reconcile_ms = 50, .backoff_ms = 20});
	set(f, 2);
	const int64_t before = metric_get(METRIC_DRIVE_DRIFT);
	fake_drive_set_power(f->fake, f->n, 0);
	wait_for_power(f, 2);
	wait_for_events(f, EVENT_POWER_DRIFT, 1);
	assert_true(metric_get(METRIC_DRIVE_DRIFT) > before);
}

static void a_drive_that_cannot_is_told_of_once(void **state) {
	struct fixture *f = *state;
	start(f, &(struct options){.reconcile_ms = 20, .backoff_ms = 10});
	set(f, 2);
	fake_drive_refuse(f->fake, f->n, 2, RC_REFUSED, 0x4002);
	fake_drive_set_power(f->fake, f->n, 0);
	wait_for_events(f, EVENT_POWER_REFUSED, 1);
	wait_for_asked(f, DRIVE_POWER_SET, 5);
	assert_int_equal(count_events(f, EVENT_POWER_REFUSED), 1);
	assert_int_equal(view(f).claim_count, 1);
	fake_drive_refuse(f->fake, f->n, -1, RC_OK, 0);
	wait_for_power(f, 2);
}

static void sleep_by_apst_is_no_drift(void **state) {
	struct fixture *f = *state;
	fake_drive_set_apst(f->fake, f->n, true);
	start(f, &(struct options){.reconcile_ms = 20, .backoff_ms = 10});
	set(f, 1);
	fake_drive_set_power(f->fake, f->n, 3);
	wait_for_observed(f, 3);
	wait_for_asked(f, DRIVE_POWER_GET, 3);
	assert_int_equal(fake_drive_power(f->fake, f->n), 3);
	assert_true(view(f).in_sync);
	/* An operational state that was not wished is drift all the same. */
	fake_drive_set_power(f->fake, f->n, 0);
	wait_for_power(f, 1);
}

static void *change_often(void *arg) {
	struct fixture *f = arg;
	struct err err;
	for (int i = 0; i < 40; i++) {
		const struct power_wish w = state_wish(i % 3);
		struct latch *l = latch_for_outcome();
		if (power_set_desired(f->power, &admin, f->id, &w, 0, on_outcome, l, &err)) {
			latch_unref(l);
			latch_unref(l);
		} else {
			outcome_of(l);
		}
		view(f);
	}
	return NULL;
}

static void many_at_once_agree_in_the_end(void **state) {
	struct fixture *f = *state;
	pthread_t threads[3];
	start(f, &(struct options){.reconcile_ms = 20, .backoff_ms = 10});
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(thread_start(&threads[i], "change", change_often, f, NULL), RC_OK);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	const struct power_view v = view(f);
	wait_for_power(f, v.effective.state);
	wait_for_observed(f, v.effective.state);
	restart(f, &(struct options){0});
	assert_int_equal(view(f).effective.state, v.effective.state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_wish_is_set_read_back_and_kept),
		TEST(a_limit_chooses_a_state),
		TEST(the_same_wish_again_is_no_change),
		TEST(wishes_without_meaning_are_refused_by_field),
		TEST(versions_guard_the_claims),
		TEST(a_wish_survives_a_restart_with_its_version),
		TEST(clearing_goes_back_to_the_default),
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
		TEST(a_lease_ends_by_itself),
		TEST(no_lease_outlives_the_daemon),
		TEST(a_life_too_short_to_bring_a_drive_back_leaves_it_to_the_next),
		TEST(a_run_just_ended_is_no_excuse),
		TEST(a_default_is_restored_after_a_restart_too),
		TEST(a_refused_lease_is_withdrawn),
		TEST(a_cap_bounds_desired_and_lease),
		TEST(a_reset_is_followed_by_the_wish),
		TEST(drift_is_told_and_mended),
		TEST(a_drive_that_cannot_is_told_of_once),
		TEST(sleep_by_apst_is_no_drift),
		TEST(many_at_once_agree_in_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
