#include "http/accept.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"

#define JSON "application/json"

/* One element of a list such as "text/html;level=1;q=0.5, gzip". */
struct item {
	const char *name; /* without parameters, len bytes */
	size_t len;
	int q; /* in thousandths */
};

static bool is_space(char c) {
	return c == ' ' || c == '\t';
}

/* Cuts spaces off both ends of s, len bytes. */
static const char *trim(const char *s, size_t *len) {
	while (*len && is_space(*s)) {
		s++;
		(*len)--;
	}
	while (*len && is_space(s[*len - 1]))
		(*len)--;
	return s;
}

/* "0.75" → 750. What is no weight counts as 1. */
static int parse_q(const char *s, size_t len) {
	if (!len || s[0] != '0')
		return 1000;
	int q = 0;
	int unit = 100;
	for (size_t i = 2; i < len && i < 5 && s[1] == '.'; i++, unit /= 10) {
		if (s[i] < '0' || s[i] > '9')
			return 1000;
		q += (s[i] - '0') * unit;
	}
	return q;
}

/* The end of what begins at s: a comma or semicolon outside of quotes, or the NUL. */
static const char *part_end(const char *s) {
	bool quoted = false;
	s += strcspn(s, "\",;");
	while (*s == '"' || *s == '\\') {
		if (*s == '"')
			quoted = !quoted;
		else if (s[1])
			s++; /* what follows is meant literally */
		s++;
		s += strcspn(s, quoted ? "\"\\" : "\",;");
	}
	return s;
}

static void parse_param(const char *s, size_t len, struct item *out) {
	s = trim(s, &len);
	if (len > 2 && (s[0] == 'q' || s[0] == 'Q') && s[1] == '=')
		out->q = parse_q(s + 2, len - 2);
}

/* Takes the next element off *at; false at the end. Empty elements are skipped. */
static bool next_item(const char **at, struct item *out) {
	while (**at == ',' || is_space(**at))
		(*at)++;
	if (!**at)
		return false;
	const char *end = part_end(*at);
	size_t len = (size_t)(end - *at);
	const char *name = trim(*at, &len);
	*out = (struct item){name, len, 1000};
	while (*end == ';') {
		const char *param = end + 1;
		end = part_end(param);
		parse_param(param, (size_t)(end - param), out);
	}
	*at = end;
	return true;
}

static bool text_is(const char *s, size_t len, const char *want, size_t want_len) {
	return len == want_len && !strncasecmp(s, want, len);
}

static bool has_suffix_json(const char *s, size_t len) {
	return len > 5 && text_is(s + len - 5, 5, "+json", 5);
}

/* How exactly a media range covers a type: 0 not at all, 3 by name. */
static int covers(const struct item *range, const char *type, size_t len) {
	if (text_is(range->name, range->len, "*/*", 3))
		return 1;
	const char *slash = memchr(type, '/', len);
	size_t major = slash ? (size_t)(slash - type) + 1 : 0;
	if (range->len == major + 1 && range->name[major] == '*' &&
		!strncasecmp(range->name, type, major))
		return 2;
	if (text_is(range->name, range->len, type, len))
		return 3;
	/* A client that asks for "application/problem+json" takes JSON as well. */
	if (text_is(type, len, JSON, sizeof(JSON) - 1) && has_suffix_json(range->name, range->len))
		return 3;
	return 0;
}

/* How well a type is liked: its weight, and for equals how exactly it was named. 0: not at all. */
static int liking(const char *accept, const char *type, size_t len) {
	if (!accept || !accept[strspn(accept, " \t,")])
		return 1;
	int best = 0;
	int q = 0;
	struct item range;
	while (next_item(&accept, &range)) {
		int exact = covers(&range, type, len);
		if (exact > best || (exact && exact == best && range.q > q)) {
			best = exact;
			q = range.q;
		}
	}
	return q ? q * 4 + best : 0;
}

int accept_choose(const char *accept, const char *types) {
	if (!accept || strcmp(accept, "*/*") == 0)
		return 0;
	int best = -1;
	int best_liking = 0;
	struct item type;
	for (int i = 0; next_item(&types, &type); i++) {
		int l = liking(accept, type.name, type.len);
		if (l > best_liking) {
			best = i;
			best_liking = l;
		}
	}
	return best;
}

bool accept_prefers(const char *accept, const char *media) {
	return liking(accept, media, strlen(media)) > liking(accept, JSON, sizeof(JSON) - 1);
}

bool accept_gzip(const char *accept_encoding) {
	if (!accept_encoding)
		return false;
	int gzip = -1;
	int any = 0;
	int identity = 0;
	struct item coding;
	while (next_item(&accept_encoding, &coding)) {
		if (text_is(coding.name, coding.len, "gzip", 4) ||
			text_is(coding.name, coding.len, "x-gzip", 6))
			gzip = coding.q;
		else if (text_is(coding.name, coding.len, "*", 1))
			any = coding.q;
		else if (text_is(coding.name, coding.len, "identity", 8))
			identity = coding.q;
	}
	if (gzip < 0)
		gzip = any;
	return gzip && gzip >= identity;
}

bool media_is_json(const char *content_type) {
	struct item type;
	if (!content_type || !next_item(&content_type, &type))
		return false;
	return text_is(type.name, type.len, JSON, sizeof(JSON) - 1) ||
		(has_suffix_json(type.name, type.len) && memchr(type.name, '/', type.len));
}
