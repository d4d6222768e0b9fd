#include "http/router.h"

#include <stdio.h>
#include <string.h>

/* What routes may have, in the order of Allow. */
static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
#define METHODS array_len(methods)
#define HEAD_INDEX 1

static const char *const other_methods[] = {"OPTIONS", "TRACE", "CONNECT"};

struct router_node {
	const char *text; /* borrowed from the pattern, len bytes */
	size_t len;
	struct router_node *first_child;
	struct router_node *next;
	struct router_node *param; /* matches any segment */
	const struct http_tree *tree;
	const struct http_route *routes[METHODS];
	bool has_routes;
	char allow[48];
};

struct router {
	struct router_node root;
};

struct router *router_new(struct err *err) {
	struct router *r = calloc(1, sizeof(*r));
	if (!r)
		err_set(err, RC_NOMEM, "out of memory");
	return r;
}

static void node_free(struct router_node *n) {
	while (n) {
		struct router_node *next = n->next;
		node_free(n->first_child);
		node_free(n->param);
		free(n);
		n = next;
	}
}

void router_free(struct router *r) {
	if (!r)
		return;
	node_free(r->root.first_child);
	node_free(r->root.param);
	free(r);
}

static int method_index(const char *method) {
	for (size_t i = 0; i < METHODS; i++) {
		if (!strcmp(methods[i], method))
			return (int)i;
	}
	return -1;
}

bool router_knows_method(const char *method) {
	for (size_t i = 0; i < array_len(other_methods); i++) {
		if (!strcmp(other_methods[i], method))
			return true;
	}
	return method_index(method) >= 0;
}

/* --- building --- */

static bool is_param(const char *text, size_t len) {
	return len > 2 && text[0] == '{' && text[len - 1] == '}';
}

static struct router_node *child_find(const struct router_node *n, const char *text, size_t len) {
	struct router_node *child = n->first_child;
	while (child && (child->len != len || memcmp(child->text, text, len)))
		child = child->next;
	return child;
}

static struct router_node *child_get(struct router_node *n, const char *text, size_t len) {
	bool param = is_param(text, len);
	struct router_node *child = param ? n->param : child_find(n, text, len);
	if (child)
		return child;
	child = calloc(1, sizeof(*child));
	if (!child)
		return NULL;
	child->text = text;
	child->len = len;
	if (param) {
		n->param = child;
	} else {
		child->next = n->first_child;
		n->first_child = child;
	}
	return child;
}

/* The node of a pattern, made with all above it. */
static struct router_node *node_get(struct router *r, const char *pattern, struct err *err) {
	struct router_node *n = &r->root;
	unsigned depth = 0;
	unsigned params = 0;
	while (*pattern) {
		pattern++; /* the slash */
		size_t len = strcspn(pattern, "/");
		if (!len && !pattern[len])
			break; /* a slash at the end */
		params += is_param(pattern, len);
		if (!len || ++depth > TARGET_MAX_SEGMENTS || params > HTTP_ROUTE_MAX_PARAMS) {
			err_set(err, RC_INVALID, "a pattern cannot be routed");
			return NULL;
		}
		n = child_get(n, pattern, len);
		if (!n) {
			err_set(err, RC_NOMEM, "out of memory");
			return NULL;
		}
		pattern += len;
	}
	return n;
}

static void allow_render(struct router_node *n) {
	size_t len = 0;
	for (size_t i = 0; i < METHODS; i++) {
		if (n->routes[i])
			len += (size_t)snprintf(n->allow + len, sizeof(n->allow) - len, "%s%s",
				len ? ", " : "", methods[i]);
	}
}

static enum rc route_add(struct router *r, const struct http_route *route, struct err *err) {
	int method = method_index(route->method);
	if (method < 0 || method == HEAD_INDEX || !route->handler || route->pattern[0] != '/')
		return err_set(err, RC_INVALID, "%s %s is no route", route->method, route->pattern);
	struct router_node *n = node_get(r, route->pattern, err);
	if (!n)
		return err ? err->rc : RC_INVALID;
	if (n->routes[method])
		return err_set(
			err, RC_EXISTS, "%s %s is there twice", route->method, route->pattern);
	n->routes[method] = route;
	if (!method)
		n->routes[HEAD_INDEX] = route;
	n->has_routes = true;
	allow_render(n);
	return RC_OK;
}

enum rc router_add(struct router *r, const struct http_tree *tree, struct err *err) {
	if (!tree->render_error || (tree->prefix[0] && tree->prefix[0] != '/'))
		return err_set(err, RC_INVALID, "%s is no tree", tree->prefix);
	struct router_node *top = node_get(r, tree->prefix, err);
	if (!top)
		return err ? err->rc : RC_INVALID;
	if (top->tree)
		return err_set(err, RC_EXISTS, "the tree %s is there twice", tree->prefix);
	top->tree = tree;
	for (size_t i = 0; i < tree->count; i++) {
		enum rc rc = route_add(r, &tree->routes[i], err);
		if (rc)
			return rc;
	}
	return RC_OK;
}

/* --- finding --- */

/* Literal segments win over parameters; where they lead nowhere, the parameter is tried. */
static const struct router_node *find(const struct router_node *n, const struct target *t,
	unsigned at, unsigned params, struct route_match *m) {
	if (n->tree)
		m->tree = n->tree;
	if (at == t->segment_count)
		return n->has_routes ? n : NULL;
	const char *segment = t->segments[at];
	const struct router_node *child = child_find(n, segment, strlen(segment));
	const struct router_node *found = child ? find(child, t, at + 1, params, m) : NULL;
	if (found || !n->param || !segment[0])
		return found;
	m->params[params] = segment;
	return find(n->param, t, at + 1, params + 1, m);
}

void router_find(const struct router *r, const struct target *t, struct route_match *m) {
	*m = (struct route_match){.tree = NULL};
	m->node = find(&r->root, t, 0, 0, m);
}

const struct http_route *router_method(const struct router_node *node, const char *method) {
	int i = method_index(method);
	return i < 0 ? NULL : node->routes[i];
}

const char *router_allow(const struct router_node *node) {
	return node->allow;
}

int route_param(const struct http_route *route, const char *name) {
	size_t len = strlen(name);
	int i = 0;
	for (const char *p = strchr(route->pattern, '{'); p; p = strchr(p + 1, '{'), i++) {
		if (!strncmp(p + 1, name, len) && p[1 + len] == '}')
			return i;
	}
	return -1;
}
