/*
 * Where a BMC keeps the limit of its host's power: how it is read there, and what is sent to change
 * it. Pure; documents are borrowed.
 */
#ifndef DRIVEWATT_CORE_BMC_REDFISH_LIMIT_H
#define DRIVEWATT_CORE_BMC_REDFISH_LIMIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Best first. */
enum limit_place {
	LIMIT_ENVIRONMENT, /* EnvironmentMetrics: PowerLimitWatts */
	LIMIT_CONTROL,     /* a Control of power */
	LIMIT_POWER,       /* Power: PowerControl[].PowerLimit */
	LIMIT_ATTRIBUTES,  /* Dell's attributes of the system */
	LIMIT_PLACE_COUNT_
};

struct limit_found {
	int64_t limit_mw;       /* in force; NONE none */
	int64_t min_mw, max_mw; /* what it may be set to; NONE unknown */
	unsigned member;        /* of PowerControl */
	bool has_mode;          /* ControlMode is there */
	const char *mode;       /* the one to set a limit by, static text; NULL: the present one */
};

/* What the document of that place says. False when there is no limit in it, or none that could be
 * set. default_mode: static text. */
bool redfish_limit_find(enum limit_place place, const json_t *doc, const char *default_mode,
	struct limit_found *out);

/* The n-th way (from 0) to ask for the limit, NONE for none, as JSON text. False when there is none
 * left, or no room. */
bool redfish_limit_body(enum limit_place place, const struct limit_found *f, int64_t limit_mw,
	unsigned n, char *out, size_t size);

/* What an answer says against a request: true when there is a complaint in it, which is copied as
 * printable ASCII. doc may be NULL. */
bool redfish_complaint(const json_t *doc, char *out, size_t size);

#endif
