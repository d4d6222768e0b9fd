#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/http_live.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/jsonw.h"
#include "base/secret.h"
#include "core/accounts.h"

/* --- accounts --- */

static const struct {
	const char *authorization;
	const char *name;
	enum role role;
} known[] = {
	{"Bearer reader", "reader", ROLE_READ_ONLY},
	{"Bearer operator", "operator", ROLE_OPERATOR},
	{"Bearer admin", "admin", ROLE_ADMINISTRATOR},
	{"Basic slow", "slow", ROLE_ADMINISTRATOR},
};

static _Atomic bool remembered[array_len(known)];
static _Atomic bool revoked[array_len(known)];
static _Atomic uint64_t version = 1;
static _Atomic unsigned hashes;
static _Atomic bool slow_waits;
static _Atomic unsigned slow_begun;
static _Atomic bool throttled;

static void nap(void) {
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int known_index(const char *authorization) {
	for (size_t i = 0; i < array_len(known); i++) {
		if (!strcmp(known[i].authorization, authorization))
			return (int)i;
	}
	return -1;
}

static int known_index_of(const char *name) {
	for (size_t i = 0; i < array_len(known); i++) {
		if (!strcmp(known[i].name, name))
			return (int)i;
	}
	return -1;
}

static void fill(struct actor *out, int i) {
	*out = (struct actor){.role = known[i].role, .proof.expires_ms = NONE};
	snprintf(out->account_id, sizeof(out->account_id), "id-of-%s", known[i].name);
	snprintf(out->name, sizeof(out->name), "%s", known[i].name);
}

bool accounts_cached(unused_arg struct accounts *a, const char *authorization, struct actor *out) {
	int i = known_index(authorization);
	if (i < 0 || !remembered[i])
		return false;
	fill(out, i);
	return true;
}

enum rc accounts_verify(unused_arg struct accounts *a, const char *authorization, struct actor *out,
	struct err *err) {
	int i = known_index(authorization);
	slow_begun += accounts_is_slow(authorization);
	while (accounts_is_slow(authorization) && slow_waits)
		nap();
	hashes++;
	if (i < 0)
		return err_set(err, RC_UNAUTHENTICATED, "the credentials are wrong");
	remembered[i] = true;
	fill(out, i);
	return RC_OK;
}

uint64_t accounts_version(unused_arg struct accounts *a) {
	return version;
}

enum rc accounts_recheck(unused_arg struct accounts *a, const struct actor *who, struct err *err) {
	int i = known_index_of(who->name);
	return i >= 0 && !revoked[i] ? RC_OK
				     : err_set(err, RC_UNAUTHENTICATED, "the credentials are gone");
}

bool accounts_is_slow(const char *authorization) {
	return !strncmp(authorization, "Basic", 5);
}

enum rc accounts_admit(
	unused_arg struct accounts *a, unused_arg const char *address, struct err *err) {
	return throttled ? err_set(err, RC_THROTTLED, "too many wrong passwords") : RC_OK;
}

int64_t accounts_wait_ms(unused_arg struct accounts *a, unused_arg const char *address) {
	return throttled ? 2500 : 0;
}

void live_accounts_revoke(const char *name) {
	revoked[known_index_of(name)] = true;
	version++;
}

void live_accounts_reset(void) {
	for (size_t i = 0; i < array_len(known); i++)
		remembered[i] = revoked[i] = false;
	hashes = slow_begun = 0;
	slow_waits = throttled = false;
}

unsigned live_accounts_hashes(void) {
	return hashes;
}

void live_accounts_slow(bool wait) {
	slow_waits = wait;
}

void live_wait_for_slow(unsigned n) {
	live_wait(&slow_begun, n);
}

void live_accounts_throttled(bool now) {
	throttled = now;
}

/* --- the tree --- */

void live_wait(_Atomic unsigned *what, unsigned n) {
	for (int i = 0; i < 20000 && *what < n; i++)
		nap();
	assert_true(*what >= n);
}

static void render_error(
	struct http_response *r, const struct http_request *q, int status, const struct err *err) {
	struct jsonw w;
	r->content_type = "application/problem+json";
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	jsonw_int(&w, "status", status);
	jsonw_str(&w, "rc", rc_name(err->rc));
	jsonw_str(&w, "detail", err->msg);
	jsonw_str(&w, "instance", http_path(q));
	jsonw_object_end(&w);
}

static enum http_next get_hello(
	unused_arg struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	buf_adds(&r->body, "{\"hello\":\"world\"}");
	return HTTP_DONE;
}

static enum http_next get_page(
	unused_arg struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	static char page[4096];
	memset(page, 'x', sizeof(page));
	r->asset = page;
	r->asset_len = sizeof(page);
	r->content_type = "text/html; charset=utf-8";
	return HTTP_DONE;
}

static uint64_t things_version(void *ctx, unused_arg const struct http_request *q) {
	return ((struct live *)ctx)->version;
}

static enum http_next get_things(
	unused_arg struct http_request *q, struct http_response *r, void *ctx) {
	struct live *l = ctx;
	l->list_runs++;
	buf_printf(&r->body, "{\"version\":%u,\"items\":[0", (unsigned)l->version);
	for (int i = 1; i < 1000; i++)
		buf_printf(&r->body, ",%d", i);
	buf_adds(&r->body, "]}");
	return HTTP_DONE;
}

static enum http_next get_thing(
	struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	struct jsonw w;
	jsonw_init(&w, &r->body);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "id", http_param(q, "id"));
	jsonw_str(&w, "path", http_path(q));
	jsonw_str(&w, "q", http_query(q, "q"));
	jsonw_str(&w, "flag", http_query(q, "flag"));
	jsonw_str(&w, "user", http_actor(q)->name);
	jsonw_str(&w, "address", http_actor(q)->address);
	jsonw_str(&w, "request_id", http_actor(q)->request_id);
	jsonw_object_end(&w);
	http_set_etag(r, 7, 9);
	return HTTP_DONE;
}

static enum http_next put_thing(
	struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	struct err err;
	size_t len;
	const char *body = http_body(q, &len);
	uint32_t if_version;
	bool exists = strcmp(http_param(q, "id"), "none") != 0;
	if (http_check_conditions(q, exists, 7, &if_version, &err))
		return http_fail(q, r, &err);
	buf_add(&r->body, body, len);
	http_set_etag(r, 8, if_version); /* tells what the change must find */
	return HTTP_DONE;
}

static enum http_next post_thing(
	struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	size_t len;
	http_body(q, &len);
	r->status = 201;
	snprintf(r->location, sizeof(r->location), "/t/things/new");
	r->no_store = true;
	buf_printf(
		&r->body, "{\"bytes\":%zu%s}", len, http_actor(q)->dry_run ? ",\"dry\":true" : "");
	return HTTP_DONE;
}

static enum http_next post_cancel(unused_arg struct http_request *q,
	unused_arg struct http_response *r, unused_arg void *ctx) {
	return HTTP_DONE;
}

static enum http_next get_fail(
	struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	struct err err;
	const char *name = http_query(q, "rc");
	for (int rc = 1; name && rc < RC_COUNT_; rc++) {
		if (!strcmp(rc_name((enum rc)rc), name)) {
			err_set(&err, (enum rc)rc, "as asked");
			return http_fail(q, r, &err);
		}
	}
	return HTTP_DONE;
}

static enum http_next get_big(
	unused_arg struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	for (int i = 0; i < 2000; i++)
		buf_adds(&r->body, "x");
	return HTTP_DONE;
}

static enum http_next get_table(
	struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	if (http_accepts(q, "text/csv")) {
		r->content_type = "text/csv";
		buf_adds(&r->body, "a,b\r\n");
	} else {
		buf_adds(&r->body, "{}");
	}
	return HTTP_DONE;
}

static enum http_next get_block(
	unused_arg struct http_request *q, struct http_response *r, void *ctx) {
	struct live *l = ctx;
	l->blocked++;
	while (!l->release)
		nap();
	buf_adds(&r->body, "{}");
	return HTTP_DONE;
}

enum http_next live_finish(
	unused_arg struct http_request *q, struct http_response *r, unused_arg void *ctx) {
	buf_adds(&r->body, "{\"pending\":true}");
	return HTTP_DONE;
}

static void count_freed(void *user) {
	((struct live *)user)->freed++;
}

static enum http_next get_pending(
	struct http_request *q, unused_arg struct http_response *r, void *ctx) {
	struct live *l = ctx;
	http_set_user(q, l, count_freed);
	l->pending = q;
	return HTTP_PENDING;
}

static void *resume(void *q) {
	http_resume(q, live_finish);
	return NULL;
}

/* Resumed by another thread, before, while and after this returns. */
static enum http_next get_race(
	struct http_request *q, unused_arg struct http_response *r, unused_arg void *ctx) {
	pthread_t t;
	if (pthread_create(&t, NULL, resume, q))
		return HTTP_DONE;
	pthread_detach(t);
	return HTTP_PENDING;
}

static enum http_next get_early(
	struct http_request *q, unused_arg struct http_response *r, unused_arg void *ctx) {
	http_resume(q, live_finish);
	return HTTP_PENDING;
}

static enum http_next get_events(struct http_request *q, struct http_response *r, void *ctx) {
	struct live *l = ctx;
	struct err err;
	r->stream = http_stream_new(l->channel, &err);
	if (!r->stream)
		return http_fail(q, r, &err);
	if (http_query(q, "replay") &&
		http_stream_replay(r->stream, "id: 1\ndata: old\n\n", 17, 1, &err))
		return http_fail(q, r, &err);
	return HTTP_DONE;
}

static const struct http_route routes[] = {
	{"GET", "/t/hello", "getHello", ROLE_NONE, .flags = HTTP_PUBLIC | HTTP_ON_LOOP,
		.handler = get_hello},
	{"GET", "/t/page", "getPage", ROLE_NONE, .flags = HTTP_PUBLIC, .handler = get_page,
		.types = "text/html"},
	{"GET", "/t/metrics", "getMetrics", ROLE_READ_ONLY, .flags = HTTP_METRICS,
		.handler = get_hello},
	{"GET", "/t/things", "listThings", ROLE_READ_ONLY, .handler = get_things,
		.version = things_version},
	{"POST", "/t/things", "createThing", ROLE_ADMINISTRATOR, .flags = HTTP_ONCE | HTTP_DRY_RUN,
		.body_max = 100000, .handler = post_thing},
	{"GET", "/t/things/{id}", "getThing", ROLE_READ_ONLY, .handler = get_thing},
	{"PUT", "/t/things/{id}", "putThing", ROLE_OPERATOR, .body_max = 1000,
		.handler = put_thing},
	{"POST", "/t/cancel", "cancel", ROLE_OPERATOR, .handler = post_cancel},
	{"GET", "/t/fail", "fail", ROLE_READ_ONLY, .handler = get_fail},
	{"GET", "/t/big", "getBig", ROLE_READ_ONLY, .answer_max = 1000, .handler = get_big},
	{"GET", "/t/table", "getTable", ROLE_READ_ONLY, .handler = get_table,
		.types = "application/json,text/csv"},
	{"GET", "/t/block", "getBlock", ROLE_READ_ONLY, .handler = get_block},
	{"GET", "/t/history", "getHistory", ROLE_READ_ONLY, .flags = HTTP_HISTORY,
		.handler = get_block},
	{"GET", "/t/pending", "getPending", ROLE_READ_ONLY, .handler = get_pending},
	{"GET", "/t/race", "getRace", ROLE_READ_ONLY, .handler = get_race},
	{"GET", "/t/early", "getEarly", ROLE_READ_ONLY, .handler = get_early},
	{"GET", "/t/events", "getEvents", ROLE_READ_ONLY, .handler = get_events,
		.types = "text/event-stream"},
};

static const struct http_route root_routes[] = {
	{"GET", "/healthz", "getHealth", ROLE_NONE, .flags = HTTP_PUBLIC | HTTP_ON_LOOP,
		.handler = get_hello},
};

/* --- running it --- */

struct http_config live_config(void) {
	return (struct http_config){
		.listen = {"127.0.0.1:0"},
		.listen_count = 1,
		.loop_threads = 2,
		.workers = 4,
		.queue = 64,
		.history_workers = 1,
		.history_queue = 4,
		.hashers = 2,
		.hash_queue = 4,
		.max_connections = 1100,
		.idle_timeout_s = 30,
		.stranger_timeout_s = 30,
		.header_bytes = 16 * 1024,
		.max_streams = 36, /* 9 of an account */
		.cache_bytes_max = 1024 * 1024,
		.gzip = true,
	};
}

void live_start(struct live *l, const struct http_config *config) {
	struct err err = {.msg = ""};
	*l = (struct live){.version = 1};
	assert_int_equal(secret_init(&err), RC_OK);
	live_accounts_reset();
	l->channel = http_channel_new(16, 8, 200, &err);
	assert_non_null(l->channel);
	l->server = http_server_new(config, NULL, &err);
	assert_non_null(l->server);
	struct http_tree t = {"/t", routes, array_len(routes), render_error, l};
	struct http_tree root = {"", root_routes, array_len(root_routes), render_error, l};
	assert_int_equal(http_server_add_tree(l->server, &root, &err), RC_OK);
	assert_int_equal(http_server_add_tree(l->server, &t, &err), RC_OK);
	if (http_server_start(l->server, &err))
		fail_msg("%s", err.msg);
	l->url = http_server_url(l->server, 0);
}

void live_stop(struct live *l) {
	l->release = true;
	http_server_stop(l->server, 10000);
	http_server_free(l->server);
	http_channel_free(l->channel);
	live_accounts_reset();
}
