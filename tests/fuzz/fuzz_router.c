/*
 * What strangers can send before they are known: the request target, then a line each of Accept,
 * Accept-Encoding, Content-Type and an ETag list.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "http/accept.h"
#include "http/etag.h"
#include "http/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum http_next handler(unused_arg struct http_request *q, unused_arg struct http_response *r,
	unused_arg void *ctx) {
	return HTTP_DONE;
}

static void render(unused_arg struct http_response *r, unused_arg const struct http_request *q,
	unused_arg int status, unused_arg const struct err *err) {
}

static const struct http_route routes[] = {
	{"GET", "/a", "a", ROLE_NONE, .handler = handler},
	{"GET", "/a/{x}", "b", ROLE_NONE, .handler = handler},
	{"PUT", "/a/{x}/c", "c", ROLE_NONE, .handler = handler},
	{"GET", "/a/b/{y}/{z}", "d", ROLE_NONE, .handler = handler},
};

static void must(bool ok) {
	if (!ok)
		abort();
}

static void target(const struct router *router, const char *raw) {
	struct target t;
	struct route_match m;
	struct err err;
	raw = target_origin(raw);
	char *scratch = malloc(target_scratch_size(strlen(raw)));
	enum rc rc = target_parse(&t, raw, scratch, &err);
	router_find(router, &t, &m);
	must(t.segment_count <= TARGET_MAX_SEGMENTS && t.arg_count <= TARGET_MAX_ARGS);
	const struct http_route *route = m.node ? router_method(m.node, "GET") : NULL;
	int x = route ? route_param(route, "x") : -1;
	/* a parameter is never empty, a decoded text never longer than it came */
	must(x < 0 || (m.params[x] && m.params[x][0]));
	for (unsigned i = 0; !rc && i < t.arg_count; i++)
		must(strlen(t.args[i].name) + strlen(t.args[i].value) <= strlen(raw));
	free(scratch);
}

static void headers(char *lines) {
	static const char types[] = "application/json,text/csv,text/*";
	const char *accept = strsep(&lines, "\n");
	must(accept_choose(accept, types) < 3);
	must(!accept_prefers(accept, "application/json"));
	accept_gzip(lines ? strsep(&lines, "\n") : NULL);
	media_is_json(lines ? strsep(&lines, "\n") : NULL);
	const char *etags = lines ? lines : "";
	etag_list_has(etags, "\"c7.o9\"");
	must(!etag_list_has_config(etags, 7, true) || strpbrk(etags, "7*"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct http_tree tree = {"", routes, array_len(routes), render, NULL};
	char *text = malloc(size + 1);
	struct err err;
	struct router *router = router_new(&err);
	must(text && router && !router_add(router, &tree, &err));
	memcpy(text, data, size);
	text[size] = '\0';
	char *lines = text;
	target(router, strsep(&lines, "\n"));
	if (lines)
		headers(lines);
	router_free(router);
	free(text);
	return 0;
}
