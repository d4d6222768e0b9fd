/* The whole domain: it starts, finds its drives, survives the loss of its helper, and stops. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/latch.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/pool.h"
#include "base/secret.h"
#include "core/core.h"
#include "core/drive.h"
#include "core/retention.h"
#include "db/events.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_db.h"

#define STOP_MS 60000
#define LONG_MS 60000
#define DAY_MS INT64_C(86400000)

struct fixture {
	char dir[64], key[96];
	struct core *core;
};

static struct core_config config_of(const struct fixture *f) {
	return (struct core_config){
		.data_dir = f->dir,
		.priv_socket = -1,
		.secret_key_file = f->key,
		.rescan_ms = LONG_MS,
		.reconcile_ms = LONG_MS,
		.health_ms = LONG_MS,
		.meter_ms = 1000,
		.drive_timeout_ms = 5000,
		.max_runs = 1,
		.max_queued_runs = 4,
		.settle_ms = 100,
		.event_days = 1,
		.audit_days = 1,
		.run_days = 1,
		.sample_days = 1,
	};
}

static void start(struct fixture *f, const struct core_config *config) {
	struct err err;
	f->core = core_new(config, &err);
	if (!f->core)
		fail_msg("%s", err.msg);
	if (core_start(f->core, &err))
		fail_msg("%s", err.msg);
}

static void stop(struct fixture *f) {
	assert_true(core_free(f->core, STOP_MS));
	f->core = NULL;
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(secret_init(&err), RC_OK);
	snprintf(f->dir, sizeof(f->dir), "/tmp/drivewatt-core-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->key, sizeof(f->key), "%s/secret.key", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	static const char *const names[] = {"control.db", "control.db-wal", "control.db-shm",
		"samples.db", "samples.db-wal", "samples.db-shm", "secret.key"};
	struct fixture *f = *state;
	char path[160];
	stop(f);
	for (size_t i = 0; i < array_len(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/%s", f->dir, CORE_SIM_DIR);
	rmdir(path);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void simulated_drives_are_found_and_stay_the_same(void **state) {
	struct fixture *f = *state;
	struct core_config config = config_of(f);
	char id[HOST_ID_SIZE];
	config.simulate = 3;
	start(f, &config);
	assert_true(drives_settled(f->core->drives, LONG_MS));
	assert_int_equal(drives_count(f->core->drives), 3);
	memcpy(id, f->core->host_id, sizeof(id));
	assert_int_equal(strlen(id), 36);
	stop(f);
	start(f, &config);
	assert_string_equal(f->core->host_id, id);
	assert_int_equal(drives_count(f->core->drives), 3);
}

static void without_helper_there_is_a_reason_and_nothing_else(void **state) {
	struct fixture *f = *state;
	const struct core_config config = config_of(f);
	char reason[128];
	start(f, &config);
	assert_int_equal(drives_count(f->core->drives), 0);
	drives_reason(f->core->drives, reason, sizeof(reason));
	assert_string_not_equal(reason, "");
}

static bool has_reason(void *arg) {
	char reason[128];
	drives_reason(arg, reason, sizeof(reason));
	return strstr(reason, "helper") != NULL;
}

static bool is_counted(void *arg) {
	return metric_get(METRIC_PRIV_RESTARTS) == *(const int64_t *)arg;
}

static void a_lost_helper_is_told_and_lived_with(void **state) {
	struct fixture *f = *state;
	struct core_config config = config_of(f);
	int socks[2];
	int64_t counted = metric_get(METRIC_PRIV_RESTARTS) + 1;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	config.priv_socket = socks[1];
	close(socks[0]);
	start(f, &config);
	assert_true(eventually(has_reason, f->core->drives));
	/* A scan may notice first. */
	assert_true(eventually(is_counted, &counted));
}

static void what_cannot_start_says_so_and_leaves_nothing(void **state) {
	struct fixture *f = *state;
	struct core_config config = config_of(f);
	struct err err;
	config.data_dir = "/proc/nowhere";
	assert_null(core_new(&config, &err));
	assert_string_not_equal(err.msg, "");
	config = config_of(f);
	config.simulate = 1;
	config.simulate_model = "no such model";
	assert_null(core_new(&config, &err));
}

static void wait_for_latch(void *arg) {
	int done;
	assert_true(latch_wait(arg, LONG_MS, &done));
}

/* The thread that stopped the core ends after all. */
static bool has_no_stopper(void *arg unused_arg) {
	char path[300], name[32] = "";
	bool found = false;
	DIR *dir = opendir("/proc/self/task");
	assert_non_null(dir);
	for (const struct dirent *d; (d = readdir(dir));) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		FILE *in = fopen(path, "re");
		if (in && fgets(name, sizeof(name), in))
			found |= strcmp(name, "stop\n") == 0;
		if (in)
			fclose(in);
	}
	closedir(dir);
	return !found;
}

static void what_is_stuck_does_not_hold_up_the_end(void **state) {
	struct fixture *f = *state;
	const struct core_config config = config_of(f);
	struct latch *stuck = latch_new(sizeof(int));
	const int done = 1;
	start(f, &config);
	assert_true(pool_submit(f->core->jobs, wait_for_latch, stuck));
	assert_false(core_free(f->core, 50));
	f->core = NULL;
	latch_open(stuck, &done);
	assert_true(eventually(has_no_stopper, NULL));
	latch_unref(stuck);
}

/* --- retention --- */

static void insert_event(struct temp_db *t, int64_t at_ms) {
	struct event e = {.at_ms = at_ms, .type = EVENT_SERVICE};
	struct err err;
	assert_int_equal(db_event_insert(t->conn, &e, &err), RC_OK);
}

static bool count_event(void *arg, const struct event *e unused_arg) {
	++*(int *)arg;
	return true;
}

static bool only_one_is_left(void *arg) {
	struct db *db = arg;
	struct db_conn *c;
	struct err err;
	int count = 0;
	assert_int_equal(db_read_begin(db, &c, &err), RC_OK);
	assert_int_equal(db_event_list(c, 0, 10000, count_event, &count, &err), RC_OK);
	db_read_end(c);
	return count == 1;
}

static void what_is_old_is_forgotten_bit_by_bit(void **state unused_arg) {
	struct temp_db *control = temp_db_new(DB_CONTROL), *samples = temp_db_new(DB_SAMPLES);
	const struct retention_config config = {
		.prune_ms = 20, .checkpoint_ms = 20, .probe_ms = 20, .event_days = 2};
	struct err err;
	struct timers *timers = timers_new(8, &err);
	struct pool *jobs = pool_new("jobs", 2, 16, &err);
	temp_db_begin(control);
	for (int i = 0; i < 1200; i++)
		insert_event(control, clock_wall_ms() - 3 * DAY_MS);
	insert_event(control, clock_wall_ms() - 1 * DAY_MS);
	temp_db_commit(control);
	struct retention *r =
		retention_new(&config, control->db, samples->db, NULL, timers, jobs, &err);
	assert_non_null(r);
	assert_true(eventually(only_one_is_left, control->db));
	retention_free(r);
	pool_free(jobs);
	timers_free(timers);
	temp_db_free(samples);
	temp_db_free(control);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(simulated_drives_are_found_and_stay_the_same),
		TEST(without_helper_there_is_a_reason_and_nothing_else),
		TEST(a_lost_helper_is_told_and_lived_with),
		TEST(what_cannot_start_says_so_and_leaves_nothing),
		TEST(what_is_stuck_does_not_hold_up_the_end),
		cmocka_unit_test(what_is_old_is_forgotten_bit_by_bit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
