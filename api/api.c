#include <stdlib.h>

#include "api/api_private.h"
#include "api/v1/events.h"
#include "api/v1/live.h"
#include "base/clock.h"
#include "core/events.h"

#define EVENT_RING 1024

struct api *api_new(const struct api_config *config, struct core *core, struct err *err) {
	struct api *a = calloc(1, sizeof(*a));
	if (!a) {
		err_set(err, RC_NOMEM, "memory is out");
		return NULL;
	}
	a->config = *config;
	a->core = core;
	a->events = http_channel_new(EVENT_RING, config->max_streams, config->heartbeat_ms, err);
	if (a->events)
		a->live = live_new(core, config->max_streams, config->heartbeat_ms, err);
	if (!a->live || events_subscribe(core->events, events_to_channel, a, err) != RC_OK ||
		live_start(a->live, err) != RC_OK) {
		api_free(a);
		return NULL;
	}
	return a;
}

void api_free(struct api *a) {
	if (!a)
		return;
	live_free(a->live);
	http_channel_free(a->events);
	free(a);
}

struct http_tree api_v1_tree(struct api *a) {
	return (struct http_tree){.prefix = "/api/v1",
		.routes = api_v1_routes,
		.count = api_v1_route_count,
		.render_error = api_problem,
		.ctx = a};
}

struct http_tree api_root_tree(struct api *a) {
	return (struct http_tree){.prefix = "",
		.routes = api_root_routes,
		.count = api_root_route_count,
		.render_error = api_problem,
		.ctx = a};
}
