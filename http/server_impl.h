/* The server as its own files see it. */
#ifndef DRIVEWATT_HTTP_SERVER_IMPL_H
#define DRIVEWATT_HTTP_SERVER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/server.h"
#include "http/stream_impl.h"

struct cache;
struct http_request;
struct mhd;
struct pool;
struct router;
struct timers;
struct tls;

struct http_server {
	struct http_config config; /* its texts are borrowed */
	struct accounts *accounts; /* borrowed */
	struct http_tree trees[HTTP_MAX_TREES];
	unsigned tree_count;
	struct router *router;
	struct cache *cache;
	struct pool *workers;
	struct pool *historians; /* what may read for seconds, in nobody's way either */
	struct pool *hashers;    /* what waits for a password hash waits here, in nobody's way */
	struct mhd *mhd;
	struct tls *tls; /* NULL: plain */
	struct timers *timers;
	struct stream_set streams;
	uint32_t nonce; /* tells this start's version numbers from another's */
	unsigned url_count;
	char urls[HTTP_MAX_LISTENERS][80];
	bool left_behind; /* a worker was stuck when the server had to stop */

	_Atomic bool ready;
	_Atomic bool stopping;
	_Atomic bool reviewing; /* a worker asks about streams */
	_Atomic unsigned busy;  /* requests begun and not answered to the end */

	pthread_mutex_t lock;   /* guards off_loop; taken before nothing */
	pthread_cond_t changed; /* busy or off_loop shrank while stopping */
	struct http_request *off_loop;
};

/* A request begins, and ends. */
void server_enter(struct http_server *s);
void server_leave(struct http_server *s);
/* The request is with a worker or an operation, and back. */
void server_off_loop(struct http_server *s, struct http_request *q);
void server_on_loop(struct http_server *s, struct http_request *q);
/* Whether a request whose account is known may compute a hash: one account has at most half of the
 * places, so that others can always log in. It counts while the request is off the loop. */
bool server_may_hash(struct http_server *s, struct http_request *q);

#endif
