/* The inner side of event streams: readers as the connection and the server see them. */
#ifndef DRIVEWATT_HTTP_STREAM_IMPL_H
#define DRIVEWATT_HTTP_STREAM_IMPL_H

#include <pthread.h>
#include <sys/types.h>

#include "http/stream.h"
#include "model/account.h"

struct MHD_Connection;

#define STREAM_ACCOUNTS 4 /* one account has at most this part of the streams, and at least one */

/* The streams that a server sends now. */
struct stream_set {
	pthread_mutex_t lock; /* taken before a channel's */
	struct http_stream *first;
	unsigned count;
	unsigned max;
	bool closed;
	uint64_t joined; /* ever */
};

/* Who reads a stream, and of which state of the accounts that is known to be right. */
struct stream_owner {
	struct actor who;
	uint64_t checked; /* accounts_version() */
};

void stream_set_init(struct stream_set *set, unsigned max);
void stream_set_release(struct stream_set *set);
/* Ends all streams of the set; later ones end at once. */
void stream_set_close(struct stream_set *set);

/* Enters s into the set, which it leaves when it is freed. RC_FULL: all are taken, or the account
 * has its share of them. */
enum rc must_check stream_join(struct http_stream *s, struct stream_set *set,
	const struct stream_owner *owner, struct err *err);
/* Copies out one stream's owner who was not checked at this version, or whose token has expired,
 * and the stream's number; 0: there is none. Public streams have no owner to check. */
uint64_t stream_set_unchecked(
	struct stream_set *set, uint64_t version, int64_t now_ms, struct actor *who);
/* What came of it: the stream goes on, or ends. One that is gone already is fine. */
void stream_set_checked(struct stream_set *set, uint64_t number, uint64_t version, bool good);
/* The connection that stream_read() may suspend. */
void stream_attach(struct http_stream *s, struct MHD_Connection *c);
/* Bytes copied to out; 0: none yet, the connection was suspended; -1: the stream is over. */
ssize_t stream_read(struct http_stream *s, char *out, size_t max);

#endif
