/* iRMC keeps the watts of the chassis and of each supply in its own part of Power. */
#include <string.h>

#include "core/bmc/redfish.h"

static const json_t *own_part(const json_t *power) {
	return json_object_get(json_object_get(power, "Oem"), "ts_fujitsu");
}

static int64_t current(const json_t *sensor) {
	return redfish_watts(json_object_get(sensor, "CurrentPowerConsumptionW"));
}

static int64_t total(const json_t *sensors) {
	static const char *const names[] = {"Total", "Total Power"};
	const json_t *s;
	for (size_t i = 0; (s = redfish_member(sensors, i)); i++) {
		for (size_t n = 0; n < array_len(names); n++) {
			if (strcmp(redfish_text(s, "Designation"), names[n]) == 0)
				return current(s);
		}
	}
	return NONE;
}

void fujitsu_power(const json_t *power, struct bmc_reading *out) {
	const json_t *own = own_part(power);
	out->source = "Oem ts_fujitsu";
	out->power_mw = current(json_object_get(own, "ChassisPowerConsumption"));
	if (out->power_mw == NONE)
		out->power_mw = total(json_object_get(own, "ChassisPowerSensors"));
}

/* The sensor of a supply is named after it: "PSU1 Power". */
static int64_t input_of(const json_t *sensors, const char *name) {
	const json_t *s;
	size_t len = strlen(name);
	for (size_t i = 0; len && (s = redfish_member(sensors, i)); i++) {
		const char *what = redfish_text(s, "Designation");
		if (strncmp(what, name, len) == 0 && (!what[len] || what[len] == ' '))
			return current(s);
	}
	return NONE;
}

void fujitsu_supplies(const json_t *power, struct bmc_extras *out) {
	const json_t *sensors = json_object_get(own_part(power), "ChassisPowerSensors");
	for (unsigned i = 0; i < out->supply_count; i++) {
		struct host_supply *s = &out->supplies[i];
		if (s->input_mw == NONE)
			s->input_mw = input_of(sensors, s->name);
	}
}
