/* JSON from BMCs, and the reading taken out of it. */
#include <stdint.h>
#include <stddef.h>

#include "core/bmc/foreign_json.h"
#include "core/bmc/redfish.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the document, all readers take it. */
static void read_all(const json_t *doc) {
	static void (*const readers[])(const json_t *doc, struct bmc_reading *out) = {
		redfish_environment, redfish_power, redfish_power_supplies, redfish_sensor};
	struct bmc_reading reading;
	struct bmc_chassis chassis;
	struct bmc_walk walk;
	for (size_t i = 0; i < array_len(readers); i++)
		readers[i](doc, &reading);
	redfish_chassis(doc, &chassis);
	bmc_walk_discover(&walk, "auto", doc);
	for (int i = 0; i < 64 && walk.next[0]; i++)
		walk.adaptor->feed(&walk, 200, doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct foreign_json json;
	enum rc rc = foreign_json_parse((const char *)data, size, &json, NULL);
	if ((rc == RC_OK) != (json.doc != NULL) || (rc == RC_OK) != (json.reason == NULL))
		__builtin_trap();
	if (json.doc)
		read_all(json.doc);
	json_decref(json.doc);
	return 0;
}
