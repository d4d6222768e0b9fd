/*
 * Routes are tables: method, pattern, who may, limits, handler, in one greppable line. A tree is
 * a table with its own way of rendering errors. Tables and trees are read by all threads of the
 * server and do not change once it was started.
 */
#ifndef DRIVEWATT_HTTP_ROUTE_H
#define DRIVEWATT_HTTP_ROUTE_H

#include "http/request.h"

#define HTTP_ROUTE_MAX_PARAMS 4
#define HTTP_BODY_UNAUTHENTICATED_MAX 4096

enum http_route_flags {
	HTTP_PUBLIC = 1 << 0,  /* needs no credentials */
	HTTP_ON_LOOP = 1 << 1, /* so short that it runs on the HTTP loop: touches no store */
	HTTP_METRICS = 1 << 2, /* public where http_config.public_metrics says so */
	HTTP_HASHES = 1 << 4,  /* computes a password hash: runs where few do at once */
	HTTP_HISTORY = 1 << 5, /* may read for seconds: runs where few do at once. Not pending. */
	HTTP_ONCE = 1 << 3,    /* honours an Idempotency-Key, which other POSTs refuse */
	HTTP_DRY_RUN = 1 << 6, /* honours ?dry_run (struct actor), which others refuse */
};

struct http_route {
	const char *method;    /* "GET" serves HEAD too */
	const char *pattern;   /* "/api/v1/drives/{id}/power" */
	const char *operation; /* operationId of openapi.yaml */
	enum role role;        /* the least that may call it */
	unsigned flags;
	size_t body_max;   /* of the request; 0: a body is refused */
	size_t answer_max; /* of the answer's body; 0: 256 KiB */
	http_handler *handler;
	/* Media types of the answer, "application/json,text/csv": none acceptable is 406. NULL:
	 * JSON alone. What is not JSON must be named here. */
	const char *types;
	/* GET only: a version of everything the answer shows, cheap and non-blocking. Where it is
	 * given, the body is cached by (target, variant) and served from the HTTP loop while the
	 * version stands. On the loop and on workers at once. */
	uint64_t (*version)(void *ctx, const struct http_request *q);
};

/* Renders err as the tree's error body with status; sets content type. */
typedef void http_render_error(
	struct http_response *r, const struct http_request *q, int status, const struct err *err);

struct http_tree {
	const char *prefix; /* "/api/v1"; "" matches what no other tree does */
	const struct http_route *routes;
	size_t count;
	http_render_error *render_error;
	void *ctx;
};

/* The status of an rc: one table for all faces. */
int http_status_of(enum rc rc);
/* Renders err through q's tree into r, for handlers: `return http_fail(q, r, &err);` */
enum http_next http_fail(struct http_request *q, struct http_response *r, const struct err *err);

#endif
