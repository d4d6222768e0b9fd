#include "core/events.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "db/events.h"

#define BATCH 256
#define RETRY_MS 1000
#define COMPLAIN_MS 60000

/*
 * lock guards subscribers, count, pending, stopping and complained_ms, and is held for moments:
 * never while a subscriber runs or the store is asked. last_id is the publisher thread's own.
 */
struct subscriber {
	void (*fn)(void *arg, const struct event *e);
	void *arg;
};

struct events {
	struct db *control;
	pthread_t publisher;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool pending;
	bool stopping;
	int64_t complained_ms;
	size_t count;
	struct subscriber subscribers[EVENTS_MAX_SUBSCRIBERS];
	int64_t last_id;
};

const struct actor actor_system = {.name = "system", .role = ROLE_ADMINISTRATOR};

/* The store may stay full for days: say so once in a while. */
static void complain(struct events *ev, const char *what, const struct err *err) {
	const int64_t now_ms = clock_mono_ms();
	pthread_mutex_lock(&ev->lock);
	const bool due =
		ev->complained_ms == INT64_MIN || now_ms - ev->complained_ms >= COMPLAIN_MS;
	if (due)
		ev->complained_ms = now_ms;
	pthread_mutex_unlock(&ev->lock);
	if (due)
		log_err(LOG_LEVEL_ERROR, "events", what, err);
}

/* --- the publisher --- */

struct batch {
	struct events *ev;
	size_t count;
	struct subscriber subscribers[EVENTS_MAX_SUBSCRIBERS];
	int handed;
};

static bool hand_out(void *arg, const struct event *e) {
	struct batch *b = arg;
	for (size_t i = 0; i < b->count; i++)
		b->subscribers[i].fn(b->subscribers[i].arg, e);
	b->ev->last_id = e->id;
	b->handed++;
	return true;
}

static enum rc publish_batch(struct batch *b, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(b->ev->control, &c, err);
	if (rc)
		return rc;
	rc = db_event_list(c, b->ev->last_id, BATCH, hand_out, b, err);
	db_read_end(c);
	metric_add(METRIC_EVENTS, b->handed);
	return rc;
}

static void take_subscribers(struct events *ev, struct batch *b) {
	pthread_mutex_lock(&ev->lock);
	b->count = ev->count;
	for (size_t i = 0; i < ev->count; i++)
		b->subscribers[i] = ev->subscribers[i];
	pthread_mutex_unlock(&ev->lock);
}

/* False when the store failed and the rest is to be tried again later. */
static bool publish_all(struct events *ev) {
	struct batch b;
	do {
		struct err err;
		b = (struct batch){.ev = ev};
		take_subscribers(ev, &b);
		if (publish_batch(&b, &err)) {
			complain(ev, "reading events", &err);
			return false;
		}
	} while (b.handed == BATCH);
	return true;
}

static void wait_for_work(struct events *ev, bool retry) {
	const struct timespec deadline = thread_deadline(retry ? RETRY_MS : -1);
	bool in_time = true;
	while (!ev->pending && !ev->stopping && in_time)
		in_time = cond_wait_until(&ev->wake, &ev->lock, &deadline);
	ev->pending = false;
}

static void *publish(void *arg) {
	struct events *ev = arg;
	bool good = true;
	pthread_mutex_lock(&ev->lock);
	while (!ev->stopping) {
		wait_for_work(ev, !good);
		pthread_mutex_unlock(&ev->lock);
		good = publish_all(ev);
		pthread_mutex_lock(&ev->lock);
	}
	pthread_mutex_unlock(&ev->lock);
	return NULL;
}

/* --- life --- */

static enum rc find_last(struct events *ev, struct err *err) {
	struct db_conn *c;
	int64_t first;
	enum rc rc = db_read_begin(ev->control, &c, err);
	if (rc)
		return rc;
	rc = db_event_range(c, &first, &ev->last_id, err);
	db_read_end(c);
	return rc;
}

struct events *events_new(struct db *control, struct err *err) {
	struct events *ev = calloc(1, sizeof(*ev));
	if (!ev) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	ev->control = control;
	ev->complained_ms = INT64_MIN;
	pthread_mutex_init(&ev->lock, NULL);
	cond_init(&ev->wake);
	if (find_last(ev, err) || thread_start(&ev->publisher, "events", publish, ev, err)) {
		events_free(ev);
		return NULL;
	}
	ev->started = true;
	return ev;
}

void events_free(struct events *ev) {
	if (!ev)
		return;
	if (ev->started) {
		pthread_mutex_lock(&ev->lock);
		ev->stopping = true;
		pthread_cond_signal(&ev->wake);
		pthread_mutex_unlock(&ev->lock);
		pthread_join(ev->publisher, NULL);
	}
	pthread_cond_destroy(&ev->wake);
	pthread_mutex_destroy(&ev->lock);
	free(ev);
}

/* --- writers --- */

enum rc events_add(struct events *ev unused_arg, struct db_conn *c, enum event_type type,
	const struct actor *actor, const char *object, const char *data, struct err *err) {
	/* The row borrows data, which the insert only reads. */
	struct event e = {.at_ms = clock_wall_ms(), .type = type, .data = (char *)(uintptr_t)data};
	str_copy(e.object, sizeof(e.object), object);
	str_copy(e.actor, sizeof(e.actor), actor->name);
	return db_event_insert(c, &e, err);
}

enum rc events_audit(struct db_conn *c, const struct actor *actor, const char *action,
	const char *object, const char *outcome, const char *detail, struct err *err) {
	struct audit_entry a = {.at_ms = clock_wall_ms(), .detail = (char *)(uintptr_t)detail};
	str_copy(a.actor, sizeof(a.actor), actor->name);
	str_copy(a.address, sizeof(a.address), actor->address);
	str_copy(a.request_id, sizeof(a.request_id), actor->request_id);
	str_copy(a.action, sizeof(a.action), action);
	str_copy(a.object, sizeof(a.object), object);
	str_copy(a.outcome, sizeof(a.outcome), outcome);
	return db_audit_insert(c, &a, err);
}

void events_publish(struct events *ev) {
	pthread_mutex_lock(&ev->lock);
	ev->pending = true;
	pthread_cond_signal(&ev->wake);
	pthread_mutex_unlock(&ev->lock);
}

static enum rc record(struct events *ev, enum event_type type, const struct actor *actor,
	const char *object, const char *data, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(ev->control, &c, err);
	if (rc)
		return rc;
	rc = events_add(ev, c, type, actor, object, data, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	return db_write_commit(c, err);
}

void events_record(struct events *ev, enum event_type type, const struct actor *actor,
	const char *object, const char *data) {
	struct err err;
	if (record(ev, type, actor, object, data, &err))
		complain(ev, "recording an event", &err);
	else
		events_publish(ev);
}

enum rc events_subscribe(struct events *ev, void (*fn)(void *arg, const struct event *e), void *arg,
	struct err *err) {
	pthread_mutex_lock(&ev->lock);
	const bool room = ev->count < EVENTS_MAX_SUBSCRIBERS;
	if (room)
		ev->subscribers[ev->count++] = (struct subscriber){fn, arg};
	pthread_mutex_unlock(&ev->lock);
	return room ? RC_OK
		    : err_set(err, RC_FULL, "more than %d subscribers", EVENTS_MAX_SUBSCRIBERS);
}

/* --- reading ---------------------------------------------------------------------------------- */

enum rc events_list(struct events *ev, int64_t after, int limit,
	bool (*visit)(void *arg, const struct event *e), void *arg, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(ev->control, &c, err);
	if (rc == RC_OK)
		rc = db_event_list(c, after, limit, visit, arg, err);
	db_read_end(c);
	return rc;
}

enum rc events_range(struct events *ev, int64_t *first, int64_t *last, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(ev->control, &c, err);
	if (rc == RC_OK)
		rc = db_event_range(c, first, last, err);
	db_read_end(c);
	return rc;
}

enum rc events_audit_list(struct events *ev, int64_t before, int limit,
	bool (*visit)(void *arg, const struct audit_entry *a), void *arg, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(ev->control, &c, err);
	if (rc == RC_OK)
		rc = db_audit_list(c, before, limit, visit, arg, err);
	db_read_end(c);
	return rc;
}
