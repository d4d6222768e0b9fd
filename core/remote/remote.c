#include "core/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/secret.h"
#include "base/thread.h"
#include "core/remote/message.h"
#include "core/remote/spool.h"

#define PEER "remote-write"
#define QUEUE_SAMPLES 65536
#define BATCH_SAMPLES 2000
#define MESSAGE_MAX_BYTES (4 * 1024 * 1024)
#define ANSWER_MAX_BYTES (64 * 1024)
#define SECRET_MAX_BYTES 4096
#define CONNECT_MS 5000
#define TOTAL_MS 30000
#define BACKOFF_MIN_MS 1000
#define BACKOFF_MAX_MS 60000
#define RETRY_AFTER_MAX_S 3600

/* How a request ended, as the HTTP client's thread hands it over. */
struct outcome {
	bool there;
	struct err err; /* RC_OK: there is a status */
	int status;
	int retry_after_s;
};

struct label {
	char name[64], value[192];
};

struct remote {
	struct remote_config config;
	struct label labels[REMOTE_MAX_LABELS];
	struct energy *energy;
	struct httpc *httpc;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	bool stopping;
	struct sample *pending; /* of QUEUE_SAMPLES */
	size_t count;
	struct outcome outcome;

	/* The thread's. */
	struct sample *batch; /* of QUEUE_SAMPLES */
	struct spool spool;
	struct buf message, packed;
	bool sending; /* the message of this number */
	uint64_t number;
	int64_t cut_ms;  /* when samples are put together next; all monotonic */
	int64_t next_ms; /* not before, when it failed */
	int64_t backoff_ms;
	bool failing, spool_failing; /* it was said in the log */
};

/* --- samples come in: in their producers' threads --------------------------------------------- */

static void take_samples(void *arg, const struct sample *s, size_t n) {
	struct remote *r = arg;
	pthread_mutex_lock(&r->lock);
	size_t taken = QUEUE_SAMPLES - r->count;
	if (taken > n)
		taken = n;
	memcpy(r->pending + r->count, s, taken * sizeof(*s));
	const bool full = r->count < BATCH_SAMPLES && r->count + taken >= BATCH_SAMPLES;
	r->count += taken;
	if (full)
		pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	metric_add(METRIC_REMOTE_DROPPED, (int64_t)(n - taken));
}

/* --- putting together ------------------------------------------------------------------------- */

static int by_series_and_time(const void *a, const void *b) {
	const struct sample *x = a, *y = b;
	if (x->series_id != y->series_id)
		return x->series_id < y->series_id ? -1 : 1;
	return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* Receivers take one value for an instant. */
static size_t drop_doubles(struct sample *s, size_t n) {
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (kept && by_series_and_time(&s[kept - 1], &s[i]) == 0)
			s[kept - 1] = s[i];
		else
			s[kept++] = s[i];
	}
	return kept;
}

static bool take_series(void *arg, const struct series *s) {
	*(struct series *)arg = *s;
	return false;
}

/* Without asking the store for the series' range. */
static bool find_series(struct remote *r, int64_t id, struct series *s) {
	struct err ignored;
	s->id = 0;
	return !energy_list(r->energy, NULL, NULL, -1, id - 1, 1, take_series, s, &ignored) &&
		s->id == id;
}

static void add_series(struct remote *r, const struct sample *s, size_t n) {
	struct series series;
	struct message_labels labels;
	char name[64];
	if (!find_series(r, s->series_id, &series)) {
		metric_add(METRIC_REMOTE_DROPPED, (int64_t)n);
		return;
	}
	message_series_labels(&labels, &series, name);
	(void)message_label(&labels, "job", "drivewatt");
	(void)message_label(&labels, "instance", r->config.instance);
	for (unsigned i = 0; i < r->config.label_count; i++)
		(void)message_label(&labels, r->labels[i].name, r->labels[i].value);
	message_add(&r->message, &labels, series.key.quantity, s, n);
}

static enum rc pack(struct remote *r, const struct sample *s, size_t n, struct err *err) {
	buf_reset(&r->message);
	buf_reset(&r->packed);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && s[end].series_id == s[i].series_id;)
			end++;
		add_series(r, s + i, end - i);
	}
	enum rc rc = buf_status(&r->message, err);
	return rc || !r->message.len ? rc : message_compress(&r->message, &r->packed, err);
}

static void note_spool(struct remote *r, const struct err *err) {
	if (err && !r->spool_failing)
		log_err(LOG_LEVEL_ERROR, "remote", "samples for remote write are lost", err);
	else if (!err && r->spool_failing)
		log_info("remote", "samples for remote write are kept again");
	r->spool_failing = err;
}

static void put(struct remote *r, const struct sample *s, size_t n) {
	struct err err;
	int64_t dropped = 0;
	enum rc rc = pack(r, s, n, &err);
	if (!rc && !r->packed.len)
		return;
	if (!rc)
		rc = spool_put(&r->spool, clock_wall_ms(), (unsigned)n, r->packed.data,
			r->packed.len, &dropped, &err);
	metric_add(METRIC_REMOTE_DROPPED, rc ? (int64_t)n : dropped);
	note_spool(r, rc ? &err : NULL);
}

static void cut(struct remote *r) {
	pthread_mutex_lock(&r->lock);
	size_t n = r->count;
	memcpy(r->batch, r->pending, n * sizeof(r->batch[0]));
	r->count = 0;
	pthread_mutex_unlock(&r->lock);
	r->cut_ms = clock_mono_ms() + r->config.interval_ms;
	if (!n)
		return;
	qsort(r->batch, n, sizeof(r->batch[0]), by_series_and_time);
	n = drop_doubles(r->batch, n);
	for (size_t i = 0; i < n; i += BATCH_SAMPLES)
		put(r, r->batch + i, n - i < BATCH_SAMPLES ? n - i : BATCH_SAMPLES);
}

/* --- sending ---------------------------------------------------------------------------------- */

/* In the HTTP client's thread. */
static void on_answer(void *arg, const struct httpc_response *a) {
	struct remote *r = arg;
	pthread_mutex_lock(&r->lock);
	r->outcome = (struct outcome){true, a->err, a->status, a->retry_after_s};
	r->outcome.err.rc = a->rc;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

static enum rc read_secret(const char *path, struct buf *out, struct err *err) {
	enum rc rc = file_read(path, out, err);
	if (!rc && !out->len)
		rc = err_set(err, RC_INVALID, "%.180s is empty", path);
	if (!rc)
		out->data[strcspn(out->data, "\r\n")] = '\0';
	return rc;
}

static void release_secret(struct buf *b) {
	if (b->data)
		secret_wipe(b->data, b->cap);
	buf_release(b);
}

static enum rc send_packed(struct remote *r, const char *secret, struct err *err) {
	const struct remote_config *c = &r->config;
	char authorization[SECRET_MAX_BYTES + sizeof("Authorization: Bearer ")];
	const char *headers[5] = {"Content-Type: application/x-protobuf",
		"Content-Encoding: snappy", "X-Prometheus-Remote-Write-Version: 0.1.0"};
	if (c->token_file) {
		snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s", secret);
		headers[3] = authorization;
	}
	const struct httpc_request request = {
		.method = "POST",
		.url = c->url,
		.username = c->username,
		.password = c->username ? secret : NULL,
		.body = r->packed.data,
		.body_len = r->packed.len,
		.headers = headers,
		.tls = BMC_TLS_CA,
		.allow_plaintext = c->allow_plaintext,
		.ca_file = c->ca_file,
		.connect_ms = CONNECT_MS,
		.total_ms = TOTAL_MS,
		.max_bytes = ANSWER_MAX_BYTES,
	};
	enum rc rc = httpc_send(r->httpc, PEER, &request, on_answer, r, err);
	secret_wipe(authorization, sizeof(authorization));
	return rc;
}

static enum rc begin(struct remote *r, const struct spool_entry *e, struct err *err) {
	const struct remote_config *c = &r->config;
	const char *file = c->token_file ? c->token_file : c->username ? c->password_file : NULL;
	struct buf secret;
	buf_init(&secret, SECRET_MAX_BYTES);
	buf_reset(&r->packed);
	enum rc rc = file ? read_secret(file, &secret, err) : RC_OK;
	if (!rc)
		rc = spool_read(&r->spool, e, &r->packed, err);
	if (!rc)
		rc = send_packed(r, buf_str(&secret), err);
	release_secret(&secret);
	return rc;
}

static void fail(struct remote *r, const struct err *err, int retry_after_s) {
	int64_t after_ms = INT64_C(1000) *
		(retry_after_s < RETRY_AFTER_MAX_S ? retry_after_s : RETRY_AFTER_MAX_S);
	if (!r->failing)
		log_err(LOG_LEVEL_WARNING, "remote", "the receiver of remote write is away", err);
	r->failing = true;
	metric_add(METRIC_REMOTE_FAILURES, 1);
	r->next_ms = clock_mono_ms() + (after_ms > r->backoff_ms ? after_ms : r->backoff_ms);
	r->backoff_ms = 2 * r->backoff_ms < BACKOFF_MAX_MS ? 2 * r->backoff_ms : BACKOFF_MAX_MS;
}

/* A file that cannot be read stops those behind it no longer than others do: it grows too old. */
static void send_oldest(struct remote *r) {
	struct err err;
	const struct spool_entry *e = spool_oldest(&r->spool);
	if (r->sending || !e || clock_mono_ms() < r->next_ms)
		return;
	r->number = e->number;
	if (begin(r, e, &err))
		fail(r, &err, 0);
	else
		r->sending = true;
}

static void settle(struct remote *r, enum metric how) {
	metric_add(how, spool_remove(&r->spool, r->number));
	if (r->failing)
		log_info("remote", "the receiver of remote write is there again");
	r->failing = false;
	r->backoff_ms = BACKOFF_MIN_MS;
}

/* Remote write 1.0: what is answered 4xx is not sent again, but for 429; all else is. */
static void judge(struct remote *r, const struct outcome *o) {
	struct err err = o->err;
	r->sending = false;
	if (err.rc == RC_CANCELLED)
		return;
	if (!err.rc && o->status / 100 == 2) {
		settle(r, METRIC_REMOTE_SENT);
		return;
	}
	if (!err.rc && o->status / 100 == 4 && o->status != 429) {
		log_debug("remote", "a message was refused with status %d", o->status);
		settle(r, METRIC_REMOTE_REFUSED);
		return;
	}
	if (!err.rc)
		err_set(&err, RC_REFUSED, "status %d", o->status);
	fail(r, &err, o->retry_after_s);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Monotonic; when there is something to do by itself. */
static int64_t due_ms(const struct remote *r) {
	const bool waits = !r->sending && spool_oldest(&r->spool);
	return waits && r->next_ms < r->cut_ms ? r->next_ms : r->cut_ms;
}

/* False at the end. */
static bool wait_for_work(struct remote *r, struct outcome *o, bool *full) {
	const int64_t wait_ms = due_ms(r) - clock_mono_ms();
	const struct timespec deadline = thread_deadline(wait_ms > 0 ? wait_ms : 0);
	bool in_time = true;
	pthread_mutex_lock(&r->lock);
	while (!r->stopping && !r->outcome.there && r->count < BATCH_SAMPLES && in_time)
		in_time = cond_wait_until(&r->wake, &r->lock, &deadline);
	*o = r->outcome;
	r->outcome.there = false;
	*full = r->count >= BATCH_SAMPLES;
	const bool stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return !stopping;
}

static void show(const struct remote *r) {
	metric_set(METRIC_REMOTE_SPOOL_BYTES, r->spool.blocks * SPOOL_BLOCK_BYTES);
	metric_set(METRIC_REMOTE_SPOOL_SAMPLES, r->spool.samples);
}

static void *run(void *arg) {
	struct remote *r = arg;
	struct outcome o;
	bool full;
	while (wait_for_work(r, &o, &full)) {
		if (o.there)
			judge(r, &o);
		if (full || clock_mono_ms() >= r->cut_ms)
			cut(r);
		metric_add(METRIC_REMOTE_DROPPED,
			spool_expire(&r->spool, clock_wall_ms() - r->config.keep_ms));
		send_oldest(r);
		show(r);
	}
	if (o.there)
		judge(r, &o);
	cut(r);
	return NULL;
}

/* --- the configuration ------------------------------------------------------------------------ */

static bool is_label_name(const char *s, size_t len) {
	for (size_t i = 0; i < len; i++) {
		const char c = (char)(s[i] | 0x20);
		const bool digit = s[i] >= '0' && s[i] <= '9';
		if (!(c >= 'a' && c <= 'z') && s[i] != '_' && !(digit && i))
			return false;
	}
	return len > 0;
}

static enum rc take_label(const char *text, struct label *out, struct err *err) {
	const char *equals = strchr(text, '=');
	const size_t len = equals ? (size_t)(equals - text) : 0;
	if (!is_label_name(text, len) || len >= sizeof(out->name))
		return err_field(err, RC_INVALID, "remote-write-label",
			"%.100s is not NAME=VALUE, with a name of letters, digits and _", text);
	memcpy(out->name, text, len);
	out->name[len] = '\0';
	if (!str_copy(out->value, sizeof(out->value), equals + 1) || !out->value[0])
		return err_field(err, RC_INVALID, "remote-write-label",
			"the value of %s must have 1 to %zu bytes", out->name,
			sizeof(out->value) - 1);
	if (!message_label_is_free(out->name))
		return err_field(err, RC_INVALID, "remote-write-label",
			"%s is a label of drivewatt itself", out->name);
	return RC_OK;
}

static enum rc take_labels(
	const struct remote_config *c, struct label out[REMOTE_MAX_LABELS], struct err *err) {
	if (c->label_count > REMOTE_MAX_LABELS)
		return err_field(err, RC_INVALID, "remote-write-label",
			"is given more than %d times", REMOTE_MAX_LABELS);
	for (unsigned i = 0; i < c->label_count; i++) {
		enum rc rc = take_label(c->labels[i], &out[i], err);
		if (rc)
			return rc;
	}
	return RC_OK;
}

enum rc remote_check(const struct remote_config *c, struct err *err) {
	struct label labels[REMOTE_MAX_LABELS];
	const bool https = strncmp(c->url, "https://", 8) == 0;
	if (!https && strncmp(c->url, "http://", 7) != 0)
		return err_field(err, RC_INVALID, "remote-write-url", "must begin with https://");
	if (!https && !c->allow_plaintext)
		return err_field(err, RC_INVALID, "remote-write-url",
			"must begin with https://, unless remote-write-plaintext is set");
	if (!c->username != !c->password_file)
		return err_field(err, RC_INVALID,
			c->username ? "remote-write-password-file" : "remote-write-username",
			"name and password belong together");
	if (c->username && c->token_file)
		return err_field(err, RC_INVALID, "remote-write-token-file",
			"a name and a password are given too");
	return take_labels(c, labels, err);
}

/* --- life ------------------------------------------------------------------------------------- */

static enum rc start(struct remote *r, struct err *err) {
	enum rc rc = remote_check(&r->config, err);
	if (!rc)
		rc = take_labels(&r->config, r->labels, err);
	if (!rc)
		rc = spool_open(&r->spool, r->config.dir, r->config.spool_bytes, err);
	r->pending = calloc(QUEUE_SAMPLES, sizeof(r->pending[0]));
	r->batch = calloc(QUEUE_SAMPLES, sizeof(r->batch[0]));
	if (!rc && (!r->pending || !r->batch))
		rc = err_set(err, RC_NOMEM, "no memory for remote write");
	if (!rc)
		rc = energy_subscribe(r->energy, take_samples, r, err);
	if (!rc)
		rc = thread_start(&r->thread, "remote", run, r, err);
	r->started = !rc;
	return rc;
}

struct remote *remote_new(const struct remote_config *c, struct energy *energy, struct httpc *httpc,
	struct err *err) {
	struct remote *r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(err, RC_NOMEM, "no memory for remote write");
		return NULL;
	}
	r->config = *c;
	r->energy = energy;
	r->httpc = httpc;
	r->spool.dir = -1;
	r->cut_ms = clock_mono_ms() + c->interval_ms;
	r->backoff_ms = BACKOFF_MIN_MS;
	buf_init(&r->message, MESSAGE_MAX_BYTES);
	buf_init(&r->packed, 2 * MESSAGE_MAX_BYTES);
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->wake);
	if (!start(r, err))
		return r;
	remote_free(r);
	return NULL;
}

void remote_stop(struct remote *r) {
	if (!r || !r->started)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	r->started = false;
}

void remote_free(struct remote *r) {
	if (!r)
		return;
	remote_stop(r);
	spool_close(&r->spool);
	buf_release(&r->message);
	buf_release(&r->packed);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r->pending);
	free(r->batch);
	free(r);
}
