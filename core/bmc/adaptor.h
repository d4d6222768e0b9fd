/*
 * The seam to the kinds of BMCs. A walk is pure: it names the next resource to GET and is fed the
 * answers, until it has a reading. What it discovered stays in it, so that the next reading needs
 * one GET where the BMC allows. What differs between vendors stands in adaptors, which are data.
 *
 *	bmc_walk_discover(w, vendor, root);   once, and again while w->discovered is false
 *	bmc_walk_begin(w, false);             for each reading after the first
 *	while (w->next[0])                    in both cases
 *		bmc_walk_feed(w, status, doc);
 *
 * The watts are settled as soon as w->answered is true; what follows are extras.
 */
#ifndef DRIVEWATT_CORE_BMC_ADAPTOR_H
#define DRIVEWATT_CORE_BMC_ADAPTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/bmc/redfish_limit.h"
#include "model/host.h"

#define BMC_VENDOR_AUTO "auto"
#define BMC_SERVICE_ROOT "/redfish/v1/"
#define BMC_URI_SIZE 192
#define BMC_MAX_MEMBERS 64 /* of a collection that are looked at */
#define BMC_URIS_BYTES 3072
#define BMC_MAX_CHASSIS 4 /* that may all be the host's */

/* What a BMC tells beside the watts. */
struct bmc_extras {
	int64_t limit_mw, limit_min_mw, limit_max_mw; /* NONE */
	int64_t energy_counter_mj, energy_since_ms;   /* NONE */
	bool energy_in_joules;                        /* fine enough to tell watts from */
	int64_t inlet_mc;                             /* NONE */
	char system_uuid[37];                         /* "" */
	unsigned supply_count;
	bool supplies_cut; /* there are more */
	struct host_supply supplies[HOST_SUPPLY_MAX];
};

struct bmc_reading {
	int64_t power_mw;   /* NONE */
	const char *reason; /* why NONE: one word, static text */
	const char *source; /* static text */
	enum quality quality;
	struct bmc_extras more;
};
/* Nothing known: "not_reported". */
void bmc_reading_init(struct bmc_reading *r);
void bmc_extras_init(struct bmc_extras *e);

/* Texts one after the other. */
struct bmc_uris {
	unsigned count;
	size_t used;
	char text[BMC_URIS_BYTES];
};

/* Where a reading may come from, best first. */
enum bmc_source {
	BMC_SOURCE_ENVIRONMENT,
	BMC_SOURCE_POWER,
	BMC_SOURCE_SENSOR,
	BMC_SOURCE_OEM, /* out of Power */
	BMC_SOURCE_SUPPLIES,
	BMC_SOURCE_COUNT_
};

/* A chassis and its links; "" where it has none. */
struct bmc_chassis {
	char uri[BMC_URI_SIZE];
	char environment[BMC_URI_SIZE], power[BMC_URI_SIZE];
	char sensors[BMC_URI_SIZE], subsystem[BMC_URI_SIZE];
	char sensor[BMC_URI_SIZE]; /* that measures its input */
	int score;
};

/* Watts to fall back on; power_mw NONE: none. */
struct bmc_spare {
	int64_t power_mw;
	const char *source;
	enum quality quality;
	uint8_t place;
};

struct bmc_walk {
	const struct bmc_adaptor *adaptor;
	char next[BMC_URI_SIZE]; /* to GET; "" when the reading is complete */
	struct bmc_reading reading;
	bool answered;   /* reading's watts are settled */
	bool discovered; /* false again when a known resource vanished */

	/* The rest is the walk's own. */
	struct bmc_extras extras; /* as they were found last */
	bool full;                /* looks at all places, not only the one that answered last */
	bool with_extras;         /* and then at what a BMC tells beside */
	uint8_t stage;
	uint8_t place;  /* being asked: source * chassis_count + chassis */
	uint8_t winner; /* place that answered last; UINT8_MAX none */
	uint8_t extra;  /* being asked */
	bool forbidden; /* some resource was refused */
	bool zero;      /* some said 0 W of a host that is not off */
	unsigned chassis_count;
	struct bmc_chassis chassis[BMC_MAX_CHASSIS];
	struct bmc_spare candidate; /* 0 W, until it is known whether the host is off */
	struct bmc_spare oem, supply_sum;
	struct bmc_uris members; /* chassis while discovering, then supplies */
	unsigned member;
	struct bmc_uris metrics; /* of the supplies, "" where one has none */
	bool metrics_known;
	char redundancy[16]; /* of the supplies */
	char thermal[BMC_URI_SIZE], thermal_subsystem[BMC_URI_SIZE];
	char controls[BMC_URI_SIZE], control[BMC_URI_SIZE];
	char computer[BMC_URI_SIZE], system_uuid[37];
	bool no_own; /* the adaptor's resource is not there */
};

/* What is special about a vendor's BMCs. All but the name may be left out. */
struct bmc_adaptor {
	const char *name;  /* as settings give it */
	const char *marks; /* words, by any of which a service root gives itself away */
	/* Watts told by a Power resource, but not where the standard says. */
	void (*oem_power)(const json_t *power, struct bmc_reading *out);
	/* Corrects what was read of Power's supplies, which stand in the same order. */
	void (*oem_supplies)(const json_t *power, struct bmc_extras *out);
	/* A resource of its own with extras; limit_in_own: and attributes to set the limit by. */
	const char *own_uri;
	void (*own_extras)(const json_t *doc, struct bmc_extras *out);
	bool limit_in_own;
	const char *limit_mode; /* ControlMode in which a limit holds; NULL "Automatic" */
};

/* "auto" or an adaptor's name. */
bool bmc_vendor_is_known(const char *vendor);
/* By name or, for "auto", by the service root. */
const struct bmc_adaptor *bmc_adaptor_choose(const char *vendor, const json_t *service_root);

/* Begins with a full reading. */
void bmc_walk_discover(struct bmc_walk *w, const char *vendor, const json_t *service_root);
void bmc_walk_begin(struct bmc_walk *w, bool with_extras);
/* The answer to w->next. status: of HTTP; doc NULL unless it was 2xx. Borrowed. */
void bmc_walk_feed(struct bmc_walk *w, int status, const json_t *doc);
/* Does the walk ask for a resource that answered before? */
bool bmc_walk_knows_next(const struct bmc_walk *w);
/* What the BMC told beside the watts, now or earlier. */
void bmc_walk_extras(const struct bmc_walk *w, struct bmc_extras *out);
/* Where the limit may be set, once it is discovered: links by enum limit_place, "" none. */
struct bmc_limit_places {
	char uri[LIMIT_PLACE_COUNT_][BMC_URI_SIZE];
	bool control_is_list; /* the control is still to be found in that collection */
	const char *mode;     /* ControlMode to set it by */
};
void bmc_walk_limit_places(const struct bmc_walk *w, struct bmc_limit_places *out);
/* It is this now; NONE none. */
void bmc_walk_note_limit(struct bmc_walk *w, int64_t limit_mw);
/* Those told earlier are too old to be shown. */
void bmc_walk_drop_extras(struct bmc_walk *w);

/* What vendors' files give to the table. */
void dell_extras(const json_t *doc, struct bmc_extras *out);
void fujitsu_power(const json_t *power, struct bmc_reading *out);
void fujitsu_supplies(const json_t *power, struct bmc_extras *out);
void hpe_supplies(const json_t *power, struct bmc_extras *out);
void inspur_power(const json_t *power, struct bmc_reading *out);

#endif
