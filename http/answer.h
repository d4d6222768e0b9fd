/*
 * A finished answer: status, headers and bytes as the connection sends them. Counted references,
 * since cached ones are sent on many connections at once. Never changed once made.
 */
#ifndef DRIVEWATT_HTTP_ANSWER_H
#define DRIVEWATT_HTTP_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct MHD_Response;
struct http_stream;

/* A body. Any thread. */
struct bytes {
	_Atomic unsigned refs;
	size_t len;
	const char *data;
	char *owned; /* data when it is freed with the struct, NULL when it is static */
};

/* Takes owned over, also when it fails (NULL). */
struct bytes *bytes_new_owned(char *owned, size_t len);
struct bytes *bytes_new_static(const char *data, size_t len);
struct bytes *bytes_ref(struct bytes *b);
void bytes_unref(struct bytes *b); /* NULL is fine */

/* What becomes headers. Texts may be NULL or "". */
struct answer_head {
	int status;
	const char *content_type; /* static text */
	const char *etag;
	const char *location;
	const char *allow;
	const char *request_id;
	int retry_after_s;
	bool gzip;
	bool replayed;
	bool dry_run;
	bool no_store;
	bool varies;    /* by Accept, Accept-Encoding and who asks */
	bool challenge; /* names the ways to authenticate */
	bool close;
};

struct answer {
	_Atomic unsigned refs;
	int status;
	struct MHD_Response *response;
	struct bytes *bytes;      /* NULL: none, or a stream */
	const char *content_type; /* static */
	bool gzip;
	bool varies;
	char etag[64];
};

/* Takes bytes (NULL: none) over, also when it fails (NULL). */
struct answer *answer_new(const struct answer_head *head, struct bytes *bytes);
/* Takes s over, also when it fails. */
struct answer *answer_new_stream(const struct answer_head *head, struct http_stream *s);
/* The same with a request's id. */
struct answer *answer_with_id(const struct answer *a, const char *request_id);
/* 304 for what a shows. */
struct answer *answer_not_modified(const struct answer *a, const char *request_id);
struct answer *answer_ref(struct answer *a);
void answer_unref(struct answer *a); /* NULL is fine */

#endif
