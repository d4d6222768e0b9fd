/* kill -9 and power loss: what was acknowledged is there, and the file opens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "db/events.h"
#include "db/samples.h"
#include "tests/support/db_power.h"
#include "tests/support/temp_db.h"

#define ROUNDS 20
#define CHECKPOINT 7 /* commits between two checkpoints where power is lost */

enum end { END_KILL, END_POWER };

static struct db *open_watched(const char *path, enum db_file file, enum end end) {
	const struct db_config config = {.path = path, .file = file, .readers = 1, .busy_ms = 1000};
	if (end == END_POWER)
		db_power_watch();
	return db_open(&config, NULL);
}

/* Commits for ever, and tells of each commit after it. Never returns. */
static no_return void commit_events(const char *path, enum end end, int out) {
	struct db *db = open_watched(path, DB_CONTROL, end);
	for (int i = 1;; i++) {
		if (db && end == END_POWER && i % CHECKPOINT == 0)
			db_checkpoint(db);
		struct db_conn *c;
		struct event e = {.type = EVENT_SERVICE, .data = (char[]){"{\"n\":1}"}};
		if (!db || db_write_begin(db, &c, NULL) != RC_OK ||
			db_event_insert(c, &e, NULL) != RC_OK ||
			db_write_commit(c, NULL) != RC_OK ||
			write(out, &e.id, sizeof(e.id)) != sizeof(e.id))
			_exit(1);
	}
}

/* A tick a commit; the sample's time is its number. */
static no_return void commit_ticks(const char *path, enum end end, int out) {
	struct db *db = open_watched(path, DB_SAMPLES, end);
	struct sample s = {.series_id = getpid()};
	for (;; s.at_ms++) {
		if (db && end == END_POWER && s.at_ms % CHECKPOINT == CHECKPOINT - 1)
			db_checkpoint(db);
		struct db_conn *c;
		if (!db || db_write_begin(db, &c, NULL) != RC_OK ||
			db_tick_insert(c, "boot", &s, 1, NULL) != RC_OK ||
			db_write_commit(c, NULL) != RC_OK ||
			write(out, &s.at_ms, sizeof(s.at_ms)) != sizeof(s.at_ms))
			_exit(1);
	}
}

/* Starts a child, reads so many acknowledgements, ends it and reads what it still had said. Returns
 * the last number acknowledged. */
static int64_t end_after(const struct temp_db *t, enum end end,
	void (*work)(const char *path, enum end end, int out), int acknowledged, pid_t *child) {
	int fds[2], status;
	if (end == END_POWER)
		db_power_settle(t->path);
	int64_t id, last = -1;
	assert_int_equal(pipe(fds), 0);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		work(t->path, end, fds[1]);
	}
	close(fds[1]);
	for (int i = 0; i < acknowledged; i++) {
		assert_int_equal(read(fds[0], &id, sizeof(id)), sizeof(id));
		last = id;
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	while (read(fds[0], &id, sizeof(id)) == sizeof(id))
		last = id;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	if (end == END_POWER)
		db_power_cut(t->path);
	*child = pid;
	return last;
}

static bool count_event(void *arg, const struct event *e) {
	int64_t *expected = arg;
	assert_int_equal(e->id, ++*expected);
	assert_string_equal(e->data, "{\"n\":1}");
	return true;
}

static void check_events(struct temp_db *t, enum end end) {
	for (int round = 0; round < ROUNDS; round++) {
		struct db_conn *c;
		pid_t child;
		int64_t found = 0;
		temp_db_close(t);
		const int64_t last = end_after(t, end, commit_events, 1 + rand() % 40, &child);
		temp_db_open(t);
		assert_int_equal(db_read_begin(t->db, &c, NULL), RC_OK);
		assert_int_equal(db_event_list(c, 0, INT32_MAX, count_event, &found, NULL), RC_OK);
		db_read_end(c);
		/* The one after the last may have been committed and not told. */
		assert_in_range(found, last, last + 1);
	}
}

static void acknowledged_events_survive(void **state) {
	check_events(*state, END_KILL);
}

static void acknowledged_events_survive_power_loss(void **state) {
	check_events(*state, END_POWER);
}

/* The child's ticks are there, each once and in order; returns the last one's number. */
static int64_t last_tick(struct db_conn *c, pid_t child) {
	struct tick t = {0};
	int64_t last = -1, id = 0;
	while (db_tick_next(c, id, &t, NULL) == RC_OK) {
		assert_string_equal(t.boot_id, "boot");
		assert_int_equal(t.count, 1);
		if (t.samples[0].series_id == child)
			assert_int_equal(t.samples[0].at_ms, ++last);
		id = t.id;
		db_tick_release(&t);
	}
	return last;
}

/* How many acknowledged ticks were lost in a round: what is there is a beginning of them. */
static int64_t lost_ticks(struct temp_db *t, enum end end) {
	struct db_conn *c;
	pid_t child;
	temp_db_close(t);
	const int64_t last = end_after(t, end, commit_ticks, 1 + rand() % 200, &child);
	temp_db_open(t);
	assert_int_equal(db_read_begin(t->db, &c, NULL), RC_OK);
	const int64_t found = last_tick(c, child);
	db_read_end(c);
	assert_true(found <= last + 1);
	return found < last ? last - found : 0;
}

static void acknowledged_ticks_survive(void **state) {
	for (int round = 0; round < ROUNDS; round++)
		assert_int_equal(lost_ticks(*state, END_KILL), 0);
}

/* The samples' store is not synced at each commit. Where nothing is lost, no power was. */
static void power_loss_takes_the_last_ticks_alone(void **state) {
	int64_t lost = 0;
	for (int round = 0; round < ROUNDS; round++) {
		const int64_t n = lost_ticks(*state, END_POWER);
		assert_true(n <= CHECKPOINT + 1);
		lost += n;
	}
	assert_true(lost > 0);
}

static int set_up_control(void **state) {
	*state = temp_db_new(DB_CONTROL);
	return 0;
}

static int set_up_samples(void **state) {
	*state = temp_db_new(DB_SAMPLES);
	return 0;
}

static int tear_down(void **state) {
	temp_db_free(*state);
	return 0;
}

int main(void) {
	srand((unsigned)getpid());
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			acknowledged_events_survive, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(
			acknowledged_ticks_survive, set_up_samples, tear_down),
		cmocka_unit_test_setup_teardown(
			acknowledged_events_survive_power_loss, set_up_control, tear_down),
		cmocka_unit_test_setup_teardown(
			power_loss_takes_the_last_ticks_alone, set_up_samples, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
