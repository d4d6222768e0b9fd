/* Benchmark runs with their documents, and own workloads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/runs.h"
#include "tests/support/temp_db.h"

/* Every field set, none like another. */
static const struct run full = {
	.id = "r1",
	.state = RUN_QUEUED,
	.owner = "ada",
	.created_ms = 100,
	.started_ms = NONE,
	.ended_ms = NONE,
	.progress = 0.25,
	.reason = "because",
	.spec =
		{
			.drive_count = 2,
			.drives = {"d2", "d1"},
			.workload = {.name = "rand-read-4k",
				.builtin = true,
				.pattern = PATTERN_RANDREAD,
				.block_bytes = 4096,
				.iodepth = 64,
				.jobs = 8,
				.read_pct = 100,
				.size_bytes = UINT64_C(1) << 40,
				.rate_bytes_per_s = 123456789,
				.direct = true},
			.power_state = -1,
			.runtime_s = 60,
			.ramp_s = 5,
			.max_write_bytes = UINT64_MAX,
			.override_signature = true,
			.confirm_count = 1,
			.confirm_destructive = {"S1"},
			.confirm_in_use_count = 2,
			.confirm_in_use = {"S2", "S3"},
			.labels = "{\"a\":\"b\"}",
		},
};

static struct run run_of(const char *id, enum run_state s, const char *drive) {
	struct run r = full;
	snprintf(r.id, sizeof(r.id), "%s", id);
	snprintf(r.spec.drives[0], DRIVE_ID_SIZE, "%s", drive);
	r.spec.drive_count = 1;
	r.state = s;
	return r;
}

static void check_workload(const struct workload *got, const struct workload *want) {
	assert_string_equal(got->name, want->name);
	assert_int_equal(got->builtin, want->builtin);
	assert_int_equal(got->pattern, want->pattern);
	assert_int_equal(got->block_bytes, want->block_bytes);
	assert_int_equal(got->iodepth, want->iodepth);
	assert_int_equal(got->jobs, want->jobs);
	assert_int_equal(got->read_pct, want->read_pct);
	assert_int_equal(got->size_bytes, want->size_bytes);
	assert_int_equal(got->rate_bytes_per_s, want->rate_bytes_per_s);
	assert_int_equal(got->direct, want->direct);
}

static void check_spec(const struct run_spec *got, const struct run_spec *want) {
	assert_int_equal(got->drive_count, want->drive_count);
	assert_memory_equal(got->drives, want->drives, sizeof(got->drives));
	check_workload(&got->workload, &want->workload);
	assert_int_equal(got->power_state, want->power_state);
	assert_int_equal(got->runtime_s, want->runtime_s);
	assert_int_equal(got->ramp_s, want->ramp_s);
	assert_int_equal(got->max_write_bytes, want->max_write_bytes);
	assert_int_equal(got->override_signature, want->override_signature);
	assert_int_equal(got->confirm_count, want->confirm_count);
	assert_memory_equal(got->confirm_destructive, want->confirm_destructive,
		sizeof(got->confirm_destructive));
	assert_int_equal(got->confirm_in_use_count, want->confirm_in_use_count);
	assert_memory_equal(got->confirm_in_use, want->confirm_in_use, sizeof(got->confirm_in_use));
	assert_string_equal(got->labels, want->labels);
}

static void check_run(const struct run *got, const struct run *want) {
	assert_string_equal(got->id, want->id);
	assert_int_equal(got->state, want->state);
	assert_string_equal(got->owner, want->owner);
	assert_int_equal(got->created_ms, want->created_ms);
	assert_int_equal(got->started_ms, want->started_ms);
	assert_int_equal(got->ended_ms, want->ended_ms);
	assert_true(got->progress == want->progress);
	assert_string_equal(got->reason, want->reason);
	assert_int_equal(got->read_bytes_per_s, NONE);
	assert_int_equal(got->write_bytes_per_s, NONE);
	check_spec(&got->spec, &want->spec);
}

static void a_run_comes_back_as_it_was(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct run got;
	assert_int_equal(db_run_insert(c, &full, NULL), RC_OK);
	assert_int_equal(db_run_get(c, "r1", &got, NULL), RC_OK);
	check_run(&got, &full);
	assert_int_equal(db_run_insert(c, &full, NULL), RC_EXISTS);
	assert_int_equal(db_run_get(c, "r2", &got, NULL), RC_NOT_FOUND);
}

static void a_run_may_have_as_many_drives_as_fit(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct run r = full, got;
	r.spec.drive_count = RUN_MAX_DRIVES;
	for (int i = 0; i < RUN_MAX_DRIVES; i++)
		snprintf(r.spec.drives[i], DRIVE_ID_SIZE, "d%d", i);
	assert_int_equal(db_run_insert(c, &r, NULL), RC_OK);
	assert_int_equal(db_run_get(c, "r1", &got, NULL), RC_OK);
	check_run(&got, &r);
	r.spec.drive_count++;
	assert_int_equal(db_run_insert(c, &r, NULL), RC_TOO_LARGE);
}

static void an_update_writes_where_the_run_is(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct run r = full, got;
	assert_int_equal(db_run_insert(c, &full, NULL), RC_OK);
	r.state = RUN_FAILED;
	r.started_ms = 200;
	r.ended_ms = 300;
	r.progress = 0.5;
	snprintf(r.reason, sizeof(r.reason), "fio was killed");
	assert_int_equal(db_run_update(c, &r, NULL), RC_OK);
	assert_int_equal(db_run_get(c, "r1", &got, NULL), RC_OK);
	check_run(&got, &r);
	r.id[1] = '9';
	assert_int_equal(db_run_update(c, &r, NULL), RC_NOT_FOUND);
}

struct listed {
	char ids[128];
	int n, stop_after;
	int64_t pid;
	uint64_t start_ticks;
};

static bool note_run(void *arg, const struct run *r) {
	struct listed *l = arg;
	const size_t len = strlen(l->ids);
	assert_int_equal(r->spec.drive_count, 1);
	snprintf(l->ids + len, sizeof(l->ids) - len, "%s ", r->id);
	return ++l->n != l->stop_after;
}

static bool note_open(void *arg, const struct run *r, int64_t pid, uint64_t start_ticks) {
	struct listed *l = arg;
	l->pid = pid;
	l->start_ticks = start_ticks;
	return note_run(arg, r);
}

static void insert_five(struct db_conn *c) {
	const struct run runs[] = {
		run_of("r1", RUN_COMPLETED, "d1"),
		run_of("r2", RUN_FAILED, "d2"),
		run_of("r3", RUN_RUNNING, "d1"),
		run_of("r4", RUN_QUEUED, "d1"),
		run_of("r5", RUN_PREPARING, "d2"),
	};
	for (size_t i = 0; i < array_len(runs); i++)
		assert_int_equal(db_run_insert(c, &runs[i], NULL), RC_OK);
}

static void runs_are_listed_from_the_newest(void **state) {
	struct db_conn *c = temp_db_conn(state);
	static const struct {
		int state;
		const char *drive, *before;
		int limit, stop_after;
		const char *want;
	} cases[] = {
		{-1, NULL, "", 10, 0, "r5 r4 r3 r2 r1 "},
		{-1, NULL, "", 2, 0, "r5 r4 "},
		{-1, NULL, "r4", 2, 0, "r3 r2 "},
		{-1, NULL, "r1", 2, 0, ""},
		{-1, "d1", "", 10, 0, "r4 r3 r1 "},
		{-1, "d3", "", 10, 0, ""},
		{RUN_QUEUED, NULL, "", 10, 0, "r4 "},
		{RUN_FAILED, "d1", "", 10, 0, ""},
		{RUN_FAILED, "d2", "", 10, 0, "r2 "},
		{-1, NULL, "", 10, 3, "r5 r4 r3 "},
	};
	insert_five(c);
	for (size_t i = 0; i < array_len(cases); i++) {
		struct listed l = {.stop_after = cases[i].stop_after};
		assert_int_equal(db_run_list(c, cases[i].state, cases[i].drive, cases[i].before,
					 cases[i].limit, note_run, &l, NULL),
			RC_OK);
		assert_string_equal(l.ids, cases[i].want);
	}
}

static void open_runs_come_with_their_process(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct listed all = {.n = 0}, first = {.stop_after = 1};
	insert_five(c);
	assert_int_equal(db_run_set_process(c, "r3", 4711, UINT64_MAX, NULL), RC_OK);
	assert_int_equal(db_run_set_process(c, "r9", 1, 1, NULL), RC_NOT_FOUND);
	assert_int_equal(db_run_each_open(c, note_open, &first, NULL), RC_OK);
	assert_string_equal(first.ids, "r3 ");
	assert_int_equal(first.pid, 4711);
	assert_int_equal(first.start_ticks, UINT64_MAX);
	assert_int_equal(db_run_each_open(c, note_open, &all, NULL), RC_OK);
	assert_string_equal(all.ids, "r3 r4 r5 ");
	assert_int_equal(all.pid, 0);
}

static void check_document(struct db_conn *c, enum run_document which, const char *want) {
	auto_free char *text = NULL;
	size_t len;
	assert_int_equal(db_run_document(c, "r1", which, &text, &len, NULL), RC_OK);
	assert_int_equal(len, strlen(want));
	assert_string_equal(text, want);
}

static void documents_are_kept_one_by_one(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char *text;
	size_t len;
	assert_int_equal(db_run_insert(c, &full, NULL), RC_OK);
	assert_int_equal(
		db_run_document(c, "r1", RUN_DOCUMENT_RESULT, &text, &len, NULL), RC_NOT_FOUND);
	assert_int_equal(db_run_set_result(c, "r1", "{\"a\":1}", NULL, "fio", NULL), RC_OK);
	check_document(c, RUN_DOCUMENT_RESULT, "{\"a\":1}");
	check_document(c, RUN_DOCUMENT_FIO, "fio");
	assert_int_equal(
		db_run_document(c, "r1", RUN_DOCUMENT_SERIES, &text, &len, NULL), RC_NOT_FOUND);
	assert_int_equal(db_run_set_result(c, "r1", NULL, "[]", "fio again", NULL), RC_OK);
	check_document(c, RUN_DOCUMENT_RESULT, "{\"a\":1}");
	check_document(c, RUN_DOCUMENT_SERIES, "[]");
	check_document(c, RUN_DOCUMENT_FIO, "fio again");
	assert_int_equal(db_run_set_result(c, "r9", "{}", NULL, NULL, NULL), RC_NOT_FOUND);
}

static void documents_have_a_hard_maximum(void **state) {
	struct db_conn *c = temp_db_conn(state);
	auto_free char *text = malloc(DB_RUN_RESULT_MAX + 2);
	memset(text, 'x', DB_RUN_RESULT_MAX + 1);
	text[DB_RUN_RESULT_MAX + 1] = '\0';
	assert_int_equal(db_run_insert(c, &full, NULL), RC_OK);
	assert_int_equal(db_run_set_result(c, "r1", text, NULL, NULL, NULL), RC_TOO_LARGE);
	assert_int_equal(db_run_set_result(c, "r1", NULL, text, NULL, NULL), RC_OK);
	text[DB_RUN_RESULT_MAX] = '\0';
	assert_int_equal(db_run_set_result(c, "r1", text, NULL, NULL, NULL), RC_OK);
	check_document(c, RUN_DOCUMENT_RESULT, text);
}

static void a_run_goes_with_all_it_has(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char *text;
	size_t len;
	struct listed l = {.n = 0};
	assert_int_equal(db_run_insert(c, &full, NULL), RC_OK);
	assert_int_equal(db_run_set_result(c, "r1", "{}", "[]", "fio", NULL), RC_OK);
	assert_int_equal(db_run_delete(c, "r1", NULL), RC_OK);
	assert_int_equal(db_run_delete(c, "r1", NULL), RC_NOT_FOUND);
	assert_int_equal(
		db_run_document(c, "r1", RUN_DOCUMENT_FIO, &text, &len, NULL), RC_NOT_FOUND);
	assert_int_equal(db_run_list(c, -1, "d1", "", 9, note_run, &l, NULL), RC_OK);
	assert_int_equal(l.n, 0);
	assert_int_equal(db_run_insert(c, &full, NULL), RC_OK);
}

static void only_final_runs_are_pruned(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct listed l = {.n = 0};
	int removed;
	for (int i = 0; i < RUN_STATE_COUNT_; i++) {
		struct run r = run_of("r0", (enum run_state)i, "d1");
		r.id[1] = (char)('0' + i);
		r.ended_ms = 100 + i;
		assert_int_equal(db_run_insert(c, &r, NULL), RC_OK);
	}
	assert_int_equal(db_run_prune(c, 106, 2, &removed, NULL), RC_OK);
	assert_int_equal(removed, 2);
	assert_int_equal(db_run_prune(c, 106, 2, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_run_list(c, -1, NULL, "", 9, note_run, &l, NULL), RC_OK);
	assert_string_equal(l.ids, "r6 r2 r1 r0 ");
}

static bool note_workload(void *arg, const struct workload *w) {
	struct listed *l = arg;
	const size_t len = strlen(l->ids);
	snprintf(l->ids + len, sizeof(l->ids) - len, "%s ", w->name);
	return ++l->n != l->stop_after;
}

static void own_workloads_are_kept_by_name(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct workload w = full.spec.workload, got;
	struct listed all = {.n = 0}, first = {.stop_after = 1};
	w.builtin = false;
	w.config_version = 7;
	snprintf(w.name, sizeof(w.name), "mine");
	assert_int_equal(db_workload_put(c, &w, NULL), RC_OK);
	w.pattern = PATTERN_RANDRW;
	w.read_pct = 30;
	w.config_version = 8;
	assert_int_equal(db_workload_put(c, &w, NULL), RC_OK);
	assert_int_equal(db_workload_get(c, "mine", &got, NULL), RC_OK);
	check_workload(&got, &w);
	assert_int_equal(got.config_version, 8);
	snprintf(w.name, sizeof(w.name), "another");
	assert_int_equal(db_workload_put(c, &w, NULL), RC_OK);
	assert_int_equal(db_workload_each(c, note_workload, &all, NULL), RC_OK);
	assert_string_equal(all.ids, "another mine ");
	assert_int_equal(db_workload_each(c, note_workload, &first, NULL), RC_OK);
	assert_string_equal(first.ids, "another ");
	assert_int_equal(db_workload_delete(c, "mine", NULL), RC_OK);
	assert_int_equal(db_workload_delete(c, "mine", NULL), RC_NOT_FOUND);
	assert_int_equal(db_workload_get(c, "mine", &got, NULL), RC_NOT_FOUND);
	w.name[0] = '\0';
	assert_int_equal(db_workload_put(c, &w, NULL), RC_INVALID);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_run_comes_back_as_it_was),
		WITH_DB(a_run_may_have_as_many_drives_as_fit),
		WITH_DB(an_update_writes_where_the_run_is),
		WITH_DB(runs_are_listed_from_the_newest),
		WITH_DB(open_runs_come_with_their_process),
		WITH_DB(documents_are_kept_one_by_one),
		WITH_DB(documents_have_a_hard_maximum),
		WITH_DB(a_run_goes_with_all_it_has),
		WITH_DB(only_final_runs_are_pruned),
		WITH_DB(own_workloads_are_kept_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
