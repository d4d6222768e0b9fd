/* The generic adaptor: finds the host's chassis, then asks its sources from the best down. */
#include <string.h>

#include "base/parse.h"
#include "core/bmc/redfish.h"

enum stage {
	STAGE_CHASSIS_LIST,
	STAGE_CHASSIS,
	STAGE_ENVIRONMENT,
	STAGE_POWER,
	STAGE_SENSOR_LIST,
	STAGE_SENSOR,
	STAGE_SUBSYSTEM,
	STAGE_SUPPLY_LIST,
	STAGE_SUPPLY,
	STAGE_SUPPLY_METRICS,
	STAGE_POWER_STATE,
};

static void ask(struct bmc_walk *w, enum stage stage, const char *uri) {
	w->stage = (uint8_t)stage;
	str_copy(w->next, sizeof(w->next), uri);
}

static void finish(struct bmc_walk *w) {
	w->next[0] = '\0';
}

/* --- sources in turn --- */

static void ask_environment(struct bmc_walk *w) {
	ask(w, STAGE_ENVIRONMENT, w->chassis.environment);
}

static void ask_power(struct bmc_walk *w) {
	ask(w, STAGE_POWER, w->chassis.power);
}

static void ask_sensor(struct bmc_walk *w) {
	if (w->sensor[0])
		ask(w, STAGE_SENSOR, w->sensor);
	else
		ask(w, STAGE_SENSOR_LIST, w->chassis.sensors);
}

static void ask_member(struct bmc_walk *w, enum stage stage) {
	ask(w, stage, w->members.uri[w->member]);
}

static void ask_supplies(struct bmc_walk *w) {
	w->member = 0;
	w->sum_mw = 0;
	if (w->supplies_known)
		ask_member(w, STAGE_SUPPLY_METRICS);
	else
		ask(w, STAGE_SUBSYSTEM, w->chassis.subsystem);
}

static void (*const ask_source[BMC_SOURCE_COUNT_])(struct bmc_walk *w) = {
	[BMC_SOURCE_ENVIRONMENT] = ask_environment,
	[BMC_SOURCE_POWER] = ask_power,
	[BMC_SOURCE_SENSOR] = ask_sensor,
	[BMC_SOURCE_SUPPLIES] = ask_supplies,
};

static void give_up(struct bmc_walk *w) {
	w->reading.reason = w->forbidden ? "bmc_forbidden" : "not_reported";
	if (w->fallback.power_mw != NONE) {
		w->reading.power_mw = w->fallback.power_mw;
		w->reading.source = w->fallback.source;
		w->reading.quality = w->fallback.quality;
		w->winner = BMC_SOURCE_POWER;
	}
	finish(w);
}

/* Asks from the source `from` on; where only one is wanted, that one. */
static void ask_from(struct bmc_walk *w, unsigned from) {
	for (unsigned s = from; s < BMC_SOURCE_COUNT_; s++) {
		w->source = (uint8_t)s;
		ask_source[s](w);
		/* "" stands for a link that the chassis lacks. */
		if (w->next[0])
			return;
	}
	give_up(w);
}

static void source_failed(struct bmc_walk *w) {
	if (w->full)
		ask_from(w, w->source + 1u);
	else
		give_up(w);
}

static void reset_reading(struct bmc_walk *w) {
	w->reading = (struct bmc_reading){.power_mw = NONE,
		.reason = "not_reported",
		.source = "",
		.quality = QUALITY_BMC,
		.limit_mw = NONE,
		.energy_counter_mj = NONE};
	w->fallback = w->reading;
	w->forbidden = false;
}

/* The source that answered last, or the best one while none did. */
static void begin(struct bmc_walk *w) {
	reset_reading(w);
	w->full = false;
	ask_from(w, w->winner == BMC_SOURCE_COUNT_ ? 0 : w->winner);
}

/* --- a source's answer --- */

static void take_side_figures(struct bmc_walk *w, const struct bmc_reading *r) {
	if (w->reading.limit_mw == NONE)
		w->reading.limit_mw = r->limit_mw;
	if (w->reading.energy_counter_mj == NONE)
		w->reading.energy_counter_mj = r->energy_counter_mj;
}

static void take(struct bmc_walk *w, const struct bmc_reading *r) {
	take_side_figures(w, r);
	if (r->power_mw == NONE) {
		source_failed(w);
		return;
	}
	w->reading.power_mw = r->power_mw;
	w->reading.source = r->source;
	w->reading.quality = r->quality;
	w->winner = w->source;
	/* A server without a meter says 0 too; only one that is off means it. */
	if (r->power_mw == 0)
		ask(w, STAGE_POWER_STATE, w->chassis.uri);
	else
		finish(w);
}

static void feed_environment(struct bmc_walk *w, const json_t *doc) {
	struct bmc_reading r;
	redfish_environment(doc, &r);
	if (!w->sensor[0])
		redfish_data_source(doc, w->sensor);
	take(w, &r);
}

static void feed_power(struct bmc_walk *w, const json_t *doc) {
	struct bmc_reading r;
	redfish_power_supplies(doc, &w->fallback);
	redfish_power(doc, &r);
	take(w, &r);
}

static void feed_sensor_list(struct bmc_walk *w, const json_t *doc) {
	if (redfish_choose_sensor(doc, w->sensor))
		ask(w, STAGE_SENSOR, w->sensor);
	else
		source_failed(w);
}

static void feed_sensor(struct bmc_walk *w, const json_t *doc) {
	struct bmc_reading r;
	redfish_sensor(doc, &r);
	take(w, &r);
}

static void feed_power_state(struct bmc_walk *w, const json_t *doc) {
	if (!redfish_is_off(doc)) {
		w->reading.power_mw = NONE;
		w->reading.reason = "not_supported";
	}
	finish(w);
}

/* --- supplies: the subsystem, its collection, each member, each member's metrics --- */

static void feed_subsystem(struct bmc_walk *w, const json_t *doc) {
	char uri[BMC_URI_SIZE];
	if (redfish_link(doc, "PowerSupplies", uri))
		ask(w, STAGE_SUPPLY_LIST, uri);
	else
		source_failed(w);
}

static void feed_supply_list(struct bmc_walk *w, const json_t *doc) {
	redfish_members(doc, &w->members);
	w->member = 0;
	if (w->members.count)
		ask_member(w, STAGE_SUPPLY);
	else
		source_failed(w);
}

static void feed_supply(struct bmc_walk *w, const json_t *doc) {
	if (!redfish_link(doc, "Metrics", w->members.uri[w->member])) {
		source_failed(w);
		return;
	}
	if (++w->member < w->members.count) {
		ask_member(w, STAGE_SUPPLY);
		return;
	}
	w->supplies_known = true;
	ask_supplies(w);
}

static void feed_supply_metrics(struct bmc_walk *w, const json_t *doc) {
	int64_t input_mw = redfish_supply_input(doc);
	if (input_mw == NONE) {
		source_failed(w);
		return;
	}
	w->sum_mw += input_mw;
	if (++w->member < w->members.count) {
		ask_member(w, STAGE_SUPPLY_METRICS);
		return;
	}
	struct bmc_reading r = w->fallback;
	r.power_mw = w->sum_mw;
	r.source = "PSU input sum";
	r.quality = QUALITY_DERIVED;
	take(w, &r);
}

/* --- discovery --- */

static void discover(struct bmc_walk *w, const json_t *service_root) {
	char uri[BMC_URI_SIZE];
	w->winner = BMC_SOURCE_COUNT_;
	reset_reading(w);
	if (!redfish_link(service_root, "Chassis", uri))
		str_copy(uri, sizeof(uri), "/redfish/v1/Chassis");
	ask(w, STAGE_CHASSIS_LIST, uri);
}

static void next_chassis(struct bmc_walk *w) {
	if (w->member < w->members.count) {
		ask_member(w, STAGE_CHASSIS);
		return;
	}
	w->discovered = w->chassis.score > 0;
	if (w->discovered) {
		w->full = true;
		reset_reading(w);
		ask_from(w, 0);
		return;
	}
	w->reading.reason = w->forbidden ? "bmc_forbidden" : "not_supported";
	finish(w);
}

static void feed_chassis_list(struct bmc_walk *w, const json_t *doc) {
	redfish_members(doc, &w->members);
	w->member = 0;
	next_chassis(w);
}

static void feed_chassis(struct bmc_walk *w, const json_t *doc) {
	struct bmc_chassis c;
	redfish_chassis(doc, &c);
	str_copy(c.uri, sizeof(c.uri), w->next);
	if (c.score > w->chassis.score)
		w->chassis = c;
	w->member++;
	next_chassis(w);
}

/* --- answers --- */

static void skip_chassis(struct bmc_walk *w) {
	w->member++;
	next_chassis(w);
}

static void no_power_state(struct bmc_walk *w) {
	feed_power_state(w, NULL);
}

static void no_chassis(struct bmc_walk *w) {
	w->members.count = 0;
	next_chassis(w);
}

static const struct {
	void (*feed)(struct bmc_walk *w, const json_t *doc);
	void (*failed)(struct bmc_walk *w);
	bool known; /* that the resource exists: 404 means that the service was rebuilt */
} stages[] = {
	[STAGE_CHASSIS_LIST] = {feed_chassis_list, no_chassis, false},
	[STAGE_CHASSIS] = {feed_chassis, skip_chassis, false},
	[STAGE_ENVIRONMENT] = {feed_environment, source_failed, true},
	[STAGE_POWER] = {feed_power, source_failed, true},
	[STAGE_SENSOR_LIST] = {feed_sensor_list, source_failed, false},
	[STAGE_SENSOR] = {feed_sensor, source_failed, true},
	[STAGE_SUBSYSTEM] = {feed_subsystem, source_failed, false},
	[STAGE_SUPPLY_LIST] = {feed_supply_list, source_failed, false},
	[STAGE_SUPPLY] = {feed_supply, source_failed, false},
	[STAGE_SUPPLY_METRICS] = {feed_supply_metrics, source_failed, true},
	[STAGE_POWER_STATE] = {feed_power_state, no_power_state, false},
};

static void feed(struct bmc_walk *w, int status, const json_t *doc) {
	if (doc) {
		stages[w->stage].feed(w, doc);
		return;
	}
	w->forbidden |= status == 401 || status == 403;
	if (status == 404 && stages[w->stage].known && !w->full)
		w->discovered = false;
	stages[w->stage].failed(w);
}

static bool matches(const json_t *service_root unused_arg) {
	return true;
}

const struct bmc_adaptor redfish_adaptor = {
	.name = "redfish",
	.matches = matches,
	.discover = discover,
	.begin = begin,
	.feed = feed,
};
