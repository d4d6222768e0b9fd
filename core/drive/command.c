#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/drive/registry.h"

/* --- the lists; under lock --- */

static void list_add(struct command_list *l, struct command *c) {
	c->next = NULL;
	c->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = c;
	l->last = c;
}

static void list_remove(struct command_list *l, struct command *c) {
	*(c->prev ? &c->prev->next : &l->first) = c->next;
	*(c->next ? &c->next->prev : &l->last) = c->prev;
}

void commands_free(struct command_list *l) {
	while (l->first) {
		struct command *c = l->first;
		list_remove(l, c);
		todo_free(c->todo);
		free(c);
	}
}

/* --- taking an answer in; under lock --- */

#define KEEP (-1)
#define STATE_AFTER(state) ((state)-KEEP)

/* What an answer says about the drive, plus one; 0 where it says nothing. */
static const uint8_t states_after[RC_COUNT_] = {
	[RC_OK] = STATE_AFTER(DRIVE_LIVE),
	[RC_REFUSED] = STATE_AFTER(DRIVE_LIVE),
	[RC_UNSUPPORTED] = STATE_AFTER(DRIVE_LIVE),
	[RC_TIMEOUT] = STATE_AFTER(DRIVE_UNRESPONSIVE),
	[RC_FORBIDDEN] = STATE_AFTER(DRIVE_FAILED),
	[RC_UNAVAILABLE] = STATE_AFTER(DRIVE_RESETTING), /* without a helper scans fail it */
	[RC_CORRUPT] = STATE_AFTER(DRIVE_FAILED),
	[RC_IO] = STATE_AFTER(DRIVE_FAILED),
};

static void take_state(struct entry *e, enum rc rc, struct todo *t) {
	const int state = states_after[rc] + KEEP;
	/* At the end of the service its sources give up, not the drives. */
	if (state == KEEP || e->d.state == DRIVE_GONE || e->ds->stopping)
		return;
	if (state == DRIVE_LIVE)
		e->d.seen_ms = clock_wall_ms();
	if (state == e->d.state || (rc == RC_OK && e->d.state == DRIVE_ARRIVING))
		return;
	t->change = CHANGE_STATE;
	t->from_state = e->d.state;
	t->to_state = (uint8_t)state;
	t->news |= 1u << DRIVE_NEWS_STATE;
	e->d.state = (uint8_t)state;
}

static bool is_in_use(const struct drive_detail *d) {
	for (int i = 0; i < d->namespace_count; i++) {
		if (d->namespaces[i].use_count)
			return true;
	}
	return false;
}

/* As far as setting states depends on it. */
static bool same_power(const struct drive_detail *a, const struct drive_detail *b) {
	if (a->power.count != b->power.count || a->apst_supported != b->apst_supported ||
		memcmp(&a->power.limits, &b->power.limits, sizeof(a->power.limits)) != 0)
		return false;
	for (int i = 0; i < a->power.count; i++) {
		const struct power_state *x = &a->power.states[i], *y = &b->power.states[i];
		if (x->state != y->state || x->operational != y->operational ||
			x->max_uw != y->max_uw)
			return false;
	}
	return true;
}

/* The power state that was read before may have been lost with a reset. */
static void begin_anew(struct entry *e, struct todo *t) {
	e->anew = false;
	e->d.power_state = -1;
	e->observed.power_state = -1;
	e->observed.limit_mw = NONE;
	t->news |= 1u << DRIVE_NEWS_IDENTIFIED;
	if (!e->announced)
		t->change = e->returned ? CHANGE_RETURNED : CHANGE_ADDED;
	e->announced = true;
	if (e->health_due_ms == INT64_MAX)
		work_plan(e);
}

/* Most drives have one namespace, and a detail room for many. */
static struct drive_detail *detail_dup(const struct drive_detail *d) {
	const size_t bytes = drive_detail_bytes(d);
	struct drive_detail *copy = malloc(bytes);
	if (copy)
		memcpy(copy, d, bytes);
	return copy;
}

/* What a scan would find as well; it comes later where the kernel tells nothing. */
static void take_capacity(struct entry *e, const struct drive_detail *d) {
	uint64_t bytes = 0;
	if (e->d.kind != DRIVE_NVME || d->namespaces_cut)
		return;
	for (int i = 0; i < d->namespace_count; i++)
		bytes += d->namespaces[i].size_bytes;
	e->d.capacity_bytes = bytes;
}

static void take_detail(struct entry *e, struct todo *t) {
	const bool anew = e->anew || !e->detail || !same_power(e->detail, t->detail);
	struct drive_detail *detail = detail_dup(t->detail);
	if (!detail)
		return;
	free(e->detail);
	e->detail = detail;
	e->d.power_state_count = t->detail->power.count;
	e->d.in_use = is_in_use(t->detail);
	take_capacity(e, t->detail);
	if (anew)
		begin_anew(e, t);
}

static int32_t to_int32(int64_t v) {
	return v == NONE || v > INT32_MAX || v < -INT32_MAX ? INT32_MIN : (int32_t)v;
}

static void take_health(struct entry *e, const struct drive_health *h) {
	e->health = *h;
	e->has_health = true;
	e->d.health = (uint8_t)drive_health_judge(h);
	e->d.temperature_mc = to_int32(h->temperature_mc);
	e->d.measured_mw = to_int32(drive_health_power_mw(h));
	e->d.measured_quality = e->d.kind == DRIVE_SIMULATED ? QUALITY_SIMULATED : QUALITY_MEASURED;
}

static void take_power(struct entry *e, struct todo *t) {
	e->d.power_state = (int8_t)t->reply.power_state;
	e->observed.power_state = t->reply.power_state;
	e->observed.limit_mw = t->reply.limit_mw;
	t->news |= 1u << DRIVE_NEWS_POWER_READ;
}

/* What was to be read was left out; the state was read on the way. */
static void take_sleep(struct entry *e, struct todo *t) {
	metric_add(METRIC_DRIVE_ASLEEP, 1);
	e->observed.at_ms = clock_wall_ms();
	e->observed.last = t->reply.err;
	e->d.power_state = (int8_t)t->reply.power_state;
	e->observed.power_state = t->reply.power_state;
	t->news |= 1u << DRIVE_NEWS_POWER_READ;
}

static void take_in(struct entry *e, enum drive_verb verb, struct todo *t) {
	const enum rc rc = t->reply.rc;
	const bool is_power = verb == DRIVE_POWER_GET || verb == DRIVE_POWER_SET;
	take_state(e, rc, t);
	if (verb == DRIVE_IDENTIFY) {
		e->identifying = false;
		e->settled = true;
	}
	if (is_power || rc) {
		e->observed.at_ms = clock_wall_ms();
		e->observed.last = t->reply.err;
	}
	if (!rc && t->detail)
		take_detail(e, t);
	if (!rc && t->health)
		take_health(e, t->health);
	if (!rc && is_power)
		take_power(e, t);
	if (!rc && t->reply.asleep)
		take_sleep(e, t);
	registry_touch(e);
}

/* --- answers --- */

/* Copies what lives only during the call; without memory the answer is that there was none. */
static void copy_reply(struct todo *t, const struct drive_reply *r) {
	t->reply = *r;
	t->reply.detail = NULL;
	t->reply.health = NULL;
	if (r->rc == RC_OK && r->detail)
		t->detail = detail_dup(r->detail);
	if (r->rc == RC_OK && r->health && (t->health = malloc(sizeof(*t->health))))
		*t->health = *r->health;
	if (r->rc == RC_OK && ((r->detail && !t->detail) || (r->health && !t->health)))
		t->reply.rc = err_set(&t->reply.err, RC_NOMEM, "out of memory");
	t->reply.detail = t->detail;
	t->reply.health = t->health;
}

/* The todo of an answer; a late one has nobody to answer to. NULL when memory is out. */
static struct todo *take_todo(struct command *c) {
	struct todo *t = c->todo;
	c->todo = NULL;
	return t ? t : calloc(1, sizeof(*t));
}

/* Under lock. */
static void answer(struct command *c, struct todo *t) {
	struct entry *e = c->entry;
	if (!c->timed_out && !c->internal)
		e->waiters--;
	take_in(e, c->verb, t);
	drain_add(e, t);
}

static void on_reply(void *arg, const struct drive_reply *r) {
	struct command *c = arg;
	struct entry *e = c->entry;
	struct drives *ds = e->ds;
	pthread_rwlock_wrlock(&ds->lock);
	/* A target that gives up by itself answers once more: the command stays. */
	const bool stays = r->more;
	struct todo *t = stays && c->timed_out ? NULL : take_todo(c);
	if (t) {
		copy_reply(t, r);
		t->reply.late = c->timed_out;
		answer(c, t);
	}
	if (stays && !c->timed_out) {
		metric_add(METRIC_DRIVE_TIMEOUTS, 1);
		list_remove(&ds->waiting, c);
		list_add(&ds->overdue, c);
		c->timed_out = true;
	} else if (!stays) {
		list_remove(c->timed_out ? &ds->overdue : &ds->waiting, c);
		e->commands--;
		free(c);
	}
	const bool mine = drain_claim(e);
	pthread_rwlock_unlock(&ds->lock);
	registry_progress(ds);
	if (mine)
		drain_start(e);
	if (r->rc == RC_NOT_FOUND)
		drives_rescan(ds);
}

/* Under lock. */
static void expire(struct drives *ds, struct command *c) {
	struct todo *t = take_todo(c);
	t->reply = (struct drive_reply){.power_state = -1, .limit_mw = NONE};
	t->reply.rc = err_set(&t->reply.err, RC_TIMEOUT,
		"the drive has not answered within %lld ms", (long long)ds->config.timeout_ms);
	metric_add(METRIC_DRIVE_TIMEOUTS, 1);
	answer(c, t);
	list_remove(&ds->waiting, c);
	list_add(&ds->overdue, c);
	c->timed_out = true;
}

void commands_expire(struct drives *ds) {
	const int64_t now_ms = clock_mono_ms();
	bool any = false;
	pthread_rwlock_wrlock(&ds->lock);
	while (ds->waiting.first && ds->waiting.first->deadline_ms <= now_ms) {
		expire(ds, ds->waiting.first);
		any = true;
	}
	pthread_rwlock_unlock(&ds->lock);
	if (any)
		registry_progress(ds);
	drain_start_all(ds);
}

/* --- asking --- */

static struct command *command_new(
	enum drive_verb verb, bool internal, drive_reply_fn *fn, void *arg) {
	struct command *c = calloc(1, sizeof(*c));
	struct todo *t = calloc(1, sizeof(*t));
	if (!c || !t) {
		free(c);
		free(t);
		return NULL;
	}
	t->fn = fn;
	t->arg = arg;
	*c = (struct command){.verb = verb, .internal = internal, .todo = t};
	return c;
}

static void command_drop(struct command *c) {
	todo_free(c->todo);
	free(c);
}

static enum rc check(
	const struct drives *ds, const struct entry *e, bool internal, struct err *err) {
	if (!e)
		return err_set(err, RC_NOT_FOUND, "no such drive");
	if (ds->stopping)
		return err_set(err, RC_UNAVAILABLE, "the service is stopping");
	if (e->d.state == DRIVE_GONE)
		return err_set(err, RC_UNAVAILABLE, "the drive is gone");
	if (!internal && e->waiters >= DRIVE_MAX_WAITERS)
		return err_set(err, RC_FULL, "others already wait for this drive");
	if (e->commands >= DRIVE_MAX_COMMANDS)
		return err_set(err, RC_FULL, "the drive has not answered earlier commands");
	return RC_OK;
}

/* Under lock. */
static void enter(struct drives *ds, struct entry *e, struct command *c) {
	c->entry = e;
	c->deadline_ms = clock_mono_ms() + ds->config.timeout_ms;
	list_add(&ds->waiting, c);
	e->commands++;
	e->waiters += !c->internal;
	ds->calling++;
}

/* The target did not take it: as if it had never been asked, unless it was answered as overdue
 * meanwhile: then true. */
static bool leave(struct drives *ds, struct command *c) {
	struct entry *e = c->entry;
	pthread_rwlock_wrlock(&ds->lock);
	const bool answered = c->timed_out;
	list_remove(answered ? &ds->overdue : &ds->waiting, c);
	e->commands--;
	if (!answered && !c->internal)
		e->waiters--;
	if (c->verb == DRIVE_IDENTIFY)
		e->identifying = false;
	pthread_rwlock_unlock(&ds->lock);
	command_drop(c);
	return answered;
}

/* A bit for each state that is not operational. */
static uint32_t sleeping_states(const struct power_table *t) {
	uint32_t states = 0;
	for (int i = 0; i < t->count; i++)
		states |= (uint32_t)!t->states[i].operational << i;
	return states;
}

/* Under lock. Does what is asked end a sleep? */
static bool wakes(const struct entry *e, const struct drive_question *q) {
	const struct power_state *s =
		e->detail ? power_table_find(&e->detail->power, e->d.power_state) : NULL;
	return s && !s->operational && q->verb != DRIVE_POWER_GET && !q->asleep;
}

/* Under lock. */
static struct drive_question question(const struct entry *e, enum drive_verb verb,
	const struct power_setting *setting, bool let_sleep) {
	struct drive_question q = {
		.verb = verb, .setting = {.state = -1, .fallback_state = -1, .limit_mw = NONE}};
	if (setting)
		q.setting = *setting;
	if (e->detail) {
		q.means = e->detail->power.limits.means;
		q.uuid_index = e->detail->power.limits.ocp_uuid_index;
		q.logs = e->detail->logs;
		q.asleep = let_sleep ? sleeping_states(&e->detail->power) : 0;
	}
	return q;
}

/* let_sleep: only where that does not end a sleep. */
static enum rc ask(struct drives *ds, const char *id, const struct power_setting *setting,
	bool let_sleep, struct command *c, struct err *err) {
	if (!c)
		return err_set(err, RC_NOMEM, "out of memory");
	pthread_rwlock_wrlock(&ds->lock);
	struct entry *e = registry_find(ds, id);
	enum rc rc = check(ds, e, c->internal, err);
	if (rc) {
		pthread_rwlock_unlock(&ds->lock);
		command_drop(c);
		return rc;
	}
	enter(ds, e, c);
	const struct drive_source source = e->source->is;
	const struct drive d = e->d;
	const struct drive_question q = question(e, c->verb, setting, let_sleep);
	const bool ends_sleep = wakes(e, &q);
	pthread_rwlock_unlock(&ds->lock);
	metric_add(METRIC_DRIVE_COMMANDS, 1);
	metric_add(METRIC_DRIVE_WAKES, ends_sleep);
	rc = source.ops->submit(source.self, &d, &q, on_reply, c, err);
	if (rc && leave(ds, c))
		rc = RC_OK;
	registry_end_call(ds);
	return rc;
}

enum rc drives_submit(struct drives *ds, const char *id, enum drive_verb verb,
	const struct power_setting *setting, bool internal, drive_reply_fn *fn, void *arg,
	struct err *err) {
	struct command *c = command_new(verb, internal, fn, arg);
	return ask(ds, id, setting, false, c, err);
}

enum rc command_poll(struct drives *ds, const char *id, enum drive_verb verb, struct err *err) {
	struct command *c = command_new(verb, true, NULL, NULL);
	return ask(ds, id, NULL, true, c, err);
}
