/* /metrics: Prometheus text of the program, its drives and hosts. */
#include "base/metrics.h"

#include "api/root/metrics.h"
#include "api/root/prom.h"
#include "api/root/root.h"
#include "base/clock.h"
#include "core/bench.h"
#include "core/drive.h"
#include "core/hosts.h"

static void add_build(struct buf *out, const struct api *api) {
	const char *name = "drivewatt_build_info";
	prom_family(out, name, "gauge", "The program's version");
	struct prom p = prom_begin(out, name);
	prom_label(&p, "version", api->config.version);
	prom_value(&p, 1);
}

static void add_store(struct buf *out, struct core *core) {
	struct db_status c, s;
	core_store_status(core, &c, &s);
	metric_set(METRIC_DB_CONTROL_WAL, c.wal_bytes);
	metric_set(METRIC_DB_SAMPLES_WAL, s.wal_bytes);
	prom_gauge(out, "drivewatt_db_control_healthy", "1 while control.db can be written",
		c.healthy);
	prom_gauge(out, "drivewatt_db_samples_healthy", "1 while samples.db can be written",
		s.healthy);
	const int64_t free_bytes = core_free_bytes(core);
	if (free_bytes != NONE)
		prom_gauge(out, "drivewatt_data_free_bytes", "What is left for the stores",
			(double)free_bytes);
}

enum http_next metrics(struct http_request *q unused_arg, struct http_response *r, void *ctx) {
	struct api *api = api_of(ctx);
	struct core *core = api->core;
	r->content_type = "text/plain; version=0.0.4; charset=utf-8";
	add_build(&r->body, api);
	prom_gauge(&r->body, "drivewatt_uptime_seconds", "Time since the start",
		(double)(clock_mono_ns() - core->started_mono_ns) / 1e9);
	add_store(&r->body, core);
	prom_gauge(
		&r->body, "drivewatt_drives", "Drives known", (double)drives_count(core->drives));
	prom_gauge(&r->body, "drivewatt_benchmarks_running", "Benchmarks under way",
		bench_active(core->bench));
	metrics_render(&r->body);
	metrics_add_drives(&r->body, core->drives, core->host_id);
	metrics_add_hosts(&r->body, core->hosts);
	return HTTP_DONE;
}
