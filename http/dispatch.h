/*
 * The way of a request: its headers are checked at once, its body is collected, it is answered from
 * the cache on the loop or by its handler on a worker. The first three are called by the loop
 * thread of the connection.
 */
#ifndef DRIVEWATT_HTTP_DISPATCH_H
#define DRIVEWATT_HTTP_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>

struct http_request;

enum step {
	STEP_READ,   /* go on reading the body */
	STEP_WAIT,   /* the connection was suspended; the same step is called again afterwards */
	STEP_ANSWER, /* q->answer is ready */
	STEP_CLOSE,  /* close the connection without an answer */
};

enum step dispatch_headers(struct http_request *q, const char *method);
enum step dispatch_body(struct http_request *q, const char *data, size_t len);
/* The body is whole. */
enum step dispatch_complete(struct http_request *q);

/* The answer goes out before the request has come whole. */
bool dispatch_is_early(struct http_request *q);

/* Answers a waiting request in place of the operation that did not. True when it was waiting. */
bool dispatch_abandon(struct http_request *q);

#endif
