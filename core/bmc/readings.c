/* Readings of hosts: kept in the registry, and fed into their series. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "core/bmc/registry.h"

/* Beside the watts, a value a minute does. */
#define SLOW_NS INT64_C(60000000000)
/* A counter that began anew this much later than it said before was reset. */
#define SAME_EPOCH_MS 60000
#define MJ_PER_WH 3600000
#define FRESH_MS 30000 /* watts of one way keep the other away for that long, or three periods */

/* A sample for one of a host's series. */
struct fed {
	enum quantity quantity;
	enum quality quality;
	int64_t value_milli;
	int64_t at_ms, at_mono_ns;
	const char *source;
};

/* --- series --- */

/* Makes a series, which waits for the store, and then feeds its first sample. */
struct first_sample {
	struct hosts *hs;
	struct series_key key;
	char source[sizeof(((struct host_power *)0)->source)];
	struct sample sample;
};

static void remember_series(struct hosts *hs, const struct series_key *key, int64_t id) {
	pthread_mutex_lock(&hs->lock);
	struct host_entry *e = hosts_find(hs, key->host_id);
	if (e)
		e->series[key->quantity][key->quality] = id;
	pthread_mutex_unlock(&hs->lock);
}

static void feed_first(void *arg) {
	struct first_sample *f = arg;
	struct err err = {0};
	if (energy_series(f->hs->energy, &f->key, f->source, &f->sample.series_id, &err)) {
		log_err(LOG_LEVEL_WARNING, "hosts", "no history of this host", &err);
	} else {
		remember_series(f->hs, &f->key, f->sample.series_id);
		energy_ingest(f->hs->energy, &f->sample, 1);
	}
	registry_job_ends(f->hs);
	free(f);
}

static struct sample sample_of(const struct fed *f, int64_t series_id) {
	return (struct sample){
		.series_id = series_id,
		.at_ms = f->at_ms,
		.at_mono_ns = f->at_mono_ns,
		.value_milli = f->value_milli,
	};
}

static void feed_new_series(struct hosts *hs, const char *host_id, const struct fed *fed) {
	struct first_sample *f = calloc(1, sizeof(*f));
	if (!f)
		return;
	f->hs = hs;
	f->key = (struct series_key){.object = "host",
		.quantity = (uint8_t)fed->quantity,
		.quality = (uint8_t)fed->quality};
	str_copy(f->key.host_id, sizeof(f->key.host_id), host_id);
	str_copy(f->source, sizeof(f->source), fed->source);
	f->sample = sample_of(fed, 0);
	registry_job_begins(hs);
	if (pool_submit(hs->jobs, feed_first, f))
		return;
	registry_job_ends(hs);
	free(f);
}

static void feed(struct hosts *hs, const char *host_id, const struct fed *f) {
	pthread_mutex_lock(&hs->lock);
	const struct host_entry *e = hosts_find(hs, host_id);
	int64_t series_id = e ? e->series[f->quantity][f->quality] : 0;
	pthread_mutex_unlock(&hs->lock);
	if (!series_id) {
		feed_new_series(hs, host_id, f);
		return;
	}
	struct sample s = sample_of(f, series_id);
	energy_ingest(hs->energy, &s, 1);
}

static bool is_time(int64_t fed_ns, int64_t now_ns) {
	return fed_ns == NONE || now_ns - fed_ns >= SLOW_NS;
}

/* --- the energy counter --- */

/* Under the lock. True when it began anew since it was last told. */
static bool is_reset(const struct host_entry *e, const struct host_power *p) {
	if (e->counter_mj == NONE)
		return false;
	bool later = p->energy_since_ms != NONE && e->counter_since_ms != NONE &&
		p->energy_since_ms > e->counter_since_ms + SAME_EPOCH_MS;
	return later || p->energy_counter_mj < e->counter_mj;
}

/* Under the lock. True when the counter is worth a sample. */
static bool note_counter(struct host_entry *e, const struct host_power *p) {
	if (p->energy_counter_mj == NONE)
		return false;
	bool reset = is_reset(e, p);
	if (reset)
		e->power.energy_reset_ms = p->at_ms;
	e->counter_mj = p->energy_counter_mj;
	e->counter_since_ms = p->energy_since_ms;
	if (!reset && !is_time(e->counter_fed_ns, p->at_mono_ns))
		return false;
	e->counter_fed_ns = p->at_mono_ns;
	return true;
}

/* --- keeping --- */

#define FED_MAX 3

/* Under the lock. What a meter shows of itself counts more than what it declares. */
static void take_resolution(struct host_entry *e, const struct host_power *p) {
	int64_t learnt_mw = p->power_mw == NONE ? e->resolution.step_mw
						: resolution_learn(&e->resolution, p->power_mw);
	e->power.resolution_declared = learnt_mw == NONE && p->resolution_mw != NONE;
	if (learnt_mw != NONE)
		e->power.resolution_mw = learnt_mw;
	e->power.step_mw = e->power.resolution_mw == NONE ? e->resolution.difference_mw
							  : e->power.resolution_mw;
}

void registry_know(const struct hosts *hs, struct host_entry *e, const char *known_uuid) {
	struct host_power *p = &e->power;
	if (e->host.local && hs->uuid[0])
		str_copy(p->system_uuid, sizeof(p->system_uuid), hs->uuid);
	else if (!p->system_uuid[0])
		str_copy(p->system_uuid, sizeof(p->system_uuid), known_uuid);
	p->is_local = e->host.local || host_uuid_is_same(p->system_uuid, hs->uuid);
	str_copy(p->host_interface, sizeof(p->host_interface),
		e->host.local ? hs->host_interface : "");
}

/* Under the lock. Keeps the reading; returns how many samples come of it. */
static size_t keep(const struct hosts *hs, struct host_entry *e, const struct host_power *p,
	struct fed fed[FED_MAX]) {
	const struct host_power old = e->power;
	bool same = old.at_ms != NONE && p->at_mono_ns == old.at_mono_ns;
	size_t n = 0;
	e->power = *p;
	e->power.observed_version = old.observed_version + 1;
	e->power.energy_reset_ms = old.energy_reset_ms;
	registry_know(hs, e, old.system_uuid);
	take_resolution(e, p);
	if (p->power_mw != NONE && !same)
		fed[n++] = (struct fed){QUANTITY_POWER, p->quality, p->power_mw, p->at_ms,
			p->at_mono_ns, p->source};
	if (note_counter(e, p))
		fed[n++] = (struct fed){QUANTITY_ENERGY_COUNTER, QUALITY_BMC,
			(p->energy_counter_mj + MJ_PER_WH / 2) / MJ_PER_WH, p->at_ms, p->at_mono_ns,
			"energy counter"};
	if (p->inlet_mc != NONE && is_time(e->inlet_fed_ns, p->at_mono_ns)) {
		e->inlet_fed_ns = p->at_mono_ns;
		fed[n++] = (struct fed){QUANTITY_TEMPERATURE, QUALITY_BMC, p->inlet_mc, p->at_ms,
			p->at_mono_ns, "inlet"};
	}
	return n;
}

/* Under the lock. Watts that were read a while ago at most. */
static bool has_watts(const struct hosts *hs, const struct host_entry *e, int64_t now_ns) {
	int64_t fresh_ms = 3 * hs->meter_ms > FRESH_MS ? 3 * hs->meter_ms : FRESH_MS;
	return e->power.power_mw != NONE && now_ns - e->power.at_mono_ns < fresh_ms * 1000000;
}

/* Under the lock. The BMC comes first, DCMI stands in for it. */
static bool is_wanted(
	struct hosts *hs, struct host_entry *e, const struct host_power *p, bool dcmi) {
	bool other = e->host.local && hs->by_dcmi != dcmi;
	if (other && has_watts(hs, e, p->at_mono_ns) && (dcmi || p->power_mw == NONE))
		return false;
	/* Without watts of its own DCMI has nothing to say about a host with a BMC. */
	if (dcmi && e->host.bmc.present && p->power_mw == NONE && other)
		return false;
	if (other)
		resolution_init(&e->resolution);
	if (e->host.local)
		hs->by_dcmi = dcmi;
	return true;
}

static void take(struct hosts *hs, const char *host_id, const struct host_power *p, bool dcmi) {
	struct fed fed[FED_MAX];
	size_t n = 0;
	if (p->quality >= QUALITY_COUNT_)
		return;
	pthread_mutex_lock(&hs->lock);
	struct host_entry *e = hosts_find(hs, host_id);
	if (e && is_wanted(hs, e, p, dcmi)) {
		n = keep(hs, e, p, fed);
		hs->version++;
	}
	pthread_mutex_unlock(&hs->lock);
	for (size_t i = 0; i < n; i++)
		feed(hs, host_id, &fed[i]);
}

void hosts_reading(struct hosts *hs, const char *host_id, const struct host_power *p) {
	take(hs, host_id, p, false);
}

/* --- the local host's own meters --- */

void hosts_local_reading(struct hosts *hs, const struct host_power *p) {
	take(hs, hs->local_id, p, true);
}

/* Under the lock. */
static void touch_local(struct hosts *hs) {
	struct host_entry *e = hosts_find(hs, hs->local_id);
	if (e)
		e->power.observed_version++;
	hs->version++;
}

void hosts_local_components(struct hosts *hs, const struct host_component *c, unsigned count) {
	pthread_mutex_lock(&hs->lock);
	bool none = !count && !hs->component_count;
	hs->component_count = count;
	memcpy(hs->components, c, count * sizeof(c[0]));
	if (!none)
		touch_local(hs);
	pthread_mutex_unlock(&hs->lock);
}

void hosts_local_machine(struct hosts *hs, const char *uuid, const char *redfish_url) {
	pthread_mutex_lock(&hs->lock);
	str_copy(hs->uuid, sizeof(hs->uuid), uuid);
	for (char *p = hs->uuid; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	str_copy(hs->host_interface, sizeof(hs->host_interface), redfish_url);
	for (size_t i = 0; i < hs->count; i++) {
		registry_know(hs, hs->entries[i], "");
	}
	touch_local(hs);
	pthread_mutex_unlock(&hs->lock);
}
