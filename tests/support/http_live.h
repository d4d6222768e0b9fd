/*
 * A running HTTP server over a tiny tree, with accounts that are made up: "Bearer reader",
 * "Bearer operator", "Bearer admin" and "Basic slow" are good, and remembered after the first use.
 */
#ifndef TESTS_SUPPORT_HTTP_LIVE_H
#define TESTS_SUPPORT_HTTP_LIVE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "http/route.h"
#include "http/server.h"
#include "http/stream.h"
#include "tests/support/raw_http.h"

#define AS_READER "Authorization: Bearer reader\r\n"
#define AS_OPERATOR "Authorization: Bearer operator\r\n"
#define AS_ADMIN "Authorization: Bearer admin\r\n"
#define AS_SLOW "Authorization: Basic slow\r\n"
#define SENDS_JSON "Content-Type: application/json\r\n"

struct live {
	struct http_server *server;
	const char *url;
	_Atomic uint64_t version;             /* of /t/things */
	_Atomic unsigned list_runs;           /* of its handler */
	_Atomic unsigned blocked;             /* handlers of /t/block inside */
	_Atomic bool release;                 /* lets them go */
	_Atomic unsigned freed;               /* user memory of requests */
	struct http_request *_Atomic pending; /* of /t/pending, for the test to resume */
	struct http_channel *channel;         /* of /t/events */
};

/* Sound defaults for tests: one listener on 127.0.0.1:0. */
struct http_config live_config(void);
/* Fails the test when it does not start. */
void live_start(struct live *l, const struct http_config *config);
void live_stop(struct live *l);

/* The next handler of /t/pending: answers {"pending": true}. */
http_handler live_finish;

/* Forgets and counts credentials. */
void live_accounts_reset(void);
unsigned live_accounts_hashes(void);
/* From now on, "Basic slow" is verified only when this is taken back. */
void live_accounts_slow(bool wait);
/* Waits until that many are being verified. */
void live_wait_for_slow(unsigned n);
/* No password is checked from now on. */
void live_accounts_throttled(bool throttled);

/* What "reader", "operator" or "admin" have open does not hold any more. */
void live_accounts_revoke(const char *name);

/* Waits until *what is at least n; fails the test after some seconds. */
void live_wait(_Atomic unsigned *what, unsigned n);

#endif
