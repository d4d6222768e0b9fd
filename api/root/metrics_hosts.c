/* The part of /metrics about hosts. */
#include <stdio.h>

#include "api/root/metrics.h"
#include "api/root/prom.h"
#include "base/clock.h"
#include "core/hosts.h"

struct family {
	const char *name, *type, *help;
	/* Adds what is known of the host. */
	void (*add)(const struct family *f, struct buf *out, const struct host *h,
		const struct host_power *p);
};

/* What the BMC says beside the watts, wherever these come from. */
static const char *bmc_quality(const struct host_power *p) {
	return quality_name(p->quality == QUALITY_SIMULATED ? QUALITY_SIMULATED : QUALITY_BMC);
}

static void add_reading(struct buf *out, const char *name, const struct host *h,
	const struct host_power *p, int64_t milli) {
	double v;
	if (!prom_milli(milli, &v))
		return;
	struct prom line = prom_begin(out, name);
	prom_label(&line, "host", h->id);
	prom_label(&line, "quality", bmc_quality(p));
	prom_value(&line, v);
}

static void add_plain(struct buf *out, const char *name, const struct host *h, double v) {
	struct prom line = prom_begin(out, name);
	prom_label(&line, "host", h->id);
	prom_value(&line, v);
}

static void add_milli(struct buf *out, const char *name, const struct host *h, int64_t milli) {
	double v;
	if (prom_milli(milli, &v))
		add_plain(out, name, h, v);
}

static void info(const struct family *f, struct buf *out, const struct host *h,
	const struct host_power *p unused_arg) {
	struct prom line = prom_begin(out, f->name);
	prom_label(&line, "host", h->id);
	prom_label(&line, "name", h->name);
	prom_label(&line, "local", h->local ? "1" : "0");
	prom_value(&line, 1);
}

static void known(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	add_plain(out, f->name, h, p->power_mw != NONE);
}

static void watts(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	double v;
	if (!prom_milli(p->power_mw, &v))
		return;
	struct prom line = prom_begin(out, f->name);
	prom_label(&line, "host", h->id);
	prom_label(&line, "source", p->source);
	prom_label(&line, "quality", quality_name(p->quality));
	prom_value(&line, v);
}

static void age(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	if (p->at_ms != NONE)
		add_plain(out, f->name, h, (double)(clock_mono_ns() - p->at_mono_ns) / 1e9);
}

static void resolution(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	add_milli(out, f->name, h, p->resolution_mw);
}

static void energy(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	add_reading(out, f->name, h, p, p->energy_counter_mj);
}

static void limit(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	add_milli(out, f->name, h, p->limit_mw);
}

static void inlet(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	add_reading(out, f->name, h, p, p->inlet_mc);
}

struct supply_line {
	const char *name;
	const struct host *host;
	const struct host_power *power;
};

static void add_supply(
	struct buf *out, const struct supply_line *l, unsigned number, int64_t milli) {
	char index[12];
	double v;
	if (!prom_milli(milli, &v))
		return;
	snprintf(index, sizeof(index), "%u", number);
	struct prom line = prom_begin(out, l->name);
	prom_label(&line, "host", l->host->id);
	prom_label(&line, "supply", index);
	prom_label(&line, "name", l->power->supplies[number].name);
	prom_label(&line, "quality", bmc_quality(l->power));
	prom_value(&line, v);
}

static void supply_input(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	const struct supply_line l = {f->name, h, p};
	for (unsigned i = 0; i < p->supply_count; i++)
		add_supply(out, &l, i, p->supplies[i].input_mw);
}

static void supply_output(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	const struct supply_line l = {f->name, h, p};
	for (unsigned i = 0; i < p->supply_count; i++)
		add_supply(out, &l, i, p->supplies[i].output_mw);
}

static void supply_capacity(
	const struct family *f, struct buf *out, const struct host *h, const struct host_power *p) {
	const struct supply_line l = {f->name, h, p};
	for (unsigned i = 0; i < p->supply_count; i++)
		add_supply(out, &l, i, p->supplies[i].capacity_mw);
}

static void baseline(const struct family *f, struct buf *out, const struct host *h,
	const struct host_power *p unused_arg) {
	for (int kind = 0; kind < BASELINE_KIND_COUNT_; kind++) {
		const struct baseline *b = &h->baselines[kind];
		double v;
		if (!b->known || !prom_milli(b->power_mw, &v))
			continue;
		struct prom line = prom_begin(out, f->name);
		prom_label(&line, "host", h->id);
		prom_label(&line, "kind", baseline_kind_name((enum baseline_kind)kind));
		prom_label(&line, "quality", baseline_source_name(b->source));
		prom_value(&line, v);
	}
}

static const struct family families[] = {
	{"drivewatt_host_info", "gauge", "What the host is called", info},
	{"drivewatt_host_power_known", "gauge", "1 while a meter tells the host's power", known},
	{"drivewatt_host_power_watts", "gauge", "Power of the host by its meter", watts},
	{"drivewatt_host_power_age_seconds", "gauge", "Age of the host's reading", age},
	{"drivewatt_host_power_resolution_watts", "gauge", "Smallest step of the host's meter",
		resolution},
	{"drivewatt_host_energy_joules_total", "counter",
		"Energy of the host by its BMC's own count, which may begin anew", energy},
	{"drivewatt_host_power_limit_watts", "gauge", "Power to which the BMC holds the host",
		limit},
	{"drivewatt_host_inlet_temperature_celsius", "gauge",
		"Temperature of the air that comes in", inlet},
	{"drivewatt_host_supply_input_watts", "gauge", "Power that a supply takes", supply_input},
	{"drivewatt_host_supply_output_watts", "gauge", "Power that a supply gives", supply_output},
	{"drivewatt_host_supply_capacity_watts", "gauge", "Power that a supply can give",
		supply_capacity},
	{"drivewatt_host_baseline_watts", "gauge", "Power of the host without load, by kind",
		baseline},
};

struct walk {
	const struct family *family;
	struct buf *out;
};

static bool add_host(void *arg, const struct host *h, const struct host_power *p) {
	const struct walk *w = arg;
	w->family->add(w->family, w->out, h, p);
	return true;
}

static void add_component(
	struct buf *out, const char *name, const char *host_id, const struct host_component *c) {
	double v;
	if (!prom_milli(c->power_mw, &v))
		return;
	struct prom line = prom_begin(out, name);
	prom_label(&line, "host", host_id);
	prom_label(&line, "component", c->object);
	prom_label(&line, "source", c->source);
	prom_label(&line, "quality", quality_name(c->quality));
	prom_value(&line, v);
}

static void add_components(struct buf *out, struct hosts *hosts) {
	struct host_component parts[HOST_COMPONENT_MAX];
	const char *name = "drivewatt_component_power_watts";
	const char *host_id = hosts_resolve(hosts, "local");
	const unsigned count = hosts_components(hosts, host_id, parts);
	prom_family(out, name, "gauge", "Power of a part of the host; parts never add up to it");
	for (unsigned i = 0; i < count; i++)
		add_component(out, name, host_id, &parts[i]);
}

void metrics_add_hosts(struct buf *out, struct hosts *hosts) {
	for (size_t i = 0; i < array_len(families); i++) {
		struct walk w = {&families[i], out};
		prom_family(out, families[i].name, families[i].type, families[i].help);
		hosts_each(hosts, NULL, add_host, &w);
	}
	add_components(out, hosts);
}
