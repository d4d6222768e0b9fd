#include "http/target.h"

#include <string.h>
#include <strings.h>

static int hex_value(char c) {
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Length of the valid UTF-8 sequence beyond ASCII at s (ends in NUL), 0 if it is none: overlong
 * forms, surrogates and what lies beyond U+10FFFF are none. */
static size_t utf8_len(const unsigned char *s) {
	static const struct {
		unsigned char lead_min, lead_max, second_min, second_max;
		size_t len;
	} forms[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	for (size_t i = 0; i < array_len(forms); i++) {
		if (s[0] < forms[i].lead_min || s[0] > forms[i].lead_max)
			continue;
		if (s[1] < forms[i].second_min || s[1] > forms[i].second_max)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++) {
			if (s[k] < 0x80 || s[k] > 0xbf)
				return 0;
		}
		return forms[i].len;
	}
	return 0;
}

static bool is_utf8(const char *s) {
	const unsigned char *p = (const unsigned char *)s;
	while (*p) {
		size_t len = *p < 0x80 ? 1 : utf8_len(p);
		if (!len)
			return false;
		p += len;
	}
	return true;
}

struct cursor {
	const char *at;
	char *out;
	struct err *err;
};

/* Decodes up to one of the characters in stop or the end, terminates the text in out. */
static enum rc decode(struct cursor *c, const char *stop, bool plus_is_space, const char **text) {
	char *start = c->out;
	unsigned char seen = 0;
	const char *end = c->at + strcspn(c->at, stop);
	while (c->at < end) {
		char ch = *c->at++;
		if (ch == '%') {
			int high = hex_value(c->at[0]);
			int low = high < 0 ? -1 : hex_value(c->at[1]);
			if (low < 0)
				return err_set(c->err, RC_INVALID,
					"the request target has a bad %% escape");
			ch = (char)(high << 4 | low);
			if (!ch)
				return err_set(c->err, RC_INVALID,
					"the request target has a NUL character");
			c->at += 2;
		} else if (ch == '+' && plus_is_space) {
			ch = ' ';
		}
		*c->out++ = ch;
		seen |= (unsigned char)ch;
	}
	*c->out++ = '\0';
	if (seen >= 0x80 && !is_utf8(start))
		return err_set(c->err, RC_INVALID, "the request target is not UTF-8");
	*text = start;
	return RC_OK;
}

static enum rc parse_segments(struct target *t, struct cursor *c) {
	while (*c->at == '/') {
		c->at++;
		if (t->segment_count == TARGET_MAX_SEGMENTS)
			return err_set(c->err, RC_NOT_FOUND, "no such resource");
		enum rc rc = decode(c, "/?", false, &t->segments[t->segment_count]);
		if (rc)
			return rc;
		t->segment_count++;
	}
	if (*c->at && *c->at != '?')
		return err_set(c->err, RC_NOT_FOUND, "no such resource");
	return RC_OK;
}

static enum rc parse_arg(struct target *t, struct cursor *c) {
	if (t->arg_count == TARGET_MAX_ARGS)
		return err_set(c->err, RC_INVALID, "more than %d query arguments", TARGET_MAX_ARGS);
	struct target_arg *arg = &t->args[t->arg_count];
	enum rc rc = decode(c, "=&", true, &arg->name);
	if (rc)
		return rc;
	arg->value = "";
	if (*c->at == '=') {
		c->at++;
		rc = decode(c, "&", true, &arg->value);
	}
	if (!rc && (arg->name[0] || arg->value[0]))
		t->arg_count++;
	return rc;
}

static enum rc parse_args(struct target *t, struct cursor *c) {
	enum rc rc = RC_OK;
	while (!rc && *c->at) {
		c->at++; /* the ? or & */
		rc = parse_arg(t, c);
	}
	return rc;
}

enum rc target_parse(struct target *t, const char *raw, char *scratch, struct err *err) {
	*t = (struct target){.path_len = strcspn(raw, "?")};
	struct cursor c = {raw, scratch, err};
	enum rc rc = parse_segments(t, &c);
	if (!rc)
		rc = parse_args(t, &c);
	if (t->segment_count && !t->segments[t->segment_count - 1][0])
		t->segment_count--;
	return rc;
}

const char *target_origin(const char *raw) {
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < array_len(schemes); i++) {
		size_t len = strlen(schemes[i]);
		if (!strncasecmp(raw, schemes[i], len)) {
			const char *path = raw + len + strcspn(raw + len, "/?");
			return *path == '/' ? path : "/";
		}
	}
	return raw;
}

const char *target_arg(const struct target *t, const char *name) {
	for (unsigned i = 0; i < t->arg_count; i++) {
		if (!strcmp(t->args[i].name, name))
			return t->args[i].value;
	}
	return NULL;
}
