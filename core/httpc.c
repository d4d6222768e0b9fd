#include "core/httpc.h"

#include <curl/curl.h>
#include <limits.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/thread.h"

#define KEY_SIZE 64
#define POLL_MS 60000 /* only a bound: work wakes the thread */
#define SHA256_BYTES 32
#define CA_MAX_BYTES (1024 * 1024)

/* One request and its answer so far. */
struct transfer {
	struct transfer *next; /* in the peer's queue */
	char *method, *url, *username, *password, *token, *body, *ciphers, *if_match; /* owned */
	size_t body_len;
	char *headers[HTTPC_MAX_HEADERS]; /* owned; the first is NULL: those of Redfish */
	enum bmc_tls tls;
	bool allow_plaintext;
	uint8_t pin[SHA256_BYTES];
	long connect_ms, total_ms;
	httpc_fn *fn;
	void *arg;
	struct buf ca; /* PEM; empty: the system's */
	struct buf answer;
	bool pin_differs;
};

/* Under the client's lock, but for easy, headers and running's inside, which are the thread's. */
struct peer {
	char key[KEY_SIZE];
	CURL *easy; /* kept between requests, and with it what libcurl knows of the peer */
	struct curl_slist *headers;
	struct transfer *running;
	struct transfer *queue; /* first to run first */
	unsigned queued;
	bool forgotten; /* freed once idle */
	bool is_ready;
	struct peer *prev, *next; /* among those that are ready */
	UT_hash_handle hh;
};

struct httpc {
	CURLM *multi;
	pthread_t thread;
	bool started;
	unsigned max_peers, queue_per_peer;
	pthread_mutex_t lock; /* guards what follows */
	bool stopping;
	struct peer *peers;
	struct peer *ready; /* idle, with something to do, in order */
};

/* --- transfers --- */

static char *copy(const char *s, bool *failed) {
	char *c = s ? strdup(s) : NULL;
	*failed |= s && !c;
	return c;
}

static char *copy_bytes(const char *data, size_t len, bool *failed) {
	char *c = data ? malloc(len + 1) : NULL;
	*failed |= data && !c;
	if (c) {
		memcpy(c, data, len);
		c[len] = '\0';
	}
	return c;
}

static void wipe(char *secret) {
	if (secret)
		secret_wipe(secret, strlen(secret));
	free(secret);
}

static void transfer_free(struct transfer *t) {
	if (!t)
		return;
	wipe(t->password);
	wipe(t->token);
	free(t->username);
	free(t->method);
	free(t->url);
	free(t->body);
	free(t->ciphers);
	free(t->if_match);
	for (size_t i = 0; i < HTTPC_MAX_HEADERS; i++)
		wipe(t->headers[i]);
	buf_release(&t->ca);
	buf_release(&t->answer);
	free(t);
}

static int hex_digit(char c) {
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_pin(const char *hex, uint8_t out[SHA256_BYTES]) {
	for (size_t i = 0; hex && i < SHA256_BYTES; i++) {
		int high = hex_digit(hex[2 * i]), low = high < 0 ? -1 : hex_digit(hex[2 * i + 1]);
		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return hex && !hex[2 * SHA256_BYTES];
}

static bool is_header_value(const char *s) {
	while (*s > ' ' && *s <= '~')
		s++;
	return !*s;
}

static bool are_headers(const char *const *headers) {
	size_t n = 0;
	for (; headers && headers[n]; n++) {
		const char *s = headers[n];
		while (*s >= ' ' && *s <= '~')
			s++;
		if (*s || n == HTTPC_MAX_HEADERS)
			return false;
	}
	return true;
}

static enum rc check(const struct httpc_request *r, struct err *err) {
	bool https = strncmp(r->url, "https://", 8) == 0;
	bool http = strncmp(r->url, "http://", 7) == 0;
	if (!https && !(http && r->allow_plaintext))
		return err_set(err, RC_INVALID, "the URL must begin with https://");
	if (r->token && !is_header_value(r->token))
		return err_set(err, RC_INVALID, "the token is no header's value");
	if (!are_headers(r->headers))
		return err_set(err, RC_INVALID, "the headers are none");
	if (r->if_match &&
		(strlen(r->if_match) >= HTTPC_ETAG_SIZE || !is_header_value(r->if_match)))
		return err_set(err, RC_INVALID, "the tag is no header's value");
	if (r->connect_ms <= 0 || r->total_ms <= 0 || !r->max_bytes)
		return err_set(err, RC_INVALID, "a request needs its time-outs and size limit");
	return RC_OK;
}

/* Here and not by libcurl, whose thread would wait for a FIFO. */
static enum rc read_ca(const char *path, struct buf *pem, struct err *err) {
	struct err why = {.msg = "it is empty"};
	if (file_read(path, pem, &why) || !pem->len)
		return err_set(err, RC_FORBIDDEN, "the authority's file: %s", why.msg);
	return RC_OK;
}

static size_t body_len(const struct httpc_request *r) {
	return r->body && !r->body_len ? strlen(r->body) : r->body_len;
}

static struct transfer *transfer_new(
	const struct httpc_request *r, httpc_fn *fn, void *arg, struct err *err) {
	if (check(r, err))
		return NULL;
	struct transfer *t = calloc(1, sizeof(*t));
	bool failed = !t;
	if (t) {
		*t = (struct transfer){
			.method = copy(r->method, &failed),
			.url = copy(r->url, &failed),
			.username = copy(r->username, &failed),
			.password = copy(r->password, &failed),
			.token = copy(r->token, &failed),
			.body_len = body_len(r),
			.body = copy_bytes(r->body, body_len(r), &failed),
			.ciphers = copy(r->ciphers, &failed),
			.if_match = copy(r->if_match, &failed),
			.tls = r->tls,
			.allow_plaintext = r->allow_plaintext,
			.connect_ms = (long)r->connect_ms,
			.total_ms = (long)r->total_ms,
			.fn = fn,
			.arg = arg,
		};
		for (size_t i = 0; r->headers && r->headers[i]; i++)
			t->headers[i] = copy(r->headers[i], &failed);
		buf_init(&t->answer, r->max_bytes);
		buf_init(&t->ca, CA_MAX_BYTES);
	}
	if (failed)
		err_set(err, RC_NOMEM, "no memory for a request");
	else if (r->tls == BMC_TLS_PIN && !take_pin(r->fingerprint_sha256, t->pin))
		failed = err_set(err, RC_INVALID, "the fingerprint must be 64 hexadecimal digits");
	else if (r->tls == BMC_TLS_CA)
		failed = r->ca_file && read_ca(r->ca_file, &t->ca, err);
	if (!failed)
		return t;
	transfer_free(t);
	return NULL;
}

/* --- libcurl's callbacks, in the client's thread --- */

static size_t on_body(char *data, size_t size, size_t n, void *arg) {
	struct transfer *t = arg;
	buf_add(&t->answer, data, size * n);
	return t->answer.failed ? 0 : size * n;
}

/* Compares the certificate's fingerprint. */
static bool certificate_fits(CURL *easy, const uint8_t pin[SHA256_BYTES]) {
	struct curl_tlssessioninfo *tls = NULL;
	if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) || !tls || !tls->internals)
		return false;
	X509 *certificate = SSL_get1_peer_certificate(tls->internals);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	bool fits = certificate && X509_digest(certificate, EVP_sha256(), digest, &len) &&
		len == SHA256_BYTES && memcmp(digest, pin, SHA256_BYTES) == 0;
	X509_free(certificate);
	return fits;
}

/* The last moment before a request with its credentials goes out, on new connections and kept ones
 * alike. */
static int on_connected(void *arg, char *peer_ip unused_arg, char *own_ip unused_arg,
	int peer_port unused_arg, int own_port unused_arg) {
	struct peer *p = arg;
	struct transfer *t = p->running;
	bool plain = strncmp(t->url, "http://", 7) == 0;
	t->pin_differs = t->tls == BMC_TLS_PIN && !plain && !certificate_fits(p->easy, t->pin);
	return t->pin_differs ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* --- one request --- */

static void set_tls(CURL *easy, const struct transfer *t) {
	bool by_authority = t->tls == BMC_TLS_CA;
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, by_authority ? 1L : 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, by_authority ? 2L : 0L);
	struct curl_blob ca = {t->ca.data, t->ca.len, CURL_BLOB_COPY};
	if (ca.len)
		curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
	if (t->ciphers)
		curl_easy_setopt(easy, CURLOPT_SSL_CIPHER_LIST, t->ciphers);
}

static void set_credentials(CURL *easy, const struct transfer *t) {
	if (!t->username)
		return;
	curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	curl_easy_setopt(easy, CURLOPT_USERNAME, t->username);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, t->password ? t->password : "");
}

static void set_method(CURL *easy, const struct transfer *t) {
	if (t->body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_len);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, t->body);
	}
	if (t->body || strcmp(t->method, "GET") != 0)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, t->method);
}

static bool add_header(struct peer *p, const char *header) {
	struct curl_slist *longer = curl_slist_append(p->headers, header);
	if (longer)
		p->headers = longer;
	return longer;
}

static bool add_token(struct peer *p, const char *token) {
	char auth[HTTPC_TOKEN_SIZE + sizeof("X-Auth-Token: ")];
	if (!token)
		return true;
	snprintf(auth, sizeof(auth), "X-Auth-Token: %s", token);
	bool added = add_header(p, auth);
	secret_wipe(auth, sizeof(auth));
	return added;
}

static bool add_condition(struct peer *p, const char *if_match) {
	char condition[HTTPC_ETAG_SIZE + sizeof("If-Match: ")];
	if (!if_match)
		return true;
	snprintf(condition, sizeof(condition), "If-Match: %s", if_match);
	return add_header(p, condition);
}

static bool make_headers(struct peer *p, const struct transfer *t) {
	static const char *const headers[] = {
		"Accept: application/json", "OData-Version: 4.0", "Content-Type: application/json"};
	curl_slist_free_all(p->headers);
	p->headers = NULL;
	for (size_t i = 0; i < HTTPC_MAX_HEADERS && t->headers[i]; i++) {
		if (!add_header(p, t->headers[i]))
			return false;
	}
	for (size_t i = 0; !t->headers[0] && i < array_len(headers); i++) {
		if (!add_header(p, headers[i]))
			return false;
	}
	return add_token(p, t->token) && add_condition(p, t->if_match);
}

/* Nothing that is resolved can grow old then, and libcurl need not look for it after each request.
 */
static bool is_numeric(const char *url) {
	const char *host = strstr(url, "://") + 3;
	return *host == '[' || strchr(":/", host[strspn(host, "0123456789.")]);
}

static bool prepare(struct peer *p) {
	const struct transfer *t = p->running;
	if (!p->easy)
		p->easy = curl_easy_init();
	if (!p->easy || !make_headers(p, t))
		return false;
	curl_easy_reset(p->easy);
	curl_easy_setopt(p->easy, CURLOPT_URL, t->url);
	curl_easy_setopt(p->easy, CURLOPT_PRIVATE, p);
	curl_easy_setopt(
		p->easy, CURLOPT_PROTOCOLS_STR, t->allow_plaintext ? "https,http" : "https");
	curl_easy_setopt(p->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(p->easy, CURLOPT_PROXY, "");
	curl_easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(p->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(p->easy, CURLOPT_USERAGENT, "drivewatt");
	curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
	curl_easy_setopt(p->easy, CURLOPT_CONNECTTIMEOUT_MS, t->connect_ms);
	curl_easy_setopt(p->easy, CURLOPT_TIMEOUT_MS, t->total_ms);
	curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(p->easy, CURLOPT_PREREQFUNCTION, on_connected);
	curl_easy_setopt(p->easy, CURLOPT_PREREQDATA, p);
	if (is_numeric(t->url))
		curl_easy_setopt(p->easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
	set_tls(p->easy, t);
	set_credentials(p->easy, t);
	set_method(p->easy, t);
	return true;
}

/* --- how it ended --- */

static enum rc rc_of(CURLcode code) {
	static const struct {
		CURLcode code;
		enum rc rc;
	} map[] = {
		{CURLE_OK, RC_OK},
		{CURLE_OPERATION_TIMEDOUT, RC_TIMEOUT},
		{CURLE_COULDNT_RESOLVE_HOST, RC_UNAVAILABLE},
		{CURLE_COULDNT_CONNECT, RC_UNAVAILABLE},
		{CURLE_SSL_CONNECT_ERROR, RC_UNAVAILABLE},
		{CURLE_GOT_NOTHING, RC_UNAVAILABLE},
		{CURLE_SEND_ERROR, RC_UNAVAILABLE},
		{CURLE_RECV_ERROR, RC_UNAVAILABLE},
		{CURLE_PEER_FAILED_VERIFICATION, RC_FORBIDDEN},
		{CURLE_SSL_CACERT_BADFILE, RC_FORBIDDEN},
		{CURLE_PARTIAL_FILE, RC_CORRUPT},
		{CURLE_WEIRD_SERVER_REPLY, RC_CORRUPT},
		{CURLE_UNSUPPORTED_PROTOCOL, RC_INVALID},
		{CURLE_URL_MALFORMAT, RC_INVALID},
		{CURLE_OUT_OF_MEMORY, RC_NOMEM},
	};
	for (size_t i = 0; i < array_len(map); i++) {
		if (map[i].code == code)
			return map[i].rc;
	}
	return RC_IO;
}

static void judge(const struct transfer *t, CURLcode code, struct httpc_response *r) {
	if (t->pin_differs)
		r->rc = err_set(&r->err, RC_FORBIDDEN, "the certificate is not the pinned one");
	else if (t->answer.failed)
		r->rc = buf_status(&t->answer, &r->err);
	else if (code)
		r->rc = err_set(&r->err, rc_of(code), "%s", curl_easy_strerror(code));
}

static void take_header(CURL *easy, const char *name, char *out, size_t size) {
	struct curl_header *h;
	if (!curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &h) &&
		!str_copy(out, size, h->value))
		out[0] = '\0';
}

static void take_answer(CURL *easy, const struct transfer *t, struct httpc_response *r) {
	long status = 0;
	curl_off_t retry_after_s = 0;
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	r->status = (int)status;
	r->body = buf_str(&t->answer);
	r->length = t->answer.len;
	take_header(easy, "Content-Type", r->content_type, sizeof(r->content_type));
	take_header(easy, "Location", r->location, sizeof(r->location));
	take_header(easy, "ETag", r->etag, sizeof(r->etag));
	take_header(easy, "X-Auth-Token", r->token, sizeof(r->token));
	r->retry_after_s = (int)(retry_after_s < INT_MAX ? retry_after_s : INT_MAX);
}

static void answer(struct transfer *t, struct httpc_response *r) {
	r->done_mono_ns = clock_mono_ns();
	r->done_wall_ms = clock_wall_ms();
	if (!r->body)
		r->body = "";
	t->fn(t->arg, r);
	transfer_free(t);
}

static void answer_failed(struct transfer *t, enum rc rc, const char *msg) {
	struct httpc_response r = {.rc = rc};
	err_set(&r.err, rc, "%s", msg);
	answer(t, &r);
}

/* --- peers --- */

static struct peer *peer_get(struct httpc *h, const char *key) {
	struct peer *p;
	HASH_FIND_STR(h->peers, key, p);
	if (p || HASH_COUNT(h->peers) >= h->max_peers)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	str_copy(p->key, sizeof(p->key), key);
	HASH_ADD_STR(h->peers, key, p);
	return p;
}

static void peer_free(struct httpc *h, struct peer *p) {
	HASH_DEL(h->peers, p);
	curl_easy_cleanup(p->easy);
	curl_slist_free_all(p->headers);
	free(p);
}

/* Under the lock: the thread looks at it next time, if there is reason to. */
static void make_ready(struct httpc *h, struct peer *p) {
	if (p->is_ready || p->running || (!p->queue && !p->forgotten))
		return;
	p->is_ready = true;
	DL_APPEND(h->ready, p);
}

/* Under the lock: the queue's first, when nothing runs. */
static struct transfer *next_to_run(struct peer *p) {
	struct transfer *t = p->queue;
	if (p->running || !t)
		return NULL;
	LL_DELETE(p->queue, t);
	p->queued--;
	p->running = t;
	return t;
}

/* --- the thread --- */

static void set_idle(struct httpc *h, struct peer *p) {
	pthread_mutex_lock(&h->lock);
	p->running = NULL;
	make_ready(h, p);
	pthread_mutex_unlock(&h->lock);
}

static void start(struct httpc *h, struct peer *p) {
	if (prepare(p) && !curl_multi_add_handle(h->multi, p->easy))
		return;
	struct transfer *t = p->running;
	set_idle(h, p);
	answer_failed(t, RC_NOMEM, "no memory for a request");
}

/* The first that is ready and has something to do, or NULL. Forgotten ones are freed on the way. */
static struct peer *take_ready(struct httpc *h) {
	struct peer *p, *found = NULL;
	pthread_mutex_lock(&h->lock);
	while (!found && (p = h->ready)) {
		DL_DELETE(h->ready, p);
		p->is_ready = false;
		if (next_to_run(p))
			found = p;
		else if (p->forgotten)
			peer_free(h, p);
	}
	pthread_mutex_unlock(&h->lock);
	return found;
}

static void finish(struct httpc *h, CURL *easy, CURLcode code) {
	struct peer *p = NULL;
	struct httpc_response r = {0};
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &p);
	struct transfer *t = p->running;
	judge(t, code, &r);
	if (!r.rc)
		take_answer(easy, t, &r);
	curl_multi_remove_handle(h->multi, easy);
	set_idle(h, p);
	answer(t, &r);
}

/* True when something ended: what waited for it may go on. */
static bool finish_all(struct httpc *h) {
	CURLMsg *msg;
	int left;
	bool some = false;
	while ((msg = curl_multi_info_read(h->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		finish(h, msg->easy_handle, msg->data.result);
		some = true;
	}
	return some;
}

static bool is_stopping(struct httpc *h) {
	pthread_mutex_lock(&h->lock);
	bool stopping = h->stopping;
	pthread_mutex_unlock(&h->lock);
	return stopping;
}

static void *run(void *arg) {
	struct httpc *h = arg;
	while (!is_stopping(h)) {
		struct peer *p;
		int running;
		while ((p = take_ready(h)))
			start(h, p);
		curl_multi_perform(h->multi, &running);
		if (!finish_all(h))
			curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
	}
	return NULL;
}

/* --- callers --- */

struct httpc *httpc_new(unsigned max_peers, unsigned queue_per_peer, struct err *err) {
	struct httpc *h = calloc(1, sizeof(*h));
	if (!h) {
		err_set(err, RC_NOMEM, "no memory for the HTTP client");
		return NULL;
	}
	h->max_peers = max_peers;
	h->queue_per_peer = queue_per_peer;
	pthread_mutex_init(&h->lock, NULL);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(h->multi = curl_multi_init())) {
		err_set(err, RC_NOMEM, "libcurl does not start");
		goto fail;
	}
	/* Else it keeps four for each request that happens to run. */
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)max_peers);
	if (thread_start(&h->thread, "httpc", run, h, err))
		goto fail;
	h->started = true;
	return h;
fail:
	httpc_free(h);
	return NULL;
}

static void stop(struct httpc *h) {
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	pthread_mutex_unlock(&h->lock);
	curl_multi_wakeup(h->multi);
	pthread_join(h->thread, NULL);
}

static void cancel(struct httpc *h, struct peer *p) {
	struct transfer *t;
	if (p->running) {
		curl_multi_remove_handle(h->multi, p->easy);
		answer_failed(p->running, RC_CANCELLED, "the HTTP client ends");
	}
	while ((t = p->queue)) {
		LL_DELETE(p->queue, t);
		answer_failed(t, RC_CANCELLED, "the HTTP client ends");
	}
	peer_free(h, p);
}

void httpc_free(struct httpc *h) {
	if (!h)
		return;
	if (h->started)
		stop(h);
	for (struct peer *p = h->peers, *next; p; p = next) {
		next = p->hh.next;
		cancel(h, p);
	}
	if (h->multi)
		curl_multi_cleanup(h->multi);
	curl_global_cleanup();
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Under the lock. */
static enum rc enqueue(struct httpc *h, const char *key, struct transfer *t, struct err *err) {
	if (h->stopping)
		return err_set(err, RC_CANCELLED, "the HTTP client ends");
	struct peer *p = peer_get(h, key);
	if (!p)
		return err_set(err, RC_FULL, "the HTTP client has %u peers", h->max_peers);
	if (p->queued >= h->queue_per_peer)
		return err_set(err, RC_FULL, "%u requests wait for %s", p->queued, key);
	LL_APPEND(p->queue, t);
	p->queued++;
	p->forgotten = false;
	make_ready(h, p);
	return RC_OK;
}

enum rc httpc_send(struct httpc *h, const char *key, const struct httpc_request *r, httpc_fn *fn,
	void *arg, struct err *err) {
	if (strlen(key) >= KEY_SIZE)
		return err_set(err, RC_INVALID, "the peer's name is too long");
	struct err why = {0};
	struct transfer *t = transfer_new(r, fn, arg, &why);
	if (!t)
		return err_set(err, why.rc, "%s", why.msg);
	pthread_mutex_lock(&h->lock);
	bool asleep = !h->ready; /* else who made the first one ready wakes the thread */
	enum rc rc = enqueue(h, key, t, err);
	pthread_mutex_unlock(&h->lock);
	if (rc)
		transfer_free(t);
	else if (asleep)
		curl_multi_wakeup(h->multi);
	return rc;
}

enum rc httpc_check_ca(const char *path, struct err *err) {
	struct buf pem;
	buf_init(&pem, CA_MAX_BYTES);
	enum rc rc = read_ca(path, &pem, err);
	buf_release(&pem);
	return rc;
}

bool httpc_knows_ciphers(const char *list) {
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	bool known = context && SSL_CTX_set_cipher_list(context, list);
	SSL_CTX_free(context);
	return known;
}

void httpc_forget(struct httpc *h, const char *key) {
	struct peer *p;
	pthread_mutex_lock(&h->lock);
	HASH_FIND_STR(h->peers, key, p);
	if (p) {
		p->forgotten = true;
		make_ready(h, p);
	}
	pthread_mutex_unlock(&h->lock);
	curl_multi_wakeup(h->multi);
}
