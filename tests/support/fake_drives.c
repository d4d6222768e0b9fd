#include "tests/support/fake_drives.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/parse.h"
#include "base/thread.h"
#include "tests/support/eventually.h"

#define MAX_QUESTIONS 256

struct question {
	int drive; /* -1: a scan */
	enum drive_verb verb;
	struct power_setting setting;
	drive_reply_fn *fn;
	void (*found)(void *arg, const struct drive_found *f);
	void (*done)(void *arg, enum rc rc, const char *reason);
	void *arg;
};

struct fake_drive {
	bool present, hangs, hangs_power;
	struct drive_found found;
	struct drive_detail detail;
	struct drive_health health;
	int power_state;
	int64_t limit_mw;
	int refused_state;
	enum rc refused_rc;
	uint16_t refused_status;
	int asked[DRIVE_SMART + 1];
};

struct fake_drives {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
	size_t question_count;
	struct question questions[MAX_QUESTIONS];
	int count;
	struct fake_drive drives[FAKE_MAX_DRIVES];
	enum rc scan_rc;
	char scan_reason[64];
};

/* --- answers; under lock but for the calls --- */

static bool can_answer(const struct fake_drives *f, const struct question *q) {
	if (q->drive < 0)
		return true;
	const struct fake_drive *d = &f->drives[q->drive];
	const bool power = q->verb == DRIVE_POWER_GET || q->verb == DRIVE_POWER_SET;
	return !d->hangs && !(power && d->hangs_power);
}

static bool take(struct fake_drives *f, struct question *out) {
	for (size_t i = 0; i < f->question_count; i++) {
		if (!can_answer(f, &f->questions[i]))
			continue;
		*out = f->questions[i];
		f->question_count--;
		memmove(&f->questions[i], &f->questions[i + 1],
			(f->question_count - i) * sizeof(f->questions[0]));
		return true;
	}
	return false;
}

static void set_power(
	struct fake_drive *d, const struct power_setting *setting, struct drive_reply *r) {
	if (setting->state == d->refused_state) {
		r->rc = err_set(&r->err, d->refused_rc, "made up");
		r->err.nvme_status = d->refused_status;
		return;
	}
	d->power_state = setting->state;
	d->limit_mw = setting->limit_mw;
}

static void answer(struct fake_drives *f, const struct question *q) {
	struct fake_drive *d = &f->drives[q->drive];
	struct drive_detail detail = d->detail;
	struct drive_health health = d->health;
	struct drive_reply r = {.rc = RC_OK, .power_state = -1, .limit_mw = NONE};
	if (!d->present)
		r.rc = err_set(&r.err, RC_NOT_FOUND, "no such drive any more");
	else if (q->verb == DRIVE_POWER_SET)
		set_power(d, &q->setting, &r);
	if (!r.rc && (q->verb == DRIVE_POWER_GET || q->verb == DRIVE_POWER_SET)) {
		r.power_state = d->power_state;
		r.limit_mw = d->limit_mw;
	}
	if (!r.rc && q->verb == DRIVE_IDENTIFY)
		r.detail = &detail;
	if (!r.rc && q->verb == DRIVE_SMART)
		r.health = &health;
	pthread_mutex_unlock(&f->lock);
	q->fn(q->arg, &r);
	pthread_mutex_lock(&f->lock);
}

static void scan(struct fake_drives *f, const struct question *q) {
	struct drive_found found[FAKE_MAX_DRIVES];
	char reason[64];
	int count = 0;
	for (int i = 0; i < f->count; i++) {
		if (f->drives[i].present)
			found[count++] = f->drives[i].found;
	}
	const enum rc rc = f->scan_rc;
	str_copy(reason, sizeof(reason), f->scan_reason);
	pthread_mutex_unlock(&f->lock);
	for (int i = 0; i < count && !rc; i++)
		q->found(q->arg, &found[i]);
	q->done(q->arg, rc, reason);
	pthread_mutex_lock(&f->lock);
}

static void *run(void *arg) {
	struct fake_drives *f = arg;
	struct question q;
	pthread_mutex_lock(&f->lock);
	while (!f->stopping) {
		if (!take(f, &q))
			pthread_cond_wait(&f->changed, &f->lock);
		else if (q.drive < 0)
			scan(f, &q);
		else
			answer(f, &q);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* --- the source --- */

static enum rc ask(struct fake_drives *f, const struct question *q, struct err *err) {
	pthread_mutex_lock(&f->lock);
	const bool room = f->question_count < MAX_QUESTIONS;
	if (room)
		f->questions[f->question_count++] = *q;
	if (room && q->drive >= 0)
		f->drives[q->drive].asked[q->verb]++;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return room ? RC_OK : err_set(err, RC_FULL, "too many questions");
}

static enum rc submit(void *source, const struct drive *d, const struct drive_question *asked,
	drive_reply_fn *fn, void *arg, struct err *err) {
	const struct question q = {.drive = d->name[4] - '0',
		.verb = asked->verb,
		.setting = asked->setting,
		.fn = fn,
		.arg = arg};
	return ask(source, &q, err);
}

static enum rc ask_scan(void *self, void (*found)(void *arg, const struct drive_found *f),
	void (*done)(void *arg, enum rc rc, const char *reason), void *arg, struct err *err) {
	const struct question q = {.drive = -1, .found = found, .done = done, .arg = arg};
	return ask(self, &q, err);
}

struct drive_source fake_drives_source(struct fake_drives *f) {
	static const struct drive_target_ops ops = {submit};
	return (struct drive_source){&ops, f, ask_scan};
}

struct fake_drives *fake_drives_new(void) {
	struct fake_drives *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	assert_int_equal(thread_start(&f->thread, "fake", run, f, NULL), RC_OK);
	return f;
}

void fake_drives_free(struct fake_drives *f) {
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* --- the drives --- */

static void fill_table(struct power_table *t) {
	static const int64_t watts[FAKE_STATES] = {25, 18, 12, 1, 0};
	t->count = FAKE_STATES;
	for (uint8_t i = 0; i < FAKE_STATES; i++)
		t->states[i] = (struct power_state){.state = i,
			.operational = i < 3,
			.max_uw = watts[i] ? watts[i] * 1000000 : 5000,
			.idle_uw = NONE,
			.active_uw = NONE,
			.entry_latency_us = NONE,
			.exit_latency_us = NONE};
}

int fake_drive_add(struct fake_drives *f, const char *serial) {
	pthread_mutex_lock(&f->lock);
	const int n = f->count++;
	struct fake_drive *d = &f->drives[n];
	*d = (struct fake_drive){.present = true, .refused_state = -1, .limit_mw = NONE};
	d->found.drive.kind = DRIVE_NVME;
	d->found.drive.state = DRIVE_LIVE;
	d->found.drive.capacity_bytes = 1000000;
	snprintf(d->found.drive.name, sizeof(d->found.drive.name), "nvme%d", n);
	snprintf(d->found.drive.address, sizeof(d->found.drive.address), "0000:0%d:00.0", n);
	snprintf(d->found.subsystem_nqn, sizeof(d->found.subsystem_nqn), "nqn.test:%d", n);
	str_copy(d->found.drive.serial, sizeof(d->found.drive.serial), serial);
	str_copy(d->found.drive.model, sizeof(d->found.drive.model), "Fake");
	str_copy(d->found.drive.firmware, sizeof(d->found.drive.firmware), "1.0");
	str_copy(d->found.drive.transport, sizeof(d->found.drive.transport), "pcie");
	fill_table(&d->detail.power);
	d->health.temperature_mc = 40000;
	d->health.interval_power_mw = NONE;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* Changes drive n under lock and wakes the thread. */
#define WITH_DRIVE(f, n, d, change) \
	do { \
		pthread_mutex_lock(&(f)->lock); \
		struct fake_drive *d = &(f)->drives[n]; \
		change; \
		pthread_cond_signal(&(f)->changed); \
		pthread_mutex_unlock(&(f)->lock); \
	} while (0)

void fake_drive_remove(struct fake_drives *f, int n) {
	WITH_DRIVE(f, n, d, d->present = false);
}

void fake_drive_return(struct fake_drives *f, int n) {
	WITH_DRIVE(f, n, d, {
		d->present = true;
		d->power_state = 0;
		d->limit_mw = NONE;
	});
}

void fake_drive_set_state(struct fake_drives *f, int n, enum drive_state s) {
	WITH_DRIVE(f, n, d, {
		d->found.drive.state = (uint8_t)s;
		d->power_state = s == DRIVE_LIVE ? d->power_state : 0;
	});
}

void fake_drive_set_power(struct fake_drives *f, int n, int state) {
	WITH_DRIVE(f, n, d, d->power_state = state);
}

int fake_drive_power(struct fake_drives *f, int n) {
	int state;
	WITH_DRIVE(f, n, d, state = d->power_state);
	return state;
}

void fake_drive_offer(struct fake_drives *f, int n, enum power_means means) {
	WITH_DRIVE(f, n, d, {
		d->detail.power.limits.means = (uint8_t)means;
		/* 12 W and 18 W, one below the other. */
		d->detail.power.limits.ocp_states[12] = OCP_POWER_STATE_VALID | 2;
		d->detail.power.limits.ocp_states[18] = OCP_POWER_STATE_VALID | 1;
	});
}

int64_t fake_drive_limit(struct fake_drives *f, int n) {
	int64_t limit_mw;
	WITH_DRIVE(f, n, d, limit_mw = d->limit_mw);
	return limit_mw;
}

void fake_drive_set_limit(struct fake_drives *f, int n, int64_t limit_mw) {
	WITH_DRIVE(f, n, d, d->limit_mw = limit_mw);
}

void fake_drive_set_subsystem(struct fake_drives *f, int n, const char *nqn) {
	WITH_DRIVE(f, n, d, {
		str_copy(d->found.subsystem_nqn, sizeof(d->found.subsystem_nqn), nqn);
		d->found.cntlid = (uint16_t)n;
		d->found.cntlid_matters = true;
	});
}

void fake_drive_hang(struct fake_drives *f, int n, bool hang) {
	WITH_DRIVE(f, n, d, d->hangs = hang);
}

void fake_drive_hang_power(struct fake_drives *f, int n, bool hang) {
	WITH_DRIVE(f, n, d, d->hangs_power = hang);
}

void fake_drive_refuse(struct fake_drives *f, int n, int state, enum rc rc, uint16_t status) {
	WITH_DRIVE(f, n, d, {
		d->refused_state = state;
		d->refused_rc = rc;
		d->refused_status = status;
	});
}

void fake_drive_set_apst(struct fake_drives *f, int n, bool apst) {
	WITH_DRIVE(f, n, d, d->detail.apst_supported = apst);
}

void fake_drive_set_temperature(struct fake_drives *f, int n, int64_t mc, int64_t power_mw) {
	WITH_DRIVE(f, n, d, {
		d->health.temperature_mc = mc;
		d->health.interval_power_mw = power_mw;
	});
}

void fake_drive_set_namespaces(struct fake_drives *f, int n, int count, bool mounted) {
	WITH_DRIVE(f, n, d, {
		d->detail.namespace_count = (uint8_t)count;
		for (int i = 0; i < count; i++)
			d->detail.namespaces[i].nsid = (uint32_t)i + 1;
		d->detail.namespaces[0].use_count = mounted;
		d->detail.namespaces[0].uses[0].kind = USE_MOUNT;
	});
}

int fake_drive_asked(struct fake_drives *f, int n, enum drive_verb verb) {
	int count;
	WITH_DRIVE(f, n, d, count = d->asked[verb]);
	return count;
}

void fake_drives_fail_scans(struct fake_drives *f, enum rc rc, const char *reason) {
	pthread_mutex_lock(&f->lock);
	f->scan_rc = rc;
	str_copy(f->scan_reason, sizeof(f->scan_reason), reason);
	pthread_mutex_unlock(&f->lock);
}

/* --- finding --- */

struct search {
	struct drives *ds;
	const char *serial;
	char *id;
};

static bool visit(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct search *s = arg;
	if (strcmp(d->serial, s->serial) != 0)
		return true;
	memcpy(s->id, d->id, DRIVE_ID_SIZE);
	return false;
}

static bool is_found(void *arg) {
	struct search *s = arg;
	s->id[0] = '\0';
	drives_each(s->ds, "", visit, s);
	return s->id[0] != '\0';
}

void fake_drive_id(struct drives *ds, const char *serial, char id[DRIVE_ID_SIZE]) {
	struct search s = {ds, serial, id};
	assert_true(eventually(is_found, &s));
}
