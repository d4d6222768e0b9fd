#include "core/bmc/foreign_json.h"

#include <string.h>

#include "base/buf.h"

/* --- repair --- */

/* Length of the valid UTF-8 sequence at p, or 0. */
static size_t utf8_len(const unsigned char *p, size_t left) {
	static const struct {
		unsigned char mask, lead, len;
		uint32_t min;
	} forms[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800},
		{0xf8, 0xf0, 4, 0x10000}};
	for (size_t f = 0; f < array_len(forms); f++) {
		if ((*p & forms[f].mask) != forms[f].lead)
			continue;
		if (forms[f].len > left)
			return 0;
		uint32_t code = *p & (unsigned char)~forms[f].mask;
		for (size_t i = 1; i < forms[f].len; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (p[i] & 0x3f);
		}
		bool surrogate = code >= 0xd800 && code <= 0xdfff;
		return code < forms[f].min || code > 0x10ffff || surrogate ? 0 : forms[f].len;
	}
	return 0;
}

struct repair {
	struct buf text;
	bool repaired, in_string, escaped;
	unsigned depth, deepest;
};

static void track_structure(struct repair *r, unsigned char c) {
	if (c == '"')
		r->in_string = true;
	else if (c == '{' || c == '[')
		r->depth++;
	else if ((c == '}' || c == ']') && r->depth)
		r->depth--;
	if (r->depth > r->deepest)
		r->deepest = r->depth;
}

static void track_string(struct repair *r, unsigned char c) {
	bool escaped = r->escaped;
	r->escaped = !escaped && c == '\\';
	if (c == '"' && !escaped)
		r->in_string = false;
}

/* Takes one character over; returns how many bytes it had. */
static size_t take(struct repair *r, const unsigned char *p, size_t left) {
	size_t len = utf8_len(p, left);
	if (!len) {
		buf_adds(&r->text, "\xef\xbf\xbd");
		r->repaired = true;
		r->escaped = false;
		return 1;
	}
	bool control = r->in_string && *p < 0x20;
	if (r->in_string)
		track_string(r, *p);
	else
		track_structure(r, *p);
	if (control)
		buf_addc(&r->text, ' ');
	else
		buf_add(&r->text, p, len);
	r->repaired |= control;
	return len;
}

static void repair(struct repair *r, const char *text, size_t len) {
	const unsigned char *p = (const unsigned char *)text;
	size_t at = len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	r->repaired = at > 0;
	while (at < len)
		at += take(r, p + at, len - at);
}

/* --- documents --- */

static bool is_error(const json_t *doc) {
	return json_is_object(json_object_get(doc, "error")) && json_object_size(doc) <= 2;
}

static const char *skip_space(const char *p) {
	return p + strspn(p, " \t\r\n");
}

static enum rc fail(struct foreign_json *out, enum rc rc, const char *reason, struct err *err,
	const char *msg) {
	json_decref(out->doc);
	out->doc = NULL;
	out->reason = reason;
	return err_set(err, rc, "%s", msg);
}

static enum rc parse_all(
	const char *p, const char *end, struct foreign_json *out, struct err *err) {
	/* Integers as reals: one beyond 64 bits must not cost the document. */
	const size_t flags = JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
	bool only_errors = false;
	for (; p < end; p = skip_space(p)) {
		json_error_t error;
		json_t *doc = json_loadb(p, (size_t)(end - p), flags, &error);
		if (!doc) {
			bool cut = json_error_code(&error) == json_error_premature_end_of_input;
			return fail(out, RC_CORRUPT, cut ? "bmc_truncated" : "bmc_bad_json", err,
				error.text);
		}
		p += error.position;
		if (is_error(doc) && out->doc && !only_errors) {
			json_decref(doc);
			continue;
		}
		only_errors = is_error(doc);
		json_decref(out->doc);
		out->doc = doc;
	}
	if (!only_errors)
		return RC_OK;
	out->reason = "bmc_error";
	return err_set(err, RC_REFUSED, "the answer is an error object");
}

enum rc foreign_json_parse(
	const char *text, size_t len, struct foreign_json *out, struct err *err) {
	*out = (struct foreign_json){0};
	if (len > FOREIGN_JSON_MAX_BYTES)
		return fail(out, RC_TOO_LARGE, "bmc_bad_json", err, "the document is too large");
	struct repair r = {0};
	/* A replaced byte becomes three. */
	buf_init(&r.text, (size_t)FOREIGN_JSON_MAX_BYTES * 3);
	repair(&r, text, len);
	const char *begin = skip_space(buf_str(&r.text));
	enum rc rc = buf_status(&r.text, err);
	if (rc)
		out->reason = "bmc_bad_json";
	else if (*begin != '{' && *begin != '[')
		rc = fail(out, RC_CORRUPT, "bmc_not_json", err, "the answer is not JSON");
	else if (r.deepest > FOREIGN_JSON_MAX_DEPTH)
		rc = fail(
			out, RC_CORRUPT, "bmc_bad_json", err, "the document is nested too deeply");
	else
		rc = parse_all(begin, r.text.data + r.text.len, out, err);
	out->repaired = r.repaired;
	buf_release(&r.text);
	return rc;
}
