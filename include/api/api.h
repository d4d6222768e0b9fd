/*
 * The faces: trees of routes over the domain. Made and freed by one thread; the handlers run in the
 * HTTP server's.
 */
#ifndef DRIVEWATT_API_API_H
#define DRIVEWATT_API_API_H

#include "http/route.h"

struct api;
struct core;
struct http_server;

struct api_config {
	bool public_metrics;
	unsigned max_streams; /* readers of /events at once, 0 … (128); the server counts all */
	int64_t heartbeat_ms; /* of an event stream on which nothing happens, over 0 (15000) */
	const char *version;
	bool (*ready)(void *arg); /* of /readyz, besides the stores; any thread, must not block */
	void *ready_arg;
};

/* core and config's strings are borrowed. Subscribes to the events. */
struct api *api_new(const struct api_config *config, struct core *core, struct err *err);
/* After http_server_stop and after core_free, whose events call into it. NULL is fine. */
void api_free(struct api *a);
/* /api/v1 */
struct http_tree api_v1_tree(struct api *a);
/* /healthz, /readyz, /metrics, /openapi.*, / */
struct http_tree api_root_tree(struct api *a);

#endif
