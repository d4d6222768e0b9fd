/* The life of runs: from the queue through leases and fio to a stored end, and every way out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "db/drives.h"
#include "tests/unit/core/bench_fakes.h"

#define PERIOD_MS 200
#define LOGS_BEGIN_MS INT64_C(1796066684391) /* those of tests/data/fio/run */

static const struct bench_config config = {.max_runs = 4, .max_queued = 8, .host_id = HOST};

static int setup(void **state unused_arg) {
	world_open(&config);
	add_drive("driveA", DRIVE_NVME);
	add_drive("driveB", DRIVE_NVME);
	add_drive("driveC", DRIVE_NVME);
	world.baselines[BASELINE_IDLE_WITH_DRIVES] = (struct baseline){.known = true,
		.source = BASELINE_DECLARED,
		.power_mw = 594000,
		.uncertainty_mw = NONE,
		.at_ms = 1};
	return 0;
}

static int teardown(void **state unused_arg) {
	world_close();
	return 0;
}

/* --- waiting ------------------------------------------------------------------------------------
 */

static void await(bool (*ready)(const void *arg), const void *arg) {
	struct timespec deadline = thread_deadline(PATIENCE_MS);
	bool in_time = true;
	while (!ready(arg)) {
		assert_true(in_time);
		/* What is waited for may change without a signal of ours. */
		struct timespec soon = thread_deadline(20);
		pthread_mutex_lock(&world.lock);
		cond_wait_until(&world.changed, &world.lock, &soon);
		pthread_mutex_unlock(&world.lock);
		struct timespec now = thread_deadline(0);
		in_time = now.tv_sec < deadline.tv_sec;
	}
}

static bool runs_started(const void *arg) {
	pthread_mutex_lock(&world.lock);
	bool enough = world.run_count >= *(const unsigned *)arg;
	pthread_mutex_unlock(&world.lock);
	return enough;
}

static void await_runs(unsigned n) {
	await(runs_started, &n);
}

static bool is_over(const void *id) {
	struct run r;
	struct err err;
	assert_int_equal(bench_get(world.bench, id, &r, &err), RC_OK);
	return run_state_is_final(r.state) && bench_active(world.bench) == 0;
}

static bool is_running(const void *id) {
	struct run r;
	struct err err;
	assert_int_equal(bench_get(world.bench, id, &r, &err), RC_OK);
	return r.state == RUN_RUNNING;
}

static void expect_end(const char *id, enum run_state state, const char *reason) {
	struct run r;
	struct err err;
	await(is_over, id);
	assert_int_equal(bench_get(world.bench, id, &r, &err), RC_OK);
	assert_string_equal(run_state_name(r.state), run_state_name(state));
	assert_non_null(strstr(r.reason, reason));
	assert_true(r.ended_ms >= r.created_ms);
}

static void submit(const struct run_spec *s, struct run *out) {
	struct err err;
	if (bench_submit(world.bench, &alice, s, out, &err))
		fail_msg("%s: %s", err.field, err.msg);
	assert_int_equal(out->state, RUN_QUEUED);
}

static struct run_spec both_drives(void) {
	const char *ids[] = {"driveA", "driveB"};
	return make_spec(ids, 2);
}

static struct run_spec one_drive(const char *id) {
	return make_spec(&id, 1);
}

/* --- what came out ------------------------------------------------------------------------------
 */

static json_t *document(const char *id, enum run_document which) {
	char *text = NULL;
	size_t len;
	struct err err;
	enum rc rc = bench_document(world.bench, id, which, &text, &len, &err);
	if (rc == RC_NOT_FOUND)
		return NULL;
	assert_int_equal(rc, RC_OK);
	json_t *doc = json_loadb(text, len, 0, NULL);
	free(text);
	assert_non_null(doc);
	return doc;
}

static double figure(json_t *doc, const char *path) {
	char copy[128], *rest = copy;
	str_copy(copy, sizeof(copy), path);
	for (char *key; (key = strsep(&rest, "/"));)
		doc = json_is_array(doc) ? json_array_get(doc, strtoul(key, NULL, 10))
					 : json_object_get(doc, key);
	assert_non_null(doc);
	return json_is_null(doc) ? NAN : json_number_value(doc);
}

static bool near(double a, double b, double within) {
	return fabs(a - b) <= within;
}

/* --- the straight way ---------------------------------------------------------------------------
 */

static void a_run_goes_through(void **state unused_arg) {
	struct run_spec s = both_drives();
	s.power_state = 1;
	struct run r;
	submit(&s, &r);
	await_runs(1);
	await(is_running, r.id);
	assert_int_equal(world.runs[0].start.target_count, 2);
	assert_string_equal(world.runs[0].start.targets[1].drive_id, "driveB");
	assert_int_equal(world.runs[0].start.targets[1].nsid, 1);
	fio_ends(0, 0, 0, false);
	expect_end(r.id, RUN_COMPLETED, "");

	struct err err;
	assert_int_equal(bench_get(world.bench, r.id, &r, &err), RC_OK);
	assert_true(r.progress == 1);
	assert_int_equal(world.leases, 2);
	assert_int_equal(world.lease_ends, 1);
	assert_int_equal(world.forgets, 1);
	assert_int_equal(world.demanded_ms, 1000);

	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	assert_true(near(figure(doc, "total/read/iops"), 240, 4));
	assert_true(near(figure(doc, "total/write/iops"), 120, 4));
	assert_true(near(figure(doc, "drives/1/read/bytes_per_s"), 120 * 4096, 5000));
	assert_true(figure(doc, "total/read/latency_us/p50") > 0);
	assert_true(figure(doc, "total/read/latency_us/p99_9") <=
		figure(doc, "total/read/latency_us/max"));
	const double shared_s = figure(doc, "window/shared_s");
	assert_true(near(shared_s, 3, 0.05));
	assert_true(near(figure(doc, "total/read/bytes"),
		figure(doc, "total/read/bytes_per_s") * shared_s, 1));
	assert_true(near(
		figure(doc, "total/write/ios"), figure(doc, "total/write/iops") * shared_s, 1));
	assert_true(near(figure(doc, "total/read/bytes"),
		figure(doc, "drives/0/read/bytes") + figure(doc, "drives/1/read/bytes"), 1));
	assert_true(figure(doc, "scale") == 1);
	assert_true(json_is_false(json_object_get(doc, "simulated")));
	assert_true(json_is_false(json_object_get(doc, "partial")));
	assert_true(figure(doc, "fio/exit_code") == 0);
	/* A second of a meter that comes every 200 ms, less the lag. */
	assert_true(figure(doc, "power/system_w/samples") >= RUN_MIN_FRESH_READINGS);
	assert_true(figure(doc, "power/system_w/mean") == 858);
	assert_true(figure(doc, "power/above_baseline_w") == 264);
	assert_true(figure(doc, "power/per_drive_w") == 132);
	assert_true(near(figure(doc, "power/uncertainty_w"), 26.94, 0.01));
	assert_true(figure(doc, "power/bound_w") == 33);
	assert_true(isnan(figure(doc, "power/drive_w")));
	assert_true(json_is_string(json_object_get(
		json_object_get(json_object_get(doc, "power"), "reasons"), "drive_w")));
	assert_true(near(figure(doc, "efficiency/system/iops_per_w"), 360.0 / 858, 0.01));
	assert_true(near(figure(doc, "efficiency/above_baseline/j_per_io"), 264.0 / 360, 0.02));
	assert_true(isnan(figure(doc, "efficiency/drive/j_per_gb")));
	json_decref(doc);

	doc = document(r.id, RUN_DOCUMENT_SERIES);
	assert_true(figure(doc, "step_s") == 1);
	assert_true(near(figure(doc, "points/1/read_iops"), 240, 4));
	assert_true(figure(doc, "points/1/power_w") == 858);
	json_decref(doc);
	doc = document(r.id, RUN_DOCUMENT_FIO);
	assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 4);
	json_decref(doc);
}

static void slow_motion_is_undone(void **state unused_arg) {
	for (unsigned i = 0; i < 2; i++) {
		world.drives[i].kind = DRIVE_SIMULATED;
		world.details[i]->scale = 100;
	}
	world.drives_have_meters = true;
	struct run_spec s = both_drives();
	s.workload.rate_bytes_per_s = 1000000;
	struct run r;
	submit(&s, &r);
	await_runs(1);
	assert_int_equal(world.runs[0].start.workload.rate_bytes_per_s, 10000);
	fio_ends(0, 0, 0, false);
	expect_end(r.id, RUN_COMPLETED, "");
	assert_int_equal(world.demanded_ms, PERIOD_MS);
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	json_t *series = document(r.id, RUN_DOCUMENT_SERIES);
	assert_true(json_is_true(json_object_get(doc, "simulated")));
	assert_true(figure(doc, "scale") == 100);
	assert_true(near(figure(doc, "total/read/iops"), 24000, 400));
	/* Of the window of 3 s, not of all 4 s. */
	assert_true(near(figure(doc, "total/read/ios"), 72000, 1500));
	assert_true(near(figure(series, "points/1/read_iops"), 24000, 400));
	assert_true(figure(doc, "power/drive_w") == 20);
	assert_true(near(figure(doc, "efficiency/drive/iops_per_w"), 36000.0 / 20, 30));
	json_decref(doc);
	json_decref(series);
}

/* The jobs' logs are 3 s long and more. */
static void what_drains_after_the_runtime_is_left_out(void **state unused_arg) {
	struct run_spec s = both_drives();
	s.runtime_s = 2;
	struct run r;
	submit(&s, &r);
	await_runs(1);
	fio_ends(0, 0, 0, false);
	expect_end(r.id, RUN_COMPLETED, "");
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	assert_true(near(figure(doc, "window/shared_s"), 2, 0.05));
	assert_true(near(figure(doc, "total/read/iops"), 240, 6));
	json_decref(doc);
}

static void a_slow_meter_gives_reasons_instead_of_figures(void **state unused_arg) {
	world.meter_period_ms = 1000;
	struct run_spec s = both_drives();
	struct run r;
	submit(&s, &r);
	await_runs(1);
	fio_ends(0, 0, 0, false);
	expect_end(r.id, RUN_COMPLETED, "");
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	json_t *power = json_object_get(doc, "power");
	static const char *const nulls[] = {
		"system_w", "above_baseline_w", "per_drive_w", "uncertainty_w", "bound_w"};
	for (size_t i = 0; i < array_len(nulls); i++) {
		assert_true(json_is_null(json_object_get(power, nulls[i])));
		assert_non_null(strstr(json_string_value(json_object_get(
					       json_object_get(power, "reasons"), nulls[i])),
			"fresh readings, 8 are needed"));
	}
	assert_true(json_is_string(json_object_get(power, "reason")));
	assert_true(isnan(figure(doc, "efficiency/system/iops_per_w")));
	json_decref(doc);
}

/* --- other ways out -----------------------------------------------------------------------------
 */

static const struct {
	enum fake_lease lease;
	const char *reason;
} leases[] = {
	{LEASE_REFUSED, "the drive said no"},
	{LEASE_ELSEWHERE, "power state 2, not 1, held by budget:rack"},
};

static void a_drive_that_does_not_obey_fails_the_run(void **state unused_arg) {
	for (size_t i = 0; i < array_len(leases); i++) {
		world.lease = leases[i].lease;
		struct run_spec s = one_drive("driveA");
		s.power_state = 1;
		struct run r;
		submit(&s, &r);
		expect_end(r.id, RUN_FAILED, leases[i].reason);
		assert_int_equal(world.lease_ends, i + 1);
		assert_int_equal(world.run_count, 0);
		assert_null(document(r.id, RUN_DOCUMENT_RESULT));
	}
}

static bool a_lease_was_asked(const void *arg unused_arg) {
	pthread_mutex_lock(&world.lock);
	bool asked = world.leases > 0;
	pthread_mutex_unlock(&world.lock);
	return asked;
}

static void the_helpers_refusal_fails_the_run(void **state unused_arg) {
	world.start_rc = RC_CONFLICT;
	struct run_spec s = one_drive("driveA");
	struct run r;
	submit(&s, &r);
	expect_end(r.id, RUN_FAILED, "sda1 mounted on /");
}

/* Its figures are those of the time before, and so are the other drive's. */
static void a_drive_that_went_away_fails_the_run(void **state unused_arg) {
	struct run_spec s = both_drives();
	struct run r;
	submit(&s, &r);
	await_runs(1);
	const struct priv_run_exited x = {
		.exit_code = 128, .asked = 1, .gone = 2, .gone_ms = LOGS_BEGIN_MS + 2000};
	fio_exits(0, &x);
	expect_end(r.id, RUN_FAILED, "drive driveB (serial SNdriveB) went away");
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	assert_true(json_is_true(json_object_get(doc, "partial")));
	assert_true(near(figure(doc, "window/shared_s"), 2, 0.05));
	assert_true(near(figure(doc, "drives/0/read/iops"), 120, 4));
	assert_true(figure(doc, "drives/0/read/latency_us/p50") > 0);
	assert_true(near(figure(doc, "drives/1/read/iops"), 120, 4));
	assert_true(isnan(figure(doc, "drives/1/read/latency_us/p50")));
	assert_true(figure(doc, "total/read/latency_us/p50") > 0);
	json_t *drives = json_object_get(doc, "drives");
	assert_true(json_is_null(json_object_get(json_array_get(drives, 0), "gone_at")));
	assert_true(json_is_string(json_object_get(json_array_get(drives, 1), "gone_at")));
	json_decref(doc);
}

static void a_fio_that_cannot_be_killed_is_told(void **state unused_arg) {
	const struct priv_run_exited x = {.asked = 1, .abandoned = 1};
	struct run_spec s = one_drive("driveA");
	struct run r;
	world.run_dir = "tests/data";
	submit(&s, &r);
	await_runs(1);
	fio_exits(0, &x);
	expect_end(r.id, RUN_FAILED, "fio does not end: it waits in the kernel");
	assert_null(document(r.id, RUN_DOCUMENT_RESULT));
}

static const struct drive_use appearing[] = {
	{USE_MOUNT, "nvme0n1p2 mounted on /srv"},
	{USE_OPEN, "somebody has it open"},
};

static void what_appears_while_a_run_waits_fails_it(void **state unused_arg) {
	for (size_t i = 0; i < array_len(appearing); i++) {
		struct run_spec s = one_drive(i ? "driveB" : "driveA");
		s.power_state = 1;
		struct run r;
		world.appears = &appearing[i];
		submit(&s, &r);
		expect_end(r.id, RUN_FAILED, appearing[i].detail);
		assert_int_equal(world.identified, i + 1);
		assert_int_equal(world.leases, 0);
		assert_int_equal(world.run_count, 0);
	}
}

static void a_drive_that_cannot_be_looked_at_fails_the_run(void **state unused_arg) {
	world.identify_rc = RC_TIMEOUT;
	struct run_spec s = one_drive("driveA");
	struct run r;
	submit(&s, &r);
	expect_end(r.id, RUN_FAILED, "cannot be looked at: the drive has not answered");
	assert_int_equal(world.run_count, 0);
}

static void a_killed_fio_fails_the_run(void **state unused_arg) {
	struct run_spec s = both_drives();
	struct run r;
	submit(&s, &r);
	await_runs(1);
	fio_ends(0, 137, 9, false);
	expect_end(r.id, RUN_FAILED, "signal 9");
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	assert_true(json_is_true(json_object_get(doc, "partial")));
	json_decref(doc);
}

static void no_output_leaves_no_result(void **state unused_arg) {
	world.run_dir = "tests/data";
	struct run_spec s = both_drives();
	struct run r;
	submit(&s, &r);
	await_runs(1);
	fio_ends(0, 0, 0, false);
	expect_end(r.id, RUN_FAILED, "no result");
	assert_null(document(r.id, RUN_DOCUMENT_RESULT));
	assert_null(document(r.id, RUN_DOCUMENT_FIO));
}

static void a_running_run_can_be_cancelled(void **state unused_arg) {
	struct run_spec s = both_drives();
	s.power_state = 0;
	struct run r;
	struct err err;
	submit(&s, &r);
	await(is_running, r.id);
	assert_int_equal(bench_delete(world.bench, &alice, r.id, &err), RC_CONFLICT);
	assert_int_equal(bench_cancel(world.bench, &alice, r.id, &err), RC_OK);
	expect_end(r.id, RUN_CANCELLED, "cancelled by alice");
	assert_int_equal(world.stops, 1);
	assert_int_equal(world.lease_ends, 1);
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	assert_true(json_is_true(json_object_get(doc, "partial")));
	json_decref(doc);
	assert_int_equal(bench_cancel(world.bench, &alice, r.id, &err), RC_CONFLICT);
	assert_int_equal(bench_delete(world.bench, &alice, r.id, &err), RC_OK);
	assert_int_equal(bench_get(world.bench, r.id, &r, &err), RC_NOT_FOUND);
	assert_int_equal(bench_cancel(world.bench, &alice, r.id, &err), RC_NOT_FOUND);
}

static void a_run_that_waits_for_a_drive_can_be_cancelled(void **state unused_arg) {
	world.lease = LEASE_SILENT;
	struct run_spec s = one_drive("driveA");
	s.power_state = 1;
	struct run r;
	struct err err;
	submit(&s, &r);
	await(a_lease_was_asked, NULL);
	assert_int_equal(bench_cancel(world.bench, &alice, r.id, &err), RC_OK);
	expect_end(r.id, RUN_CANCELLED, "cancelled by alice");
	assert_int_equal(world.lease_ends, 1);
}

static void a_queued_run_can_be_cancelled(void **state unused_arg) {
	struct run_spec s = one_drive("driveA");
	struct run first, second;
	struct err err;
	submit(&s, &first);
	await_runs(1);
	submit(&s, &second);
	assert_int_equal(bench_cancel(world.bench, &alice, second.id, &err), RC_OK);
	struct run r;
	assert_int_equal(bench_get(world.bench, second.id, &r, &err), RC_OK);
	assert_int_equal(r.state, RUN_CANCELLED);
	assert_int_equal(world.run_count, 1);
	fio_ends(0, 137, 9, false);
	await(is_over, first.id);
}

static bool is_kept(const void *id) {
	struct run r;
	struct err err;
	assert_int_equal(bench_get(world.bench, id, &r, &err), RC_OK);
	return r.unrecorded;
}

static bool is_recorded(const void *id) {
	return !is_kept(id);
}

static bool none_is_kept(const void *arg unused_arg) {
	return metric_get(METRIC_RUNS_UNRECORDED) == 0;
}

static void expect_result(const char *id) {
	const enum run_document all[] = {
		RUN_DOCUMENT_RESULT, RUN_DOCUMENT_SERIES, RUN_DOCUMENT_FIO};
	for (unsigned i = 0; i < array_len(all); i++) {
		json_t *doc = document(id, all[i]);
		assert_non_null(doc);
		json_decref(doc);
	}
}

static void expect_state(const char *id, enum run_state state) {
	struct run r;
	struct err err;
	assert_int_equal(bench_get(world.bench, id, &r, &err), RC_OK);
	assert_string_equal(run_state_name(r.state), run_state_name(state));
}

static void an_end_waits_in_memory_for_the_store(void **state unused_arg) {
	struct run_spec s = both_drives(), other = one_drive("driveC");
	struct run r, waits, kept, stored;
	struct err err;
	s.power_state = 1;
	submit(&s, &r);
	await(is_running, r.id);
	submit(&other, &waits);
	await(is_running, waits.id);
	db_fail_nth(world.store->db, 1, RC_NO_SPACE);
	fio_ends(0, 0, 0, false);
	await(is_kept, r.id);

	assert_int_equal(bench_get(world.bench, r.id, &kept, &err), RC_OK);
	assert_int_equal(kept.state, RUN_COMPLETED);
	expect_result(r.id);
	assert_int_equal(world.lease_ends, 1);
	assert_int_equal(world.forgets, 1);
	assert_int_equal(bench_active(world.bench), 1);
	assert_int_equal(metric_get(METRIC_RUNS_UNRECORDED), 1);
	assert_int_equal(bench_cancel(world.bench, &alice, r.id, &err), RC_CONFLICT);
	assert_int_equal(bench_delete(world.bench, &alice, r.id, &err), RC_STORE);

	db_fail_nth(world.store->db, 0, RC_OK);
	await(is_recorded, r.id);
	await(none_is_kept, NULL);
	assert_int_equal(bench_get(world.bench, r.id, &stored, &err), RC_OK);
	assert_int_equal(stored.state, RUN_COMPLETED);
	assert_int_equal(stored.ended_ms, kept.ended_ms);
	expect_result(r.id);
	fio_ends(1, 137, 9, false);
	expect_end(waits.id, RUN_FAILED, "");
}

/* With one worker after the other stuck on its end, memory would fill up. */
static void no_run_begins_while_an_end_waits(void **state unused_arg) {
	struct run_spec s = one_drive("driveA"), other = one_drive("driveB");
	struct run first, second;
	submit(&s, &first);
	await(is_running, first.id);
	db_fail_nth(world.store->db, 1, RC_NO_SPACE);
	fio_ends(0, 0, 0, false);
	await(is_kept, first.id);
	db_fail_nth(world.store->db, 0, RC_OK);
	submit(&other, &second); /* whose worker would begin it at once */
	await_runs(2);
	assert_true(is_recorded(first.id));
	fio_ends(1, 137, 9, false);
	expect_end(second.id, RUN_FAILED, "");
}

/* Neither is its beginning lost: it waits as in the queue, and can be cancelled. */
static void a_run_does_not_begin_without_the_store(void **state unused_arg) {
	struct run_spec s = one_drive("driveA");
	struct run first, second;
	struct err err;
	submit(&s, &first);
	await(is_running, first.id);
	submit(&s, &second);
	db_fail_nth(world.store->db, 1, RC_NO_SPACE);
	assert_int_equal(bench_cancel(world.bench, &alice, second.id, &err), RC_NO_SPACE);
	expect_state(second.id, RUN_QUEUED);
	db_fail_nth(world.store->db, 0, RC_OK);
	assert_int_equal(bench_cancel(world.bench, &alice, second.id, &err), RC_OK);
	expect_state(second.id, RUN_CANCELLED);
	fio_ends(0, 137, 9, false);
	expect_end(first.id, RUN_FAILED, "");
}

static void read_state(const char *id, enum run_state state);

static void an_end_that_is_never_stored_is_an_interruption(void **state unused_arg) {
	struct run_spec s = one_drive("driveA");
	struct run r;
	submit(&s, &r);
	await(is_running, r.id);
	db_fail_nth(world.store->db, 1, RC_STORE);
	fio_ends(0, 0, 0, false);
	await(is_kept, r.id);
	bench_free(world.bench);
	world.bench = NULL;
	db_fail_nth(world.store->db, 0, RC_OK);
	read_state(r.id, RUN_RUNNING);
}

/* --- the queue ----------------------------------------------------------------------------------
 */

static bool started(const char *id) {
	bool found = false;
	pthread_mutex_lock(&world.lock);
	for (unsigned i = 0; i < world.run_count; i++)
		found |= strcmp(world.runs[i].start.run_id, id) == 0;
	pthread_mutex_unlock(&world.lock);
	return found;
}

static bool has_begun(const void *id) {
	return started(id);
}

static void end_of(const char *id) {
	for (unsigned i = 0; i < world.run_count; i++) {
		if (strcmp(world.runs[i].start.run_id, id) == 0)
			fio_ends(i, 137, 9, false);
	}
}

/* a: A; b: A and B; c: B; d: C. c must not overtake b, d may overtake all. */
static void runs_wait_for_their_drives_in_order(void **state unused_arg) {
	struct run_spec sa = one_drive("driveA"), sb = both_drives(), sc = one_drive("driveB"),
			sd = one_drive("driveC");
	struct run a, b, c, d;
	submit(&sa, &a);
	submit(&sb, &b);
	submit(&sc, &c);
	submit(&sd, &d);
	await(has_begun, a.id);
	await(has_begun, d.id);
	assert_false(started(b.id) || started(c.id));
	assert_int_equal(bench_active(world.bench), 2);
	end_of(a.id);
	await(has_begun, b.id);
	assert_false(started(c.id));
	end_of(b.id);
	await(has_begun, c.id);
	end_of(c.id);
	end_of(d.id);
	await(is_over, c.id);
}

struct listed {
	unsigned count;
	char ids[8][RUN_ID_SIZE];
};

static bool list(void *arg, const struct run *r) {
	struct listed *l = arg;
	str_copy(l->ids[l->count++], RUN_ID_SIZE, r->id);
	return l->count < 8;
}

static void lists_show_the_newest_first(void **state unused_arg) {
	struct run_spec s = one_drive("driveA");
	struct run first, second;
	struct listed l = {0};
	struct err err;
	submit(&s, &first);
	await(is_running, first.id);
	submit(&s, &second);
	assert_int_equal(bench_list(world.bench, -1, NULL, "", 8, list, &l, &err), RC_OK);
	assert_int_equal(l.count, 2);
	assert_string_equal(l.ids[0], second.id);
	l.count = 0;
	assert_int_equal(
		bench_list(world.bench, RUN_RUNNING, "driveA", "", 8, list, &l, &err), RC_OK);
	assert_int_equal(l.count, 1);
	assert_string_equal(l.ids[0], first.id);
}

/* --- ends and beginnings of the daemon -----------------------------------------------------------
 */

static void read_state(const char *id, enum run_state state) {
	struct db_conn *c;
	struct run r;
	struct err err;
	assert_int_equal(db_read_begin(world.store->db, &c, &err), RC_OK);
	assert_int_equal(db_run_get(c, id, &r, &err), RC_OK);
	db_read_end(c);
	assert_string_equal(run_state_name(r.state), run_state_name(state));
}

static void runs_are_interrupted_when_the_daemon_ends(void **state unused_arg) {
	struct run_spec s = one_drive("driveA");
	struct run first, second;
	submit(&s, &first);
	await(is_running, first.id);
	submit(&s, &second);
	bench_free(world.bench);
	world.bench = NULL;
	assert_int_equal(world.stops, 1);
	assert_int_equal(world.forgets, 1);
	read_state(first.id, RUN_INTERRUPTED);
	read_state(second.id, RUN_INTERRUPTED);
}

static void an_earlier_lifes_runs_are_cleared_up(void **state unused_arg) {
	struct run r = {.id = "0192f000-0000-7000-8000-000000000001",
		.state = RUN_RUNNING,
		.owner = "bob",
		.created_ms = 1,
		.started_ms = 2,
		.ended_ms = NONE,
		.read_bytes_per_s = NONE,
		.write_bytes_per_s = NONE,
		.spec = one_drive("driveA")};
	struct drive_record seen = {.id = "driveA"};
	struct err err;
	struct db_conn *c = temp_db_begin(world.store);
	assert_int_equal(db_run_insert(c, &r, &err), RC_OK);
	assert_int_equal(db_run_set_process(c, r.id, 777, 12345, &err), RC_OK);
	assert_int_equal(db_drive_seen(c, &seen, &err), RC_OK);
	temp_db_commit(world.store);

	assert_int_equal(bench_recover(world.bench, &err), RC_OK);
	assert_int_equal(world.reaped_pid, 777);
	expect_end(r.id, RUN_INTERRUPTED, "the daemon ended");
}

/* --- idleness
 * ------------------------------------------------------------------------------------- */

static struct run_spec idle_spec(unsigned drives) {
	const char *ids[] = {"driveA", "driveB", "driveC"};
	struct run_spec s = make_spec(ids, drives);
	s.workload = *workload_builtin("idle");
	s.runtime_s = 1;
	s.ramp_s = 0;
	return s;
}

static void an_idle_run_of_all_drives_measures_the_baseline(void **state unused_arg) {
	world.meter_period_ms = 20;
	world.meter_mw = 600000;
	struct run_spec s = idle_spec(3);
	struct run r;
	submit(&s, &r);
	expect_end(r.id, RUN_COMPLETED, "");
	assert_int_equal(world.run_count, 0);
	assert_int_equal(world.baselines_set, 1);
	const struct baseline *b = &world.baselines[BASELINE_IDLE_WITH_DRIVES];
	assert_int_equal(b->source, BASELINE_MEASURED);
	assert_int_equal(b->power_mw, 600000);
	assert_true(near((double)b->uncertainty_mw, 2 * 33000 / sqrt(12), 1));
	json_t *doc = document(r.id, RUN_DOCUMENT_RESULT);
	assert_true(figure(doc, "total/read/iops") == 0);
	assert_true(isnan(figure(doc, "fio/exit_code")));
	assert_true(figure(doc, "power/system_w/mean") == 600);
	json_decref(doc);
}

static void an_idle_run_of_some_drives_does_not(void **state unused_arg) {
	world.meter_period_ms = 20;
	struct run_spec s = idle_spec(2);
	struct run r;
	submit(&s, &r);
	expect_end(r.id, RUN_COMPLETED, "");
	assert_int_equal(world.baselines_set, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_run_goes_through),
		TEST(slow_motion_is_undone),
		TEST(what_drains_after_the_runtime_is_left_out),
		TEST(a_slow_meter_gives_reasons_instead_of_figures),
		TEST(a_drive_that_does_not_obey_fails_the_run),
		TEST(the_helpers_refusal_fails_the_run),
		TEST(a_drive_that_went_away_fails_the_run),
		TEST(a_fio_that_cannot_be_killed_is_told),
		TEST(what_appears_while_a_run_waits_fails_it),
		TEST(a_drive_that_cannot_be_looked_at_fails_the_run),
		TEST(a_killed_fio_fails_the_run),
		TEST(no_output_leaves_no_result),
		TEST(a_running_run_can_be_cancelled),
		TEST(a_run_that_waits_for_a_drive_can_be_cancelled),
		TEST(a_queued_run_can_be_cancelled),
		TEST(an_end_waits_in_memory_for_the_store),
		TEST(no_run_begins_while_an_end_waits),
		TEST(a_run_does_not_begin_without_the_store),
		TEST(an_end_that_is_never_stored_is_an_interruption),
		TEST(runs_wait_for_their_drives_in_order),
		TEST(lists_show_the_newest_first),
		TEST(runs_are_interrupted_when_the_daemon_ends),
		TEST(an_earlier_lifes_runs_are_cleared_up),
		TEST(an_idle_run_of_all_drives_measures_the_baseline),
		TEST(an_idle_run_of_some_drives_does_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
