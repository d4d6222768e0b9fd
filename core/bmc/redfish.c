#include "core/bmc/redfish.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define WATTS_MAX 1e6
/* An average over more than this is not the present power. */
#define SHORT_INTERVAL_MINUTES 0.25

static const struct bmc_reading nothing = {
	.power_mw = NONE,
	.reason = "not_reported",
	.source = "",
	.quality = QUALITY_BMC,
	.limit_mw = NONE,
	.energy_counter_mj = NONE,
};

/* --- values --- */

/* A number or numeric text; NaN when it is neither. */
static double number(const json_t *v) {
	if (json_is_number(v))
		return json_number_value(v);
	const char *text = json_string_value(v);
	if (!text || !*text)
		return NAN;
	char *end;
	double value = strtod(text, &end);
	return *end ? NAN : value;
}

static bool is_sentinel(double v) {
	static const double sentinels[] = {32767, 65535, 2147483647, 4294967295};
	for (size_t i = 0; i < array_len(sentinels); i++) {
		if (v >= sentinels[i] && v <= sentinels[i])
			return true;
	}
	return false;
}

int64_t redfish_watts(const json_t *v) {
	double watts = number(v);
	/* NaN fails every comparison. */
	if (!(watts >= 0 && watts <= WATTS_MAX) || is_sentinel(watts))
		return NONE;
	return llround(watts * 1000);
}

int64_t redfish_cap(const json_t *v) {
	int64_t cap_mw = redfish_watts(v);
	return cap_mw > 0 ? cap_mw : NONE;
}

static const char *text_of(const json_t *doc, const char *key) {
	const char *s = json_string_value(json_object_get(doc, key));
	return s ? s : "";
}

/* A path on the same BMC, without a fragment. */
static bool take_uri(const char *uri, char out[BMC_URI_SIZE]) {
	size_t len = strcspn(uri, "#");
	if (uri[0] != '/' || len >= BMC_URI_SIZE)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (uri[i] <= ' ' || uri[i] > '~')
			return false;
	}
	memcpy(out, uri, len);
	out[len] = '\0';
	return true;
}

bool redfish_link(const json_t *doc, const char *key, char out[BMC_URI_SIZE]) {
	const json_t *link = key ? json_object_get(doc, key) : doc;
	return take_uri(text_of(link, "@odata.id"), out);
}

void redfish_members(const json_t *collection, struct bmc_uris *out) {
	const json_t *members = json_object_get(collection, "Members"), *m;
	out->count = 0;
	for (size_t i = 0; (m = json_array_get(members, i)) && out->count < BMC_MAX_MEMBERS; i++)
		out->count += redfish_link(m, NULL, out->uri[out->count]);
}

/* The i-th of an array; an object counts as an array of one. */
static const json_t *member(const json_t *list, size_t i) {
	return json_is_object(list) && i == 0 ? list : json_array_get(list, i);
}

static bool has_word(const char *text, const char *const *words, size_t n) {
	for (size_t i = 0; i < n; i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

/* --- EnvironmentMetrics --- */

static int64_t energy_counter(const json_t *doc) {
	static const struct {
		const char *key;
		double mj;
	} units[] = {{"EnergykWh", 3.6e9}, {"EnergyJoules", 1e3}};
	for (size_t i = 0; i < array_len(units); i++) {
		double v = number(json_object_get(json_object_get(doc, units[i].key), "Reading"));
		if (v > 0 && v * units[i].mj < 9e18)
			return llround(v * units[i].mj);
	}
	return NONE;
}

void redfish_environment(const json_t *doc, struct bmc_reading *out) {
	*out = nothing;
	out->source = "EnvironmentMetrics";
	out->power_mw =
		redfish_watts(json_object_get(json_object_get(doc, "PowerWatts"), "Reading"));
	out->energy_counter_mj = energy_counter(doc);
	const json_t *limit = json_object_get(doc, "PowerLimitWatts");
	if (strcmp(text_of(limit, "ControlMode"), "Disabled") != 0)
		out->limit_mw = redfish_cap(json_object_get(limit, "SetPoint"));
}

bool redfish_data_source(const json_t *doc, char out[BMC_URI_SIZE]) {
	return take_uri(text_of(json_object_get(doc, "PowerWatts"), "DataSourceUri"), out);
}

/* --- Power --- */

/* Some services list the processors or the memory beside the whole. */
static bool is_part(const json_t *control) {
	static const char *const parts[] = {"CPU", "Processor", "Memory", "DIMM", "GPU",
		"Accelerator", "Fan", "Storage", "Disk", "PCIe", "Subsystem"};
	return has_word(text_of(control, "Name"), parts, array_len(parts)) ||
		has_word(text_of(control, "PhysicalContext"), parts, array_len(parts));
}

/* The member for the whole system: the first that is no part and has a reading, else the first
 * that is no part. */
static const json_t *whole_system(const json_t *controls) {
	const json_t *chosen = NULL, *c;
	for (size_t i = 0; (c = member(controls, i)); i++) {
		if (is_part(c))
			continue;
		if (redfish_watts(json_object_get(c, "PowerConsumedWatts")) != NONE)
			return c;
		if (!chosen)
			chosen = c;
	}
	return chosen ? chosen : member(controls, 0);
}

static int64_t short_average(const json_t *control) {
	const json_t *metrics = json_object_get(control, "PowerMetrics");
	double minutes = number(json_object_get(metrics, "IntervalInMin"));
	if (!(minutes > 0 && minutes <= SHORT_INTERVAL_MINUTES))
		return NONE;
	return redfish_watts(json_object_get(metrics, "AverageConsumedWatts"));
}

void redfish_power(const json_t *doc, struct bmc_reading *out) {
	*out = nothing;
	const json_t *control = whole_system(json_object_get(doc, "PowerControl"));
	out->source = "PowerControl";
	out->power_mw = redfish_watts(json_object_get(control, "PowerConsumedWatts"));
	out->limit_mw = redfish_cap(
		json_object_get(json_object_get(control, "PowerLimit"), "LimitInWatts"));
	if (out->power_mw == NONE) {
		out->power_mw = short_average(control);
		out->source = "PowerControl average";
	}
}

/* --- supplies --- */

static bool is_absent(const json_t *supply) {
	return strcmp(text_of(json_object_get(supply, "Status"), "State"), "Absent") == 0;
}

/* Σ of one figure over all supplies that are there; NONE when one lacks it, or the sum is more
 * than they could deliver. */
static int64_t sum_over_supplies(const json_t *supplies, const char *key) {
	int64_t sum_mw = 0, capacity_mw = 0;
	const json_t *s;
	size_t counted = 0;
	for (size_t i = 0; (s = member(supplies, i)); i++) {
		if (is_absent(s))
			continue;
		int64_t one_mw = redfish_watts(json_object_get(s, key));
		int64_t most_mw = redfish_cap(json_object_get(s, "PowerCapacityWatts"));
		if (one_mw == NONE)
			return NONE;
		sum_mw += one_mw;
		capacity_mw = most_mw == NONE || capacity_mw == NONE ? NONE : capacity_mw + most_mw;
		counted++;
	}
	bool plausible = capacity_mw == NONE || sum_mw <= capacity_mw;
	return counted && plausible ? sum_mw : NONE;
}

void redfish_power_supplies(const json_t *doc, struct bmc_reading *out) {
	static const struct {
		const char *key, *source;
	} figures[] = {
		{"PowerInputWatts", "PSU input sum"}, {"LastPowerOutputWatts", "PSU output sum"}};
	*out = nothing;
	out->quality = QUALITY_DERIVED;
	for (size_t i = 0; i < array_len(figures) && out->power_mw == NONE; i++) {
		out->source = figures[i].source;
		out->power_mw =
			sum_over_supplies(json_object_get(doc, "PowerSupplies"), figures[i].key);
	}
}

int64_t redfish_supply_input(const json_t *doc) {
	return redfish_watts(json_object_get(json_object_get(doc, "InputPowerWatts"), "Reading"));
}

/* --- Sensor --- */

void redfish_sensor(const json_t *doc, struct bmc_reading *out) {
	*out = nothing;
	out->source = "Sensor";
	if (strcmp(text_of(doc, "ReadingType"), "Power") == 0)
		out->power_mw = redfish_watts(json_object_get(doc, "Reading"));
}

/* How well a sensor's name says "the whole system's input"; 0: not at all. Best first. */
static int sensor_rank(const char *uri) {
	static const char *const names[] = {"SystemBoardPwrConsumption", "total_power",
		"TotalPower", "PwrConsumption", "PowerConsumption", "SystemInputPower",
		"system_power", "SysPower", "SystemPower"};
	const char *last = strrchr(uri, '/');
	for (size_t i = 0; last && i < array_len(names); i++) {
		if (strcasestr(last, names[i]))
			return (int)(array_len(names) - i);
	}
	return 0;
}

bool redfish_choose_sensor(const json_t *collection, char out[BMC_URI_SIZE]) {
	const json_t *members = json_object_get(collection, "Members"), *m;
	int best = 0;
	for (size_t i = 0; (m = member(members, i)); i++) {
		char uri[BMC_URI_SIZE];
		int rank = redfish_link(m, NULL, uri) ? sensor_rank(uri) : 0;
		if (rank <= best)
			continue;
		best = rank;
		str_copy(out, BMC_URI_SIZE, uri);
	}
	return best > 0;
}

/* --- Chassis --- */

/* Enclosures of drives and parts of a server are chassis too. */
static bool is_other_chassis(const char *type) {
	static const char *const others[] = {"StorageEnclosure", "Component", "Module", "Card",
		"Drawer", "Shelf", "Cartridge", "Zone", "Expansion"};
	return has_word(type, others, array_len(others));
}

void redfish_chassis(const json_t *doc, struct bmc_chassis *out) {
	*out = (struct bmc_chassis){0};
	redfish_link(doc, NULL, out->uri);
	bool measures = redfish_link(doc, "EnvironmentMetrics", out->environment);
	measures |= redfish_link(doc, "Power", out->power);
	measures |= redfish_link(doc, "PowerSubsystem", out->subsystem);
	redfish_link(doc, "Sensors", out->sensors);
	if (!measures)
		return;
	const json_t *systems = json_object_get(json_object_get(doc, "Links"), "ComputerSystems");
	out->score = 1 + 2 * !is_other_chassis(text_of(doc, "ChassisType")) +
		4 * (json_array_size(systems) > 0);
}

bool redfish_is_off(const json_t *chassis) {
	return strcmp(text_of(chassis, "PowerState"), "Off") == 0;
}
