/* What a drive may answer beside Identify and SMART, each read from the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "priv/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
	if (!holds)
		abort();
}

static void try_limits(const uint8_t page[NVME_IDENTIFY_BYTES]) {
	struct power_table t = {.count = 1, .states = {{.operational = true, .max_uw = 25000000}}};

	must(limits_ocp_index(page) <= 127);
	if (!limits_ocp_decode(page, t.limits.ocp_states))
		return;
	t.limits.means = POWER_MEANS_OCP;
	for (int64_t mw = 0; mw < 200000; mw += 500) {
		int64_t value_mw = power_limits_value(&t, mw);

		must(value_mw == NONE || (value_mw > 0 && value_mw <= mw));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint8_t page[NVME_IDENTIFY_BYTES] = {0};
	struct drive_measurement measurement;
	struct drive_ocp ocp;

	memcpy(page, data, size < sizeof(page) ? size : sizeof(page));
	try_limits(page);
	if (drive_ocp_decode(page, &ocp))
		must(ocp.media_written_bytes >= 0 && ocp.bad_user_blocks >= 0 &&
			ocp.power_state_changes >= 0);
	drive_measurement_decode(page, &measurement);
	must(measurement.average_mw == NONE || measurement.average_mw >= 0);
	must(limits_decode(limits_encode(page[0] + 1)) == page[0] + 1);
	return 0;
}
