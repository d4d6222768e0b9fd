#include "core/bmc/adaptor.h"

#include <string.h>

#include "base/compiler.h"

/* Special ones stand in front of the generic one. */
static const struct bmc_adaptor *const adaptors[] = {&redfish_adaptor};

bool bmc_vendor_is_known(const char *vendor) {
	if (strcmp(vendor, BMC_VENDOR_AUTO) == 0)
		return true;
	for (size_t i = 0; i < array_len(adaptors); i++) {
		if (strcmp(vendor, adaptors[i]->name) == 0)
			return true;
	}
	return false;
}

static const struct bmc_adaptor *choose(const char *vendor, const json_t *service_root) {
	bool automatic = strcmp(vendor, BMC_VENDOR_AUTO) == 0;
	for (size_t i = 0; i < array_len(adaptors); i++) {
		const struct bmc_adaptor *a = adaptors[i];
		if (automatic ? a->matches(service_root) : strcmp(vendor, a->name) == 0)
			return a;
	}
	return &redfish_adaptor;
}

void bmc_walk_discover(struct bmc_walk *w, const char *vendor, const json_t *service_root) {
	*w = (struct bmc_walk){.adaptor = choose(vendor, service_root)};
	w->adaptor->discover(w, service_root);
}
