/*
 * The walk: finds the chassis that may be the host's, then asks them for watts from the best place
 * down. A place is a source at a chassis, sources first.
 */
#include "core/bmc/walk.h"

#include <string.h>

#include "base/parse.h"

#define NOWHERE UINT8_MAX

void walk_ask(struct bmc_walk *w, enum walk_stage stage, const char *uri) {
	w->stage = (uint8_t)stage;
	str_copy(w->next, sizeof(w->next), uri);
}

struct bmc_chassis *walk_chassis(struct bmc_walk *w) {
	return &w->chassis[w->place % w->chassis_count];
}

/* --- sources in turn --- */

static void ask_environment(struct bmc_walk *w) {
	walk_ask(w, STAGE_ENVIRONMENT, walk_chassis(w)->environment);
}

static void ask_power(struct bmc_walk *w) {
	walk_ask(w, STAGE_POWER, walk_chassis(w)->power);
}

static void ask_sensor(struct bmc_walk *w) {
	const struct bmc_chassis *c = walk_chassis(w);
	if (c->sensor[0])
		walk_ask(w, STAGE_SENSOR, c->sensor);
	else
		walk_ask(w, STAGE_SENSOR_LIST, c->sensors);
}

static void (*const ask_source[BMC_SOURCE_COUNT_])(struct bmc_walk *w) = {
	[BMC_SOURCE_ENVIRONMENT] = ask_environment,
	[BMC_SOURCE_POWER] = ask_power,
	[BMC_SOURCE_SENSOR] = ask_sensor,
	[BMC_SOURCE_SUPPLIES] = supplies_begin,
};

/* The watts are known, or known to be unknown. */
static void settle(struct bmc_walk *w) {
	w->answered = true;
	w->next[0] = '\0';
	if (w->with_extras && w->discovered)
		extras_begin(w);
}

static void accept(struct bmc_walk *w, const struct bmc_spare *s) {
	w->reading.power_mw = s->power_mw;
	w->reading.source = s->source;
	w->reading.quality = s->quality;
	w->winner = w->place = s->place;
	redfish_doubt_inputs(&w->reading.more, s->power_mw);
	settle(w);
}

static void give_up(struct bmc_walk *w) {
	if (w->oem.power_mw != NONE) {
		accept(w, &w->oem);
	} else if (w->supply_sum.power_mw != NONE) {
		accept(w, &w->supply_sum);
	} else {
		w->reading.reason = w->forbidden ? "bmc_forbidden"
			: w->zero                ? "not_supported"
						 : "not_reported";
		w->place = 0;
		settle(w);
	}
}

/* Asks the first place from `from` on that there is. */
static void ask_from(struct bmc_walk *w, unsigned from) {
	for (unsigned p = from; p < BMC_SOURCE_COUNT_ * w->chassis_count; p++) {
		unsigned source = p / w->chassis_count;
		w->place = (uint8_t)p;
		w->next[0] = '\0';
		if (ask_source[source])
			ask_source[source](w);
		else if (w->oem.power_mw != NONE)
			break;
		/* "" stands for a link that the chassis lacks. */
		if (w->next[0])
			return;
	}
	give_up(w);
}

void walk_go_on(struct bmc_walk *w) {
	if (w->answered)
		extras_next(w);
	else if (w->full)
		ask_from(w, w->place + 1u);
	else
		give_up(w);
}

static void reset_reading(struct bmc_walk *w) {
	bmc_reading_init(&w->reading);
	w->oem.power_mw = w->supply_sum.power_mw = NONE;
	w->forbidden = w->zero = w->answered = false;
}

void bmc_walk_begin(struct bmc_walk *w, bool with_extras) {
	reset_reading(w);
	w->full = with_extras && w->winner == NOWHERE;
	w->with_extras = with_extras;
	ask_from(w, w->winner == NOWHERE ? 0 : w->winner);
}

/* --- a source's answer --- */

static struct bmc_spare spare_of(const struct bmc_walk *w, const struct bmc_reading *r) {
	return (struct bmc_spare){r->power_mw, r->source, r->quality, w->place};
}

void walk_take(struct bmc_walk *w, const struct bmc_reading *r) {
	const struct bmc_spare s = spare_of(w, r);
	extras_merge(&w->reading.more, &r->more);
	if (r->power_mw == NONE) {
		walk_go_on(w);
	} else if (r->power_mw == 0) {
		/* A server without a meter says 0 too; only one that is off means it. */
		w->candidate = s;
		walk_ask(w, STAGE_CHASSIS_STATE, walk_chassis(w)->uri);
	} else {
		accept(w, &s);
	}
}

static void feed_environment(struct bmc_walk *w, const json_t *doc) {
	struct bmc_chassis *c = walk_chassis(w);
	struct bmc_reading r;
	bmc_reading_init(&r);
	redfish_environment(doc, &r);
	if (!c->sensor[0])
		redfish_data_source(doc, c->sensor);
	walk_take(w, &r);
}

/* Keeps the first that is worth something. */
static void keep_spare(struct bmc_walk *w, struct bmc_spare *spare, const struct bmc_reading *r) {
	if (spare->power_mw == NONE && r->power_mw > 0)
		*spare = spare_of(w, r);
}

static void feed_power(struct bmc_walk *w, const json_t *doc) {
	struct bmc_reading r, oem, sum;
	bmc_reading_init(&r);
	bmc_reading_init(&oem);
	bmc_reading_init(&sum);
	redfish_power(doc, &r);
	redfish_power_supplies(doc, &r.more);
	if (w->adaptor->oem_supplies)
		w->adaptor->oem_supplies(doc, &r.more);
	if (w->adaptor->oem_power)
		w->adaptor->oem_power(doc, &oem);
	redfish_supply_sum(doc, &r.more, &sum);
	keep_spare(w, &w->oem, &oem);
	keep_spare(w, &w->supply_sum, &sum);
	walk_take(w, &r);
}

static void feed_sensor_list(struct bmc_walk *w, const json_t *doc) {
	struct bmc_chassis *c = walk_chassis(w);
	if (redfish_choose_sensor(doc, c->sensor))
		walk_ask(w, STAGE_SENSOR, c->sensor);
	else
		walk_go_on(w);
}

static void feed_sensor(struct bmc_walk *w, const json_t *doc) {
	struct bmc_reading r;
	bmc_reading_init(&r);
	redfish_sensor(doc, &r);
	walk_take(w, &r);
}

/* --- 0 W --- */

static void doubt_zero(struct bmc_walk *w) {
	w->zero = true;
	walk_go_on(w);
}

static void feed_system_state(struct bmc_walk *w, const json_t *doc) {
	if (strcmp(redfish_text(doc, "PowerState"), "Off") == 0)
		accept(w, &w->candidate);
	else
		doubt_zero(w);
}

static void feed_chassis_state(struct bmc_walk *w, const json_t *doc) {
	char uri[BMC_URI_SIZE];
	if (!*redfish_text(doc, "PowerState") &&
		redfish_link(json_object_get(doc, "Links"), "ComputerSystems", uri))
		walk_ask(w, STAGE_SYSTEM_STATE, uri);
	else
		feed_system_state(w, doc);
}

/* --- discovery --- */

void bmc_walk_discover(struct bmc_walk *w, const char *vendor, const json_t *service_root) {
	char uri[BMC_URI_SIZE];
	*w = (struct bmc_walk){.adaptor = bmc_adaptor_choose(vendor, service_root),
		.winner = NOWHERE,
		.full = true,
		.with_extras = true};
	reset_reading(w);
	bmc_extras_init(&w->extras);
	if (!redfish_link(service_root, "Chassis", uri))
		str_copy(uri, sizeof(uri), "/redfish/v1/Chassis");
	walk_ask(w, STAGE_CHASSIS_LIST, uri);
}

static void next_chassis(struct bmc_walk *w) {
	if (w->member < w->members.count) {
		walk_ask(w, STAGE_CHASSIS, bmc_uris_get(&w->members, w->member));
		return;
	}
	w->discovered = w->chassis_count > 0;
	if (w->discovered) {
		reset_reading(w);
		ask_from(w, 0);
		return;
	}
	w->reading.reason = w->forbidden ? "bmc_forbidden" : "not_supported";
	settle(w);
}

static void feed_chassis_list(struct bmc_walk *w, const json_t *doc) {
	redfish_chassis_members(doc, &w->members);
	w->member = 0;
	next_chassis(w);
}

/* Keeps the likeliest ones. */
static void keep_chassis(struct bmc_walk *w, const struct bmc_chassis *c) {
	int best = w->chassis_count ? w->chassis[0].score : 0;
	if (c->score > best)
		w->chassis_count = 0;
	if (c->score && c->score >= best && w->chassis_count < BMC_MAX_CHASSIS)
		w->chassis[w->chassis_count++] = *c;
}

static void skip_chassis(struct bmc_walk *w) {
	w->member++;
	next_chassis(w);
}

static void feed_chassis(struct bmc_walk *w, const json_t *doc) {
	struct bmc_chassis c;
	redfish_chassis(doc, &c);
	str_copy(c.uri, sizeof(c.uri), w->next);
	keep_chassis(w, &c);
	skip_chassis(w);
}

static void no_chassis(struct bmc_walk *w) {
	w->members.count = 0;
	next_chassis(w);
}

/* --- answers --- */

static const struct {
	walk_feed_fn *feed;
	walk_failed_fn *failed;
	bool known; /* that the resource exists: 404 means that the service was rebuilt */
} stages[STAGE_COUNT_] = {
	[STAGE_CHASSIS_LIST] = {feed_chassis_list, no_chassis, false},
	[STAGE_CHASSIS] = {feed_chassis, skip_chassis, false},
	[STAGE_ENVIRONMENT] = {feed_environment, walk_go_on, true},
	[STAGE_POWER] = {feed_power, walk_go_on, true},
	[STAGE_SENSOR_LIST] = {feed_sensor_list, walk_go_on, false},
	[STAGE_SENSOR] = {feed_sensor, walk_go_on, true},
	[STAGE_CHASSIS_STATE] = {feed_chassis_state, doubt_zero, false},
	[STAGE_SYSTEM_STATE] = {feed_system_state, doubt_zero, false},
	[STAGE_SUBSYSTEM] = {feed_subsystem, walk_go_on, false},
	[STAGE_SUPPLY_LIST] = {feed_supply_list, walk_go_on, false},
	[STAGE_SUPPLY] = {feed_supply, supply_failed, false},
	[STAGE_SUPPLY_METRICS] = {feed_supply_metrics, supply_metrics_failed, true},
	[STAGE_LINKS] = {feed_links, walk_go_on, false},
	[STAGE_MORE_ENVIRONMENT] = {feed_more_environment, walk_go_on, false},
	[STAGE_THERMAL_SUBSYSTEM] = {feed_thermal_subsystem, walk_go_on, false},
	[STAGE_THERMAL] = {feed_thermal, walk_go_on, false},
	[STAGE_CONTROL_LIST] = {feed_control_list, walk_go_on, false},
	[STAGE_CONTROL] = {feed_control, walk_go_on, false},
	[STAGE_OWN] = {feed_own, own_failed, false},
	[STAGE_SYSTEM] = {feed_system, walk_go_on, false},
};

bool bmc_walk_knows_next(const struct bmc_walk *w) {
	return stages[w->stage].known && !w->full && !w->answered;
}

void bmc_walk_feed(struct bmc_walk *w, int status, const json_t *doc) {
	if (doc) {
		stages[w->stage].feed(w, doc);
		return;
	}
	w->forbidden |= status == 401 || status == 403;
	if (status == 404 && bmc_walk_knows_next(w))
		w->discovered = false;
	stages[w->stage].failed(w);
}
