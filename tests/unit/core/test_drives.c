/* The registry against made-up drives: who is there, who answers, who is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/latch.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/thread.h"
#include "core/drive.h"
#include "db/events.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_drives.h"
#include "tests/support/temp_db.h"

#define HOST "6f1c1f1e-0000-4000-8000-000000000001"
#define LONG_MS 60000
#define SHORT_MS 50
#define MAX_NEWS 256

struct news_item {
	char id[DRIVE_ID_SIZE];
	enum drive_news news;
};

struct fixture {
	struct temp_db *control, *samples;
	struct events *events;
	struct energy *energy;
	struct timers *timers;
	struct pool *jobs;
	struct fake_drives *fake;
	struct drives *drives;
	pthread_mutex_t lock; /* of the news */
	size_t news_count;
	struct news_item news[MAX_NEWS];
};

static void on_news(void *arg, const char *drive_id, enum drive_news news) {
	struct fixture *f = arg;
	pthread_mutex_lock(&f->lock);
	struct news_item *n = &f->news[f->news_count++ % MAX_NEWS];
	snprintf(n->id, sizeof(n->id), "%s", drive_id);
	n->news = news;
	pthread_mutex_unlock(&f->lock);
}

static void open_drives(struct fixture *f, const struct drives_config *config) {
	struct err err;
	f->drives =
		drives_new(config, f->control->db, f->events, f->energy, f->timers, f->jobs, &err);
	assert_non_null(f->drives);
	const struct drive_source source = fake_drives_source(f->fake);
	assert_int_equal(drives_add_source(f->drives, &source, &err), RC_OK);
	assert_int_equal(drives_watch(f->drives, on_news, f, &err), RC_OK);
}

static void start(struct fixture *f, int64_t timeout_ms) {
	struct err err;
	const struct drives_config config = {.timeout_ms = timeout_ms, .host_id = HOST};
	open_drives(f, &config);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	assert_true(drives_settled(f->drives, LONG_MS));
}

static int setup(void **state) {
	const struct energy_config energy = {
		.max_series = 64, .queue_samples = 1000, .flush_ms = 1000, .max_gap_ms = 30000};
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(secret_init(&err), RC_OK);
	pthread_mutex_init(&f->lock, NULL);
	f->control = temp_db_new(DB_CONTROL);
	f->samples = temp_db_new(DB_SAMPLES);
	f->events = events_new(f->control->db, &err);
	f->energy = energy_new(&energy, f->samples->db, &err);
	f->timers = timers_new(64, &err);
	f->jobs = pool_new("jobs", 3, 1024, &err);
	f->fake = fake_drives_new();
	*state = f;
	return 0;
}

static void stop(struct fixture *f) {
	if (f->drives)
		drives_stop(f->drives);
	if (f->fake)
		fake_drives_free(f->fake);
	f->fake = NULL;
	if (f->drives)
		drives_drain(f->drives);
	drives_free(f->drives);
	f->drives = NULL;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	stop(f);
	pool_free(f->jobs);
	timers_free(f->timers);
	energy_free(f->energy);
	events_free(f->events);
	temp_db_free(f->samples);
	temp_db_free(f->control);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

/* --- helpers --- */

static struct drive get(struct fixture *f, const char *id) {
	struct drive d;
	struct err err;
	assert_int_equal(drives_get(f->drives, id, &d, NULL, NULL, &err), RC_OK);
	return d;
}

struct state_wish {
	struct fixture *f;
	const char *id;
	enum drive_state state;
};

static bool has_state(void *arg) {
	const struct state_wish *w = arg;
	return get(w->f, w->id).state == w->state;
}

static void wait_for_state(struct fixture *f, const char *id, enum drive_state s) {
	struct state_wish w = {f, id, s};
	assert_true(eventually(has_state, &w));
}

struct news_wish {
	struct fixture *f;
	enum drive_news news;
	size_t count;
};

static bool has_news(void *arg) {
	const struct news_wish *w = arg;
	size_t count = 0;
	pthread_mutex_lock(&w->f->lock);
	for (size_t i = 0; i < w->f->news_count; i++)
		count += w->f->news[i].news == w->news;
	pthread_mutex_unlock(&w->f->lock);
	return count >= w->count;
}

static void wait_for_news(struct fixture *f, enum drive_news news, size_t count) {
	struct news_wish w = {f, news, count};
	assert_true(eventually(has_news, &w));
}

struct event_wish {
	struct fixture *f;
	enum event_type type;
	int count, wanted;
};

static bool count_event(void *arg, const struct event *e) {
	struct event_wish *w = arg;
	w->count += e->type == w->type;
	return true;
}

static int count_events(struct fixture *f, enum event_type type) {
	struct event_wish w = {f, type, 0, 0};
	struct db_conn *c;
	struct err err;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_event_list(c, 0, 1000, count_event, &w, &err), RC_OK);
	db_read_end(c);
	return w.count;
}

static bool has_events(void *arg) {
	const struct event_wish *w = arg;
	return count_events(w->f, w->type) >= w->wanted;
}

static void wait_for_events(struct fixture *f, enum event_type type, int count) {
	struct event_wish w = {f, type, 0, count};
	assert_true(eventually(has_events, &w));
}

struct answer {
	enum rc rc;
	int power_state;
	bool late;
};

static void on_reply(void *arg, const struct drive_reply *r) {
	const struct answer a = {r->rc, r->power_state, r->late};
	latch_open(arg, &a);
	latch_unref(arg);
}

static struct latch *ask(struct fixture *f, const char *id, enum drive_verb verb, int state) {
	struct err err;
	struct latch *l = latch_new(sizeof(struct answer));
	latch_ref(l);
	const struct power_setting setting = {
		.state = (int8_t)state, .fallback_state = -1, .limit_mw = NONE};
	const enum rc rc = drives_submit(f->drives, id, verb, &setting, false, on_reply, l, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return l;
}

static struct answer answer_of(struct latch *l) {
	struct answer a;
	assert_true(latch_wait(l, LONG_MS, &a));
	latch_unref(l);
	return a;
}

/* --- who is there --- */

static void found_drives_are_identified_and_listed(void **state) {
	struct fixture *f = *state;
	char a[DRIVE_ID_SIZE], b[DRIVE_ID_SIZE];
	struct drive_detail *detail = malloc(sizeof(*detail));
	struct drive d;
	struct err err;
	fake_drive_add(f->fake, "S1");
	fake_drive_add(f->fake, "S2");
	start(f, LONG_MS);
	assert_int_equal(drives_count(f->drives), 2);
	fake_drive_id(f->drives, "S1", a);
	fake_drive_id(f->drives, "S2", b);
	assert_string_not_equal(a, b);
	assert_int_equal(drives_get(f->drives, a, &d, NULL, detail, &err), RC_OK);
	assert_int_equal(d.state, DRIVE_LIVE);
	assert_int_equal(d.power_state, -1);
	assert_int_equal(d.power_state_count, FAKE_STATES);
	assert_true(d.serial_unique);
	assert_int_equal(detail->power.count, FAKE_STATES);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 2);
	wait_for_events(f, EVENT_DRIVE_ADDED, 2);
	free(detail);
}

static void an_id_outlives_name_and_restart(void **state) {
	struct fixture *f = *state;
	char before[DRIVE_ID_SIZE], after[DRIVE_ID_SIZE];
	fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", before);
	wait_for_events(f, EVENT_DRIVE_ADDED, 1);
	stop(f);
	f->fake = fake_drives_new();
	fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", after);
	assert_string_equal(before, after);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 2);
	/* Known to the store: no news for people. */
	assert_int_equal(count_events(f, EVENT_DRIVE_ADDED), 1);
}

static void a_serial_that_two_have_is_unique_to_none(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	fake_drive_add(f->fake, "SAME");
	const int second = fake_drive_add(f->fake, "SAME");
	fake_drive_add(f->fake, "OTHER");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "SAME", id);
	assert_false(get(f, id).serial_unique);
	fake_drive_id(f->drives, "OTHER", id);
	assert_true(get(f, id).serial_unique);
	fake_drive_remove(f->fake, second);
	drives_rescan(f->drives);
	wait_for_news(f, DRIVE_NEWS_GONE, 1);
	fake_drive_id(f->drives, "SAME", id);
	assert_int_equal(drives_count(f->drives), 3);
}

struct tally {
	size_t count, unique;
};

static bool tally_unique(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct tally *t = arg;
	t->count++;
	t->unique += d->serial_unique;
	return true;
}

static void controllers_of_one_subsystem_have_the_serial_of_one_device(void **state) {
	struct fixture *f = *state;
	const char *serials[] = {"SAME", "SAME", "TWICE", "TWICE", "TWICE"};
	const char *nqns[] = {"nqn:a", "nqn:a", "nqn:b", "nqn:b", "nqn:c"};
	struct tally t = {0};
	for (size_t i = 0; i < array_len(serials); i++)
		fake_drive_set_subsystem(f->fake, fake_drive_add(f->fake, serials[i]), nqns[i]);
	start(f, LONG_MS);
	assert_int_equal(drives_count(f->drives), array_len(serials));
	drives_each(f->drives, "", tally_unique, &t);
	assert_int_equal(t.count, array_len(serials));
	assert_int_equal(t.unique, 2);
}

static void a_drive_that_goes_is_gone_and_comes_back_as_itself(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct err err;
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 1);
	fake_drive_remove(f->fake, n);
	drives_rescan(f->drives);
	wait_for_state(f, id, DRIVE_GONE);
	wait_for_events(f, EVENT_DRIVE_REMOVED, 1);
	assert_int_equal(
		drives_submit(f->drives, id, DRIVE_POWER_GET, NULL, false, on_reply, NULL, &err),
		RC_UNAVAILABLE);
	fake_drive_return(f->fake, n);
	drives_rescan(f->drives);
	wait_for_state(f, id, DRIVE_LIVE);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 2);
	wait_for_events(f, EVENT_DRIVE_ADDED, 2);
	assert_int_equal(drives_count(f->drives), 1);
}

static void an_answer_that_says_gone_brings_a_scan(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	fake_drive_remove(f->fake, n);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_GET, -1)).rc, RC_NOT_FOUND);
	wait_for_state(f, id, DRIVE_GONE);
}

static void a_reset_has_the_drive_identified_again(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 2)).power_state, 2);
	assert_int_equal(get(f, id).power_state, 2);
	fake_drive_set_state(f->fake, n, DRIVE_RESETTING);
	drives_rescan(f->drives);
	wait_for_state(f, id, DRIVE_RESETTING);
	fake_drive_set_state(f->fake, n, DRIVE_LIVE);
	drives_rescan(f->drives);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 2);
	assert_int_equal(get(f, id).state, DRIVE_LIVE);
	assert_int_equal(get(f, id).power_state, -1);
}

static void a_hint_of_a_reset_loses_what_was_read(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE], other[DRIVE_ID_SIZE];
	fake_drive_add(f->fake, "S1");
	const int n = fake_drive_add(f->fake, "S2");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", other);
	fake_drive_id(f->drives, "S2", id);
	answer_of(ask(f, id, DRIVE_POWER_SET, 2));
	answer_of(ask(f, other, DRIVE_POWER_SET, 2));
	/* So short that no scan has seen it. */
	drives_hint(f->drives, get(f, id).name, true);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 3);
	assert_int_equal(get(f, id).power_state, -1);
	assert_int_equal(get(f, other).power_state, 2);
	/* Of some that were lost nobody knows whose they were. */
	drives_hint(f->drives, "", true);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 5);
	assert_int_equal(get(f, other).power_state, -1);
	assert_int_equal(fake_drive_asked(f->fake, n, DRIVE_IDENTIFY), 3);
}

static bool has_two_namespaces(void *arg) {
	const struct state_wish *w = arg;
	auto_free struct drive_detail *detail = malloc(sizeof(*detail));
	struct drive d;
	return !drives_get(w->f->drives, w->id, &d, NULL, detail, NULL) &&
		detail->namespace_count == 2;
}

static void a_hint_brings_drives_and_namespaces(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	answer_of(ask(f, id, DRIVE_POWER_SET, 2));
	struct state_wish w = {.f = f, .id = id};
	fake_drive_set_namespaces(f->fake, n, 2, false);
	drives_hint(f->drives, get(f, id).name, false);
	assert_true(eventually(has_two_namespaces, &w));
	assert_int_equal(get(f, id).power_state, 2);
	fake_drive_add(f->fake, "S2");
	drives_hint(f->drives, "", false);
	fake_drive_id(f->drives, "S2", id);
	wait_for_state(f, id, DRIVE_LIVE);
}

static void scans_that_fail_say_why_and_forget_nobody(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE], reason[128];
	fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	drives_reason(f->drives, reason, sizeof(reason));
	assert_string_equal(reason, "");
	fake_drives_fail_scans(f->fake, RC_UNAVAILABLE, "the helper is gone");
	drives_rescan(f->drives);
	wait_for_state(f, id, DRIVE_FAILED);
	drives_reason(f->drives, reason, sizeof(reason));
	assert_string_equal(reason, "the helper is gone");
	fake_drives_fail_scans(f->fake, RC_OK, "");
	drives_rescan(f->drives);
	wait_for_state(f, id, DRIVE_LIVE);
}

static void without_a_source_the_reason_is_told(void **state) {
	struct fixture *f = *state;
	const struct drives_config config = {.timeout_ms = LONG_MS, .host_id = HOST};
	char reason[128];
	struct err err;
	f->drives = drives_new(&config, f->control->db, f->events, NULL, f->timers, f->jobs, &err);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	drives_reason(f->drives, reason, sizeof(reason));
	assert_string_not_equal(reason, "");
}

/* --- who answers --- */

static void a_set_is_read_back_and_shown(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct drive_observed o;
	struct err err;
	fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	const uint64_t version = drives_version(f->drives);
	const struct answer a = answer_of(ask(f, id, DRIVE_POWER_SET, 1));
	assert_int_equal(a.rc, RC_OK);
	assert_int_equal(a.power_state, 1);
	assert_true(drives_version(f->drives) > version);
	assert_int_equal(drives_observed(f->drives, id, &o, &err), RC_OK);
	assert_int_equal(o.power_state, 1);
	assert_int_equal(o.last.rc, RC_OK);
	assert_true(o.at_ms > 0);
}

static void a_hung_drive_times_out_and_its_late_answer_counts(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	start(f, SHORT_MS);
	fake_drive_id(f->drives, "S1", id);
	fake_drive_hang(f->fake, n, true);
	const struct answer a = answer_of(ask(f, id, DRIVE_POWER_SET, 2));
	assert_int_equal(a.rc, RC_TIMEOUT);
	assert_int_equal(get(f, id).state, DRIVE_UNRESPONSIVE);
	wait_for_events(f, EVENT_DRIVE_STATE, 1);
	fake_drive_hang(f->fake, n, false);
	wait_for_state(f, id, DRIVE_LIVE);
	assert_int_equal(get(f, id).power_state, 2);
	wait_for_events(f, EVENT_DRIVE_STATE, 2);
	wait_for_news(f, DRIVE_NEWS_POWER_READ, 1);
}

static void two_wait_for_a_drive_and_no_more(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct err err;
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	fake_drive_hang(f->fake, n, true);
	struct latch *first = ask(f, id, DRIVE_POWER_GET, -1);
	struct latch *second = ask(f, id, DRIVE_POWER_GET, -1);
	assert_int_equal(
		drives_submit(f->drives, id, DRIVE_POWER_GET, NULL, false, on_reply, NULL, &err),
		RC_FULL);
	assert_int_equal(
		drives_submit(f->drives, id, DRIVE_POWER_GET, NULL, true, NULL, NULL, &err), RC_OK);
	fake_drive_hang(f->fake, n, false);
	assert_int_equal(answer_of(first).rc, RC_OK);
	assert_int_equal(answer_of(second).rc, RC_OK);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_GET, -1)).rc, RC_OK);
}

static void a_drive_that_never_answers_is_not_asked_for_ever(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct err err;
	const int n = fake_drive_add(f->fake, "S1");
	start(f, SHORT_MS);
	fake_drive_id(f->drives, "S1", id);
	fake_drive_hang(f->fake, n, true);
	for (int i = 0; i < DRIVE_MAX_COMMANDS; i++)
		assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_GET, -1)).rc, RC_TIMEOUT);
	assert_int_equal(
		drives_submit(f->drives, id, DRIVE_POWER_GET, NULL, false, on_reply, NULL, &err),
		RC_FULL);
	fake_drive_hang(f->fake, n, false);
	wait_for_state(f, id, DRIVE_LIVE);
}

static void one_hung_drive_does_not_delay_another(void **state) {
	struct fixture *f = *state;
	char a[DRIVE_ID_SIZE], b[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	fake_drive_add(f->fake, "S2");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", a);
	fake_drive_id(f->drives, "S2", b);
	fake_drive_hang(f->fake, n, true);
	struct latch *hung = ask(f, a, DRIVE_POWER_GET, -1);
	assert_int_equal(answer_of(ask(f, b, DRIVE_POWER_SET, 1)).rc, RC_OK);
	fake_drive_hang(f->fake, n, false);
	assert_int_equal(answer_of(hung).rc, RC_OK);
}

static void a_refusal_is_an_answer(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct drive_observed o;
	struct err err;
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	fake_drive_refuse(f->fake, n, 2, RC_REFUSED, 0x4002);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 2)).rc, RC_REFUSED);
	assert_int_equal(get(f, id).state, DRIVE_LIVE);
	assert_int_equal(drives_observed(f->drives, id, &o, &err), RC_OK);
	assert_int_equal(o.last.nvme_status, 0x4002);
	fake_drive_refuse(f->fake, n, 2, RC_IO, 0);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 2)).rc, RC_IO);
	assert_int_equal(get(f, id).state, DRIVE_FAILED);
}

/* As sysfs has it: the state must not change to and fro between answers and scans. */
static void a_drive_that_resets_says_so_itself(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	fake_drive_refuse(f->fake, n, 2, RC_UNAVAILABLE, 0);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 2)).rc, RC_UNAVAILABLE);
	assert_int_equal(get(f, id).state, DRIVE_RESETTING);
	fake_drive_refuse(f->fake, n, -1, RC_OK, 0);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 2)).rc, RC_OK);
	assert_int_equal(get(f, id).state, DRIVE_LIVE);
}

struct gate {
	struct latch *entered, *open;
};

static void block_job(void *arg) {
	const struct gate *g = arg;
	int done = 1;
	latch_open(g->entered, &done);
	assert_true(latch_wait(g->open, LONG_MS, &done));
}

static void a_full_queue_is_told_at_once(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct err err;
	struct gate gate = {latch_new(sizeof(int)), latch_new(sizeof(int))};
	int done = 1;
	fake_drive_add(f->fake, "S1");
	pool_free(f->jobs);
	f->jobs = pool_new("jobs", 1, 1, &err);
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 1);
	while (!pool_submit(f->jobs, block_job, &gate))
		;
	assert_true(latch_wait(gate.entered, LONG_MS, &done));
	while (pool_submit(f->jobs, block_job, &gate))
		;
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 1)).rc, RC_FULL);
	assert_int_equal(get(f, id).power_state, 1);
	latch_open(gate.open, &done);
	/* The news was kept, not lost. */
	wait_for_news(f, DRIVE_NEWS_POWER_READ, 1);
	stop(f);
	pool_free(f->jobs);
	f->jobs = NULL;
	latch_unref(gate.entered);
	latch_unref(gate.open);
}

/* --- readings, labels, lists --- */

static bool has_reading(void *arg) {
	const struct state_wish *w = arg;
	return get(w->f, w->id).temperature_mc == 41000;
}

static void health_is_read_by_itself_and_becomes_samples(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct drive_health h;
	struct series s;
	struct err err;
	const int n = fake_drive_add(f->fake, "S1");
	fake_drive_set_temperature(f->fake, n, 41000, 7500);
	const struct drives_config config = {
		.timeout_ms = LONG_MS, .health_ms = 20, .host_id = HOST};
	open_drives(f, &config);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	fake_drive_id(f->drives, "S1", id);
	struct state_wish w = {f, id, DRIVE_LIVE};
	assert_true(eventually(has_reading, &w));
	assert_int_equal(get(f, id).measured_mw, 7500);
	assert_int_equal(get(f, id).measured_quality, QUALITY_MEASURED);
	assert_int_equal(drives_health(f->drives, id, &h, &err), RC_OK);
	assert_int_equal(h.temperature_mc, 41000);
	stop(f);
	assert_int_equal(energy_find(f->energy, HOST, id, QUANTITY_TEMPERATURE, &s, &err), RC_OK);
	assert_int_equal(s.key.quality, QUALITY_MEASURED);
	assert_int_equal(energy_find(f->energy, HOST, id, QUANTITY_POWER, &s, &err), RC_OK);
}

static void assert_labels(struct fixture *f, const char *id, const char *labels, uint32_t version) {
	char seen[512];
	struct drive d;
	struct err err;
	assert_int_equal(drives_get(f->drives, id, &d, seen, NULL, &err), RC_OK);
	assert_string_equal(seen, labels);
	assert_int_equal(d.config_version, version);
}

/* With an own period of readings. */
static void start_reading(struct fixture *f, int64_t health_ms) {
	const struct drives_config config = {
		.timeout_ms = LONG_MS, .health_ms = health_ms, .host_id = HOST};
	struct err err;
	open_drives(f, &config);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	assert_true(drives_settled(f->drives, LONG_MS));
}

struct namespaces_wish {
	struct fixture *f;
	const char *id;
	int count;
	bool in_use;
};

static bool has_namespaces(void *arg) {
	const struct namespaces_wish *w = arg;
	struct drive_detail detail;
	struct drive d;
	struct err err;
	assert_int_equal(drives_get(w->f->drives, w->id, &d, NULL, &detail, &err), RC_OK);
	return detail.namespace_count == w->count && d.in_use == w->in_use;
}

static void uses_and_namespaces_are_looked_at_again(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	const int n = fake_drive_add(f->fake, "S1");
	fake_drive_set_namespaces(f->fake, n, 1, false);
	start_reading(f, 20);
	fake_drive_id(f->drives, "S1", id);
	assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_SET, 2)).power_state, 2);
	fake_drive_set_namespaces(f->fake, n, 2, true);
	assert_true(eventually(has_namespaces, &(struct namespaces_wish){f, id, 2, true}));
	fake_drive_set_namespaces(f->fake, n, 1, false);
	assert_true(eventually(has_namespaces, &(struct namespaces_wish){f, id, 1, false}));
	/* A look is no reset: what was read stays, and nobody is told of a new drive. */
	assert_int_equal(get(f, id).power_state, 2);
	stop(f);
	struct news_wish again = {f, DRIVE_NEWS_IDENTIFIED, 2};
	assert_false(has_news(&again));
}

static void other_power_states_are_news(void **state) {
	struct fixture *f = *state;
	const int n = fake_drive_add(f->fake, "S1");
	start_reading(f, 20);
	fake_drive_set_apst(f->fake, n, true);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 2);
}

static void without_a_period_nobody_is_asked_again(void **state) {
	struct fixture *f = *state;
	const int n = fake_drive_add(f->fake, "S1");
	char id[DRIVE_ID_SIZE];
	start_reading(f, 0);
	fake_drive_id(f->drives, "S1", id);
	for (int i = 0; i < 3; i++)
		assert_int_equal(answer_of(ask(f, id, DRIVE_POWER_GET, -1)).rc, RC_OK);
	assert_int_equal(fake_drive_asked(f->fake, n, DRIVE_IDENTIFY), 1);
}

static void what_the_first_scan_finds_is_one_transaction(void **state) {
	struct fixture *f = *state;
	const struct drives_config config = {.timeout_ms = LONG_MS, .host_id = HOST};
	struct db_status before, after;
	char serial[16];
	struct err err;
	for (int i = 0; i < FAKE_MAX_DRIVES; i++) {
		snprintf(serial, sizeof(serial), "S%d", i);
		fake_drive_add(f->fake, serial);
	}
	open_drives(f, &config);
	db_status_get(f->control->db, &before);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	assert_true(drives_settled(f->drives, LONG_MS));
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, FAKE_MAX_DRIVES);
	stop(f);
	db_status_get(f->control->db, &after);
	assert_int_equal(after.commits, before.commits + 1);
	assert_int_equal(count_events(f, EVENT_DRIVE_ADDED), FAKE_MAX_DRIVES);
}

/* A drive that hangs, found while nothing could be written. */
static int start_without_store(struct fixture *f) {
	const struct drives_config config = {.timeout_ms = LONG_MS, .host_id = HOST};
	struct err err;
	const int n = fake_drive_add(f->fake, "S1");
	fake_drive_hang(f->fake, n, true);
	open_drives(f, &config);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	db_fail_nth(f->control->db, 0, RC_OK);
	assert_int_equal(count_events(f, EVENT_DRIVE_ADDED), 0);
	return n;
}

static void a_drive_that_could_not_be_noted_takes_labels(void **state) {
	struct fixture *f = *state;
	char id[DRIVE_ID_SIZE];
	struct err err;
	start_without_store(f);
	fake_drive_id(f->drives, "S1", id);
	assert_int_equal(
		drives_set_labels(f->drives, &actor_system, id, "{\"rack\":\"7\"}", 0, &err),
		RC_OK);
	assert_int_equal(get(f, id).config_version, 2);
}

static void a_first_scan_that_could_not_be_noted_is_told_of_later(void **state) {
	struct fixture *f = *state;
	const int n = start_without_store(f);
	fake_drive_hang(f->fake, n, false);
	wait_for_events(f, EVENT_DRIVE_ADDED, 1);
}

static void labels_stay_and_know_their_version(void **state) {
	struct fixture *f = *state;
	const struct drives_config config = {.timeout_ms = LONG_MS, .host_id = HOST};
	char id[DRIVE_ID_SIZE];
	struct err err;
	fake_drive_add(f->fake, "S1");
	start(f, LONG_MS);
	fake_drive_id(f->drives, "S1", id);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 1);
	const uint32_t version = get(f, id).config_version;
	assert_int_equal(drives_set_labels(f->drives, &actor_system, id, "{\"rack\":\"7\"}",
				 version + 1, &err),
		RC_PRECONDITION);
	for (int i = 0; i < 2; i++)
		assert_int_equal(drives_set_labels(
					 f->drives, &actor_system, id, "{\"rack\":\"7\"}", 0, &err),
			RC_OK);
	assert_int_equal(get(f, id).config_version, version + 1);
	stop(f);
	f->fake = fake_drives_new();
	fake_drive_hang(f->fake, fake_drive_add(f->fake, "S1"), true);
	open_drives(f, &config);
	assert_int_equal(drives_start(f->drives, &err), RC_OK);
	/* Before the drive has answered anything. */
	assert_labels(f, id, "{\"rack\":\"7\"}", version + 1);
	fake_drive_hang(f->fake, 0, false);
	wait_for_news(f, DRIVE_NEWS_IDENTIFIED, 2);
	assert_labels(f, id, "{\"rack\":\"7\"}", version + 1);
}

struct walk {
	size_t count, stop_after;
	char last[DRIVE_ID_SIZE];
};

static bool walk(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct walk *w = arg;
	assert_true(strcmp(w->last, d->id) < 0);
	memcpy(w->last, d->id, sizeof(w->last));
	return ++w->count < w->stop_after;
}

static void lists_ascend_and_can_be_taken_up_again(void **state) {
	struct fixture *f = *state;
	char serial[16];
	for (int i = 0; i < FAKE_MAX_DRIVES; i++) {
		snprintf(serial, sizeof(serial), "S%d", i);
		fake_drive_add(f->fake, serial);
	}
	start(f, LONG_MS);
	struct walk w = {.stop_after = 3};
	drives_each(f->drives, "", walk, &w);
	assert_int_equal(w.count, 3);
	w.stop_after = 100;
	drives_each(f->drives, w.last, walk, &w);
	assert_int_equal(w.count, FAKE_MAX_DRIVES);
}

static void nobody_knows_an_unknown_drive(void **state) {
	struct fixture *f = *state;
	struct drive d;
	struct power_table t;
	struct err err;
	start(f, LONG_MS);
	assert_int_equal(drives_get(f->drives, "x", &d, NULL, NULL, &err), RC_NOT_FOUND);
	assert_int_equal(drives_table(f->drives, "x", &t, &err), RC_NOT_FOUND);
	assert_int_equal(
		drives_submit(f->drives, "x", DRIVE_SMART, NULL, false, on_reply, NULL, &err),
		RC_NOT_FOUND);
}

static void *hammer(void *arg) {
	struct fixture *f = arg;
	char id[DRIVE_ID_SIZE];
	struct drive d;
	struct err err;
	fake_drive_id(f->drives, "S1", id);
	for (int i = 0; i < 200; i++) {
		drives_rescan(f->drives);
		const struct power_setting setting = {
			.state = (int8_t)(i % 3), .fallback_state = -1, .limit_mw = NONE};
		(void)!drives_submit(
			f->drives, id, DRIVE_POWER_SET, &setting, true, NULL, NULL, &err);
		(void)!drives_get(f->drives, id, &d, NULL, NULL, &err);
		drives_set_effective(f->drives, id, i % 3, i % 2);
	}
	return NULL;
}

static void everything_at_once_stays_whole(void **state) {
	struct fixture *f = *state;
	pthread_t threads[3];
	const int n = fake_drive_add(f->fake, "S1");
	fake_drive_add(f->fake, "S2");
	start(f, SHORT_MS);
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(thread_start(&threads[i], "hammer", hammer, f, NULL), RC_OK);
	for (int i = 0; i < 20; i++) {
		fake_drive_remove(f->fake, n);
		fake_drive_return(f->fake, n);
		fake_drive_hang(f->fake, 1, i % 2);
	}
	fake_drive_hang(f->fake, 1, false);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	drives_rescan(f->drives);
	assert_true(drives_settled(f->drives, LONG_MS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(found_drives_are_identified_and_listed),
		TEST(an_id_outlives_name_and_restart),
		TEST(a_serial_that_two_have_is_unique_to_none),
		TEST(controllers_of_one_subsystem_have_the_serial_of_one_device),
		TEST(a_drive_that_goes_is_gone_and_comes_back_as_itself),
		TEST(an_answer_that_says_gone_brings_a_scan),
		TEST(a_reset_has_the_drive_identified_again),
		TEST(a_hint_of_a_reset_loses_what_was_read),
		TEST(a_hint_brings_drives_and_namespaces),
		TEST(scans_that_fail_say_why_and_forget_nobody),
		TEST(without_a_source_the_reason_is_told),
		TEST(a_set_is_read_back_and_shown),
		TEST(a_hung_drive_times_out_and_its_late_answer_counts),
		TEST(two_wait_for_a_drive_and_no_more),
		TEST(a_drive_that_never_answers_is_not_asked_for_ever),
		TEST(one_hung_drive_does_not_delay_another),
		TEST(a_refusal_is_an_answer),
		TEST(a_drive_that_resets_says_so_itself),
		TEST(a_full_queue_is_told_at_once),
		TEST(health_is_read_by_itself_and_becomes_samples),
		TEST(uses_and_namespaces_are_looked_at_again),
		TEST(other_power_states_are_news),
		TEST(without_a_period_nobody_is_asked_again),
		TEST(what_the_first_scan_finds_is_one_transaction),
		TEST(a_first_scan_that_could_not_be_noted_is_told_of_later),
		TEST(a_drive_that_could_not_be_noted_takes_labels),
		TEST(labels_stay_and_know_their_version),
		TEST(lists_ascend_and_can_be_taken_up_again),
		TEST(nobody_knows_an_unknown_drive),
		TEST(everything_at_once_stays_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
