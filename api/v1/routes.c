/* The whole of /api/v1 at a glance. */
#include "api/v1/v1.h"

#define V1 "/api/v1"
#define KIB(n) ((size_t)(n)*1024)

#define GET(path, op) .method = "GET", .pattern = V1 path, .operation = #op, .handler = op
#define SEND(verb, path, op, limit) \
	.method = verb, .pattern = V1 path, .operation = #op, .handler = op, .body_max = limit
#define MAX(limit) .answer_max = limit
#define READERS .role = ROLE_READ_ONLY
#define OPERATORS .role = ROLE_OPERATOR
#define ADMINISTRATORS .role = ROLE_ADMINISTRATOR
#define LONG .flags = HTTP_HISTORY
#define DRY .flags = HTTP_DRY_RUN
#define ONCE .flags = HTTP_ONCE | HTTP_DRY_RUN
#define HASHES(more) .flags = HTTP_HASHES | HTTP_DRY_RUN | (more)
#define CSV "application/json,text/csv"

/* clang-format off */
const struct http_route api_v1_routes[] = {
	{GET("/system", system_get), READERS},

	{GET("/drives", drives_list), READERS, MAX(KIB(4096)), .version = v1_drives_version},
	{GET("/drives/{id}", drive_get), READERS, MAX(KIB(256)), .version = v1_drive_version},
	{SEND("PATCH", "/drives/{id}", drive_patch, KIB(8)), OPERATORS, DRY},
	{GET("/drives/{id}/health", drive_health_get), READERS},
	{GET("/drives/{id}/thermal", drive_thermal_get), READERS},
	{GET("/drives/{id}/power", drive_power_get), READERS},
	{GET("/drives/{id}/power/desired", drive_desired_get), READERS},
	{SEND("PUT", "/drives/{id}/power/desired", drive_desired_put, KIB(8)), OPERATORS, DRY},
	{SEND("DELETE", "/drives/{id}/power/desired", drive_desired_delete, 0), OPERATORS, DRY},
	{GET("/drives/{id}/energy", drive_energy_get), READERS, LONG, MAX(KIB(4096)), .types = CSV},

	{GET("/power-changes", power_changes_list), READERS, MAX(KIB(1024))},
	{SEND("POST", "/power-changes", power_change_create, KIB(64)), OPERATORS, MAX(KIB(1024)), ONCE},
	{GET("/power-changes/{id}", power_change_show), READERS, MAX(KIB(1024))},
	{GET("/tasks", tasks_list_get), READERS, MAX(KIB(1024))},
	{GET("/tasks/{id}", task_get), READERS},
	{SEND("POST", "/tasks/{id}/cancel", task_cancel, KIB(1)), OPERATORS, DRY},
	{GET("/tasks/{id}/targets", task_targets_get), READERS, MAX(KIB(1024))},

	{GET("/policies", policies_list), READERS},
	{GET("/policies/{name}", policy_get), READERS},
	{SEND("PUT", "/policies/{name}", policy_put, KIB(8)), OPERATORS, DRY},
	{SEND("DELETE", "/policies/{name}", policy_delete, 0), OPERATORS, DRY},

	{GET("/hosts", hosts_list), READERS, MAX(KIB(2048)), .version = v1_hosts_version},
	{SEND("POST", "/hosts", host_create, KIB(16)), ADMINISTRATORS, ONCE},
	{GET("/hosts/{id}", host_get), READERS},
	{SEND("PUT", "/hosts/{id}", host_put, KIB(16)), ADMINISTRATORS, DRY},
	{SEND("PATCH", "/hosts/{id}", host_patch, KIB(16)), ADMINISTRATORS, DRY},
	{SEND("DELETE", "/hosts/{id}", host_delete, 0), ADMINISTRATORS, DRY},
	{GET("/hosts/{id}/power", host_power_get), READERS},
	{SEND("PATCH", "/hosts/{id}/power", host_power_patch, KIB(4)), OPERATORS, DRY},
	{GET("/hosts/{id}/baseline", host_baseline_get), READERS},
	{SEND("PUT", "/hosts/{id}/baseline", host_baseline_put, KIB(8)), OPERATORS, DRY},
	{GET("/hosts/{id}/energy", host_energy_get), READERS, LONG, MAX(KIB(4096)), .types = CSV},

	{GET("/series", series_list), READERS, MAX(KIB(1024))},
	{GET("/series/{id}", series_get), READERS},
	{GET("/series/{id}/samples", series_samples_get), READERS, LONG, MAX(KIB(4096)), .types = CSV},

	{GET("/workloads", workloads_list), READERS},
	{GET("/workloads/{name}", workload_get), READERS},
	{SEND("PUT", "/workloads/{name}", workload_put, KIB(8)), OPERATORS, DRY},
	{SEND("DELETE", "/workloads/{name}", workload_delete, 0), OPERATORS, DRY},

	{GET("/benchmarks", benchmarks_list), READERS, MAX(KIB(2048))},
	{SEND("POST", "/benchmarks", benchmark_create, KIB(32)), OPERATORS, MAX(KIB(1280)), ONCE},
	{GET("/benchmarks/{id}", benchmark_get), READERS, MAX(KIB(1280))},
	{SEND("DELETE", "/benchmarks/{id}", benchmark_delete, 0), OPERATORS, DRY},
	{SEND("POST", "/benchmarks/{id}/cancel", benchmark_cancel, KIB(1)), OPERATORS, MAX(KIB(1280)), DRY},
	{GET("/benchmarks/{id}/series", benchmark_series_get), READERS, MAX(KIB(8193))},
	{GET("/benchmarks/{id}/fio", benchmark_fio_get), READERS, MAX(KIB(16384))},

	{GET("/accounts", accounts_list), ADMINISTRATORS, MAX(KIB(512)), .version = v1_accounts_version},
	{SEND("POST", "/accounts", account_create, KIB(4)), ADMINISTRATORS, HASHES(HTTP_ONCE)},
	{GET("/accounts/{id}", account_get), READERS},
	{SEND("PATCH", "/accounts/{id}", account_patch, KIB(4)), READERS, HASHES(0)},
	{SEND("DELETE", "/accounts/{id}", account_delete, 0), ADMINISTRATORS, DRY},
	{GET("/tokens", tokens_list), READERS},
	{SEND("POST", "/tokens", token_create, KIB(4)), READERS, DRY},
	{GET("/tokens/{id}", token_get), READERS},
	{SEND("DELETE", "/tokens/{id}", token_delete, 0), READERS, DRY},

	{GET("/events", events_get), READERS, MAX(KIB(1024)), .types = "application/json,text/event-stream"},
	{GET("/audit", audit_list), ADMINISTRATORS, MAX(KIB(1024))},
};
/* clang-format on */
const size_t api_v1_route_count = array_len(api_v1_routes);
