/* Tasks of made-up kinds: how many are under way, what becomes of them, and of those left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/thread.h"
#include "core/tasks.h"
#include "db/tasks.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_db.h"

#define MAX_BEGUN 4096

static const struct actor admin = {.account_id = "a", .name = "admin", .role = ROLE_OPERATOR};

/* A kind that keeps its steps until the test ends them. */
struct work {
	pthread_mutex_t lock;
	unsigned begun;
	struct task_step *steps[MAX_BEGUN];
	char objects[MAX_BEGUN][TASK_OBJECT_SIZE];
	char owner[65];
	enum rc refuse; /* what begin answers */
	unsigned refuse_times;
	bool at_once; /* a step ends within begin */
};

struct fixture {
	struct temp_db *control;
	struct events *events;
	struct timers *timers;
	struct pool *jobs;
	struct tasks *tasks;
	struct work work;
	int64_t patience_ms;
};

/* --- life --- */

static enum rc begin(void *self, const struct task *t, const char *object, struct task_step *step,
	struct err *err) {
	struct work *w = self;
	pthread_mutex_lock(&w->lock);
	const bool refuse = w->refuse_times > 0;
	w->refuse_times -= refuse;
	if (!refuse) {
		snprintf(w->objects[w->begun], TASK_OBJECT_SIZE, "%s", object);
		snprintf(w->owner, sizeof(w->owner), "%s", t->who.name);
		w->steps[w->begun++] = step;
	}
	const bool at_once = w->at_once && !refuse;
	pthread_mutex_unlock(&w->lock);
	if (at_once)
		task_step_done(step, RC_OK, NULL, "{\"a\":1}");
	return refuse ? err_set(err, w->refuse, "made up") : RC_OK;
}

static void start(struct fixture *f) {
	const struct tasks_config config = {.tick_ms = 20, .patience_ms = f->patience_ms};
	const struct task_kind kinds[] = {
		{.name = "test", .resumes = true, .begin = begin, .self = &f->work},
		{.name = "once", .begin = begin, .self = &f->work},
	};
	struct err err;
	f->tasks = tasks_new(&config, f->control->db, f->events, f->timers, f->jobs, &err);
	assert_non_null(f->tasks);
	for (size_t i = 0; i < array_len(kinds); i++)
		assert_int_equal(tasks_add_kind(f->tasks, &kinds[i], &err), RC_OK);
	assert_int_equal(tasks_start(f->tasks, &err), RC_OK);
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(secret_init(&err), RC_OK);
	f->control = temp_db_new(DB_CONTROL);
	f->events = events_new(f->control->db, &err);
	f->timers = timers_new(64, &err);
	f->jobs = pool_new("jobs", 3, 1024, &err);
	f->patience_ms = 60000;
	pthread_mutex_init(&f->work.lock, NULL);
	start(f);
	*state = f;
	return 0;
}

/* Ends what is open as a service does that stops: those asked hear that it stops. */
static void stop(struct fixture *f) {
	struct err err;
	err_set(&err, RC_UNAVAILABLE, "the service is stopping");
	tasks_stop(f->tasks);
	for (unsigned i = 0; i < f->work.begun; i++) {
		if (f->work.steps[i] && !f->work.at_once)
			task_step_done(f->work.steps[i], RC_UNAVAILABLE, &err, NULL);
		f->work.steps[i] = NULL;
	}
	tasks_free(f->tasks);
	f->work.begun = 0;
	f->work.at_once = false;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	stop(f);
	pool_free(f->jobs);
	timers_free(f->timers);
	events_free(f->events);
	temp_db_free(f->control);
	pthread_mutex_destroy(&f->work.lock);
	free(f);
	return 0;
}

/* --- asking --- */

static enum rc try_submit(
	struct fixture *f, const char *kind, unsigned count, struct task *out, struct err *err) {
	auto_free char(*objects)[TASK_OBJECT_SIZE] = calloc(count + 1, TASK_OBJECT_SIZE);
	for (unsigned i = 0; i < count; i++)
		snprintf(objects[i], TASK_OBJECT_SIZE, "/things/%u", i);
	const struct task_spec spec = {
		.kind = kind,
		.path = "/tasks",
		.action = "test.begin",
		.count = count,
		.objects = (const char(*)[TASK_OBJECT_SIZE])objects,
	};
	return tasks_submit(f->tasks, &admin, &spec, out, err);
}

static struct task submit(struct fixture *f, const char *kind, unsigned count) {
	struct task t;
	struct err err;
	if (try_submit(f, kind, count, &t, &err))
		fail_msg("%s", err.msg);
	return t;
}

static struct task look(struct fixture *f, const char *id) {
	struct task t;
	struct err err;
	if (tasks_get(f->tasks, id, &t, &err))
		fail_msg("%s", err.msg);
	return t;
}

/* --- waiting --- */

struct wish {
	struct fixture *f;
	const char *id;
	unsigned value;
};

static bool has_begun(void *arg) {
	const struct wish *w = arg;
	pthread_mutex_lock(&w->f->work.lock);
	const bool yes = w->f->work.begun >= w->value;
	pthread_mutex_unlock(&w->f->work.lock);
	return yes;
}

static void wait_for_begun(struct fixture *f, unsigned count) {
	struct wish w = {.f = f, .value = count};
	assert_true(eventually(has_begun, &w));
}

static bool has_state(void *arg) {
	const struct wish *w = arg;
	return look(w->f, w->id).state == w->value;
}

static struct task wait_for_state(struct fixture *f, const char *id, enum task_state s) {
	struct wish w = {.f = f, .id = id, .value = s};
	assert_true(eventually(has_state, &w));
	return look(f, id);
}

static enum task_state stored_state(struct fixture *f, const char *id) {
	struct db_conn *c;
	struct task t;
	struct err err;
	assert_int_equal(db_read_begin(f->control->db, &c, &err), RC_OK);
	assert_int_equal(db_task_get(c, id, &t, &err), RC_OK);
	db_read_end(c);
	return (enum task_state)t.state;
}

static bool is_stored(void *arg) {
	const struct wish *w = arg;
	return stored_state(w->f, w->id) == (enum task_state)w->value;
}

static void wait_for_stored(struct fixture *f, const char *id, enum task_state s) {
	struct wish w = {.f = f, .id = id, .value = s};
	assert_true(eventually(is_stored, &w));
}

static void end(struct fixture *f, unsigned n, enum rc rc) {
	struct err err = {0};
	if (rc)
		err_set(&err, rc, "made up");
	err.nvme_status = rc == RC_REFUSED ? 0x4002 : 0;
	struct task_step *s = f->work.steps[n];
	f->work.steps[n] = NULL;
	task_step_done(s, rc, &err, rc ? NULL : "{\"a\":1}");
}

struct rows {
	struct task task;
	unsigned count;
	struct task_target targets[64];
};

static bool take_row(void *arg, unsigned position, const struct task_target *t) {
	struct rows *r = arg;
	assert_int_equal(position, r->count);
	r->targets[r->count++] = *t;
	return true;
}

/* The task that comes with them counts them as they are. */
static struct rows rows_of(struct fixture *f, const char *id) {
	struct rows r = {0};
	unsigned counts[TARGET_STATE_COUNT_] = {0};
	struct err err;
	assert_int_equal(tasks_targets(f->tasks, id, 0, 64, &r.task, take_row, &r, &err), RC_OK);
	for (unsigned i = 0; i < r.count; i++)
		counts[r.targets[i].state]++;
	assert_memory_equal(counts, r.task.counts, sizeof(counts));
	return r;
}

/* --- tests --- */

static void rows_and_task_are_of_one_moment(void **state) {
	struct fixture *f = *state;
	f->work.at_once = true;
	const struct task t = submit(f, "test", 64);
	while (rows_of(f, t.id).task.state != TASK_COMPLETED)
		;
	wait_for_stored(f, t.id, TASK_COMPLETED);
	assert_int_equal(rows_of(f, t.id).count, 64);
}

static void every_target_has_an_outcome(void **state) {
	struct fixture *f = *state;
	const struct task t = submit(f, "test", 3);
	assert_int_equal(t.total, 3);
	assert_string_equal(t.who.name, "admin");
	wait_for_begun(f, 3);
	assert_string_equal(f->work.owner, "admin");
	assert_int_equal(look(f, t.id).state, TASK_RUNNING);
	end(f, 0, RC_OK);
	end(f, 1, RC_REFUSED);
	assert_int_equal(look(f, t.id).counts[TARGET_FAILED], 1);
	end(f, 2, RC_OK);
	const struct task over = wait_for_state(f, t.id, TASK_FAILED);
	assert_true(over.ended_ms != NONE && over.started_ms != NONE);
	wait_for_stored(f, t.id, TASK_FAILED);
	const struct rows r = rows_of(f, t.id);
	assert_int_equal(r.count, 3);
	assert_int_equal(r.targets[0].state, TARGET_COMPLETED);
	assert_string_equal(r.targets[0].result, "{\"a\":1}");
	assert_string_equal(r.targets[1].object, "/things/1");
	assert_int_equal(r.targets[1].state, TARGET_FAILED);
	assert_int_equal(r.targets[1].outcome, RC_REFUSED);
	assert_int_equal(r.targets[1].nvme_status, 0x4002);
	assert_string_equal(r.targets[1].reason, "made up");
}

static void steps_may_end_at_once(void **state) {
	struct fixture *f = *state;
	f->work.at_once = true;
	const struct task t = submit(f, "test", 200);
	wait_for_state(f, t.id, TASK_COMPLETED);
	assert_int_equal(f->work.begun, 200);
}

static void so_many_at_once_and_no_more(void **state) {
	struct fixture *f = *state;
	struct task tasks[5];
	for (size_t i = 0; i < array_len(tasks); i++)
		tasks[i] = submit(f, "test", 40);
	wait_for_begun(f, TASKS_AT_ONCE);
	/* Of each of the first as many as one may have; the last waits. */
	const unsigned full = TASKS_AT_ONCE / TASKS_AT_ONCE_ONE;
	for (unsigned i = 0; i < full; i++)
		assert_int_equal(look(f, tasks[i].id).counts[TARGET_RUNNING], TASKS_AT_ONCE_ONE);
	assert_int_equal(look(f, tasks[full].id).state, TASK_QUEUED);
	assert_int_equal(f->work.begun, TASKS_AT_ONCE);
	end(f, 0, RC_OK);
	wait_for_begun(f, TASKS_AT_ONCE + 1);
}

static bool has_room(void *arg) {
	struct task t;
	struct err err;
	return try_submit(arg, "test", 1, &t, &err) == RC_OK;
}

static void there_is_a_limit_to_open_tasks(void **state) {
	struct fixture *f = *state;
	struct task t;
	struct err err;
	for (unsigned i = 0; i < TASKS_MAX_OPEN; i++)
		t = submit(f, "test", 1);
	wait_for_begun(f, TASKS_MAX_OPEN);
	assert_int_equal(try_submit(f, "test", 1, &t, &err), RC_FULL);
	end(f, 0, RC_OK);
	assert_true(eventually(has_room, f));
	assert_int_equal(try_submit(f, "test", 0, &t, &err), RC_INVALID);
	assert_int_equal(try_submit(f, "test", TASK_MAX_TARGETS + 1, &t, &err), RC_INVALID);
}

static void what_is_busy_is_tried_again(void **state) {
	struct fixture *f = *state;
	f->work.refuse = RC_FULL;
	f->work.refuse_times = 2;
	const struct task t = submit(f, "test", 1);
	wait_for_begun(f, 1);
	end(f, 0, RC_FULL);
	wait_for_begun(f, 2);
	end(f, 1, RC_OK);
	wait_for_state(f, t.id, TASK_COMPLETED);
}

static void patience_ends(void **state) {
	struct fixture *f = *state;
	stop(f);
	f->patience_ms = 0;
	start(f);
	f->work.refuse = RC_UNAVAILABLE;
	f->work.refuse_times = 1000;
	const struct task t = submit(f, "test", 2);
	wait_for_state(f, t.id, TASK_FAILED);
	assert_int_equal(rows_of(f, t.id).targets[0].outcome, RC_UNAVAILABLE);
}

static void a_refusal_to_begin_is_an_outcome(void **state) {
	struct fixture *f = *state;
	f->work.refuse = RC_INVALID;
	f->work.refuse_times = 1;
	const struct task t = submit(f, "test", 2);
	wait_for_begun(f, 1);
	end(f, 0, RC_OK);
	wait_for_state(f, t.id, TASK_FAILED);
	assert_int_equal(rows_of(f, t.id).targets[0].outcome, RC_INVALID);
}

static void cancelling_lets_what_is_under_way_end(void **state) {
	struct fixture *f = *state;
	struct task t = submit(f, "test", 40);
	struct err err;
	wait_for_begun(f, TASKS_AT_ONCE_ONE);
	assert_int_equal(tasks_cancel(f->tasks, &admin, t.id, &t, &err), RC_OK);
	assert_true(t.cancelling);
	assert_int_equal(t.state, TASK_RUNNING);
	assert_int_equal(t.counts[TARGET_CANCELLED], 40 - TASKS_AT_ONCE_ONE);
	for (unsigned i = 0; i < TASKS_AT_ONCE_ONE; i++)
		end(f, i, RC_OK);
	wait_for_state(f, t.id, TASK_CANCELLED);
	wait_for_stored(f, t.id, TASK_CANCELLED);
	assert_int_equal(tasks_cancel(f->tasks, &admin, t.id, &t, &err), RC_CONFLICT);
	assert_int_equal(tasks_cancel(f->tasks, &admin, "x", &t, &err), RC_NOT_FOUND);
	assert_int_equal(f->work.begun, TASKS_AT_ONCE_ONE);
}

static void an_open_task_goes_on_in_the_next_life(void **state) {
	struct fixture *f = *state;
	const struct task t = submit(f, "test", 20);
	wait_for_begun(f, TASKS_AT_ONCE_ONE);
	end(f, 0, RC_OK);
	wait_for_begun(f, TASKS_AT_ONCE_ONE + 1);
	stop(f);
	f->work.at_once = true;
	start(f);
	wait_for_state(f, t.id, TASK_COMPLETED);
	/* What was achieved is not done again. */
	assert_int_equal(f->work.begun, 19);
	assert_string_equal(f->work.owner, "admin");
}

static void a_kind_that_cannot_go_on_is_interrupted(void **state) {
	struct fixture *f = *state;
	const struct task t = submit(f, "once", 2);
	wait_for_begun(f, 2);
	end(f, 0, RC_OK);
	stop(f);
	start(f);
	const struct task over = wait_for_state(f, t.id, TASK_INTERRUPTED);
	assert_int_equal(over.counts[TARGET_COMPLETED], 1);
	assert_int_equal(over.counts[TARGET_CANCELLED], 1);
	wait_for_stored(f, t.id, TASK_INTERRUPTED);
}

static void one_that_was_being_cancelled_is_cancelled(void **state) {
	struct fixture *f = *state;
	struct task t = submit(f, "test", 20);
	struct err err;
	wait_for_begun(f, TASKS_AT_ONCE_ONE);
	assert_int_equal(tasks_cancel(f->tasks, &admin, t.id, &t, &err), RC_OK);
	stop(f);
	start(f);
	wait_for_state(f, t.id, TASK_CANCELLED);
	assert_int_equal(f->work.begun, 0);
}

static void an_end_that_the_store_refuses_is_stored_later(void **state) {
	struct fixture *f = *state;
	const struct task t = submit(f, "test", 1);
	wait_for_begun(f, 1);
	wait_for_stored(f, t.id, TASK_RUNNING);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	end(f, 0, RC_OK);
	wait_for_state(f, t.id, TASK_COMPLETED);
	assert_int_equal(stored_state(f, t.id), TASK_RUNNING);
	db_fail_nth(f->control->db, 0, RC_OK);
	wait_for_stored(f, t.id, TASK_COMPLETED);
}

static void a_task_that_could_not_be_stored_is_none(void **state) {
	struct fixture *f = *state;
	struct task t;
	struct err err;
	db_fail_nth(f->control->db, 2, RC_NO_SPACE);
	assert_int_equal(try_submit(f, "test", 3, &t, &err), RC_NO_SPACE);
	db_fail_nth(f->control->db, 0, RC_OK);
	const struct task good = submit(f, "test", 1);
	wait_for_begun(f, 1);
	assert_int_equal(look(f, good.id).total, 1);
	assert_int_equal(f->work.begun, 1);
}

static bool note_task(void *arg, const struct task *t) {
	char(*ids)[TASK_ID_SIZE] = arg;
	while ((*ids)[0])
		ids++;
	memcpy(*ids, t->id, TASK_ID_SIZE);
	return true;
}

static void lists_are_newest_first(void **state) {
	struct fixture *f = *state;
	char ids[8][TASK_ID_SIZE] = {0};
	struct err err;
	f->work.at_once = true;
	const struct task a = submit(f, "test", 1);
	const struct task b = submit(f, "once", 1);
	const struct task c = submit(f, "test", 1);
	wait_for_stored(f, c.id, TASK_COMPLETED);
	assert_int_equal(tasks_list(f->tasks, -1, NULL, "", 10, note_task, ids, &err), RC_OK);
	assert_string_equal(ids[0], c.id);
	assert_string_equal(ids[1], b.id);
	assert_string_equal(ids[2], a.id);
	memset(ids, 0, sizeof(ids));
	assert_int_equal(
		tasks_list(f->tasks, TASK_COMPLETED, "test", c.id, 10, note_task, ids, &err),
		RC_OK);
	assert_string_equal(ids[0], a.id);
	assert_string_equal(ids[1], "");
}

static void *ask_often(void *arg) {
	struct fixture *f = arg;
	struct task t;
	struct err err;
	for (int i = 0; i < 20; i++) {
		if (try_submit(f, "test", 5, &t, &err) == RC_OK && i % 3 == 0)
			(void)!tasks_cancel(f->tasks, &admin, t.id, &t, &err);
	}
	return NULL;
}

static bool none_open(void *arg) {
	struct fixture *f = arg;
	char ids[128][TASK_ID_SIZE] = {0};
	struct err err;
	assert_int_equal(
		tasks_list(f->tasks, TASK_RUNNING, NULL, "", 100, note_task, ids, &err), RC_OK);
	assert_int_equal(
		tasks_list(f->tasks, TASK_QUEUED, NULL, "", 100, note_task, ids, &err), RC_OK);
	return !ids[0][0];
}

static void many_at_once_all_end(void **state) {
	struct fixture *f = *state;
	pthread_t threads[3];
	f->work.at_once = true;
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(thread_start(&threads[i], "ask", ask_often, f, NULL), RC_OK);
	for (size_t i = 0; i < array_len(threads); i++)
		pthread_join(threads[i], NULL);
	assert_true(eventually(none_open, f));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(rows_and_task_are_of_one_moment),
		TEST(every_target_has_an_outcome),
		TEST(steps_may_end_at_once),
		TEST(so_many_at_once_and_no_more),
		TEST(there_is_a_limit_to_open_tasks),
		TEST(what_is_busy_is_tried_again),
		TEST(patience_ends),
		TEST(a_refusal_to_begin_is_an_outcome),
		TEST(cancelling_lets_what_is_under_way_end),
		TEST(an_open_task_goes_on_in_the_next_life),
		TEST(a_kind_that_cannot_go_on_is_interrupted),
		TEST(one_that_was_being_cancelled_is_cancelled),
		TEST(an_end_that_the_store_refuses_is_stored_later),
		TEST(a_task_that_could_not_be_stored_is_none),
		TEST(lists_are_newest_first),
		TEST(many_at_once_all_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
