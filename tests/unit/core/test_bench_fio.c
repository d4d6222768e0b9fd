/* fio's output, logs and progress lines, as fio 3.33 wrote them and bent in the ways it is known
 * to bend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "core/bench/eta.h"
#include "core/bench/fio_logs.h"
#include "model/quality.h"

#define DATA "tests/data/fio"
#define ROOM (1024 * 1024)

static const char two_drives[][DRIVE_ID_SIZE] = {"driveA", "driveB"};
static const char one_drive[][DRIVE_ID_SIZE] = {"w"};

static int open_dir(const char *path) {
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void parse_text(
	const char *text, const char (*drives)[DRIVE_ID_SIZE], unsigned n, struct fio_report *out) {
	struct buf b;
	struct err err;
	buf_init(&b, ROOM);
	buf_adds(&b, text);
	assert_int_equal(fio_report_parse(&b, drives, n, out, &err), RC_OK);
	buf_release(&b);
}

static void parse_file(
	const char *name, const char (*drives)[DRIVE_ID_SIZE], unsigned n, struct fio_report *out) {
	struct buf b;
	struct err err;
	int dir = open_dir(DATA);
	buf_init(&b, ROOM);
	assert_int_equal(fio_read(dir, name, &b, &err), RC_OK);
	assert_int_equal(fio_report_parse(&b, drives, n, out, &err), RC_OK);
	buf_release(&b);
	close(dir);
}

static const struct fio_sum *reads(const struct fio_report *r, unsigned drive) {
	return &r->drives[drive].sums[FIO_READ];
}

/* --- what each kind of output comes to ---------------------------------------------------------
 */

static const struct {
	const char *file;
	struct fio_exit exit;
	unsigned jobs;
	enum run_state state;
	const char *reason; /* part of it */
} verdicts[] = {
	{"worker_killed.txt", {0, 0, false}, 2, RUN_FAILED, "signal 9"},
	{"no_space.txt", {1, 0, false}, 1, RUN_FAILED, "No space left on device (error 28)"},
	{"sigterm.txt", {128, 0, false}, 1, RUN_FAILED, "signal 15"},
	{"sigterm.txt", {128, 0, true}, 1, RUN_CANCELLED, ""},
	{"three_documents.txt", {0, 0, false}, 1, RUN_COMPLETED, ""},
	{"three_documents.txt", {0, 0, false}, 2, RUN_FAILED, "1 jobs, 2 were asked"},
	{"three_documents.txt", {137, 9, false}, 1, RUN_FAILED, "signal 9"},
	{"three_documents.txt", {1, 0, false}, 1, RUN_FAILED, "exit code 1"},
	{"messages_around.txt", {0, 0, false}, 1, RUN_COMPLETED, ""},
};

static void every_output_gets_its_verdict(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(verdicts); i++) {
		struct fio_report r;
		char reason[256];
		parse_file(verdicts[i].file, one_drive, 1, &r);
		assert_int_equal(fio_verdict(&r, &verdicts[i].exit, verdicts[i].jobs, reason,
					 sizeof(reason)),
			verdicts[i].state);
		assert_non_null(strstr(reason, verdicts[i].reason));
		fio_report_release(&r);
	}
}

static void nothing_written_is_a_failure_without_a_result(void **state) {
	(void)state;
	const struct fio_exit exits[] = {{137, 9, false}, {0, 0, false}};
	const char *reasons[] = {"signal 9", "no result"};
	for (size_t i = 0; i < array_len(exits); i++) {
		struct fio_report r;
		char reason[256];
		parse_text("", one_drive, 1, &r);
		assert_false(r.has_document);
		assert_int_equal(fio_verdict(&r, &exits[i], 1, reason, sizeof(reason)), RUN_FAILED);
		assert_non_null(strstr(reason, reasons[i]));
		fio_report_release(&r);
	}
}

static void a_killed_job_shows_without_its_message(void **state) {
	(void)state;
	struct fio_report r;
	char reason[256];
	parse_text("{\"jobs\":[{\"jobname\":\"w\",\"error\":0,\"job_runtime\":0,\"read\":"
		   "{\"total_ios\":678,\"io_bytes\":0,\"runtime\":0}}]}\n",
		one_drive, 1, &r);
	assert_int_equal(
		fio_verdict(&r, &(struct fio_exit){0, 0, false}, 1, reason, sizeof(reason)),
		RUN_FAILED);
	fio_report_release(&r);
}

static void an_error_line_overrules_a_healthy_document(void **state) {
	(void)state;
	struct fio_report r;
	char reason[256];
	parse_text("fio: pid=1, err=5/file:x.c:1, func=io_u error, error=Input/output error\n"
		   "{\"jobs\":[{\"jobname\":\"w\",\"error\":0,\"read\":{\"total_ios\":1,"
		   "\"io_bytes\":4096}}]}\n",
		one_drive, 1, &r);
	assert_true(r.has_document);
	assert_int_equal(
		fio_verdict(&r, &(struct fio_exit){0, 0, false}, 1, reason, sizeof(reason)),
		RUN_FAILED);
	assert_non_null(strstr(reason, "Input/output error"));
	fio_report_release(&r);
}

/* --- the document ----------------------------------------------------------------------------- */

static void the_last_document_wins(void **state) {
	(void)state;
	struct fio_report r;
	parse_file("three_documents.txt", one_drive, 1, &r);
	assert_int_equal(reads(&r, 0)->ios, 600);
	assert_int_equal(reads(&r, 0)->bytes, 2457600);
	assert_in_range(r.drives[0].runtime_ms, 2000, 2001);
	fio_report_release(&r);
}

static void text_around_the_document_is_kept_as_messages(void **state) {
	(void)state;
	struct fio_report r;
	parse_file("messages_around.txt", one_drive, 1, &r);
	assert_true(r.has_document);
	assert_string_equal(r.version, "fio-3.36");
	assert_true(reads(&r, 0)->iops == 250);
	assert_int_equal(reads(&r, 0)->bytes, 2048000);
	assert_int_equal(r.message_count, 4);
	assert_string_equal(r.messages[1], "fio: set verify to {\"crc32c\"}");
	assert_string_equal(r.messages[3], "fio: file hash not empty on exit");
	/* "mean": nan is no figure, and not 0 either way */
	assert_true(isnan(histogram_percentile_ns(&reads(&r, 0)->latency, 50)));
	fio_report_release(&r);
}

static void what_is_said_when_all_is_well_is_no_message(void **state) {
	(void)state;
	struct fio_report r = {0};
	fio_report_add_messages(&r, "fio: connected to NBD server\nfio: connected to NBD\n");
	assert_int_equal(r.message_count, 1);
	assert_string_equal(r.messages[0], "fio: connected to NBD");
}

static void the_document_can_be_cut_out(void **state) {
	(void)state;
	struct fio_report r;
	struct buf b;
	struct err err;
	int dir = open_dir(DATA);
	buf_init(&b, ROOM);
	assert_int_equal(fio_read(dir, "sigterm.txt", &b, &err), RC_OK);
	assert_int_equal(fio_report_parse(&b, one_drive, 1, &r, &err), RC_OK);
	assert_int_equal(b.data[r.document_at], '{');
	assert_int_equal(b.data[r.document_at + r.document_len - 1], '}');
	assert_true(r.document_at > 0);
	fio_report_release(&r);
	buf_release(&b);
	close(dir);
}

static void jobs_add_up_to_their_drives(void **state) {
	(void)state;
	struct fio_report r;
	parse_file("run/fio.json", two_drives, 2, &r);
	assert_int_equal(r.jobs, 4);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(r.drives[i].jobs, 2);
		assert_int_equal(r.drives[i].error, 0);
		assert_in_range(r.drives[i].runtime_ms, 3990, 4020);
		assert_in_range(reads(&r, i)->ios, 470, 490);
		assert_in_range(
			reads(&r, i)->bytes / 4096, reads(&r, i)->ios - 2, reads(&r, i)->ios + 2);
		assert_true(fabs(reads(&r, i)->iops - 120) < 1);
		assert_true(fabs(r.drives[i].sums[FIO_WRITE].iops - 60) < 1);
	}
	assert_string_equal(r.version, "fio-3.33");
	assert_true(r.at_ms > 1700000000000);
	fio_report_release(&r);
}

static void a_job_of_another_name_is_not_ours(void **state) {
	(void)state;
	static const char other[][DRIVE_ID_SIZE] = {"driveA", "driveC"};
	struct fio_report r;
	char reason[256];
	parse_file("run/fio.json", other, 2, &r);
	assert_int_equal(r.drives[1].jobs, 0);
	assert_int_equal(
		fio_verdict(&r, &(struct fio_exit){0, 0, false}, 2, reason, sizeof(reason)),
		RUN_FAILED);
	fio_report_release(&r);
}

static void too_long_an_output_is_refused(void **state) {
	(void)state;
	struct buf b;
	struct err err;
	int dir = open_dir(DATA "/run");
	buf_init(&b, 1000);
	assert_int_equal(fio_read(dir, "fio.json", &b, &err), RC_TOO_LARGE);
	buf_release(&b);
	buf_init(&b, 1000);
	assert_int_equal(fio_read(dir, "none.json", &b, &err), RC_NOT_FOUND);
	buf_release(&b);
	close(dir);
}

/* --- latencies -------------------------------------------------------------------------------- */

/* What fio itself printed for its first job: read, from 1 to 99.99 %. */
static void percentiles_are_those_of_fio(void **state) {
	(void)state;
	struct fio_report r;
	struct buf b;
	struct err err;
	int dir = open_dir(DATA "/run");
	buf_init(&b, ROOM);
	assert_int_equal(fio_read(dir, "fio.json", &b, &err), RC_OK);
	/* Leave the first job alone under its name. */
	char *second = strstr(strstr(b.data, "driveA") + 1, "driveA");
	memcpy(second, "driveX", 6);
	const char *printed = strstr(b.data, "\"percentile\"");
	static const char *const keys[] = {
		"1.000000", "50.000000", "95.000000", "99.000000", "99.900000", "99.990000"};
	double values[array_len(keys)];
	for (size_t i = 0; i < array_len(keys); i++) {
		const char *at = strstr(printed, keys[i]);
		assert_non_null(at);
		values[i] = strtod(strchr(at, ':') + 1, NULL);
	}
	assert_int_equal(fio_report_parse(&b, two_drives, 2, &r, &err), RC_OK);
	const struct histogram *h = &reads(&r, 0)->latency;
	assert_true(h->count > 200);
	for (size_t i = 0; i < array_len(keys); i++) {
		double ours = histogram_percentile_ns(h, strtod(keys[i], NULL));
		assert_true(ours == fmin(values[i], h->max_ns));
	}
	fio_report_release(&r);
	buf_release(&b);
	close(dir);
}

static void histograms_merge(void **state) {
	(void)state;
	struct histogram *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	histogram_add(a, 1000, 90);
	histogram_add(a, 100, 5);
	histogram_add_summary(a, 950, 95, 1010);
	histogram_add(b, 1000, 4);
	histogram_add(b, 9000, 1);
	histogram_add_summary(b, 2600, 5, 9100);
	assert_true(histogram_merge(a, b));

	struct run_latency l;
	histogram_latency(a, 1, &l);
	assert_int_equal(l.count, 100);
	assert_int_equal(a->bin_count, 3);
	assert_true(fabs(l.mean_us - (950.0 * 95 + 2600.0 * 5) / 100 / 1000) < 1e-9);
	assert_true(l.p50_us == 1 && l.p95_us == 1 && l.p99_us == 1);
	assert_true(l.p99_9_us == 9 && fabs(l.max_us - 9.1) < 1e-9);
	/* The simulator's slow motion. */
	histogram_latency(a, 10, &l);
	assert_true(fabs(l.p99_9_us - 0.9) < 1e-9);

	memset(b, 0, sizeof(*b));
	histogram_latency(b, 1, &l);
	assert_true(isnan(l.mean_us) && isnan(l.p50_us) && isnan(l.max_us));
	for (unsigned i = 0; i < HISTOGRAM_MAX_BINS; i++)
		assert_true(histogram_add(b, 2 * i, 1));
	assert_false(histogram_add(b, 1, 1));
	assert_true(histogram_add(b, 2, 1));
	free(a);
	free(b);
}

/* --- logs ------------------------------------------------------------------------------------- */

static void the_window_is_what_all_jobs_share(void **state) {
	(void)state;
	struct fio_logs logs = {.dir_fd = open_dir(DATA "/run"),
		.drives = 2,
		.jobs_per_drive = 2,
		.block_bytes = 4096};
	struct fio_window shared, whole;
	struct fio_rates rates[2][FIO_DIRECTIONS];
	struct fio_series series;
	struct err err;
	assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_OK);
	assert_int_equal(logs.period_ms, 1000);
	assert_in_range(shared.to_ms - shared.from_ms, 2950, 3010);
	assert_true(whole.from_ms <= shared.from_ms && whole.to_ms >= shared.to_ms);
	assert_int_equal(fio_logs_rates(&logs, &shared, &whole, rates, &series, &err), RC_OK);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(fabs(rates[i][FIO_READ].iops - 120) < 2);
		assert_true(fabs(rates[i][FIO_WRITE].iops - 60) < 2);
		assert_true(fabs(rates[i][FIO_READ].bytes_per_s - 120 * 4096) < 2 * 4096);
	}
	assert_in_range(series.count, 3, 5);
	assert_int_equal(series.step_ms, 1000);
	assert_true(fabs(series.points[1].rates[FIO_READ].iops - 240) < 3);
	fio_series_release(&series);
	close(logs.dir_fd);
}

struct log_dir {
	char path[64];
	int fd;
};

static void write_log(struct log_dir *d, const char *name, const char *text) {
	int fd = openat(d->fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int make_dir(void **state) {
	struct log_dir *d = calloc(1, sizeof(*d));
	snprintf(d->path, sizeof(d->path), "/tmp/drivewatt-logs-XXXXXX");
	assert_non_null(mkdtemp(d->path));
	d->fd = open_dir(d->path);
	*state = d;
	return 0;
}

static int remove_dir(void **state) {
	static const char *const names[] = {"bw_bw.1.log", "bw_bw.2.log"};
	struct log_dir *d = *state;
	for (size_t i = 0; i < array_len(names); i++)
		unlinkat(d->fd, names[i], 0);
	close(d->fd);
	rmdir(d->path);
	free(d);
	return 0;
}

/* Job 1 from 10.0 to 14.0 s, job 2 from 11.5 to 13.5 s with a second without I/O: they share
 * 11.5 to 13.5 s. */
static void seconds_without_io_count_as_such(void **state) {
	struct log_dir *d = *state;
	write_log(d, "bw_bw.1.log",
		"11000, 100, 0, 0, 0\n12000, 200, 0, 0, 0\n13000, 300, 0, 0, 0\n"
		"14000, 400, 0, 0, 0\nno line\n");
	write_log(d, "bw_bw.2.log", "12500, 50, 1, 0, 0\n14500, 70, 1, 0, 0\n");
	struct fio_logs logs = {
		.dir_fd = d->fd, .drives = 2, .jobs_per_drive = 1, .block_bytes = 512};
	struct fio_window shared, whole;
	struct fio_rates rates[2][FIO_DIRECTIONS];
	struct fio_series series;
	struct err err;
	assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_OK);
	assert_int_equal(shared.from_ms, 11500);
	assert_int_equal(shared.to_ms, 14000);
	assert_int_equal(whole.from_ms, 10000);
	assert_int_equal(whole.to_ms, 14500);
	assert_int_equal(fio_logs_rates(&logs, &shared, &whole, rates, &series, &err), RC_OK);
	/* 0.5 s of 200, 1 s of 300, 1 s of 400 KiB/s over 2.5 s */
	assert_true(fabs(rates[0][FIO_READ].bytes_per_s - 800.0 / 2.5 * 1024) < 1e-6);
	/* 1 s of 50, 1 s of nothing, 0.5 s of 70 */
	assert_true(fabs(rates[1][FIO_WRITE].bytes_per_s - 85.0 / 2.5 * 1024) < 1e-6);
	assert_true(fabs(rates[1][FIO_WRITE].iops - 85.0 / 2.5 * 2) < 1e-6);
	assert_true(rates[0][FIO_WRITE].bytes_per_s == 0);
	/* 10.0–14.5 in steps of a second; the last is half empty */
	assert_int_equal(series.count, 5);
	assert_true(fabs(series.points[0].rates[FIO_READ].bytes_per_s - 102400) < 1e-6);
	assert_true(fabs(series.points[2].rates[FIO_WRITE].bytes_per_s - 25 * 1024) < 1e-6);
	fio_series_release(&series);
}

/* Of a job that was held up: 1.7 s of 100 KiB/s are one line. It counts by what fio has counted. */
static void a_late_line_stands_for_all_the_time_before_it(void **state) {
	struct log_dir *d = *state;
	write_log(d, "bw_bw.1.log",
		"11000, 100, 0, 0, 0\n12000, 100, 0, 0, 0\n13700, 100, 0, 0, 0\n"
		"15400, 100, 0, 0, 0\n16400, 100, 0, 0, 0\n");
	static const struct {
		int64_t kib;
		double bytes_per_s;
		int64_t held_up_ms;
	} counted[] = {
		{645, 100 * 1024, 700}, {640, 100 * 1024, 700}, {500, 100 * 1024 * 5 / 6.4, 0}};
	for (size_t i = 0; i < array_len(counted); i++) {
		auto_free struct fio_drive *drive = calloc(1, sizeof(*drive));
		drive->sums[FIO_READ].bytes = counted[i].kib * 1024;
		struct fio_logs logs = {.dir_fd = d->fd,
			.drives = 1,
			.jobs_per_drive = 1,
			.block_bytes = 4096,
			.counted = drive};
		struct fio_window shared, whole;
		struct fio_rates rates[1][FIO_DIRECTIONS];
		struct fio_series series;
		struct err err;
		assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_OK);
		assert_int_equal(logs.held_up_ms, counted[i].held_up_ms);
		assert_int_equal(
			fio_logs_rates(&logs, &shared, &whole, rates, &series, &err), RC_OK);
		assert_true(fabs(rates[0][FIO_READ].bytes_per_s - counted[i].bytes_per_s) < 1e-6);
		fio_series_release(&series);
	}
}

static void a_missing_or_empty_log_is_told(void **state) {
	struct log_dir *d = *state;
	struct fio_logs logs = {
		.dir_fd = d->fd, .drives = 1, .jobs_per_drive = 2, .block_bytes = 4096};
	struct fio_window shared, whole;
	struct err err;
	write_log(d, "bw_bw.1.log", "11000, 100, 0, 0, 0\n");
	assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_NOT_FOUND);
	write_log(d, "bw_bw.2.log", "garbage\n-5, 1, 0\n99, nan, 0\n1e9, 1, 7\n");
	assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_NOT_FOUND);
	write_log(d, "bw_bw.2.log", "12500, 100, 0, 0, 0\n");
	assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_INVALID);
}

static void long_periods_are_recognised(void **state) {
	struct log_dir *d = *state;
	struct fio_logs logs = {
		.dir_fd = d->fd, .drives = 1, .jobs_per_drive = 1, .block_bytes = 4096};
	struct fio_window shared, whole;
	struct err err;
	write_log(d, "bw_bw.1.log", "13000, 1, 0, 0, 0\n13000, 1, 1, 0, 0\n16001, 1, 0, 0, 0\n");
	assert_int_equal(fio_logs_window(&logs, &shared, &whole, &err), RC_OK);
	assert_int_equal(logs.period_ms, 3000);
	assert_int_equal(shared.from_ms, 10000);
}

/* --- progress --------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	bool told;
	double progress;
	int64_t read, write;
} etas[] = {
	{"", false, 0, 0, 0},
	{"Jobs: 4 (f=0)\r", false, 0, 0, 0},
	{"[50.0%][r=1B/s]\n", false, 0, 0, 0},
	{"Jobs: 1 (f=1): [R(1)][25.0%][r=2KiB/s][r=7982 IOPS][eta 00m:03s]", true, 0.25, 2048,
		NONE},
	{"Jobs: 2 (f=2): [m(2)][57.1%][r=31.5MiB/s,w=1024B/s][r=1,w=2 IOPS][eta 00m:03s]\r\n", true,
		0.571, 33030144, 1024},
	{"Jobs: 1 (f=1): [W(1)][10.0%][w=1.5GiB/s][w=3k IOPS]\rJobs: 1 (f=0)\r", true, 0.1, NONE,
		1610612736},
	{"Jobs: 1 (f=1): [R(1)][1.0%][r=5MB/s]\nJobs: 1 (f=1): [/(1)][-.-%][eta 01m:00s]\n", true,
		0.01, 5000000, NONE},
};

static void progress_lines_are_understood(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(etas); i++) {
		struct eta e;
		assert_int_equal(eta_parse(etas[i].text, strlen(etas[i].text), &e), etas[i].told);
		if (!etas[i].told)
			continue;
		assert_true(fabs(e.progress - etas[i].progress) < 1e-9);
		assert_int_equal(e.read_bytes_per_s, etas[i].read);
		assert_int_equal(e.write_bytes_per_s, etas[i].write);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_output_gets_its_verdict),
		cmocka_unit_test(nothing_written_is_a_failure_without_a_result),
		cmocka_unit_test(a_killed_job_shows_without_its_message),
		cmocka_unit_test(an_error_line_overrules_a_healthy_document),
		cmocka_unit_test(the_last_document_wins),
		cmocka_unit_test(text_around_the_document_is_kept_as_messages),
		cmocka_unit_test(what_is_said_when_all_is_well_is_no_message),
		cmocka_unit_test(the_document_can_be_cut_out),
		cmocka_unit_test(jobs_add_up_to_their_drives),
		cmocka_unit_test(a_job_of_another_name_is_not_ours),
		cmocka_unit_test(too_long_an_output_is_refused),
		cmocka_unit_test(percentiles_are_those_of_fio),
		cmocka_unit_test(histograms_merge),
		cmocka_unit_test(the_window_is_what_all_jobs_share),
		cmocka_unit_test_setup_teardown(
			seconds_without_io_count_as_such, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_late_line_stands_for_all_the_time_before_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_missing_or_empty_log_is_told, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(long_periods_are_recognised, make_dir, remove_dir),
		cmocka_unit_test(progress_lines_are_understood),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
