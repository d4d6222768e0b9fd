#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "priv/jobfile.h"

static struct priv_run_start start;
static struct jobfile_target targets[RUN_MAX_DRIVES];
static struct buf out;

static int make_request(void **state) {
	(void)state;
	memset(&start, 0, sizeof(start));
	start.workload = (struct workload){.pattern = PATTERN_RANDREAD,
		.block_bytes = 4096,
		.iodepth = 32,
		.jobs = 4,
		.direct = true};
	start.runtime_s = 60;
	start.ramp_s = 5;
	start.target_count = 1;
	for (unsigned i = 0; i < RUN_MAX_DRIVES; i++) {
		targets[i] = (struct jobfile_target){
			.drive_id = "drive", .region_bytes = 1 << 30, .numa_node = -1};
		snprintf(targets[i].file, sizeof(targets[i].file), "/proc/self/fd/%u", 10 + i);
	}
	buf_init(&out, JOBFILE_MAX_BYTES);
	return 0;
}

static int release(void **state) {
	(void)state;
	buf_release(&out);
	return 0;
}

static enum rc write_job(struct err *err) {
	buf_reset(&out);
	return jobfile_write(&out, &start, targets, err);
}

static bool has(const char *line) {
	char whole[128];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	return strstr(buf_str(&out), whole) != NULL;
}

static void random_jobs_share_the_region(void **state) {
	(void)state;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_string_equal(buf_str(&out),
		"[global]\n"
		"thread=1\n"
		"group_reporting=0\n"
		"random_generator=tausworthe64\n"
		"rw=randread\n"
		"bs=4096\n"
		"iodepth=32\n"
		"numjobs=4\n"
		"direct=1\n"
		"runtime=60\n"
		"ramp_time=5\n"
		"randrepeat=0\n"
		"norandommap=1\n"
		"refill_buffers=1\n"
		"write_bw_log=bw\n"
		"log_avg_msec=1000\n"
		"log_unix_epoch=1\n"
		"percentile_list=50:90:95:99:99.9:99.99\n"
		"time_based=1\n"
		"[drive]\n"
		"ioengine=libaio\n"
		"invalidate=0\n"
		"filename=/proc/self/fd/10\n"
		"size=1073741824\n");
}

static void sequential_jobs_get_a_part_each(void **state) {
	(void)state;
	start.workload.pattern = PATTERN_READ;
	start.workload.jobs = 3;
	targets[0].region_bytes = 100 * 4096;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("size=135168")); /* 33 blocks */
	assert_true(has("offset_increment=135168"));
	targets[0].region_bytes = 2 * 4096;
	assert_int_equal(write_job(NULL), RC_INVALID);
}

static void simulated_drives_go_by_their_socket(void **state) {
	(void)state;
	start.workload.pattern = PATTERN_WRITE;
	targets[0].simulated = true;
	targets[0].region_bytes = 0;
	snprintf(targets[0].file, sizeof(targets[0].file), "/run/x/sim07.sock");
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("ioengine=nbd"));
	assert_true(has("uri=nbd+unix:///?socket=/run/x/sim07.sock"));
	assert_true(has("size=25%"));
	assert_true(has("offset_increment=25%"));
	assert_null(strstr(buf_str(&out), "filename"));
}

static void writes_are_bounded(void **state) {
	struct err err = {0};

	(void)state;
	start.workload.pattern = PATTERN_RANDWRITE;
	start.max_write_bytes = 4 * 4096 * 10 + 4095;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("io_size=40960"));
	/* It would make fio ignore the bound. */
	assert_false(has("time_based=1"));
	start.max_write_bytes = 4 * 4096 - 1;
	assert_int_equal(write_job(&err), RC_INVALID);
	assert_string_equal(err.field, "/max_write_bytes");
	start.workload.pattern = PATTERN_RANDREAD;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("time_based=1"));
	assert_null(strstr(buf_str(&out), "io_size"));
}

static void rates_are_split_over_jobs_and_directions(void **state) {
	(void)state;
	start.workload.rate_bytes_per_s = 1000000;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("rate=250000"));
	start.workload.pattern = PATTERN_RANDRW;
	start.workload.read_pct = 70;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("rwmixread=70"));
	assert_true(has("rate=175000,75000"));
	/* 0 would lift the limit. */
	start.workload.rate_bytes_per_s = 1;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("rate=1,1"));
}

static void jobs_and_logs_are_bounded(void **state) {
	struct err err = {0};

	(void)state;
	start.target_count = RUN_MAX_DRIVES;
	start.workload.jobs = 16;
	targets[63].numa_node = 1;
	assert_int_equal(write_job(NULL), RC_OK);
	assert_true(has("filename=/proc/self/fd/73"));
	assert_true(has("numa_cpu_nodes=1"));
	start.runtime_s = 86400;
	assert_int_equal(jobfile_log_interval_ms(&start), 45000);
	start.workload.jobs = 17;
	assert_int_equal(write_job(&err), RC_TOO_LARGE);
	assert_string_equal(err.field, "/workload/jobs");
}

#define WITH_REQUEST(test) cmocka_unit_test_setup_teardown(test, make_request, release)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_REQUEST(random_jobs_share_the_region),
		WITH_REQUEST(sequential_jobs_get_a_part_each),
		WITH_REQUEST(simulated_drives_go_by_their_socket),
		WITH_REQUEST(writes_are_bounded),
		WITH_REQUEST(rates_are_split_over_jobs_and_directions),
		WITH_REQUEST(jobs_and_logs_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
