/* Watts, caps and counters of energy. */
#include <math.h>
#include <string.h>

#include "core/bmc/redfish.h"

/* An average over more than this is not the present power. */
#define SHORT_INTERVAL_MINUTES 0.25
#define KILO_MAX_MW 1000000

void bmc_extras_init(struct bmc_extras *e) {
	*e = (struct bmc_extras){
		.limit_mw = NONE,
		.limit_min_mw = NONE,
		.limit_max_mw = NONE,
		.energy_counter_mj = NONE,
		.energy_since_ms = NONE,
		.inlet_mc = NONE,
	};
}

void bmc_reading_init(struct bmc_reading *r) {
	*r = (struct bmc_reading){
		.power_mw = NONE,
		.reason = "not_reported",
		.source = "",
		.quality = QUALITY_BMC,
	};
	bmc_extras_init(&r->more);
}

/* --- caps --- */

void redfish_cap_of(enum limit_place place, const json_t *doc, struct bmc_extras *out) {
	struct limit_found f;
	redfish_limit_find(place, doc, NULL, &f);
	out->limit_mw = f.limit_mw;
	out->limit_min_mw = f.min_mw;
	out->limit_max_mw = f.max_mw;
}

/* --- EnvironmentMetrics --- */

static void take_energy(const json_t *doc, struct bmc_extras *out) {
	/* The finer one first. */
	static const struct {
		const char *key;
		double mj;
		bool joules;
	} units[] = {{"EnergyJoules", 1e3, true}, {"EnergykWh", 3.6e9, false}};
	for (size_t i = 0; i < array_len(units); i++) {
		double v = redfish_number(redfish_excerpt(doc, units[i].key));
		if (!(v > 0 && v * units[i].mj < 9e18))
			continue;
		out->energy_counter_mj = llround(v * units[i].mj);
		out->energy_in_joules = units[i].joules;
		out->energy_since_ms = redfish_time_ms(
			json_object_get(json_object_get(doc, units[i].key), "SensorResetTime"));
		return;
	}
}

void redfish_environment(const json_t *doc, struct bmc_reading *out) {
	out->source = "EnvironmentMetrics";
	out->power_mw = redfish_watts(redfish_excerpt(doc, "PowerWatts"));
	take_energy(doc, &out->more);
	redfish_cap_of(LIMIT_ENVIRONMENT, doc, &out->more);
}

bool redfish_data_source(const json_t *doc, char out[BMC_URI_SIZE]) {
	const json_t *watts = redfish_member(json_object_get(doc, "PowerWatts"), 0);
	return redfish_take_uri(redfish_text(watts, "DataSourceUri"), out);
}

/* --- Power --- */

/* Some services list the processors or the memory beside the whole. */
static bool is_part(const json_t *control) {
	static const char *const parts[] = {"CPU", "Processor", "Memory", "DIMM", "GPU",
		"Accelerator", "Fan", "Storage", "Disk", "PCIe", "Subsystem"};
	return redfish_mentions(redfish_text(control, "Name"), parts, array_len(parts)) ||
		redfish_mentions(redfish_text(control, "PhysicalContext"), parts, array_len(parts));
}

const json_t *redfish_whole_system(const json_t *controls) {
	const json_t *chosen = NULL, *c;
	for (size_t i = 0; (c = redfish_member(controls, i)); i++) {
		if (is_part(c))
			continue;
		if (redfish_watts(json_object_get(c, "PowerConsumedWatts")) != NONE)
			return c;
		if (!chosen)
			chosen = c;
	}
	return chosen;
}

static int64_t short_average(const json_t *control) {
	const json_t *metrics = json_object_get(control, "PowerMetrics");
	double minutes = redfish_number(json_object_get(metrics, "IntervalInMin"));
	if (!(minutes > 0 && minutes <= SHORT_INTERVAL_MINUTES))
		return NONE;
	return redfish_watts(json_object_get(metrics, "AverageConsumedWatts"));
}

void redfish_power(const json_t *doc, struct bmc_reading *out) {
	const json_t *control = redfish_whole_system(json_object_get(doc, "PowerControl"));
	const struct {
		const char *source;
		int64_t power_mw;
	} figures[] = {
		{"PowerControl", redfish_watts(json_object_get(control, "PowerConsumedWatts"))},
		{"PowerControl average", short_average(control)},
		{"PowerConsumedWatts", redfish_watts(json_object_get(doc, "PowerConsumedWatts"))},
	};
	for (size_t i = 0; i < array_len(figures) && out->power_mw == NONE; i++) {
		out->power_mw = figures[i].power_mw;
		out->source = figures[i].source;
	}
	redfish_cap_of(LIMIT_POWER, doc, &out->more);
}

/* --- Sensor --- */

void redfish_sensor(const json_t *doc, struct bmc_reading *out) {
	out->source = "Sensor";
	if (strcmp(redfish_text(doc, "ReadingType"), "Power") != 0 || redfish_is_unavailable(doc))
		return;
	bool kilo = strcmp(redfish_text(doc, "ReadingUnits"), "kW") == 0;
	int64_t power_mw = redfish_watts(json_object_get(doc, "Reading"));
	if (!kilo)
		out->power_mw = power_mw;
	else if (power_mw <= KILO_MAX_MW)
		out->power_mw = power_mw == NONE ? NONE : power_mw * 1000;
}
