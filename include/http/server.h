/*
 * The HTTP server: listeners, connections, workers, authentication, caching, streams.
 */
#ifndef DRIVEWATT_HTTP_SERVER_H
#define DRIVEWATT_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rc.h"
#include "http/route.h"

struct accounts;
struct http_server;

#define HTTP_MAX_LISTENERS 8
#define HTTP_MAX_TREES 4

struct http_config {
	const char *listen[HTTP_MAX_LISTENERS]; /* "127.0.0.1:8484", "[::1]:0" */
	unsigned listen_count;
	const char *tls_cert_pem, *tls_key_pem; /* contents, NULL: plain */
	const char *tls_priorities; /* of GnuTLS; NULL: TLS 1.2 and 1.3 with forward secrecy */
	bool allow_plaintext_beyond_loopback;
	unsigned loop_threads;
	unsigned workers;         /* 8 */
	unsigned queue;           /* 256, then 503 with Retry-After */
	unsigned max_connections; /* 1024 */
	unsigned max_per_address; /* 0: no limit of its own */
	unsigned idle_timeout_s;  /* of a connection; twice that is the most a request may take to
				     come */
	size_t header_bytes;      /* memory of a connection for headers */
	unsigned max_streams;
	unsigned cache_bytes_max; /* of all cached bodies; one takes at most an eighth */
	bool gzip;
	bool public_metrics;
	bool require_if_match; /* 428 for a change of what is there without If-Match */
};

/* accounts and the texts of config are borrowed. Nothing listens yet. */
struct http_server *http_server_new(
	const struct http_config *config, struct accounts *accounts, struct err *err);
/* Trees are tried in order of adding, by prefix; borrowed. */
enum rc must_check http_server_add_tree(
	struct http_server *s, const struct http_tree *tree, struct err *err);
/* Opens the listeners. RC_FORBIDDEN: plain HTTP beyond loopback. */
enum rc must_check http_server_start(struct http_server *s, struct err *err);
/* "http://127.0.0.1:8484" of the n-th listener with its real port; NULL past the end. */
const char *http_server_url(struct http_server *s, unsigned n);
bool http_server_ready(struct http_server *s);
/* Refuses new connections, closes streams, lets requests end; at most deadline_ms. A request
 * that still waits for http_resume() then is answered 503; resuming it later is harmless. */
void http_server_stop(struct http_server *s, int64_t deadline_ms);
void http_server_free(struct http_server *s); /* NULL is fine */

/* Prints "METHOD pattern operation role" lines of all trees, for the contract test. */
void http_server_dump_routes(const struct http_tree *trees, size_t n, struct buf *out);

#endif
