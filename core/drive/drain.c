#include "core/drive/registry.h"

/*
 * Completions and news of one drive are done in order, by one job at a time: the entry's drain.
 */

void todo_free(struct todo *t) {
	if (!t)
		return;
	free(t->detail);
	free(t->health);
	free(t);
}

void drain_add(struct entry *e, struct todo *t) {
	t->next = NULL;
	*(e->last_todo ? &e->last_todo->next : &e->first_todo) = t;
	e->last_todo = t;
}

/* Under lock. */
static struct todo *pop(struct entry *e) {
	struct todo *t = e->first_todo;
	if (!t)
		return NULL;
	e->first_todo = t->next;
	if (!e->first_todo)
		e->last_todo = NULL;
	return t;
}

static void tell_watchers(struct entry *e, unsigned news) {
	struct drives *ds = e->ds;
	for (unsigned n = DRIVE_NEWS_IDENTIFIED; n <= DRIVE_NEWS_GONE; n++) {
		for (size_t i = 0; news & 1u << n && i < ds->watcher_count; i++)
			ds->watchers[i].fn(ds->watchers[i].arg, e->d.id, (enum drive_news)n);
	}
}

static bool is_arrival(const struct todo *t) {
	return t->change == CHANGE_ADDED || t->change == CHANGE_RETURNED;
}

/* A drive that the store knew, found at start, is no news to anybody but the watchers. */
static bool must_tell(struct entry *e, const struct todo *t) {
	const bool tell = t->change == CHANGE_RETURNED || e->unknown;
	e->unknown = false;
	return tell;
}

static void do_todo(struct entry *e, struct todo *t) {
	if (t->fn)
		t->fn(t->arg, &t->reply);
	if (t->detail)
		e->unknown = record_seen(e) || e->unknown;
	if (t->detail && is_arrival(t))
		arrive(e, must_tell(e, t) ? t->change : CHANGE_NONE);
	else if (t->change != CHANGE_NONE)
		record_change(e, t);
	if (t->health)
		record_health(e, t->health);
	tell_watchers(e, t->news);
}

/* False when all is done: from then on another drain of the entry may begin. */
static bool next_todo(struct entry *e, struct todo **t) {
	pthread_rwlock_wrlock(&e->ds->lock);
	*t = pop(e);
	if (!*t)
		e->draining = false;
	pthread_rwlock_unlock(&e->ds->lock);
	return *t != NULL;
}

/* The last that a drain does with ds: whoever waits in drives_drain may free it then. */
static void ended(struct drives *ds) {
	pthread_mutex_lock(&ds->progress_lock);
	pthread_rwlock_wrlock(&ds->lock);
	ds->draining--;
	pthread_rwlock_unlock(&ds->lock);
	pthread_cond_broadcast(&ds->progress);
	pthread_mutex_unlock(&ds->progress_lock);
}

static void run(void *arg) {
	struct entry *e = arg;
	struct drives *ds = e->ds;
	struct todo *t;
	while (next_todo(e, &t)) {
		do_todo(e, t);
		todo_free(t);
	}
	ended(ds);
}

bool drain_claim(struct entry *e) {
	if (!e->first_todo || e->draining)
		return false;
	e->draining = true;
	e->ds->draining++;
	return true;
}

bool drain_tell(struct entry *e, enum drive_news news) {
	struct todo *t = calloc(1, sizeof(*t));
	if (t) {
		t->news = 1u << news;
		drain_add(e, t);
	}
	return drain_claim(e);
}

static bool next_to_answer(struct entry *e, drive_reply_fn **fn, void **arg) {
	pthread_rwlock_wrlock(&e->ds->lock);
	struct todo *t = e->first_todo;
	while (t && !t->fn)
		t = t->next;
	if (t) {
		*fn = t->fn;
		*arg = t->arg;
		t->fn = NULL;
	} else {
		e->draining = false;
	}
	pthread_rwlock_unlock(&e->ds->lock);
	return t != NULL;
}

/* Nobody who waits is left waiting; the rest stays for the next tick. */
static void refuse(struct entry *e) {
	struct drives *ds = e->ds;
	struct drive_reply r = {.power_state = -1, .limit_mw = NONE};
	drive_reply_fn *fn;
	void *arg;
	r.rc = err_set(&r.err, RC_FULL, "too much work waits already");
	while (next_to_answer(e, &fn, &arg))
		fn(arg, &r);
	ended(ds);
}

bool drain_start(struct entry *e) {
	if (pool_submit(e->ds->jobs, run, e))
		return true;
	refuse(e);
	return false;
}

static struct entry *claim_next(struct drives *ds) {
	struct entry *e = NULL;
	pthread_rwlock_wrlock(&ds->lock);
	for (size_t i = 0; i < ds->count && !e; i++) {
		if (drain_claim(ds->entries[i]))
			e = ds->entries[i];
	}
	pthread_rwlock_unlock(&ds->lock);
	return e;
}

void drain_start_all(struct drives *ds) {
	struct entry *e;
	while ((e = claim_next(ds))) {
		if (!drain_start(e))
			break;
	}
}

void drain_finish(struct drives *ds) {
	struct entry *e;
	while ((e = claim_next(ds)))
		run(e);
}
