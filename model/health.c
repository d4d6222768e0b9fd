#include "model/drive.h"

#include "model/le.h"

#define ZERO_CELSIUS_MK 273150

/* A 128-bit counter. */
static int64_t counter(const uint8_t *p) {
	const uint64_t low = le64(p);
	const uint64_t high = le64(p + 8);
	return high || low > INT64_MAX ? INT64_MAX : (int64_t)low;
}

static int64_t kelvin_to_mc(uint16_t k) {
	return k ? (int64_t)k * 1000 - ZERO_CELSIUS_MK : NONE;
}

static int64_t lifetime_energy(uint64_t wh) {
	if (wh == 0)
		return NONE;
	return wh > INT64_MAX ? INT64_MAX : (int64_t)wh;
}

void drive_health_decode(const uint8_t log[NVME_SMART_BYTES], struct drive_health *out) {
	*out = (struct drive_health){
		.read_ms = NONE,
		.critical_warning = log[0],
		.temperature_mc = kelvin_to_mc(le16(log + 1)),
		.available_spare_pct = log[3],
		.spare_threshold_pct = log[4],
		.percentage_used = log[5],
		.data_units_read = counter(log + 32),
		.data_units_written = counter(log + 48),
		.host_reads = counter(log + 64),
		.host_writes = counter(log + 80),
		.controller_busy_min = counter(log + 96),
		.power_cycles = counter(log + 112),
		.power_on_h = counter(log + 128),
		.unsafe_shutdowns = counter(log + 144),
		.media_errors = counter(log + 160),
		.error_log_entries = counter(log + 176),
		.warning_temperature_min = le32(log + 192),
		.critical_temperature_min = le32(log + 196),
		.tmt1_transitions = le32(log + 216),
		.tmt2_transitions = le32(log + 220),
		.tmt1_s = le32(log + 224),
		.tmt2_s = le32(log + 228),
		.lifetime_energy_wh = lifetime_energy(le64(log + 232)),
		.interval_power_mw = drive_scaled_power_mw(le32(log + 240)),
	};
	for (int i = 0; i < DRIVE_MAX_SENSORS; i++)
		out->sensors_mc[i] = kelvin_to_mc(le16(log + 200 + 2 * i));
}

int64_t drive_health_power_mw(const struct drive_health *h) {
	if (h->interval_power_mw != NONE || !(h->logs & DRIVE_LOG_MEASUREMENT) ||
		!h->measurement.enabled)
		return h->interval_power_mw;
	return h->measurement.average_mw;
}

enum drive_health_level drive_health_judge(const struct drive_health *h) {
	if (h->critical_warning)
		return DRIVE_HEALTH_CRITICAL;
	const bool worn = h->percentage_used != NONE && h->percentage_used >= 100;
	/* Drives that count no spare say 0 of 0. */
	const bool low = h->available_spare_pct != NONE && h->spare_threshold_pct > 0 &&
		h->available_spare_pct <= h->spare_threshold_pct;
	return worn || low ? DRIVE_HEALTH_WARNING : DRIVE_HEALTH_OK;
}
