/* A change of a BMC's limit on the wire: between two readings, in the same session. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/bmc/foreign_json.h"
#include "core/bmc/poll.h"

bool poll_limit_is_due(struct poll *x) {
	pthread_mutex_lock(&x->owner->lock);
	bool due = x->limit && x->limit_due_ms <= clock_mono_ms();
	pthread_mutex_unlock(&x->owner->lock);
	return due;
}

/* --- the end --- */

void poll_limit_end(struct poll *x, const struct limit_outcome *o) {
	pthread_mutex_lock(&x->owner->lock);
	struct poll_limit *l = x->limit;
	x->limit = NULL;
	pthread_mutex_unlock(&x->owner->lock);
	if (l)
		l->fn(l->arg, o);
	free(l);
}

void poll_limit_fail(struct poll *x, const char *reason) {
	struct limit_outcome o = {.known = false};
	err_set(&o.err, RC_UNAVAILABLE, "the BMC cannot be asked: %s", reason);
	poll_limit_end(x, &o);
	poll_rest(x, x->due_ms);
}

static void conclude(struct poll *x) {
	const struct limit_change *l = &x->limit->change;
	const struct limit_outcome o = {.err = l->err, .known = l->known, .limit_mw = l->limit_mw};
	if (l->known)
		bmc_walk_note_limit(&x->walk, l->limit_mw);
	x->extras_due_ms = 0;
	poll_limit_end(x, &o);
	poll_rest(x, x->due_ms);
}

/* --- one step after the other --- */

static void go_on(struct poll *x) {
	const struct limit_change *l = &x->limit->change;
	if (!l->next[0])
		conclude(x);
	else if (l->wait_ms)
		poll_pause(x, clock_mono_ms() + l->wait_ms);
	else
		poll_ask(x, STEP_LIMIT);
}

static void begin_change(struct poll *x) {
	struct poll_limit *l = x->limit;
	struct bmc_limit_places places;
	bmc_walk_limit_places(&x->walk, &places);
	limit_begin(&l->change, &places, l->wish_mw, clock_mono_ms());
	l->begun = true;
	x->requests = 0;
	x->logged_in = false;
	go_on(x);
}

void poll_limit_begin(struct poll *x) {
	struct poll_limit *l = x->limit;
	x->for_limit = true;
	if (l->begun) {
		poll_ask(x, STEP_LIMIT);
	} else if (x->walk.discovered) {
		begin_change(x);
	} else if (l->read) {
		poll_limit_fail(x, x->last_failure ? x->last_failure : x->walk.reading.reason);
	} else {
		l->read = true;
		poll_read(x);
	}
}

void poll_limit_judge(struct poll *x) {
	const struct poll_answer *a = &x->answer;
	struct foreign_json json = {0};
	/* An answer of any status may say why; one that is no JSON says nothing. */
	enum rc rc = a->rc ? a->rc : foreign_json_parse(a->body, a->len, &json, NULL);
	const struct limit_answer answer = {.rc = a->rc,
		.status = a->status,
		.doc = !rc || rc == RC_REFUSED ? json.doc : NULL,
		.etag = a->etag,
		.location = a->location,
		.retry_after_s = a->retry_after_s,
		.now_ms = clock_mono_ms()};
	limit_feed(&x->limit->change, &answer);
	json_decref(json.doc);
	go_on(x);
}

/* --- callers --- */

/* Under the lock. */
static enum rc add(struct poller *p, const char *host_id, struct poll_limit *l, struct err *err) {
	struct poll *x = p->polls;
	while (x && (x->dead || strcmp(x->host_id, host_id) != 0))
		x = x->next;
	if (!x || p->stopping)
		return err_set(err, RC_UNSUPPORTED, "the host has no BMC");
	if (x->limit)
		return err_set(err, RC_FULL, "a change of this limit is under way");
	x->limit = l;
	x->limit_due_ms = clock_mono_ms();
	return RC_OK;
}

enum rc poller_set_limit(struct poller *p, const char *host_id, int64_t limit_mw,
	poller_limit_fn *fn, void *arg, struct err *err) {
	struct poll_limit *l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(err, RC_NOMEM, "no memory for a change");
	l->wish_mw = limit_mw;
	l->fn = fn;
	l->arg = arg;
	pthread_mutex_lock(&p->lock);
	enum rc rc = add(p, host_id, l, err);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		free(l);
	return rc;
}
