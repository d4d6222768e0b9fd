/* Walks over whole services, and what becomes of them when these change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "core/bmc/redfish.h"

#define C1 "/redfish/v1/Chassis/1"

struct page {
	const char *uri;
	const char *json; /* NULL ends */
};

#define ROOT \
	{ "/redfish/v1/", "{\"Chassis\":{\"@odata.id\":\"/redfish/v1/Chassis\"}}" }
#define ONE_CHASSIS \
	{ "/redfish/v1/Chassis", "{\"Members\":[{\"@odata.id\":\"" C1 "\"}]}" }
#define LINK(key, uri) "\"" key "\":{\"@odata.id\":\"" uri "\"}"

/* What is asked and how it ends. */
struct service {
	const char *name;
	int64_t power_mw;
	const char *source_or_reason;
	enum quality quality;
	unsigned requests, requests_again; /* of the first and of a later reading */
	struct page pages[16];
};

static const struct service services[] = {
	{"environment metrics", 402000, "EnvironmentMetrics", QUALITY_BMC, 3, 1,
		{ROOT, ONE_CHASSIS,
			{C1,
				"{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "," LINK(
					"Power", C1 "/Power") "}"},
			{C1 "/EnvironmentMetrics", "{\"PowerWatts\":{\"Reading\":402}}"}}},
	{"no watts there, so the sensor", 402000, "Sensor", QUALITY_BMC, 5, 1,
		{ROOT, ONE_CHASSIS,
			{C1,
				"{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "," LINK(
					"Sensors", C1 "/Sensors") "}"},
			{C1 "/EnvironmentMetrics", "{}"},
			{C1 "/Sensors",
				"{\"Members\":[{\"@odata.id\":\"" C1 "/Sensors/FanA\"},"
				"{\"@odata.id\":\"" C1 "/Sensors/SystemBoardPwrConsumption\"}]}"},
			{C1 "/Sensors/SystemBoardPwrConsumption",
				"{\"ReadingType\":\"Power\",\"Reading\":402.0}"}}},
	{"the sum of the supplies", 427000, "PSU input sum", QUALITY_DERIVED, 9, 2,
		{ROOT, ONE_CHASSIS,
			{C1,
				"{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "," LINK(
					"PowerSubsystem", C1 "/PowerSubsystem") "}"},
			{C1 "/EnvironmentMetrics", "{}"},
			{C1 "/PowerSubsystem",
				"{\"Allocation\":[]," LINK("PowerSupplies", C1 "/Supplies") "}"},
			{C1 "/Supplies",
				"{\"Members\":[{\"@odata.id\":\"" C1 "/Supplies/1\"},"
				"{\"@odata.id\":\"" C1 "/Supplies/2\"}]}"},
			{C1 "/Supplies/1", "{" LINK("Metrics", C1 "/Supplies/1/Metrics") "}"},
			{C1 "/Supplies/2", "{" LINK("Metrics", C1 "/Supplies/2/Metrics") "}"},
			{C1 "/Supplies/1/Metrics", "{\"InputPowerWatts\":{\"Reading\":214.5}}"},
			{C1 "/Supplies/2/Metrics",
				"{\"InputPowerWatts\":{\"Reading\":212.5},"
				"\"OutputPowerWatts\":{\"Reading\":null}}"}}},
	{"a supply without a figure", NONE, "not_reported", QUALITY_BMC, 6, 1,
		{ROOT, ONE_CHASSIS, {C1, "{" LINK("PowerSubsystem", C1 "/PowerSubsystem") "}"},
			{C1 "/PowerSubsystem", "{" LINK("PowerSupplies", C1 "/Supplies") "}"},
			{C1 "/Supplies", "{\"Members\":[{\"@odata.id\":\"" C1 "/Supplies/1\"}]}"},
			{C1 "/Supplies/1", "{" LINK("Metrics", C1 "/Supplies/1/Metrics") "}"},
			{C1 "/Supplies/1/Metrics",
				"{\"InputPowerWatts\":{\"Reading\":null},"
				"\"OutputPowerWatts\":{\"Reading\":201.0}}"}}},
	{"the old resource", 317000, "PowerControl", QUALITY_BMC, 3, 1,
		{ROOT, ONE_CHASSIS, {C1, "{" LINK("Power", C1 "/Power") "}"},
			{C1 "/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":317}]}"}}},
	{"its supplies", 198000, "PSU input sum", QUALITY_DERIVED, 3, 1,
		{ROOT, ONE_CHASSIS, {C1, "{" LINK("Power", C1 "/Power") "}"},
			{C1 "/Power",
				"{\"PowerControl\":[],\"PowerSupplies\":"
				"[{\"PowerInputWatts\":101},{\"PowerInputWatts\":97}]}"}}},
	{"a host that is off and silent", NONE, "not_reported", QUALITY_BMC, 3, 1,
		{ROOT, ONE_CHASSIS,
			{C1, "{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "}"},
			{C1 "/EnvironmentMetrics", "{}"}}},
	{"a host that is off and says 0", 0, "PowerControl", QUALITY_BMC, 4, 2,
		{ROOT, ONE_CHASSIS, {C1, "{\"PowerState\":\"Off\"," LINK("Power", C1 "/Power") "}"},
			{C1 "/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":0}]}"}}},
	{"a host without a meter", NONE, "not_supported", QUALITY_BMC, 4, 2,
		{ROOT, ONE_CHASSIS, {C1, "{\"PowerState\":\"On\"," LINK("Power", C1 "/Power") "}"},
			{C1 "/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":0}]}"}}},
	{"several chassis, the host's is taken", 246000, "PowerControl", QUALITY_BMC, 5, 1,
		{ROOT,
			{"/redfish/v1/Chassis",
				"{\"Members\":[{\"@odata.id\":\"/c/disks\"},{\"@odata.id\":\"/c/"
				"host\"},"
				"{\"@odata.id\":\"/c/bare\"}]}"},
			{"/c/disks",
				"{\"ChassisType\":\"StorageEnclosure\"," LINK(
					"Power", "/c/disks/Power") "}"},
			{"/c/host",
				"{\"ChassisType\":\"RackMount\"," LINK("Power",
					"/c/host/Power") ",\"Links\":{\"ComputerSystems\":[{}]}}"},
			{"/c/bare", "{\"ChassisType\":\"StorageEnclosure\"}"},
			{"/c/disks/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":99}]}"},
			{"/c/host/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":246}]}"}}},
	{"nothing that measures", NONE, "not_supported", QUALITY_BMC, 2, 0,
		{ROOT, ONE_CHASSIS, {C1, "{}"}}},
	{"a link that leads nowhere", NONE, "not_reported", QUALITY_BMC, 3, 1,
		{ROOT, ONE_CHASSIS, {C1, "{" LINK("Power", C1 "/Power") "}"}}},
};

static json_t *get_page(const struct page *pages, const char *uri) {
	for (; pages->uri; pages++) {
		if (strcmp(pages->uri, uri) == 0)
			return json_loads(pages->json, JSON_DECODE_INT_AS_REAL, NULL);
	}
	return NULL;
}

/* Returns how many were asked for until the watts were known. */
static unsigned serve(struct bmc_walk *w, const struct page *pages) {
	unsigned requests = 0, all = 0;
	while (w->next[0]) {
		requests += !w->answered;
		json_t *doc = get_page(pages, w->next);
		assert_in_range(all++, 0, 40);
		bmc_walk_feed(w, doc ? 200 : 404, doc);
		json_decref(doc);
	}
	return requests;
}

static void discover(struct bmc_walk *w, const struct page *pages) {
	json_t *root = get_page(pages, BMC_SERVICE_ROOT);
	bmc_walk_discover(w, BMC_VENDOR_AUTO, root);
	json_decref(root);
}

static void check_reading(const struct service *s, const struct bmc_walk *w) {
	const struct bmc_reading *r = &w->reading;
	if (r->power_mw != s->power_mw)
		fail_msg("%s: %lld mW", s->name, (long long)r->power_mw);
	assert_string_equal(r->power_mw == NONE ? r->reason : r->source, s->source_or_reason);
	if (r->power_mw != NONE)
		assert_int_equal(r->quality, s->quality);
}

static void services_are_walked(void **state unused_arg) {
	for (size_t i = 0; i < array_len(services); i++) {
		const struct service *s = &services[i];
		struct bmc_walk w;
		discover(&w, s->pages);
		unsigned requests = serve(&w, s->pages);
		check_reading(s, &w);
		if (requests != s->requests)
			fail_msg("%s: %u requests", s->name, requests);
		if (!w.discovered)
			continue;
		bmc_walk_begin(&w, false);
		requests = serve(&w, s->pages);
		if (requests != s->requests_again)
			fail_msg("%s: %u requests again", s->name, requests);
		if (w.discovered)
			check_reading(s, &w);
	}
}

static void a_vanished_resource_is_looked_for(void **state unused_arg) {
	static const struct page before[] = {ROOT, ONE_CHASSIS,
		{C1, "{" LINK("Power", C1 "/Power") "}"},
		{C1 "/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":317}]}"}, {0}};
	static const struct page after[] = {ROOT, ONE_CHASSIS,
		{C1, "{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "}"},
		{C1 "/EnvironmentMetrics", "{\"PowerWatts\":{\"Reading\":318}}"}, {0}};
	struct bmc_walk w;
	discover(&w, before);
	serve(&w, before);
	assert_true(w.discovered);
	bmc_walk_begin(&w, false);
	assert_int_equal(serve(&w, after), 1);
	assert_false(w.discovered);
	discover(&w, after);
	serve(&w, after);
	assert_int_equal(w.reading.power_mw, 318000);
}

static void refused_resources_say_so(void **state unused_arg) {
	struct bmc_walk w;
	discover(&w, services[0].pages);
	while (w.next[0])
		bmc_walk_feed(&w, 403, NULL);
	assert_string_equal(w.reading.reason, "bmc_forbidden");
}

static void discovery_finds_what_came_back(void **state unused_arg) {
	static const struct page off[] = {ROOT, ONE_CHASSIS,
		{C1,
			"{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "," LINK(
				"Power", C1 "/Power") "}"},
		{C1 "/EnvironmentMetrics", "{}"}, {C1 "/Power", "{}"}, {0}};
	static const struct page on[] = {ROOT, ONE_CHASSIS,
		{C1,
			"{" LINK("EnvironmentMetrics", C1 "/EnvironmentMetrics") "," LINK(
				"Power", C1 "/Power") "}"},
		{C1 "/EnvironmentMetrics", "{}"},
		{C1 "/Power", "{\"PowerControl\":[{\"PowerConsumedWatts\":317}]}"}, {0}};
	struct bmc_walk w;
	discover(&w, off);
	serve(&w, off);
	assert_int_equal(w.reading.power_mw, NONE);
	bmc_walk_begin(&w, false);
	assert_int_equal(serve(&w, on), 1);
	assert_int_equal(w.reading.power_mw, NONE);
	discover(&w, on);
	serve(&w, on);
	assert_int_equal(w.reading.power_mw, 317000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(services_are_walked),
		cmocka_unit_test(a_vanished_resource_is_looked_for),
		cmocka_unit_test(refused_resources_say_so),
		cmocka_unit_test(discovery_finds_what_came_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
