/* What a BMC tells beside the watts: asked for one after the other, now and then. */
#include <ctype.h>
#include <string.h>

#include "base/parse.h"
#include "core/bmc/walk.h"

#define UUID_CHARS "0123456789abcdefABCDEF-"

/* --- what is known --- */

static void merge(int64_t *to, int64_t from) {
	if (*to == NONE)
		*to = from;
}

static void merge_supplies(struct bmc_extras *to, const struct bmc_extras *from) {
	if (to->supply_count)
		return;
	to->supply_count = from->supply_count;
	to->supplies_cut = from->supplies_cut;
	memcpy(to->supplies, from->supplies, sizeof(to->supplies));
}

void extras_merge(struct bmc_extras *to, const struct bmc_extras *from) {
	if (to->energy_counter_mj == NONE) {
		to->energy_counter_mj = from->energy_counter_mj;
		to->energy_since_ms = from->energy_since_ms;
		to->energy_in_joules = from->energy_in_joules;
	}
	merge_supplies(to, from);
	merge(&to->limit_mw, from->limit_mw);
	merge(&to->limit_min_mw, from->limit_min_mw);
	merge(&to->limit_max_mw, from->limit_max_mw);
	merge(&to->inlet_mc, from->inlet_mc);
}

void bmc_walk_extras(const struct bmc_walk *w, struct bmc_extras *out) {
	*out = w->reading.more;
	extras_merge(out, &w->extras);
	str_copy(out->system_uuid, sizeof(out->system_uuid), w->system_uuid);
}

void bmc_walk_drop_extras(struct bmc_walk *w) {
	bmc_extras_init(&w->extras);
	w->metrics_known = false;
}

void bmc_walk_note_limit(struct bmc_walk *w, int64_t limit_mw) {
	w->reading.more.limit_mw = w->extras.limit_mw = limit_mw;
}

void bmc_walk_limit_places(const struct bmc_walk *w, struct bmc_limit_places *out) {
	const struct bmc_chassis *c = &w->chassis[w->place % w->chassis_count];
	const struct bmc_adaptor *a = w->adaptor;
	const char *const uris[LIMIT_PLACE_COUNT_] = {
		[LIMIT_ENVIRONMENT] = c->environment,
		[LIMIT_CONTROL] = w->control[0] ? w->control : w->controls,
		[LIMIT_POWER] = c->power,
		[LIMIT_ATTRIBUTES] = a->limit_in_own && !w->no_own ? a->own_uri : "",
	};
	for (size_t i = 0; i < LIMIT_PLACE_COUNT_; i++)
		str_copy(out->uri[i], sizeof(out->uri[i]), uris[i]);
	out->control_is_list = !w->control[0];
	out->mode = a->limit_mode ? a->limit_mode : "Automatic";
}

static bool is_from(const struct bmc_walk *w, enum bmc_source source) {
	return w->reading.power_mw != NONE && w->winner / w->chassis_count == (unsigned)source;
}

/* --- one after the other; what there is no reason to ask for asks nothing --- */

static void ask_links(struct bmc_walk *w) {
	walk_ask(w, STAGE_LINKS, walk_chassis(w)->uri);
}

static void ask_more_environment(struct bmc_walk *w) {
	if (!is_from(w, BMC_SOURCE_ENVIRONMENT))
		walk_ask(w, STAGE_MORE_ENVIRONMENT, walk_chassis(w)->environment);
}

static void ask_thermal_subsystem(struct bmc_walk *w) {
	walk_ask(w, STAGE_THERMAL_SUBSYSTEM, w->thermal_subsystem);
}

static void ask_thermal(struct bmc_walk *w) {
	if (w->extras.inlet_mc == NONE)
		walk_ask(w, STAGE_THERMAL, w->thermal);
}

static void ask_supplies(struct bmc_walk *w) {
	if (!w->reading.more.supply_count && !is_from(w, BMC_SOURCE_SUPPLIES))
		supplies_begin(w);
}

static void ask_control(struct bmc_walk *w) {
	struct bmc_extras known;
	bmc_walk_extras(w, &known);
	if (known.limit_mw != NONE || known.limit_max_mw != NONE)
		return;
	if (w->control[0])
		walk_ask(w, STAGE_CONTROL, w->control);
	else
		walk_ask(w, STAGE_CONTROL_LIST, w->controls);
}

static void ask_own(struct bmc_walk *w) {
	struct bmc_extras known;
	bmc_walk_extras(w, &known);
	if (w->adaptor->own_uri && !w->no_own && known.energy_counter_mj == NONE)
		walk_ask(w, STAGE_OWN, w->adaptor->own_uri);
}

static void ask_system(struct bmc_walk *w) {
	if (!w->system_uuid[0])
		walk_ask(w, STAGE_SYSTEM, w->computer);
}

static void (*const ask_extra[])(struct bmc_walk *w) = {ask_links, ask_more_environment,
	ask_thermal_subsystem, ask_thermal, ask_supplies, ask_control, ask_own, ask_system};

static void end(struct bmc_walk *w) {
	redfish_doubt_inputs(&w->extras, w->reading.power_mw);
	/* Without a place that gives watts, nothing tells the rest again with each reading. */
	if (w->reading.power_mw == NONE)
		extras_merge(&w->extras, &w->reading.more);
}

static void ask_from(struct bmc_walk *w, unsigned from) {
	w->next[0] = '\0';
	for (unsigned i = from; i < array_len(ask_extra) && !w->next[0]; i++) {
		w->extra = (uint8_t)i;
		ask_extra[i](w);
	}
	if (!w->next[0])
		end(w);
}

void extras_begin(struct bmc_walk *w) {
	const struct bmc_extras old = w->extras;
	bool keep = is_from(w, BMC_SOURCE_SUPPLIES);
	bmc_extras_init(&w->extras);
	/* Those that the watts came from were just read. */
	if (keep)
		merge_supplies(&w->extras, &old);
	w->metrics_known &= keep;
	ask_from(w, 0);
}

void extras_next(struct bmc_walk *w) {
	ask_from(w, w->extra + 1u);
}

/* --- answers --- */

static void take_link(const json_t *doc, const char *key, char out[BMC_URI_SIZE]) {
	if (!redfish_link(doc, key, out))
		out[0] = '\0';
}

void feed_links(struct bmc_walk *w, const json_t *doc) {
	take_link(doc, "Thermal", w->thermal);
	take_link(doc, "ThermalSubsystem", w->thermal_subsystem);
	take_link(doc, "Controls", w->controls);
	take_link(json_object_get(doc, "Links"), "ComputerSystems", w->computer);
	extras_next(w);
}

void feed_more_environment(struct bmc_walk *w, const json_t *doc) {
	struct bmc_reading r;
	bmc_reading_init(&r);
	redfish_environment(doc, &r);
	extras_merge(&w->extras, &r.more);
	extras_next(w);
}

void feed_thermal_subsystem(struct bmc_walk *w, const json_t *doc) {
	char uri[BMC_URI_SIZE];
	if (redfish_link(doc, "ThermalMetrics", uri))
		walk_ask(w, STAGE_THERMAL, uri);
	else
		extras_next(w);
}

void feed_thermal(struct bmc_walk *w, const json_t *doc) {
	w->extras.inlet_mc = redfish_inlet(doc);
	extras_next(w);
}

void feed_control_list(struct bmc_walk *w, const json_t *doc) {
	if (redfish_choose_control(doc, w->control))
		walk_ask(w, STAGE_CONTROL, w->control);
	else
		extras_next(w);
}

void feed_control(struct bmc_walk *w, const json_t *doc) {
	redfish_cap_of(LIMIT_CONTROL, doc, &w->extras);
	extras_next(w);
}

void feed_own(struct bmc_walk *w, const json_t *doc) {
	w->adaptor->own_extras(doc, &w->extras);
	extras_next(w);
}

/* Not there, or not licensed: once is enough. */
void own_failed(struct bmc_walk *w) {
	w->no_own = true;
	extras_next(w);
}

void feed_system(struct bmc_walk *w, const json_t *doc) {
	const char *uuid = redfish_text(doc, "UUID");
	if (strlen(uuid) == sizeof(w->system_uuid) - 1 && !uuid[strspn(uuid, UUID_CHARS)]) {
		for (size_t i = 0; i < sizeof(w->system_uuid); i++)
			w->system_uuid[i] = (char)tolower((unsigned char)uuid[i]);
	}
	extras_next(w);
}
