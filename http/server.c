#include "http/server_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/thread.h"
#include "base/timer.h"
#include "http/cache.h"
#include "http/dispatch.h"
#include "http/listen.h"
#include "http/mhd.h"
#include "http/request_impl.h"
#include "http/tls.h"
#include "http/review.h"

/* What answers that stand in for unfinished ones have to get out. */
#define LAST_WORDS_MS 200

static uint32_t make_nonce(void) {
	char hex[9];
	id_random_hex(4, hex);
	return (uint32_t)strtoul(hex, NULL, 16);
}

/* Each connection has one request at most, so that many jobs always find room; how many new ones
 * may wait is for dispatch to say. */
static size_t job_room(const struct http_config *config) {
	return (size_t)config->max_connections + config->queue + 64;
}

struct http_server *http_server_new(
	const struct http_config *config, struct accounts *accounts, struct err *err) {
	struct http_server *s = calloc(1, sizeof(*s));
	if (!s) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	s->config = *config;
	s->accounts = accounts;
	s->nonce = make_nonce();
	pthread_mutex_init(&s->lock, NULL);
	cond_init(&s->changed);
	stream_set_init(&s->streams, config->max_streams);
	s->router = router_new(err);
	s->cache = s->router ? cache_new(config->cache_bytes_max, err) : NULL;
	s->workers =
		s->cache ? pool_new("http-worker", config->workers, job_room(config), err) : NULL;
	s->hashers =
		s->workers ? pool_new("http-hasher", config->hashers, job_room(config), err) : NULL;
	s->historians = s->hashers
		? pool_new("http-history", config->history_workers, job_room(config), err)
		: NULL;
	s->mhd = s->historians ? mhd_new(s, err) : NULL;
	s->timers = s->mhd ? timers_new(1, err) : NULL;
	if (s->timers &&
		timer_start(s->timers, REVIEW_PERIOD_MS, REVIEW_PERIOD_MS, review_streams, s))
		return s;
	http_server_free(s);
	return NULL;
}

enum rc http_server_add_tree(struct http_server *s, const struct http_tree *tree, struct err *err) {
	if (s->tree_count == HTTP_MAX_TREES)
		return err_set(err, RC_FULL, "more than %d trees", HTTP_MAX_TREES);
	s->trees[s->tree_count] = *tree;
	enum rc rc = router_add(s->router, &s->trees[s->tree_count], err);
	if (!rc)
		s->tree_count++;
	return rc;
}

static enum rc check_plaintext(const struct http_server *s, const char *text,
	const struct listen_addr *a, struct err *err) {
	if (s->tls || s->config.allow_plaintext_beyond_loopback || listen_is_loopback(a))
		return RC_OK;
	return err_field(err, RC_FORBIDDEN, "listen",
		"%s is beyond loopback, where credentials need TLS", text);
}

static enum rc open_listener(struct http_server *s, const char *text, struct err *err) {
	struct listen_addr addr;
	auto_close int fd = -1;
	enum rc rc = listen_parse(text, &addr, err);
	if (!rc)
		rc = check_plaintext(s, text, &addr, err);
	if (!rc)
		rc = listen_open(&addr, text, &fd, err);
	if (!rc)
		rc = listen_url(fd, s->tls, s->urls[s->url_count], sizeof(s->urls[0]), err);
	if (!rc)
		rc = mhd_listen(s->mhd, fd, err);
	if (rc)
		return rc;
	fd = -1;
	s->url_count++;
	return RC_OK;
}

enum rc http_server_start(struct http_server *s, struct err *err) {
	const struct http_config *config = &s->config;
	if (config->tls_cert_pem &&
		!(s->tls = tls_new(config->tls_cert_pem, config->tls_key_pem, err)))
		return err->rc;
	for (unsigned i = 0; i < s->config.listen_count; i++) {
		enum rc rc = open_listener(s, s->config.listen[i], err);
		if (rc)
			return rc;
	}
	atomic_store(&s->ready, true);
	return RC_OK;
}

enum rc http_server_certify(
	struct http_server *s, const char *cert_pem, const char *key_pem, struct err *err) {
	return s->tls ? tls_replace(s->tls, cert_pem, key_pem, err)
		      : err_set(err, RC_CONFLICT, "the service was started without TLS");
}

const char *http_server_url(struct http_server *s, unsigned n) {
	return n < s->url_count ? s->urls[n] : NULL;
}

bool http_server_ready(struct http_server *s) {
	return atomic_load(&s->ready);
}

/* --- who is inside --- */

void server_enter(struct http_server *s) {
	atomic_fetch_add(&s->busy, 1);
}

void server_leave(struct http_server *s) {
	atomic_fetch_sub(&s->busy, 1);
	if (!atomic_load(&s->stopping))
		return;
	pthread_mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void list_remove(struct http_server *s, struct http_request *q) {
	if (q->prev)
		q->prev->next = q->next;
	else
		s->off_loop = q->next;
	if (q->next)
		q->next->prev = q->prev;
	q->prev = q->next = NULL;
}

void server_off_loop(struct http_server *s, struct http_request *q) {
	pthread_mutex_lock(&s->lock);
	q->prev = NULL;
	q->next = s->off_loop;
	if (q->next)
		q->next->prev = q;
	s->off_loop = q;
	pthread_mutex_unlock(&s->lock);
}

void server_on_loop(struct http_server *s, struct http_request *q) {
	pthread_mutex_lock(&s->lock);
	list_remove(s, q);
	if (atomic_load(&s->stopping))
		pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static unsigned hashing_of(const struct http_server *s, const char *account_id) {
	unsigned n = 0;
	for (const struct http_request *q = s->off_loop; q; q = q->next)
		n += q->hashing && strcmp(q->actor.account_id, account_id) == 0;
	return n;
}

bool server_may_hash(struct http_server *s, struct http_request *q) {
	const unsigned share = (s->config.hash_queue + 1) / 2;
	pthread_mutex_lock(&s->lock);
	q->hashing = q->hashing || hashing_of(s, q->actor.account_id) < share;
	pthread_mutex_unlock(&s->lock);
	return q->hashing;
}

/* --- stopping --- */

static bool is_idle(struct http_server *s) {
	return !s->off_loop && !atomic_load(&s->busy);
}

static void wait_idle(struct http_server *s, int64_t timeout_ms) {
	struct timespec deadline = thread_deadline(timeout_ms);
	pthread_mutex_lock(&s->lock);
	bool in_time = true;
	while (!is_idle(s) && in_time)
		in_time = cond_wait_until(&s->changed, &s->lock, &deadline);
	pthread_mutex_unlock(&s->lock);
}

/* What still waits for a drive is answered without it. */
static void abandon_waiting(struct http_server *s) {
	unsigned abandoned = 0;
	pthread_mutex_lock(&s->lock);
	for (struct http_request *q = s->off_loop, *next; q; q = next) {
		next = q->next;
		if (!dispatch_abandon(q))
			continue;
		list_remove(s, q);
		abandoned++;
	}
	pthread_mutex_unlock(&s->lock);
	if (abandoned)
		log_warning("http", "%u requests were waiting when the service stopped", abandoned);
}

static bool is_left_behind(struct http_server *s) {
	pthread_mutex_lock(&s->lock);
	bool left = s->off_loop;
	pthread_mutex_unlock(&s->lock);
	return left;
}

void http_server_stop(struct http_server *s, int64_t deadline_ms) {
	if (atomic_exchange(&s->stopping, true))
		return;
	atomic_store(&s->ready, false);
	timers_free(s->timers);
	s->timers = NULL;
	mhd_quiesce(s->mhd);
	stream_set_close(&s->streams);
	wait_idle(s, deadline_ms > LAST_WORDS_MS ? deadline_ms - LAST_WORDS_MS : 0);
	abandon_waiting(s);
	wait_idle(s, LAST_WORDS_MS);
	s->left_behind = is_left_behind(s);
	if (s->left_behind) {
		log_error("http", "a request did not end in time and is left behind");
		return;
	}
	mhd_free(s->mhd);
	s->mhd = NULL;
}

void http_server_free(struct http_server *s) {
	if (!s)
		return;
	if (s->mhd && s->router && s->url_count)
		http_server_stop(s, 0);
	/* A stuck worker still uses all this; the process is about to end. */
	if (s->left_behind)
		return;
	timers_free(s->timers);
	mhd_free(s->mhd);
	pool_free(s->historians);
	tls_free(s->tls);
	pool_free(s->hashers);
	pool_free(s->workers);
	cache_free(s->cache);
	router_free(s->router);
	stream_set_release(&s->streams);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void http_server_dump_routes(const struct http_tree *trees, size_t n, struct buf *out) {
	for (size_t t = 0; t < n; t++) {
		for (size_t i = 0; i < trees[t].count; i++) {
			const struct http_route *route = &trees[t].routes[i];
			bool is_public = route->flags & HTTP_PUBLIC;
			buf_printf(out, "%s %s %s %s%s\n", route->method, route->pattern,
				route->operation, is_public ? "public" : role_name(route->role),
				route->flags & HTTP_DRY_RUN ? " dry-run" : "");
		}
	}
}
