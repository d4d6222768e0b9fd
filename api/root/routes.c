/* Operations without a version. */
#include "api/root/root.h"

#define KIB(n) ((size_t)(n)*1024)

/* clang-format off */
const struct http_route api_root_routes[] = {
	{"GET", "/healthz", "healthz", ROLE_NONE, HTTP_PUBLIC | HTTP_ON_LOOP, 0, 0, healthz, NULL},
	{"GET", "/readyz", "readyz", ROLE_NONE, HTTP_PUBLIC, 0, 0, readyz, NULL},
	{"GET", "/metrics", "metrics", ROLE_READ_ONLY, HTTP_OPENABLE, 0, KIB(4096), metrics, NULL},
	{"GET", "/openapi.yaml", "openapi_yaml", ROLE_NONE, HTTP_PUBLIC | HTTP_ON_LOOP, 0, 0, openapi_yaml, NULL},
	{"GET", "/openapi.json", "openapi_json", ROLE_NONE, HTTP_PUBLIC | HTTP_ON_LOOP, 0, 0, openapi_json, NULL},
	{"GET", "/", "index_page", ROLE_NONE, HTTP_PUBLIC | HTTP_ON_LOOP, 0, 0, index_page, NULL},
};
/* clang-format on */
const size_t api_root_route_count = array_len(api_root_routes);
