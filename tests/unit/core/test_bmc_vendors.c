/* Whole services as the vendors' BMCs give them, from tests/data/bmc/services: what is read, and by
 * how many requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "core/bmc/redfish.h"

static json_t *load(const char *name) {
	char path[128];
	json_error_t error;
	snprintf(path, sizeof(path), "tests/data/bmc/services/%s.json", name);
	json_t *service = json_load_file(path, 0, &error);
	if (!service)
		fail_msg("%s: %s", path, error.text);
	return service;
}

static json_t *page(const json_t *service, const char *uri) {
	char key[BMC_URI_SIZE];
	str_copy(key, sizeof(key), uri);
	size_t len = strlen(key);
	if (key[len - 1] == '/')
		key[len - 1] = '\0';
	return json_object_get(service, key);
}

static unsigned serve(struct bmc_walk *w, const json_t *service) {
	unsigned requests = 0;
	for (; w->next[0]; requests++) {
		const json_t *doc = page(service, w->next);
		assert_in_range(requests, 0, 100);
		bmc_walk_feed(w, doc ? 200 : 404, doc);
	}
	return requests;
}

static void discover(struct bmc_walk *w, const json_t *service) {
	bmc_walk_discover(w, BMC_VENDOR_AUTO, page(service, BMC_SERVICE_ROOT));
	serve(w, service);
}

/* --- what is read --- */

struct expected {
	const char *name, *vendor;
	int64_t power_mw;
	const char *source_or_reason;
	enum quality quality;
	unsigned requests_again;
	int64_t limit_mw, limit_min_mw, limit_max_mw;
	int64_t energy_counter_mj, energy_since_ms, inlet_mc;
};

#define NO_LIMIT NONE, NONE, NONE
#define NO_COUNTER NONE, NONE

static const struct expected expected[] = {
	{"dell8", "dell", 177000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, 21000},
	{"dell9", "dell", 317000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, 8826757200000,
		1625257740000, 21000},
	{"dell10", "dell", 402000, "EnvironmentMetrics", QUALITY_BMC, 1, NONE, 350000, 1400000,
		NO_COUNTER, 23500},
	{"dell10_sensor", "dell", 402000, "Sensor", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, 23500},
	{"dell10_supplies", "dell", 427000, "PSU input sum", QUALITY_DERIVED, 2, NO_LIMIT,
		NO_COUNTER, 23500},
	{"ilo4", "hpe", 93000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, 19000},
	{"ilo4_no_meter", "hpe", NONE, "not_supported", QUALITY_BMC, 3, NO_LIMIT, NO_COUNTER,
		19000},
	{"ilo5", "hpe", 246000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, 20000},
	{"ilo7", "hpe", NONE, "not_reported", QUALITY_BMC, 1, NO_LIMIT, 91234567000, NONE, NONE},
	{"openbmc", "redfish", 732000, "EnvironmentMetrics", QUALITY_BMC, 1, NONE, 2700000, 3584000,
		NO_COUNTER, NONE},
	{"openbmc_off", "redfish", NONE, "not_reported", QUALITY_BMC, 1, NONE, 2700000, 3584000,
		NO_COUNTER, NONE},
	{"xcc", "lenovo", 233000, "PowerControl", QUALITY_BMC, 1, 600000, 260000, 750000,
		NO_COUNTER, 22000},
	{"supermicro", "supermicro", 198000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER,
		24000},
	{"supermicro_gb300", "supermicro", 1212500, "EnvironmentMetrics", QUALITY_BMC, 1, NO_LIMIT,
		NO_COUNTER, NONE},
	{"dell10_sensors_alone", "dell", 287000, "Sensor", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER,
		NONE},
	{"ami", "ami", 148000, "PowerControl average", QUALITY_BMC, 1, 500000, NONE, NONE,
		NO_COUNTER, NONE},
	{"cisco", "cisco", 324000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, 26000},
	{"fujitsu", "fujitsu", 156000, "Oem ts_fujitsu", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER,
		NONE},
	{"huawei", "huawei", 187000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, 23000},
	{"inspur", "inspur", 139000, "Oem Public", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER, NONE},
	{"openubmc", "openubmc", 211000, "PowerControl", QUALITY_BMC, 1, NO_LIMIT, NO_COUNTER,
		NONE},
	{"nvidia", "nvidia", 1349264, "EnvironmentMetrics", QUALITY_BMC, 1, NO_LIMIT, 45000000000,
		NONE, NONE},
};

static void check_watts(const struct expected *x, const struct bmc_walk *w) {
	const struct bmc_reading *r = &w->reading;
	if (r->power_mw != x->power_mw)
		fail_msg("%s: %lld mW", x->name, (long long)r->power_mw);
	assert_string_equal(r->power_mw == NONE ? r->reason : r->source, x->source_or_reason);
	assert_int_equal(r->quality, x->quality);
}

static void check_extra(const char *name, const char *what, int64_t is, int64_t wanted) {
	if (is != wanted)
		fail_msg("%s: %s is %lld", name, what, (long long)is);
}

static void check_extras(const struct expected *x, const struct bmc_walk *w) {
	struct bmc_extras e;
	bmc_walk_extras(w, &e);
	check_extra(x->name, "limit", e.limit_mw, x->limit_mw);
	check_extra(x->name, "limit_min", e.limit_min_mw, x->limit_min_mw);
	check_extra(x->name, "limit_max", e.limit_max_mw, x->limit_max_mw);
	check_extra(x->name, "energy", e.energy_counter_mj, x->energy_counter_mj);
	check_extra(x->name, "since", e.energy_since_ms, x->energy_since_ms);
	check_extra(x->name, "inlet", e.inlet_mc, x->inlet_mc);
}

static void vendors_are_read(void **state unused_arg) {
	for (size_t i = 0; i < array_len(expected); i++) {
		const struct expected *x = &expected[i];
		struct bmc_walk w;
		json_t *service = load(x->name);
		discover(&w, service);
		assert_string_equal(w.adaptor->name, x->vendor);
		check_watts(x, &w);
		check_extras(x, &w);
		bmc_walk_begin(&w, false);
		unsigned requests = serve(&w, service);
		if (requests != x->requests_again)
			fail_msg("%s: %u requests again", x->name, requests);
		check_watts(x, &w);
		check_extras(x, &w);
		/* Extras asked for again are the same. */
		bmc_walk_begin(&w, true);
		serve(&w, service);
		check_watts(x, &w);
		check_extras(x, &w);
		json_decref(service);
	}
}

/* The plain reader must do for most: a firmware may not say whose it is. */
static void most_need_no_adaptor(void **state unused_arg) {
	static const char *const special[] = {"fujitsu", "inspur"};
	for (size_t i = 0; i < array_len(expected); i++) {
		struct bmc_walk w;
		json_t *service = load(expected[i].name);
		bool is_special = redfish_mentions(expected[i].name, special, array_len(special));
		bmc_walk_discover(&w, "redfish", page(service, BMC_SERVICE_ROOT));
		serve(&w, service);
		if (is_special)
			assert_true(
				w.reading.power_mw == NONE || w.reading.quality == QUALITY_DERIVED);
		else
			check_watts(&expected[i], &w);
		json_decref(service);
	}
}

/* --- supplies --- */

static const struct {
	const char *name;
	unsigned index, count;
	const char *supply, *state, *redundancy;
	int64_t input_mw, output_mw, capacity_mw, efficiency_mpct;
} supplies[] = {
	/* 900 W each are no figures of a server that takes 317 W. */
	{"dell9", 0, 2, "PS1 Status", "Enabled", "not_redundant", NONE, NONE, NONE, 93750},
	{"dell9", 1, 2, "PS2 Status", "UnavailableOffline", "not_redundant", NONE, NONE, NONE,
		93750},
	{"dell10", 0, 2, "PS1", "Enabled", "redundant", 214500, 201000, 1500000, NONE},
	{"dell10", 1, 2, "PS2", "Enabled", "redundant", 212500, NONE, 1500000, NONE},
	{"dell10_supplies", 1, 2, "PS2", "Enabled", "redundant", 212500, NONE, 1500000, NONE},
	{"ilo4", 0, 2, "HpServerPowerSupply", "Enabled", "", NONE, 93000, 500000, NONE},
	{"ilo4", 1, 2, "HpServerPowerSupply 2", "Absent", "", NONE, NONE, NONE, NONE},
	{"ilo5", 1, 2, "HpeServerPowerSupply 2", "Enabled", "redundant", NONE, 141000, NONE, NONE},
	{"openbmc", 0, 1, "powersupply0", "Enabled", "", NONE, NONE, NONE, NONE},
	{"supermicro", 0, 2, "Power Supply Bay 1", "Enabled", "", 101000, 92000, NONE, NONE},
	{"cisco", 1, 2, "PSU2", "Enabled", "", 172000, 149000, NONE, NONE},
	{"fujitsu", 0, 2, "PSU1", "Enabled", "", 156000, NONE, NONE, NONE},
	{"huawei", 1, 2, "PSU2", "Enabled", "", 92000, 83000, 900000, NONE},
	{"openubmc", 0, 2, "PSU1", "Enabled", "", 107000, 99000, NONE, NONE},
};

static void supplies_are_read(void **state unused_arg) {
	for (size_t i = 0; i < array_len(supplies); i++) {
		struct bmc_walk w;
		struct bmc_extras e;
		json_t *service = load(supplies[i].name);
		discover(&w, service);
		bmc_walk_extras(&w, &e);
		const struct host_supply *s = &e.supplies[supplies[i].index];
		assert_int_equal(e.supply_count, supplies[i].count);
		assert_string_equal(s->name, supplies[i].supply);
		assert_string_equal(s->state, supplies[i].state);
		assert_string_equal(s->redundancy, supplies[i].redundancy);
		check_extra(supplies[i].name, "input", s->input_mw, supplies[i].input_mw);
		check_extra(supplies[i].name, "output", s->output_mw, supplies[i].output_mw);
		check_extra(supplies[i].name, "capacity", s->capacity_mw, supplies[i].capacity_mw);
		check_extra(supplies[i].name, "efficiency", s->efficiency_mpct,
			supplies[i].efficiency_mpct);
		json_decref(service);
	}
}

/* --- changes --- */

static void set(json_t *service, const char *uri, const char *key, json_t *value) {
	assert_int_equal(json_object_set_new(page(service, uri), key, value), 0);
}

/* 0 is a figure of a host that is off, and of no other. */
static void zero_needs_the_power_state(void **state unused_arg) {
	struct bmc_walk w;
	json_t *service = load("ilo4_no_meter");
	set(service, "/redfish/v1/Systems/1", "PowerState", json_string("Off"));
	discover(&w, service);
	assert_int_equal(w.reading.power_mw, 0);
	assert_string_equal(w.reading.source, "PowerControl");
	json_decref(service);
}

/* A place that says 0 of a running host does not hide a better one. */
static void zero_of_one_place_is_passed_over(void **state unused_arg) {
	struct bmc_walk w;
	json_t *service = load("dell10");
	set(service, "/redfish/v1/Chassis/System.Embedded.1/EnvironmentMetrics", "PowerWatts",
		json_pack("{si}", "Reading", 0));
	discover(&w, service);
	assert_int_equal(w.reading.power_mw, 402000);
	assert_string_equal(w.reading.source, "Sensor");
	json_decref(service);
}

/* Neither are the other chassis' figures added, nor is the first one taken. */
static void one_supply_without_a_figure_spoils_the_sum(void **state unused_arg) {
	struct bmc_walk w;
	json_t *service = load("dell10_supplies");
	set(service,
		"/redfish/v1/Chassis/System.Embedded.1/PowerSubsystem/PowerSupplies/PSU.Slot.2/"
		"Metrics",
		"InputPowerWatts", json_pack("{sn}", "Reading"));
	discover(&w, service);
	assert_int_equal(w.reading.power_mw, NONE);
	assert_string_equal(w.reading.reason, "not_reported");
	json_decref(service);
}

static void the_machine_is_known_by_its_uuid(void **state unused_arg) {
	struct bmc_walk w;
	struct bmc_extras e;
	json_t *service = load("dell9");
	discover(&w, service);
	bmc_walk_extras(&w, &e);
	assert_string_equal(e.system_uuid, "4c4c4544-0034-4410-8038-b1c04f464633");
	/* It is asked for once. */
	bmc_walk_begin(&w, true);
	while (w.next[0]) {
		assert_null(strstr(w.next, "/Systems/"));
		bmc_walk_feed(&w, 200, page(service, w.next));
	}
	bmc_walk_extras(&w, &e);
	assert_string_equal(e.system_uuid, "4c4c4544-0034-4410-8038-b1c04f464633");
	json_decref(service);
}

static void a_licence_is_asked_for_once(void **state unused_arg) {
	struct bmc_walk w;
	json_t *service = load("dell9");
	discover(&w, service);
	bmc_walk_begin(&w, true);
	unsigned with = 0, without = 0;
	for (; w.next[0]; with++) {
		bool energy = strcmp(w.next, w.adaptor->own_uri) == 0;
		bmc_walk_feed(&w, energy ? 403 : 200, energy ? NULL : page(service, w.next));
	}
	bmc_walk_begin(&w, true);
	without = serve(&w, service);
	assert_int_equal(without, with - 1);
	assert_int_equal(w.reading.power_mw, 317000);
	json_decref(service);
}

static void vendors_are_known(void **state unused_arg) {
	static const char *const names[] = {"auto", "redfish", "dell", "hpe", "lenovo",
		"supermicro", "ami", "cisco", "fujitsu", "huawei", "inspur", "openubmc", "nvidia",
		"openbmc"};
	for (size_t i = 0; i < array_len(names); i++)
		assert_true(bmc_vendor_is_known(names[i]));
	assert_false(bmc_vendor_is_known("abacus"));
	assert_false(bmc_vendor_is_known(""));
}

static void words_give_a_vendor_away(void **state unused_arg) {
	static const struct {
		const char *json, *name;
	} roots[] = {
		{"{\"Vendor\":\"Cisco Systems Inc.\"}", "cisco"},
		{"{\"Name\":\"HP RESTful Root Service\"}", "hpe"},
		{"{\"Oem\":{\"ts_fujitsu\":{}}}", "fujitsu"},
		{"{\"Product\":\"AMI MegaRAC\"}", "ami"},
		{"{\"Product\":\"dynamic\"}", "redfish"},
		{"{\"Vendor\":7,\"Oem\":[]}", "redfish"},
		{"[]", "redfish"},
	};
	for (size_t i = 0; i < array_len(roots); i++) {
		json_t *root = json_loads(roots[i].json, 0, NULL);
		assert_string_equal(bmc_adaptor_choose("auto", root)->name, roots[i].name);
		assert_string_equal(bmc_adaptor_choose("dell", root)->name, "dell");
		json_decref(root);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vendors_are_read),
		cmocka_unit_test(most_need_no_adaptor),
		cmocka_unit_test(supplies_are_read),
		cmocka_unit_test(zero_needs_the_power_state),
		cmocka_unit_test(zero_of_one_place_is_passed_over),
		cmocka_unit_test(one_supply_without_a_figure_spoils_the_sum),
		cmocka_unit_test(the_machine_is_known_by_its_uuid),
		cmocka_unit_test(a_licence_is_asked_for_once),
		cmocka_unit_test(vendors_are_known),
		cmocka_unit_test(words_give_a_vendor_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
