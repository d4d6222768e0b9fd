/* Inspur and H3C without a PowerControl have the total in a part of their own. */
#include "core/bmc/redfish.h"

void inspur_power(const json_t *power, struct bmc_reading *out) {
	const json_t *own = json_object_get(json_object_get(power, "Oem"), "Public");
	out->source = "Oem Public";
	out->power_mw = redfish_watts(json_object_get(own, "TotalPower"));
}
