/* Values and links, as tolerant as BMCs are sloppy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "core/bmc/redfish.h"

#define WATTS_MAX 1e6
#define FIRST_TIME_S 946684800 /* 2000: before it, clocks were not set */
#define LAST_TIME_S 4102444800 /* 2100 */

/* --- numbers --- */

double redfish_number(const json_t *v) {
	if (json_is_number(v))
		return json_number_value(v);
	const char *text = json_string_value(v);
	if (!text || !*text || text[strspn(text, "+-.0123456789eE")])
		return NAN;
	char *end;
	double value = strtod(text, &end);
	return *end ? NAN : value;
}

static bool is_sentinel(double v) {
	static const double sentinels[] = {32767, 65535, 2147483647, 4294967295};
	for (size_t i = 0; i < array_len(sentinels); i++) {
		if (v >= sentinels[i] && v <= sentinels[i])
			return true;
	}
	return false;
}

int64_t redfish_watts(const json_t *v) {
	double watts = redfish_number(v);
	/* NaN fails every comparison. */
	if (!(watts >= 0 && watts <= WATTS_MAX) || is_sentinel(watts))
		return NONE;
	return llround(watts * 1000);
}

int64_t redfish_cap(const json_t *v) {
	int64_t cap_mw = redfish_watts(v);
	return cap_mw > 0 ? cap_mw : NONE;
}

int64_t redfish_time_ms(const json_t *v) {
	const char *text = json_string_value(v);
	int64_t ms = NONE;
	if (text && strchr(text, 'T') && parse_time_ms(text, 0, &ms, "", NULL) != RC_OK)
		return NONE;
	if (ms == NONE) {
		double seconds = redfish_number(v);
		if (!(seconds >= FIRST_TIME_S && seconds <= LAST_TIME_S))
			return NONE;
		ms = llround(seconds * 1000);
	}
	return ms >= FIRST_TIME_S * INT64_C(1000) ? ms : NONE;
}

/* --- text and structure --- */

const char *redfish_text(const json_t *doc, const char *key) {
	const char *s = json_string_value(json_object_get(doc, key));
	return s ? s : "";
}

void redfish_copy_text(char *out, size_t size, const char *text) {
	size_t i = 0;
	for (; text[i] && i + 1 < size; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
}

const json_t *redfish_member(const json_t *list, size_t i) {
	return json_is_object(list) && i == 0 ? list : json_array_get(list, i);
}

const json_t *redfish_excerpt(const json_t *doc, const char *key) {
	const json_t *v = json_object_get(doc, key);
	const json_t *object = redfish_member(v, 0);
	return json_is_object(object) ? json_object_get(object, "Reading") : v;
}

bool redfish_mentions(const char *text, const char *const *words, size_t n) {
	for (size_t i = 0; i < n; i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

bool redfish_is_unavailable(const json_t *doc) {
	static const char *const states[] = {"Absent", "Unavailable", "Disabled"};
	return redfish_mentions(
		redfish_text(json_object_get(doc, "Status"), "State"), states, array_len(states));
}

/* --- links --- */

bool redfish_take_uri(const char *uri, char out[BMC_URI_SIZE]) {
	size_t len = strcspn(uri, "#");
	/* "//host/path" leads to another host. */
	if (uri[0] != '/' || uri[1] == '/' || len >= BMC_URI_SIZE)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (uri[i] <= ' ' || uri[i] > '~')
			return false;
	}
	memcpy(out, uri, len);
	out[len] = '\0';
	return true;
}

const char *redfish_path_of(const char *location) {
	const char *host = strstr(location, "://");
	if (!host)
		return location;
	const char *path = strchr(host + 3, '/');
	return path ? path : "";
}

bool redfish_link(const json_t *doc, const char *key, char out[BMC_URI_SIZE]) {
	const json_t *link = key ? redfish_member(json_object_get(doc, key), 0) : doc;
	const char *uri = redfish_text(link, "@odata.id");
	/* The first ones of HP have another name for it. */
	return redfish_take_uri(*uri ? uri : redfish_text(link, "href"), out);
}

void bmc_uris_clear(struct bmc_uris *u) {
	u->count = 0;
	u->used = 0;
}

bool bmc_uris_add(struct bmc_uris *u, const char *uri) {
	size_t size = strlen(uri) + 1;
	if (u->count >= BMC_MAX_MEMBERS || size > sizeof(u->text) - u->used)
		return false;
	memcpy(u->text + u->used, uri, size);
	u->used += size;
	u->count++;
	return true;
}

const char *bmc_uris_get(const struct bmc_uris *u, unsigned i) {
	const char *p = u->text;
	if (i >= u->count)
		return "";
	while (i--)
		p += strlen(p) + 1;
	return p;
}

bool bmc_uris_has(const struct bmc_uris *u, const char *uri) {
	for (unsigned i = 0; i < u->count; i++) {
		if (strcmp(bmc_uris_get(u, i), uri) == 0)
			return true;
	}
	return false;
}

void redfish_members(const json_t *collection, struct bmc_uris *out) {
	const json_t *members = json_object_get(collection, "Members"), *m;
	char uri[BMC_URI_SIZE];
	bmc_uris_clear(out);
	for (size_t i = 0; (m = redfish_member(members, i)); i++) {
		if (redfish_link(m, NULL, uri) && !bmc_uris_has(out, uri) &&
			!bmc_uris_add(out, uri))
			return;
	}
}
