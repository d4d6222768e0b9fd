#include "priv/limits.h"

#include <string.h>

#include "priv/nvme.h"

#define CNS_CONTROLLER 0x01
#define CNS_UUID_LIST 0x17
#define FEATURE_POWER_LIMIT 0x23
#define FEATURE_OCP_POWER_STATE 0xc7
#define LOG_OCP_CAPABILITIES 0xc4

#define ATTRIBUTES_AT 96 /* CTRATT */
#define ATTRIBUTE_UUID_LIST (1u << 9)
#define ATTRIBUTE_POWER_LIMIT (1u << 20)

static uint32_t le32_at(const uint8_t *p) {
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* --- the values ------------------------------------------------------------------------------- */

#define SCALE_FINE 1u   /* 0.1 mW */
#define SCALE_COARSE 2u /* 10 mW */
#define FINE_MAX_MW 6553

int64_t limits_decode(uint32_t dword) {
	const int64_t value = dword & 0xffff;

	switch (dword >> 16 & 3) {
	case SCALE_FINE:
		return value ? (value + 5) / 10 : NONE;
	case SCALE_COARSE:
		return value ? value * 10 : NONE;
	default:
		return NONE;
	}
}

uint32_t limits_encode(int64_t limit_mw) {
	if (limit_mw == NONE)
		return 0;
	if (limit_mw <= FINE_MAX_MW)
		return (uint32_t)(limit_mw * 10) | SCALE_FINE << 16;
	return (uint32_t)(limit_mw / 10) | SCALE_COARSE << 16;
}

/* --- OCP's pages ------------------------------------------------------------------------------ */

uint8_t limits_ocp_index(const uint8_t list[NVME_IDENTIFY_BYTES]) {
	static const uint8_t ocp[16] = {0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d,
		0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f};
	const unsigned entry_bytes = 32, entries = NVME_IDENTIFY_BYTES / entry_bytes;

	/* Entry 0 is a header, so that the first index is 1. */
	for (unsigned i = 1; i < entries; i++)
		if (memcmp(list + i * entry_bytes + 16, ocp, sizeof(ocp)) == 0)
			return (uint8_t)i;
	return 0;
}

bool limits_ocp_decode(const uint8_t log[NVME_IDENTIFY_BYTES], uint8_t states[OCP_POWER_STATES]) {
	static const uint8_t guid[16] = {0x97, 0x42, 0x05, 0x0d, 0xd1, 0xe1, 0xc9, 0x98, 0x5d, 0x49,
		0x58, 0x4b, 0x91, 0x3c, 0x05, 0xb7};
	const unsigned states_at = 16, guid_at = 4080;

	if (memcmp(log + guid_at, guid, sizeof(guid)) != 0)
		return false;
	memcpy(states, log + states_at, OCP_POWER_STATES);
	for (unsigned i = 0; i < OCP_POWER_STATES; i++)
		states[i] &= OCP_POWER_STATE_VALID | (POWER_STATES_MAX - 1);
	return true;
}

/* --- what a drive offers ---------------------------------------------------------------------- */

static void read_ocp(int fd, struct power_limits *out) {
	auto_free uint8_t *page = nvme_page_new();
	uint8_t index;

	if (!page || nvme_identify_read(fd, CNS_UUID_LIST, page, NULL) != RC_OK)
		return;
	index = limits_ocp_index(page);
	if (index == 0)
		return;
	out->ocp_uuid_index = index;
	if (nvme_log_read(fd, LOG_OCP_CAPABILITIES, index, page, NVME_IDENTIFY_BYTES,
		    "OCP Device Capabilities log", NULL) == RC_OK &&
		limits_ocp_decode(page, out->ocp_states))
		out->means = POWER_MEANS_OCP;
}

void limits_read(int fd, const uint8_t identify[NVME_IDENTIFY_BYTES], struct power_limits *out) {
	const uint32_t attributes = le32_at(identify + ATTRIBUTES_AT);

	*out = (struct power_limits){.means = POWER_MEANS_STATE};
	if (attributes & ATTRIBUTE_UUID_LIST)
		read_ocp(fd, out);
	if (attributes & ATTRIBUTE_POWER_LIMIT)
		out->means = POWER_MEANS_LIMIT;
}

/* --- getting and setting ---------------------------------------------------------------------- */

static enum rc get_ocp(int fd, uint8_t uuid_index, int64_t *limit_mw, struct err *err) {
	uint32_t value;
	enum rc rc = nvme_feature_get(fd, FEATURE_OCP_POWER_STATE, uuid_index, &value,
		"Get Features (DSSD power state)", err);

	if (rc == RC_OK && (value & 0xff) != 0)
		*limit_mw = (int64_t)(value & 0xff) * 1000;
	return rc;
}

static enum rc get_limit(int fd, int64_t *limit_mw, struct err *err) {
	uint32_t value;
	enum rc rc = nvme_feature_get(
		fd, FEATURE_POWER_LIMIT, 0, &value, "Get Features (power limit)", err);

	if (rc == RC_OK)
		*limit_mw = limits_decode(value);
	return rc;
}

enum rc limits_get(
	int fd, enum power_means means, uint8_t uuid_index, int64_t *limit_mw, struct err *err) {
	*limit_mw = NONE;
	switch (means) {
	case POWER_MEANS_OCP:
		return get_ocp(fd, uuid_index, limit_mw, err);
	case POWER_MEANS_LIMIT:
		return get_limit(fd, limit_mw, err);
	default:
		return RC_OK;
	}
}

/* However sure the asker is. */
static enum rc check_means(int fd, const struct priv_drive_op *op, struct err *err) {
	auto_free uint8_t *page = nvme_page_new();
	struct power_table table;
	enum rc rc;

	if (!page)
		return err_set(err, RC_NOMEM, "no memory to identify a controller");
	rc = nvme_identify_read(fd, CNS_CONTROLLER, page, err);
	if (rc == RC_OK)
		rc = power_table_decode(page, &table, err);
	if (rc != RC_OK)
		return rc;
	limits_read(fd, page, &table.limits);
	if (table.limits.means != op->means ||
		(op->means == POWER_MEANS_OCP && table.limits.ocp_uuid_index != op->uuid_index))
		return err_set(err, RC_CONFLICT, "the drive keeps limits in another way now");
	if (op->limit_mw != NONE && power_limits_value(&table, op->limit_mw) != op->limit_mw)
		return err_set(err, RC_CONFLICT, "the drive does not take this limit");
	return RC_OK;
}

static enum rc set_state(int fd, const struct priv_drive_op *op, struct err *err) {
	enum rc rc = nvme_drive_power_set(fd, op->power_state, err);

	if (rc == RC_REFUSED && op->fallback_state >= 0)
		rc = nvme_drive_power_set(fd, op->fallback_state, err);
	return rc;
}

/* A limit that is not there need not be taken away. */
static enum rc set_limit(int fd, const struct priv_drive_op *op, struct err *err) {
	int64_t now_mw;
	enum rc rc = get_limit(fd, &now_mw, err);

	if (rc != RC_OK || now_mw == op->limit_mw)
		return rc;
	return nvme_feature_set(fd, FEATURE_POWER_LIMIT, 0, limits_encode(op->limit_mw),
		"Set Features (power limit)", err);
}

enum rc limits_set(int fd, const struct priv_drive_op *op, struct err *err) {
	enum rc rc;

	if (op->means == POWER_MEANS_STATE)
		return set_state(fd, op, err);
	rc = check_means(fd, op, err);
	if (rc != RC_OK)
		return rc;
	/* It brings the power state along. */
	if (op->means == POWER_MEANS_OCP && op->limit_mw != NONE)
		return nvme_feature_set(fd, FEATURE_OCP_POWER_STATE, op->uuid_index,
			(uint32_t)(op->limit_mw / 1000), "Set Features (DSSD power state)", err);
	if (op->means == POWER_MEANS_LIMIT)
		rc = set_limit(fd, op, err);
	return rc == RC_OK ? set_state(fd, op, err) : rc;
}
