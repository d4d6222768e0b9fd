#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/tasks/tasks_impl.h"

#define RETRY_MS 250

/* --- states; under lock --- */

void step_set_state(struct task_step *s, enum target_state state) {
	struct task *t = &s->job->task;
	t->counts[s->t.state]--;
	t->counts[state]++;
	s->t.state = (uint8_t)state;
	s->dirty = true;
}

void job_judge(struct job *j) {
	struct task *t = &j->task;
	const enum task_state before = t->state;
	t->state = (uint8_t)task_judge(t);
	if (t->cancelling && task_state_is_final(t->state) && t->counts[TARGET_CANCELLED])
		t->state = TASK_CANCELLED;
	if (t->state != TASK_QUEUED && t->started_ms == NONE)
		t->started_ms = clock_wall_ms();
	if (task_state_is_final(t->state))
		t->ended_ms = clock_wall_ms();
	j->dirty = j->dirty || t->state != before;
}

bool job_cancel(struct job *j) {
	j->task.cancelling = true;
	j->dirty = true;
	for (unsigned i = 0; i < j->task.total; i++) {
		struct task_step *s = &j->steps[i];
		if (s->t.state != TARGET_WAITING)
			continue;
		step_set_state(s, TARGET_CANCELLED);
		s->t.ended_ms = clock_wall_ms();
	}
	job_judge(j);
	return task_state_is_final(j->task.state);
}

static void end(struct task_step *s, enum rc rc, const struct err *err, const char *result) {
	s->t.outcome = rc;
	s->t.ended_ms = clock_wall_ms();
	if (rc) {
		s->t.nvme_status = err->nvme_status;
		str_copy(s->t.reason, sizeof(s->t.reason), err->msg);
	}
	if (result)
		str_copy(s->t.result, sizeof(s->t.result), result);
	step_set_state(s, rc ? TARGET_FAILED : TARGET_COMPLETED);
}

static void wait_again(struct task_step *s) {
	struct job *j = s->job;
	const unsigned position = (unsigned)(s - j->steps);
	if (position < j->first)
		j->first = position;
	s->not_before_ms = clock_mono_ms() + RETRY_MS;
	step_set_state(s, j->task.cancelling ? TARGET_CANCELLED : TARGET_WAITING);
	s->t.ended_ms = j->task.cancelling ? clock_wall_ms() : NONE;
}

/* Under lock. True when the caller must call start_work after it. */
static bool claim_work(struct tasks *ts);
static void start_work(struct tasks *ts);

/* Does it have a chance to be tried again? */
static bool may_retry(const struct task_step *s, enum rc rc, bool begun) {
	const struct tasks *ts = s->job->all;
	const bool passing = rc == RC_FULL || (rc == RC_UNAVAILABLE && !begun);
	if (ts->stopping)
		return rc != RC_OK;
	return passing && clock_wall_ms() - s->t.started_ms < ts->config.patience_ms;
}

static void finish_step(
	struct task_step *s, enum rc rc, const struct err *err, const char *result, bool begun) {
	struct tasks *ts = s->job->all;
	ts->running--;
	if (may_retry(s, rc, begun))
		wait_again(s);
	else
		end(s, rc, err, result);
	job_judge(s->job);
	pthread_cond_broadcast(&ts->idle);
}

/* When the service stops, the last step to end may be what tasks_free waits for. */
void task_step_done(struct task_step *step, enum rc rc, const struct err *err, const char *result) {
	struct tasks *ts = step->job->all;
	pthread_mutex_lock(&ts->lock);
	finish_step(step, rc, err, result, true);
	const bool mine = claim_work(ts);
	pthread_mutex_unlock(&ts->lock);
	if (mine)
		start_work(ts);
}

/* --- what is to be done next; under lock --- */

static struct task_step *next_of(struct job *j, int64_t now_ms) {
	if (j->task.counts[TARGET_RUNNING] >= TASKS_AT_ONCE_ONE ||
		j->task.counts[TARGET_WAITING] == 0)
		return NULL;
	while (j->first < j->task.total && j->steps[j->first].t.state != TARGET_WAITING)
		j->first++;
	for (unsigned i = j->first; i < j->task.total; i++) {
		struct task_step *s = &j->steps[i];
		if (s->t.state == TARGET_WAITING && s->not_before_ms <= now_ms)
			return s;
	}
	return NULL;
}

static struct task_step *take_step(struct tasks *ts) {
	const int64_t now_ms = clock_mono_ms();
	struct task_step *s = NULL;
	if (ts->stopping || ts->running >= TASKS_AT_ONCE)
		return NULL;
	for (struct job *j = ts->first; j && !s; j = j->next)
		s = next_of(j, now_ms);
	if (!s)
		return NULL;
	ts->running++;
	if (s->t.started_ms == NONE)
		s->t.started_ms = clock_wall_ms();
	step_set_state(s, TARGET_RUNNING);
	job_judge(s->job);
	return s;
}

static bool is_over(const struct job *j) {
	return task_state_is_final(j->task.state);
}

static struct job *find_over(struct tasks *ts) {
	struct job *j = ts->first;
	while (j && !is_over(j))
		j = j->next;
	return j;
}

/* --- doing it --- */

static void begin(struct tasks *ts, struct task_step *s) {
	struct err err = {0};
	struct job *j = s->job;
	pthread_mutex_lock(&ts->lock);
	const struct task t = j->task;
	pthread_mutex_unlock(&ts->lock);
	const enum rc rc = j->kind->begin(j->kind->self, &t, s->t.object, s, &err);
	if (!rc)
		return;
	pthread_mutex_lock(&ts->lock);
	finish_step(s, rc, &err, NULL, false);
	pthread_mutex_unlock(&ts->lock);
}

/* Under store_lock. */
static void take_out(struct tasks *ts, struct job *j) {
	pthread_mutex_lock(&ts->lock);
	struct job **at = &ts->first, *before = NULL;
	while (*at != j) {
		before = *at;
		at = &before->next;
	}
	*at = j->next;
	if (ts->last == j)
		ts->last = before;
	ts->open--;
	metric_set(METRIC_TASKS_OPEN, ts->open);
	pthread_mutex_unlock(&ts->lock);
	free(j);
}

/* Under store_lock. False when the store did not take it: it is tried again at the next tick. */
static bool keep(struct tasks *ts, struct job *j) {
	struct err err;
	pthread_mutex_lock(&ts->lock);
	const bool over = is_over(j);
	pthread_mutex_unlock(&ts->lock);
	if (job_store(j, NULL, NULL, &err)) {
		log_err(LOG_LEVEL_WARNING, "tasks", "storing a task", &err);
		return false;
	}
	if (over)
		take_out(ts, j);
	return true;
}

/* Under store_lock. */
static void keep_all(struct tasks *ts) {
	pthread_mutex_lock(&ts->lock);
	struct job *j = ts->first;
	pthread_mutex_unlock(&ts->lock);
	while (j) {
		pthread_mutex_lock(&ts->lock);
		struct job *next = j->next;
		pthread_mutex_unlock(&ts->lock);
		if (!keep(ts, j))
			return;
		j = next;
	}
}

/* The end of a task at once, progress from time to time. False when there is nothing to do. */
static bool store_some(struct tasks *ts, bool *failed) {
	pthread_mutex_lock(&ts->store_lock);
	pthread_mutex_lock(&ts->lock);
	struct job *over = *failed ? NULL : find_over(ts);
	const bool due = ts->due;
	ts->due = false;
	pthread_mutex_unlock(&ts->lock);
	if (due)
		keep_all(ts);
	else if (over)
		*failed = !keep(ts, over);
	pthread_mutex_unlock(&ts->store_lock);
	return due || (over && !*failed);
}

/* False when there is nothing to do any more: from then on another may work. */
static bool begin_next(struct tasks *ts) {
	pthread_mutex_lock(&ts->lock);
	struct task_step *s = take_step(ts);
	pthread_mutex_unlock(&ts->lock);
	if (s)
		begin(ts, s);
	return s != NULL;
}

static bool is_done(struct tasks *ts, bool failed) {
	pthread_mutex_lock(&ts->lock);
	const bool more = ts->due || (find_over(ts) && !failed);
	if (!more) {
		ts->working = false;
		pthread_cond_broadcast(&ts->idle);
	}
	pthread_mutex_unlock(&ts->lock);
	return !more;
}

static void work(void *arg) {
	struct tasks *ts = arg;
	bool failed = false;
	do {
		while (store_some(ts, &failed) || begin_next(ts))
			;
	} while (!is_done(ts, failed));
}

static bool claim_work(struct tasks *ts) {
	const bool mine = !ts->working && !ts->stopping;
	ts->working = ts->working || mine;
	return mine;
}

static void start_work(struct tasks *ts) {
	/* Left out when the queue is full: the next tick comes. */
	if (pool_submit(ts->jobs, work, ts))
		return;
	pthread_mutex_lock(&ts->lock);
	ts->working = false;
	pthread_cond_broadcast(&ts->idle);
	pthread_mutex_unlock(&ts->lock);
}

void tasks_kick(struct tasks *ts) {
	pthread_mutex_lock(&ts->lock);
	const bool mine = claim_work(ts);
	pthread_mutex_unlock(&ts->lock);
	if (mine)
		start_work(ts);
}

void tasks_on_tick(void *arg) {
	struct tasks *ts = arg;
	pthread_mutex_lock(&ts->lock);
	ts->due = ts->first != NULL;
	const bool any = ts->due;
	pthread_mutex_unlock(&ts->lock);
	if (any)
		tasks_kick(ts);
}
