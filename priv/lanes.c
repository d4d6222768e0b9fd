#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"
#include "priv/lanes.h"

struct lane {
	struct lanes *all;
	char name[LANE_NAME_SIZE];
	bool busy;               /* has a thread */
	struct lane_op *current; /* under way, its end not yet seen */
	unsigned first, count;   /* of the queue */
	struct lane_op *queue[LANE_QUEUE_MAX];
};

struct lanes {
	pthread_mutex_t mutex; /* guards all below and the ops' own fields */
	pthread_cond_t idle;   /* busy became 0 */
	int64_t deadline_ms;
	unsigned busy, max;
	struct lane lanes[];
};

struct lanes *lanes_new(unsigned max_lanes, int64_t deadline_ms, struct err *err) {
	struct lanes *l = NULL;

	if (max_lanes >= 1 && max_lanes <= LANES_MAX)
		l = calloc(1, sizeof(*l) + max_lanes * sizeof(l->lanes[0]));
	if (!l) {
		err_set(err, RC_NOMEM, "no memory for %u lanes", max_lanes);
		return NULL;
	}
	pthread_mutex_init(&l->mutex, NULL);
	cond_init(&l->idle);
	l->deadline_ms = deadline_ms;
	l->max = max_lanes;
	for (unsigned i = 0; i < max_lanes; i++)
		l->lanes[i].all = l;
	return l;
}

/* --- a lane's thread ------------------------------------------------------------------------- */

static struct lane_op *pop(struct lane *lane) {
	struct lane_op *op = lane->queue[lane->first];

	lane->first = (lane->first + 1) % LANE_QUEUE_MAX;
	lane->count--;
	return op;
}

/* Under the lock. False when the lane has nothing to do: its thread ends. */
static bool take_next(struct lane *lane) {
	struct lanes *l = lane->all;

	if (lane->count > 0) {
		lane->current = pop(lane);
		return true;
	}
	lane->busy = false;
	if (--l->busy == 0)
		pthread_cond_broadcast(&l->idle);
	return false;
}

static void *lane_main(void *arg) {
	struct lane *lane = arg;
	struct lanes *l = lane->all;

	pthread_mutex_lock(&l->mutex);
	while (take_next(lane)) {
		struct lane_op *op = lane->current;
		bool late;

		pthread_mutex_unlock(&l->mutex);
		op->kind->run(op);
		pthread_mutex_lock(&l->mutex);
		late = op->overdue;
		lane->current = NULL;
		pthread_mutex_unlock(&l->mutex);
		op->kind->finish(op, late);
		op->kind->release(op);
		pthread_mutex_lock(&l->mutex);
	}
	pthread_mutex_unlock(&l->mutex);
	return NULL;
}

static enum rc start(struct lane *lane, struct err *err) {
	pthread_t thread;
	enum rc rc = thread_start(&thread, "lane", lane_main, lane, err);

	if (rc != RC_OK)
		return rc;
	pthread_detach(thread);
	lane->busy = true;
	lane->all->busy++;
	return RC_OK;
}

/* --- submitting ------------------------------------------------------------------------------ */

static struct lane *lane_for(struct lanes *l, const char *name) {
	struct lane *spare = NULL;

	for (unsigned i = 0; i < l->max; i++) {
		if (l->lanes[i].busy && strcmp(l->lanes[i].name, name) == 0)
			return &l->lanes[i];
		if (!l->lanes[i].busy && !spare)
			spare = &l->lanes[i];
	}
	if (spare)
		str_copy(spare->name, sizeof(spare->name), name);
	return spare;
}

static enum rc submit(struct lanes *l, const char *name, struct lane_op *op, struct err *err) {
	struct lane *lane = lane_for(l, name);

	if (!lane)
		return err_set(err, RC_FULL, "all %u lanes are busy", l->max);
	if (lane->count == LANE_QUEUE_MAX)
		return err_set(err, RC_FULL, "%d commands wait for %s", LANE_QUEUE_MAX, name);
	/* The new thread waits for the lock that is held here. */
	if (!lane->busy && start(lane, err) != RC_OK)
		return RC_FULL;
	op->overdue = false;
	op->deadline_mono_ms = clock_mono_ms() + l->deadline_ms;
	lane->queue[(lane->first + lane->count++) % LANE_QUEUE_MAX] = op;
	return RC_OK;
}

enum rc lanes_submit(struct lanes *l, const char *lane, struct lane_op *op, struct err *err) {
	enum rc rc;

	pthread_mutex_lock(&l->mutex);
	rc = submit(l, lane, op, err);
	pthread_mutex_unlock(&l->mutex);
	return rc;
}

/* --- deadlines ------------------------------------------------------------------------------- */

/* The queue is in order of deadlines. Returns the lane's next one, INT64_MAX: none. */
static int64_t tick_lane(struct lane *lane, int64_t now) {
	struct lane_op *op = lane->current;
	int64_t next = INT64_MAX;

	if (op && !op->overdue && op->deadline_mono_ms <= now) {
		op->overdue = true;
		op->kind->overdue(op, true);
	}
	if (op && !op->overdue)
		next = op->deadline_mono_ms;
	while (lane->count > 0 && lane->queue[lane->first]->deadline_mono_ms <= now) {
		op = pop(lane);
		op->kind->overdue(op, false);
		op->kind->release(op);
	}
	if (lane->count > 0 && lane->queue[lane->first]->deadline_mono_ms < next)
		next = lane->queue[lane->first]->deadline_mono_ms;
	return next;
}

int64_t lanes_tick(struct lanes *l) {
	int64_t now = clock_mono_ms(), next = INT64_MAX;

	pthread_mutex_lock(&l->mutex);
	for (unsigned i = 0; i < l->max; i++) {
		int64_t lane_next = tick_lane(&l->lanes[i], now);

		if (lane_next < next)
			next = lane_next;
	}
	pthread_mutex_unlock(&l->mutex);
	return next == INT64_MAX ? -1 : next - now;
}

/* --- the end --------------------------------------------------------------------------------- */

static void drop_queued(struct lanes *l) {
	for (unsigned i = 0; i < l->max; i++)
		while (l->lanes[i].count > 0) {
			struct lane_op *op = pop(&l->lanes[i]);

			op->kind->release(op);
		}
}

bool lanes_free(struct lanes *l, int64_t wait_ms) {
	struct timespec deadline = thread_deadline(wait_ms);
	bool idle;

	if (!l)
		return true;
	pthread_mutex_lock(&l->mutex);
	drop_queued(l);
	while (l->busy > 0 && cond_wait_until(&l->idle, &l->mutex, &deadline))
		;
	idle = l->busy == 0;
	pthread_mutex_unlock(&l->mutex);
	if (!idle)
		return false;
	pthread_mutex_destroy(&l->mutex);
	pthread_cond_destroy(&l->idle);
	free(l);
	return true;
}
