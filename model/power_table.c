#include "model/power_table.h"

#include <string.h>

#include "model/le.h"

#define NPSS_OFFSET 263
#define PSD_OFFSET 2048

#define FLAG_MAX_SCALE 1u /* max power counts in 0.1 mW, else in 10 mW */
#define FLAG_NON_OPERATIONAL 2u

static int64_t nonzero(uint32_t v) {
	return v ? (int64_t)v : NONE;
}

static int8_t rank(uint8_t field, uint8_t npss) {
	const uint8_t value = field & 31;
	return value <= npss ? (int8_t)value : -1;
}

static int64_t max_power(uint16_t value, uint8_t flags) {
	if (value == 0)
		return NONE;
	return (int64_t)value * (flags & FLAG_MAX_SCALE ? 100 : 10000);
}

/* Idle and active power have two bits of scale, with other codes than max power has. */
static int64_t scaled_power(uint16_t value, uint8_t scale_byte) {
	switch (scale_byte >> 6) {
	case 1:
		return (int64_t)value * 100;
	case 2:
		return (int64_t)value * 10000;
	default:
		return NONE;
	}
}

static struct power_state decode_state(const uint8_t *psd, uint8_t number, uint8_t npss) {
	const uint8_t workload = psd[22] & 7;
	return (struct power_state){
		.state = number,
		.operational = !(psd[3] & FLAG_NON_OPERATIONAL),
		.active_workload = workload <= 2 ? workload : 0,
		.relative_read_throughput = rank(psd[12], npss),
		.relative_read_latency = rank(psd[13], npss),
		.relative_write_throughput = rank(psd[14], npss),
		.relative_write_latency = rank(psd[15], npss),
		.max_uw = max_power(le16(psd), psd[3]),
		.idle_uw = scaled_power(le16(psd + 16), psd[18]),
		.active_uw = scaled_power(le16(psd + 20), psd[22]),
		.entry_latency_us = nonzero(le32(psd + 4)),
		.exit_latency_us = nonzero(le32(psd + 8)),
	};
}

enum rc power_table_decode(
	const uint8_t identify[NVME_IDENTIFY_BYTES], struct power_table *out, struct err *err) {
	const uint8_t npss = identify[NPSS_OFFSET];
	memset(out, 0, sizeof(*out));
	if (npss >= POWER_STATES_MAX)
		return err_set(err, RC_CORRUPT, "the drive claims %d power states", npss + 1);
	for (uint8_t i = 0; i <= npss; i++)
		out->states[i] = decode_state(identify + PSD_OFFSET + i * NVME_PSD_BYTES, i, npss);
	out->count = (uint8_t)(npss + 1);
	return RC_OK;
}

const struct power_state *power_table_find(const struct power_table *t, int state) {
	return state >= 0 && state < t->count ? &t->states[state] : NULL;
}

int64_t power_state_max_mw(const struct power_state *s) {
	return (s->max_uw + 999) / 1000;
}

bool power_state_fits(const struct power_state *s, int64_t limit_mw) {
	return s->max_uw != NONE && power_state_max_mw(s) <= limit_mw;
}

int power_table_state_for_limit(const struct power_table *t, int64_t limit_mw) {
	const struct power_state *best = NULL;
	for (int i = 0; i < t->count; i++) {
		const struct power_state *s = &t->states[i];
		if (s->operational && power_state_fits(s, limit_mw) &&
			(!best || s->max_uw > best->max_uw))
			best = s;
	}
	return best ? best->state : -1;
}

int power_table_lowest(const struct power_table *t) {
	const struct power_state *best = NULL;
	for (int i = 0; i < t->count; i++) {
		const struct power_state *s = &t->states[i];
		if (!s->operational)
			continue;
		if (!best || best->max_uw == NONE ||
			(s->max_uw != NONE && s->max_uw < best->max_uw))
			best = s;
	}
	return best ? best->state : -1;
}

int power_table_fastest(const struct power_table *t) {
	const struct power_state *best = NULL;
	for (int i = 0; i < t->count; i++) {
		const struct power_state *s = &t->states[i];
		if (s->operational && (!best || s->max_uw > best->max_uw))
			best = s;
	}
	return best ? best->state : -1;
}
