/* The readers of single resources, from tests/data/bmc and from the text below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "core/bmc/redfish.h"

/* --- single resources --- */

static json_t *load(const char *name) {
	char path[128];
	json_error_t error;
	snprintf(path, sizeof(path), "tests/data/bmc/%s.json", name);
	json_t *doc = json_load_file(path, 0, &error);
	if (!doc)
		fail_msg("%s: %s", path, error.text);
	return doc;
}

static void read_supply_sum(const json_t *doc, struct bmc_reading *out) {
	struct bmc_extras e;
	bmc_extras_init(&e);
	redfish_power_supplies(doc, &e);
	redfish_supply_sum(doc, &e, out);
}

static const struct {
	const char *name;
	void (*read)(const json_t *doc, struct bmc_reading *out);
	int64_t power_mw;
	const char *source;
	int64_t limit_mw, energy_counter_mj;
} resources[] = {
	{"environment", redfish_environment, 402000, "EnvironmentMetrics", NONE, NONE},
	{"environment_without_watts", redfish_environment, NONE, NULL, NONE, NONE},
	{"environment_limit_disabled", redfish_environment, 732000, "EnvironmentMetrics", NONE,
		NONE},
	{"environment_host_off", redfish_environment, NONE, NULL, NONE, NONE},
	{"environment_joules_only", redfish_environment, NONE, NULL, NONE, 91234567000},
	{"power_sentinel_limit", redfish_power, 317000, "PowerControl", NONE, NONE},
	/* 900 W of input each is a name plate: more than the system can have. */
	{"power_sentinel_limit", read_supply_sum, NONE, NULL, NONE, NONE},
	{"power_zeros", redfish_power, 0, "PowerControl", NONE, NONE},
	{"power_average", redfish_power, 148000, "PowerControl average", 500000, NONE},
	{"power_average", read_supply_sum, 145000, "PSU output sum", NONE, NONE},
	{"power_supplies", redfish_power, NONE, NULL, NONE, NONE},
	{"power_supplies", read_supply_sum, 198000, "PSU input sum", NONE, NONE},
	{"power_parts", redfish_power, 246000, "PowerControl", NONE, NONE},
	{"power_object", redfish_power, 93000, "PowerControl", NONE, NONE},
	{"sensor", redfish_sensor, 402000, "Sensor", NONE, NONE},
	{"sensor_null", redfish_sensor, NONE, NULL, NONE, NONE},
	{"subsystem", redfish_environment, NONE, NULL, NONE, NONE},
};

static void resources_are_read(void **state unused_arg) {
	for (size_t i = 0; i < array_len(resources); i++) {
		struct bmc_reading r;
		json_t *doc = load(resources[i].name);
		bmc_reading_init(&r);
		resources[i].read(doc, &r);
		json_decref(doc);
		if (r.power_mw != resources[i].power_mw)
			fail_msg("%s: %lld mW", resources[i].name, (long long)r.power_mw);
		if (resources[i].source)
			assert_string_equal(r.source, resources[i].source);
		assert_int_equal(r.more.limit_mw, resources[i].limit_mw);
		assert_int_equal(r.more.energy_counter_mj, resources[i].energy_counter_mj);
	}
}

static void watts_are_watts(void **state unused_arg) {
	static const struct {
		const char *json;
		int64_t power_mw, cap_mw;
	} values[] = {
		{"150", 150000, 150000},
		{"0", 0, NONE},
		{"214.5", 214500, 214500},
		{"\"246\"", 246000, 246000},
		{"\"\"", NONE, NONE},
		{"\"12 W\"", NONE, NONE},
		{"\"0x10\"", NONE, NONE},
		{"null", NONE, NONE},
		{"true", NONE, NONE},
		{"-1", NONE, NONE},
		{"32767", NONE, NONE},
		{"65535", NONE, NONE},
		{"2147483647", NONE, NONE},
		{"4294967295", NONE, NONE},
		{"1e300", NONE, NONE},
		{"\"nan\"", NONE, NONE},
		{"{}", NONE, NONE},
	};
	for (size_t i = 0; i < array_len(values); i++) {
		json_t *v = json_loads(values[i].json, JSON_DECODE_ANY, NULL);
		assert_non_null(v);
		assert_int_equal(redfish_watts(v), values[i].power_mw);
		assert_int_equal(redfish_cap(v), values[i].cap_mw);
		json_decref(v);
	}
	assert_int_equal(redfish_watts(NULL), NONE);
}

static void links_stay_on_the_bmc(void **state unused_arg) {
	static const struct {
		const char *uri, *out;
	} links[] = {
		{"/redfish/v1/Chassis/1", "/redfish/v1/Chassis/1"},
		{"/redfish/v1/Chassis/1/Power#/PowerControl/0", "/redfish/v1/Chassis/1/Power"},
		{"https://elsewhere/redfish", NULL},
		{"@elsewhere/", NULL},
		{"//elsewhere/redfish", NULL},
		{"/a b", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < array_len(links); i++) {
		char out[BMC_URI_SIZE];
		json_t *doc = json_pack("{s{ss}}", "L", "@odata.id", links[i].uri);
		assert_int_equal(redfish_link(doc, "L", out), links[i].out != NULL);
		if (links[i].out)
			assert_string_equal(out, links[i].out);
		json_decref(doc);
	}
}

/* --- text of our own --- */

static json_t *parse(const char *text) {
	json_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(doc);
	return doc;
}

static void excerpts_come_in_several_shapes(void **state unused_arg) {
	static const char *const shapes[] = {"{\"PowerWatts\":{\"Reading\":402}}",
		"{\"PowerWatts\":{\"Reading\":\"402\"}}", "{\"PowerWatts\":[{\"Reading\":402}]}",
		"{\"PowerWatts\":402}"};
	for (size_t i = 0; i < array_len(shapes); i++) {
		struct bmc_reading r;
		json_t *doc = parse(shapes[i]);
		bmc_reading_init(&r);
		redfish_environment(doc, &r);
		assert_int_equal(r.power_mw, 402000);
		json_decref(doc);
	}
}

static void caps_have_their_range(void **state unused_arg) {
	static const struct {
		const char *json;
		int64_t limit_mw, min_mw, max_mw;
	} controls[] = {
		{"{\"SetPoint\":600,\"AllowableMin\":350,\"AllowableMax\":1400}", 600000, 350000,
			1400000},
		{"{\"SetPoint\":600,\"ControlMode\":\"Disabled\"}", NONE, NONE, NONE},
		{"{\"SetPoint\":null,\"ControlMode\":\"Automatic\",\"AllowableMin\":2700,"
		 "\"AllowableMax\":3584}",
			NONE, 2700000, 3584000},
		{"{\"SetPoint\":65535,\"AllowableMin\":9,\"AllowableMax\":8}", NONE, NONE, NONE},
		{"{\"SetPoint\":70,\"ControlType\":\"Temperature\"}", NONE, NONE, NONE},
	};
	for (size_t i = 0; i < array_len(controls); i++) {
		struct bmc_extras e;
		json_t *doc = parse(controls[i].json);
		bmc_extras_init(&e);
		redfish_cap_of(LIMIT_CONTROL, doc, &e);
		assert_int_equal(e.limit_mw, controls[i].limit_mw);
		assert_int_equal(e.limit_min_mw, controls[i].min_mw);
		assert_int_equal(e.limit_max_mw, controls[i].max_mw);
		json_decref(doc);
	}
}

static void counters_have_their_units(void **state unused_arg) {
	static const struct {
		const char *json;
		int64_t counter_mj, since_ms;
		bool joules;
	} counters[] = {
		{"{\"EnergykWh\":{\"Reading\":12.5}}", 45000000000, NONE, false},
		{"{\"EnergyJoules\":{\"Reading\":91234567.0},\"EnergykWh\":{\"Reading\":25.3}}",
			91234567000, NONE, true},
		{"{\"EnergykWh\":{\"Reading\":1,\"SensorResetTime\":\"2024-05-01T00:00:00Z\"}}",
			3600000000, 1714521600000, false},
		{"{\"EnergykWh\":{\"Reading\":0}}", NONE, NONE, false},
		{"{\"EnergykWh\":{\"Reading\":1e30}}", NONE, NONE, false},
		{"{\"EnergykWh\":{\"Reading\":1,\"SensorResetTime\":\"1970-01-01T00:00:12Z\"}}",
			3600000000, NONE, false},
	};
	for (size_t i = 0; i < array_len(counters); i++) {
		struct bmc_reading r;
		json_t *doc = parse(counters[i].json);
		bmc_reading_init(&r);
		redfish_environment(doc, &r);
		assert_int_equal(r.more.energy_counter_mj, counters[i].counter_mj);
		assert_int_equal(r.more.energy_since_ms, counters[i].since_ms);
		assert_int_equal(r.more.energy_in_joules, counters[i].joules);
		json_decref(doc);
	}
}

static void sensors_are_chosen(void **state unused_arg) {
	static const struct {
		const char *json, *uri;
	} lists[] = {
		{"{\"Members\":[{\"@odata.id\":\"/s/fan0\"},{\"@odata.id\":\"/s/total_power\"}]}",
			"/s/total_power"},
		{"{\"Members\":[{\"@odata.id\":\"/s/A_TotalGPU_Power_0\"},"
		 "{\"@odata.id\":\"/s/A_TotalHSC_Power_0\"}]}",
			"/s/A_TotalHSC_Power_0"},
		{"{\"Members\":[{\"@odata.id\":\"/s/12\",\"Name\":\"Total Power\","
		 "\"ReadingType\":\"Power\"}]}",
			"/s/12"},
		{"{\"Members\":[{\"@odata.id\":\"/s/12\",\"ReadingType\":\"Power\","
		 "\"PhysicalContext\":\"Chassis\",\"PhysicalSubContext\":\"Input\"}]}",
			"/s/12"},
		{"{\"Members\":[{\"@odata.id\":\"/s/total_power\",\"ReadingType\":\"Voltage\"}]}",
			NULL},
		{"{\"Members\":{}}", NULL},
	};
	for (size_t i = 0; i < array_len(lists); i++) {
		char uri[BMC_URI_SIZE];
		json_t *doc = parse(lists[i].json);
		assert_int_equal(redfish_choose_sensor(doc, uri), lists[i].uri != NULL);
		if (lists[i].uri)
			assert_string_equal(uri, lists[i].uri);
		json_decref(doc);
	}
}

static void inlets_are_found(void **state unused_arg) {
	static const struct {
		const char *json;
		int64_t inlet_mc;
	} thermals[] = {
		{"{\"TemperatureSummaryCelsius\":{\"Intake\":{\"Reading\":21.5}}}", 21500},
		{"{\"TemperatureReadingsCelsius\":[{\"DataSourceUri\":\"/x/Sensors/InletTemp\","
		 "\"Reading\":22}]}",
			22000},
		{"{\"Temperatures\":[{\"Name\":\"CPU\",\"ReadingCelsius\":60},"
		 "{\"Name\":\"01-Inlet Ambient\",\"ReadingCelsius\":\"19\"}]}",
			19000},
		{"{\"Temperatures\":[{\"Name\":\"Inlet\",\"ReadingCelsius\":0}]}", NONE},
		{"{\"Temperatures\":[{\"Name\":\"Inlet\",\"ReadingCelsius\":22,"
		 "\"Status\":{\"State\":\"Absent\"}}]}",
			NONE},
		{"{\"Temperatures\":[{\"Name\":\"Inlet\",\"ReadingCelsius\":255}]}", NONE},
		{"{}", NONE},
	};
	for (size_t i = 0; i < array_len(thermals); i++) {
		json_t *doc = parse(thermals[i].json);
		assert_int_equal(redfish_inlet(doc), thermals[i].inlet_mc);
		json_decref(doc);
	}
}

static void supplies_are_read(void **state unused_arg) {
	static const char *const power =
		"{\"PowerSupplies\":["
		"{\"@odata.id\":\"/p#0\",\"Name\":\"PSU\",\"PowerInputWatts\":\"101\","
		"\"EfficiencyPercent\":0.9375,\"PowerCapacityWatts\":0,"
		"\"Status\":{\"State\":\"Enabled\"}},"
		"{\"@odata.id\":\"/p#1\",\"Name\":\"PSU\",\"LastPowerOutputWatts\":88,"
		"\"EfficiencyPercent\":94,\"PowerCapacityWatts\":800},"
		"{\"MemberId\":2,\"Name\":\"caf\\u00e9\",\"PowerInputWatts\":null},"
		"{}],\"Redundancy\":["
		"{\"RedundancySet\":[{\"@odata.id\":\"/p#1\"}],"
		"\"Status\":{\"State\":\"Enabled\",\"Health\":\"Critical\"}},"
		"{\"RedundancySet\":[{\"@odata.id\":\"/p#0\"}],"
		"\"Status\":{\"State\":\"Enabled\",\"Health\":\"OK\"}}]}";
	struct bmc_extras e;
	json_t *doc = parse(power);
	bmc_extras_init(&e);
	redfish_power_supplies(doc, &e);
	assert_int_equal(e.supply_count, 4);
	assert_string_equal(e.supplies[0].name, "PSU");
	assert_string_equal(e.supplies[0].state, "Enabled");
	assert_string_equal(e.supplies[0].redundancy, "redundant");
	assert_int_equal(e.supplies[0].input_mw, 101000);
	assert_int_equal(e.supplies[0].output_mw, NONE);
	assert_int_equal(e.supplies[0].capacity_mw, NONE);
	assert_int_equal(e.supplies[0].efficiency_mpct, 93750);
	assert_string_equal(e.supplies[1].name, "PSU 2");
	assert_string_equal(e.supplies[1].redundancy, "not_redundant");
	assert_int_equal(e.supplies[1].output_mw, 88000);
	assert_int_equal(e.supplies[1].capacity_mw, 800000);
	assert_int_equal(e.supplies[1].efficiency_mpct, 94000);
	assert_string_equal(e.supplies[2].name, "caf??");
	assert_int_equal(e.supplies[2].input_mw, NONE);
	assert_string_equal(e.supplies[3].name, "PSU 4");
	json_decref(doc);
}

static void more_supplies_than_there_is_room_for(void **state unused_arg) {
	struct bmc_extras e;
	struct bmc_reading r;
	json_t *doc = json_object(), *list = json_array();
	for (int i = 0; i < 40; i++)
		json_array_append_new(list, json_pack("{si}", "PowerInputWatts", 10));
	json_object_set_new(doc, "PowerSupplies", list);
	bmc_extras_init(&e);
	bmc_reading_init(&r);
	redfish_power_supplies(doc, &e);
	assert_int_equal(e.supply_count, HOST_SUPPLY_MAX);
	redfish_supply_sum(doc, &e, &r);
	assert_int_equal(r.power_mw, NONE);
	json_decref(doc);
}

static void add_chassis(json_t *collection, const char *name, int n) {
	char uri[64];
	snprintf(uri, sizeof(uri), "/c/%s_%d", name, n);
	json_array_append_new(
		json_object_get(collection, "Members"), json_pack("{ss}", "@odata.id", uri));
}

static void long_lists_leave_parts_out(void **state unused_arg) {
	struct bmc_uris u;
	json_t *collection = json_pack("{s[]}", "Members");
	for (int i = 0; i < 3; i++)
		add_chassis(collection, "HGX_GPU", i);
	redfish_chassis_members(collection, &u);
	assert_int_equal(u.count, 3);
	for (int i = 0; i < 200; i++)
		add_chassis(collection, "HGX_CPU", i);
	/* More parts than there is room for: nothing but parts. */
	redfish_chassis_members(collection, &u);
	assert_int_equal(u.count, BMC_MAX_MEMBERS);
	add_chassis(collection, "Chassis", 0);
	add_chassis(collection, "HGX_Chassis", 0);
	add_chassis(collection, "Chassis", 0);
	redfish_chassis_members(collection, &u);
	assert_int_equal(u.count, 2);
	assert_string_equal(bmc_uris_get(&u, 0), "/c/Chassis_0");
	assert_string_equal(bmc_uris_get(&u, 1), "/c/HGX_Chassis_0");
	assert_string_equal(bmc_uris_get(&u, 2), "");
	json_decref(collection);
}

/* Of several, the host's own. */
static void the_outermost_chassis_wins(void **state unused_arg) {
	static const char *const worst_first[] = {
		"{\"Power\":{}}",
		"{\"Sensors\":{\"@odata.id\":\"/s\"},\"ChassisType\":\"Module\"}",
		"{\"Sensors\":{\"@odata.id\":\"/s\"},\"ChassisType\":\"RackMount\",\"Links\":{"
		"\"ComputerSystems\":[{}],\"Contains\":[{}]}}",
		"{\"Power\":{\"@odata.id\":\"/p\"},\"ChassisType\":\"Enclosure\"}",
		"{\"Power\":{\"@odata.id\":\"/p\"},\"ChassisType\":\"RackMount\"}",
		"{\"Power\":{\"@odata.id\":\"/p\"},\"ChassisType\":\"Component\",\"Links\":{"
		"\"ComputerSystems\":[{}],\"Contains\":[{}],\"ContainedBy\":{}}}",
		"{\"Power\":{\"@odata.id\":\"/p\"},\"ChassisType\":\"Shelf\",\"Links\":{"
		"\"ComputerSystems\":[{}],\"Contains\":[{}]}}",
		"{\"Power\":{\"@odata.id\":\"/p\"},\"ChassisType\":\"Blade\",\"Links\":{"
		"\"ComputerSystems\":[{}],\"ContainedBy\":{}}}",
	};
	int before = -1;
	for (size_t i = 0; i < array_len(worst_first); i++) {
		struct bmc_chassis c;
		json_t *doc = parse(worst_first[i]);
		redfish_chassis(doc, &c);
		if (c.score <= before)
			fail_msg("%s: %d", worst_first[i], c.score);
		before = c.score;
		json_decref(doc);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resources_are_read),
		cmocka_unit_test(watts_are_watts),
		cmocka_unit_test(links_stay_on_the_bmc),
		cmocka_unit_test(excerpts_come_in_several_shapes),
		cmocka_unit_test(caps_have_their_range),
		cmocka_unit_test(counters_have_their_units),
		cmocka_unit_test(sensors_are_chosen),
		cmocka_unit_test(inlets_are_found),
		cmocka_unit_test(supplies_are_read),
		cmocka_unit_test(more_supplies_than_there_is_room_for),
		cmocka_unit_test(long_lists_leave_parts_out),
		cmocka_unit_test(the_outermost_chassis_wins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
