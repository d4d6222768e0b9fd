#include "core/sim/target.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/sim/meter.h"
#include "core/sim/nbd.h"

#define INVALID_FIELD_DO_NOT_RETRY 0x4002 /* as an NVMe controller refuses a bad power state */
#define DATA_UNIT_BYTES 512000.0
#define MIN_INTERVAL_S 0.1 /* of two SMART readings that have a power between them */

struct command {
	struct command *next;
	unsigned drive;
	enum drive_verb verb;
	int power_state;
	drive_reply_fn *fn;
	void *arg;
	int64_t due_ms;
};

struct target_drive {
	struct drive_found found;
	int64_t free_ms; /* when its last command will be done */
	/* of the thread */
	double temperature_c;
	int64_t read_ns; /* energy_j is up to here */
	double energy_j;
	double interval_w; /* between the last two readings; NaN none yet */
};

struct sim_target {
	struct sim_model model;
	unsigned drive_count;
	unsigned scale;
	struct sim_pace *pace;
	int64_t started_ms;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* guards what follows, and free_ms of the drives */
	pthread_cond_t changed;
	bool stopping;
	struct command *first; /* by due time, then by arrival */
	struct command *free;
	struct command *commands;
	struct target_drive *drives;
};

/* --- what a drive says --- */

static void identify(const struct sim_target *t, unsigned drive, struct drive_detail *out) {
	const struct drive_found *f = &t->drives[drive].found;
	memset(out, 0, sizeof(*out));
	str_copy(out->subsystem_nqn, sizeof(out->subsystem_nqn), f->subsystem_nqn);
	out->cntlid = f->cntlid;
	out->vendor_id = (uint16_t)t->model.identity.vendor_id;
	out->warning_c = (int64_t)t->model.thermal.warning_c;
	out->critical_c = (int64_t)t->model.thermal.critical_c;
	out->tmt_min_c = out->tmt_max_c = NONE;
	out->scale = t->scale;
	sim_model_power_table(&t->model, &out->power);
	out->namespace_count = 1;
	struct drive_namespace *ns = &out->namespaces[0];
	ns->nsid = 1;
	snprintf(ns->path, sizeof(ns->path), "%s.sock", f->drive.name);
	ns->size_bytes = f->drive.capacity_bytes;
	ns->lba_bytes = (uint32_t)t->model.lba_bytes;
}

/* Temperature and mean power since the last reading. */
static void follow(
	const struct sim_target *t, struct target_drive *d, double energy_j, int64_t now_ns) {
	const double dt_s = (double)(now_ns - d->read_ns) / 1e9;
	if (dt_s < MIN_INTERVAL_S)
		return;
	const struct sim_thermal *th = &t->model.thermal;
	d->interval_w = (energy_j - d->energy_j) / dt_s;
	d->temperature_c = sim_approach(d->temperature_c,
		th->ambient_c + th->c_per_w * d->interval_w, th->time_constant_s, dt_s);
	d->energy_j = energy_j;
	d->read_ns = now_ns;
}

static int64_t milli_or_none(double v) {
	return isnan(v) ? NONE : llround(v * 1000);
}

static uint8_t temperature_warning(const struct sim_target *t, double temperature_c) {
	return temperature_c >= t->model.thermal.warning_c ? 2 : 0;
}

static void read_health(struct sim_target *t, unsigned drive, struct drive_health *out) {
	struct target_drive *d = &t->drives[drive];
	struct sim_totals totals;
	const int64_t now_ns = clock_mono_ns();
	sim_pace_totals(t->pace, drive, now_ns, &totals);
	follow(t, d, totals.energy_j, now_ns);
	*out = (struct drive_health){
		.read_ms = clock_wall_ms(),
		.critical_warning = temperature_warning(t, d->temperature_c),
		.temperature_mc = milli_or_none(d->temperature_c),
		.available_spare_pct = 100,
		.spare_threshold_pct = 10,
		.data_units_read = llround(totals.bytes[SIM_READ] / DATA_UNIT_BYTES),
		.data_units_written = llround(totals.bytes[SIM_WRITE] / DATA_UNIT_BYTES),
		.host_reads = llround(totals.ios[SIM_READ]),
		.host_writes = llround(totals.ios[SIM_WRITE]),
		.controller_busy_min = (int64_t)(totals.busy_s / 60),
		.power_cycles = 1,
		.power_on_h = (now_ns / 1000000 - t->started_ms) / 3600000,
		.lifetime_energy_wh = NONE,
		.interval_power_mw = t->model.drive_meter ? milli_or_none(d->interval_w) : NONE,
	};
	for (size_t i = 0; i < DRIVE_MAX_SENSORS; i++)
		out->sensors_mc[i] = i ? NONE : out->temperature_mc;
}

static enum rc set_state(struct sim_target *t, const struct command *c, struct err *err) {
	if (c->power_state < 0 || (unsigned)c->power_state >= t->model.state_count) {
		err_set(err, RC_REFUSED, "the drive has no power state %d", c->power_state);
		err->nvme_status = INVALID_FIELD_DO_NOT_RETRY;
		return RC_REFUSED;
	}
	sim_pace_set_state(t->pace, c->drive, (unsigned)c->power_state, clock_mono_ns());
	return RC_OK;
}

static void carry_out(struct sim_target *t, const struct command *c) {
	struct drive_detail detail;
	struct drive_health health;
	struct drive_reply r = {.rc = RC_OK, .limit_mw = NONE};
	switch (c->verb) {
	case DRIVE_IDENTIFY:
		identify(t, c->drive, &detail);
		r.detail = &detail;
		break;
	case DRIVE_SMART:
		read_health(t, c->drive, &health);
		r.health = &health;
		break;
	case DRIVE_POWER_SET:
		r.rc = set_state(t, c, &r.err);
		break;
	case DRIVE_POWER_GET:
		break;
	}
	r.power_state = (int)sim_pace_state(t->pace, c->drive);
	c->fn(c->arg, &r);
}

static void cancel(const struct command *c) {
	struct drive_reply r = {.power_state = -1};
	r.rc = err_set(&r.err, RC_UNAVAILABLE, "the service is stopping");
	c->fn(c->arg, &r);
}

/* --- the thread --- */

static void put_back(struct sim_target *t, struct command *c) {
	c->next = t->free;
	t->free = c;
}

/* Waits for the first command's time; NULL when it is time to stop and nothing is left. */
static struct command *next_command(struct sim_target *t) {
	while (t->first || !t->stopping) {
		const int64_t wait_ms = t->first ? t->first->due_ms - clock_mono_ms() : INT64_C(-1);
		if (t->first && (wait_ms <= 0 || t->stopping)) {
			struct command *c = t->first;
			t->first = c->next;
			return c;
		}
		struct timespec deadline = thread_deadline(wait_ms);
		cond_wait_until(&t->changed, &t->lock, &deadline);
	}
	return NULL;
}

static void *run(void *arg) {
	struct sim_target *t = arg;
	struct command *c;
	pthread_mutex_lock(&t->lock);
	while ((c = next_command(t))) {
		const bool stopping = t->stopping;
		pthread_mutex_unlock(&t->lock);
		if (stopping)
			cancel(c);
		else
			carry_out(t, c);
		pthread_mutex_lock(&t->lock);
		put_back(t, c);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* --- the registry's side --- */

static int find_drive(const struct sim_target *t, const struct drive *d) {
	for (unsigned i = 0; i < t->drive_count; i++)
		if (strcmp(t->drives[i].found.drive.serial, d->serial) == 0)
			return (int)i;
	return -1;
}

/* A change of state takes leaving the one and entering the other; the rest is at once. */
static int64_t duration_ms(
	const struct sim_target *t, unsigned drive, enum drive_verb verb, int power_state) {
	if (verb != DRIVE_POWER_SET || power_state < 0 ||
		(unsigned)power_state >= t->model.state_count)
		return 0;
	const struct sim_state *from = &t->model.states[sim_pace_state(t->pace, drive)];
	const struct sim_state *to = &t->model.states[power_state];
	return from == to ? 0 : llround((from->exit_latency_us + to->entry_latency_us) / 1000);
}

static void insert(struct sim_target *t, struct command *c) {
	struct command **link = &t->first;
	while (*link && (*link)->due_ms <= c->due_ms)
		link = &(*link)->next;
	c->next = *link;
	*link = c;
	pthread_cond_signal(&t->changed);
}

static enum rc enqueue(struct sim_target *t, const struct command *c, struct err *err) {
	struct target_drive *d = &t->drives[c->drive];
	struct command *own = t->free;
	if (t->stopping)
		return err_set(err, RC_UNAVAILABLE, "the simulator ends");
	if (!own)
		return err_set(err, RC_FULL, "too many commands wait for simulated drives");
	t->free = own->next;
	*own = *c;
	const int64_t now_ms = clock_mono_ms();
	own->due_ms = (d->free_ms > now_ms ? d->free_ms : now_ms) +
		duration_ms(t, c->drive, c->verb, c->power_state);
	d->free_ms = own->due_ms;
	insert(t, own);
	return RC_OK;
}

static enum rc submit(void *source, const struct drive *d, const struct drive_question *q,
	drive_reply_fn *fn, void *arg, struct err *err) {
	struct sim_target *t = source;
	const int drive = find_drive(t, d);
	if (drive < 0)
		return err_set(err, RC_NOT_FOUND, "no simulated drive %s", d->serial);
	const struct command c = {
		.drive = (unsigned)drive,
		.verb = q->verb,
		.power_state = q->setting.state,
		.fn = fn,
		.arg = arg,
	};
	pthread_mutex_lock(&t->lock);
	enum rc rc = enqueue(t, &c, err);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

static enum rc scan(void *self, void (*found)(void *arg, const struct drive_found *f),
	void (*done)(void *arg, enum rc rc, const char *reason), void *arg,
	struct err *err unused_arg) {
	struct sim_target *t = self;
	for (unsigned i = 0; i < t->drive_count; i++)
		found(arg, &t->drives[i].found);
	done(arg, RC_OK, "");
	return RC_OK;
}

static const struct drive_target_ops ops = {.submit = submit};

struct drive_source sim_target_source(struct sim_target *t) {
	return (struct drive_source){.ops = &ops, .self = t, .scan = scan};
}

/* --- construction --- */

uint64_t sim_hash(const char *text, uint64_t basis) {
	uint64_t h = basis;
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

/* The same drives come again at the next start of this instance, and others elsewhere. */
static void make_identity(struct sim_target *t, unsigned drive, uint64_t hash) {
	struct drive_found *f = &t->drives[drive].found;
	struct drive *d = &f->drive;
	sim_drive_name(drive, d->name, sizeof(d->name));
	str_copy(d->model, sizeof(d->model), t->model.identity.model);
	str_copy(d->firmware, sizeof(d->firmware), t->model.identity.firmware);
	str_copy(d->transport, sizeof(d->transport), "sim");
	snprintf(d->slot, sizeof(d->slot), "%u", drive);
	snprintf(d->serial, sizeof(d->serial), "SIM%012" PRIX64 "%02u", hash >> 16, drive & 0xfff);
	snprintf(f->subsystem_nqn, sizeof(f->subsystem_nqn),
		"nqn.2014-08.org.nvmexpress:uuid:%08" PRIx64 "-%04" PRIx64 "-8%03" PRIx64
		"-8%03x-%012" PRIx64,
		hash >> 32, hash >> 16 & 0xffff, hash >> 4 & 0xfff, drive & 0xfff, hash >> 16);
	d->kind = DRIVE_SIMULATED;
	d->state = DRIVE_LIVE;
	d->power_state = d->effective_state = -1;
	d->power_state_count = (uint8_t)t->model.state_count;
	d->serial_unique = true;
	d->numa_node = -1;
	d->temperature_mc = d->measured_mw = INT32_MIN;
	d->capacity_bytes = (uint64_t)t->model.capacity_bytes;
	d->seen_ms = clock_wall_ms();
	f->cntlid = 1;
}

static void make_drive(struct sim_target *t, unsigned drive, uint64_t hash) {
	struct target_drive *d = &t->drives[drive];
	const struct sim_thermal *th = &t->model.thermal;
	make_identity(t, drive, hash);
	d->temperature_c = th->ambient_c + th->c_per_w * t->model.states[0].idle_w;
	d->interval_w = NAN;
	d->read_ns = clock_mono_ns();
}

struct sim_target *sim_target_new(
	const struct sim_target_config *config, struct sim_pace *pace, struct err *err) {
	struct sim_target *t = calloc(1, sizeof(*t));
	if (!t)
		goto nomem;
	pthread_mutex_init(&t->lock, NULL);
	cond_init(&t->changed);
	t->model = *config->model;
	t->drive_count = config->drives;
	t->scale = config->scale;
	t->pace = pace;
	t->started_ms = clock_mono_ms();
	const size_t commands = (size_t)config->drives * SIM_TARGET_COMMANDS;
	t->drives = calloc(config->drives, sizeof(t->drives[0]));
	t->commands = calloc(commands, sizeof(t->commands[0]));
	if (!t->drives || !t->commands)
		goto nomem;
	for (size_t i = 0; i < commands; i++)
		put_back(t, &t->commands[i]);
	const uint64_t hash =
		sim_hash(t->model.name, sim_hash(config->instance_id, SIM_HASH_BASIS));
	for (unsigned i = 0; i < config->drives; i++)
		make_drive(t, i, hash);
	if (thread_start(&t->thread, "sim-target", run, t, err))
		goto fail;
	t->started = true;
	return t;
nomem:
	err_set(err, RC_NOMEM, "no memory for %u simulated drives", config->drives);
fail:
	sim_target_free(t);
	return NULL;
}

void sim_target_free(struct sim_target *t) {
	if (!t)
		return;
	if (t->started) {
		pthread_mutex_lock(&t->lock);
		t->stopping = true;
		pthread_cond_signal(&t->changed);
		pthread_mutex_unlock(&t->lock);
		pthread_join(t->thread, NULL);
	}
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t->commands);
	free(t->drives);
	free(t);
}
