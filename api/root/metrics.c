/* /metrics: Prometheus text of the program, its drives and hosts. */
#include <stdio.h>
#include <string.h>

#include "api/root/root.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "core/bench.h"
#include "core/drive.h"
#include "core/hosts.h"

/* Prometheus text format 0.0.4: backslash, quote and line feed are escaped in label values. */
static void add_label_value(struct buf *out, const char *s) {
	for (; *s; s++) {
		if (*s == '\n')
			buf_adds(out, "\\n");
		else if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else
			buf_addc(out, *s);
	}
}

static void add_head(struct buf *out, const char *name, const char *type, const char *help) {
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* --- drives ----------------------------------------------------------------------------------- */

struct drive_metric {
	const char *name, *type, *help;
	bool (*value)(const struct drive *d, double *v); /* false: not known, no line */
	bool with_quality;
};

static bool drive_power_state(const struct drive *d, double *v) {
	*v = d->power_state;
	return d->power_state >= 0;
}

static bool drive_effective_state(const struct drive *d, double *v) {
	*v = d->effective_state;
	return d->effective_state >= 0;
}

static bool drive_in_sync(const struct drive *d, double *v) {
	*v = d->in_sync;
	return true;
}

static bool drive_up(const struct drive *d, double *v) {
	*v = d->state == DRIVE_LIVE;
	return true;
}

static bool drive_watts(const struct drive *d, double *v) {
	*v = d->measured_mw / 1000.0;
	return d->measured_mw != INT32_MIN;
}

static bool drive_temperature(const struct drive *d, double *v) {
	*v = d->temperature_mc / 1000.0;
	return d->temperature_mc != INT32_MIN;
}

static const struct drive_metric drive_metrics[] = {
	{"drivewatt_drive_up", "gauge", "1 while the drive answers", drive_up, false},
	{"drivewatt_drive_power_state", "gauge", "Power state last read", drive_power_state, false},
	{"drivewatt_drive_effective_power_state", "gauge", "Power state that shall hold",
		drive_effective_state, false},
	{"drivewatt_drive_in_sync", "gauge", "1 while observed and effective agree", drive_in_sync,
		false},
	{"drivewatt_drive_power_watts", "gauge", "Power by the drive's own meter", drive_watts,
		true},
	{"drivewatt_drive_temperature_celsius", "gauge", "Composite temperature", drive_temperature,
		false},
};

struct drive_metric_ctx {
	struct buf *out;
	const struct drive_metric *m;
};

static bool add_drive_value(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct drive_metric_ctx *c = arg;
	double v;
	if (!c->m->value(d, &v))
		return true;
	buf_printf(c->out, "%s{drive=\"%s\"", c->m->name, d->id);
	if (c->m->with_quality)
		buf_printf(c->out, ",quality=\"%s\"", quality_name(d->measured_quality));
	buf_printf(c->out, ",simulated=\"%d\"} %.15g\n", d->kind == DRIVE_SIMULATED, v);
	return true;
}

static bool add_drive_info(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct buf *out = arg;
	buf_printf(out, "drivewatt_drive_info{drive=\"%s\",name=\"%s\",model=\"", d->id, d->name);
	add_label_value(out, d->model);
	buf_adds(out, "\",serial=\"");
	add_label_value(out, d->serial);
	buf_adds(out, "\",firmware=\"");
	add_label_value(out, d->firmware);
	buf_printf(out, "\",transport=\"%s\",simulated=\"%d\"} 1\n", d->transport,
		d->kind == DRIVE_SIMULATED);
	return true;
}

static void add_drives(struct buf *out, struct drives *drives) {
	for (size_t i = 0; i < array_len(drive_metrics); i++) {
		struct drive_metric_ctx c = {out, &drive_metrics[i]};
		add_head(out, c.m->name, c.m->type, c.m->help);
		drives_each(drives, "", add_drive_value, &c);
	}
	add_head(out, "drivewatt_drive_info", "gauge", "What the drive is");
	drives_each(drives, "", add_drive_info, out);
}

/* --- hosts ------------------------------------------------------------------------------------ */

static bool add_host_watts(void *arg, const struct host *h, const struct host_power *p) {
	struct buf *out = arg;
	if (p->power_mw == NONE)
		return true;
	buf_printf(out, "drivewatt_host_power_watts{host=\"%s\",name=\"", h->id);
	add_label_value(out, h->name);
	buf_printf(out, "\",source=\"%s\",quality=\"%s\"} %.15g\n", p->source,
		quality_name(p->quality), (double)p->power_mw / 1000.0);
	return true;
}

static bool add_host_age(void *arg, const struct host *h, const struct host_power *p) {
	struct buf *out = arg;
	if (p->at_ms != NONE)
		buf_printf(out, "drivewatt_host_power_age_seconds{host=\"%s\"} %.3f\n", h->id,
			(double)(clock_mono_ns() - p->at_mono_ns) / 1e9);
	return true;
}

static void add_hosts(struct buf *out, struct hosts *hosts) {
	add_head(out, "drivewatt_host_power_watts", "gauge", "Power of the host by its meter");
	hosts_each(hosts, "", add_host_watts, out);
	add_head(out, "drivewatt_host_power_age_seconds", "gauge", "Age of the host's reading");
	hosts_each(hosts, "", add_host_age, out);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void add_one(struct buf *out, const char *name, const char *help, double v) {
	add_head(out, name, "gauge", help);
	buf_printf(out, "%s %.15g\n", name, v);
}

static void add_build(struct buf *out, const struct api *api) {
	add_head(out, "drivewatt_build_info", "gauge", "The program's version");
	buf_adds(out, "drivewatt_build_info{version=\"");
	add_label_value(out, api->config.version);
	buf_adds(out, "\"} 1\n");
}

static void add_store(struct buf *out, struct core *core) {
	struct db_status c, s;
	core_store_status(core, &c, &s);
	metric_set(METRIC_DB_CONTROL_WAL, c.wal_bytes);
	metric_set(METRIC_DB_SAMPLES_WAL, s.wal_bytes);
	add_one(out, "drivewatt_db_control_healthy", "1 while control.db can be written",
		c.healthy);
	add_one(out, "drivewatt_db_samples_healthy", "1 while samples.db can be written",
		s.healthy);
	const int64_t free_bytes = core_free_bytes(core);
	if (free_bytes != NONE)
		add_one(out, "drivewatt_data_free_bytes", "What is left for the stores",
			(double)free_bytes);
}

enum http_next metrics(struct http_request *q unused_arg, struct http_response *r, void *ctx) {
	struct api *api = api_of(ctx);
	struct core *core = api->core;
	r->content_type = "text/plain; version=0.0.4; charset=utf-8";
	add_build(&r->body, api);
	add_one(&r->body, "drivewatt_uptime_seconds", "Time since the start",
		(double)(clock_mono_ns() - core->started_mono_ns) / 1e9);
	add_store(&r->body, core);
	add_one(&r->body, "drivewatt_drives", "Drives known", (double)drives_count(core->drives));
	add_one(&r->body, "drivewatt_benchmarks_running", "Benchmarks under way",
		bench_active(core->bench));
	metrics_render(&r->body);
	add_drives(&r->body, core->drives);
	add_hosts(&r->body, core->hosts);
	return HTTP_DONE;
}
