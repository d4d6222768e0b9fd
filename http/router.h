/* All trees' routes in one trie of path segments, built once and only read from then on. */
#ifndef DRIVEWATT_HTTP_ROUTER_H
#define DRIVEWATT_HTTP_ROUTER_H

#include "http/route.h"
#include "http/target.h"

struct router;
struct router_node;

struct router *router_new(struct err *err);
void router_free(struct router *r); /* NULL is fine */
/* tree and its routes are borrowed. RC_INVALID: a pattern, method or role that cannot be,
 * RC_EXISTS: the same route twice. */
enum rc must_check router_add(struct router *r, const struct http_tree *tree, struct err *err);

struct route_match {
	const struct http_tree *tree;   /* whose errors to show; NULL when no tree has the prefix */
	const struct router_node *node; /* NULL: 404 */
	const char *params[HTTP_ROUTE_MAX_PARAMS];
};

void router_find(const struct router *r, const struct target *t, struct route_match *m);
/* The route of the node for this method, NULL: 405. HEAD is GET. */
const struct http_route *router_method(const struct router_node *node, const char *method);
/* "GET, HEAD, PUT" */
const char *router_allow(const struct router_node *node);
/* Whether HTTP has this method at all, for 405 or 501. */
bool router_knows_method(const char *method);
/* The place of {name} in the route's pattern, -1 if it has none. */
int route_param(const struct http_route *route, const char *name);

#endif
