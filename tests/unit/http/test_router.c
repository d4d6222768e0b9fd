#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "http/router.h"

static enum http_next handler(struct http_request *q, struct http_response *r, void *ctx) {
	(void)q;
	(void)r;
	(void)ctx;
	return HTTP_DONE;
}

static void render(
	struct http_response *r, const struct http_request *q, int status, const struct err *err) {
	(void)r;
	(void)q;
	(void)status;
	(void)err;
}

#define ROUTE(m, p) \
	{ m, p, "op", ROLE_READ_ONLY, .handler = handler }

static const struct http_route v1_routes[] = {
	ROUTE("GET", "/api/v1/drives"),
	ROUTE("GET", "/api/v1/drives/{id}"),
	ROUTE("PATCH", "/api/v1/drives/{id}"),
	ROUTE("GET", "/api/v1/drives/{id}/power"),
	ROUTE("GET", "/api/v1/drives/{id}/power/desired"),
	ROUTE("PUT", "/api/v1/drives/{id}/power/desired"),
	ROUTE("DELETE", "/api/v1/drives/{id}/power/desired"),
	ROUTE("GET", "/api/v1/drives/all/health"),
	ROUTE("POST", "/api/v1/power-changes"),
	ROUTE("GET", "/api/v1/a/{x}/b/{y}"),
};

static const struct http_route redfish_routes[] = {
	ROUTE("GET", "/redfish/v1/"),
	ROUTE("GET", "/redfish/v1/Systems/{system}"),
};

static const struct http_route root_routes[] = {
	ROUTE("GET", "/"),
	ROUTE("GET", "/healthz"),
	ROUTE("GET", "/assets/{file}"),
};

static const struct http_tree trees[] = {
	{"", root_routes, array_len(root_routes), render, NULL},
	{"/api/v1", v1_routes, array_len(v1_routes), render, NULL},
	{"/redfish", redfish_routes, array_len(redfish_routes), render, NULL},
};

static struct router *router;

static int set_up(void **state) {
	(void)state;
	struct err err;
	router = router_new(&err);
	for (size_t i = 0; i < array_len(trees); i++) {
		if (router_add(router, &trees[i], &err))
			return -1;
	}
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	router_free(router);
	return 0;
}

static void paths(void **state) {
	(void)state;
	static const struct {
		const char *method, *path;
		const char *pattern; /* NULL: no node; "": a node without this method */
		int tree;
		const char *param, *value;
	} cases[] = {
		{"GET", "/", "/", 0, NULL, NULL},
		{"GET", "/healthz", "/healthz", 0, NULL, NULL},
		{"HEAD", "/healthz", "/healthz", 0, NULL, NULL},
		{"GET", "/healthz/", "/healthz", 0, NULL, NULL},
		{"GET", "/healthz//", NULL, 0, NULL, NULL},
		{"GET", "//healthz", NULL, 0, NULL, NULL},
		{"GET", "//", NULL, 0, NULL, NULL},
		{"GET", "/Healthz", NULL, 0, NULL, NULL},
		{"GET", "/assets/app.js", "/assets/{file}", 0, "file", "app.js"},
		{"GET", "/assets/", NULL, 0, NULL, NULL},
		{"GET", "/api", NULL, 0, NULL, NULL},
		{"GET", "/api/v1", NULL, 1, NULL, NULL},
		{"GET", "/api/v10", NULL, 0, NULL, NULL},
		{"GET", "/api/v1/none", NULL, 1, NULL, NULL},
		{"GET", "/api/v1/drives", "/api/v1/drives", 1, NULL, NULL},
		{"GET", "/api/v1/drives/", "/api/v1/drives", 1, NULL, NULL},
		{"GET", "/api/v1/drives//", NULL, 1, NULL, NULL},
		{"GET", "/api/v1/drives//power", NULL, 1, NULL, NULL},
		{"GET", "/api/v1/drives/x", "/api/v1/drives/{id}", 1, "id", "x"},
		{"GET", "/api/v1/drives/..", "/api/v1/drives/{id}", 1, "id", ".."},
		{"GET", "/api/v1/drives/a%2Fpower", "/api/v1/drives/{id}", 1, "id", "a/power"},
		{"GET", "/api/v1/drives/x/power", "/api/v1/drives/{id}/power", 1, "id", "x"},
		{"GET", "/api/v1/drives/all/health", "/api/v1/drives/all/health", 1, NULL, NULL},
		/* the literal leads nowhere, the parameter does */
		{"GET", "/api/v1/drives/all/power", "/api/v1/drives/{id}/power", 1, "id", "all"},
		{"GET", "/api/v1/drives/all", "/api/v1/drives/{id}", 1, "id", "all"},
		{"GET", "/api/v1/drives/x/health", NULL, 1, NULL, NULL},
		{"DELETE", "/api/v1/drives/x/power/desired", "/api/v1/drives/{id}/power/desired", 1,
			"id", "x"},
		{"POST", "/api/v1/drives/x/power/desired", "", 1, NULL, NULL},
		{"GET", "/api/v1/power-changes", "", 1, NULL, NULL},
		{"HEAD", "/api/v1/power-changes", "", 1, NULL, NULL},
		{"get", "/healthz", "", 0, NULL, NULL},
		{"GET", "/api/v1/a/1/b/2", "/api/v1/a/{x}/b/{y}", 1, "y", "2"},
		{"GET", "/redfish/v1", "/redfish/v1/", 2, NULL, NULL},
		{"GET", "/redfish/v1/", "/redfish/v1/", 2, NULL, NULL},
		{"GET", "/redfish/v1/x", NULL, 2, NULL, NULL},
		{"GET", "/redfish/v1/Systems/1", "/redfish/v1/Systems/{system}", 2, "system", "1"},
		{"GET", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o", NULL, 0, NULL, NULL},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct target t;
		struct route_match m;
		struct err err;
		char scratch[200];
		assert_int_equal(target_parse(&t, cases[i].path, scratch, &err), RC_OK);
		router_find(router, &t, &m);
		const struct http_route *route =
			m.node ? router_method(m.node, cases[i].method) : NULL;
		const char *got = route ? route->pattern : m.node ? "" : NULL;
		assert_ptr_equal(m.tree, &trees[cases[i].tree]);
		if (!cases[i].pattern) {
			assert_null(got);
			continue;
		}
		assert_string_equal(got, cases[i].pattern);
		if (cases[i].param)
			assert_string_equal(
				m.params[route_param(route, cases[i].param)], cases[i].value);
	}
}

static void too_deep_is_not_found(void **state) {
	(void)state;
	struct target t;
	struct err err;
	char path[201] = "";
	for (int i = 0; i < 100; i++)
		memcpy(path + 2 * i, "/a", 3);
	char scratch[target_scratch_size(200)];
	assert_int_equal(target_parse(&t, path, scratch, &err), RC_NOT_FOUND);
}

static void allow_lists_methods(void **state) {
	(void)state;
	struct target t;
	struct route_match m;
	struct err err;
	char scratch[200];
	assert_int_equal(target_parse(&t, "/api/v1/drives/x/power/desired", scratch, &err), RC_OK);
	router_find(router, &t, &m);
	assert_string_equal(router_allow(m.node), "GET, HEAD, PUT, DELETE");
}

static void params_by_name(void **state) {
	(void)state;
	const struct http_route *route = &v1_routes[9];
	assert_int_equal(route_param(route, "x"), 0);
	assert_int_equal(route_param(route, "y"), 1);
	assert_int_equal(route_param(route, "z"), -1);
	assert_int_equal(route_param(route, ""), -1);
	assert_int_equal(route_param(&v1_routes[0], "x"), -1);
}

static void methods_known(void **state) {
	(void)state;
	assert_true(router_knows_method("GET"));
	assert_true(router_knows_method("TRACE"));
	assert_false(router_knows_method("BREW"));
	assert_false(router_knows_method(""));
}

static void bad_tables_are_refused(void **state) {
	(void)state;
	static const struct {
		struct http_route routes[2];
		enum rc rc;
	} cases[] = {
		{{ROUTE("GET", "/x"), ROUTE("GET", "/x")}, RC_EXISTS},
		{{ROUTE("GET", "/x/{a}"), ROUTE("GET", "/x/{b}")}, RC_EXISTS},
		{{ROUTE("GET", "/x"), ROUTE("GET", "/x/")}, RC_EXISTS},
		{{ROUTE("HEAD", "/x"), ROUTE("GET", "/y")}, RC_INVALID},
		{{ROUTE("BREW", "/x"), ROUTE("GET", "/y")}, RC_INVALID},
		{{ROUTE("GET", "x"), ROUTE("GET", "/y")}, RC_INVALID},
		{{ROUTE("GET", "/x//y"), ROUTE("GET", "/y")}, RC_INVALID},
		{{ROUTE("GET", "/{a}/{b}/{c}/{d}/{e}"), ROUTE("GET", "/y")}, RC_INVALID},
		{{ROUTE("GET", "/x"), {"GET", "/y", "op", ROLE_NONE, .handler = NULL}}, RC_INVALID},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct err err;
		struct router *r = router_new(&err);
		struct http_tree tree = {"", cases[i].routes, 2, render, NULL};
		assert_int_equal(router_add(r, &tree, &err), cases[i].rc);
		router_free(r);
	}
	struct err err;
	struct http_tree again = {"/api/v1", v1_routes, 0, render, NULL};
	assert_int_equal(router_add(router, &again, &err), RC_EXISTS);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(too_deep_is_not_found),
		cmocka_unit_test(allow_lists_methods),
		cmocka_unit_test(params_by_name),
		cmocka_unit_test(methods_known),
		cmocka_unit_test(bad_tables_are_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
