/*
 * The HTTP server: listeners, connections, workers, authentication, caching, streams. It is made,
 * started, stopped and freed by one thread; http_server_url and http_server_ready are for any.
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
#define HTTP_MAX_PROXIES 8

struct http_config {
	const char *listen[HTTP_MAX_LISTENERS]; /* "127.0.0.1:8484", "[::1]:0" */
	unsigned listen_count;
	const char *tls_cert_pem,
		*tls_key_pem;       /* contents, read by http_server_start; NULL: plain */
	const char *tls_priorities; /* of GnuTLS; NULL: TLS 1.2 and 1.3 with forward secrecy */
	bool allow_plaintext_beyond_loopback;
	/* In brackets what the configuration's keys give when they are not set. */
	unsigned loop_threads;    /* 1 … 16 (2) */
	unsigned workers;         /* 1 … 64 (8) */
	unsigned queue;           /* requests waiting for a worker, over 0 (256): then 503 with
				     Retry-After */
	unsigned hashers;         /* threads that check and hash passwords, 1 … 16 (2) */
	unsigned hash_queue;      /* passwords waiting for one, over 0 (32): then 503 likewise */
	unsigned history_workers; /* threads that read histories, 1 … 16 (2) */
	unsigned history_queue;   /* histories waiting for one, over 0 (32): then 503 likewise */
	unsigned max_connections; /* of all listeners, over 0 (1024) */
	unsigned max_per_address; /* connections of an address, or an IPv6 /64; 0: any (128) */
	const char *trusted_proxies[HTTP_MAX_PROXIES]; /* addresses: the limit is not theirs, and
							   X-Forwarded-For counts */
	unsigned trusted_proxy_count;
	unsigned idle_timeout_s;     /* of a connection, over 0 (60); twice that is the most a
					request may take to come */
	unsigned stranger_timeout_s; /* of one that has shown no credentials yet: the most from one
					request to the end of the next, over 0 (10) */
	size_t header_bytes;         /* of a connection, 1024 … (16384); more is 431 or 414 */
	unsigned max_streams;        /* of all channels, 0 … (128); then 503 */
	unsigned cache_bytes_max; /* 0 … (8 MiB), of all cached bodies; one takes up to an eighth */
	bool gzip;
	bool public_metrics;
	bool require_if_match; /* 428 for a change of what is there without If-Match */
};

/* accounts and the texts of config are borrowed. Nothing listens yet. */
struct http_server *http_server_new(
	const struct http_config *config, struct accounts *accounts, struct err *err);
/* Trees are tried in order of adding, by prefix; routes and ctx are borrowed. RC_FULL at
 * HTTP_MAX_TREES; before http_server_start. */
enum rc must_check http_server_add_tree(
	struct http_server *s, const struct http_tree *tree, struct err *err);
/* Opens the listeners. RC_FORBIDDEN: plain HTTP beyond loopback. */
enum rc must_check http_server_start(struct http_server *s, struct err *err);
/* New connections are shown this certificate, those that stand keep theirs. RC_INVALID: it cannot
 * be used, and the old one stays; RC_CONFLICT: started without one. Any thread. */
enum rc must_check http_server_certify(
	struct http_server *s, const char *cert_pem, const char *key_pem, struct err *err);
/* "http://127.0.0.1:8484" of the n-th listener with its real port; NULL past the end. */
const char *http_server_url(struct http_server *s, unsigned n);
/* From the end of http_server_start to the begin of http_server_stop. */
bool http_server_ready(struct http_server *s);
/* Refuses new connections, closes streams, lets requests end; at most deadline_ms. A request
 * that still waits for http_resume() then is answered 503; resuming it later is harmless. */
void http_server_stop(struct http_server *s, int64_t deadline_ms);
void http_server_free(struct http_server *s); /* NULL is fine */

/* Prints "METHOD pattern operation role" lines of all trees, for the contract test. */
void http_server_dump_routes(const struct http_tree *trees, size_t n, struct buf *out);

#endif
