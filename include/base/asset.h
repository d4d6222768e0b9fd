/*
 * Files that the build embeds into the program: openapi.yaml and its JSON form, the simulator's
 * drive models, the dashboard. Each is also reachable directly as asset_<name>[] and
 * asset_<name>_len, where name is its base name with _ for other characters.
 */
#ifndef DRIVEWATT_BASE_ASSET_H
#define DRIVEWATT_BASE_ASSET_H

#include <stddef.h>

struct asset {
	const char *path;          /* from the root of the sources, "web/index.html" */
	const unsigned char *data; /* a NUL follows it, not counted in *len */
	const size_t *len;
};

/* Ends with a row whose path is NULL. */
extern const struct asset asset_table[];

#endif
