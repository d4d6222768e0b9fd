#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/nvme_model.h"

#define IDENTIFY_BYTES 4096
#define SMART_BYTES 512
#define LOG_MAX_BYTES 4096
#define LAST_STATE 3
#define NSID_ALL 0xffffffffu

enum { ADMIN_GET_LOG = 0x02, ADMIN_IDENTIFY = 0x06, ADMIN_SET_FEATURES = 0x09 };
enum { ADMIN_GET_FEATURES = 0x0a, ADMIN_KEEP_ALIVE = 0x18 };
enum { IO_RESERVATION_REPORT = 0x0e, RESERVATION_BYTES = 64 };
enum { CNS_NAMESPACE = 0x00, CNS_CONTROLLER = 0x01, CNS_ACTIVE = 0x02, CNS_DESCRIPTORS = 0x03 };
enum { CNS_UUIDS = 0x17, OCP_UUID_INDEX = 2 };
enum { FEATURE_POWER = 0x02, FEATURE_TEMPERATURE = 0x04, FEATURE_LIMIT = 0x23 };
enum { FEATURE_OCP_POWER = 0xc7, LOG_SMART = 0x02, LOG_OCP_CAPABILITIES = 0xc4 };
enum { LOG_OCP_SMART = 0xc0, LOG_MEASUREMENT = 0x25 };
enum { SELECT_CURRENT, SELECT_DEFAULT, SELECT_SAVED, SELECT_CAPABILITIES };

#define CAPABILITY_CHANGEABLE 4u

static const struct {
	uint16_t max_cw; /* in 0.01 W; in 0.0001 W where fine */
	bool fine, operational;
	uint32_t entry_us, exit_us;
	uint8_t rank;
	uint16_t idle_cw, active_cw;
} states[LAST_STATE + 1] = {
	{.max_cw = 2500,
		.operational = true,
		.entry_us = 100,
		.exit_us = 100,
		.rank = 0,
		.idle_cw = 500,
		.active_cw = 1800},
	{.max_cw = 1500,
		.operational = true,
		.entry_us = 200,
		.exit_us = 200,
		.rank = 1,
		.idle_cw = 450,
		.active_cw = 1200},
	{.max_cw = 1000,
		.operational = true,
		.entry_us = 300,
		.exit_us = 300,
		.rank = 2,
		.idle_cw = 400,
		.active_cw = 900},
	{.max_cw = 450, .fine = true, .entry_us = 5000, .exit_us = 9000, .rank = 3},
};

void nvme_model_init(struct nvme_model *m, unsigned number) {
	*m = (struct nvme_model){
		.model = "Bed NVMe 25W",
		.firmware = "1.0",
		.cntlid = (uint16_t)(number + 1),
		.blocks = 131072,
		.namespaces = 1,
		.temperature_k = 311,
		.data_read = 1000,
		.data_written = 2000,
		.power_on_h = 1234,
	};
	snprintf(m->serial, sizeof(m->serial), "BED%04u", number);
	snprintf(m->subsystem_nqn, sizeof(m->subsystem_nqn), "nqn.2014-08.invalid.drivewatt:bed:%s",
		m->serial);
}

/* --- little-endian fields ----------------------------------------------------------------------
 */

static void put16(uint8_t *p, uint16_t v) {
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static void put32(uint8_t *p, uint32_t v) {
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static void put64(uint8_t *p, uint64_t v) {
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static void put_padded(uint8_t *p, size_t width, const char *text) {
	memset(p, ' ', width);
	memcpy(p, text, strnlen(text, width));
}

/* --- Identify ----------------------------------------------------------------------------------
 */

static void put_state(uint8_t *p, unsigned state) {
	const uint8_t centiwatts = 2 << 6;

	put16(p, states[state].max_cw);
	p[3] = (uint8_t)((states[state].fine ? 1 : 0) | (states[state].operational ? 0 : 2));
	put32(p + 4, states[state].entry_us);
	put32(p + 8, states[state].exit_us);
	memset(p + 12, states[state].rank, 4);
	if (states[state].idle_cw == 0)
		return;
	put16(p + 16, states[state].idle_cw);
	p[18] = centiwatts;
	put16(p + 20, states[state].active_cw);
	p[22] = centiwatts | 2;
}

static int identify_controller(const struct nvme_model *m, uint8_t *p) {
	put16(p, 0x1b36);
	put_padded(p + 4, 20, m->serial);
	put_padded(p + 24, 40, m->model);
	put_padded(p + 64, 8, m->firmware);
	put16(p + 78, m->cntlid);
	put32(p + 80, 0x20000); /* NVMe 2.0 */
	put32(p + 96,
		(m->has_limit ? 1u << 20 : 0) | (m->has_ocp ? 1u << 9 : 0) |
			(m->measures ? 1u << 21 : 0));
	p[111] = 1; /* an I/O controller */
	p[261] = 2; /* log page attributes: commands supported and effects */
	p[263] = LAST_STATE;
	p[265] = 1; /* autonomous transitions */
	put16(p + 266, 343);
	put16(p + 268, 353);
	put16(p + 322, 1); /* host controlled thermal management */
	put16(p + 324, 273);
	put16(p + 326, 353);
	p[512] = 0x66;
	p[513] = 0x44;
	put32(p + 516, m->namespaces);
	put16(p + 520, m->reservable ? 1 << 5 : 0);
	p[525] = 1; /* volatile write cache */
	memcpy(p + 768, m->subsystem_nqn, strlen(m->subsystem_nqn));
	for (unsigned i = 0; i <= LAST_STATE; i++)
		put_state(p + 2048 + 32 * (size_t)i, i);
	return NVME_MODEL_OK;
}

static bool has_namespace(const struct nvme_model *m, uint32_t nsid) {
	return nsid >= 1 && nsid <= m->namespaces;
}

static int identify_namespace(const struct nvme_model *m, uint32_t nsid, uint8_t *p) {
	if (!has_namespace(m, nsid) && nsid != NSID_ALL)
		return NVME_MODEL_INVALID_NAMESPACE;
	put64(p, m->blocks);
	put64(p + 8, m->blocks);
	put64(p + 16, m->blocks);
	p[30] = m->nmic;
	p[130] = 9; /* format 0: blocks of 2^9 bytes */
	return NVME_MODEL_OK;
}

static int identify_descriptors(const struct nvme_model *m, uint32_t nsid, uint8_t *p) {
	if (!has_namespace(m, nsid))
		return NVME_MODEL_INVALID_NAMESPACE;
	p[0] = 3; /* a UUID */
	p[1] = 16;
	p[4] = (uint8_t)(0xbd + nsid);
	put_padded(p + 5, 15, m->serial);
	return NVME_MODEL_OK;
}

/* A vendor's own UUID first, then OCP's. */
static int identify_uuids(const struct nvme_model *m, uint8_t *p) {
	static const uint8_t ocp[] = {0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d,
		0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f};

	if (!m->has_ocp)
		return NVME_MODEL_INVALID_FIELD;
	memset(p + 32 + 16, 0x11, sizeof(ocp));
	memcpy(p + 32 * (size_t)OCP_UUID_INDEX + 16, ocp, sizeof(ocp));
	return NVME_MODEL_OK;
}

static int identify(const struct nvme_model *m, const struct nvme_model_command *c) {
	uint8_t *p = c->data;

	if (!p || c->data_bytes < IDENTIFY_BYTES)
		return NVME_MODEL_INVALID_FIELD;
	memset(p, 0, IDENTIFY_BYTES);
	switch (c->cdw10 & 0xff) {
	case CNS_CONTROLLER:
		return identify_controller(m, p);
	case CNS_NAMESPACE:
		return identify_namespace(m, c->nsid, p);
	case CNS_DESCRIPTORS:
		return identify_descriptors(m, c->nsid, p);
	case CNS_UUIDS:
		return identify_uuids(m, p);
	case CNS_ACTIVE:
		for (uint32_t i = 0; c->nsid + i < m->namespaces; i++)
			put32(p + 4 * (size_t)i, c->nsid + i + 1);
		return NVME_MODEL_OK;
	default:
		return NVME_MODEL_INVALID_FIELD;
	}
}

/* --- features ----------------------------------------------------------------------------------
 */

/* Value and scale, as feature 23h has them, in 0.01 W. */
static uint32_t limit_cw(uint32_t limit) {
	return (limit & 0xffff) / ((limit >> 16 & 3) == 1 ? 100u : 1u);
}

static int set_power(struct nvme_model *m, const struct nvme_model_command *c) {
	if (m->power_fixed)
		return NVME_MODEL_NOT_CHANGEABLE;
	if (c->cdw10 >> 31)
		return NVME_MODEL_NOT_SAVEABLE;
	if ((c->cdw11 & 0x1f) > LAST_STATE || c->cdw11 >> 8)
		return NVME_MODEL_INVALID_FIELD;
	if (m->limit_forbids && m->limit && states[c->cdw11 & 0x1f].max_cw > limit_cw(m->limit))
		return NVME_MODEL_INVALID_FIELD;
	m->power = c->cdw11;
	return NVME_MODEL_OK;
}

/* Its lowest operational state takes 10 W. */
static int set_limit(struct nvme_model *m, const struct nvme_model_command *c) {
	if (!m->has_limit)
		return NVME_MODEL_INVALID_FIELD;
	if (c->cdw11 && limit_cw(c->cdw11) < states[LAST_STATE - 1].max_cw)
		return NVME_MODEL_LIMIT_TOO_LOW;
	m->limit = c->cdw11;
	while (m->limit_forbids && m->limit && states[m->power & 0x1f].max_cw > limit_cw(m->limit))
		m->power++;
	return NVME_MODEL_OK;
}

static bool is_ocp(const struct nvme_model *m, uint32_t uuid_index) {
	return m->has_ocp && (uuid_index & 0x7f) == OCP_UUID_INDEX;
}

/* The states' own watts are valid, and 12 W, which is state 2 as 10 W is. */
static int ocp_state(unsigned watts) {
	for (int i = 0; i < LAST_STATE; i++)
		if (watts == states[i].max_cw / 100u || (i == LAST_STATE - 1 && watts == 12))
			return i;
	return -1;
}

static int set_ocp_power(struct nvme_model *m, const struct nvme_model_command *c) {
	int state = ocp_state(c->cdw11 & 0xff);

	if (!is_ocp(m, c->cdw14) || state < 0)
		return NVME_MODEL_INVALID_FIELD;
	m->ocp_watts = (uint8_t)c->cdw11;
	m->power = (uint32_t)state;
	return NVME_MODEL_OK;
}

static int set_features(struct nvme_model *m, const struct nvme_model_command *c) {
	switch (c->cdw10 & 0xff) {
	case FEATURE_POWER:
		return set_power(m, c);
	case FEATURE_LIMIT:
		return set_limit(m, c);
	case FEATURE_OCP_POWER:
		return set_ocp_power(m, c);
	default:
		return NVME_MODEL_INVALID_FIELD;
	}
}

static int get_features(const struct nvme_model *m, struct nvme_model_command *c) {
	unsigned select = c->cdw10 >> 8 & 7;
	uint32_t current, preset;

	switch (c->cdw10 & 0xff) {
	case FEATURE_POWER:
		current = m->power;
		preset = 0;
		break;
	case FEATURE_TEMPERATURE:
		current = preset = 343;
		break;
	case FEATURE_LIMIT:
		if (!m->has_limit)
			return NVME_MODEL_INVALID_FIELD;
		current = m->limit;
		preset = 0;
		break;
	case FEATURE_OCP_POWER:
		if (!is_ocp(m, c->cdw14))
			return NVME_MODEL_INVALID_FIELD;
		current = m->ocp_watts;
		preset = 25;
		break;
	default:
		return NVME_MODEL_INVALID_FIELD;
	}
	if (select > SELECT_CAPABILITIES)
		return NVME_MODEL_INVALID_FIELD;
	c->result = select == SELECT_CURRENT ? current : preset;
	if (select == SELECT_CAPABILITIES)
		c->result = m->power_fixed ? 0 : CAPABILITY_CHANGEABLE;
	return NVME_MODEL_OK;
}

/* --- logs --------------------------------------------------------------------------------------
 */

static void smart_log(const struct nvme_model *m, uint8_t p[SMART_BYTES]) {
	memset(p, 0, SMART_BYTES);
	p[0] = m->critical_warning;
	put16(p + 1, m->temperature_k);
	p[3] = 100;
	p[4] = 10;
	p[5] = 3;
	put64(p + 32, m->data_read);
	put64(p + 48, m->data_written);
	put64(p + 112, 17);
	put64(p + 128, m->power_on_h);
	put16(p + 200, m->temperature_k);
	put64(p + 232, m->energy_wh);
}

static void ocp_smart(const struct nvme_model *m, uint8_t p[LOG_MAX_BYTES]) {
	static const uint8_t guid[] = {0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f,
		0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf};

	put64(p, m->data_written * 512000);
	put64(p + 16, m->data_read * 512000);
	p[96] = 7;
	p[120] = 90;
	put64(p + 200, m->commands);
	put16(p + 494, 3);
	memcpy(p + 496, guid, sizeof(guid));
}

static void measurement(const struct nvme_model *m, uint8_t p[LOG_MAX_BYTES]) {
	put16(p + 2, m->average ? 1 : 0);
	put32(p + 4, 64);
	put32(p + 40, m->average);
	p[56] = 255;
}

static void ocp_capabilities(uint8_t p[LOG_MAX_BYTES]) {
	static const uint8_t guid[] = {0x97, 0x42, 0x05, 0x0d, 0xd1, 0xe1, 0xc9, 0x98, 0x5d, 0x49,
		0x58, 0x4b, 0x91, 0x3c, 0x05, 0xb7};

	put16(p + 14, 10);
	for (unsigned watts = 0; watts < 128; watts++)
		if (ocp_state(watts) >= 0)
			p[16 + watts] = (uint8_t)(0x80 | ocp_state(watts));
	memcpy(p + 4080, guid, sizeof(guid));
}

/* Its bytes, 0: it has no such log. */
static uint32_t make_log(
	const struct nvme_model *m, const struct nvme_model_command *c, uint8_t p[LOG_MAX_BYTES]) {
	memset(p, 0, LOG_MAX_BYTES);
	switch (c->cdw10 & 0xff) {
	case LOG_SMART:
		smart_log(m, p);
		return SMART_BYTES;
	case LOG_OCP_SMART:
		ocp_smart(m, p);
		return is_ocp(m, c->cdw14) ? SMART_BYTES : 0;
	case LOG_MEASUREMENT:
		measurement(m, p);
		return m->measures ? 64 : 0;
	case LOG_OCP_CAPABILITIES:
		ocp_capabilities(p);
		return is_ocp(m, c->cdw14) ? LOG_MAX_BYTES : 0;
	default:
		return 0;
	}
}

static int get_log(const struct nvme_model *m, const struct nvme_model_command *c) {
	uint32_t dwords = (c->cdw10 >> 16 | c->cdw11 << 16) + 1;
	uint64_t offset = (uint64_t)c->cdw13 << 32 | c->cdw12, left;
	uint8_t page[LOG_MAX_BYTES];
	uint32_t bytes = make_log(m, c, page);

	if (bytes == 0)
		return NVME_MODEL_INVALID_LOG;
	if (!c->data || (uint64_t)dwords * 4 > c->data_bytes || offset > bytes)
		return NVME_MODEL_INVALID_FIELD;
	left = bytes - offset;
	memset(c->data, 0, (size_t)dwords * 4);
	memcpy(c->data, page + offset, left < (uint64_t)dwords * 4 ? left : (size_t)dwords * 4);
	return NVME_MODEL_OK;
}

/* --- reservations ------------------------------------------------------------------------------
 */

static int reservation_report(const struct nvme_model *m, const struct nvme_model_command *c) {
	uint8_t *p = c->data;

	if (!m->reservable)
		return NVME_MODEL_INVALID_OPCODE;
	if (!has_namespace(m, c->nsid))
		return NVME_MODEL_INVALID_NAMESPACE;
	if ((c->cdw11 & 1) != m->long_host_ids)
		return NVME_MODEL_HOST_ID_FORMAT;
	if (!p || c->data_bytes < RESERVATION_BYTES)
		return NVME_MODEL_INVALID_FIELD;
	memset(p, 0, c->data_bytes);
	p[4] = m->reservation;
	put16(p + 5, m->registrants);
	return NVME_MODEL_OK;
}

int nvme_model_io(struct nvme_model *m, struct nvme_model_command *c) {
	m->commands++;
	c->result = 0;
	if (m->fail_status)
		return m->fail_status;
	return c->opcode == IO_RESERVATION_REPORT ? reservation_report(m, c)
						  : NVME_MODEL_INVALID_OPCODE;
}

int nvme_model_admin(struct nvme_model *m, struct nvme_model_command *c) {
	m->commands++;
	c->result = 0;
	if (m->fail_status)
		return m->fail_status;
	switch (c->opcode) {
	case ADMIN_IDENTIFY:
		return identify(m, c);
	case ADMIN_SET_FEATURES:
		return set_features(m, c);
	case ADMIN_GET_FEATURES:
		return get_features(m, c);
	case ADMIN_GET_LOG:
		return get_log(m, c);
	case ADMIN_KEEP_ALIVE:
		return NVME_MODEL_OK;
	default:
		return NVME_MODEL_INVALID_OPCODE;
	}
}
