/*
 * The supplies of a PowerSubsystem: the subsystem, its collection, each member, each member's
 * metrics. Once they are known, their sum needs the metrics alone.
 */
#include <string.h>

#include "base/parse.h"
#include "core/bmc/walk.h"

static void supplies_end(struct bmc_walk *w) {
	struct bmc_reading r;
	if (w->answered) {
		walk_go_on(w);
		return;
	}
	bmc_reading_init(&r);
	redfish_input_sum(&w->extras, &r);
	walk_take(w, &r);
}

static void next_metrics(struct bmc_walk *w) {
	const char *uri = "";
	while (w->member < w->metrics.count) {
		uri = bmc_uris_get(&w->metrics, w->member);
		if (*uri)
			break;
		w->member++;
	}
	if (*uri)
		walk_ask(w, STAGE_SUPPLY_METRICS, uri);
	else
		supplies_end(w);
}

static void first_metrics(struct bmc_walk *w) {
	w->member = 0;
	next_metrics(w);
}

void supplies_begin(struct bmc_walk *w) {
	if (w->metrics_known && !w->with_extras)
		first_metrics(w);
	else
		walk_ask(w, STAGE_SUBSYSTEM, walk_chassis(w)->subsystem);
}

void feed_subsystem(struct bmc_walk *w, const json_t *doc) {
	char uri[BMC_URI_SIZE];
	redfish_subsystem_redundancy(doc, w->redundancy);
	if (redfish_link(doc, "PowerSupplies", uri))
		walk_ask(w, STAGE_SUPPLY_LIST, uri);
	else
		walk_go_on(w);
}

static void add_supply(struct bmc_walk *w, const json_t *doc) {
	char uri[BMC_URI_SIZE];
	struct host_supply *s = redfish_supply(doc, &w->extras);
	if (!s)
		return;
	str_copy(s->redundancy, sizeof(s->redundancy), w->redundancy);
	if (!redfish_link(doc, "Metrics", uri))
		uri[0] = '\0';
	bmc_uris_add(&w->metrics, uri);
}

static void next_supply(struct bmc_walk *w) {
	if (w->member < w->members.count) {
		walk_ask(w, STAGE_SUPPLY, bmc_uris_get(&w->members, w->member));
		return;
	}
	w->metrics_known = true;
	first_metrics(w);
}

/* Some collections have whole resources as members, which need not be asked for. */
static bool is_expanded(const json_t *members) {
	const json_t *m;
	size_t i = 0;
	for (; (m = redfish_member(members, i)); i++) {
		if (!json_object_get(m, "Metrics"))
			return false;
	}
	return i > 0;
}

void feed_supply_list(struct bmc_walk *w, const json_t *doc) {
	const json_t *members = json_object_get(doc, "Members"), *m;
	w->extras.supply_count = 0;
	w->extras.supplies_cut = false;
	bmc_uris_clear(&w->metrics);
	redfish_members(doc, &w->members);
	w->member = 0;
	if (is_expanded(members)) {
		bmc_uris_clear(&w->members);
		for (size_t i = 0; (m = redfish_member(members, i)); i++)
			add_supply(w, m);
	}
	next_supply(w);
}

void feed_supply(struct bmc_walk *w, const json_t *doc) {
	add_supply(w, doc);
	w->member++;
	next_supply(w);
}

/* Without this one there is no sum. */
void supply_failed(struct bmc_walk *w) {
	w->extras.supplies_cut = true;
	w->member++;
	next_supply(w);
}

void feed_supply_metrics(struct bmc_walk *w, const json_t *doc) {
	redfish_supply_metrics(doc, &w->extras.supplies[w->member]);
	w->member++;
	next_metrics(w);
}

void supply_metrics_failed(struct bmc_walk *w) {
	struct host_supply *s = &w->extras.supplies[w->member];
	s->input_mw = s->output_mw = NONE;
	w->member++;
	next_metrics(w);
}
