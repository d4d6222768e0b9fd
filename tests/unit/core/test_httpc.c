/* The client against a small BMC in a process of its own, on loopback. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/parse.h"
#include "base/thread.h"
#include "core/httpc.h"
#include "tests/support/fakebmc.h"

#define PATIENCE_MS 20000
#define ROOT "/redfish/v1/"
#define SESSIONS "/redfish/v1/SessionService/Sessions"
#define METRICS "/redfish/v1/Chassis/1/EnvironmentMetrics"

/* Answers as they come. */
struct inbox {
	pthread_mutex_t lock;
	pthread_cond_t came;
	int count;
	struct httpc_response last;
	char body[256];
};

struct fixture {
	struct httpc *client;
	struct fakebmc *bmc;
	struct inbox inbox;
};

static void on_answer(void *arg, const struct httpc_response *r) {
	struct inbox *in = arg;
	pthread_mutex_lock(&in->lock);
	in->count++;
	in->last = *r;
	str_copy(in->body, sizeof(in->body), r->body);
	pthread_cond_signal(&in->came);
	pthread_mutex_unlock(&in->lock);
}

static void wait_for(struct inbox *in, int count) {
	struct timespec deadline = thread_deadline(PATIENCE_MS);
	bool in_time = true;
	pthread_mutex_lock(&in->lock);
	while (in->count < count && in_time)
		in_time = cond_wait_until(&in->came, &in->lock, &deadline);
	assert_int_equal(in->count, count);
	pthread_mutex_unlock(&in->lock);
}

static int setup_with(void **state, const char *const *args) {
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	pthread_mutex_init(&f->inbox.lock, NULL);
	cond_init(&f->inbox.came);
	f->bmc = fakebmc_new(args);
	f->client = httpc_new(4, 3, &err);
	assert_non_null(f->client);
	*state = f;
	return 0;
}

static int setup_tls(void **state) {
	return setup_with(state, NULL);
}

static int setup_plain(void **state) {
	static const char *const args[] = {"--plain", NULL};
	return setup_with(state, args);
}

static int setup_misnamed(void **state) {
	static const char *const args[] = {"--name", "bmc.invalid", NULL};
	return setup_with(state, args);
}

static int teardown(void **state) {
	struct fixture *f = *state;
	httpc_free(f->client);
	fakebmc_free(f->bmc);
	pthread_cond_destroy(&f->inbox.came);
	pthread_mutex_destroy(&f->inbox.lock);
	free(f);
	return 0;
}

static struct httpc_request request_of(const struct fixture *f) {
	return (struct httpc_request){
		.method = "GET",
		.username = "root",
		.password = "calvin",
		.tls = BMC_TLS_PIN,
		.allow_plaintext = strncmp(f->bmc->url, "http://", 7) == 0,
		.fingerprint_sha256 = f->bmc->fingerprint_sha256[0]
			? f->bmc->fingerprint_sha256
			: "0000000000000000000000000000000000000000000000000000000000000000",
		.connect_ms = 5000,
		.total_ms = 10000,
		.max_bytes = 65536,
	};
}

/* Sends and waits; the answer stands in the inbox. */
static enum rc get_as(
	struct fixture *f, const char *key, struct httpc_request r, const char *path) {
	char url[256];
	int before = f->inbox.count;
	snprintf(url, sizeof(url), "%s%s", f->bmc->url, path);
	r.url = url;
	assert_int_equal(httpc_send(f->client, key, &r, on_answer, &f->inbox, NULL), RC_OK);
	wait_for(&f->inbox, before + 1);
	return f->inbox.last.rc;
}

static enum rc get(struct fixture *f, struct httpc_request r, const char *path) {
	return get_as(f, "bmc", r, path);
}

static enum rc get_plain(struct fixture *f, const char *path) {
	return get(f, request_of(f), path);
}

/* --- */

static void an_answer_comes_whole(void **state) {
	struct fixture *f = *state;
	assert_int_equal(get_plain(f, METRICS), RC_OK);
	const struct httpc_response *r = &f->inbox.last;
	assert_int_equal(r->status, 200);
	assert_non_null(strstr(f->inbox.body, "402"));
	assert_int_equal(r->length, strlen(f->inbox.body));
	assert_string_equal(r->content_type, "application/json");
	assert_int_equal(r->etag[0], '"');
	assert_true(r->done_mono_ns > 0 && r->done_wall_ms > 0);
}

static void statuses_are_answers(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	r.password = "wrong";
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 401);
	assert_int_equal(get_plain(f, "/nowhere"), RC_OK);
	assert_int_equal(f->inbox.last.status, 404);
	fakebmc_tell(f->bmc, "mode redirect");
	assert_int_equal(get_plain(f, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 302);
	assert_string_equal(f->inbox.last.location, "/elsewhere");
}

static void connections_are_kept(void **state) {
	struct fixture *f = *state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(get_plain(f, METRICS), RC_OK);
	struct fakebmc_stats s = fakebmc_ask_stats(f->bmc);
	assert_int_equal(s.requests, 5);
	assert_int_equal(s.connections, 1);
}

/* Of many BMCs few are asked at a time; the others' connections are kept all the same. They stand
 * for as many BMCs: each has an address of its own. */
static void connections_of_all_peers_are_kept(void **state) {
	enum { PEERS = 12, ROUNDS = 3 };
	struct fixture *f = *state;
	long port = strtol(strrchr(f->bmc->url, ':') + 1, NULL, 10);
	httpc_free(f->client);
	f->client = httpc_new(PEERS, 1, NULL);
	assert_non_null(f->client);
	for (int i = 0; i < ROUNDS * PEERS; i++) {
		struct httpc_request r = request_of(f);
		char key[16];
		snprintf(key, sizeof(key), "bmc %d", i % PEERS);
		snprintf(f->bmc->url, sizeof(f->bmc->url), "http://127.0.1.%d:%ld", i % PEERS + 1,
			port);
		assert_int_equal(get_as(f, key, r, METRICS), RC_OK);
	}
	struct fakebmc_stats s = fakebmc_ask_stats(f->bmc);
	assert_int_equal(s.requests, ROUNDS * PEERS);
	assert_int_equal(s.connections, PEERS);
}

/* --- TLS --- */

static void the_pin_decides(void **state) {
	struct fixture *f = *state;
	char other[65];
	struct httpc_request r = request_of(f);
	str_copy(other, sizeof(other), f->bmc->fingerprint_sha256);
	other[63] = other[63] == '0' ? '1' : '0';
	assert_int_equal(get_plain(f, METRICS), RC_OK);
	/* On the kept connection too. */
	r.fingerprint_sha256 = other;
	assert_int_equal(get(f, r, METRICS), RC_FORBIDDEN);
	httpc_forget(f->client, "bmc");
	assert_int_equal(get(f, r, METRICS), RC_FORBIDDEN);
	/* The credentials did not go out. */
	assert_int_equal(fakebmc_ask_stats(f->bmc).requests, 1);
	assert_int_equal(get_plain(f, METRICS), RC_OK);
}

static void the_authority_decides(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	r.tls = BMC_TLS_CA;
	r.ca_file = f->bmc->ca_file;
	assert_int_equal(get(f, r, METRICS), RC_OK);
	r.ca_file = NULL;
	assert_int_equal(get(f, r, METRICS), RC_FORBIDDEN);
	assert_int_equal(fakebmc_ask_stats(f->bmc).requests, 1);
}

/* It would hold up the requests to all others. */
static void the_authority_is_no_fifo(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	struct err err;
	char dir[] = "/tmp/dw-httpc-XXXXXX", path[sizeof(dir) + 8];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/ca.pem", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(httpc_check_ca(path, &err), RC_FORBIDDEN);
	assert_int_equal(httpc_check_ca(f->bmc->ca_file, &err), RC_OK);
	r.tls = BMC_TLS_CA;
	r.url = f->bmc->url;
	r.ca_file = path;
	assert_int_equal(
		httpc_send(f->client, "bmc", &r, on_answer, &f->inbox, &err), RC_FORBIDDEN);
	r.ca_file = f->bmc->ca_file;
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void the_name_must_fit(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	r.tls = BMC_TLS_CA;
	r.ca_file = f->bmc->ca_file;
	assert_int_equal(get(f, r, METRICS), RC_FORBIDDEN);
	r.tls = BMC_TLS_NONE;
	r.ca_file = NULL;
	assert_int_equal(get(f, r, METRICS), RC_OK);
}

static void plaintext_must_be_allowed(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	assert_int_equal(get(f, r, METRICS), RC_OK);
	r.url = f->bmc->url;
	r.allow_plaintext = false;
	assert_int_equal(httpc_send(f->client, "bmc", &r, on_answer, &f->inbox, NULL), RC_INVALID);
	r.allow_plaintext = true;
	r.url = "file:///etc/passwd";
	assert_int_equal(httpc_send(f->client, "bmc", &r, on_answer, &f->inbox, NULL), RC_INVALID);
}

static void a_tag_goes_along(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	assert_int_equal(get(f, r, METRICS), RC_OK);
	fakebmc_tell(f->bmc, "limits etag_needed");
	r.method = "PATCH";
	r.body = "{\"PowerLimitWatts\":{\"SetPoint\":600}}";
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 428);
	r.if_match = "\"other\"";
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 412);
	r.if_match = "*";
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 204);
	r.if_match = "\"a b\"";
	r.url = f->bmc->url;
	assert_int_equal(httpc_send(f->client, "bmc", &r, on_answer, &f->inbox, NULL), RC_INVALID);
}

/* --- faults --- */

static void faults_have_their_codes(void **state) {
	struct fixture *f = *state;
	struct httpc_request r = request_of(f);
	fakebmc_tell(f->bmc, "mode huge");
	assert_int_equal(get_plain(f, METRICS), RC_TOO_LARGE);
	fakebmc_tell(f->bmc, "mode truncated");
	assert_int_equal(get_plain(f, METRICS), RC_CORRUPT);
	fakebmc_tell(f->bmc, "mode slow");
	r.total_ms = 100;
	assert_int_equal(get(f, r, METRICS), RC_TIMEOUT);
	fakebmc_tell(f->bmc, "mode ok");
	assert_int_equal(get_plain(f, METRICS), RC_OK);
	r = request_of(f);
	r.url = "http://127.0.0.1:1/";
	assert_int_equal(httpc_send(f->client, "nobody", &r, on_answer, &f->inbox, NULL), RC_OK);
	wait_for(&f->inbox, 5);
	assert_int_equal(f->inbox.last.rc, RC_UNAVAILABLE);
}

/* --- sessions --- */

static struct httpc_request login_of(const struct fixture *f) {
	struct httpc_request r = request_of(f);
	r.method = "POST";
	r.username = r.password = NULL;
	r.body = "{\"UserName\":\"root\",\"Password\":\"calvin\"}";
	return r;
}

static void tokens_come_and_go(void **state) {
	struct fixture *f = *state;
	char token[HTTPC_TOKEN_SIZE];
	struct httpc_request r = request_of(f);
	assert_int_equal(get(f, login_of(f), SESSIONS), RC_OK);
	assert_int_equal(f->inbox.last.status, 201);
	assert_string_equal(f->inbox.last.location, SESSIONS "/1");
	assert_int_equal(f->inbox.last.retry_after_s, 0);
	str_copy(token, sizeof(token), f->inbox.last.token);
	r.username = r.password = NULL;
	r.token = token;
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 200);
	assert_int_equal(f->inbox.last.token[0], 0);
	/* It is the request's, not the peer's. */
	r.token = NULL;
	assert_int_equal(get(f, r, METRICS), RC_OK);
	assert_int_equal(f->inbox.last.status, 401);
	r.token = "a\r\nX-Evil: 1";
	r.url = f->bmc->url;
	assert_int_equal(httpc_send(f->client, "bmc", &r, on_answer, &f->inbox, NULL), RC_INVALID);
}

static void a_wish_to_wait_is_heard(void **state) {
	struct fixture *f = *state;
	fakebmc_tell(f->bmc, "sessions full");
	assert_int_equal(get(f, login_of(f), SESSIONS), RC_OK);
	assert_int_equal(f->inbox.last.status, 503);
	assert_int_equal(f->inbox.last.retry_after_s, 30);
}

/* --- order and bounds --- */

static void send_many(struct fixture *f, int n, enum rc last) {
	char url[256];
	struct httpc_request r = request_of(f);
	snprintf(url, sizeof(url), "%s%s", f->bmc->url, METRICS);
	r.url = url;
	for (int i = 0; i < n; i++) {
		enum rc rc = httpc_send(f->client, "bmc", &r, on_answer, &f->inbox, NULL);
		assert_int_equal(rc, i < n - 1 ? RC_OK : last);
	}
}

static void one_at_a_time(void **state) {
	struct fixture *f = *state;
	send_many(f, 3, RC_OK);
	wait_for(&f->inbox, 3);
	struct fakebmc_stats s = fakebmc_ask_stats(f->bmc);
	assert_int_equal(s.requests, 3);
	assert_int_equal(s.most_at_once, 1);
}

/* One that does not answer costs the others nothing. */
static void a_slow_one_delays_nobody(void **state) {
	struct fixture *f = *state;
	static const char *const args[] = {"--plain", NULL};
	struct inbox slow = {.count = 0};
	struct httpc_request r = request_of(f);
	pthread_mutex_init(&slow.lock, NULL);
	cond_init(&slow.came);
	struct fakebmc *hung = fakebmc_new(args);
	fakebmc_tell(hung, "mode slow");
	r.url = hung->url;
	r.total_ms = 55000;
	assert_int_equal(httpc_send(f->client, "hung", &r, on_answer, &slow, NULL), RC_OK);
	for (int i = 0; i < 5; i++)
		assert_int_equal(get_plain(f, METRICS), RC_OK);
	assert_int_equal(slow.count, 0);
	httpc_free(f->client);
	f->client = NULL;
	assert_int_equal(slow.count, 1);
	assert_int_equal(slow.last.rc, RC_CANCELLED);
	fakebmc_free(hung);
	pthread_cond_destroy(&slow.came);
	pthread_mutex_destroy(&slow.lock);
}

/* Waits until the first of them runs: the queue holds those that wait. */
static void queues_are_bounded(void **state) {
	struct fixture *f = *state;
	struct timespec pause = {.tv_nsec = 2000000};
	struct timespec deadline = thread_deadline(PATIENCE_MS), now;
	fakebmc_tell(f->bmc, "mode slow");
	send_many(f, 1, RC_OK);
	while (!fakebmc_ask_stats(f->bmc).requests) {
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		assert_true(now.tv_sec < deadline.tv_sec);
	}
	send_many(f, 4, RC_FULL);
	struct httpc_request r = request_of(f);
	r.url = f->bmc->url;
	for (int i = 0; i < 3; i++) {
		const char key[] = {(char)('a' + i), '\0'};
		assert_int_equal(httpc_send(f->client, key, &r, on_answer, &f->inbox, NULL), RC_OK);
	}
	assert_int_equal(
		httpc_send(f->client, "one more", &r, on_answer, &f->inbox, NULL), RC_FULL);
	/* The end cancels what runs and what waits. */
	httpc_free(f->client);
	f->client = NULL;
	assert_int_equal(f->inbox.count, 7);
	assert_int_equal(f->inbox.last.rc, RC_CANCELLED);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_answer_comes_whole, setup_tls, teardown),
		cmocka_unit_test_setup_teardown(statuses_are_answers, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(connections_are_kept, setup_tls, teardown),
		cmocka_unit_test_setup_teardown(
			connections_of_all_peers_are_kept, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(the_pin_decides, setup_tls, teardown),
		cmocka_unit_test_setup_teardown(the_authority_decides, setup_tls, teardown),
		cmocka_unit_test_setup_teardown(the_authority_is_no_fifo, setup_tls, teardown),
		cmocka_unit_test_setup_teardown(the_name_must_fit, setup_misnamed, teardown),
		cmocka_unit_test_setup_teardown(plaintext_must_be_allowed, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(a_tag_goes_along, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(faults_have_their_codes, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(tokens_come_and_go, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(a_wish_to_wait_is_heard, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(one_at_a_time, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(a_slow_one_delays_nobody, setup_plain, teardown),
		cmocka_unit_test_setup_teardown(queues_are_bounded, setup_plain, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
