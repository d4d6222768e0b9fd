#include <inttypes.h>
#include <stdio.h>

#include "priv/jobfile.h"

#define LOG_VALUES_MAX 2000000 /* fio keeps them in memory until the end */

unsigned jobfile_log_interval_ms(const struct priv_run_start *start) {
	uint64_t values = (uint64_t)start->target_count * start->workload.jobs * start->runtime_s;

	return (unsigned)(1000 * (1 + values / LOG_VALUES_MAX));
}

static bool is_sequential(const struct workload *w) {
	return w->pattern == PATTERN_READ || w->pattern == PATTERN_WRITE ||
		w->pattern == PATTERN_RW;
}

static bool is_mixed(const struct workload *w) {
	return w->pattern == PATTERN_RW || w->pattern == PATTERN_RANDRW;
}

static bool is_bounded(const struct priv_run_start *s) {
	return s->max_write_bytes > 0 &&
		workload_pattern_writes((enum workload_pattern)s->workload.pattern);
}

/* Each job's share; 0 would mean no limit to fio. */
static uint64_t rate_share(const struct workload *w, unsigned percent) {
	uint64_t share = w->rate_bytes_per_s / 100 * percent / w->jobs;

	return share ? share : 1;
}

static void add_rate(struct buf *out, const struct workload *w) {
	if (w->rate_bytes_per_s == 0)
		return;
	if (is_mixed(w))
		buf_printf(out, "rate=%" PRIu64 ",%" PRIu64 "\n", rate_share(w, w->read_pct),
			rate_share(w, 100u - w->read_pct));
	else
		buf_printf(out, "rate=%" PRIu64 "\n", rate_share(w, 100));
}

/* Logs and percentiles: see the names in protocol.h. Without a random map, since a map of every
 * block of every job costs more memory than repeats matter; refilled buffers, since drives
 * compress. */
static void add_global(struct buf *out, const struct priv_run_start *s) {
	const struct workload *w = &s->workload;

	buf_printf(out,
		"[global]\n"
		"thread=1\n"
		"group_reporting=0\n"
		"random_generator=tausworthe64\n"
		"rw=%s\n"
		"bs=%u\n"
		"iodepth=%u\n"
		"numjobs=%u\n"
		"direct=%d\n"
		"runtime=%u\n"
		"ramp_time=%u\n"
		"randrepeat=0\n"
		"norandommap=1\n"
		"refill_buffers=1\n"
		"write_bw_log=bw\n"
		"log_avg_msec=%u\n"
		"log_unix_epoch=1\n"
		"percentile_list=50:90:95:99:99.9:99.99\n",
		workload_pattern_name((enum workload_pattern)w->pattern), w->block_bytes,
		w->iodepth, w->jobs, w->direct, s->runtime_s, s->ramp_s,
		jobfile_log_interval_ms(s));
	if (is_mixed(w))
		buf_printf(out, "rwmixread=%u\n", w->read_pct);
	add_rate(out, w);
	/* time_based would make fio ignore io_size. */
	if (!is_bounded(s))
		buf_adds(out, "time_based=1\n");
}

/*
 * Random jobs roam over the whole region; sequential ones get a part each, since they would
 * otherwise read what another has just brought into the drive's cache.
 */
static enum rc add_region(struct buf *out, const struct workload *w, const struct jobfile_target *t,
	struct err *err) {
	unsigned parts = is_sequential(w) ? w->jobs : 1;
	uint64_t part = t->region_bytes / parts / w->block_bytes * w->block_bytes;

	if (t->region_bytes == 0) {
		if (parts > 1)
			buf_printf(out, "size=%u%%\noffset_increment=%u%%\n", 100 / parts,
				100 / parts);
		return RC_OK;
	}
	if (part == 0)
		return err_field(err, RC_INVALID, "/workload/block_bytes",
			"a region of %" PRIu64 " bytes is too small for %u jobs of this block size",
			t->region_bytes, w->jobs);
	buf_printf(out, "size=%" PRIu64 "\n", part);
	if (parts > 1)
		buf_printf(out, "offset_increment=%" PRIu64 "\n", part);
	return RC_OK;
}

/* io_size counts what was issued, in the ramp too, and reads of a mixed pattern as well: what is
 * written never passes the limit. fio overshoots by up to a block unless it divides. */
static enum rc add_bound(struct buf *out, const struct priv_run_start *s, struct err *err) {
	uint64_t block = s->workload.block_bytes;
	uint64_t share = s->max_write_bytes / s->workload.jobs / block * block;

	if (!is_bounded(s))
		return RC_OK;
	if (share == 0)
		return err_field(err, RC_INVALID, "/max_write_bytes",
			"not a block for each of the %u jobs", s->workload.jobs);
	buf_printf(out, "io_size=%" PRIu64 "\n", share);
	return RC_OK;
}

static enum rc add_target(struct buf *out, const struct priv_run_start *s,
	const struct jobfile_target *t, struct err *err) {
	enum rc rc;

	buf_printf(out, "[%s]\n", t->drive_id);
	if (t->simulated)
		buf_printf(out, "ioengine=nbd\nuri=nbd+unix:///?socket=%s\n", t->file);
	else
		/* No page cache to drop but what the helper has dropped, with its rights. */
		buf_printf(out, "ioengine=libaio\ninvalidate=0\nfilename=%s\n", t->file);
	if (t->numa_node >= 0)
		buf_printf(out, "numa_cpu_nodes=%d\n", t->numa_node);
	rc = add_region(out, &s->workload, t, err);
	return rc == RC_OK ? add_bound(out, s, err) : rc;
}

enum rc jobfile_write(struct buf *out, const struct priv_run_start *start,
	const struct jobfile_target *targets, struct err *err) {
	enum rc rc;

	if (start->target_count * start->workload.jobs > JOBFILE_MAX_JOBS)
		return err_field(err, RC_TOO_LARGE, "/workload/jobs",
			"more than %d jobs over all drives", JOBFILE_MAX_JOBS);
	add_global(out, start);
	for (uint16_t i = 0; i < start->target_count; i++) {
		rc = add_target(out, start, &targets[i], err);
		if (rc != RC_OK)
			return rc;
	}
	return buf_status(out, err);
}
