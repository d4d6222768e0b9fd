#include "core/privc.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/latch.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"

#define BUCKETS 1024
#define REAP_WAIT_MS 15000
#define OPEN_WAIT_MS 10000
#define KILLED 137 /* exit code of a fio whose helper is gone: 128 + SIGKILL */

/*
 * lock guards the table, count, last_seq, lost and who listens to hints; it is a leaf and never
 * held while a callback runs or the socket is used. A pending request belongs to the table while it
 * is in it, to the thread that took it out afterwards.
 */
struct pending {
	struct pending *next;
	uint64_t seq;
	enum priv_type type; /* of the request */
	bool overdue;        /* DRIVE_OP: RC_TIMEOUT was answered, the late answer is awaited */
	bool started;        /* RUN_START: said RC_OK, the exit is awaited */
	bool abandoned;      /* RUN_START: told as over, but fio lives */
	uint32_t verb;       /* DRIVE_OP; of METER the meter */
	char run_id[RUN_ID_SIZE];
	void *arg;
	union {
		struct {
			void (*found)(void *arg, const struct priv_found *f);
			void (*done)(void *arg, enum rc rc, const struct priv_enumerated *e);
		} enumerate;
		privc_reply_fn *drive_op;
		struct {
			void (*started)(void *arg, const struct priv_run_started *s, int dir_fd);
			void (*exited)(void *arg, const struct priv_run_exited *x);
		} run;
		struct latch *reap;
		void (*meter)(void *arg, const struct priv_meter_reply *r);
		struct latch *open; /* of struct opened */
	} on;
};

struct opened {
	struct priv_opened answer;
	int fd;
};

struct privc {
	int sock;
	void (*on_lost)(void *arg);
	void *lost_arg;
	pthread_t reader;
	bool started;
	pthread_mutex_t lock;
	bool lost;
	bool closing;
	void (*on_hint)(void *arg, const struct priv_hint *hint); /* NULL: nobody listens */
	void *hint_arg;
	uint64_t last_seq;
	unsigned count;
	struct pending *buckets[BUCKETS];
	_Alignas(uint64_t) unsigned char buffer[PRIV_MESSAGE_MAX]; /* the reader's */
};

/* --- the table; under lock --- */

static struct pending **place_of(struct privc *p, uint64_t seq) {
	struct pending **at = &p->buckets[seq % BUCKETS];
	while (*at && (*at)->seq != seq)
		at = &(*at)->next;
	return at;
}

static struct pending *take_out(struct privc *p, uint64_t seq) {
	struct pending **at = place_of(p, seq);
	struct pending *q = *at;
	if (q) {
		*at = q->next;
		p->count--;
	}
	return q;
}

static void put_in(struct privc *p, struct pending *q) {
	struct pending **at = &p->buckets[q->seq % BUCKETS];
	q->next = *at;
	*at = q;
	p->count++;
}

static struct pending *take_any(struct privc *p) {
	for (size_t i = 0; i < BUCKETS; i++) {
		if (p->buckets[i])
			return take_out(p, p->buckets[i]->seq);
	}
	return NULL;
}

/* --- answers; in the reader --- */

/* Each returns true when more will come under the same number. */

static bool on_found(struct pending *q, const void *body, int fd unused_arg) {
	q->on.enumerate.found(q->arg, body);
	return true;
}

static bool on_enumerated(struct pending *q, const void *body, int fd unused_arg) {
	q->on.enumerate.done(q->arg, RC_OK, body);
	return false;
}

static bool on_drive_reply(struct pending *q, const void *body, int fd unused_arg) {
	const struct priv_drive_reply *r = body;
	const bool late = q->overdue;
	q->overdue = r->more != 0;
	q->on.drive_op(q->arg, r, late);
	return q->overdue;
}

static bool on_run_started(struct pending *q, const void *body, int fd) {
	const struct priv_run_started *s = body;
	q->started = s->rc == RC_OK;
	q->on.run.started(q->arg, s, fd);
	return q->started;
}

static bool on_run_exited(struct pending *q, const void *body, int fd unused_arg) {
	const struct priv_run_exited *x = body;
	if (q->abandoned) {
		metric_add(METRIC_FIO_ABANDONED, -1);
		return false;
	}
	q->abandoned = x->abandoned;
	if (q->abandoned)
		metric_add(METRIC_FIO_ABANDONED, 1);
	q->on.run.exited(q->arg, x);
	return q->abandoned;
}

static bool on_reaped(struct pending *q, const void *body, int fd unused_arg) {
	const struct priv_reaped *r = body;
	const int was_alive = r->was_alive;
	latch_open(q->on.reap, &was_alive);
	latch_unref(q->on.reap);
	return false;
}

static bool on_meter_reply(struct pending *q, const void *body, int fd unused_arg) {
	q->on.meter(q->arg, body);
	return false;
}

static void open_done(struct pending *q, const struct opened *o) {
	latch_open(q->on.open, o);
	latch_unref(q->on.open);
}

static bool on_opened(struct pending *q, const void *body, int fd) {
	const struct opened o = {*(const struct priv_opened *)body, fd};
	open_done(q, &o);
	return false;
}

struct answer {
	enum priv_type request;
	bool takes_fd;
	bool (*handle)(struct pending *q, const void *body, int fd);
};

static const struct answer answers[] = {
	[PRIV_FOUND] = {PRIV_ENUMERATE, false, on_found},
	[PRIV_ENUMERATED] = {PRIV_ENUMERATE, false, on_enumerated},
	[PRIV_DRIVE_REPLY] = {PRIV_DRIVE_OP, false, on_drive_reply},
	[PRIV_RUN_STARTED] = {PRIV_RUN_START, true, on_run_started},
	[PRIV_RUN_EXITED] = {PRIV_RUN_START, false, on_run_exited},
	[PRIV_REAPED] = {PRIV_REAP, false, on_reaped},
	[PRIV_METER_REPLY] = {PRIV_METER, false, on_meter_reply},
	[PRIV_OPENED] = {PRIV_OPEN, true, on_opened},
};

static void tell_hint(struct privc *p, const struct priv_hint *hint) {
	pthread_mutex_lock(&p->lock);
	void (*const fn)(void *arg, const struct priv_hint *hint) = p->on_hint;
	void *arg = p->hint_arg;
	pthread_mutex_unlock(&p->lock);
	if (fn)
		fn(arg, hint);
}

/* An answer that nobody waits for is dropped: its request failed on our side. */
static void dispatch(struct privc *p, const struct priv_header *h, const void *body, int fd) {
	const struct answer *a = h->type < array_len(answers) ? &answers[h->type] : NULL;
	pthread_mutex_lock(&p->lock);
	struct pending *q = take_out(p, h->seq);
	pthread_mutex_unlock(&p->lock);
	const bool fits = q && a && a->handle && a->request == q->type;
	if (fd >= 0 && !(fits && a->takes_fd))
		close(fd);
	if (h->type == PRIV_HINT)
		tell_hint(p, body);
	const bool more = fits ? a->handle(q, body, fd) : q != NULL;
	if (!more) {
		free(q);
		return;
	}
	pthread_mutex_lock(&p->lock);
	put_in(p, q);
	pthread_mutex_unlock(&p->lock);
}

/* --- the end of the helper --- */

static const char gone[] = "the privileged helper is gone";

static void fail_enumerate(struct pending *q) {
	struct priv_enumerated e = {0};
	str_copy(e.reason, sizeof(e.reason), gone);
	q->on.enumerate.done(q->arg, RC_UNAVAILABLE, &e);
}

static void fail_drive_op(struct pending *q) {
	struct priv_drive_reply r = {.rc = RC_UNAVAILABLE, .verb = q->verb, .power_state = -1};
	str_copy(r.msg, sizeof(r.msg), gone);
	q->on.drive_op(q->arg, &r, q->overdue);
}

static void fail_run(struct pending *q) {
	if (q->abandoned)
		return;
	if (q->started) {
		struct priv_run_exited x = {.exit_code = KILLED, .signal = KILLED - 128};
		str_copy(x.run_id, sizeof(x.run_id), q->run_id);
		q->on.run.exited(q->arg, &x);
		return;
	}
	struct priv_run_started s = {.rc = RC_UNAVAILABLE};
	str_copy(s.msg, sizeof(s.msg), gone);
	q->on.run.started(q->arg, &s, -1);
}

static void fail_reap(struct pending *q) {
	const int unknown = -1;
	latch_open(q->on.reap, &unknown);
	latch_unref(q->on.reap);
}

static void fail_meter(struct pending *q) {
	struct priv_meter_reply r = {.rc = RC_UNAVAILABLE, .meter = q->verb};
	str_copy(r.msg, sizeof(r.msg), gone);
	q->on.meter(q->arg, &r);
}

static void fail_open(struct pending *q) {
	struct opened o = {{.rc = RC_UNAVAILABLE}, -1};
	str_copy(o.answer.msg, sizeof(o.answer.msg), gone);
	open_done(q, &o);
}

static void fail(struct pending *q) {
	static void (*const fails[])(struct pending * q) = {
		[PRIV_ENUMERATE] = fail_enumerate,
		[PRIV_DRIVE_OP] = fail_drive_op,
		[PRIV_RUN_START] = fail_run,
		[PRIV_REAP] = fail_reap,
		[PRIV_METER] = fail_meter,
		[PRIV_OPEN] = fail_open,
	};
	fails[q->type](q);
	free(q);
}

static bool fail_next(struct privc *p) {
	pthread_mutex_lock(&p->lock);
	p->lost = true;
	struct pending *q = take_any(p);
	pthread_mutex_unlock(&p->lock);
	if (q)
		fail(q);
	return q != NULL;
}

static void *read_answers(void *arg) {
	struct privc *p = arg;
	struct priv_header *h;
	const void *body;
	int fd;
	struct err err;
	while (!priv_receive(p->sock, p->buffer, &h, &body, &fd, &err))
		dispatch(p, h, body, fd);
	while (fail_next(p))
		;
	pthread_mutex_lock(&p->lock);
	const bool closing = p->closing;
	pthread_mutex_unlock(&p->lock);
	if (!closing)
		p->on_lost(p->lost_arg);
	return NULL;
}

/* --- life --- */

struct privc *privc_new(int sock, void (*lost)(void *arg), void *arg, struct err *err) {
	struct privc *p = calloc(1, sizeof(*p));
	if (!p) {
		close(sock);
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	p->sock = sock;
	p->on_lost = lost;
	p->lost_arg = arg;
	pthread_mutex_init(&p->lock, NULL);
	if (thread_start(&p->reader, "privc", read_answers, p, err)) {
		privc_free(p);
		return NULL;
	}
	p->started = true;
	return p;
}

void privc_free(struct privc *p) {
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->closing = true;
	pthread_mutex_unlock(&p->lock);
	shutdown(p->sock, SHUT_RDWR);
	if (p->started)
		pthread_join(p->reader, NULL);
	close(p->sock);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void privc_watch(struct privc *p, void (*fn)(void *arg, const struct priv_hint *hint), void *arg) {
	pthread_mutex_lock(&p->lock);
	p->on_hint = fn;
	p->hint_arg = arg;
	pthread_mutex_unlock(&p->lock);
}

/* --- requests --- */

/* From then on the reader may answer and free q. */
bool privc_lost(struct privc *p) {
	pthread_mutex_lock(&p->lock);
	const bool lost = p->lost;
	pthread_mutex_unlock(&p->lock);
	return lost;
}

static enum rc enter(struct privc *p, struct pending *q, uint64_t *seq, struct err *err) {
	pthread_mutex_lock(&p->lock);
	const bool lost = p->lost, full = p->count >= PRIVC_MAX_PENDING;
	if (!lost && !full) {
		*seq = q->seq = ++p->last_seq;
		put_in(p, q);
	}
	pthread_mutex_unlock(&p->lock);
	if (lost)
		return err_set(err, RC_UNAVAILABLE, "%s", gone);
	return full ? err_set(err, RC_FULL, "too many requests wait for the privileged helper")
		    : RC_OK;
}

/* Whoever notices first that the helper is gone says it in the same words. */
static enum rc send_to(
	struct privc *p, enum priv_type type, uint64_t seq, const void *body, struct err *err) {
	const enum rc rc = priv_send(p->sock, type, seq, body, -1, err);
	return rc == RC_UNAVAILABLE ? err_set(err, rc, "%s", gone) : rc;
}

/* False when the reader has answered it already, or is about to. */
static bool forget(struct privc *p, uint64_t seq) {
	pthread_mutex_lock(&p->lock);
	struct pending *q = take_out(p, seq);
	pthread_mutex_unlock(&p->lock);
	free(q);
	return q != NULL;
}

/* Takes q over. RC_OK: it has been or will be answered, under *seq. */
static enum rc request_numbered(
	struct privc *p, struct pending *q, const void *body, uint64_t *seq, struct err *err) {
	const enum priv_type type = q->type;
	enum rc rc = enter(p, q, seq, err);
	if (rc) {
		free(q);
		return rc;
	}
	rc = send_to(p, type, *seq, body, err);
	/* The reader may have answered it already, with RC_UNAVAILABLE. */
	return rc && forget(p, *seq) ? rc : RC_OK;
}

static enum rc request(struct privc *p, struct pending *q, const void *body, struct err *err) {
	uint64_t seq = 0;
	return request_numbered(p, q, body, &seq, err);
}

static struct pending *pending_new(enum priv_type type, void *arg, struct err *err) {
	struct pending *q = calloc(1, sizeof(*q));
	if (q) {
		q->type = type;
		q->arg = arg;
	} else {
		err_set(err, RC_NOMEM, "out of memory");
	}
	return q;
}

enum rc privc_enumerate(struct privc *p, void (*found)(void *arg, const struct priv_found *f),
	void (*done)(void *arg, enum rc rc, const struct priv_enumerated *e), void *arg,
	struct err *err) {
	struct pending *q = pending_new(PRIV_ENUMERATE, arg, err);
	if (!q)
		return RC_NOMEM;
	q->on.enumerate.found = found;
	q->on.enumerate.done = done;
	return request(p, q, NULL, err);
}

enum rc privc_drive_op(struct privc *p, const struct priv_drive_op *op, privc_reply_fn *fn,
	void *arg, struct err *err) {
	struct pending *q = pending_new(PRIV_DRIVE_OP, arg, err);
	if (!q)
		return RC_NOMEM;
	q->on.drive_op = fn;
	q->verb = op->verb;
	return request(p, q, op, err);
}

enum rc privc_run_start(struct privc *p, const struct priv_run_start *r,
	void (*started)(void *arg, const struct priv_run_started *s, int dir_fd),
	void (*exited)(void *arg, const struct priv_run_exited *x), void *arg, struct err *err) {
	struct pending *q = pending_new(PRIV_RUN_START, arg, err);
	if (!q)
		return RC_NOMEM;
	q->on.run.started = started;
	q->on.run.exited = exited;
	str_copy(q->run_id, sizeof(q->run_id), r->run_id);
	return request(p, q, r, err);
}

static enum rc notify(struct privc *p, enum priv_type type, const void *body, struct err *err) {
	pthread_mutex_lock(&p->lock);
	const bool lost = p->lost;
	const uint64_t seq = lost ? 0 : ++p->last_seq;
	pthread_mutex_unlock(&p->lock);
	return lost ? err_set(err, RC_UNAVAILABLE, "%s", gone) : send_to(p, type, seq, body, err);
}

enum rc privc_run_stop(struct privc *p, const char *run_id, bool kill, struct err *err) {
	struct priv_run_stop s = {.kill = kill};
	str_copy(s.run_id, sizeof(s.run_id), run_id);
	return notify(p, PRIV_RUN_STOP, &s, err);
}

void privc_run_forget(struct privc *p, const char *run_id) {
	struct err err;
	struct priv_run_forget f = {0};
	str_copy(f.run_id, sizeof(f.run_id), run_id);
	/* Nobody to tell: without a helper there is no directory either. */
	(void)!notify(p, PRIV_RUN_FORGET, &f, &err);
}

enum rc privc_meter(struct privc *p, enum priv_meter meter,
	void (*fn)(void *arg, const struct priv_meter_reply *r), void *arg, struct err *err) {
	const struct priv_meter_ask ask = {.meter = meter};
	struct pending *q = pending_new(PRIV_METER, arg, err);
	if (!q)
		return RC_NOMEM;
	q->on.meter = fn;
	q->verb = meter;
	return request(p, q, &ask, err);
}

/* Who gives up takes the request back, so that a late answer's descriptor is closed. */
static enum rc wait_opened(
	struct privc *p, struct latch *l, uint64_t seq, int *fd, struct err *err) {
	struct opened o;
	bool answered = latch_wait(l, OPEN_WAIT_MS, &o);
	if (!answered && forget(p, seq)) {
		latch_unref(l); /* the answerer's */
		return err_set(err, RC_TIMEOUT, "the privileged helper does not answer");
	}
	if (!answered)
		(void)latch_wait(l, -1, &o);
	*fd = o.fd;
	return o.answer.rc ? err_set(err, (enum rc)o.answer.rc, "%s", o.answer.msg) : RC_OK;
}

enum rc privc_open(struct privc *p, enum priv_file file, int *fd, struct err *err) {
	const struct priv_open body = {.file = file};
	struct pending *q = pending_new(PRIV_OPEN, NULL, err);
	struct latch *l = latch_new(sizeof(struct opened));
	uint64_t seq = 0;
	if (!q || !l) {
		free(q);
		latch_unref(l);
		return err_set(err, RC_NOMEM, "out of memory");
	}
	q->on.open = latch_ref(l);
	enum rc rc = request_numbered(p, q, &body, &seq, err);
	if (rc)
		latch_unref(l);
	else
		rc = wait_opened(p, l, seq, fd, err);
	latch_unref(l);
	return rc;
}

enum rc privc_reap(
	struct privc *p, int64_t pid, uint64_t start_ticks, bool *was_alive, struct err *err) {
	const struct priv_reap r = {.pid = (int32_t)pid, .start_ticks = start_ticks};
	int answer = -1;
	struct pending *q = pending_new(PRIV_REAP, NULL, err);
	struct latch *l = latch_new(sizeof(answer));
	if (!q || !l) {
		free(q);
		latch_unref(l);
		return err_set(err, RC_NOMEM, "out of memory");
	}
	q->on.reap = latch_ref(l);
	enum rc rc = request(p, q, &r, err);
	if (rc)
		latch_unref(l);
	else if (!latch_wait(l, REAP_WAIT_MS, &answer))
		rc = err_set(err, RC_TIMEOUT, "the privileged helper does not answer");
	else if (answer < 0)
		rc = err_set(err, RC_UNAVAILABLE, "%s", gone);
	latch_unref(l);
	*was_alive = answer > 0;
	return rc;
}
