/* One run's life, straight from top to bottom in a worker of its own. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/bench/eta.h"
#include "core/bench/run_impl.h"

#define START_WAIT_MS 60000
#define POLL_MS 1000
#define STORE_PAUSE_MS 2000
/* fio lays out its jobs before it begins and writes its output at the end. */
#define FIO_MARGIN_MS 60000
#define METER_MS 1000
#define METER_SIMULATED_MS 200
#define ETA_TAIL 2048

static void end_init(struct run_end *end) {
	*end = (struct run_end){.state = RUN_FAILED};
	buf_init(&end->result, DB_RUN_RESULT_MAX);
	buf_init(&end->series, DB_RUN_SERIES_MAX);
	buf_init(&end->fio, DB_RUN_FIO_MAX);
}

static void end_release(struct run_end *end) {
	buf_release(&end->result);
	buf_release(&end->series);
	buf_release(&end->fio);
}

int64_t run_load_ms(const struct run_job *j) {
	return ((int64_t)j->spec.ramp_s + j->spec.runtime_s) * 1000;
}

static bool is_simulated(const struct run_job *j) {
	return j->drives[0].drive.kind == DRIVE_SIMULATED;
}

/* What the store cannot take has not begun, and waits as in the queue. */
static enum rc begin(struct bench *b, struct run_job *j, struct err *err) {
	enum rc rc = RC_OK;
	do {
		if (run_job_wait(j, NULL, rc ? STORE_PAUSE_MS : 0))
			return run_job_wished_away(err);
		rc = run_store_state(b, j, RUN_PREPARING, "", NULL, err);
	} while (run_store_recovers(rc));
	return rc;
}

static enum rc prepare(struct bench *b, struct run_job *j, struct err *err) {
	enum rc rc = begin(b, j, err);
	if (!rc)
		rc = run_identify_all(b, j, err);
	if (!rc)
		rc = interlock_check_again(b, j, err);
	if (!rc)
		rc = run_lease_all(b, j, err);
	if (!rc && run_job_wait(j, NULL, b->config.settle_ms))
		rc = run_job_wished_away(err);
	return rc;
}

/* --- fio's start and end -------------------------------------------------------------------- */

static bool has_started(const struct run_job *j) {
	return j->has_started;
}

static bool has_exited(const struct run_job *j) {
	return j->has_exited;
}

/* A start that worked is followed by exited, which then has the reference. */
static void on_started(void *arg, const struct priv_run_started *s, int dir_fd) {
	struct run_job *j = arg;
	pthread_mutex_lock(&j->lock);
	j->started = *s;
	j->dir_fd = dir_fd;
	j->has_started = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	if (s->rc)
		run_job_unref(j);
}

static void on_exited(void *arg, const struct priv_run_exited *x) {
	struct run_job *j = arg;
	pthread_mutex_lock(&j->lock);
	j->exited = *x;
	j->has_exited = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	run_job_unref(j);
}

static void fill_target(const struct run_job *j, unsigned i, struct priv_run_target *out) {
	const struct drive *d = &j->drives[i].drive;
	out->drive.kind = d->kind;
	str_copy(out->drive.name, sizeof(out->drive.name), d->name);
	str_copy(out->drive.serial, sizeof(out->drive.serial), d->serial);
	str_copy(out->drive_id, sizeof(out->drive_id), d->id);
	out->nsid = j->drives[i].nsid;
	out->size_bytes = j->spec.workload.size_bytes;
	out->numa_node = d->numa_node;
}

/* What is counted in bytes is real to fio and simulated to the caller. */
static void fill_start(const struct run_job *j, struct priv_run_start *out) {
	const struct run_spec *s = &j->spec;
	uint64_t scale = j->drives[0].scale;
	*out = (struct priv_run_start){.workload = s->workload,
		.runtime_s = s->runtime_s,
		.ramp_s = s->ramp_s,
		.max_write_bytes = s->max_write_bytes / scale,
		.override_signature = s->override_signature,
		.target_count = s->drive_count,
		.confirm_count = s->confirm_count,
		.confirm_in_use_count = s->confirm_in_use_count};
	out->workload.rate_bytes_per_s /= scale;
	str_copy(out->run_id, sizeof(out->run_id), j->id);
	memcpy(out->confirm_destructive, s->confirm_destructive, sizeof(out->confirm_destructive));
	memcpy(out->confirm_in_use, s->confirm_in_use, sizeof(out->confirm_in_use));
	for (unsigned i = 0; i < j->drive_count; i++)
		fill_target(j, i, &out->targets[i]);
}

/* SIGTERM, then SIGKILL. True when fio is gone. */
static bool stop_fio(struct bench *b, struct run_job *j) {
	const struct {
		bool kill;
		int64_t wait_ms;
	} steps[] = {{false, run_job_wished(j) == WISH_STOP ? 2000 : 12000}, {true, 8000}};
	j->stopped_ms = clock_wall_ms();
	for (size_t i = 0; i < array_len(steps); i++) {
		struct err err;
		if (privc_run_stop(b->privc, j->id, steps[i].kill, &err))
			log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, "stopping fio", &err);
		if (run_job_await(j, has_exited, steps[i].wait_ms))
			return true;
	}
	return false;
}

static enum rc start_fio(struct bench *b, struct run_job *j, struct err *err) {
	struct priv_run_start start;
	fill_start(j, &start);
	run_job_ref(j);
	enum rc rc = privc_run_start(b->privc, &start, on_started, on_exited, j, err);
	if (rc) {
		run_job_unref(j);
		return rc;
	}
	if (!run_job_await(j, has_started, START_WAIT_MS)) {
		stop_fio(b, j);
		return err_set(err, RC_TIMEOUT, "the helper did not start fio within %d s",
			START_WAIT_MS / 1000);
	}
	if (j->started.rc)
		return err_field(
			err, (enum rc)j->started.rc, j->started.field, "%s", j->started.msg);
	metric_add(METRIC_RUNS_STARTED, 1);
	return RC_OK;
}

/* --- while it runs --------------------------------------------------------------------------- */

static bool read_eta(const struct run_job *j, struct eta *out) {
	char tail[ETA_TAIL];
	struct stat st;
	auto_close int fd = openat(j->dir_fd, PRIV_RUN_ETA, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st))
		return false;
	off_t at = st.st_size > ETA_TAIL ? st.st_size - ETA_TAIL : 0;
	ssize_t n = pread(fd, tail, sizeof(tail), at);
	return n > 0 && eta_parse(tail, (size_t)n, out);
}

static int64_t scaled(int64_t rate, uint32_t scale) {
	return rate == NONE || rate > INT64_MAX / scale ? NONE : rate * scale;
}

static void show_progress(struct run_job *j, int64_t begun_ms) {
	struct eta eta = {NAN, NONE, NONE};
	double elapsed = (double)(clock_mono_ms() - begun_ms) / (double)run_load_ms(j);
	if (j->dir_fd >= 0 && read_eta(j, &eta) && isfinite(eta.progress))
		elapsed = eta.progress;
	pthread_mutex_lock(&j->lock);
	j->run.progress = fmax(j->run.progress, fmin(elapsed, 1));
	j->run.read_bytes_per_s = scaled(eta.read_bytes_per_s, j->drives[0].scale);
	j->run.write_bytes_per_s = scaled(eta.write_bytes_per_s, j->drives[0].scale);
	pthread_mutex_unlock(&j->lock);
}

static void demand_readings(struct bench *b, const struct run_job *j) {
	struct err err;
	if (energy_demand(b->energy, b->host_id, is_simulated(j) ? METER_SIMULATED_MS : METER_MS,
		    clock_wall_ms() + run_load_ms(j) + FIO_MARGIN_MS, &err))
		log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, "asking for readings", &err);
}

/* Until ready, a wish, or limit_ms; looks at the progress meanwhile. */
static void follow(struct run_job *j, bool (*ready)(const struct run_job *), int64_t limit_ms) {
	int64_t begun_ms = clock_mono_ms(), left_ms = limit_ms;
	while (left_ms > 0 && !run_job_wait(j, ready, left_ms < POLL_MS ? left_ms : POLL_MS)) {
		show_progress(j, begun_ms);
		left_ms = limit_ms - (clock_mono_ms() - begun_ms);
	}
}

/* --- the two kinds of load -------------------------------------------------------------------- */

static enum rc load_fio(struct bench *b, struct run_job *j, struct run_end *end, struct err *err) {
	j->late_before = metric_get(METRIC_SIM_LATE);
	enum rc rc = start_fio(b, j, err);
	if (rc)
		return rc;
	rc = run_store_state(b, j, RUN_RUNNING, "", NULL, err);
	if (!rc) {
		demand_readings(b, j);
		follow(j, has_exited, run_load_ms(j) + FIO_MARGIN_MS);
	}
	bool in_time = run_job_await(j, has_exited, 0);
	if (!in_time && !stop_fio(b, j))
		return err_set(err, RC_TIMEOUT, "fio does not end");
	if (rc)
		return rc;
	run_conclude(b, j, end);
	if (!in_time && run_job_wished(j) == WISH_NONE && end->state != RUN_FAILED) {
		end->state = RUN_FAILED;
		str_copy(end->reason, sizeof(end->reason), "fio did not end in time");
	}
	return RC_OK;
}

static bool never(const struct run_job *j unused_arg) {
	return false;
}

/* The power of doing nothing. Only the runtime counts, as with fio. */
static enum rc load_idle(struct bench *b, struct run_job *j, struct run_end *end, struct err *err) {
	enum rc rc = run_store_state(b, j, RUN_RUNNING, "", NULL, err);
	if (rc)
		return rc;
	metric_add(METRIC_RUNS_STARTED, 1);
	demand_readings(b, j);
	int64_t begun_ms = clock_wall_ms() + (int64_t)j->spec.ramp_s * 1000;
	follow(j, never, run_load_ms(j));
	struct fio_window window = {begun_ms, clock_wall_ms()};
	end->state = run_job_wished(j) == WISH_NONE ? RUN_COMPLETED : RUN_CANCELLED;
	return run_conclude_idle(b, j, &window, end, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

/* What somebody wished explains an end better than its symptoms do. */
static void apply_wish(enum run_wish wish, const char *by, struct run_end *end) {
	if (end->state == RUN_CANCELLED && wish == WISH_NONE) {
		end->state = RUN_FAILED;
		str_copy(end->reason, sizeof(end->reason), "fio was stopped by the helper");
	}
	if (end->state == RUN_COMPLETED || wish == WISH_NONE)
		return;
	if (wish == WISH_STOP) {
		end->state = RUN_INTERRUPTED;
		str_copy(end->reason, sizeof(end->reason), "the daemon ended");
		return;
	}
	end->state = RUN_CANCELLED;
	snprintf(end->reason, sizeof(end->reason), "cancelled by %s", by);
}

static const char *document(const struct buf *b) {
	return b->len ? buf_str(b) : NULL;
}

static void finish(struct bench *b, struct run_job *j, struct run_end *end) {
	apply_wish(run_job_wished(j), j->cancelled_by, end);
	const struct run_documents documents = {
		document(&end->result), document(&end->series), document(&end->fio)};
	if (j->spec.power_state >= 0)
		power_lease_end(b->power, j->id);
	if (j->has_started)
		privc_run_forget(b->privc, j->id);
	run_store_end(b, j, end->state, end->reason, &documents);
}

void run_carry_out(struct bench *b, struct run_job *j) {
	struct run_end end;
	struct err err;
	end_init(&end);
	enum rc rc = prepare(b, j, &err);
	if (!rc)
		rc = j->spec.workload.pattern == PATTERN_IDLE ? load_idle(b, j, &end, &err)
							      : load_fio(b, j, &end, &err);
	if (rc) {
		end.state = RUN_FAILED;
		str_copy(end.reason, sizeof(end.reason), err.msg);
	}
	finish(b, j, &end);
	end_release(&end);
}

enum rc run_end_unbegun(
	struct bench *b, struct run_job *j, enum run_wish wish, const char *by, struct err *err) {
	struct run_end end = {.state = RUN_CANCELLED};
	apply_wish(wish, by, &end);
	return run_store_state(b, j, end.state, end.reason, NULL, err);
}
