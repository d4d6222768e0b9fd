/* Chassis, and what hangs on them: sensors, controls, temperatures. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "core/bmc/redfish.h"

#define FEW_CHASSIS 4
#define INLET_MIN_C (-40.0)
#define INLET_MAX_C 100.0

static const char *last_part(const char *uri) {
	const char *slash = strrchr(uri, '/');
	/* iLO 4's end with one. */
	if (slash && !slash[1] && slash != uri) {
		do
			slash--;
		while (slash > uri && *slash != '/');
	}
	return slash ? slash + 1 : uri;
}

/* --- sensors and controls --- */

/* How well a text says "the whole system's input"; 0: not at all. Best first. */
static int rank(const char *text) {
	static const char *const names[] = {"SystemBoardPwrConsumption",
		"System Board Pwr Consumption", "TotalHSC_Power", "total_power", "TotalPower",
		"Total Power", "PwrConsumption", "PowerConsumption", "SystemInputPower",
		"system_power", "SysPower", "Sys_Power", "SystemPower", "System Power"};
	for (size_t i = 0; i < array_len(names); i++) {
		if (strcasestr(text, names[i]))
			return (int)(array_len(names) - i);
	}
	return 0;
}

/* Where members are whole resources, their own words count too. */
static int sensor_rank(const json_t *member, const char *uri) {
	const char *type = redfish_text(member, "ReadingType");
	if (*type && strcmp(type, "Power") != 0)
		return 0;
	int by_uri = rank(last_part(uri)), by_name = rank(redfish_text(member, "Name"));
	bool input = *type && strcmp(redfish_text(member, "PhysicalSubContext"), "Input") == 0 &&
		strcmp(redfish_text(member, "PhysicalContext"), "Chassis") == 0;
	int named = by_uri > by_name ? by_uri : by_name;
	return named ? named : input;
}

static int control_rank(const json_t *member, const char *uri) {
	static const char *const parts[] = {"CPU", "GPU", "Processor", "Memory", "DIMM", "Fan"};
	const char *type = redfish_text(member, "ControlType"), *name = last_part(uri);
	if ((*type && strcmp(type, "Power") != 0) ||
		redfish_mentions(name, parts, array_len(parts)))
		return 0;
	return *type || strcasestr(name, "Power") || strcasestr(name, "Cap");
}

static bool choose(const json_t *collection, int (*rank_of)(const json_t *m, const char *uri),
	char out[BMC_URI_SIZE]) {
	const json_t *members = json_object_get(collection, "Members"), *m;
	int best = 0;
	for (size_t i = 0; (m = redfish_member(members, i)); i++) {
		char uri[BMC_URI_SIZE];
		int r = redfish_link(m, NULL, uri) ? rank_of(m, uri) : 0;
		if (r <= best)
			continue;
		best = r;
		str_copy(out, BMC_URI_SIZE, uri);
	}
	return best > 0;
}

bool redfish_choose_sensor(const json_t *collection, char out[BMC_URI_SIZE]) {
	return choose(collection, sensor_rank, out);
}

bool redfish_choose_control(const json_t *collection, char out[BMC_URI_SIZE]) {
	return choose(collection, control_rank, out);
}

/* --- chassis --- */

/* Enclosures of drives and parts of a server are chassis too. */
static bool is_other_chassis(const char *type) {
	static const char *const others[] = {"Enclosure", "Component", "Module", "Card", "Drawer",
		"Shelf", "Cartridge", "Zone", "Expansion"};
	return redfish_mentions(type, others, array_len(others));
}

/* The outermost of several, of which each may name the system as its own. */
static bool is_outermost(const json_t *links) {
	return json_array_size(json_object_get(links, "Contains")) > 0 &&
		!json_object_get(links, "ContainedBy");
}

void redfish_chassis(const json_t *doc, struct bmc_chassis *out) {
	*out = (struct bmc_chassis){0};
	redfish_link(doc, NULL, out->uri);
	bool measures = redfish_link(doc, "EnvironmentMetrics", out->environment);
	measures |= redfish_link(doc, "Power", out->power);
	measures |= redfish_link(doc, "PowerSubsystem", out->subsystem);
	bool senses = redfish_link(doc, "Sensors", out->sensors);
	if (!measures && !senses)
		return;
	const json_t *links = json_object_get(doc, "Links");
	out->score = 1 + is_outermost(links) +
		2 * !is_other_chassis(redfish_text(doc, "ChassisType")) +
		4 * (json_array_size(json_object_get(links, "ComputerSystems")) > 0) + 8 * measures;
}

/* GPU servers list dozens. */
static bool is_part(const char *uri) {
	static const char *const parts[] = {"GPU", "CPU", "FPGA", "NVSwitch", "NVLink", "PCIe",
		"ERoT", "IRoT", "PSU", "PowerSupply", "Cable", "Fan", "NIC", "Drive", "Storage",
		"Processor", "Retimer", "Riser", "CPLD"};
	return redfish_mentions(last_part(uri), parts, array_len(parts));
}

static void add_members(const json_t *members, bool parts_too, struct bmc_uris *out) {
	char uri[BMC_URI_SIZE];
	const json_t *m;
	bmc_uris_clear(out);
	for (size_t i = 0; (m = redfish_member(members, i)); i++) {
		if (redfish_link(m, NULL, uri) && (parts_too || !is_part(uri)) &&
			!bmc_uris_has(out, uri) && !bmc_uris_add(out, uri))
			return;
	}
}

void redfish_chassis_members(const json_t *collection, struct bmc_uris *out) {
	const json_t *members = json_object_get(collection, "Members");
	add_members(members, json_array_size(members) <= FEW_CHASSIS, out);
	if (!out->count)
		add_members(members, true, out);
}

/* --- temperatures --- */

static int64_t celsius(const json_t *v) {
	double c = redfish_number(v);
	/* Exactly 0 is what absent sensors say. */
	bool known = c >= INLET_MIN_C && c <= INLET_MAX_C && (c < 0 || c > 0);
	return known ? llround(c * 1000) : NONE;
}

static bool is_inlet(const json_t *t) {
	static const char *const names[] = {"Inlet", "Ambient", "Intake"};
	static const char *const keys[] = {
		"PhysicalContext", "Name", "DeviceName", "DataSourceUri"};
	for (size_t i = 0; i < array_len(keys); i++) {
		if (redfish_mentions(last_part(redfish_text(t, keys[i])), names, array_len(names)))
			return true;
	}
	return false;
}

static int64_t inlet_in(const json_t *list, const char *key) {
	const json_t *t;
	int64_t inlet_mc = NONE;
	for (size_t i = 0; (t = redfish_member(list, i)) && inlet_mc == NONE; i++) {
		if (is_inlet(t) && !redfish_is_unavailable(t))
			inlet_mc = celsius(json_object_get(t, key));
	}
	return inlet_mc;
}

int64_t redfish_inlet(const json_t *doc) {
	const json_t *summary = json_object_get(doc, "TemperatureSummaryCelsius");
	int64_t inlet_mc = celsius(redfish_excerpt(summary, "Intake"));
	if (inlet_mc == NONE)
		inlet_mc = inlet_in(json_object_get(doc, "TemperatureReadingsCelsius"), "Reading");
	if (inlet_mc == NONE)
		inlet_mc = inlet_in(json_object_get(doc, "Temperatures"), "ReadingCelsius");
	return inlet_mc;
}
