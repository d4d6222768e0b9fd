#include "model/host.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "model/names.h"

static const char *const tls_names[] = {
	[BMC_TLS_CA] = "ca",
	[BMC_TLS_PIN] = "pin",
	[BMC_TLS_NONE] = "none",
};

static const char *const kind_names[] = {
	[BASELINE_IDLE_WITH_DRIVES] = "idle_with_drives",
	[BASELINE_NO_DRIVES] = "no_drives",
};
_Static_assert(array_len(kind_names) == BASELINE_KIND_COUNT_, "every kind has a name");

static const char *const source_names[] = {
	[BASELINE_MEASURED] = "measured",
	[BASELINE_DECLARED] = "declared",
	[BASELINE_SIMULATED] = "simulated",
};

const char *bmc_tls_name(enum bmc_tls t) {
	return names_get(tls_names, array_len(tls_names), t);
}

bool bmc_tls_from_name(const char *name, enum bmc_tls *out) {
	return names_find(tls_names, array_len(tls_names), name, out);
}

const char *baseline_kind_name(enum baseline_kind k) {
	return names_get(kind_names, array_len(kind_names), k);
}

bool baseline_kind_from_name(const char *name, enum baseline_kind *out) {
	return names_find(kind_names, array_len(kind_names), name, out);
}

const char *baseline_source_name(enum baseline_source s) {
	return names_get(source_names, array_len(source_names), s);
}

bool baseline_source_from_name(const char *name, enum baseline_source *out) {
	return names_find(source_names, array_len(source_names), name, out);
}

/* --- UUIDs --- */

#define UUID_BYTES 16

static bool take_uuid(const char *text, uint8_t out[UUID_BYTES]) {
	static const char digits[] = "0123456789abcdef";
	unsigned n = 0;
	memset(out, 0, UUID_BYTES);
	for (; *text; text++) {
		if (*text == '-')
			continue;
		const char *d = strchr(digits, tolower((unsigned char)*text));
		if (!d || n == 2 * UUID_BYTES)
			return false;
		out[n / 2] = (uint8_t)(out[n / 2] << 4 | (d - digits));
		n++;
	}
	return n == 2 * UUID_BYTES;
}

static bool is_shared(const uint8_t uuid[UUID_BYTES]) {
	/* What makers forget to change: 03000200-0400-0500-0006-000700080009. */
	static const uint8_t unset[UUID_BYTES] = {3, 0, 2, 0, 4, 0, 5, 0, 0, 6, 0, 7, 0, 8, 0, 9};
	static const uint8_t swapped[UUID_BYTES] = {0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9};
	bool same = true;
	for (unsigned i = 1; i < UUID_BYTES; i++)
		same &= uuid[i] == uuid[0];
	return same || memcmp(uuid, unset, UUID_BYTES) == 0 ||
		memcmp(uuid, swapped, UUID_BYTES) == 0;
}

/* The first three fields are little-endian in SMBIOS. */
static void turn(const uint8_t in[UUID_BYTES], uint8_t out[UUID_BYTES]) {
	static const uint8_t from[UUID_BYTES] = {
		3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	for (unsigned i = 0; i < UUID_BYTES; i++)
		out[i] = in[from[i]];
}

bool host_uuid_is_same(const char *a, const char *b) {
	uint8_t x[UUID_BYTES], y[UUID_BYTES], z[UUID_BYTES];
	if (!take_uuid(a, x) || !take_uuid(b, y) || is_shared(x))
		return false;
	turn(y, z);
	return memcmp(x, y, UUID_BYTES) == 0 || memcmp(x, z, UUID_BYTES) == 0;
}

/* --- readings --- */

void host_power_init(struct host_power *p) {
	*p = (struct host_power){
		.power_mw = NONE,
		.quality = QUALITY_BMC,
		.at_ms = NONE,
		.resolution_mw = NONE,
		.step_mw = NONE,
		.lag_ms = NONE,
		.limit_mw = NONE,
		.limit_min_mw = NONE,
		.limit_max_mw = NONE,
		.energy_counter_mj = NONE,
		.energy_since_ms = NONE,
		.energy_reset_ms = NONE,
		.inlet_mc = NONE,
	};
}
