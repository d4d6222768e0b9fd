#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "tests/support/http_live.h"

static struct live live;
static char value[512];

static int set_up(void **state) {
	(void)state;
	struct http_config config = live_config();
	live_start(&live, &config);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	live_stop(&live);
	return 0;
}

/* status of a request on its own connection */
static int status_of(
	const char *method, const char *target, const char *headers, const char *body) {
	struct raw_answer a = raw_once(live.url, method, target, headers, body);
	int status = a.status;
	raw_answer_free(&a);
	return status;
}

static void statuses(void **state) {
	(void)state;
	static const struct {
		const char *method, *target, *headers, *body;
		int status;
	} cases[] = {
		{"GET", "/t/hello", "", NULL, 200},
		{"GET", "/t/hello/", "", NULL, 200},
		{"HEAD", "/t/hello", "", NULL, 200},
		{"GET", "/healthz", "", NULL, 200},
		{"GET", "http://host/t/hello", "", NULL, 200},
		{"GET", "/", "", NULL, 404},
		{"GET", "/t", "", NULL, 404},
		{"GET", "/t//hello", "", NULL, 404},
		{"GET", "/t/hello//", "", NULL, 404},
		{"GET", "/t%2Fhello", "", NULL, 404},
		{"GET", "/t/hell%6f", "", NULL, 200},
		{"GET", "/t/%zz", "", NULL, 400},
		{"GET", "/t/hello%00", "", NULL, 400},
		{"GET", "/t/hello?x=%00", "", NULL, 400},
		{"GET", "/t/%c0%af", "", NULL, 400},
		{"POST", "/t/nothing", "", NULL, 404},
		{"POST", "/t/hello", "", NULL, 405},
		{"DELETE", "/t/hello", "", NULL, 405},
		{"OPTIONS", "/t/hello", "", NULL, 405},
		{"TRACE", "/t/hello", "", NULL, 405},
		{"BREW", "/t/hello", "", NULL, 501},
		{"BREW", "/t/nothing", "", NULL, 404},
		{"GET", "/t/things", "", NULL, 401},
		{"GET", "/t/things", "Authorization: \r\n", NULL, 401},
		{"GET", "/t/things", "Authorization: Bearer wrong\r\n", NULL, 401},
		{"GET", "/t/things", AS_READER, NULL, 200},
		{"GET", "/t/metrics", "", NULL, 401},
		{"GET", "/t/metrics", AS_READER, NULL, 200},
		{"POST", "/t/cancel", AS_READER, NULL, 403},
		{"POST", "/t/cancel", AS_OPERATOR, NULL, 204},
		{"POST", "/t/cancel", AS_OPERATOR, "", 204},
		{"POST", "/t/cancel", AS_OPERATOR SENDS_JSON, "{}", 413},
		{"POST", "/t/things", "", "{}", 401},
		{"POST", "/t/things", AS_READER SENDS_JSON, "{}", 403},
		{"POST", "/t/things", AS_ADMIN, "{}", 415},
		{"POST", "/t/things", AS_ADMIN "Content-Type: text/plain\r\n", "{}", 415},
		{"POST", "/t/things", AS_ADMIN SENDS_JSON, "{}", 201},
		{"POST", "/t/things", AS_ADMIN "Content-Type: Application/JSON; charset=utf-8\r\n",
			"{}", 201},
		{"POST", "/t/things", AS_ADMIN "Content-Type: application/merge-patch+json\r\n",
			"{}", 201},
		{"GET", "/t/things", AS_READER "Accept: text/html\r\n", NULL, 406},
		{"GET", "/t/things", AS_READER "Accept: text/html, */*;q=0.1\r\n", NULL, 200},
		{"GET", "/t/page", "Accept: text/html\r\n", NULL, 200},
		{"GET", "/t/page", "Accept: application/json\r\n", NULL, 406},
		{"GET", "/t/big", AS_READER, NULL, 500},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		int got = status_of(
			cases[i].method, cases[i].target, cases[i].headers, cases[i].body);
		if (got != cases[i].status)
			fail_msg("%s %s: %d, not %d", cases[i].method, cases[i].target, got,
				cases[i].status);
	}
}

static void errors_are_the_trees(void **state) {
	(void)state;
	struct raw_answer a = raw_once(live.url, "GET", "/t/none?x=1", "", NULL);
	assert_string_equal(raw_header(&a, "Content-Type", value), "application/problem+json");
	assert_non_null(strstr(a.body, "\"status\":404"));
	assert_non_null(strstr(a.body, "\"instance\":\"/t/none\""));
	assert_null(raw_header(&a, "ETag", value));
	raw_answer_free(&a);
}

static void allow_and_challenge(void **state) {
	(void)state;
	struct raw_answer a = raw_once(live.url, "DELETE", "/t/things", "", NULL);
	assert_string_equal(raw_header(&a, "Allow", value), "GET, HEAD, POST");
	raw_answer_free(&a);
	a = raw_once(live.url, "GET", "/t/things", "", NULL);
	assert_non_null(strstr(a.head, "WWW-Authenticate: Basic realm=\"drivewatt\""));
	assert_non_null(strstr(a.head, "WWW-Authenticate: Bearer realm=\"drivewatt\""));
	raw_answer_free(&a);
}

static void headers_of_every_answer(void **state) {
	(void)state;
	static const char *const targets[] = {
		"/t/hello", "/t/things", "/t/things/x", "/t/none", "/t/fail?rc=internal"};
	for (size_t i = 0; i < array_len(targets); i++) {
		struct raw_answer a = raw_once(
			live.url, "GET", targets[i], AS_READER "X-Request-Id: abc-1\r\n", NULL);
		assert_string_equal(raw_header(&a, "X-Request-Id", value), "abc-1");
		assert_string_equal(raw_header(&a, "X-Content-Type-Options", value), "nosniff");
		assert_string_equal(raw_header(&a, "Cache-Control", value), "no-cache");
		raw_answer_free(&a);
	}
	struct raw_answer a = raw_once(
		live.url, "GET", "/t/things/x", AS_READER "X-Request-Id: not/valid\r\n", NULL);
	assert_int_equal(strlen(raw_header(&a, "X-Request-Id", value)), 36);
	assert_non_null(strstr(a.body, value));
	raw_answer_free(&a);
}

static void every_rc_has_a_status(void **state) {
	(void)state;
	static const int statuses_of[RC_COUNT_] = {
		[RC_INVALID] = 400,
		[RC_UNAUTHENTICATED] = 401,
		[RC_FORBIDDEN] = 403,
		[RC_NOT_FOUND] = 404,
		[RC_EXISTS] = 409,
		[RC_CONFLICT] = 409,
		[RC_PRECONDITION] = 412,
		[RC_PRECONDITION_REQUIRED] = 428,
		[RC_TOO_LARGE] = 413,
		[RC_THROTTLED] = 429,
		[RC_FULL] = 503,
		[RC_TIMEOUT] = 504,
		[RC_UNAVAILABLE] = 503,
		[RC_REFUSED] = 502,
		[RC_UNSUPPORTED] = 422,
		[RC_CANCELLED] = 409,
		[RC_NO_SPACE] = 507,
		[RC_STORE] = 507,
		[RC_CORRUPT] = 500,
		[RC_IO] = 500,
		[RC_NOMEM] = 500,
		[RC_INTERNAL] = 500,
	};
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	for (int rc = 1; rc < RC_COUNT_; rc++) {
		char target[64];
		snprintf(target, sizeof(target), "/t/fail?rc=%s", rc_name((enum rc)rc));
		struct raw_answer a = raw_request(&c, "GET", target, AS_READER, NULL);
		assert_int_equal(a.status, statuses_of[rc]);
		assert_int_equal(http_status_of((enum rc)rc), statuses_of[rc]);
		assert_int_equal(a.status == 503 || a.status == 429,
			raw_header(&a, "Retry-After", value) != NULL);
		raw_answer_free(&a);
	}
	raw_close(&c);
	assert_int_equal(http_status_of(RC_COUNT_), 500);
}

static void request_is_shown_to_the_handler(void **state) {
	(void)state;
	struct raw_answer a = raw_once(
		live.url, "GET", "/t/things/a%2Fb%20c?q=1+%2B%20x&flag&other=", AS_READER, NULL);
	assert_non_null(strstr(a.body, "\"id\":\"a/b c\""));
	assert_non_null(strstr(a.body, "\"path\":\"/t/things/a%2Fb%20c\""));
	assert_non_null(strstr(a.body, "\"q\":\"1 + x\""));
	assert_non_null(strstr(a.body, "\"flag\":\"\""));
	assert_non_null(strstr(a.body, "\"user\":\"reader\""));
	assert_non_null(strstr(a.body, "\"address\":\"127.0.0.1\""));
	raw_answer_free(&a);
	a = raw_once(live.url, "GET", "/t/things/x", AS_READER, NULL);
	assert_non_null(strstr(a.body, "\"q\":null"));
	raw_answer_free(&a);
}

static void head_has_the_headers_of_get(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	struct raw_answer head = raw_request(&c, "HEAD", "/t/things", AS_READER, NULL);
	struct raw_answer get = raw_request(&c, "GET", "/t/things", AS_READER, NULL);
	char other[512];
	static const char *const names[] = {"Content-Length", "Content-Type", "ETag", "Vary"};
	for (size_t i = 0; i < array_len(names); i++)
		assert_string_equal(
			raw_header(&head, names[i], value), raw_header(&get, names[i], other));
	raw_answer_free(&head);
	raw_answer_free(&get);
	raw_close(&c);
}

static void no_content_has_none(void **state) {
	(void)state;
	struct raw_answer a = raw_once(live.url, "POST", "/t/cancel", AS_OPERATOR, NULL);
	assert_int_equal(a.status, 204);
	assert_null(raw_header(&a, "Content-Length", value));
	assert_null(raw_header(&a, "Content-Type", value));
	raw_answer_free(&a);
}

static void created_tells_where(void **state) {
	(void)state;
	struct raw_answer a = raw_once(live.url, "POST", "/t/things", AS_ADMIN SENDS_JSON, "{}");
	assert_string_equal(raw_header(&a, "Location", value), "/t/things/new");
	assert_string_equal(raw_header(&a, "Cache-Control", value), "no-store");
	raw_answer_free(&a);
}

static void if_none_match_needs_the_whole_tag(void **state) {
	(void)state;
	static const struct {
		const char *tag;
		int status;
	} cases[] = {
		{"\"c7.o9\"", 304},
		{"W/\"c7.o9\"", 304},
		{"*", 304},
		{"\"c7\", \"c7.o9\"", 304},
		{"\"c7\"", 200},
		{"\"c7.o10\"", 200},
		{"c7.o9", 200},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		char headers[256];
		snprintf(headers, sizeof(headers), AS_READER "If-None-Match: %s\r\n", cases[i].tag);
		struct raw_answer a = raw_once(live.url, "GET", "/t/things/x", headers, NULL);
		assert_int_equal(a.status, cases[i].status);
		assert_string_equal(raw_header(&a, "ETag", value), "\"c7.o9\"");
		if (a.status == 304)
			assert_null(raw_header(&a, "Content-Type", value));
		raw_answer_free(&a);
	}
	/* who may not see it does not learn whether it changed */
	assert_int_equal(
		status_of("GET", "/t/things/x", "If-None-Match: \"c7.o9\"\r\n", NULL), 401);
}

/* The status of a change with these headers; tag becomes its ETag, "" none. */
static int put_with(const char *thing, const char *conditions, char tag[512]) {
	char path[64], headers[256];
	snprintf(path, sizeof(path), "/t/things/%s", thing);
	snprintf(headers, sizeof(headers), AS_OPERATOR SENDS_JSON "%s", conditions);
	struct raw_answer a = raw_once(live.url, "PUT", path, headers, "{}");
	int status = a.status;
	if (!raw_header(&a, "ETag", tag))
		tag[0] = '\0';
	raw_answer_free(&a);
	return status;
}

static void conditions_tell_what_a_change_must_find(void **state) {
	(void)state;
	static const struct {
		const char *thing, *conditions;
		int status;
		const char *found; /* "o" and the version */
	} cases[] = {
		{"x", "", 200, "\"c8.o0\""},
		{"none", "", 200, "\"c8.o0\""},
		{"x", "If-Match: *\r\n", 200, "\"c8.o0\""},
		{"x", "If-Match: \"c7.o1\"\r\n", 200, "\"c8.o7\""},
		{"none", "If-Match: *\r\n", 412, ""},
		{"none", "If-Match: \"c7\"\r\n", 412, ""},
		{"x", "If-None-Match: *\r\n", 412, ""},
		{"x", "If-None-Match: \"c1\", W/\"c7\"\r\n", 412, ""},
		{"x", "If-None-Match: \"c1\"\r\n", 200, "\"c8.o0\""},
		{"none", "If-None-Match: *\r\n", 200, "\"c8.o4294967295\""},
		{"x", "If-Match: \"c7\"\r\nIf-None-Match: *\r\n", 412, ""},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		char tag[512];
		assert_int_equal(
			put_with(cases[i].thing, cases[i].conditions, tag), cases[i].status);
		assert_string_equal(tag, cases[i].found);
	}
}

static void a_key_is_honoured_or_refused(void **state) {
	(void)state;
	static const struct {
		const char *method, *path, *key;
		int status;
	} cases[] = {
		{"POST", "/t/things", "a key", 201},
		{"POST", "/t/things", "~", 201},
		{"POST", "/t/things", "\x80", 400},
		{"POST", "/t/things", "a\tb", 400},
		{"PUT", "/t/things/x", "any", 200},
	};
	char headers[512], key[140];
	for (size_t i = 0; i < array_len(cases); i++) {
		snprintf(headers, sizeof(headers), AS_ADMIN SENDS_JSON "Idempotency-Key: %s\r\n",
			cases[i].key);
		assert_int_equal(
			status_of(cases[i].method, cases[i].path, headers, "{}"), cases[i].status);
	}
	for (size_t len = 128; len <= 129; len++) {
		memset(key, 'k', len);
		key[len] = '\0';
		snprintf(headers, sizeof(headers), AS_ADMIN SENDS_JSON "Idempotency-Key: %s\r\n",
			key);
		assert_int_equal(
			status_of("POST", "/t/things", headers, "{}"), len == 128 ? 201 : 400);
	}
	assert_int_equal(
		status_of("POST", "/t/cancel", AS_OPERATOR "Idempotency-Key: k\r\n", NULL), 400);
}

static void a_trial_is_told_to_the_handler_or_refused(void **state) {
	(void)state;
	struct raw_answer a =
		raw_once(live.url, "POST", "/t/things?dry_run=true", AS_ADMIN SENDS_JSON, "{}");
	assert_int_equal(a.status, 200);
	assert_string_equal(a.body, "{\"bytes\":2,\"dry\":true}");
	assert_string_equal(raw_header(&a, "Dry-Run", value), "true");
	assert_null(raw_header(&a, "Location", value));
	assert_null(raw_header(&a, "ETag", value));
	raw_answer_free(&a);
	a = raw_once(live.url, "POST", "/t/things?dry_run=no", AS_ADMIN SENDS_JSON, "{}");
	assert_int_equal(a.status, 201);
	assert_string_equal(a.body, "{\"bytes\":2}");
	assert_null(raw_header(&a, "Dry-Run", value));
	raw_answer_free(&a);
	assert_int_equal(status_of("POST", "/t/things?dry_run=x", AS_ADMIN SENDS_JSON, "{}"), 400);
	assert_int_equal(status_of("POST", "/t/things?dry_run", AS_ADMIN SENDS_JSON, "{}"), 400);
	assert_int_equal(
		status_of("PUT", "/t/things/x?dry_run=true", AS_ADMIN SENDS_JSON, "{}"), 400);
	assert_int_equal(status_of("GET", "/t/hello?dry_run=true", AS_ADMIN, NULL), 400);
}

static void if_match_compares_the_configuration(void **state) {
	(void)state;
	static const struct {
		const char *tag;
		int status;
	} cases[] = {
		{"\"c7\"", 200},
		{"\"c7.o1\"", 200},
		{"\"c7-gz\"", 200},
		{"\"c1\", \"c7\"", 200},
		{"*", 200},
		{"W/\"c7\"", 412},
		{"\"c70\"", 412},
		{"\"c8\"", 412},
		{"c7", 412},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		char headers[256];
		snprintf(headers, sizeof(headers), AS_OPERATOR SENDS_JSON "If-Match: %s\r\n",
			cases[i].tag);
		assert_int_equal(status_of("PUT", "/t/things/x", headers, "{}"), cases[i].status);
	}
}

static void cached_until_the_version_changes(void **state) {
	(void)state;
	live.version = 100;
	unsigned runs = live.list_runs;
	struct raw_answer a = raw_once(live.url, "GET", "/t/things", AS_READER, NULL);
	char first[512];
	assert_non_null(raw_header(&a, "ETag", first));
	raw_answer_free(&a);
	for (int i = 0; i < 10; i++) {
		a = raw_once(live.url, "GET", "/t/things", AS_READER, NULL);
		assert_non_null(strstr(a.body, "\"version\":100"));
		assert_string_equal(raw_header(&a, "ETag", value), first);
		raw_answer_free(&a);
	}
	assert_int_equal(live.list_runs, runs + 1);

	char headers[600];
	snprintf(headers, sizeof(headers), AS_READER "If-None-Match: %s\r\n", first);
	a = raw_once(live.url, "GET", "/t/things", headers, NULL);
	assert_int_equal(a.status, 304);
	assert_string_equal(raw_header(&a, "ETag", value), first);
	raw_answer_free(&a);
	live.version = 101;
	a = raw_once(live.url, "GET", "/t/things", headers, NULL);
	assert_int_equal(a.status, 200);
	assert_non_null(strstr(a.body, "\"version\":101"));
	raw_answer_free(&a);
	assert_int_equal(live.list_runs, runs + 2);
}

/* The cache does not open to whoever comes. */
static void cached_bodies_need_credentials(void **state) {
	(void)state;
	assert_int_equal(status_of("GET", "/t/things", AS_READER, NULL), 200);
	assert_int_equal(status_of("GET", "/t/things", AS_READER, NULL), 200);
	assert_int_equal(status_of("GET", "/t/things", "", NULL), 401);
	assert_int_equal(
		status_of("GET", "/t/things", "Authorization: Bearer wrong\r\n", NULL), 401);
}

static void gzip_where_it_is_liked(void **state) {
	(void)state;
	struct raw_answer plain = raw_once(live.url, "GET", "/t/things", AS_READER, NULL);
	char tag[512];
	raw_header(&plain, "ETag", tag);
	for (int i = 0; i < 2; i++) { /* made, then from the cache */
		struct raw_answer a = raw_once(live.url, "GET", "/t/things",
			AS_READER "Accept-Encoding: br, gzip;q=0.8\r\n", NULL);
		assert_string_equal(raw_header(&a, "Content-Encoding", value), "gzip");
		assert_string_not_equal(raw_header(&a, "ETag", value), tag);
		char out[65536];
		z_stream z = {.next_in = (unsigned char *)a.body,
			.avail_in = (unsigned)a.body_len,
			.next_out = (unsigned char *)out,
			.avail_out = sizeof(out)};
		assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.total_out, plain.body_len);
		assert_memory_equal(out, plain.body, plain.body_len);
		inflateEnd(&z);
		/* the tag of either form is good for both */
		char headers[1100];
		snprintf(headers, sizeof(headers), AS_READER "If-None-Match: %s\r\n", value);
		assert_int_equal(status_of("GET", "/t/things", headers, NULL), 304);
		raw_answer_free(&a);
	}
	raw_answer_free(&plain);
	struct raw_answer a =
		raw_once(live.url, "GET", "/t/hello", "Accept-Encoding: gzip\r\n", NULL);
	assert_null(raw_header(&a, "Content-Encoding", value));
	raw_answer_free(&a);
	a = raw_once(live.url, "GET", "/t/page", "Accept-Encoding: gzip;q=0\r\n", NULL);
	assert_null(raw_header(&a, "Content-Encoding", value));
	assert_int_equal(a.body_len, 4096);
	raw_answer_free(&a);
}

static void accept_chooses_the_type(void **state) {
	(void)state;
	struct raw_answer a =
		raw_once(live.url, "GET", "/t/table", AS_READER "Accept: text/csv\r\n", NULL);
	assert_string_equal(raw_header(&a, "Content-Type", value), "text/csv");
	assert_string_equal(
		raw_header(&a, "Vary", value), "Accept, Accept-Encoding, Authorization");
	raw_answer_free(&a);
	a = raw_once(live.url, "GET", "/t/table", AS_READER, NULL);
	assert_string_equal(raw_header(&a, "Content-Type", value), "application/json");
	raw_answer_free(&a);
}

static void verified_once(void **state) {
	(void)state;
	live_accounts_reset();
	for (int i = 0; i < 5; i++)
		assert_int_equal(status_of("GET", "/t/things/x", AS_READER, NULL), 200);
	assert_int_equal(live_accounts_hashes(), 1);
}

static void who_is_throttled_is_told_how_long(void **state) {
	(void)state;
	live_accounts_reset();
	live_accounts_throttled(true);
	struct raw_answer a = raw_once(live.url, "GET", "/t/things/x", AS_SLOW, NULL);
	assert_int_equal(a.status, 429);
	assert_string_equal(raw_header(&a, "Retry-After", value), "3");
	raw_answer_free(&a);
	assert_int_equal(status_of("GET", "/t/things/x", AS_READER, NULL), 200);
	live_accounts_throttled(false);
	assert_int_equal(status_of("GET", "/t/things/x", AS_SLOW, NULL), 200);
	live_accounts_throttled(true);
	assert_int_equal(status_of("GET", "/t/things/x", AS_SLOW, NULL), 200);
}

/* A refused write does not cost the connection when its body is short. */
static void refusals_keep_the_connection(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	for (int i = 0; i < 3; i++) {
		struct raw_answer a = raw_request(&c, "POST", "/t/things", "", "{\"a\":1}");
		assert_int_equal(a.status, 401);
		assert_null(raw_header(&a, "Connection", value));
		raw_answer_free(&a);
		a = raw_request(&c, "PATCH", "/t/none", "", "{}");
		assert_int_equal(a.status, 404);
		raw_answer_free(&a);
	}
	raw_close(&c);
}

static void body_limits(void **state) {
	(void)state;
	char body[9001];
	memset(body, ' ', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';

	live_accounts_reset();
	/* refused by its length, before it is sent */
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	raw_sends(&c,
		"PUT /t/things/x HTTP/1.1\r\nHost: t\r\n" AS_OPERATOR SENDS_JSON
		"Content-Length: 1001\r\n\r\n");
	/* short enough to be read first, so that the connection stays */
	raw_send(&c, body, 1001);
	struct raw_answer a = raw_read(&c, false);
	assert_int_equal(a.status, 413);
	raw_answer_free(&a);
	raw_close(&c);
	assert_true(raw_open(&c, live.url));
	raw_sends(&c,
		"PUT /t/things/x HTTP/1.1\r\nHost: t\r\n" AS_OPERATOR SENDS_JSON
		"Content-Length: 100000000\r\n\r\n");
	a = raw_read(&c, false);
	assert_int_equal(a.status, 413);
	assert_true(raw_ends(&c, RAW_TIMEOUT_MS));
	raw_answer_free(&a);
	raw_close(&c);

	/* more than strangers may send: verified first */
	assert_true(raw_open(&c, live.url));
	raw_sends(&c,
		"POST /t/things HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer wrong\r\n" SENDS_JSON
		"Content-Length: 9000\r\n\r\n");
	a = raw_read(&c, false);
	assert_int_equal(a.status, 401);
	raw_answer_free(&a);
	raw_close(&c);
	a = raw_once(live.url, "POST", "/t/things", AS_ADMIN SENDS_JSON, body);
	assert_int_equal(a.status, 201);
	assert_string_equal(a.body, "{\"bytes\":9000}");
	raw_answer_free(&a);
}

static void chunked_bodies(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	for (int i = 0; i < 2; i++) { /* unverified, then remembered */
		raw_sends(&c,
			"POST /t/things HTTP/1.1\r\nHost: t\r\n" AS_ADMIN SENDS_JSON
			"Transfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n1\r\n}\r\n0\r\n\r\n");
		struct raw_answer a = raw_read(&c, false);
		assert_int_equal(a.status, 201);
		assert_string_equal(a.body, "{\"bytes\":3}");
		raw_answer_free(&a);
	}
	raw_sends(&c,
		"PUT /t/things/x HTTP/1.1\r\nHost: t\r\n" AS_OPERATOR SENDS_JSON
		"Transfer-Encoding: chunked\r\n\r\n");
	char chunk[1001];
	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 2; i++) {
		raw_sends(&c, "3e9\r\n");
		raw_send(&c, chunk, sizeof(chunk));
		raw_sends(&c, "\r\n");
	}
	raw_sends(&c, "0\r\n\r\n");
	struct raw_answer a = raw_read(&c, false);
	assert_int_equal(a.status, 413);
	raw_answer_free(&a);
	raw_close(&c);
}

static void continue_only_for_who_may(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	raw_sends(&c,
		"POST /t/things HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n" SENDS_JSON
		"Content-Length: 2\r\n\r\n");
	struct raw_answer a = raw_read(&c, false);
	assert_int_equal(a.status, 401);
	raw_answer_free(&a);
	raw_close(&c);
	assert_true(raw_open(&c, live.url));
	raw_sends(&c,
		"POST /t/things HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n" AS_ADMIN SENDS_JSON
		"Content-Length: 2\r\n\r\n");
	assert_true(raw_wait_for(&c, "HTTP/1.1 100 Continue\r\n\r\n", RAW_TIMEOUT_MS));
	c.len = 0;
	raw_sends(&c, "{}");
	a = raw_read(&c, false);
	assert_int_equal(a.status, 201);
	raw_answer_free(&a);
	raw_close(&c);
}

/* What a proxy and we might cut differently is refused, and the connection with it. */
static void unclear_framing_is_refused(void **state) {
	(void)state;
	static const char *const framings[] = {
		"Content-Length: 0\r\nContent-Length: 30\r\n",
		"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: gzip\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Content-Length: x\r\n",
		"Content-Length: -1\r\n",
	};
	for (size_t i = 0; i < array_len(framings); i++) {
		struct raw_conn c;
		assert_true(raw_open(&c, live.url));
		raw_sends(&c, "POST /t/cancel HTTP/1.1\r\nHost: t\r\n" AS_OPERATOR);
		raw_sends(&c, framings[i]);
		raw_sends(&c, "\r\nGET /t/hello HTTP/1.1\r\nHost: t\r\n\r\n");
		struct raw_answer a = raw_read(&c, false);
		assert_int_equal(a.status, 400);
		assert_true(raw_ends(&c, RAW_TIMEOUT_MS));
		raw_answer_free(&a);
		raw_close(&c);
	}
}

/* A body where none is due is not taken for the next request. */
static void body_of_get_is_no_request(void **state) {
	(void)state;
	struct raw_conn c;
	assert_true(raw_open(&c, live.url));
	struct raw_answer a =
		raw_request(&c, "GET", "/t/hello", "", "GET /t/things HTTP/1.1\r\nHost: t\r\n\r\n");
	assert_int_equal(a.status, 413);
	raw_answer_free(&a);
	a = raw_request(&c, "GET", "/t/hello", "", NULL);
	assert_int_equal(a.status, 200);
	raw_answer_free(&a);
	raw_close(&c);
}

static void routes_are_dumped(void **state) {
	(void)state;
	struct buf out;
	static const struct http_route rows[] = {
		{"GET", "/a", "getA", ROLE_READ_ONLY, .handler = live_finish},
		{"PUT", "/a/{x}", "putA", ROLE_OPERATOR, .handler = live_finish},
		{"GET", "/h", "getH", ROLE_NONE, .flags = HTTP_PUBLIC, .handler = live_finish},
	};
	struct http_tree tree = {"", rows, array_len(rows), NULL, NULL};
	buf_init(&out, 1000);
	http_server_dump_routes(&tree, 1, &out);
	assert_string_equal(buf_str(&out),
		"GET /a getA ReadOnly\nPUT /a/{x} putA Operator\nGET /h getH public\n");
	buf_release(&out);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses),
		cmocka_unit_test(errors_are_the_trees),
		cmocka_unit_test(allow_and_challenge),
		cmocka_unit_test(headers_of_every_answer),
		cmocka_unit_test(every_rc_has_a_status),
		cmocka_unit_test(request_is_shown_to_the_handler),
		cmocka_unit_test(head_has_the_headers_of_get),
		cmocka_unit_test(no_content_has_none),
		cmocka_unit_test(created_tells_where),
		cmocka_unit_test(if_none_match_needs_the_whole_tag),
		cmocka_unit_test(if_match_compares_the_configuration),
		cmocka_unit_test(conditions_tell_what_a_change_must_find),
		cmocka_unit_test(a_key_is_honoured_or_refused),
		cmocka_unit_test(a_trial_is_told_to_the_handler_or_refused),
		cmocka_unit_test(cached_until_the_version_changes),
		cmocka_unit_test(cached_bodies_need_credentials),
		cmocka_unit_test(gzip_where_it_is_liked),
		cmocka_unit_test(accept_chooses_the_type),
		cmocka_unit_test(verified_once),
		cmocka_unit_test(who_is_throttled_is_told_how_long),
		cmocka_unit_test(refusals_keep_the_connection),
		cmocka_unit_test(body_limits),
		cmocka_unit_test(chunked_bodies),
		cmocka_unit_test(continue_only_for_who_may),
		cmocka_unit_test(unclear_framing_is_refused),
		cmocka_unit_test(body_of_get_is_no_request),
		cmocka_unit_test(routes_are_dumped),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
