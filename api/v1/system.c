/* /system: what this daemon is and how it fares. */
#include "api/v1/v1.h"
#include "base/clock.h"
#include "core/accounts.h"
#include "core/bench.h"
#include "core/drive.h"
#include "core/sim.h"

static void render_database(struct jsonw *w, const char *key, const struct db_status *s) {
	jsonw_object(w, key);
	jsonw_bool(w, "healthy", s->healthy);
	jsonw_int(w, "schema_version", s->schema_version);
	jsonw_int(w, "file_bytes", s->file_bytes);
	jsonw_int(w, "wal_bytes", s->wal_bytes);
	jsonw_int(w, "commits", s->commits);
	jsonw_int(w, "failures", s->failures);
	render_text_or_null(w, "last_error", s->last_error);
	jsonw_object_end(w);
}

static void render_limits(struct jsonw *w, const struct core_config *c) {
	jsonw_object(w, "limits");
	jsonw_int(w, "drives", DRIVES_MAX);
	jsonw_int(w, "hosts", HOST_MAX);
	jsonw_int(w, "drives_per_benchmark", RUN_MAX_DRIVES);
	jsonw_uint(w, "benchmarks_at_once", c->max_runs);
	jsonw_uint(w, "benchmarks_waiting", c->max_queued_runs);
	jsonw_int(w, "tokens_per_account", ACCOUNTS_TOKENS_MAX);
	jsonw_int(w, "page", PAGE_LIMIT_MAX);
	jsonw_object_end(w);
}

enum http_next system_get(struct http_request *q, struct http_response *r, void *ctx) {
	struct api *api = api_of(ctx);
	struct core *core = api->core;
	struct err err = {0};
	struct jsonw w;
	struct db_status control, samples;
	char reason[160];
	if (query_check(q, NULL, &err) != RC_OK)
		return http_fail(q, r, &err);
	drives_reason(core->drives, reason, sizeof(reason));
	const char *unable = bench_unable(core->bench);
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "id", core->host_id);
	jsonw_str(&w, "href", "/api/v1/system");
	jsonw_str(&w, "version", api->config.version);
	jsonw_milli(&w, "uptime_s", (clock_mono_ns() - core->started_mono_ns) / 1000000);
	jsonw_str(&w, "role", "standalone");
	jsonw_bool(&w, "simulated", core->sim != NULL);
	render_int_or_null(&w, "simulated_scale", core->sim ? sim_scale(core->sim) : NONE);
	jsonw_bool(&w, "observe_only", core->config.observe_only);
	jsonw_bool(&w, "allow_destructive", core->config.allow_destructive);
	jsonw_uint(&w, "drives", drives_count(core->drives));
	render_text_or_null(&w, "drives_reason", reason);
	jsonw_uint(&w, "benchmarks_running", bench_active(core->bench));
	render_text_or_null(&w, "benchmarks_reason", unable ? unable : "");
	render_limits(&w, &core->config);
	jsonw_object(&w, "database");
	core_store_status(core, &control, &samples);
	render_database(&w, "control", &control);
	render_database(&w, "samples", &samples);
	jsonw_object_end(&w);
	jsonw_object_end(&w);
	return HTTP_DONE;
}
