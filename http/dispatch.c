#include "http/dispatch.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/metrics.h"
#include "base/parse.h"
#include "base/pool.h"
#include "core/once.h"
#include "http/accept.h"
#include "http/auth.h"
#include "http/mhd.h"
#include "http/peer.h"
#include "http/reply.h"
#include "http/request_impl.h"
#include "http/server_impl.h"

#define ANSWER_MAX_BYTES (256 * 1024)
/* Of a body in chunks that is read only to be answered: the library sends nothing before its end.
 */
#define DISCARD_MAX_BYTES (8 * 1024 * 1024)

/* --- checks on the headers, in this order: 0, or the status of the refusal --- */

static int check_open(struct http_request *q, struct err *err) {
	if (!atomic_load_explicit(&q->server->stopping, memory_order_relaxed))
		return 0;
	err_set(err, RC_UNAVAILABLE, "the service is stopping");
	return 503;
}

static int check_target(struct http_request *q, struct err *err) {
	enum rc rc = target_parse(&q->target, q->text, q->scratch, err);
	router_find(q->server->router, &q->target, &q->match);
	return rc ? http_status_of(rc) : 0;
}

static int check_route(struct http_request *q, struct err *err) {
	if (q->match.node)
		return 0;
	err_set(err, RC_NOT_FOUND, "no such resource");
	return 404;
}

static int check_method(struct http_request *q, struct err *err) {
	q->route = router_method(q->match.node, q->method);
	if (q->route)
		return 0;
	err_set(err, RC_UNSUPPORTED, "this resource does not have the method %.20s", q->method);
	return router_knows_method(q->method) ? 405 : 501;
}

static int check_accept(struct http_request *q, struct err *err) {
	const char *types = q->route->types ? q->route->types : "application/json";
	int best = accept_choose(http_header(q, "Accept"), types);
	q->variant = best < 0 ? 0 : (unsigned)best;
	if (best >= 0)
		return 0;
	err_set(err, RC_INVALID, "this resource has only %s", types);
	return 406;
}

/* A key that is ignored would be a promise broken. */
static int check_once(struct http_request *q, struct err *err) {
	const char *key = strcmp(q->method, "POST") == 0 ? http_header(q, "Idempotency-Key") : NULL;
	if (!key)
		return 0;
	if (!(q->route->flags & HTTP_ONCE))
		err_field(err, RC_INVALID, "Idempotency-Key", "is not kept for this request");
	else if (!once_key_is_valid(key))
		err_field(err, RC_INVALID, "Idempotency-Key",
			"must be 1 to %d printable ASCII characters", ONCE_KEY_MAX);
	else
		return 0;
	return 400;
}

/* Ignored, it would change what was only asked about. */
static int check_dry_run(struct http_request *q, struct err *err) {
	const char *text = http_query(q, HTTP_DRY_RUN_PARAMETER);
	if (!text)
		return 0;
	if (!(q->route->flags & HTTP_DRY_RUN))
		err_field(err, RC_INVALID, HTTP_DRY_RUN_PARAMETER,
			"this operation cannot be tried without being carried out");
	else if (!parse_bool(text, &q->dry_run, HTTP_DRY_RUN_PARAMETER, err))
		return 0;
	return 400;
}

/* Bytes announced; UINT64_MAX when they are not, as with chunks. */
static uint64_t announced(struct http_request *q) {
	if (http_header(q, "Transfer-Encoding"))
		return UINT64_MAX;
	const char *text = http_header(q, "Content-Length");
	return text ? strtoull(text, NULL, 10) : 0;
}

/* Two opinions on where the body ends are how requests are smuggled past a proxy. */
static int check_framing(struct http_request *q, struct err *err) {
	unsigned lengths = mhd_header_count(q->conn, "Content-Length");
	unsigned codings = mhd_header_count(q->conn, "Transfer-Encoding");
	const char *coding = http_header(q, "Transfer-Encoding");
	if (lengths + codings <= 1 && (!coding || !strcasecmp(coding, "chunked")))
		return 0;
	(void)check_target(q, err); /* for the tree that shows the error */
	q->close = true;
	err_set(err, RC_INVALID, "the length of the body is not clear");
	return 400;
}

static int check_body(struct http_request *q, struct err *err) {
	uint64_t len = announced(q);
	if (!len)
		return 0;
	if (!q->route->body_max) {
		err_set(err, RC_TOO_LARGE, "this request takes no body");
		return 413;
	}
	if (len != UINT64_MAX && len > q->route->body_max) {
		err_set(err, RC_TOO_LARGE, "the body has more than %zu bytes", q->route->body_max);
		return 413;
	}
	if (media_is_json(http_header(q, "Content-Type")))
		return 0;
	err_set(err, RC_INVALID, "the body must be application/json");
	return 415;
}

static int check_headers(struct http_request *q, struct err *err) {
	static int (*const checks[])(struct http_request * q, struct err * err) = {
		check_framing,
		check_open,
		check_target,
		check_route,
		check_method,
		auth_check,
		check_accept,
		check_once,
		check_dry_run,
		check_body,
	};
	for (size_t i = 0; i < array_len(checks); i++) {
		int status = checks[i](q, err);
		if (status)
			return status;
	}
	return 0;
}

/* --- on a worker --- */

/* Hands the request back to its loop. */
static void back_to_loop(struct http_request *q) {
	mhd_resume(q->conn);
	server_on_loop(q->server, q);
	request_unref(q);
}

static void finish(struct http_request *q) {
	reply_build(q);
	back_to_loop(q);
}

static void finish_error(struct http_request *q, int status, const struct err *err) {
	reply_error(q, status, err);
	back_to_loop(q);
}

static void finish_unavailable(struct http_request *q) {
	struct err err;
	err_set(&err, RC_UNAVAILABLE, "the service is stopping or out of memory");
	finish_error(q, 503, &err);
}

/* True when an operation has the request now. False: it has resumed it already. */
static bool park(struct http_request *q) {
	int running = RUN_RUNNING;
	if (atomic_compare_exchange_strong(&q->run, &running, RUN_WAITING))
		return true;
	atomic_store(&q->run, RUN_RUNNING);
	return false;
}

static void run_handler(void *arg) {
	struct http_request *q = arg;
	while (q->handler(q, &q->r, q->match.tree->ctx) == HTTP_PENDING) {
		if (park(q))
			return;
	}
	finish(q);
}

static void prepare_handler(struct http_request *q) {
	buf_init(&q->r.body, q->route->answer_max ? q->route->answer_max : ANSWER_MAX_BYTES);
	q->handler = q->route->handler;
	peer_take(q);
	memcpy(q->actor.request_id, request_id(q), sizeof(q->actor.request_id));
	q->actor.dry_run = q->dry_run;
}

static void run(struct http_request *q) {
	if (reply_cached(q)) {
		back_to_loop(q);
		return;
	}
	prepare_handler(q);
	run_handler(q);
}

static bool verify(struct http_request *q) {
	struct err err;
	int status = q->verified ? 0 : auth_verify(q, &err);
	if (status)
		finish_error(q, status, &err);
	return !status;
}

static void run_job(void *arg) {
	run(arg);
}

static bool hashes(const struct http_request *q) {
	return q->route->flags & HTTP_HASHES;
}

/* A pool, with a queue of its own length for new requests; those that were let in can always come
 * back, since a pool holds as many jobs as there can be connections. */
struct place {
	struct pool *pool;
	unsigned queue;
};

static struct place place_to_run(const struct http_request *q) {
	const struct http_server *s = q->server;
	if (hashes(q))
		return (struct place){s->hashers, s->config.hash_queue};
	if (q->route->flags & HTTP_HISTORY)
		return (struct place){s->historians, s->config.history_queue};
	return (struct place){s->workers, s->config.queue};
}

static struct place place_to_verify(const struct http_request *q) {
	const struct http_server *s = q->server;
	if (q->is_slow)
		return (struct place){s->hashers, s->config.hash_queue};
	return (struct place){s->workers, s->config.queue};
}

static int check_room(const struct place *place, struct err *err) {
	if (pool_queued(place->pool) < place->queue)
		return 0;
	metric_add(METRIC_HTTP_REFUSED, 1);
	err_set(err, RC_FULL, "too many requests wait");
	return 503;
}

/* The request is off the loop. */
static int check_share(struct http_request *q, struct err *err) {
	if (!q->verified || !hashes(q) || server_may_hash(q->server, q))
		return 0;
	metric_add(METRIC_HTTP_REFUSED, 1);
	err_set(err, RC_FULL, "too many passwords of this account wait");
	return 503;
}

static void run_at(struct http_request *q, const struct place *place) {
	struct err err;
	const int status = check_room(place, &err);
	if (status)
		finish_error(q, status, &err);
	else if (!pool_submit(place->pool, run_job, q))
		finish_unavailable(q);
}

/* Where passwords are checked, nothing else is done that can be done elsewhere. */
static void verify_and_run(void *arg) {
	struct http_request *q = arg;
	const struct place here = q->verified ? place_to_run(q) : place_to_verify(q);
	struct err err;
	if (!verify(q))
		return;
	const struct place next = place_to_run(q);
	const int status = check_share(q, &err);
	if (status)
		finish_error(q, status, &err);
	else if (next.pool == here.pool)
		run(q);
	else
		run_at(q, &next);
}

static void verify_and_read(void *arg) {
	if (verify(arg))
		back_to_loop(arg);
}

void http_resume(struct http_request *q, http_handler *next) {
	q->handler = next;
	int was = RUN_RUNNING;
	if (atomic_compare_exchange_strong(&q->run, &was, RUN_RESUMED))
		return;
	if (was == RUN_WAITING && atomic_compare_exchange_strong(&q->run, &was, RUN_RUNNING)) {
		if (!pool_submit(q->server->workers, run_handler, q))
			finish_unavailable(q);
		return;
	}
	request_unref(q); /* abandoned */
}

bool dispatch_abandon(struct http_request *q) {
	int was = RUN_WAITING;
	if (!atomic_compare_exchange_strong(&q->run, &was, RUN_ABANDONED))
		return false;
	struct err err;
	err_set(&err, RC_UNAVAILABLE, "the service is stopping");
	reply_error(q, 503, &err);
	mhd_resume(q->conn);
	return true;
}

/* --- on the loop --- */

/* The answer was built: without memory it is none. */
static enum step built(struct http_request *q) {
	return q->answer ? STEP_ANSWER : STEP_CLOSE;
}

static enum step answer_error(struct http_request *q, int status, const struct err *err) {
	reply_error(q, status, err);
	return built(q);
}

static enum step to_worker(struct http_request *q, pool_fn *fn) {
	struct http_server *s = q->server;
	const struct place place = q->verified ? place_to_run(q) : place_to_verify(q);
	struct err err;
	server_off_loop(s, request_ref(q));
	int status = check_room(&place, &err);
	if (!status)
		status = check_share(q, &err);
	if (status) {
		server_on_loop(s, q);
		request_unref(q);
		return answer_error(q, status, &err);
	}
	mhd_suspend(q->conn);
	if (!pool_submit(place.pool, fn, q))
		finish_unavailable(q);
	return STEP_WAIT;
}

static enum step run_on_loop(struct http_request *q) {
	prepare_handler(q);
	if (q->handler(q, &q->r, q->match.tree->ctx) == HTTP_PENDING) {
		struct err err;
		err_set(&err, RC_INTERNAL, "%s may not wait", q->route->operation);
		return answer_error(q, 500, &err);
	}
	reply_build(q);
	return built(q);
}

enum step dispatch_complete(struct http_request *q) {
	if (q->built)
		return built(q);
	mhd_received(q->server, q->conn);
	if (q->verified && reply_cached(q))
		return STEP_ANSWER;
	if (q->verified && q->route->flags & HTTP_ON_LOOP)
		return run_on_loop(q);
	return to_worker(q, verify_and_run);
}

static bool id_is_valid(const char *id) {
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
	size_t len = strnlen(id, ID_UUID_SIZE);
	return len > 0 && len < ID_UUID_SIZE && strspn(id, allowed) == len;
}

static void take_headers(struct http_request *q, const char *method) {
	q->checked = true;
	q->method = method;
	q->is_head = !strcmp(method, "HEAD");
	q->is_read = q->is_head || !strcmp(method, "GET");
	q->takes_gzip = q->server->config.gzip && accept_gzip(http_header(q, "Accept-Encoding"));
	const char *id = http_header(q, "X-Request-Id");
	q->id_given = id && id_is_valid(id);
	if (q->id_given)
		memcpy(q->request_id, id, strlen(id) + 1);
}

/* The library closes a connection whose answer comes ahead of the end of the request, so what is
 * short is read first. A client that waits for 100 is told at once. */
static enum step refuse(struct http_request *q, int status, const struct err *err) {
	enum step step = answer_error(q, status, err);
	bool is_short = announced(q) <= HTTP_BODY_UNAUTHENTICATED_MAX;
	if (step == STEP_ANSWER && is_short && !q->close && !http_header(q, "Expect"))
		return STEP_READ;
	return step;
}

bool dispatch_is_early(struct http_request *q) {
	return !q->reading && announced(q);
}

static enum step begin(struct http_request *q, const char *method) {
	struct err err;
	take_headers(q, method);
	int status = check_headers(q, &err);
	if (status)
		return refuse(q, status, &err);
	buf_init(&q->body, q->route->body_max);
	if (q->verified || announced(q) <= HTTP_BODY_UNAUTHENTICATED_MAX)
		return STEP_READ;
	return to_worker(q, verify_and_read);
}

enum step dispatch_headers(struct http_request *q, const char *method) {
	if (!q->checked)
		return begin(q, method);
	/* Back from a worker that verified, or answered. */
	return q->built ? built(q) : STEP_READ;
}

enum step dispatch_body(struct http_request *q, const char *data, size_t len) {
	q->body_seen += len;
	if (!q->built) {
		struct err err;
		buf_add(&q->body, data, len);
		enum rc rc = buf_status(&q->body, &err);
		if (!rc)
			return STEP_READ;
		buf_release(&q->body);
		reply_error(q, http_status_of(rc), &err);
	}
	return q->answer && q->body_seen <= DISCARD_MAX_BYTES ? STEP_READ : STEP_CLOSE;
}
