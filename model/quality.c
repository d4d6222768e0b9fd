#include "model/quality.h"

#include "base/compiler.h"
#include "model/names.h"

static const char *const names[] = {
	[QUALITY_MEASURED] = "measured",
	[QUALITY_BMC] = "bmc",
	[QUALITY_DERIVED] = "derived",
	[QUALITY_DECLARED] = "declared",
	[QUALITY_ESTIMATED] = "estimated",
	[QUALITY_SIMULATED] = "simulated",
};
_Static_assert(array_len(names) == QUALITY_COUNT_, "every quality has a name");

const char *quality_name(enum quality q) {
	return names_get(names, array_len(names), q);
}

bool quality_from_name(const char *name, enum quality *out) {
	return names_find(names, array_len(names), name, out);
}
