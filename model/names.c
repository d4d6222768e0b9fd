#include "model/names.h"

#include <string.h>

const char *names_get(const char *const *names, size_t count, unsigned value) {
	return value < count ? names[value] : "unknown";
}

bool names_find(const char *const *names, size_t count, const char *name, unsigned *value) {
	for (unsigned i = 0; name && i < count; i++) {
		if (strcmp(names[i], name) == 0) {
			*value = i;
			return true;
		}
	}
	return false;
}
