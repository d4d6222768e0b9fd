/* iLO 4 lists empty bays as supplies without a firmware. */
#include <string.h>

#include "base/parse.h"
#include "core/bmc/redfish.h"

void hpe_supplies(const json_t *power, struct bmc_extras *out) {
	const json_t *supplies = json_object_get(power, "PowerSupplies");
	for (unsigned i = 0; i < out->supply_count; i++) {
		struct host_supply *s = &out->supplies[i];
		const char *firmware = redfish_text(redfish_member(supplies, i), "FirmwareVersion");
		if (strcmp(firmware, "0.00") != 0)
			continue;
		str_copy(s->state, sizeof(s->state), "Absent");
		s->input_mw = s->output_mw = NONE;
	}
}
