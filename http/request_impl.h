/* A request from its first line to the end of its answer. */
#ifndef DRIVEWATT_HTTP_REQUEST_IMPL_H
#define DRIVEWATT_HTTP_REQUEST_IMPL_H

#include <stdatomic.h>

#include "base/id.h"
#include "http/answer.h"
#include "http/request.h"
#include "http/router.h"
#include "http/target.h"

struct MHD_Connection;
struct http_server;

/* Who has the request after it left the loop. */
enum request_run {
	RUN_RUNNING,   /* a worker, or the loop */
	RUN_WAITING,   /* the operation that will call http_resume() */
	RUN_RESUMED,   /* http_resume() came before the handler had returned */
	RUN_ABANDONED, /* answered by the server's stop; the operation may still resume it */
};

struct http_request {
	_Atomic unsigned refs; /* the connection's, and one while it is off the loop */
	_Atomic int run;       /* enum request_run */
	struct http_server *server;
	struct MHD_Connection *conn;      /* valid while it has not been answered */
	struct http_request *prev, *next; /* in the server's list while off the loop */

	/* Set on the loop before anybody else sees the request. */
	const char *method; /* the library's, as long as conn */
	bool is_head;
	bool is_read; /* GET or HEAD */
	bool checked; /* the headers were */
	bool reading; /* the headers are done with */
	bool built;   /* answer is what it will be */
	bool takes_gzip;
	bool id_given; /* by the client */
	bool close;    /* after the answer */
	bool verified; /* who asks is known, or need not be */
	bool dry_run;
	bool is_slow;       /* to verify: a hash is computed */
	bool hashing;       /* one for its account; under the server's lock */
	unsigned variant;   /* index of the media type in the route's types */
	uint64_t body_seen; /* bytes, kept or not */
	struct target target;
	struct route_match match;
	const struct http_route *route; /* NULL until it is found */

	struct actor actor;
	uint64_t accounts_version; /* before the credentials were looked at */
	char request_id[ID_UUID_SIZE];
	struct buf body;
	struct http_response r;
	http_handler *handler; /* runs next */
	bool has_version;
	uint64_t version;      /* of what the handler shows, taken before it ran */
	struct answer *answer; /* NULL until it is built, or memory was out */
	void *user;
	void (*user_free)(void *user);
	char *path;    /* within text */
	char *scratch; /* within text */
	char text[];   /* the raw target */
};

/* With one reference. NULL when memory is out. */
struct http_request *request_new(
	struct http_server *server, struct MHD_Connection *conn, const char *raw_target);
struct http_request *request_ref(struct http_request *q);
void request_unref(struct http_request *q); /* NULL is fine */
/* Makes an id where the client gave none. */
const char *request_id(struct http_request *q);

#endif
