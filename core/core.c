#include "core/core.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/latch.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/accounts.h"
#include "core/bench.h"
#include "core/energy.h"
#include "core/hosts.h"
#include "core/httpc.h"
#include "core/meters.h"
#include "core/once.h"
#include "core/power.h"
#include "core/privc.h"
#include "core/remote.h"
#include "core/retention.h"
#include "core/sim.h"
#include "core/tasks.h"
#include "db/events.h"

/* The limits of what all parts share. */
#define MAX_TIMERS 8192
#define JOB_THREADS 4
#define JOB_QUEUE 16384
#define CONTROL_READERS 12
#define SAMPLES_READERS 6
#define BUSY_MS 5000
#define PEER_QUEUE 8
#define MAX_SERIES 16384
#define QUEUE_SAMPLES 65536
#define FLUSH_MS 2000
#define GAP_MS 60000
#define BACKOFF_MAX_MS 300000
#define PRUNE_MS 3600000
#define CHECKPOINT_MS 60000
#define PROBE_MS 5000
#define TASK_TICK_MS 1000
#define TASK_PATIENCE_MS 30000

/* --- stores and identity --- */

static struct db *open_store(
	const struct core_config *c, const char *name, enum db_file file, struct err *err) {
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", c->data_dir, name);
	const struct db_config config = {
		.path = path,
		.file = file,
		.readers = file == DB_CONTROL ? CONTROL_READERS : SAMPLES_READERS,
		.busy_ms = BUSY_MS,
	};
	return db_open(&config, err);
}

/* Nothing but the loss of its content leaves an empty control.db where there are samples, or with a
 * log of its own: made anew, it would have other accounts, hosts and policies. */
static enum rc check_lost(const char *data_dir, struct err *err) {
	struct stat control, other;
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/control.db", data_dir);
	if (stat(path, &control) || control.st_size > 0)
		return RC_OK;
	static const char *const others[] = {"control.db-wal", "samples.db"};
	for (size_t i = 0; i < array_len(others); i++) {
		snprintf(path, sizeof(path), "%s/%s", data_dir, others[i]);
		if (!stat(path, &other) && other.st_size > 0)
			return err_set(err, RC_CORRUPT,
				"%.80s/control.db is empty, but %s is not: restore control.db from "
				"a backup, or remove control.db* to begin anew",
				data_dir, others[i]);
	}
	return RC_OK;
}

static enum rc open_stores(struct core *core, struct err *err) {
	if (mkdir(core->config.data_dir, 0700) && errno != EEXIST)
		return err_errno(err, errno, core->config.data_dir);
	enum rc rc = check_lost(core->config.data_dir, err);
	if (rc)
		return rc;
	core->control = open_store(&core->config, "control.db", DB_CONTROL, err);
	if (core->control)
		core->samples = open_store(&core->config, "samples.db", DB_SAMPLES, err);
	return core->samples ? RC_OK : err->rc;
}

static enum rc take_id(struct core *core, struct db_conn *c, struct err *err) {
	enum rc rc = db_meta_get(c, "instance_id", core->host_id, sizeof(core->host_id), err);
	if (rc != RC_NOT_FOUND)
		return rc;
	id_uuid(core->host_id);
	return db_meta_set(c, "instance_id", core->host_id, err);
}

/* Made at the first start and never changed. */
static enum rc know_oneself(struct core *core, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(core->control, &c, err);
	if (rc)
		return rc;
	rc = take_id(core, c, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	return db_write_commit(c, err);
}

/* --- the parts, in the order in which they stand --- */

static enum rc make_tools(struct core *core, struct err *err) {
	core->timers = timers_new(MAX_TIMERS, err);
	if (core->timers)
		core->jobs = pool_new("jobs", JOB_THREADS, JOB_QUEUE, err);
	if (core->jobs)
		core->httpc = httpc_new(HOST_MAX + 1, PEER_QUEUE, err);
	return core->httpc ? RC_OK : err->rc;
}

static enum rc make_base(struct core *core, struct err *err) {
	const struct accounts_config accounts = {
		.cache_ms = 60000, .cache_size = 1024, .max_failures = core->config.login_failures};
	const int64_t meter_ms = core->config.meter_ms;
	const struct energy_config energy = {
		.max_series = MAX_SERIES,
		.queue_samples = QUEUE_SAMPLES,
		.flush_ms = FLUSH_MS,
		.max_gap_ms = 3 * meter_ms > GAP_MS ? 3 * meter_ms : GAP_MS,
	};
	core->events = events_new(core->control, err);
	if (core->events)
		core->accounts = accounts_new(&accounts, core->control, core->events, err);
	if (core->accounts)
		core->energy = energy_new(&energy, core->samples, err);
	return core->energy ? RC_OK : err->rc;
}

static enum rc make_remote(struct core *core, struct err *err) {
	char dir[PATH_MAX];
	if (!core->config.remote)
		return RC_OK;
	struct remote_config config = *core->config.remote;
	snprintf(dir, sizeof(dir), "%s/%s", core->config.data_dir, CORE_REMOTE_DIR);
	config.dir = dir;
	config.instance = core->host_id;
	core->remote = remote_new(&config, core->energy, core->httpc, err);
	return core->remote ? RC_OK : err->rc;
}

static enum rc make_hosts(struct core *core, struct err *err) {
	char name[HOST_NAME_MAX + 1] = "localhost";
	(void)gethostname(name, sizeof(name) - 1);
	struct hosts_config config = {
		.local_id = core->host_id,
		.local_name = name,
		.meter_ms = core->config.meter_ms,
		.observe_only = core->config.observe_only,
	};
	enum rc rc = secret_key_load(core->config.secret_key_file, config.secret_key, err);
	if (rc)
		return rc;
	core->once = once_new(config.secret_key, core->control, err);
	if (core->once)
		core->hosts = hosts_new(&config, core->control, core->events, core->energy,
			core->httpc, core->timers, core->jobs, err);
	secret_wipe(config.secret_key, sizeof(config.secret_key));
	return core->hosts ? RC_OK : err->rc;
}

static enum rc make_drives(struct core *core, struct err *err) {
	const struct core_config *c = &core->config;
	const struct drives_config drives = {
		.timeout_ms = c->drive_timeout_ms,
		.health_ms = c->health_ms,
		.rescan_ms = c->rescan_ms,
		.host_id = core->host_id,
	};
	const struct power_config power = {
		.observe_only = c->observe_only,
		.reconcile_ms = c->reconcile_ms,
		.backoff_max_ms = BACKOFF_MAX_MS,
	};
	const struct tasks_config tasks = {
		.tick_ms = TASK_TICK_MS,
		.patience_ms = TASK_PATIENCE_MS,
	};
	core->tasks = tasks_new(&tasks, core->control, core->events, core->timers, core->jobs, err);
	if (!core->tasks)
		return err->rc;
	core->drives = drives_new(
		&drives, core->control, core->events, core->energy, core->timers, core->jobs, err);
	if (core->drives)
		core->power = power_new(&power, core->control, core->events, core->drives,
			core->timers, core->jobs, err);
	return core->power ? power_use_tasks(core->power, core->tasks, err) : err->rc;
}

/* The daemon goes on without it, degraded and saying so. In the helper's reader thread. */
static void on_helper_lost(void *arg) {
	struct core *core = arg;
	metric_add(METRIC_PRIV_RESTARTS, 1);
	log_error("core", "the privileged helper is gone: no local drives, no benchmarks");
	events_record(core->events, EVENT_SERVICE, &actor_system, "/system",
		"{\"state\":\"degraded\",\"reason\":\"the privileged helper is gone\"}");
	drives_rescan(core->drives);
}

static enum rc make_helper(struct core *core, struct err *err) {
	const int sock = core->config.priv_socket;
	if (sock < 0)
		return RC_OK;
	core->config.priv_socket = -1;
	core->privc = privc_new(sock, on_helper_lost, core, err);
	return core->privc ? RC_OK : err->rc;
}

/* Simulated drives have a simulated meter. */
static enum rc make_meters(struct core *core, struct err *err) {
	const struct meters_config config = {
		.host_id = core->host_id, .period_ms = core->config.meter_ms};
	if (!core->privc || core->config.simulate)
		return RC_OK;
	core->meters = meters_new(
		&config, core->hosts, core->energy, core->privc, core->timers, core->jobs, err);
	return core->meters ? RC_OK : err->rc;
}

static enum rc make_sim(struct core *core, struct err *err) {
	const struct core_config *c = &core->config;
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s/%s", c->data_dir, CORE_SIM_DIR);
	const struct sim_config config = {
		.drives = c->simulate,
		.model = c->simulate_model ? c->simulate_model : "",
		.model_file = c->simulate_model_file,
		.scale = c->simulate_scale,
		.instance_id = core->host_id,
		.socket_dir = dir,
	};
	if (!c->simulate)
		return RC_OK;
	core->sim = sim_new(&config, core->energy, core->hosts, core->timers, err);
	return core->sim ? RC_OK : err->rc;
}

static enum rc make_bench(struct core *core, struct err *err) {
	const struct core_config *c = &core->config;
	const struct bench_config config = {
		.max_runs = c->max_runs,
		.max_queued = c->max_queued_runs,
		.settle_ms = c->settle_ms,
		.observe_only = c->observe_only,
		.allow_destructive = c->allow_destructive,
		.allow_in_use = c->allow_in_use,
		.simulate_scale = core->sim ? sim_scale(core->sim) : 1,
		.host_id = core->host_id,
	};
	core->bench = bench_new(&config, core->control, core->events, core->energy, core->hosts,
		core->drives, core->power, core->privc, core->timers, err);
	return core->bench ? RC_OK : err->rc;
}

static void end_all(struct core *core);

struct core *core_new(const struct core_config *config, struct err *err) {
	static enum rc (*const makers[])(struct core * core, struct err * err) = {
		open_stores,
		know_oneself,
		make_tools,
		make_base,
		make_remote,
		make_hosts,
		make_drives,
		make_helper,
		make_meters,
		make_sim,
		make_bench,
	};
	struct core *core = calloc(1, sizeof(*core));
	if (!core) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	core->config = *config;
	core->started_mono_ns = clock_mono_ns();
	for (size_t i = 0; i < array_len(makers); i++) {
		if (makers[i](core, err)) {
			end_all(core);
			return NULL;
		}
	}
	return core;
}

/* --- starting --- */

static enum rc add_source(struct core *core, struct err *err) {
	struct drive_source source;
	if (core->sim)
		source = sim_source(core->sim);
	else if (core->privc)
		source = drive_local_source(core->privc);
	else
		return RC_OK;
	if (core->privc)
		drive_local_watch(core->privc, core->drives);
	return drives_add_source(core->drives, &source, err);
}

static enum rc start_retention(struct core *core, struct err *err) {
	const struct core_config *c = &core->config;
	const struct retention_config config = {
		.prune_ms = PRUNE_MS,
		.checkpoint_ms = CHECKPOINT_MS,
		.probe_ms = PROBE_MS,
		.event_days = c->event_days,
		.audit_days = c->audit_days,
		.run_days = c->run_days,
		.sample_days = c->sample_days,
		.task_days = c->task_days,
		.quarter_days = c->quarter_days,
		.hour_days = c->hour_days,
		.other_days = c->other_days,
	};
	core->retention = retention_new(
		&config, core->control, core->samples, core->energy, core->timers, core->jobs, err);
	return core->retention ? RC_OK : err->rc;
}

enum rc core_start(struct core *core, struct err *err) {
	enum rc rc = bench_recover(core->bench, err);
	if (!rc)
		rc = power_start(core->power, err);
	if (!rc)
		rc = add_source(core, err);
	if (!rc)
		rc = drives_start(core->drives, err);
	if (!rc)
		rc = hosts_start(core->hosts, err);
	if (!rc && core->meters)
		rc = meters_start(core->meters, err);
	if (!rc)
		rc = tasks_start(core->tasks, err);
	if (!rc)
		rc = start_retention(core, err);
	if (!rc)
		events_record(core->events, EVENT_SERVICE, &actor_system, "/system",
			"{\"state\":\"started\"}");
	return rc;
}

/* --- stopping --- */

/* No more commands; then those who answer them; then what the answers set off. */
static void stop_drives(struct core *core) {
	if (core->tasks)
		tasks_stop(core->tasks);
	if (core->drives)
		drives_stop(core->drives);
	if (core->meters)
		meters_stop(core->meters);
	privc_free(core->privc);
	meters_free(core->meters);
	sim_free(core->sim);
	if (core->drives)
		drives_drain(core->drives);
	power_free(core->power);
	tasks_free(core->tasks);
	drives_free(core->drives);
}

static void end_all(struct core *core) {
	retention_free(core->retention);
	bench_free(core->bench);
	stop_drives(core);
	hosts_free(core->hosts);
	remote_stop(core->remote);
	httpc_free(core->httpc);
	remote_free(core->remote);
	energy_free(core->energy);
	once_free(core->once);
	accounts_free(core->accounts);
	events_free(core->events);
	pool_free(core->jobs);
	timers_free(core->timers);
	db_close(core->samples);
	db_close(core->control);
	if (core->config.priv_socket >= 0)
		close(core->config.priv_socket);
	free(core);
}

struct ending {
	struct core *core;
	struct latch *ended;
};

static void *end(void *arg) {
	struct ending *e = arg;
	const bool done = true;
	end_all(e->core);
	latch_open(e->ended, &done);
	latch_unref(e->ended);
	free(e);
	return NULL;
}

/* NULL: out of memory. The thread has a reference of its own. */
static struct ending *ending_new(struct core *core, struct latch *ended) {
	struct ending *e = ended ? malloc(sizeof(*e)) : NULL;
	if (e)
		*e = (struct ending){core, latch_ref(ended)};
	return e;
}

/* In a thread of its own, so that whatever is stuck holds up nobody who waits for the end. */
bool core_free(struct core *core, int64_t deadline_ms) {
	pthread_t thread;
	bool done = true;
	if (!core)
		return true;
	struct latch *ended = latch_new(sizeof(done));
	struct ending *e = ending_new(core, ended);
	if (!e) {
		end_all(core);
	} else if (thread_start(&thread, "stop", end, e, NULL)) {
		end(e);
	} else {
		pthread_detach(thread);
		done = latch_wait(ended, deadline_ms, &done);
	}
	latch_unref(ended);
	return done;
}
