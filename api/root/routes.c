/* Operations without a version. */
#include "api/root/root.h"

#define GET(path, op) .method = "GET", .pattern = path, .operation = #op, .handler = op
#define ON_LOOP .flags = HTTP_PUBLIC | HTTP_ON_LOOP

/* clang-format off */
const struct http_route api_root_routes[] = {
	{GET("/healthz", healthz), ON_LOOP},
	{GET("/readyz", readyz), .flags = HTTP_PUBLIC},
	{GET("/metrics", metrics), .role = ROLE_READ_ONLY, .flags = HTTP_METRICS, .answer_max = 16 << 20, .types = "text/plain"},
	{GET("/openapi.yaml", openapi_yaml), ON_LOOP, .types = "application/yaml"},
	{GET("/openapi.json", openapi_json), ON_LOOP},
	{GET("/", index_page), ON_LOOP, .types = "text/html"},
};
/* clang-format on */
const size_t api_root_route_count = array_len(api_root_routes);
