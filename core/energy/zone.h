/*
 * Days of a time zone from the system's zone files (TZif, RFC 8536), read without the TZ variable,
 * which is the whole process's. A zone is immutable: any thread.
 */
#ifndef DRIVEWATT_CORE_ENERGY_ZONE_H
#define DRIVEWATT_CORE_ENERGY_ZONE_H

#include <stdint.h>

#include "base/rc.h"

#define ZONE_DIR "/usr/share/zoneinfo"
#define ZONE_NAME_MAX 64

struct zone;

/* name is an IANA name such as "Europe/Berlin"; NULL and "UTC" need no file. RC_INVALID with
 * field "tz" for a name that is none or that the system does not know. */
struct zone *zone_load(const char *dir, const char *name, struct err *err);
/* From the bytes of a zone file. */
struct zone *zone_parse(const unsigned char *data, size_t len, struct err *err);
void zone_free(struct zone *z);

/* Seconds east of UTC at an instant. */
int64_t zone_offset_s(const struct zone *z, int64_t epoch_s);
/* The first instant after at_ms that belongs to a later local day. */
int64_t zone_next_day_ms(const struct zone *z, int64_t at_ms);

#endif
