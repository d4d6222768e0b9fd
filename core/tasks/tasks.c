#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/once.h"
#include "core/tasks/tasks_impl.h"
#include "db/tasks.h"

/* --- life --- */

struct tasks *tasks_new(const struct tasks_config *config, struct db *control,
	struct events *events, struct timers *timers, struct pool *jobs, struct err *err) {
	struct tasks *ts = calloc(1, sizeof(*ts));
	if (!ts) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	ts->config = *config;
	ts->control = control;
	ts->events = events;
	ts->timers = timers;
	ts->jobs = jobs;
	pthread_mutex_init(&ts->store_lock, NULL);
	pthread_mutex_init(&ts->lock, NULL);
	cond_init(&ts->idle);
	return ts;
}

enum rc tasks_add_kind(struct tasks *ts, const struct task_kind *kind, struct err *err) {
	if (ts->kind_count == MAX_KINDS)
		return err_set(err, RC_FULL, "more than %d kinds of tasks", MAX_KINDS);
	ts->kinds[ts->kind_count++] = *kind;
	return RC_OK;
}

const struct task_kind *tasks_kind(const struct tasks *ts, const char *name) {
	for (size_t i = 0; i < ts->kind_count; i++) {
		if (strcmp(ts->kinds[i].name, name) == 0)
			return &ts->kinds[i];
	}
	return NULL;
}

void tasks_stop(struct tasks *ts) {
	timer_cancel(ts->timers, ts->tick);
	pthread_mutex_lock(&ts->lock);
	ts->stopping = true;
	while (ts->working)
		pthread_cond_wait(&ts->idle, &ts->lock);
	pthread_mutex_unlock(&ts->lock);
}

/* What was achieved is kept. */
void tasks_free(struct tasks *ts) {
	struct err err;
	if (!ts)
		return;
	pthread_mutex_lock(&ts->lock);
	while (ts->running)
		pthread_cond_wait(&ts->idle, &ts->lock);
	pthread_mutex_unlock(&ts->lock);
	while (ts->first) {
		struct job *j = ts->first;
		pthread_mutex_lock(&ts->store_lock);
		if (job_store(j, NULL, NULL, &err))
			log_err(LOG_LEVEL_WARNING, "tasks", "storing a task's progress", &err);
		pthread_mutex_unlock(&ts->store_lock);
		ts->first = j->next;
		free(j);
	}
	pthread_cond_destroy(&ts->idle);
	pthread_mutex_destroy(&ts->lock);
	pthread_mutex_destroy(&ts->store_lock);
	free(ts);
}

/* --- jobs --- */

struct job *tasks_find(struct tasks *ts, const char *id) {
	struct job *j = ts->first;
	while (j && strcmp(j->task.id, id) != 0)
		j = j->next;
	return j;
}

struct job *job_new(struct tasks *ts, const struct task *t) {
	struct job *j = calloc(1, sizeof(*j) + t->total * sizeof(j->steps[0]));
	if (!j)
		return NULL;
	j->all = ts;
	j->task = *t;
	j->kind = tasks_kind(ts, t->kind);
	for (unsigned i = 0; i < t->total; i++) {
		j->steps[i].job = j;
		j->steps[i].t.started_ms = j->steps[i].t.ended_ms = NONE;
	}
	return j;
}

void tasks_append(struct tasks *ts, struct job *j) {
	*(ts->last ? &ts->last->next : &ts->first) = j;
	ts->last = j;
}

/* --- asking for one --- */

static struct job *make(struct tasks *ts, const struct actor *who, const struct task_spec *spec) {
	struct task t = {
		.who = *who,
		.created_ms = clock_wall_ms(),
		.started_ms = NONE,
		.ended_ms = NONE,
		.total = spec->count,
	};
	t.who.once = NULL;
	t.counts[TARGET_WAITING] = spec->count;
	id_uuid_ordered(t.id);
	str_copy(t.kind, sizeof(t.kind), spec->kind);
	struct job *j = job_new(ts, &t);
	for (unsigned i = 0; j && i < spec->count; i++)
		str_copy(j->steps[i].t.object, TASK_OBJECT_SIZE, spec->objects[i]);
	return j;
}

static enum rc insert(struct db_conn *c, const struct actor *who, const struct task_spec *spec,
	const struct job *j, struct err *err) {
	char location[ONCE_LOCATION_SIZE], object[EVENT_OBJECT_SIZE];
	snprintf(location, sizeof(location), "%s/%s", spec->path, j->task.id);
	snprintf(object, sizeof(object), "/tasks/%s", j->task.id);
	enum rc rc = db_task_insert(c, &j->task, err);
	for (unsigned i = 0; i < j->task.total && !rc; i++)
		rc = db_task_target_put(c, j->task.id, i, &j->steps[i].t, err);
	if (!rc && spec->store)
		rc = spec->store(spec->arg, c, j->task.id, err);
	if (!rc)
		rc = once_keep(c, who, location, err);
	if (!rc)
		rc = events_audit(c, who, spec->action, object, rc_name(RC_OK), NULL, err);
	return rc ? rc : task_tell(j->all, c, &j->task, err);
}

static enum rc store_new(struct tasks *ts, const struct actor *who, const struct task_spec *spec,
	const struct job *j, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin_for(ts->control, who, &c, err);
	if (rc)
		return rc;
	rc = insert(c, who, spec, j, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	return db_write_commit(c, err);
}

/* Room for one more, or not. */
static bool reserve(struct tasks *ts) {
	pthread_mutex_lock(&ts->lock);
	const bool room = ts->open < TASKS_MAX_OPEN && !ts->stopping;
	ts->open += room;
	metric_set(METRIC_TASKS_OPEN, ts->open);
	pthread_mutex_unlock(&ts->lock);
	return room;
}

static void give_back(struct tasks *ts) {
	pthread_mutex_lock(&ts->lock);
	ts->open--;
	metric_set(METRIC_TASKS_OPEN, ts->open);
	pthread_mutex_unlock(&ts->lock);
}

enum rc tasks_submit(struct tasks *ts, const struct actor *who, const struct task_spec *spec,
	struct task *out, struct err *err) {
	if (spec->count < 1 || spec->count > TASK_MAX_TARGETS)
		return err_set(err, RC_INVALID, "a task has 1 to %d targets", TASK_MAX_TARGETS);
	if (!reserve(ts))
		return err_set(err, RC_FULL, "%d tasks are not over yet", TASKS_MAX_OPEN);
	struct job *j = make(ts, who, spec);
	enum rc rc = j ? store_new(ts, who, spec, j, err) : err_set(err, RC_NOMEM, "out of memory");
	if (!rc)
		*out = j->task;
	if (rc || who->dry_run) {
		free(j);
		give_back(ts);
		return rc;
	}
	pthread_mutex_lock(&ts->lock);
	tasks_append(ts, j);
	pthread_mutex_unlock(&ts->lock);
	events_publish(ts->events);
	tasks_kick(ts);
	return RC_OK;
}

/* --- an earlier life's --- */

static bool load_target(void *arg, unsigned position, const struct task_target *t) {
	struct job *j = arg;
	if (position >= j->task.total)
		return false;
	j->steps[position].t = *t;
	if (t->state == TARGET_RUNNING)
		step_set_state(&j->steps[position], TARGET_WAITING);
	return true;
}

struct loading {
	struct tasks *ts;
	struct db_conn *c;
	enum rc rc;
	struct err *err;
};

static bool load_job(void *arg, const struct task *t) {
	struct loading *l = arg;
	struct job *j = job_new(l->ts, t);
	if (!j) {
		l->rc = err_set(l->err, RC_NOMEM, "out of memory");
		return false;
	}
	tasks_append(l->ts, j);
	l->ts->open++;
	l->rc = db_task_target_each(l->c, t->id, 0, TASK_MAX_TARGETS, load_target, j, l->err);
	if (t->cancelling || !j->kind || !j->kind->resumes)
		job_cancel(j);
	else
		job_judge(j);
	if (j->task.counts[TARGET_CANCELLED] && !t->cancelling)
		j->task.state = TASK_INTERRUPTED;
	return l->rc == RC_OK;
}

enum rc tasks_start(struct tasks *ts, struct err *err) {
	struct loading l = {.ts = ts, .err = err};
	enum rc rc = db_read_begin(ts->control, &l.c, err);
	if (rc)
		return rc;
	rc = db_task_each_open(l.c, load_job, &l, err);
	db_read_end(l.c);
	if (rc || l.rc)
		return rc ? rc : l.rc;
	metric_set(METRIC_TASKS_OPEN, ts->open);
	ts->tick = timer_start(ts->timers, 0, ts->config.tick_ms, tasks_on_tick, ts);
	return ts->tick ? RC_OK : err_set(err, RC_FULL, "no timer left for tasks");
}

/* --- cancelling --- */

/* The copy of a task that was in memory. */
static bool cancel_open(struct tasks *ts, const char *id, struct task *out) {
	pthread_mutex_lock(&ts->lock);
	struct job *j = tasks_find(ts, id);
	const bool open = j && !task_state_is_final(j->task.state);
	if (open) {
		job_cancel(j);
		*out = j->task;
	}
	pthread_mutex_unlock(&ts->lock);
	return open;
}

/* What would be: those that wait would be none. */
static enum rc try_cancel(struct task *t, struct err *err) {
	if (task_state_is_final(t->state))
		return err_set(err, RC_CONFLICT, "the task is over");
	t->cancelling = true;
	t->counts[TARGET_CANCELLED] += t->counts[TARGET_WAITING];
	t->counts[TARGET_WAITING] = 0;
	t->state = t->counts[TARGET_RUNNING] ? TASK_RUNNING : TASK_CANCELLED;
	return RC_OK;
}

/* Under store_lock: nobody frees it. */
static enum rc keep_cancelled(
	struct tasks *ts, const struct actor *who, const char *id, struct err *err) {
	pthread_mutex_lock(&ts->lock);
	struct job *j = tasks_find(ts, id);
	pthread_mutex_unlock(&ts->lock);
	return j ? job_store(j, who, "task.cancel", err) : RC_OK;
}

enum rc tasks_cancel(struct tasks *ts, const struct actor *who, const char *id, struct task *out,
	struct err *err) {
	enum rc rc = tasks_get(ts, id, out, err);
	if (rc || who->dry_run)
		return rc ? rc : try_cancel(out, err);
	pthread_mutex_lock(&ts->store_lock);
	if (cancel_open(ts, id, out))
		rc = keep_cancelled(ts, who, id, err);
	else
		rc = err_set(err, RC_CONFLICT, "the task is over");
	pthread_mutex_unlock(&ts->store_lock);
	tasks_kick(ts);
	return rc;
}

/* --- views --- */

/* What is in memory is newer than what is stored. */
static bool get_open(struct tasks *ts, const char *id, struct task *out) {
	pthread_mutex_lock(&ts->lock);
	const struct job *j = tasks_find(ts, id);
	if (j)
		*out = j->task;
	pthread_mutex_unlock(&ts->lock);
	return j != NULL;
}

enum rc tasks_get(struct tasks *ts, const char *id, struct task *out, struct err *err) {
	struct db_conn *c;
	if (get_open(ts, id, out))
		return RC_OK;
	enum rc rc = db_read_begin(ts->control, &c, err);
	if (rc)
		return rc;
	rc = db_task_get(c, id, out, err);
	db_read_end(c);
	return rc;
}

struct listing {
	struct tasks *ts;
	int state;
	bool (*visit)(void *arg, const struct task *t);
	void *arg;
};

static bool list_one(void *arg, const struct task *t) {
	const struct listing *l = arg;
	struct task now = *t;
	get_open(l->ts, t->id, &now);
	return (l->state >= 0 && now.state != l->state) || l->visit(l->arg, &now);
}

enum rc tasks_list(struct tasks *ts, int state, const char *kind, const char *before, int limit,
	bool (*visit)(void *arg, const struct task *t), void *arg, struct err *err) {
	struct listing l = {ts, state, visit, arg};
	struct db_conn *c;
	enum rc rc = db_read_begin(ts->control, &c, err);
	if (rc)
		return rc;
	rc = db_task_list(c, state, kind, before, limit, list_one, &l, err);
	db_read_end(c);
	return rc;
}

/* A copy, since visitors take their time; NULL with RC_OK: it is not in memory. */
static enum rc copy_open(struct tasks *ts, const char *id, struct task *task,
	struct task_target **out, struct err *err) {
	enum rc rc = RC_OK;
	*out = NULL;
	pthread_mutex_lock(&ts->lock);
	const struct job *j = tasks_find(ts, id);
	if (j) {
		*task = j->task;
		*out = malloc(j->task.total * sizeof(**out));
		if (!*out)
			rc = err_set(err, RC_NOMEM, "out of memory");
		for (unsigned i = 0; *out && i < j->task.total; i++)
			(*out)[i] = j->steps[i].t;
	}
	pthread_mutex_unlock(&ts->lock);
	return rc;
}

enum rc tasks_targets(struct tasks *ts, const char *id, unsigned from, int limit, struct task *task,
	bool (*visit)(void *arg, unsigned position, const struct task_target *t), void *arg,
	struct err *err) {
	auto_free struct task_target *open = NULL;
	struct db_conn *c;
	enum rc rc = copy_open(ts, id, task, &open, err);
	for (unsigned i = from; open && i < task->total && limit-- > 0; i++)
		if (!visit(arg, i, &open[i]))
			return RC_OK;
	if (rc || open)
		return rc;
	rc = db_read_begin(ts->control, &c, err);
	if (rc)
		return rc;
	rc = db_task_get(c, id, task, err);
	if (!rc)
		rc = db_task_target_each(c, id, from, limit, visit, arg, err);
	db_read_end(c);
	return rc;
}
