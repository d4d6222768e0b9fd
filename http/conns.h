/*
 * The open connections: how many there may be, of whom, and how long each may let us wait. One that
 * has shown no credentials yet is a stranger. Strangers get half of all places and less time, and
 * the oldest one that we wait for makes room for a new connection: whoever opens connections to
 * hold them holds up nobody but other strangers. Any thread.
 */
#ifndef DRIVEWATT_HTTP_CONNS_H
#define DRIVEWATT_HTTP_CONNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rc.h"

struct conn;
struct conns;
struct http_config;
struct timers;
struct tls_use;

#define CONNS_TIMERS 2

/* Takes CONNS_TIMERS places of timers; config and timers are borrowed. */
struct conns *conns_new(const struct http_config *config, struct timers *timers, struct err *err);
/* Before the timers are freed; connections may still be closed. */
void conns_stop(struct conns *c);
/* After the timers were freed and all connections closed. NULL is fine. */
void conns_free(struct conns *c);

/* Whether a connection from address may be opened; may close another for it. */
bool conns_admit(struct conns *c, const char *address);
/* NULL when memory is out: it then lives without a deadline. */
struct conn *conn_opened(struct conns *c, int fd, const char *address);
/* Before the descriptor is closed. conn may be NULL. */
void conn_closed(struct conns *c, struct conn *conn);

/* A place for what the connection's TLS keeps, which is the caller's to end. */
struct tls_use **conn_tls(struct conn *conn);

/* What we wait for now; the time begins anew. conn may be NULL. */
enum conn_wait { CONN_REQUEST, CONN_ANSWER_TAKEN, CONN_NOTHING };
void conn_wait(struct conns *c, struct conn *conn, enum conn_wait what);
/* The answer goes out ahead of the request's end, or does not: see farewell.h. */
void conn_early(struct conn *conn, bool early);
/* It has shown good credentials; conn may be NULL. */
void conn_known(struct conns *c, struct conn *conn);

/* The service stops: nobody is waited for long any more. */
void conns_hurry(struct conns *c);

#endif
