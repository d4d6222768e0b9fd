/*
 * All that core/bench stands on, played by a test: drives, power, the helper, hosts and meter.
 * Their functions are defined here, so that the archive's own are not linked. The store and the
 * events are real.
 */
#ifndef DRIVEWATT_TESTS_BENCH_FAKES_H
#define DRIVEWATT_TESTS_BENCH_FAKES_H

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/thread.h"
#include "base/timer.h"
#include "core/bench.h"
#include "core/privc.h"
#include "db/runs.h"
#include "tests/support/temp_db.h"

#define PATIENCE_MS 20000
#define FAKE_DRIVES 8
#define FAKE_RUNS 16
#define HOST "6f1c1f1e-0000-4000-8000-000000000001"

enum fake_lease { LEASE_GOOD, LEASE_REFUSED, LEASE_ELSEWHERE, LEASE_SILENT };

struct fake_run {
	struct priv_run_start start;
	void (*exited)(void *arg, const struct priv_run_exited *x);
	void *arg;
	bool over;
};

struct world {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct temp_db *store;
	struct events *events;
	struct bench *bench;

	unsigned drive_count;
	struct drive drives[FAKE_DRIVES];
	struct drive_detail *details[FAKE_DRIVES];

	enum rc identify_rc;
	unsigned identified;
	const struct drive_use *appears; /* on every drive that is looked at; NULL nothing */

	enum fake_lease lease;
	unsigned leases, lease_ends;
	power_fn *late; /* the last silent drive's answer, which comes when all is over */
	void *late_arg;

	const char *run_dir; /* what fio leaves behind */
	enum rc start_rc;
	unsigned run_count, stops, forgets;
	struct fake_run runs[FAKE_RUNS];
	int64_t reaped_pid;
	bool helper_lost;

	struct baseline baselines[BASELINE_KIND_COUNT_];
	unsigned baselines_set;
	int64_t meter_mw, meter_period_ms, resolution_mw; /* period 0: there is no meter */
	bool drives_have_meters;
	int64_t demanded_ms;
};

static struct world world;

static void world_signal(void) {
	pthread_mutex_lock(&world.lock);
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
}

/* --- drives ------------------------------------------------------------------------------------
 */

static int find_drive(const char *id) {
	for (unsigned i = 0; i < world.drive_count; i++) {
		if (strcmp(world.drives[i].id, id) == 0)
			return (int)i;
	}
	return -1;
}

enum rc drives_get(struct drives *ds unused_arg, const char *id, struct drive *out,
	char *labels unused_arg, struct drive_detail *detail, struct err *err) {
	int i = find_drive(id);
	if (i < 0)
		return err_set(err, RC_NOT_FOUND, "no such drive");
	*out = world.drives[i];
	if (detail)
		*detail = *world.details[i];
	return RC_OK;
}

void drives_each(struct drives *ds unused_arg, const char *after unused_arg,
	bool (*visit)(void *arg, const struct drive *d, const char *labels), void *arg) {
	for (unsigned i = 0; i < world.drive_count && visit(arg, &world.drives[i], ""); i++)
		;
}

/* Answers at once, in the caller's thread. */
enum rc drives_submit(struct drives *ds unused_arg, const char *id, enum drive_verb verb,
	const struct power_setting *setting unused_arg, bool internal, drive_reply_fn *fn,
	void *arg, struct err *err unused_arg) {
	struct drive_reply r = {.rc = world.identify_rc, .power_state = -1};
	assert_int_equal(verb, DRIVE_IDENTIFY);
	assert_true(internal);
	pthread_mutex_lock(&world.lock);
	world.identified++;
	struct drive_namespace *ns = world.details[find_drive(id)]->namespaces;
	if (world.appears)
		ns->uses[ns->use_count++] = *world.appears;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
	if (r.rc)
		err_set(&r.err, r.rc, "the drive has not answered");
	if (fn)
		fn(arg, &r);
	return RC_OK;
}

/* --- power -------------------------------------------------------------------------------------
 */

enum rc power_lease(struct power *p unused_arg, const char *drive_id unused_arg,
	const char *run_id unused_arg, int state, int64_t expires_ms unused_arg, power_fn *fn,
	void *arg, struct err *err unused_arg) {
	struct power_outcome o = {.observed_state = state, .in_sync = true, .recorded = true};
	pthread_mutex_lock(&world.lock);
	world.leases++;
	enum fake_lease lease = world.lease;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
	if (lease == LEASE_REFUSED)
		o.rc = err_set(&o.err, RC_REFUSED, "the drive said no");
	if (lease == LEASE_ELSEWHERE)
		o.observed_state = state + 1;
	str_copy(o.held_by, sizeof(o.held_by), "budget:rack");
	if (lease != LEASE_SILENT) {
		fn(arg, &o);
		return RC_OK;
	}
	world.late = fn;
	world.late_arg = arg;
	return RC_OK;
}

void power_lease_end(struct power *p unused_arg, const char *run_id unused_arg) {
	pthread_mutex_lock(&world.lock);
	world.lease_ends++;
	pthread_mutex_unlock(&world.lock);
}

/* --- the helper --------------------------------------------------------------------------------
 */

bool privc_lost(struct privc *p unused_arg) {
	return world.helper_lost;
}

enum rc privc_run_start(struct privc *p unused_arg, const struct priv_run_start *r,
	void (*started)(void *arg, const struct priv_run_started *s, int dir_fd),
	void (*exited)(void *arg, const struct priv_run_exited *x), void *arg,
	struct err *err unused_arg) {
	struct priv_run_started s = {.pid = 4242, .start_ticks = 99};
	int dir = -1;
	if (world.start_rc) {
		s.rc = (int32_t)world.start_rc;
		str_copy(s.msg, sizeof(s.msg), "sda1 mounted on /");
	} else {
		dir = open(world.run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	started(arg, &s, dir);
	pthread_mutex_lock(&world.lock);
	world.runs[world.run_count++] = (struct fake_run){*r, exited, arg, s.rc != RC_OK};
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
	return RC_OK;
}

/* The n-th fio ends, once. */
static void fio_exits(unsigned n, const struct priv_run_exited *x) {
	pthread_mutex_lock(&world.lock);
	struct fake_run *run = &world.runs[n];
	bool first = !run->over;
	run->over = true;
	pthread_mutex_unlock(&world.lock);
	if (first)
		run->exited(run->arg, x);
}

static void fio_ends(unsigned n, int code, int sig, bool asked) {
	const struct priv_run_exited x = {.exit_code = code, .signal = sig, .asked = asked};
	fio_exits(n, &x);
}

enum rc privc_run_stop(struct privc *p unused_arg, const char *run_id, bool kill unused_arg,
	struct err *err unused_arg) {
	for (unsigned i = 0; i < world.run_count; i++) {
		if (strcmp(world.runs[i].start.run_id, run_id) == 0)
			fio_ends(i, 128, 0, true);
	}
	pthread_mutex_lock(&world.lock);
	world.stops++;
	pthread_mutex_unlock(&world.lock);
	return RC_OK;
}

void privc_run_forget(struct privc *p unused_arg, const char *run_id unused_arg) {
	pthread_mutex_lock(&world.lock);
	world.forgets++;
	pthread_cond_broadcast(&world.changed);
	pthread_mutex_unlock(&world.lock);
}

enum rc privc_reap(struct privc *p unused_arg, int64_t pid, uint64_t start_ticks unused_arg,
	bool *was_alive, struct err *err unused_arg) {
	world.reaped_pid = pid;
	*was_alive = true;
	return RC_OK;
}

/* --- host and meter ----------------------------------------------------------------------------
 */

enum rc hosts_get(struct hosts *hs unused_arg, const char *id unused_arg, struct host *out,
	struct host_power *power, struct err *err unused_arg) {
	*out = (struct host){.local = true};
	memcpy(out->baselines, world.baselines, sizeof(out->baselines));
	*power = (struct host_power){.resolution_mw = world.resolution_mw,
		.step_mw = world.resolution_mw,
		.lag_ms = NONE};
	return RC_OK;
}

enum rc hosts_set_baseline(struct hosts *hs unused_arg, const struct actor *who unused_arg,
	const char *host_id unused_arg, enum baseline_kind kind, const struct baseline *b,
	struct err *err unused_arg) {
	world.baselines[kind] = *b;
	world.baselines_set++;
	return RC_OK;
}

enum rc energy_find(struct energy *e unused_arg, const char *host_id unused_arg, const char *object,
	enum quantity q unused_arg, struct series *out, struct err *err unused_arg) {
	bool host = strcmp(object, "host") == 0;
	if (world.meter_period_ms == 0 || (!host && !world.drives_have_meters))
		return RC_NOT_FOUND;
	*out = (struct series){.id = host ? 1 : 2, .key.quality = QUALITY_BMC};
	str_copy(out->source, sizeof(out->source), "PowerControl");
	return RC_OK;
}

/* A drive of its own meter draws 10 W. Every reading comes twice, as from a BMC that is asked
 * faster than it measures. */
enum rc energy_raw(struct energy *e unused_arg, int64_t series_id, int64_t from_ms, int64_t to_ms,
	bool (*visit)(void *arg, const struct sample *s), void *arg, struct err *err unused_arg) {
	struct sample s = {.series_id = series_id};
	s.value_milli = series_id == 1 ? world.meter_mw : 10000;
	for (s.at_ms = from_ms; s.at_ms < to_ms; s.at_ms += world.meter_period_ms) {
		if (!visit(arg, &s) || !visit(arg, &s))
			break;
	}
	return RC_OK;
}

enum rc energy_demand(struct energy *e unused_arg, const char *host_id unused_arg,
	int64_t period_ms, int64_t until_ms unused_arg, struct err *err unused_arg) {
	pthread_mutex_lock(&world.lock);
	world.demanded_ms = period_ms;
	pthread_mutex_unlock(&world.lock);
	return RC_OK;
}

/* --- the world ---------------------------------------------------------------------------------
 */

static struct drive *add_drive(const char *id, enum drive_kind kind) {
	unsigned i = world.drive_count++;
	struct drive *d = &world.drives[i];
	struct drive_detail *detail = calloc(1, sizeof(*detail));
	*d = (struct drive){.kind = (uint8_t)kind,
		.state = DRIVE_LIVE,
		.power_state = 0,
		.power_state_count = 3,
		.serial_unique = true,
		.numa_node = -1};
	str_copy(d->id, sizeof(d->id), id);
	str_copy(d->model, sizeof(d->model), "Model");
	snprintf(d->serial, sizeof(d->serial), "SN%.12s", id);
	snprintf(d->name, sizeof(d->name), "nvme%u", i);
	snprintf(detail->subsystem_nqn, sizeof(detail->subsystem_nqn), "nqn.test:%.16s", id);
	detail->scale = 1;
	detail->power.count = 3;
	for (uint8_t s = 0; s < 3; s++)
		detail->power.states[s] = (struct power_state){.state = s,
			.operational = s < 2,
			.max_uw = 25000000 - s * 10000000,
			.idle_uw = NONE,
			.active_uw = NONE};
	detail->namespace_count = 1;
	detail->namespaces[0] =
		(struct drive_namespace){.nsid = 1, .size_bytes = 1ull << 40, .lba_bytes = 512};
	world.details[i] = detail;
	return d;
}

static void on_event(void *arg unused_arg, const struct event *e unused_arg) {
	world_signal();
}

static void world_open(const struct bench_config *config) {
	struct err err;
	world = (struct world){.run_dir = "tests/data/fio/run",
		.meter_mw = 858000,
		.meter_period_ms = 200,
		.resolution_mw = 33000};
	pthread_mutex_init(&world.lock, NULL);
	cond_init(&world.changed);
	world.store = temp_db_new(DB_CONTROL);
	world.events = events_new(world.store->db, &err);
	assert_non_null(world.events);
	assert_int_equal(events_subscribe(world.events, on_event, NULL, &err), RC_OK);
	static int helper;
	world.bench = bench_new(config, world.store->db, world.events, NULL, NULL, NULL, NULL,
		(struct privc *)&helper, NULL, &err);
	assert_non_null(world.bench);
}

static void world_close(void) {
	bench_free(world.bench);
	const struct power_outcome timeout = {.rc = RC_TIMEOUT, .observed_state = -1};
	if (world.late)
		world.late(world.late_arg, &timeout);
	events_free(world.events);
	temp_db_free(world.store);
	for (unsigned i = 0; i < world.drive_count; i++)
		free(world.details[i]);
}

static const struct actor alice = {.name = "alice", .role = ROLE_OPERATOR};

static struct run_spec make_spec(const char *const *ids, unsigned n) {
	struct run_spec s = {
		.drive_count = (uint16_t)n, .power_state = -1, .runtime_s = 4, .ramp_s = 1};
	s.workload = (struct workload){.pattern = PATTERN_RANDREAD,
		.block_bytes = 4096,
		.iodepth = 2,
		.jobs = 2,
		.direct = true};
	for (unsigned i = 0; i < n; i++)
		str_copy(s.drives[i], sizeof(s.drives[i]), ids[i]);
	return s;
}

#endif
