#include "base/clock.h"
#include "core/drive/registry.h"

/*
 * Who wants a drive in a certain power state has it there before anybody hears of the drive: it is
 * identified, set while it is still arriving, and then announced.
 */

#define HELD_TIMEOUTS 4 /* to be read, set and read back, with one of them lost */

void drives_set_gate(struct drives *ds, drives_gate_fn *fn, void *arg) {
	ds->gate = fn;
	ds->gate_arg = arg;
}

static bool is_held(struct entry *e) {
	return e->ds->gate && e->ds->gate(e->ds->gate_arg, e->d.id);
}

/* Under lock. */
static void let_in(struct entry *e) {
	struct todo *t = e->arrival ? calloc(1, sizeof(*t)) : NULL;
	if (t) {
		t->change = (enum drive_change)e->arrival;
		drain_add(e, t);
	}
	e->arriving = false;
	e->arrival = CHANGE_NONE;
	if (e->d.state == DRIVE_ARRIVING)
		e->d.state = DRIVE_LIVE;
	registry_touch(e);
}

bool arrive_at_start(struct entry *e) {
	if (is_held(e))
		return false;
	pthread_rwlock_wrlock(&e->ds->lock);
	let_in(e);
	pthread_rwlock_unlock(&e->ds->lock);
	return true;
}

void arrive(struct entry *e, enum drive_change change) {
	struct drives *ds = e->ds;
	const bool held = is_held(e);
	pthread_rwlock_wrlock(&ds->lock);
	e->arrival = (uint8_t)change;
	e->arriving = held && e->d.state != DRIVE_GONE;
	e->admit_due_ms = clock_mono_ms() + HELD_TIMEOUTS * ds->config.timeout_ms;
	/* The event goes to the end of this drain's own list. */
	if (!held && e->d.state != DRIVE_GONE)
		let_in(e);
	pthread_rwlock_unlock(&ds->lock);
	registry_progress(ds);
}

/* Under lock. True when the caller must start the drain after the lock. */
static bool admit(struct entry *e) {
	let_in(e);
	return drain_claim(e);
}

void drives_admit(struct drives *ds, const char *id) {
	pthread_rwlock_wrlock(&ds->lock);
	struct entry *e = registry_find(ds, id);
	const bool mine = e && e->arriving && admit(e);
	pthread_rwlock_unlock(&ds->lock);
	if (mine)
		drain_start(e);
	registry_progress(ds);
}

void arrive_overdue(struct drives *ds) {
	const int64_t now_ms = clock_mono_ms();
	pthread_rwlock_wrlock(&ds->lock);
	for (size_t i = 0; i < ds->count; i++) {
		struct entry *e = ds->entries[i];
		if (e->arriving && e->admit_due_ms <= now_ms)
			let_in(e);
	}
	pthread_rwlock_unlock(&ds->lock);
}
