#include "http/conns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/timer.h"
#include "http/farewell.h"
#include "http/peer.h"
#include "http/server.h"

#define SWEEP_PERIOD_MS 1000
/* In time-outs. The library's own time-out starts anew with each byte; these do not, so a client
 * cannot hold a connection by sending or taking one byte now and then. */
#define REQUEST_TIMEOUTS 2
#define ANSWER_TIMEOUTS 10
/* What a client that we wait for has left when the service stops. */
#define STOP_GRACE_MS 2000
#define NO_DEADLINE INT64_MAX

struct conn {
	struct conn *prev, *next;
	struct conn *prev_stranger, *next_stranger;
	int fd;
	bool is_stranger; /* and in the list of them */
	bool leaves;      /* was told to, and is not closed yet */
	struct tls_use *tls;
	_Atomic bool known;
	bool early; /* answered ahead of its request's end */
	uint8_t network[ADDRESS_NETWORK_BYTES];
	_Atomic int64_t deadline_ms; /* monotonic; when we stop waiting for the client */
};

struct conns {
	const struct http_config *config;
	struct farewell *farewell;
	_Atomic bool hurried;
	pthread_mutex_t lock; /* guards all below */
	struct conn *all;
	struct conn *strangers; /* the oldest first */
	unsigned open, leaving, stranger_count;
};

/* --- making room --- */

/* With the lock. The loop notices and closes it. */
static void shut(struct conns *c, struct conn *conn) {
	atomic_store_explicit(&conn->deadline_ms, NO_DEADLINE, memory_order_relaxed);
	metric_add(METRIC_HTTP_REFUSED, 1);
	c->leaving += !conn->leaves;
	conn->leaves = true;
	shutdown(conn->fd, SHUT_RDWR);
}

static void leave_strangers(struct conns *c, struct conn *conn) {
	if (!conn->is_stranger)
		return;
	conn->is_stranger = false;
	c->stranger_count--;
	DL_DELETE2(c->strangers, conn, prev_stranger, next_stranger);
}

/* The oldest stranger that has nothing under way with us. */
static bool shut_stranger(struct conns *c) {
	struct conn *conn;
	DL_FOREACH2 (c->strangers, conn, next_stranger) {
		if (atomic_load(&conn->deadline_ms) == NO_DEADLINE)
			continue;
		shut(c, conn);
		leave_strangers(c, conn);
		return true;
	}
	return false;
}

static bool is_crowd(const struct conns *c, const char *address) {
	uint8_t network[ADDRESS_NETWORK_BYTES];
	const struct conn *conn;
	unsigned count = 0;
	if (c->open < c->config->max_per_address)
		return false;
	address_network(address, network);
	DL_FOREACH (c->all, conn)
		count += memcmp(conn->network, network, sizeof(network)) == 0;
	return count >= c->config->max_per_address;
}

static bool has_room(struct conns *c) {
	const unsigned max = c->config->max_connections;
	const bool crowded = c->open - c->leaving >= max || c->stranger_count >= (max + 1) / 2;
	return !crowded || shut_stranger(c);
}

bool conns_admit(struct conns *c, const char *address) {
	const bool limited =
		c->config->max_per_address && address[0] && !peer_is_trusted(c->config, address);
	pthread_mutex_lock(&c->lock);
	const bool admitted = !(limited && is_crowd(c, address)) && has_room(c);
	pthread_mutex_unlock(&c->lock);
	if (!admitted)
		metric_add(METRIC_HTTP_REFUSED, 1);
	return admitted;
}

/* --- coming and going --- */

struct conn *conn_opened(struct conns *c, int fd, const char *address) {
	struct conn *conn = calloc(1, sizeof(*conn));
	metric_add(METRIC_HTTP_CONNECTIONS, 1);
	pthread_mutex_lock(&c->lock);
	c->open++;
	if (conn) {
		conn->fd = fd;
		conn->is_stranger = true;
		address_network(address, conn->network);
		DL_APPEND(c->all, conn);
		DL_APPEND2(c->strangers, conn, prev_stranger, next_stranger);
		c->stranger_count++;
	}
	pthread_mutex_unlock(&c->lock);
	conn_wait(c, conn, CONN_REQUEST);
	return conn;
}

void conn_closed(struct conns *c, struct conn *conn) {
	metric_add(METRIC_HTTP_CONNECTIONS, -1);
	pthread_mutex_lock(&c->lock);
	c->open--;
	if (conn) {
		c->leaving -= conn->leaves;
		leave_strangers(c, conn);
		DL_DELETE(c->all, conn);
	}
	pthread_mutex_unlock(&c->lock);
	if (conn && conn->early)
		farewell_keep(c->farewell, conn->fd);
	free(conn);
}

struct tls_use **conn_tls(struct conn *conn) {
	return &conn->tls;
}

void conn_early(struct conn *conn, bool early) {
	if (conn)
		conn->early = early;
}

void conn_known(struct conns *c, struct conn *conn) {
	if (!conn || atomic_load_explicit(&conn->known, memory_order_relaxed))
		return;
	atomic_store(&conn->known, true);
	pthread_mutex_lock(&c->lock);
	leave_strangers(c, conn);
	pthread_mutex_unlock(&c->lock);
	if (atomic_load(&conn->deadline_ms) != NO_DEADLINE)
		conn_wait(c, conn, CONN_REQUEST); /* the rest of it may take longer now */
}

/* --- deadlines --- */

static int64_t patience_ms(const struct conns *c, const struct conn *conn, enum conn_wait what) {
	const bool known = atomic_load_explicit(&conn->known, memory_order_relaxed);
	const unsigned timeout_s =
		known ? c->config->idle_timeout_s : c->config->stranger_timeout_s;
	const int timeouts = what == CONN_ANSWER_TAKEN ? ANSWER_TIMEOUTS
		: known                                ? REQUEST_TIMEOUTS
						       : 1;
	return timeouts * (int64_t)timeout_s * 1000;
}

void conn_wait(struct conns *c, struct conn *conn, enum conn_wait what) {
	if (!conn)
		return;
	int64_t deadline_ms = NO_DEADLINE;
	if (what != CONN_NOTHING) {
		int64_t ms = patience_ms(c, conn, what);
		if (ms > STOP_GRACE_MS && atomic_load(&c->hurried))
			ms = STOP_GRACE_MS;
		deadline_ms = clock_mono_ms() + ms;
	}
	atomic_store_explicit(&conn->deadline_ms, deadline_ms, memory_order_relaxed);
}

static void sweep(void *arg) {
	struct conns *c = arg;
	const int64_t now_ms = clock_mono_ms();
	struct conn *conn;
	pthread_mutex_lock(&c->lock);
	DL_FOREACH (c->all, conn) {
		if (atomic_load_explicit(&conn->deadline_ms, memory_order_relaxed) <= now_ms)
			shut(c, conn);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Those who have a request half sent, or an answer half taken. */
void conns_hurry(struct conns *c) {
	const int64_t latest_ms = clock_mono_ms() + STOP_GRACE_MS;
	struct conn *conn;
	atomic_store(&c->hurried, true);
	pthread_mutex_lock(&c->lock);
	DL_FOREACH (c->all, conn) {
		int64_t had_ms = atomic_load(&conn->deadline_ms);
		if (had_ms != NO_DEADLINE && had_ms > latest_ms)
			atomic_compare_exchange_strong(&conn->deadline_ms, &had_ms, latest_ms);
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- life --- */

struct conns *conns_new(const struct http_config *config, struct timers *timers, struct err *err) {
	struct conns *c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	c->config = config;
	pthread_mutex_init(&c->lock, NULL);
	c->farewell = farewell_new(timers, err);
	if (c->farewell && timer_start(timers, SWEEP_PERIOD_MS, SWEEP_PERIOD_MS, sweep, c))
		return c;
	conns_free(c);
	return NULL;
}

void conns_stop(struct conns *c) {
	farewell_close(c->farewell);
}

void conns_free(struct conns *c) {
	if (!c)
		return;
	farewell_free(c->farewell);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
