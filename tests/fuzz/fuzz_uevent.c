/* What may stand in a message of the kernel's: the name is bounded and is one of a controller. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "priv/uevent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	/* Exactly as large, so that reading beyond the end shows. */
	char *message = malloc(size ? size : 1);
	struct uevent e;

	if (!message)
		return 0;
	memcpy(message, data, size);
	e = uevent_read(message, size);
	free(message);
	if (e.meaning != UEVENT_NOTHING && !sysfs_is_controller_name(e.name) &&
		!sysfs_is_subsystem_name(e.name))
		abort();
	return 0;
}
