/* Logs beside SMART: OCP's and NVMe 2.3's measurement of power. */
#include <string.h>

#include "model/drive.h"
#include "model/le.h"

/* --- OCP Datacenter NVMe SSD Specification 2.0, SMART / Health Information Extended (C0h) -------
 */

#define OCP_GUID_AT 496

static int64_t saturated(uint64_t v) {
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* The low bytes of a counter; what stands above is beyond any count. */
static int64_t counter(const uint8_t *p, int bytes) {
	uint64_t v = 0;
	for (int i = bytes - 1; i >= 0; i--) {
		if (i >= 8 && p[i])
			return INT64_MAX;
		if (i < 8)
			v |= (uint64_t)p[i] << 8 * i;
	}
	return saturated(v);
}

bool drive_ocp_decode(const uint8_t log[NVME_SMART_BYTES], struct drive_ocp *out) {
	static const uint8_t guid[] = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f,
		0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf};
	if (memcmp(log + OCP_GUID_AT, guid, sizeof(guid)) != 0)
		return false;
	*out = (struct drive_ocp){
		.version = le16(log + 494),
		.media_written_bytes = counter(log, 16),
		.media_read_bytes = counter(log + 16, 16),
		.bad_user_blocks = counter(log + 32, 6),
		.bad_system_blocks = counter(log + 40, 6),
		.uncorrectable_reads = counter(log + 56, 8),
		.throttling_events = log[96],
		.throttling = log[97],
		.pcie_correctable_errors = counter(log + 104, 8),
		.incomplete_shutdowns = le32(log + 112),
		.free_blocks_pct = log[120],
		.power_state_changes = counter(log + 200, 8),
	};
	return true;
}

/* --- NVM Express Base Specification 2.3, Power Measurement (25h)
 * ---------------------------------- */

#define ATTRIBUTE_ENABLED 1u
#define ATTRIBUTE_ESTIMATED 4u
#define UNKNOWN_ERROR 255

int64_t drive_scaled_power_mw(uint32_t field) {
	const int64_t value = field & 0xffff;
	switch (field >> 16 & 3) {
	case 1:
		return (value + 5) / 10;
	case 2:
		return value * 10;
	default:
		return NONE;
	}
}

void drive_measurement_decode(
	const uint8_t log[NVME_MEASUREMENT_BYTES], struct drive_measurement *out) {
	const uint16_t attributes = le16(log + 2);
	*out = (struct drive_measurement){
		.enabled = attributes & ATTRIBUTE_ENABLED,
		.estimated = attributes & ATTRIBUTE_ESTIMATED,
		.minutes_left = le16(log + 14),
		.average_mw = drive_scaled_power_mw(le32(log + 40)),
		.maximum_mw = drive_scaled_power_mw(le32(log + 44)),
		.error_pct = log[56] == UNKNOWN_ERROR ? NONE : log[56],
	};
}
