#include "http/etag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "http/request.h"

#define GZIP_END "-gz"

struct tag {
	const char *text; /* between the quotes, without GZIP_END */
	size_t len;
	bool weak;
};

/* Takes the next tag off *at; false at the end or at what is no tag. */
static bool next_tag(const char **at, struct tag *out) {
	const char *s = *at + strspn(*at, " \t,");
	out->weak = !strncmp(s, "W/", 2);
	if (out->weak)
		s += 2;
	if (*s != '"')
		return false;
	out->text = s + 1;
	const char *end = strchr(out->text, '"');
	if (!end)
		return false;
	out->len = (size_t)(end - out->text);
	size_t cut = sizeof(GZIP_END) - 1;
	if (out->len > cut && !memcmp(end - cut, GZIP_END, cut))
		out->len -= cut;
	*at = end + 1;
	return true;
}

bool etag_list_is_any(const char *list) {
	list += strspn(list, " \t");
	return list[0] == '*' && !list[1 + strspn(list + 1, " \t")];
}

bool etag_list_has(const char *list, const char *etag) {
	if (etag_list_is_any(list))
		return true;
	struct tag want, tag;
	if (!next_tag(&etag, &want))
		return false;
	while (next_tag(&list, &tag)) {
		if (tag.len == want.len && !memcmp(tag.text, want.text, tag.len))
			return true;
	}
	return false;
}

/* "c7" or "c7.o9" against 7. */
static bool is_config(const struct tag *tag, uint64_t config_version) {
	char want[32];
	size_t len = (size_t)snprintf(want, sizeof(want), "c%" PRIu64, config_version);
	if (tag->len < len || memcmp(tag->text, want, len))
		return false;
	return tag->len == len || tag->text[len] == '.';
}

bool etag_list_has_config(const char *list, uint64_t config_version, bool weak) {
	if (etag_list_is_any(list))
		return true;
	struct tag tag;
	while (next_tag(&list, &tag)) {
		if ((weak || !tag.weak) && is_config(&tag, config_version))
			return true;
	}
	return false;
}

void etag_mark_gzip(char *etag, size_t size) {
	size_t len = strlen(etag);
	if (len < 2)
		return;
	if (len + sizeof(GZIP_END) > size)
		etag[0] = '\0';
	else
		memcpy(etag + len - 1, GZIP_END "\"", sizeof(GZIP_END "\""));
}

void http_set_etag(struct http_response *r, uint64_t config_version, uint64_t observed) {
	if (observed == UINT64_MAX)
		snprintf(r->etag, sizeof(r->etag), "\"c%" PRIu64 "\"", config_version);
	else
		snprintf(r->etag, sizeof(r->etag), "\"c%" PRIu64 ".o%" PRIu64 "\"", config_version,
			observed);
}
