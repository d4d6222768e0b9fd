/* Power supplies: as Power lists them, and as resources of a PowerSubsystem. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "core/bmc/redfish.h"

#define FRACTION_MAX 1.0
#define PERCENT_MAX 100.0

/* --- one supply --- */

/* A figure under its own name, or under that name in some vendor's part. */
static int64_t figure(const json_t *supply, const char *key) {
	int64_t mw = redfish_watts(json_object_get(supply, key));
	const char *vendor;
	json_t *part;
	json_object_foreach(json_object_get(supply, "Oem"), vendor, part) {
		if (mw == NONE)
			mw = redfish_watts(json_object_get(part, key));
	}
	return mw;
}

/* Some give a fraction. */
static int64_t efficiency(const json_t *supply) {
	double v = redfish_number(json_object_get(supply, "EfficiencyPercent"));
	if (!(v > 0 && v <= PERCENT_MAX))
		return NONE;
	return llround((v <= FRACTION_MAX ? v * 100 : v) * 1000);
}

static void take_name(const json_t *supply, struct bmc_extras *e, struct host_supply *out) {
	static const char *const keys[] = {"Name", "MemberId", "Id"};
	char name[sizeof(out->name) - 4];
	name[0] = '\0';
	for (size_t i = 0; i < array_len(keys) && !name[0]; i++)
		redfish_copy_text(name, sizeof(name), redfish_text(supply, keys[i]));
	bool taken = !name[0];
	for (unsigned i = 0; i < e->supply_count; i++)
		taken |= strcmp(e->supplies[i].name, name) == 0;
	if (taken)
		snprintf(out->name, sizeof(out->name), "%s %u", name[0] ? name : "PSU",
			e->supply_count + 1);
	else
		str_copy(out->name, sizeof(out->name), name);
}

struct host_supply *redfish_supply(const json_t *doc, struct bmc_extras *e) {
	if (e->supply_count == HOST_SUPPLY_MAX) {
		e->supplies_cut = true;
		return NULL;
	}
	struct host_supply *out = &e->supplies[e->supply_count];
	*out = (struct host_supply){.input_mw = NONE, .output_mw = NONE};
	take_name(doc, e, out);
	redfish_copy_text(out->state, sizeof(out->state),
		redfish_text(json_object_get(doc, "Status"), "State"));
	out->capacity_mw = redfish_cap(json_object_get(doc, "PowerCapacityWatts"));
	out->efficiency_mpct = efficiency(doc);
	e->supply_count++;
	return out;
}

void redfish_supply_metrics(const json_t *doc, struct host_supply *out) {
	out->input_mw = redfish_watts(redfish_excerpt(doc, "InputPowerWatts"));
	out->output_mw = redfish_watts(redfish_excerpt(doc, "OutputPowerWatts"));
}

/* --- redundancy --- */

static const char *redundancy_word(const json_t *group) {
	const json_t *status = json_object_get(group, "Status");
	const char *state = redfish_text(status, "State"), *health = redfish_text(status, "Health");
	if (!*state)
		return "";
	bool good = strcmp(state, "Enabled") == 0 && (!*health || strcmp(health, "OK") == 0);
	return good ? "redundant" : "not_redundant";
}

/* Does the group, by the links under key, have this supply? One that lists none has all. */
static bool has_supply(const json_t *group, const char *key, const json_t *supply) {
	const json_t *links = json_object_get(group, key), *link;
	const char *uri = redfish_text(supply, "@odata.id");
	if (!json_array_size(links) || !*uri)
		return true;
	for (size_t i = 0; (link = json_array_get(links, i)); i++) {
		if (strcmp(redfish_text(link, "@odata.id"), uri) == 0)
			return true;
	}
	return false;
}

static const char *redundancy_in(const json_t *groups, const json_t *supply) {
	const json_t *group;
	for (size_t i = 0; (group = redfish_member(groups, i)); i++) {
		const char *word = redundancy_word(group);
		if (*word && has_supply(group, "RedundancySet", supply))
			return word;
	}
	return "";
}

void redfish_subsystem_redundancy(const json_t *doc, char out[16]) {
	const json_t *groups = json_object_get(doc, "PowerSupplyRedundancy");
	str_copy(out, 16, redundancy_word(redfish_member(groups, 0)));
}

/* --- the supplies of Power --- */

static void take_power_supply(const json_t *power, const json_t *supply, struct bmc_extras *e) {
	struct host_supply *s = redfish_supply(supply, e);
	if (!s)
		return;
	s->input_mw = figure(supply, "PowerInputWatts");
	s->output_mw = figure(supply, "PowerOutputWatts");
	if (s->output_mw == NONE)
		s->output_mw = figure(supply, "LastPowerOutputWatts");
	/* Within the supply some describe the group, others only link to it. */
	const char *word = redundancy_in(json_object_get(supply, "Redundancy"), supply);
	if (!*word)
		word = redundancy_in(json_object_get(power, "Redundancy"), supply);
	str_copy(s->redundancy, sizeof(s->redundancy), word);
}

void redfish_power_supplies(const json_t *power, struct bmc_extras *out) {
	const json_t *supplies = json_object_get(power, "PowerSupplies"), *s;
	out->supply_count = 0;
	out->supplies_cut = false;
	for (size_t i = 0; (s = redfish_member(supplies, i)) && !out->supplies_cut; i++)
		take_power_supply(power, s, out);
}

/* --- sums --- */

/* Σ over the supplies that are there; NONE when one lacks the figure. */
static int64_t sum(const struct bmc_extras *e, size_t offset) {
	int64_t sum_mw = 0;
	unsigned counted = 0;
	for (unsigned i = 0; i < e->supply_count; i++) {
		const struct host_supply *s = &e->supplies[i];
		int64_t one_mw = *(const int64_t *)((const char *)s + offset);
		if (strcmp(s->state, "Absent") == 0)
			continue;
		if (one_mw == NONE)
			return NONE;
		sum_mw += one_mw;
		counted++;
	}
	return counted && !e->supplies_cut ? sum_mw : NONE;
}

/* The most that can be: of the supplies together, or of the system. */
static int64_t capacity(const json_t *power, const struct bmc_extras *e) {
	int64_t sum_mw = sum(e, offsetof(struct host_supply, capacity_mw));
	const json_t *control = redfish_member(json_object_get(power, "PowerControl"), 0);
	int64_t system_mw = redfish_cap(json_object_get(control, "PowerCapacityWatts"));
	return sum_mw != NONE ? sum_mw : system_mw;
}

static void derive(struct bmc_reading *out, int64_t power_mw, const char *source) {
	out->power_mw = power_mw;
	out->source = source;
	out->quality = QUALITY_DERIVED;
}

void redfish_supply_sum(const json_t *power, const struct bmc_extras *e, struct bmc_reading *out) {
	static const struct {
		size_t offset;
		const char *source;
	} figures[] = {{offsetof(struct host_supply, input_mw), "PSU input sum"},
		{offsetof(struct host_supply, output_mw), "PSU output sum"}};
	int64_t most_mw = capacity(power, e);
	for (size_t i = 0; i < array_len(figures); i++) {
		int64_t sum_mw = sum(e, figures[i].offset);
		if (sum_mw == NONE || (most_mw != NONE && sum_mw > most_mw))
			continue;
		derive(out, sum_mw, figures[i].source);
		return;
	}
}

void redfish_input_sum(const struct bmc_extras *e, struct bmc_reading *out) {
	derive(out, sum(e, offsetof(struct host_supply, input_mw)), "PSU input sum");
}

void redfish_doubt_inputs(struct bmc_extras *e, int64_t power_mw) {
	int64_t sum_mw = 0;
	for (unsigned i = 0; i < e->supply_count; i++) {
		if (e->supplies[i].input_mw != NONE)
			sum_mw += e->supplies[i].input_mw;
	}
	if (power_mw <= 0 || sum_mw / 2 <= power_mw)
		return;
	for (unsigned i = 0; i < e->supply_count; i++)
		e->supplies[i].input_mw = NONE;
}
