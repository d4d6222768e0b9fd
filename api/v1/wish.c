/* How wishes for power and selectors of drives read in JSON, wherever they stand. */
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "base/parse.h"

#define WISH_LIMIT_MAX_W 1000
#define WISH_TTL_MAX_S (366 * 86400)

/* --- wishes ----------------------------------------------------------------------------------- */

void wish_render(struct jsonw *w, const struct power_wish *wish) {
	if (wish->state >= 0)
		jsonw_int(w, "state", wish->state);
	else if (wish->limit_mw != NONE)
		jsonw_milli(w, "limit_w", wish->limit_mw);
	if (wish->allow_non_operational)
		jsonw_bool(w, "allow_non_operational", true);
}

struct wish_body {
	int64_t state, limit_mw;
	bool has_state, has_limit, allow_non_operational;
	int64_t ttl_s;
	char expires_at[40];
};

static enum rc wish_of(
	const struct wish_body *b, const char *base, struct power_wish *wish, struct err *err) {
	char pointer[96];
	snprintf(pointer, sizeof(pointer), "%s/%s", base, b->has_state ? "limit_w" : "state");
	if (b->has_state == b->has_limit)
		return err_field(err, RC_INVALID, pointer, "give either state or limit_w");
	wish->state = b->has_state ? (int8_t)b->state : -1;
	wish->limit_mw = b->has_limit ? b->limit_mw : NONE;
	wish->allow_non_operational = b->allow_non_operational;
	return RC_OK;
}

/* When it ends; at most a year away, so that nothing is meant to end and never does. */
static enum rc end_of(
	const struct wish_body *b, const char *base, int64_t *expires_ms, struct err *err) {
	char pointer[96];
	const int64_t now_ms = clock_wall_ms();
	enum rc rc = RC_OK;
	snprintf(pointer, sizeof(pointer), "%s/expires_at", base);
	*expires_ms = b->ttl_s ? now_ms + b->ttl_s * 1000 : NONE;
	if (!b->expires_at[0])
		return RC_OK;
	if (b->ttl_s)
		return err_field(err, RC_INVALID, pointer, "give either expires_at or ttl_s");
	rc = parse_time_ms(b->expires_at, 0, expires_ms, pointer, err);
	if (rc == RC_OK && *expires_ms <= now_ms)
		rc = err_field(err, RC_INVALID, pointer, "is over already");
	if (rc == RC_OK && *expires_ms > now_ms + INT64_C(1000) * WISH_TTL_MAX_S)
		rc = err_field(err, RC_INVALID, pointer, "is more than %d days away",
			WISH_TTL_MAX_S / 86400);
	return rc;
}

#define WISH_ENDS 2 /* fields of the end, which come last */

enum rc wish_decode(const json_t *object, const char *base, struct power_wish *wish,
	int64_t *expires_ms, struct err *err) {
	static const struct json_in_field fields[] = {
		{"state", JSON_IN_INT, offsetof(struct wish_body, state), .min = 0,
			.max = POWER_STATES_MAX - 1,
			.seen_offset = JSON_IN_SEEN(struct wish_body, has_state)},
		{"limit_w", JSON_IN_MILLI, offsetof(struct wish_body, limit_mw), .min = 0,
			.max = WISH_LIMIT_MAX_W,
			.seen_offset = JSON_IN_SEEN(struct wish_body, has_limit)},
		{"allow_non_operational", JSON_IN_BOOL,
			offsetof(struct wish_body, allow_non_operational), .min = 0},
		{"expires_at", JSON_IN_STR, offsetof(struct wish_body, expires_at), .size = 40,
			.nullable = true},
		{"ttl_s", JSON_IN_INT, offsetof(struct wish_body, ttl_s), .min = 1,
			.max = WISH_TTL_MAX_S},
	};
	struct wish_body b = {0};
	const size_t n = array_len(fields) - (expires_ms ? 0 : WISH_ENDS);
	enum rc rc = json_in_fields(object, base, fields, n, &b, err);
	if (rc == RC_OK)
		rc = wish_of(&b, base, wish, err);
	return rc || !expires_ms ? rc : end_of(&b, base, expires_ms, err);
}

/* --- selectors -------------------------------------------------------------------------------- */

void selector_render(struct jsonw *w, const char *key, const struct drive_selector *s) {
	const struct {
		const char *name, *value;
	} texts[] = {{"model", s->model}, {"host", s->host}, {"slot", s->slot}};
	jsonw_object(w, key);
	for (size_t i = 0; i < array_len(texts); i++)
		if (texts[i].value[0])
			jsonw_str(w, texts[i].name, texts[i].value);
	if (s->labels[0])
		render_labels(w, s->labels);
	jsonw_object_end(w);
}

struct selector_body {
	struct drive_selector s;
	const json_t *labels;
};

static enum rc check_host(
	const struct core *core, const char *base, struct drive_selector *s, struct err *err) {
	char pointer[96];
	if (strcmp(s->host, "local") == 0)
		memcpy(s->host, core->host_id, sizeof(s->host));
	if (!s->host[0] || strcmp(s->host, core->host_id) == 0)
		return RC_OK;
	snprintf(pointer, sizeof(pointer), "%s/host", base);
	return err_field(err, RC_INVALID, pointer, "has no drives here");
}

enum rc selector_decode(const struct core *core, const json_t *object, const char *base,
	struct drive_selector *out, struct err *err) {
	static const struct json_in_field fields[] = {
		{"model", JSON_IN_STR, offsetof(struct selector_body, s.model), .size = 41},
		{"host", JSON_IN_STR, offsetof(struct selector_body, s.host), .size = 37},
		{"slot", JSON_IN_STR, offsetof(struct selector_body, s.slot), .size = 32},
		{"labels", JSON_IN_OBJECT, offsetof(struct selector_body, labels), .min = 0},
	};
	struct selector_body b = {0};
	char pointer[96];
	enum rc rc = json_in_fields(object, base, fields, array_len(fields), &b, err);
	if (rc == RC_OK)
		rc = check_host(core, base, &b.s, err);
	snprintf(pointer, sizeof(pointer), "%s/labels", base);
	if (rc == RC_OK && b.labels)
		rc = json_in_labels(b.labels, pointer, b.s.labels, sizeof(b.s.labels), err);
	*out = b.s;
	return rc;
}
