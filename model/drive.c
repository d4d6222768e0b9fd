#include "model/drive.h"

#include <stddef.h>

#include "base/compiler.h"
#include "model/names.h"

static const char *const kind_names[] = {
	[DRIVE_NVME] = "nvme",
	[DRIVE_SIMULATED] = "simulated",
	[DRIVE_BLOCK] = "block",
	[DRIVE_FILE] = "file",
};

static const char *const state_names[] = {
	[DRIVE_LIVE] = "live",
	[DRIVE_RESETTING] = "resetting",
	[DRIVE_UNRESPONSIVE] = "unresponsive",
	[DRIVE_FAILED] = "failed",
	[DRIVE_GONE] = "gone",
	[DRIVE_ARRIVING] = "arriving",
};

static const char *const use_names[] = {
	[USE_MOUNT] = "mount",
	[USE_HOLDER] = "holder",
	[USE_SWAP] = "swap",
	[USE_EXPORT] = "export",
	[USE_PROCESS] = "process",
	[USE_OPEN] = "open",
	[USE_RESERVED] = "reserved",
	[USE_UNKNOWN] = "unknown",
	[USE_PARTITION] = "partition",
	[USE_ZONED] = "zoned",
	[USE_SHARED] = "shared",
	[USE_UNSEEN] = "unseen",
	[USE_SIGNATURE] = "signature",
};

static const char *const health_names[] = {
	[DRIVE_HEALTH_UNKNOWN] = "unknown",
	[DRIVE_HEALTH_OK] = "ok",
	[DRIVE_HEALTH_WARNING] = "warning",
	[DRIVE_HEALTH_CRITICAL] = "critical",
};

const char *drive_kind_name(enum drive_kind k) {
	return names_get(kind_names, array_len(kind_names), k);
}

const char *drive_state_name(enum drive_state s) {
	return names_get(state_names, array_len(state_names), s);
}

const char *use_kind_name(enum use_kind k) {
	return names_get(use_names, array_len(use_names), k);
}

size_t drive_detail_bytes(const struct drive_detail *d) {
	return offsetof(struct drive_detail, namespaces) +
		d->namespace_count * sizeof(d->namespaces[0]);
}

const char *drive_health_name(enum drive_health_level l) {
	return names_get(health_names, array_len(health_names), l);
}
