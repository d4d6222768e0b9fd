/*
 * iDRAC 8 and 9 count energy in an attribute, in watt-hours since a time of their own, which
 * anybody can reset. What the cap may be set to stands beside it.
 */
#include <math.h>

#include "core/bmc/redfish.h"

#define MJ_PER_WH 3.6e6

static void take_energy(const json_t *attributes, struct bmc_extras *out) {
	double wh = redfish_number(json_object_get(attributes, "ServerPwrMon.1.AccumulativePower"));
	if (!(wh > 0 && wh * MJ_PER_WH < 9e18))
		return;
	out->energy_counter_mj = llround(wh * MJ_PER_WH);
	out->energy_in_joules = false;
	out->energy_since_ms = redfish_time_ms(
		json_object_get(attributes, "ServerPwrMon.1.CumulativePowerStartTime"));
}

void dell_extras(const json_t *doc, struct bmc_extras *out) {
	take_energy(json_object_get(doc, "Attributes"), out);
	if (out->limit_mw == NONE && out->limit_max_mw == NONE)
		redfish_cap_of(LIMIT_ATTRIBUTES, doc, out);
}
