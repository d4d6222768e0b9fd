#include "tests/support/power_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "db/drives.h"
#include "db/events.h"
#include "tests/support/eventually.h"

#define HOST "6f1c1f1e-0000-4000-8000-000000000001"
const struct actor pf_admin = {.account_id = "a", .name = "admin", .role = ROLE_ADMINISTRATOR};

/* --- life --- */

void pf_start(struct power_fixture *f, const struct power_options *o) {
	const struct drives_config drives = {
		.timeout_ms = o->timeout_ms ? o->timeout_ms : PF_LONG_MS, .host_id = HOST};
	const struct power_config power = {.observe_only = o->observe_only,
		.reconcile_ms = o->reconcile_ms,
		.backoff_max_ms = o->backoff_ms ? o->backoff_ms : PF_LONG_MS};
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
	assert_true(drives_settled(f->drives, PF_LONG_MS));
	fake_drive_id(f->drives, "S1", f->id);
}

int pf_setup(void **state) {
	struct power_fixture *f = calloc(1, sizeof(*f));
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

void pf_stop(struct power_fixture *f) {
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
void pf_restart(struct power_fixture *f, const struct power_options *o) {
	const int power_state = fake_drive_power(f->fake, f->n);
	pf_stop(f);
	f->fake = fake_drives_new();
	f->n = fake_drive_add(f->fake, "S1");
	fake_drive_set_power(f->fake, f->n, power_state);
	pf_start(f, o);
}

int pf_teardown(void **state) {
	struct power_fixture *f = *state;
	pf_stop(f);
	pool_free(f->jobs);
	timers_free(f->timers);
	events_free(f->events);
	temp_db_free(f->control);
	free(f);
	return 0;
}

/* --- asking --- */

void pf_on_outcome(void *arg, const struct power_outcome *o) {
	latch_open(arg, o);
	latch_unref(arg);
}

struct latch *pf_latch_for_outcome(void) {
	struct latch *l = latch_new(sizeof(struct power_outcome));
	return latch_ref(l);
}

struct power_outcome pf_outcome_of(struct latch *l) {
	struct power_outcome o;
	assert_true(latch_wait(l, PF_LONG_MS, &o));
	latch_unref(l);
	return o;
}

struct power_wish pf_state_wish(int state) {
	return (struct power_wish){.state = (int8_t)state, .limit_mw = NONE};
}

struct latch *pf_begin_set(struct power_fixture *f, const struct power_wish *w) {
	struct err err;
	struct latch *l = pf_latch_for_outcome();
	const enum rc rc =
		power_set_desired(f->power, &pf_admin, f->id, w, NONE, 0, pf_on_outcome, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return l;
}

struct power_outcome pf_set(struct power_fixture *f, int state) {
	const struct power_wish w = pf_state_wish(state);
	return pf_outcome_of(pf_begin_set(f, &w));
}

enum rc pf_try_set(
	struct power_fixture *f, const struct power_wish *w, uint32_t if_version, struct err *err) {
	return power_set_desired(
		f->power, &pf_admin, f->id, w, NONE, if_version, pf_on_outcome, NULL, err);
}

struct latch *pf_begin_clear(struct power_fixture *f, bool leave) {
	struct err err;
	struct latch *l = pf_latch_for_outcome();
	const enum rc rc =
		power_clear_desired(f->power, &pf_admin, f->id, leave, 0, pf_on_outcome, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return l;
}

struct power_outcome pf_clear(struct power_fixture *f, bool leave) {
	return pf_outcome_of(pf_begin_clear(f, leave));
}

struct power_outcome pf_take_lease(struct power_fixture *f, const char *run, int state) {
	struct err err;
	struct latch *l = pf_latch_for_outcome();
	const enum rc rc = power_lease(
		f->power, f->id, run, state, clock_wall_ms() + PF_LONG_MS, pf_on_outcome, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return pf_outcome_of(l);
}

struct power_view pf_view(struct power_fixture *f) {
	struct power_view v;
	struct err err;
	assert_int_equal(power_view_get(f->power, f->id, &v, &err), RC_OK);
	return v;
}

/* --- waiting --- */

static bool drive_is_at(void *arg) {
	const struct pf_wish *w = arg;
	return fake_drive_power(w->f->fake, w->f->n) == w->value;
}

void pf_wait_for_power(struct power_fixture *f, int state) {
	struct pf_wish w = {.f = f, .value = state};
	assert_true(eventually(drive_is_at, &w));
}

bool pf_was_asked(void *arg) {
	const struct pf_wish *w = arg;
	return fake_drive_asked(w->f->fake, w->f->n, w->verb) >= w->value;
}

/* So many times more than by now. */
void pf_wait_for_asked(struct power_fixture *f, enum drive_verb verb, int more) {
	struct pf_wish w = {.f = f, .verb = verb};
	w.value = fake_drive_asked(f->fake, f->n, verb) + more;
	assert_true(eventually(pf_was_asked, &w));
}

bool pf_is_observed(void *arg) {
	const struct pf_wish *w = arg;
	return pf_view(w->f).observed_state == w->value;
}

bool pf_has_state(void *arg) {
	const struct pf_wish *w = arg;
	struct drive d;
	struct err err;
	assert_int_equal(drives_get(w->f->drives, w->f->id, &d, NULL, NULL, &err), RC_OK);
	return d.state == w->value;
}

bool pf_has_claims_now(void *arg) {
	const struct pf_wish *w = arg;
	return pf_view(w->f).claim_count == w->value;
}

void pf_wait_for_observed(struct power_fixture *f, int state) {
	struct pf_wish w = {.f = f, .value = state};
	assert_true(eventually(pf_is_observed, &w));
}

static bool count_event(void *arg, const struct event *e) {
	struct pf_wish *w = arg;
	w->count += e->type == w->type;
	return true;
}

int pf_count_events(struct power_fixture *f, enum event_type type) {
	struct pf_wish w = {.f = f, .type = type};
	struct db_conn *c;
	struct err err;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_event_list(c, 0, 1000, count_event, &w, &err), RC_OK);
	db_read_end(c);
	return w.count;
}

static bool has_events(void *arg) {
	const struct pf_wish *w = arg;
	return pf_count_events(w->f, w->type) >= w->value;
}

void pf_wait_for_events(struct power_fixture *f, enum event_type type, int count) {
	struct pf_wish w = {.f = f, .type = type, .value = count};
	assert_true(eventually(has_events, &w));
}

static bool count_claim(void *arg, const struct claim *c unused_arg) {
	struct pf_wish *w = arg;
	w->count++;
	return true;
}

static bool has_claims(void *arg) {
	struct pf_wish *w = arg;
	struct db_conn *c;
	struct err err;
	w->count = 0;
	assert_int_equal(db_read_begin(w->f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_claim_each(c, w->f->id, count_claim, w, &err), RC_OK);
	db_read_end(c);
	return w->count == w->value;
}

/* In the store. */
void pf_wait_for_claims(struct power_fixture *f, int count) {
	struct pf_wish w = {.f = f, .value = count};
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

int pf_count_audits(struct power_fixture *f, const char *outcome) {
	struct trail t = {outcome, 0};
	struct db_conn *c;
	struct err err;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_audit_list(c, INT64_MAX, 100, count_audit, &t, &err), RC_OK);
	db_read_end(c);
	return t.count;
}
