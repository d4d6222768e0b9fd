/* SIGHUP: what can be read again without a new start. */
#ifndef DRIVEWATT_SERVER_RELOAD_H
#define DRIVEWATT_SERVER_RELOAD_H

#include "server/config.h"

struct core;
struct http_server;

struct reload {
	struct config *config; /* in force; what is live of it changes */
	int argc;
	char **argv;
	const char *data_dir;
	struct core *core;
	struct http_server *http;
};

/* Says in the log what took effect, what would need a start, and what is wrong, which then stays as
 * it was. Main thread only. */
void reload(const struct reload *r);

#endif
