/*
 * What the files of tasks share.
 *
 * Locks: store_lock is held over what writes a job, so that its rows are written in one order;
 * `lock` guards the list and all in the jobs, for moments. Order: store_lock, the store's writer,
 * lock. A job is freed by whoever takes it out of the list, under store_lock.
 */
#ifndef DRIVEWATT_CORE_TASKS_IMPL_H
#define DRIVEWATT_CORE_TASKS_IMPL_H

#include <pthread.h>

#include "core/tasks.h"

#define MAX_KINDS 4

struct task_step {
	struct job *job;
	struct task_target t;
	bool dirty;            /* the store lacks something of it */
	int64_t not_before_ms; /* monotonic */
};

/* A task that is not over, or whose end is not stored yet. */
struct job {
	struct job *next;
	struct tasks *all;
	const struct task_kind *kind;
	struct task task;
	bool dirty;     /* its row, likewise */
	unsigned first; /* no target before it is waiting */
	struct task_step steps[];
};

struct tasks {
	struct tasks_config config;
	struct db *control;
	struct events *events;
	struct timers *timers;
	struct pool *jobs;
	timer_id tick;
	size_t kind_count; /* fixed once started, like the kinds */
	struct task_kind kinds[MAX_KINDS];
	pthread_mutex_t store_lock;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool stopping;
	bool working; /* a job of ours is queued or runs */
	bool due;     /* progress shall be stored */
	unsigned running;
	unsigned open;            /* jobs, and those about to be made */
	struct job *first, *last; /* oldest first */
};

/* --- tasks.c --- */

const struct task_kind *tasks_kind(const struct tasks *ts, const char *name);
/* Under lock. */
struct job *tasks_find(struct tasks *ts, const char *id);
struct job *job_new(struct tasks *ts, const struct task *t);
/* Under lock. */
void tasks_append(struct tasks *ts, struct job *j);

/* --- work.c --- */

/* Has the work done soon. */
void tasks_kick(struct tasks *ts);
void tasks_on_tick(void *arg);
/* Under lock. Every waiting target is cancelled; true when that ends the task. */
bool job_cancel(struct job *j);
/* Under lock. What becomes of the task with its targets. */
void job_judge(struct job *j);
/* Under lock. */
void step_set_state(struct task_step *s, enum target_state state);

/* --- keep.c; not under lock --- */

/* Under store_lock. Writes what of the job is dirty, with a row of the trail when who is given. */
enum rc must_check job_store(
	struct job *j, const struct actor *who, const char *action, struct err *err);
/* Adds the event of the task's state in c's transaction. */
enum rc must_check task_tell(
	struct tasks *ts, struct db_conn *c, const struct task *t, struct err *err);

#endif
