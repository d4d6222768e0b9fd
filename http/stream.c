#include "http/stream_impl.h"

#include <stdatomic.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/timer.h"
#include "http/mhd.h"

#define MESSAGE_MAX_BYTES (64 * 1024)

static const char heartbeat[] = ":\n\n";
static const char dropped[] = "event: dropped\n"
			      "data: {\"reason\":\"the reader is too slow\"}\n\n";

/* With the channel's lock: what holds it, the ring and the readers that have sent a part of it. */
struct message {
	unsigned refs;
	int64_t id; /* 0 none */
	size_t len;
	char text[];
};

struct http_channel {
	pthread_mutex_t lock;     /* guards all below and what the readers have */
	unsigned refs;            /* the owner's and the readers' */
	atomic_uint reader_count; /* read without the lock */
	unsigned max_readers;
	struct http_stream *readers;
	uint64_t head; /* number of the next message; message n lies in ring[n % ring_size] */
	struct timers *timers;
	unsigned ring_size;
	struct message *ring[];
};

struct http_stream {
	struct http_channel *channel;
	struct http_stream *prev, *next; /* in the channel */
	uint64_t at;                     /* message that comes next */
	struct message *now;             /* that is being sent; NULL none */
	size_t offset;                   /* bytes of it that were sent */
	int64_t skip_to_id;
	char *replay;
	size_t replay_len, replay_at;
	bool idle; /* nothing was sent since the last beat */
	bool heartbeat_due;
	bool ended;
	bool suspended;
	struct MHD_Connection *conn;

	struct stream_set *set; /* NULL: in none */
	uint64_t number;        /* in the set, from 1; the set's lock guards the owner */
	struct stream_owner owner;
	struct http_stream *prev_in_set, *next_in_set;
};

static void message_unref(struct message *m) {
	if (m && --m->refs == 0)
		free(m);
}

/* --- channels --- */

static void channel_unref(struct http_channel *c) {
	pthread_mutex_lock(&c->lock);
	unsigned left = --c->refs;
	pthread_mutex_unlock(&c->lock);
	if (left)
		return;
	for (unsigned i = 0; i < c->ring_size; i++)
		message_unref(c->ring[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* With the channel's lock. */
static void wake(struct http_stream *s) {
	if (!s->suspended)
		return;
	s->suspended = false;
	mhd_resume(s->conn);
}

/* Runs twice per heartbeat_ms: a reader idle for a whole turn gets a comment, so that a
 * connection that is gone is noticed and proxies see life. */
static void beat(void *arg) {
	struct http_channel *c = arg;
	struct http_stream *s;
	pthread_mutex_lock(&c->lock);
	DL_FOREACH (c->readers, s) {
		if (s->idle) {
			s->heartbeat_due = true;
			wake(s);
		}
		s->idle = true;
	}
	pthread_mutex_unlock(&c->lock);
}

struct http_channel *http_channel_new(
	unsigned ring, unsigned max_readers, int64_t heartbeat_ms, struct err *err) {
	struct http_channel *c = calloc(1, sizeof(*c) + ring * sizeof(c->ring[0]));
	if (!c) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->refs = 1;
	c->ring_size = ring;
	c->max_readers = max_readers;
	int64_t period_ms = heartbeat_ms / 2 > 0 ? heartbeat_ms / 2 : 1;
	c->timers = timers_new(1, err);
	if (c->timers && timer_start(c->timers, period_ms, period_ms, beat, c))
		return c;
	http_channel_free(c);
	return NULL;
}

void http_channel_free(struct http_channel *c) {
	if (!c)
		return;
	timers_free(c->timers);
	channel_unref(c);
}

static struct message *message_new(int64_t id, const char *text, size_t len) {
	struct message *m = malloc(sizeof(*m) + len);
	if (!m)
		return NULL;
	m->refs = 1;
	m->id = id;
	m->len = len;
	memcpy(m->text, text, len);
	return m;
}

void http_channel_publish_id(struct http_channel *c, int64_t id, const char *text, size_t len) {
	struct message *m = len <= MESSAGE_MAX_BYTES ? message_new(id, text, len) : NULL;
	if (!m) {
		log_error("http", "an event of %zu bytes was not sent", len);
		return;
	}
	pthread_mutex_lock(&c->lock);
	struct message **slot = &c->ring[c->head % c->ring_size];
	message_unref(*slot);
	*slot = m;
	c->head++;
	struct http_stream *s;
	DL_FOREACH (c->readers, s)
		wake(s);
	pthread_mutex_unlock(&c->lock);
}

unsigned http_channel_readers(struct http_channel *c) {
	return atomic_load_explicit(&c->reader_count, memory_order_relaxed);
}

void http_channel_publish(struct http_channel *c, const char *text, size_t len) {
	http_channel_publish_id(c, 0, text, len);
}

/* --- readers --- */

struct http_stream *http_stream_new(struct http_channel *c, struct err *err) {
	struct http_stream *s = calloc(1, sizeof(*s));
	if (!s) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_lock(&c->lock);
	bool full = c->reader_count >= c->max_readers;
	if (!full) {
		s->channel = c;
		s->at = c->head;
		s->heartbeat_due =
			true; /* the first bytes tell the client that the stream stands */
		c->refs++;
		c->reader_count++;
		DL_APPEND(c->readers, s);
	}
	pthread_mutex_unlock(&c->lock);
	if (!full)
		return s;
	free(s);
	err_set(err, RC_FULL, "all event streams are taken");
	return NULL;
}

enum rc http_stream_replay(
	struct http_stream *s, const char *text, size_t len, int64_t skip_to_id, struct err *err) {
	if (len > HTTP_REPLAY_MAX_BYTES)
		return err_set(err, RC_TOO_LARGE, "a replay of %zu bytes", len);
	char *copy = malloc(len + 1);
	if (!copy)
		return err_set(err, RC_NOMEM, "out of memory");
	memcpy(copy, text, len);
	pthread_mutex_lock(&s->channel->lock);
	char *old = s->replay;
	s->replay = copy;
	s->replay_len = len;
	s->replay_at = 0;
	s->skip_to_id = skip_to_id;
	pthread_mutex_unlock(&s->channel->lock);
	free(old);
	return RC_OK;
}

static void set_leave(struct http_stream *s) {
	struct stream_set *set = s->set;
	if (!set)
		return;
	pthread_mutex_lock(&set->lock);
	DL_DELETE2(set->first, s, prev_in_set, next_in_set);
	set->count--;
	pthread_mutex_unlock(&set->lock);
	metric_add(METRIC_HTTP_STREAMS, -1);
}

void http_stream_free(struct http_stream *s) {
	if (!s)
		return;
	set_leave(s);
	struct http_channel *c = s->channel;
	pthread_mutex_lock(&c->lock);
	DL_DELETE(c->readers, s);
	c->reader_count--;
	message_unref(s->now);
	pthread_mutex_unlock(&c->lock);
	channel_unref(c);
	free(s->replay);
	free(s);
}

void stream_attach(struct http_stream *s, struct MHD_Connection *c) {
	s->conn = c;
}

static size_t copy_part(char *out, size_t room, const char *from, size_t len, size_t *at) {
	size_t n = len - *at < room ? len - *at : room;
	memcpy(out, from + *at, n);
	*at += n;
	return n;
}

/* With the channel's lock, as the next ones. */
static bool fell_off(const struct http_stream *s) {
	return s->channel->head - s->at > s->channel->ring_size;
}

/* Takes the next message that the reader shall have; false: there is none now. */
static bool take_next(struct http_stream *s) {
	struct http_channel *c = s->channel;
	while (!s->now && s->at < c->head && !fell_off(s)) {
		struct message *m = c->ring[s->at++ % c->ring_size];
		if (m->id && m->id <= s->skip_to_id)
			continue;
		m->refs++;
		s->now = m;
		s->offset = 0;
	}
	return s->now;
}

/* The bytes that are there now. */
static size_t copy_messages(struct http_stream *s, char *out, size_t room) {
	size_t n = 0;
	while (n < room && take_next(s)) {
		n += copy_part(out + n, room - n, s->now->text, s->now->len, &s->offset);
		if (s->offset == s->now->len) {
			message_unref(s->now);
			s->now = NULL;
		}
	}
	return n;
}

static size_t copy_pending(struct http_stream *s, char *out, size_t room) {
	size_t n = 0;
	if (s->replay_at < s->replay_len)
		n = copy_part(out, room, s->replay, s->replay_len, &s->replay_at);
	n += copy_messages(s, out + n, room - n);
	if (!n && s->heartbeat_due && room >= sizeof(heartbeat) - 1) {
		n = sizeof(heartbeat) - 1;
		memcpy(out, heartbeat, n);
	}
	if (n) {
		s->heartbeat_due = false;
		s->idle = false;
	}
	return n;
}

/* With the channel's lock: tells a reader that has lost messages, once what it had begun is whole.
 */
static size_t copy_farewell(struct http_stream *s, char *out, size_t room) {
	if (s->now || !fell_off(s) || room < sizeof(dropped) - 1)
		return 0;
	metric_add(METRIC_HTTP_STREAMS_DROPPED, 1);
	s->ended = true;
	memcpy(out, dropped, sizeof(dropped) - 1);
	return sizeof(dropped) - 1;
}

ssize_t stream_read(struct http_stream *s, char *out, size_t max) {
	ssize_t n = -1;
	pthread_mutex_lock(&s->channel->lock);
	if (!s->ended) {
		size_t copied = copy_pending(s, out, max);
		n = (ssize_t)(copied + copy_farewell(s, out + copied, max - copied));
	}
	if (!n) {
		/* Under the lock, so that nobody resumes before it is suspended. */
		mhd_suspend(s->conn);
		s->suspended = true;
	}
	pthread_mutex_unlock(&s->channel->lock);
	return n;
}

/* --- the server's set --- */

void stream_set_init(struct stream_set *set, unsigned max) {
	*set = (struct stream_set){.max = max};
	pthread_mutex_init(&set->lock, NULL);
}

void stream_set_release(struct stream_set *set) {
	pthread_mutex_destroy(&set->lock);
}

/* With the set's lock. */
static unsigned count_of(const struct stream_set *set, const char *account_id) {
	unsigned n = 0;
	const struct http_stream *s;
	DL_FOREACH2 (set->first, s, next_in_set)
		n += strcmp(s->owner.who.account_id, account_id) == 0;
	return n;
}

static unsigned share(const struct stream_set *set) {
	return set->max > STREAM_ACCOUNTS ? set->max / STREAM_ACCOUNTS : 1;
}

enum rc stream_join(struct http_stream *s, struct stream_set *set, const struct stream_owner *owner,
	struct err *err) {
	s->owner = *owner;
	pthread_mutex_lock(&set->lock);
	bool full = set->closed || set->count >= set->max;
	bool greedy = !full && owner->who.account_id[0] &&
		count_of(set, owner->who.account_id) >= share(set);
	if (!full && !greedy) {
		DL_APPEND2(set->first, s, prev_in_set, next_in_set);
		set->count++;
		s->set = set;
		s->number = ++set->joined;
	}
	pthread_mutex_unlock(&set->lock);
	if (full)
		return err_set(err, RC_FULL, "all event streams are taken");
	if (greedy)
		return err_set(err, RC_FULL,
			"the account has %u event streams, as many as one may have", share(set));
	metric_add(METRIC_HTTP_STREAMS, 1);
	return RC_OK;
}

static void end(struct http_stream *s) {
	pthread_mutex_lock(&s->channel->lock);
	s->ended = true;
	wake(s);
	pthread_mutex_unlock(&s->channel->lock);
}

void stream_set_close(struct stream_set *set) {
	struct http_stream *s;
	pthread_mutex_lock(&set->lock);
	set->closed = true;
	DL_FOREACH2 (set->first, s, next_in_set)
		end(s);
	pthread_mutex_unlock(&set->lock);
}

static bool is_unchecked(const struct http_stream *s, uint64_t version, int64_t now_ms) {
	const struct proof *proof = &s->owner.who.proof;
	const bool expired = proof->expires_ms != NONE && proof->expires_ms <= now_ms;
	return s->owner.who.account_id[0] && (expired || s->owner.checked != version);
}

uint64_t stream_set_unchecked(
	struct stream_set *set, uint64_t version, int64_t now_ms, struct actor *who) {
	uint64_t number = 0;
	struct http_stream *s;
	pthread_mutex_lock(&set->lock);
	DL_FOREACH2 (set->first, s, next_in_set) {
		if (!is_unchecked(s, version, now_ms))
			continue;
		number = s->number;
		*who = s->owner.who;
		break;
	}
	pthread_mutex_unlock(&set->lock);
	return number;
}

void stream_set_checked(struct stream_set *set, uint64_t number, uint64_t version, bool good) {
	struct http_stream *s;
	pthread_mutex_lock(&set->lock);
	DL_FOREACH2 (set->first, s, next_in_set) {
		if (s->number != number)
			continue;
		s->owner.checked = version;
		if (!good) {
			s->owner.who = (struct actor){.account_id = ""}; /* not to be asked again */
			end(s);
		}
		break;
	}
	pthread_mutex_unlock(&set->lock);
}
