/*
 * Tasks: changes of many things that go on by themselves. A task has a row per target; what is to
 * be done with one is its kind's business. So many targets are under way at once, over all tasks
 * and of one; the rest waits. A task goes on after a restart where its kind says that a target may
 * be begun with twice, else it is interrupted.
 *
 * Any thread, but for tasks_new to tasks_start and tasks_stop to tasks_free: one. What is given is
 * copied. All but task_step_done blocks on the store.
 */
#ifndef DRIVEWATT_CORE_TASKS_H
#define DRIVEWATT_CORE_TASKS_H

#include "base/pool.h"
#include "base/timer.h"
#include "core/events.h"
#include "model/task.h"

#define TASKS_MAX_OPEN 64    /* that are not over */
#define TASKS_AT_ONCE 64     /* targets under way */
#define TASKS_AT_ONCE_ONE 16 /* … of one task */

struct tasks;
struct task_step; /* one target that is under way */

struct task_kind {
	const char *name; /* static text */
	bool resumes;     /* a target may be begun with again */
	/* Begins with one target, in a jobs thread. RC_OK: task_step_done follows exactly once,
	 * maybe before this returns. RC_FULL and RC_UNAVAILABLE are tried again for a while, all
	 * else is the target's outcome. t and object live for the call. */
	enum rc (*begin)(void *self, const struct task *t, const char *object,
		struct task_step *step, struct err *err);
	void *self;
};

struct tasks_config {
	int64_t tick_ms;     /* how often progress is stored, and waiting targets are looked at */
	int64_t patience_ms; /* how long a target is tried that cannot be begun with */
};

/* All pointers are borrowed until tasks_free. */
struct tasks *tasks_new(const struct tasks_config *config, struct db *control,
	struct events *events, struct timers *timers, struct pool *jobs, struct err *err);
/* At most 4, before tasks_start. */
enum rc must_check tasks_add_kind(struct tasks *ts, const struct task_kind *kind, struct err *err);
/* Takes up what an earlier life left open, and begins. */
enum rc must_check tasks_start(struct tasks *ts, struct err *err);
/* Begins with no more targets. Those that then fail are left to the next life. */
void tasks_stop(struct tasks *ts);
/* After tasks_stop. Waits until all whom begin has asked have answered. NULL is fine. */
void tasks_free(struct tasks *ts);

/* A target of a step has ended; result is JSON object text (below TASK_RESULT_SIZE) or NULL. Never
 * blocks. */
void task_step_done(struct task_step *step, enum rc rc, const struct err *err, const char *result);

struct task_spec {
	const char *kind;
	const char *path;   /* the thing made is <path>/<id>, for Idempotency-Key: "/tasks" */
	const char *action; /* of the audit row */
	unsigned count;     /* 1 … TASK_MAX_TARGETS */
	const char (*objects)[TASK_OBJECT_SIZE];
	/* Writes more in the task's own transaction; may be NULL. */
	enum rc (*store)(void *arg, struct db_conn *c, const char *task_id, struct err *err);
	void *arg;
};
/* RC_FULL, or what the store says. */
enum rc must_check tasks_submit(struct tasks *ts, const struct actor *who,
	const struct task_spec *spec, struct task *out, struct err *err);
/* No more targets are begun with; those under way end. RC_NOT_FOUND, RC_CONFLICT (it is over). */
enum rc must_check tasks_cancel(struct tasks *ts, const struct actor *who, const char *id,
	struct task *out, struct err *err);

/* RC_NOT_FOUND. */
enum rc must_check tasks_get(struct tasks *ts, const char *id, struct task *out, struct err *err);
/* Newest first; `before` is an id or "". state -1: any; kind NULL: any. The visitor returns false
 * to stop and must not call back. */
enum rc must_check tasks_list(struct tasks *ts, int state, const char *kind, const char *before,
	int limit, bool (*visit)(void *arg, const struct task *t), void *arg, struct err *err);
/* By position from `from` on, at most limit. Likewise. *task is the task at the same moment, before
 * the first visit. RC_NOT_FOUND. */
enum rc must_check tasks_targets(struct tasks *ts, const char *id, unsigned from, int limit,
	struct task *task, bool (*visit)(void *arg, unsigned position, const struct task_target *t),
	void *arg, struct err *err);

#endif
