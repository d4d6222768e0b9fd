/*
 * The seam to the kinds of BMCs. An adaptor is pure: it names the next resource to GET and is fed
 * the answers, until it has a reading. What it discovered stays in the walk, so that the next
 * reading needs one GET where the BMC allows.
 *
 *	bmc_walk_discover(w, vendor, root);   once, and again while w->discovered is false
 *	w->adaptor->begin(w);                 for each reading after the first
 *	while (w->next[0])                    in both cases
 *		w->adaptor->feed(w, status, doc);
 */
#ifndef DRIVEWATT_CORE_BMC_ADAPTOR_H
#define DRIVEWATT_CORE_BMC_ADAPTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/host.h"

#define BMC_VENDOR_AUTO "auto"
#define BMC_SERVICE_ROOT "/redfish/v1/"
#define BMC_URI_SIZE 192
#define BMC_MAX_MEMBERS 16 /* of a collection that are looked at */

struct bmc_reading {
	int64_t power_mw;   /* NONE */
	const char *reason; /* why NONE: one word, static text */
	const char *source; /* static text */
	enum quality quality;
	int64_t limit_mw, energy_counter_mj; /* NONE */
};

/* Where a reading may come from, best first. */
enum bmc_source {
	BMC_SOURCE_ENVIRONMENT,
	BMC_SOURCE_POWER,
	BMC_SOURCE_SENSOR,
	BMC_SOURCE_SUPPLIES,
	BMC_SOURCE_COUNT_ /* none */
};

struct bmc_uris {
	unsigned count;
	char uri[BMC_MAX_MEMBERS][BMC_URI_SIZE];
};

/* A chassis and its links; "" where it has none. */
struct bmc_chassis {
	char uri[BMC_URI_SIZE];
	char environment[BMC_URI_SIZE], power[BMC_URI_SIZE];
	char sensors[BMC_URI_SIZE], subsystem[BMC_URI_SIZE];
	int score;
};

struct bmc_walk {
	const struct bmc_adaptor *adaptor;
	char next[BMC_URI_SIZE]; /* to GET; "" when the reading is complete */
	struct bmc_reading reading;

	bool discovered; /* false again when a known resource vanished */
	bool full; /* looks at all sources, not only the one that answered last: while discovering
		    */
	uint8_t stage;  /* the adaptor's */
	uint8_t source; /* enum bmc_source being asked */
	uint8_t winner; /* enum bmc_source that answered last */
	bool forbidden; /* some resource was refused */
	struct bmc_chassis chassis;
	char sensor[BMC_URI_SIZE];
	struct bmc_uris members; /* chassis while discovering, supplies' metrics later */
	unsigned member;
	bool supplies_known;
	int64_t sum_mw;              /* of the supplies so far; NONE when one has no value */
	struct bmc_reading fallback; /* used when no source has better; power_mw NONE: none */
};

struct bmc_adaptor {
	const char *name;
	/* Is it made for this service? */
	bool (*matches)(const json_t *service_root);
	void (*discover)(struct bmc_walk *w, const json_t *service_root);
	void (*begin)(struct bmc_walk *w);
	/* The answer to w->next. status: of HTTP; doc NULL unless it was 2xx. Borrowed. */
	void (*feed)(struct bmc_walk *w, int status, const json_t *doc);
};

/* "auto" or an adaptor's name. */
bool bmc_vendor_is_known(const char *vendor);

/* Picks the adaptor by name or, for "auto", by the service root, and begins with a full reading. */
void bmc_walk_discover(struct bmc_walk *w, const char *vendor, const json_t *service_root);

extern const struct bmc_adaptor redfish_adaptor;

#endif
