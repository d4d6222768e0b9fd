/* JSON from BMCs, and the reading taken out of it. */
#include <stdint.h>
#include <stddef.h>

#include "core/bmc/foreign_json.h"
#include "core/bmc/redfish.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_limits(const json_t *doc) {
	char text[160];
	struct limit_found f;
	redfish_complaint(doc, text, sizeof(text));
	for (int p = 0; p < LIMIT_PLACE_COUNT_; p++) {
		if (!redfish_limit_find((enum limit_place)p, doc, "Automatic", &f))
			continue;
		for (unsigned n = 0; n < 3; n++)
			redfish_limit_body(
				(enum limit_place)p, &f, f.limit_mw, n, text, sizeof(text));
	}
}

/* Whatever the document, all readers take it. */
static void read_all(const json_t *doc) {
	static void (*const readers[])(const json_t *doc, struct bmc_reading *out) = {
		redfish_environment, redfish_power, redfish_sensor, fujitsu_power, inspur_power};
	static void (*const supplies[])(const json_t *doc, struct bmc_extras *out) = {
		redfish_power_supplies, hpe_supplies, fujitsu_supplies, dell_extras};
	struct bmc_reading r;
	struct bmc_chassis chassis;
	bmc_reading_init(&r);
	for (size_t i = 0; i < array_len(readers); i++)
		readers[i](doc, &r);
	for (size_t i = 0; i < array_len(supplies); i++)
		supplies[i](doc, &r.more);
	redfish_supply_sum(doc, &r.more, &r);
	redfish_doubt_inputs(&r.more, r.power_mw);
	redfish_inlet(doc);
	read_limits(doc);
	redfish_chassis(doc, &chassis);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct foreign_json json;
	enum rc rc = foreign_json_parse((const char *)data, size, &json, NULL);
	if ((rc == RC_OK || rc == RC_REFUSED) != (json.doc != NULL) ||
		(rc == RC_OK) != (json.reason == NULL))
		__builtin_trap();
	if (json.doc)
		read_all(json.doc);
	json_decref(json.doc);
	return 0;
}
