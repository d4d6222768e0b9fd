/* What a drive may answer to Identify Controller and for its health, in this order. */
#include <stdint.h>
#include <string.h>

#include "model/drive.h"
#include "priv/nvme.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_state(const struct power_state *s, uint8_t count) {
	if (s->state >= count || s->active_workload > 2 || s->relative_read_latency >= (int)count ||
		(s->max_uw < 0 && s->max_uw != NONE))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint8_t identify[NVME_IDENTIFY_BYTES] = {0}, log[NVME_SMART_BYTES] = {0};
	struct drive_detail detail = {0};
	struct drive_health health;
	size_t first = size < sizeof(identify) ? size : sizeof(identify);
	size_t second = size - first < sizeof(log) ? size - first : sizeof(log);

	memcpy(identify, data, first);
	memcpy(log, data + first, second);
	drive_health_decode(log, &health);
	if (nvme_identify_decode(identify, &detail, NULL) != RC_OK)
		return 0;
	for (uint8_t i = 0; i < detail.power.count; i++)
		check_state(&detail.power.states[i], detail.power.count);
	return 0;
}
