/* The catalogue, and what a workload may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/workload.h"

static const struct {
	const char *name, *pattern;
	unsigned block_bytes, iodepth, jobs, read_pct;
} catalogue[] = {
	{"rand-read-4k", "randread", 4096, 64, 8, 100},
	{"rand-write-4k", "randwrite", 4096, 64, 8, 0},
	{"rand-mixed-70-30-4k", "randrw", 4096, 64, 8, 70},
	{"rand-read-8k", "randread", 8192, 64, 8, 100},
	{"rand-write-8k", "randwrite", 8192, 64, 8, 0},
	{"rand-mixed-70-30-8k", "randrw", 8192, 64, 8, 70},
	{"seq-read-128k", "read", 131072, 128, 1, 100},
	{"seq-write-128k", "write", 131072, 128, 1, 0},
	{"idle", "idle", 0, 0, 0, 0},
};

static void the_catalogue_is_complete_and_valid(void **state) {
	(void)state;
	size_t count;
	const struct workload *all = workload_builtins(&count);
	assert_int_equal(count, array_len(catalogue));
	for (size_t i = 0; i < count; i++) {
		const struct workload *w = workload_builtin(catalogue[i].name);
		assert_ptr_equal(w, &all[i]);
		assert_string_equal(workload_pattern_name((enum workload_pattern)w->pattern),
			catalogue[i].pattern);
		assert_int_equal(w->block_bytes, catalogue[i].block_bytes);
		assert_int_equal(w->iodepth, catalogue[i].iodepth);
		assert_int_equal(w->jobs, catalogue[i].jobs);
		assert_int_equal(w->read_pct, catalogue[i].read_pct);
		assert_true(w->builtin);
		assert_int_equal(workload_check(w, "", NULL), RC_OK);
	}
	assert_null(workload_builtin("rand-read-16k"));
	assert_null(workload_builtin(""));
}

static void patterns_know_whether_they_write(void **state) {
	(void)state;
	static const struct {
		const char *name;
		bool writes;
	} patterns[] = {{"read", false}, {"write", true}, {"randread", false}, {"randwrite", true},
		{"rw", true}, {"randrw", true}, {"idle", false}};
	for (size_t i = 0; i < array_len(patterns); i++) {
		enum workload_pattern p;
		assert_true(workload_pattern_from_name(patterns[i].name, &p));
		assert_int_equal(workload_pattern_writes(p), patterns[i].writes);
	}
	enum workload_pattern p;
	assert_false(workload_pattern_from_name("trim", &p));
}

#define GOOD .pattern = PATTERN_RW, .block_bytes = 4096, .iodepth = 1, .jobs = 1

static const struct {
	struct workload w;
	const char *field; /* NULL: good */
} checks[] = {
	{{GOOD}, NULL},
	{{.pattern = PATTERN_IDLE}, NULL},
	{{.pattern = PATTERN_COUNT_}, "/workload/pattern"},
	{{.pattern = 255}, "/workload/pattern"},
	{{GOOD, .read_pct = 100}, NULL},
	{{GOOD, .read_pct = 101}, "/workload/read_pct"},
	{{.pattern = PATTERN_READ, .block_bytes = 511, .iodepth = 1, .jobs = 1},
		"/workload/block_bytes"},
	{{.pattern = PATTERN_READ, .block_bytes = 512, .iodepth = 1, .jobs = 1}, NULL},
	{{.pattern = PATTERN_READ, .block_bytes = 513, .iodepth = 1, .jobs = 1},
		"/workload/block_bytes"},
	{{.pattern = PATTERN_READ, .block_bytes = 2097152, .iodepth = 1024, .jobs = 1}, NULL},
	{{.pattern = PATTERN_READ, .block_bytes = 16777216, .iodepth = 2, .jobs = 64}, NULL},
	{{.pattern = PATTERN_READ, .block_bytes = 16777216, .iodepth = 3, .jobs = 64},
		"/workload/iodepth"},
	{{.pattern = PATTERN_READ, .block_bytes = 16777216, .iodepth = 1024, .jobs = 64},
		"/workload/iodepth"},
	{{.pattern = PATTERN_READ, .block_bytes = 16777728, .iodepth = 1, .jobs = 1},
		"/workload/block_bytes"},
	{{.pattern = PATTERN_READ, .block_bytes = 4096, .iodepth = 0, .jobs = 1},
		"/workload/iodepth"},
	{{.pattern = PATTERN_READ, .block_bytes = 4096, .iodepth = 1025, .jobs = 1},
		"/workload/iodepth"},
	{{.pattern = PATTERN_READ, .block_bytes = 4096, .iodepth = 1, .jobs = 0}, "/workload/jobs"},
	{{.pattern = PATTERN_READ, .block_bytes = 4096, .iodepth = 1, .jobs = 65},
		"/workload/jobs"},
	{{GOOD, .size_bytes = 4096}, NULL},
	{{GOOD, .size_bytes = 3584}, "/workload/size_bytes"},
	{{GOOD, .size_bytes = 8193}, "/workload/size_bytes"},
	{{GOOD, .size_bytes = UINT64_MAX - 511}, "/workload/size_bytes"},
	{{GOOD, .rate_bytes_per_s = INT64_MAX}, NULL},
	{{GOOD, .rate_bytes_per_s = UINT64_MAX}, "/workload/rate_bytes_per_s"},
};

static void ranges_are_held(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(checks); i++) {
		struct err err = {0};
		const enum rc rc = workload_check(&checks[i].w, "/workload", &err);
		assert_int_equal(rc, checks[i].field ? RC_INVALID : RC_OK);
		assert_string_equal(err.field, checks[i].field ? checks[i].field : "");
	}
}

static void a_range_is_told(void **state) {
	(void)state;
	struct err err;
	const struct workload w = {.block_bytes = 4096, .iodepth = 0, .jobs = 1};
	assert_int_equal(workload_check(&w, "", &err), RC_INVALID);
	assert_string_equal(err.field, "/iodepth");
	assert_string_equal(err.msg, "must be 1 to 1024");
}

static void all_drives_share_the_memory(void **state) {
	(void)state;
	struct err err = {0};
	const struct workload w = {.block_bytes = 1 << 20, .iodepth = 128, .jobs = 1};
	assert_int_equal(workload_check_buffers(&w, 16, "/workload", &err), RC_OK);
	assert_int_equal(workload_check_buffers(&w, 17, "/workload", &err), RC_INVALID);
	assert_string_equal(err.field, "/workload/iodepth");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_catalogue_is_complete_and_valid),
		cmocka_unit_test(patterns_know_whether_they_write),
		cmocka_unit_test(ranges_are_held),
		cmocka_unit_test(a_range_is_told),
		cmocka_unit_test(all_drives_share_the_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
