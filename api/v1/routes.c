/* The whole of /api/v1 at a glance. */
#include "api/v1/v1.h"

#define V1 "/api/v1"
#define KIB(n) ((size_t)(n)*1024)

#define GET(path, op, role) \
	{ "GET", V1 path, #op, role, 0, 0, 0, op, NULL }
#define GET_BIG(path, op, role, max) \
	{ "GET", V1 path, #op, role, 0, 0, max, op, NULL }
#define GET_CACHED(path, op, role, max, version) \
	{ "GET", V1 path, #op, role, 0, 0, max, op, version }
#define SEND(method, path, op, role, max) \
	{ method, V1 path, #op, role, 0, max, 0, op, NULL }

/* clang-format off */
const struct http_route api_v1_routes[] = {
	GET("/system", system_get, ROLE_READ_ONLY),

	GET_CACHED("/drives", drives_list, ROLE_READ_ONLY, KIB(4096), v1_drives_version),
	GET_CACHED("/drives/{id}", drive_get, ROLE_READ_ONLY, KIB(256), v1_drive_version),
	SEND("PATCH", "/drives/{id}", drive_patch, ROLE_OPERATOR, KIB(8)),
	GET("/drives/{id}/health", drive_health_get, ROLE_READ_ONLY),
	GET("/drives/{id}/thermal", drive_thermal_get, ROLE_READ_ONLY),
	GET("/drives/{id}/power", drive_power_get, ROLE_READ_ONLY),
	GET("/drives/{id}/power/desired", drive_desired_get, ROLE_READ_ONLY),
	SEND("PUT", "/drives/{id}/power/desired", drive_desired_put, ROLE_OPERATOR, KIB(8)),
	SEND("DELETE", "/drives/{id}/power/desired", drive_desired_delete, ROLE_OPERATOR, 0),
	GET_BIG("/drives/{id}/energy", drive_energy_get, ROLE_READ_ONLY, KIB(4096)),

	GET_CACHED("/hosts", hosts_list, ROLE_READ_ONLY, KIB(2048), v1_hosts_version),
	SEND("POST", "/hosts", host_create, ROLE_ADMINISTRATOR, KIB(16)),
	GET("/hosts/{id}", host_get, ROLE_READ_ONLY),
	SEND("PUT", "/hosts/{id}", host_put, ROLE_ADMINISTRATOR, KIB(16)),
	SEND("PATCH", "/hosts/{id}", host_patch, ROLE_ADMINISTRATOR, KIB(16)),
	SEND("DELETE", "/hosts/{id}", host_delete, ROLE_ADMINISTRATOR, 0),
	GET("/hosts/{id}/power", host_power_get, ROLE_READ_ONLY),
	GET("/hosts/{id}/baseline", host_baseline_get, ROLE_READ_ONLY),
	SEND("PUT", "/hosts/{id}/baseline", host_baseline_put, ROLE_OPERATOR, KIB(8)),
	GET_BIG("/hosts/{id}/energy", host_energy_get, ROLE_READ_ONLY, KIB(4096)),

	GET_BIG("/series", series_list, ROLE_READ_ONLY, KIB(1024)),
	GET("/series/{id}", series_get, ROLE_READ_ONLY),
	GET_BIG("/series/{id}/samples", series_samples_get, ROLE_READ_ONLY, KIB(4096)),

	GET("/workloads", workloads_list, ROLE_READ_ONLY),
	GET("/workloads/{name}", workload_get, ROLE_READ_ONLY),
	SEND("PUT", "/workloads/{name}", workload_put, ROLE_OPERATOR, KIB(8)),
	SEND("DELETE", "/workloads/{name}", workload_delete, ROLE_OPERATOR, 0),

	GET_BIG("/benchmarks", benchmarks_list, ROLE_READ_ONLY, KIB(2048)),
	SEND("POST", "/benchmarks", benchmark_create, ROLE_OPERATOR, KIB(32)),
	GET_BIG("/benchmarks/{id}", benchmark_get, ROLE_READ_ONLY, KIB(1280)),
	SEND("DELETE", "/benchmarks/{id}", benchmark_delete, ROLE_OPERATOR, 0),
	SEND("POST", "/benchmarks/{id}/cancel", benchmark_cancel, ROLE_OPERATOR, KIB(1)),
	GET_BIG("/benchmarks/{id}/series", benchmark_series_get, ROLE_READ_ONLY, KIB(8192)),
	GET_BIG("/benchmarks/{id}/fio", benchmark_fio_get, ROLE_READ_ONLY, KIB(16384)),

	GET_CACHED("/accounts", accounts_list, ROLE_ADMINISTRATOR, KIB(512), v1_accounts_version),
	SEND("POST", "/accounts", account_create, ROLE_ADMINISTRATOR, KIB(4)),
	GET("/accounts/{id}", account_get, ROLE_READ_ONLY),
	SEND("PATCH", "/accounts/{id}", account_patch, ROLE_READ_ONLY, KIB(4)),
	SEND("DELETE", "/accounts/{id}", account_delete, ROLE_ADMINISTRATOR, 0),
	GET("/tokens", tokens_list, ROLE_READ_ONLY),
	SEND("POST", "/tokens", token_create, ROLE_READ_ONLY, KIB(4)),
	GET("/tokens/{id}", token_get, ROLE_READ_ONLY),
	SEND("DELETE", "/tokens/{id}", token_delete, ROLE_READ_ONLY, 0),

	GET_BIG("/events", events_get, ROLE_READ_ONLY, KIB(1024)),
	GET_BIG("/audit", audit_list, ROLE_ADMINISTRATOR, KIB(1024)),
};
/* clang-format on */
const size_t api_v1_route_count = array_len(api_v1_routes);
