#include "model/sample.h"

#include "base/compiler.h"
#include "model/names.h"

static const char *const names[] = {
#define QUANTITY_NAME_(id, name, unit) [QUANTITY_##id] = name,
	QUANTITIES(QUANTITY_NAME_)
#undef QUANTITY_NAME_
};

static const char *const units[] = {
#define QUANTITY_UNIT_(id, name, unit) [QUANTITY_##id] = unit,
	QUANTITIES(QUANTITY_UNIT_)
#undef QUANTITY_UNIT_
};

const char *quantity_name(enum quantity q) {
	return names_get(names, array_len(names), q);
}

const char *quantity_unit(enum quantity q) {
	return names_get(units, array_len(units), q);
}

int quantity_from_name(const char *name, enum quantity *out) {
	return names_find(names, array_len(names), name, out);
}
