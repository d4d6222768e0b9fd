#include "core/meters.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/meters/packages.h"

#define TICK_MS 100
#define DCMI_MIN_MS 1000 /* a program is started for each */
#define RETRY_MS 60000   /* where there is nothing to be had */
#define RETRY_MAX_MS 3600000
#define DCMI_SOURCE "DCMI"
#define PACKAGES_OBJECT "cpu"
#define PACKAGES_SOURCE "rapl"

/* One kind of question. Under the lock. */
struct asked {
	bool waiting; /* for the answer, or for its judgement */
	unsigned failures;
	int64_t due_ms;
};

/* A component's series, once it is known. The judging job's. */
struct known_series {
	char object[sizeof(((struct host_component *)0)->object)];
	int64_t id;
};

struct meters {
	char host_id[HOST_ID_SIZE];
	int64_t period_ms;
	struct hosts *hosts; /* borrowed, like the next four */
	struct energy *energy;
	struct privc *privc;
	struct timers *timers;
	struct pool *jobs;
	timer_id timer;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle;
	unsigned open; /* answers awaited and jobs */
	bool stopping;
	struct asked asked[PRIV_METER_COUNT_];
	/* --- the job's that judges that kind of answer: there is one at a time */
	bool dcmi_works;
	struct priv_parts last; /* parts: of the reading before */
	struct known_series series[HOST_COMPONENT_MAX];
	unsigned series_count;
};

/* --- when --- */

static int64_t period_of(struct meters *m, enum priv_meter kind) {
	int64_t ms = energy_period(m->energy, m->host_id, m->period_ms);
	return kind == PRIV_METER_DCMI && ms < DCMI_MIN_MS ? DCMI_MIN_MS : ms;
}

static int64_t retry_ms(unsigned failures) {
	unsigned doublings = failures < 7 ? failures - 1 : 6;
	int64_t ms = (int64_t)RETRY_MS << doublings;
	return ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
}

/* The answer was judged. */
static void rest(struct meters *m, enum priv_meter kind, bool good) {
	int64_t period_ms = period_of(m, kind), now_ms = clock_mono_ms();
	pthread_mutex_lock(&m->lock);
	struct asked *a = &m->asked[kind];
	a->waiting = false;
	a->failures = good ? 0 : a->failures + 1;
	/* On the beat, unless it was missed. */
	if (!good)
		a->due_ms = now_ms + retry_ms(a->failures);
	else if (kind == PRIV_METER_MACHINE)
		a->due_ms = INT64_MAX;
	else if (a->due_ms + period_ms > now_ms)
		a->due_ms += period_ms;
	else
		a->due_ms = now_ms + period_ms;
	if (!--m->open)
		pthread_cond_broadcast(&m->idle);
	pthread_mutex_unlock(&m->lock);
}

/* --- the system's watts --- */

static const char *reason_of(enum rc rc) {
	return rc == RC_TIMEOUT        ? "dcmi_timeout"
		: rc == RC_UNSUPPORTED ? "not_supported"
				       : "dcmi_error";
}

/* Where it never worked, nothing is told: most machines have no BMC to ask. */
static bool judge_dcmi(struct meters *m, const struct priv_meter_reply *r) {
	struct host_power p;
	bool good = r->rc == RC_OK;
	if (!good && m->dcmi_works)
		log_warning("meters", "DCMI: %s", r->msg);
	else if (!good)
		log_debug("meters", "DCMI: %s", r->msg);
	if (good || m->dcmi_works) {
		host_power_init(&p);
		p.power_mw = good ? r->power_mw : NONE;
		p.at_ms = r->at_ms ? r->at_ms : clock_wall_ms();
		p.at_mono_ns = r->at_mono_ns ? r->at_mono_ns : clock_mono_ns();
		str_copy(p.source, sizeof(p.source), good ? DCMI_SOURCE : "");
		str_copy(p.reason, sizeof(p.reason), good ? "" : reason_of((enum rc)r->rc));
		hosts_local_reading(m->hosts, &p);
	}
	m->dcmi_works |= good;
	return good;
}

/* --- parts --- */

static int64_t series_of(struct meters *m, const struct host_component *c) {
	struct err err = {0};
	for (unsigned i = 0; i < m->series_count; i++) {
		if (strcmp(m->series[i].object, c->object) == 0)
			return m->series[i].id;
	}
	if (m->series_count == HOST_COMPONENT_MAX)
		return 0;
	struct series_key key = {.quantity = QUANTITY_POWER, .quality = c->quality};
	struct known_series *s = &m->series[m->series_count];
	str_copy(key.host_id, sizeof(key.host_id), m->host_id);
	str_copy(key.object, sizeof(key.object), c->object);
	if (energy_series(m->energy, &key, c->source, &s->id, &err)) {
		log_err(LOG_LEVEL_WARNING, "meters", "no history of a part", &err);
		return 0;
	}
	str_copy(s->object, sizeof(s->object), c->object);
	m->series_count++;
	return s->id;
}

static void feed(struct meters *m, const struct host_component *c) {
	const struct sample s = {.series_id = series_of(m, c),
		.at_ms = c->at_ms,
		.at_mono_ns = c->at_mono_ns,
		.value_milli = c->power_mw};
	if (s.series_id)
		energy_ingest(m->energy, &s, 1);
}

/* The processors' packages together. Derived, and by no means the system's watts. */
static unsigned add_packages(
	const struct priv_parts *from, const struct priv_parts *to, struct host_component *out) {
	struct package_power p = packages_power(from, to);
	if (p.power_mw == NONE)
		return 0;
	*out = (struct host_component){.quality = QUALITY_DERIVED,
		.power_mw = p.power_mw,
		.uncertainty_mw = p.uncertainty_mw,
		.at_ms = to->at_ms,
		.at_mono_ns = to->at_mono_ns};
	str_copy(out->object, sizeof(out->object), PACKAGES_OBJECT);
	str_copy(out->source, sizeof(out->source), PACKAGES_SOURCE);
	return 1;
}

static void add_sensor(
	const struct priv_parts *p, const struct priv_sensor *s, struct host_component *out) {
	int64_t power_mw = (int64_t)(s->power_uw / 1000);
	*out = (struct host_component){.quality = QUALITY_MEASURED,
		.power_mw = power_mw,
		.uncertainty_mw = s->accuracy_mpct == UINT32_MAX
			? NONE
			: power_mw * s->accuracy_mpct / 100000,
		.at_ms = p->at_ms,
		.at_mono_ns = p->at_mono_ns};
	str_copy(out->object, sizeof(out->object), s->name);
	str_copy(out->source, sizeof(out->source), "hwmon");
}

static bool judge_parts(struct meters *m, const struct priv_meter_reply *r) {
	struct host_component parts[HOST_COMPONENT_MAX];
	const struct priv_parts *p = &r->u.parts;
	if (r->rc != RC_OK)
		return false;
	unsigned n = add_packages(&m->last, p, parts);
	for (unsigned i = 0; i < p->sensor_count && n < HOST_COMPONENT_MAX; i++)
		add_sensor(p, &p->sensors[i], &parts[n++]);
	m->last = *p;
	for (unsigned i = 0; i < n; i++)
		feed(m, &parts[i]);
	hosts_local_components(m->hosts, parts, n);
	/* Where there is nothing, it is looked for now and then. */
	return p->package_count || p->sensor_count;
}

/* --- who it is --- */

static bool judge_machine(struct meters *m, const struct priv_meter_reply *r) {
	if (r->rc != RC_OK)
		return false;
	hosts_local_machine(m->hosts, r->u.machine.uuid, r->u.machine.redfish_url);
	return true;
}

/* --- asking --- */

struct answer {
	struct meters *m;
	struct priv_meter_reply reply;
};

static void judge(void *arg) {
	static bool (*const judges[PRIV_METER_COUNT_])(
		struct meters * m, const struct priv_meter_reply *r) = {
		[PRIV_METER_DCMI] = judge_dcmi,
		[PRIV_METER_PARTS] = judge_parts,
		[PRIV_METER_MACHINE] = judge_machine,
	};
	struct answer *a = arg;
	enum priv_meter kind = a->reply.meter;
	bool good = judges[kind](a->m, &a->reply);
	rest(a->m, kind, good);
	free(a);
}

static void on_reply(void *arg, const struct priv_meter_reply *r) {
	struct meters *m = arg;
	struct answer *a = malloc(sizeof(*a));
	if (a) {
		a->m = m;
		a->reply = *r;
	}
	if (a && pool_submit(m->jobs, judge, a))
		return;
	free(a);
	rest(m, r->meter, true);
}

static void ask(struct meters *m, enum priv_meter kind) {
	if (privc_meter(m->privc, kind, on_reply, m, NULL))
		rest(m, kind, false);
}

static bool take_due(struct meters *m, enum priv_meter kind) {
	pthread_mutex_lock(&m->lock);
	struct asked *a = &m->asked[kind];
	bool due = !m->stopping && !a->waiting && a->due_ms <= clock_mono_ms();
	if (due) {
		a->waiting = true;
		m->open++;
	}
	pthread_mutex_unlock(&m->lock);
	return due;
}

static void tick(void *arg) {
	struct meters *m = arg;
	for (int kind = 0; kind < PRIV_METER_COUNT_; kind++) {
		if (take_due(m, (enum priv_meter)kind))
			ask(m, (enum priv_meter)kind);
	}
}

/* --- life --- */

struct meters *meters_new(const struct meters_config *config, struct hosts *hosts,
	struct energy *energy, struct privc *privc, struct timers *timers, struct pool *jobs,
	struct err *err) {
	struct meters *m = calloc(1, sizeof(*m));
	if (!m) {
		err_set(err, RC_NOMEM, "no memory for the meters");
		return NULL;
	}
	str_copy(m->host_id, sizeof(m->host_id), config->host_id);
	m->period_ms = config->period_ms;
	m->hosts = hosts;
	m->energy = energy;
	m->privc = privc;
	m->timers = timers;
	m->jobs = jobs;
	pthread_mutex_init(&m->lock, NULL);
	cond_init(&m->idle);
	return m;
}

enum rc meters_start(struct meters *m, struct err *err) {
	m->timer = timer_start(m->timers, 0, TICK_MS, tick, m);
	return m->timer ? RC_OK : err_set(err, RC_FULL, "no timer for the meters");
}

void meters_stop(struct meters *m) {
	timer_cancel(m->timers, m->timer);
	pthread_mutex_lock(&m->lock);
	m->stopping = true;
	pthread_mutex_unlock(&m->lock);
}

void meters_free(struct meters *m) {
	if (!m)
		return;
	meters_stop(m);
	pthread_mutex_lock(&m->lock);
	while (m->open)
		pthread_cond_wait(&m->idle, &m->lock);
	pthread_mutex_unlock(&m->lock);
	pthread_cond_destroy(&m->idle);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
