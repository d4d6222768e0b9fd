#include "model/host.h"

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
