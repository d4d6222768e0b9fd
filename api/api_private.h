/* What the faces share inside api/. */
#ifndef DRIVEWATT_API_PRIVATE_H
#define DRIVEWATT_API_PRIVATE_H

#include "api/api.h"
#include "core/core.h"
#include "http/stream.h"

struct live;

struct api {
	struct api_config config;
	struct core *core;           /* borrowed */
	struct http_channel *events; /* owned: /events as SSE */
	struct live *live;           /* owned: the same with samples */
};

/* From a tree's ctx. */
static inline struct api *api_of(void *ctx) {
	return ctx;
}

extern const struct http_route api_v1_routes[];
extern const size_t api_v1_route_count;
extern const struct http_route api_root_routes[];
extern const size_t api_root_route_count;

/* RFC 9457 problem details. */
void api_problem(
	struct http_response *r, const struct http_request *q, int status, const struct err *err);

#endif
