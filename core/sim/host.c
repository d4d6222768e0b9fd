#include "core/sim/host.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/sim/meter.h"

/* How often a reading is handed on while nobody demands more. */
#define QUIET_PERIOD_MS 2000

struct sim_host {
	struct sim_host_parts parts;
	struct sim_model model;
	const char *host_id; /* lives as long as hosts */
	timer_id timer;
	/* of the timer's thread */
	struct sim_meter meter;
	int64_t read_ns;      /* energy_j is up to here */
	double energy_j;      /* of all drives */
	int64_t published_ms; /* monotonic */
};

static double drives_energy_j(const struct sim_host *h, int64_t now_ns) {
	double sum = 0;
	for (unsigned i = 0; i < h->parts.drives; i++) {
		struct sim_totals t;
		sim_pace_totals(h->parts.pace, i, now_ns, &t);
		sum += t.energy_j;
	}
	return sum;
}

static void advance(struct sim_host *h, int64_t now_ns) {
	const double dt_s = (double)(now_ns - h->read_ns) / 1e9;
	const double energy_j = drives_energy_j(h, now_ns);
	if (dt_s <= 0)
		return;
	const double true_w = h->model.host.base_w + (energy_j - h->energy_j) / dt_s;
	sim_meter_advance(&h->meter, true_w, dt_s);
	h->read_ns = now_ns;
	h->energy_j = energy_j;
}

/* As its data sheet would say; readings are whole milliwatts at the finest. */
static int64_t declared_step_mw(const struct sim_meter_model *m) {
	return m->quantum_w > 0 ? llround(m->quantum_w * 1000) : 1;
}

static void publish(struct sim_host *h, int64_t now_ns) {
	struct host_power p;
	host_power_init(&p);
	p.power_mw = sim_meter_read_mw(&h->meter);
	p.quality = QUALITY_SIMULATED;
	p.at_ms = clock_wall_ms();
	p.at_mono_ns = now_ns;
	p.resolution_mw = declared_step_mw(&h->model.host.meter);
	p.lag_ms = llround(h->model.host.meter.lag_s * 1000);
	str_copy(p.source, sizeof(p.source), "simulated");
	hosts_reading(h->parts.hosts, h->host_id, &p);
}

static int64_t wanted_period_ms(const struct sim_host *h) {
	return h->parts.energy ? energy_period(h->parts.energy, h->host_id, QUIET_PERIOD_MS)
			       : QUIET_PERIOD_MS;
}

/* The meter moves at its own period; what is wanted decides how many of its values go on. */
static void tick(void *arg) {
	struct sim_host *h = arg;
	const int64_t now_ns = clock_mono_ns();
	const int64_t now_ms = now_ns / 1000000;
	const int64_t own_ms = (int64_t)h->model.host.meter.period_ms;
	advance(h, now_ns);
	if (now_ms - h->published_ms < wanted_period_ms(h) - own_ms / 2)
		return;
	h->published_ms = now_ms;
	publish(h, now_ns);
}

/* A baseline that somebody measured or declared stays. */
static enum rc set_baseline(struct sim_host *h, const struct host *known, enum baseline_kind kind,
	double w, struct err *err) {
	const struct baseline *old = &known->baselines[kind];
	const struct baseline b = {
		.known = true,
		.source = BASELINE_SIMULATED,
		.power_mw = llround(w * 1000),
		.at_ms = clock_wall_ms(),
	};
	if (old->known && (old->source != BASELINE_SIMULATED || old->power_mw == b.power_mw))
		return RC_OK;
	return hosts_set_baseline(h->parts.hosts, &actor_system, h->host_id, kind, &b, err);
}

static enum rc set_baselines(struct sim_host *h, double idle_w, struct err *err) {
	struct host known;
	struct host_power power;
	enum rc rc = hosts_get(h->parts.hosts, h->host_id, &known, &power, err);
	if (!rc)
		rc = set_baseline(h, &known, BASELINE_NO_DRIVES, h->model.host.base_w, err);
	if (!rc)
		rc = set_baseline(h, &known, BASELINE_IDLE_WITH_DRIVES, idle_w, err);
	return rc;
}

struct sim_host *sim_host_new(const struct sim_host_parts *parts, struct err *err) {
	struct sim_host *h = calloc(1, sizeof(*h));
	if (!h) {
		err_set(err, RC_NOMEM, "no memory for the simulated meter");
		return NULL;
	}
	h->parts = *parts;
	h->model = *parts->model;
	h->host_id = hosts_resolve(parts->hosts, "local");
	h->read_ns = clock_mono_ns();
	h->energy_j = drives_energy_j(h, h->read_ns);
	const double idle_w = sim_model_system_w(&h->model, parts->drives, 0, 0, 0);
	sim_meter_init(&h->meter, &h->model.host.meter, idle_w, parts->seed);
	if (set_baselines(h, idle_w, err))
		goto fail;
	const int64_t period_ms = (int64_t)h->model.host.meter.period_ms;
	h->timer = timer_start(parts->timers, period_ms, period_ms, tick, h);
	if (!h->timer) {
		err_set(err, RC_FULL, "no timer for the simulated meter");
		goto fail;
	}
	return h;
fail:
	sim_host_free(h);
	return NULL;
}

void sim_host_free(struct sim_host *h) {
	if (!h)
		return;
	timer_cancel(h->parts.timers, h->timer);
	free(h);
}
