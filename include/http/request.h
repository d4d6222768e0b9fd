/*
 * A request and its answer as handlers see them. A handler runs on a worker thread; it may block
 * on the store, never on a drive, a BMC or fio: for those it starts the asynchronous operation,
 * returns HTTP_PENDING, and is continued when the operation calls http_resume(). Between the two
 * nobody touches request or response; all functions here but http_resume are the handler's own.
 */
#ifndef DRIVEWATT_HTTP_REQUEST_H
#define DRIVEWATT_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rc.h"
#include "model/account.h"

struct http_request;

enum http_next { HTTP_DONE, HTTP_PENDING };

struct http_stream;

struct http_response {
	int status;               /* 0: 200 with a body, 204 without */
	const char *content_type; /* static text; NULL: application/json */
	struct buf body;          /* its max was set by the route; freed by the server */
	const char *asset;        /* static bytes, never freed; given, they go instead of body */
	size_t asset_len;
	char etag[64];              /* with quotes; "" none */
	char location[256];         /* "" none */
	char allow[64];             /* the server's own: of 405 and OPTIONS */
	int retry_after_s;          /* 0 none */
	bool replayed;              /* made by an earlier request of the same Idempotency-Key */
	bool no_store;              /* secrets inside */
	struct http_stream *stream; /* taken over; given, it goes instead of both */
};

/* ctx is the tree's. */
typedef enum http_next http_handler(struct http_request *q, struct http_response *r, void *ctx);

/* All borrowed from the request, valid until it is answered: what outlives that must be copied, an
 * actor for an operation that goes on too. */
const char *http_method(const struct http_request *q);
/* As it was sent, percent-encoded, without the query. */
const char *http_path(const struct http_request *q);
/* A {name} of the route's pattern; never NULL for a name that the pattern has. */
const char *http_param(const struct http_request *q, const char *name);
/* NULL when absent, "" when there is no value. */
const char *http_query(const struct http_request *q, const char *name);
/* The n-th query argument's name, NULL past the end: to refuse unknown ones. */
const char *http_query_name(const struct http_request *q, unsigned n);
const char *http_header(const struct http_request *q, const char *name);
const char *http_body(const struct http_request *q, size_t *len); /* NUL-terminated */
const struct actor *http_actor(const struct http_request *q);
/* The query parameter behind actor's dry_run: checked and taken before any handler runs. The answer
 * to a dry run has a header of its own, 200 in place of 201 and 202, and neither tag nor place. */
#define HTTP_DRY_RUN_PARAMETER "dry_run"
/* Whether Accept prefers this media type over JSON. */
bool http_accepts(const struct http_request *q, const char *media_type);

/* The request's own memory, for continuations: freed by free_fn when the request ends, or when
 * another takes its place. free_fn NULL: borrowed. */
void http_set_user(struct http_request *q, void *user, void (*free_fn)(void *user));
void *http_user(const struct http_request *q);

/* After HTTP_PENDING: runs next on a worker with the same response. Exactly once for each
 * HTTP_PENDING; may be called before the handler has returned. Any thread. */
void http_resume(struct http_request *q, http_handler *next);

/* For every PUT, PATCH and DELETE: If-Match and If-None-Match against what is there, whose
 * configuration has this version ("c7.o9" compares c7). RC_PRECONDITION (412), and
 * RC_PRECONDITION_REQUIRED (428) where the configuration demands If-Match. *if_version is what the
 * change must then find (model/version.h): checked again in its transaction. */
enum rc must_check http_check_conditions(const struct http_request *q, bool exists,
	uint32_t version, uint32_t *if_version, struct err *err);
/* "\"c<config>\"" or "\"c<config>.o<observed>\"" (observed UINT64_MAX: none). */
void http_set_etag(struct http_response *r, uint64_t config_version, uint64_t observed);

#endif
