#include "model/account.h"

#include "base/compiler.h"
#include "model/names.h"

static const char *const names[] = {
	[ROLE_NONE] = "None",
	[ROLE_READ_ONLY] = "ReadOnly",
	[ROLE_OPERATOR] = "Operator",
	[ROLE_ADMINISTRATOR] = "Administrator",
};

const char *role_name(enum role r) {
	return names_get(names, array_len(names), r);
}

/* Nobody can be given the role that allows nothing. */
bool role_from_name(const char *name, enum role *out) {
	enum role found;
	if (!names_find(names, array_len(names), name, &found) || found == ROLE_NONE)
		return false;
	*out = found;
	return true;
}
