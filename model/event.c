#include "model/event.h"

#include "base/compiler.h"
#include "model/names.h"

static const char *const names[] = {
#define EVENT_NAME_(id, name, severity) [EVENT_##id] = name,
	EVENT_TYPES(EVENT_NAME_)
#undef EVENT_NAME_
};

static const char *const severities[] = {
#define EVENT_SEVERITY_(id, name, severity) [EVENT_##id] = severity,
	EVENT_TYPES(EVENT_SEVERITY_)
#undef EVENT_SEVERITY_
};

const char *event_type_name(enum event_type t) {
	return names_get(names, array_len(names), t);
}

const char *event_type_severity(enum event_type t) {
	return names_get(severities, array_len(severities), t);
}

bool event_type_from_name(const char *name, enum event_type *out) {
	return names_find(names, array_len(names), name, out);
}
