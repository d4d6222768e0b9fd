#include "core/bmc/redfish_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/bmc/redfish.h"

#define CAP_SETTING "ServerPwr.1.PowerCapSetting"
#define CAP_VALUE "ServerPwr.1.PowerCapValue"

/* --- reading --- */

static void take_range(const json_t *min, const json_t *max, struct limit_found *out) {
	int64_t min_mw = redfish_watts(min), max_mw = redfish_cap(max);
	if (min_mw == NONE || max_mw == NONE || min_mw > max_mw)
		return;
	out->min_mw = min_mw;
	out->max_mw = max_mw;
}

/* The mode in which a limit holds, of those that the BMC says it takes. */
static const char *allowed_mode(const json_t *control, const char *default_mode) {
	static const char *const modes[] = {"Automatic", "Manual", "Override"};
	const json_t *allowed = json_object_get(control, "ControlMode@Redfish.AllowableValues"), *v;
	for (size_t i = 0; i < array_len(modes); i++) {
		for (size_t n = 0; (v = json_array_get(allowed, n)); n++) {
			const char *text = json_string_value(v);
			if (text && strcmp(text, modes[i]) == 0)
				return modes[i];
		}
	}
	return default_mode;
}

/* Control, or its excerpt. */
static bool find_control(const json_t *control, const char *default_mode, struct limit_found *out) {
	const char *mode = redfish_text(control, "ControlMode");
	bool off = strcmp(mode, "Disabled") == 0;
	if (!json_object_get(control, "SetPoint") && !json_object_get(control, "AllowableMax"))
		return false;
	take_range(json_object_get(control, "SettingRangeMin"),
		json_object_get(control, "SettingRangeMax"), out);
	take_range(json_object_get(control, "AllowableMin"),
		json_object_get(control, "AllowableMax"), out);
	if (!off)
		out->limit_mw = redfish_cap(json_object_get(control, "SetPoint"));
	out->has_mode = *mode;
	out->mode = off ? allowed_mode(control, default_mode) : NULL;
	return strcmp(redfish_text(control, "Implementation"), "Monitored") != 0;
}

static bool find_excerpt(const json_t *doc, const char *default_mode, struct limit_found *out) {
	return find_control(
		redfish_member(json_object_get(doc, "PowerLimitWatts"), 0), default_mode, out);
}

static bool find_resource(const json_t *doc, const char *default_mode, struct limit_found *out) {
	const char *type = redfish_text(doc, "ControlType");
	return (!*type || strcmp(type, "Power") == 0) && find_control(doc, default_mode, out);
}

/* The standard has no range here, some vendors do. */
static void take_own_range(const json_t *doc, const json_t *control, struct limit_found *out) {
	const json_t *cray = json_object_get(
		json_object_get(json_object_get(control, "Oem"), "Cray"), "PowerLimit");
	const json_t *hpe = json_object_get(json_object_get(doc, "Oem"), "Hpe");
	take_range(json_object_get(cray, "Min"), json_object_get(cray, "Max"), out);
	if (json_is_true(json_object_get(hpe, "MinimumSafelyAchievableCapValid")))
		out->min_mw = redfish_cap(json_object_get(hpe, "MinimumSafelyAchievableCap"));
}

static bool find_power(
	const json_t *doc, const char *default_mode unused_arg, struct limit_found *out) {
	const json_t *controls = json_object_get(doc, "PowerControl");
	const json_t *control = redfish_whole_system(controls), *c;
	const json_t *limit = redfish_member(json_object_get(control, "PowerLimit"), 0);
	take_own_range(doc, control, out);
	out->limit_mw = redfish_cap(json_object_get(limit, "LimitInWatts"));
	while ((c = redfish_member(controls, out->member)) && c != control)
		out->member++;
	return limit;
}

static bool find_attributes(
	const json_t *doc, const char *default_mode unused_arg, struct limit_found *out) {
	const json_t *a = json_object_get(doc, "Attributes");
	take_range(json_object_get(a, "ServerPwr.1.PowerCapMinThres"),
		json_object_get(a, "ServerPwr.1.PowerCapMaxThres"), out);
	if (strcmp(redfish_text(a, CAP_SETTING), "Enabled") == 0)
		out->limit_mw = redfish_cap(json_object_get(a, CAP_VALUE));
	return json_object_get(a, CAP_SETTING) && json_object_get(a, CAP_VALUE);
}

bool redfish_limit_find(enum limit_place place, const json_t *doc, const char *default_mode,
	struct limit_found *out) {
	static bool (*const find[LIMIT_PLACE_COUNT_])(
		const json_t *doc, const char *default_mode, struct limit_found *out) = {
		[LIMIT_ENVIRONMENT] = find_excerpt,
		[LIMIT_CONTROL] = find_resource,
		[LIMIT_POWER] = find_power,
		[LIMIT_ATTRIBUTES] = find_attributes,
	};
	*out = (struct limit_found){.limit_mw = NONE, .min_mw = NONE, .max_mw = NONE};
	return find[place](doc, default_mode, out);
}

/* --- writing --- */

static bool fits(int len, size_t size) {
	return len > 0 && (size_t)len < size;
}

/* "500", "500.5" or "null". */
static void watts_text(int64_t mw, char out[24]) {
	if (mw == NONE)
		snprintf(out, 24, "null");
	else
		snprintf(out, 24, mw % 1000 ? "%.3f" : "%.0f", (double)mw / 1000);
}

/* The inside of a Control. Some take a mode only together with the limit it goes with, some know
 * none. */
static bool control_body(
	const struct limit_found *f, int64_t limit_mw, unsigned n, char *out, size_t size) {
	char watts[24];
	bool by_mode = limit_mw == NONE ? f->has_mode : f->mode != NULL;
	watts_text(limit_mw, watts);
	unsigned ways = by_mode ? 2 : 1;
	if (n >= ways)
		return false;
	if (n == 0 && by_mode && limit_mw == NONE)
		return fits(snprintf(out, size, "{\"ControlMode\":\"Disabled\"}"), size);
	if (n == 0 && by_mode)
		return fits(snprintf(out, size, "{\"SetPoint\":%s,\"ControlMode\":\"%s\"}", watts,
				    f->mode),
			size);
	return fits(snprintf(out, size, "{\"SetPoint\":%s}", watts), size);
}

static bool excerpt_body(
	const struct limit_found *f, int64_t limit_mw, unsigned n, char *out, size_t size) {
	char control[96];
	return control_body(f, limit_mw, n, control, sizeof(control)) &&
		fits(snprintf(out, size, "{\"PowerLimitWatts\":%s}", control), size);
}

/* Members before it are left as they are by an empty object. Some know 0 for no limit, not null. */
static bool power_body(
	const struct limit_found *f, int64_t limit_mw, unsigned n, char *out, size_t size) {
	char watts[24], before[3 * 8 + 1] = "";
	unsigned ways = limit_mw == NONE ? 2 : 1;
	if (n >= ways || f->member > 8)
		return false;
	for (unsigned i = 0; i < f->member; i++)
		memcpy(before + 3 * i, "{},", sizeof("{},"));
	watts_text(n ? 0 : limit_mw, watts);
	return fits(
		snprintf(out, size, "{\"PowerControl\":[%s{\"PowerLimit\":{\"LimitInWatts\":%s}}]}",
			before, watts),
		size);
}

static bool attributes_body(const struct limit_found *f unused_arg, int64_t limit_mw, unsigned n,
	char *out, size_t size) {
	char watts[24];
	watts_text(limit_mw, watts);
	if (n)
		return false;
	if (limit_mw == NONE)
		return fits(
			snprintf(out, size, "{\"Attributes\":{\"" CAP_SETTING "\":\"Disabled\"}}"),
			size);
	return fits(
		snprintf(out, size,
			"{\"Attributes\":{\"" CAP_SETTING "\":\"Enabled\",\"" CAP_VALUE "\":%s}}",
			watts),
		size);
}

bool redfish_limit_body(enum limit_place place, const struct limit_found *f, int64_t limit_mw,
	unsigned n, char *out, size_t size) {
	static bool (*const write[LIMIT_PLACE_COUNT_])(const struct limit_found *f,
		int64_t limit_mw, unsigned n, char *out, size_t size) = {
		[LIMIT_ENVIRONMENT] = excerpt_body,
		[LIMIT_CONTROL] = control_body,
		[LIMIT_POWER] = power_body,
		[LIMIT_ATTRIBUTES] = attributes_body,
	};
	return write[place](f, limit_mw, n, out, size);
}

/* --- complaints --- */

static bool is_complaint(const json_t *message, bool in_error) {
	static const char *const good[] = {"Success", "Created", "NoOperation", "Accepted"};
	const char *severity = redfish_text(message, "MessageSeverity");
	if (!*severity)
		severity = redfish_text(message, "Severity");
	if (*severity)
		return strcmp(severity, "OK") != 0;
	return in_error &&
		!redfish_mentions(redfish_text(message, "MessageId"), good, array_len(good));
}

static bool take_complaint(const json_t *messages, bool in_error, char *out, size_t size) {
	const json_t *m;
	for (size_t i = 0; (m = redfish_member(messages, i)); i++) {
		const char *text = redfish_text(m, "Message");
		if (!is_complaint(m, in_error))
			continue;
		redfish_copy_text(out, size, *text ? text : redfish_text(m, "MessageId"));
		return true;
	}
	return false;
}

/* "@Message.ExtendedInfo" of the whole, or of a property. */
static bool is_about_messages(const char *key) {
	static const char tail[] = "@Message.ExtendedInfo";
	size_t len = strlen(key);
	return len >= sizeof(tail) - 1 && strcmp(key + len - (sizeof(tail) - 1), tail) == 0;
}

bool redfish_complaint(const json_t *doc, char *out, size_t size) {
	const json_t *error = json_object_get(doc, "error");
	const char *key;
	json_t *value;
	out[0] = '\0';
	if (take_complaint(json_object_get(error, "@Message.ExtendedInfo"), true, out, size))
		return true;
	json_object_foreach((json_t *)doc, key, value) {
		if (is_about_messages(key) && take_complaint(value, false, out, size))
			return true;
	}
	if (!error || json_object_get(error, "@Message.ExtendedInfo"))
		return false;
	redfish_copy_text(out, size, redfish_text(error, "message"));
	return true;
}
