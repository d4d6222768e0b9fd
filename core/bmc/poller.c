#include "core/bmc/poller.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/bmc/adaptor.h"
#include "core/bmc/foreign_json.h"

#define TICK_MS 100
#define CONNECT_MS 5000
#define TOTAL_MS 20000
#define ANSWER_MAX (1024u * 1024)
#define MAX_REQUESTS 64         /* for one reading */
#define DISCOVER_EVERY_MS 60000 /* while no source answers */
#define BACKOFF_MAX_MS 300000
#define REFUSED_PAUSE_MS 60000 /* wrong passwords lock accounts */
#define UNREACHABLE_AFTER 3    /* failures in a row */

enum phase {
	PHASE_IDLE,   /* the poller's */
	PHASE_ASKING, /* the HTTP client's */
	PHASE_JUDGING /* a pool job's */
};

struct answer {
	enum rc rc;
	int status;
	char *body; /* owned; NULL none */
	size_t len;
	int64_t wall_ms, mono_ns;
};

/* One BMC. What stands above the line is guarded by the poller's lock, the rest belongs to whoever
 * the phase says. */
struct poll {
	struct poll *prev, *next;
	enum phase phase;
	bool dead; /* replaced: dropped when idle */
	int64_t due_ms;
	/* --- */
	struct poller *owner;
	char host_id[HOST_ID_SIZE];
	struct bmc_settings settings; /* password_sealed owned */
	struct bmc_walk walk;
	struct answer answer;
	bool at_root;      /* the service root was asked for, not walk.next */
	bool rediscovered; /* in this reading */
	bool retried;      /* the request that runs */
	bool told_repair;
	bool unreachable;
	unsigned requests, failures;
	int64_t discover_due_ms;
};

struct poller {
	struct poller_config config;
	timer_id timer;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle;
	struct poll *polls;
	unsigned busy; /* threads that work on a poll and may touch the parts borrowed */
	bool stopping;
	bool abandoned; /* freed by its owner: the last poll frees it */
};

/* --- life of polls --- */

static void poll_free(struct poll *x) {
	if (x->settings.password_sealed)
		secret_wipe(x->settings.password_sealed, strlen(x->settings.password_sealed));
	free(x->settings.password_sealed);
	free(x->answer.body);
	free(x);
}

/* Under the lock. */
static void drop(struct poller *p, struct poll *x) {
	DL_DELETE(p->polls, x);
	poll_free(x);
}

static void unlock(struct poller *p) {
	bool last = p->abandoned && !p->polls;
	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	pthread_cond_destroy(&p->idle);
	pthread_mutex_destroy(&p->lock);
	secret_wipe(p->config.secret_key, sizeof(p->config.secret_key));
	free(p);
}

/* The thread leaves the poll, which may be gone already. */
static void leave(struct poller *p) {
	pthread_mutex_lock(&p->lock);
	if (!--p->busy)
		pthread_cond_broadcast(&p->idle);
	unlock(p);
}

static void rest(struct poll *x, int64_t due_ms) {
	struct poller *p = x->owner;
	pthread_mutex_lock(&p->lock);
	x->phase = PHASE_IDLE;
	x->due_ms = due_ms;
	if (x->dead)
		drop(p, x);
	unlock(p);
}

static bool is_unwanted(struct poll *x) {
	struct poller *p = x->owner;
	pthread_mutex_lock(&p->lock);
	bool unwanted = x->dead || p->stopping;
	pthread_mutex_unlock(&p->lock);
	return unwanted;
}

/* --- when --- */

static int64_t period_of(const struct poll *x) {
	return energy_period(x->owner->config.energy, x->host_id, x->owner->config.period_ms);
}

/* Keeps the beat, unless it was missed. */
static int64_t next_beat(const struct poll *x) {
	int64_t period_ms = period_of(x), now_ms = clock_mono_ms();
	int64_t due_ms = x->due_ms + period_ms;
	return due_ms > now_ms ? due_ms : now_ms + period_ms;
}

/* Twice as long after each failure, and not in step with other BMCs. */
static int64_t next_try(const struct poll *x, int64_t at_least_ms) {
	unsigned doublings = x->failures < 10 ? x->failures - 1 : 9;
	int64_t now_ns = clock_mono_ns(), delay_ms = period_of(x) << doublings;
	if (delay_ms < at_least_ms)
		delay_ms = at_least_ms;
	if (delay_ms > BACKOFF_MAX_MS)
		delay_ms = BACKOFF_MAX_MS;
	return now_ns / 1000000 + delay_ms + now_ns % (delay_ms / 4 + 1);
}

/* --- how it ended --- */

static void tell_state(struct poll *x, const char *reason) {
	char object[64], data[128];
	bool now = reason != NULL;
	if (x->unreachable == now)
		return;
	x->unreachable = now;
	snprintf(object, sizeof(object), "/hosts/%s", x->host_id);
	if (now)
		snprintf(data, sizeof(data), "{\"state\":\"unreachable\",\"reason\":\"%s\"}",
			reason);
	else
		snprintf(data, sizeof(data), "{\"state\":\"reachable\"}");
	events_record(x->owner->config.events, EVENT_BMC_STATE, &actor_system, object, data);
}

static void report(struct poll *x, const struct bmc_reading *r) {
	struct host_power power = {
		.power_mw = r->power_mw,
		.quality = (uint8_t)r->quality,
		.at_ms = x->answer.wall_ms,
		.at_mono_ns = x->answer.mono_ns,
		.limit_mw = r->limit_mw,
		.energy_counter_mj = r->energy_counter_mj,
		.resolution_mw = NONE,
		.step_mw = NONE,
		.lag_ms = NONE,
	};
	if (r->power_mw == NONE)
		str_copy(power.reason, sizeof(power.reason), r->reason);
	str_copy(power.source, sizeof(power.source), r->source);
	x->owner->config.reading(x->owner->config.arg, x->host_id, &power);
}

static void succeed(struct poll *x) {
	metric_add(METRIC_BMC_POLLS, 1);
	x->failures = 0;
	report(x, &x->walk.reading);
	tell_state(x, NULL);
	rest(x, next_beat(x));
}

static void fail(struct poll *x, const char *reason, int64_t pause_ms) {
	const struct bmc_reading none = {.power_mw = NONE,
		.reason = reason,
		.source = "",
		.quality = QUALITY_BMC,
		.limit_mw = NONE,
		.energy_counter_mj = NONE};
	metric_add(METRIC_BMC_FAILURES, 1);
	x->failures++;
	x->answer.wall_ms = clock_wall_ms();
	x->answer.mono_ns = clock_mono_ns();
	report(x, &none);
	if (x->failures >= UNREACHABLE_AFTER)
		tell_state(x, reason);
	rest(x, next_try(x, pause_ms));
}

/* --- asking --- */

static void on_answer(void *arg, const struct httpc_response *r);

/* On RC_OK the poll is the client's. */
static enum rc send(struct poll *x, const char *uri) {
	const struct poller_config *c = &x->owner->config;
	const struct bmc_settings *b = &x->settings;
	char url[sizeof(b->url) + BMC_URI_SIZE];
	auto_free char *password = NULL;
	snprintf(url, sizeof(url), "%s%s", b->url, uri);
	if (b->password_sealed &&
		secret_unseal(c->secret_key, b->password_sealed, &password, NULL) != RC_OK)
		return RC_CORRUPT;
	const struct httpc_request request = {
		.method = "GET",
		.url = url,
		.username = b->username[0] ? b->username : NULL,
		.password = password,
		.tls = b->tls,
		.allow_plaintext = b->allow_plaintext,
		.ca_file = b->ca_file[0] ? b->ca_file : NULL,
		.fingerprint_sha256 = b->fingerprint_sha256,
		.connect_ms = CONNECT_MS,
		.total_ms = TOTAL_MS,
		.max_bytes = ANSWER_MAX,
	};
	enum rc rc = httpc_send(c->httpc, x->host_id, &request, on_answer, x, NULL);
	if (password)
		secret_wipe(password, strlen(password));
	return rc;
}

static void ask(struct poll *x) {
	struct poller *p = x->owner;
	if (++x->requests > MAX_REQUESTS) {
		fail(x, "bmc_error", 0);
		return;
	}
	pthread_mutex_lock(&p->lock);
	x->phase = PHASE_ASKING;
	pthread_mutex_unlock(&p->lock);
	enum rc rc = send(x, x->at_root ? BMC_SERVICE_ROOT : x->walk.next);
	if (rc == RC_CORRUPT)
		fail(x, "password_unreadable", REFUSED_PAUSE_MS);
	else if (rc)
		fail(x, "busy", 0);
}

static void ask_root(struct poll *x) {
	x->at_root = true;
	x->retried = false;
	ask(x);
}

static void go_on(struct poll *x) {
	bool vanished = !x->walk.next[0] && !x->walk.discovered && !x->rediscovered;
	x->retried = false;
	if (vanished) {
		x->rediscovered = true;
		ask_root(x);
	} else if (x->walk.next[0]) {
		ask(x);
	} else {
		succeed(x);
	}
}

static void begin(struct poll *x) {
	int64_t now_ms = clock_mono_ms();
	x->requests = 0;
	x->at_root = false;
	bool again = x->walk.reading.power_mw == NONE && now_ms >= x->discover_due_ms;
	x->rediscovered = !x->walk.discovered || again;
	if (x->rediscovered) {
		ask_root(x);
		return;
	}
	x->walk.adaptor->begin(&x->walk);
	go_on(x);
}

/* --- judging --- */

static const char *transport_reason(enum rc rc) {
	switch (rc) {
	case RC_TIMEOUT:
		return "bmc_timeout";
	case RC_FORBIDDEN:
		return "bmc_tls";
	case RC_CORRUPT:
		return "bmc_truncated";
	case RC_TOO_LARGE:
		return "bmc_too_large";
	case RC_UNAVAILABLE:
		return "bmc_unreachable";
	default:
		return "bmc_error";
	}
}

/* Statuses that fail the whole reading, not one resource. */
static const struct {
	int status;
	const char *reason;
	int64_t pause_ms;
} refusals[] = {
	{401, "bmc_unauthorized", REFUSED_PAUSE_MS},
	{429, "bmc_busy", 0},
	{500, "bmc_error", 0},
	{502, "bmc_error", 0},
	{503, "bmc_busy", 0},
	{504, "bmc_error", 0},
};

static bool is_refused(struct poll *x) {
	for (size_t i = 0; i < array_len(refusals); i++) {
		if (refusals[i].status != x->answer.status)
			continue;
		fail(x, refusals[i].reason, refusals[i].pause_ms);
		return true;
	}
	return false;
}

static void feed(struct poll *x, const json_t *doc) {
	if (x->at_root && !doc) {
		fail(x, x->answer.status == 403 ? "bmc_forbidden" : "bmc_no_redfish", 0);
		return;
	}
	if (x->at_root) {
		bmc_walk_discover(&x->walk, x->settings.vendor, doc);
		x->discover_due_ms = clock_mono_ms() + DISCOVER_EVERY_MS;
	} else {
		x->walk.adaptor->feed(&x->walk, x->answer.status, doc);
	}
	x->at_root = false;
	go_on(x);
}

static void retry_or_fail(struct poll *x, const char *reason) {
	if (x->retried) {
		fail(x, reason, 0);
		return;
	}
	x->retried = true;
	ask(x);
}

static void tell_repair(struct poll *x) {
	if (!x->told_repair)
		log_warning(
			"bmc", "host %s: bmc_json_repaired: its BMC sends faulty JSON", x->host_id);
	x->told_repair = true;
}

static void judge_document(struct poll *x) {
	struct foreign_json json;
	enum rc rc = foreign_json_parse(x->answer.body, x->answer.len, &json, NULL);
	if (json.repaired && !rc)
		tell_repair(x);
	if (rc == RC_CORRUPT && strcmp(json.reason, "bmc_truncated") == 0)
		retry_or_fail(x, json.reason);
	else if (rc && rc != RC_REFUSED)
		fail(x, json.reason, 0);
	else
		feed(x, json.doc);
	json_decref(json.doc);
}

static void judge(void *arg) {
	struct poll *x = arg;
	struct poller *p = x->owner;
	const struct answer *a = &x->answer;
	if (is_unwanted(x))
		rest(x, 0);
	else if (a->rc == RC_CORRUPT)
		retry_or_fail(x, transport_reason(a->rc));
	else if (a->rc)
		fail(x, transport_reason(a->rc), 0);
	else if (a->status / 100 == 2)
		judge_document(x);
	else if (!is_refused(x))
		feed(x, NULL);
	leave(p);
}

/* To the pool; where it is full this beat is left out. */
static void hand_over(struct poll *x, pool_fn *job) {
	struct poller *p = x->owner;
	if (pool_submit(p->config.jobs, job, x))
		return;
	metric_add(METRIC_BMC_FAILURES, 1);
	rest(x, next_beat(x));
	leave(p);
}

static void take_answer(struct poll *x, const struct httpc_response *r) {
	free(x->answer.body);
	x->answer = (struct answer){
		.rc = r->rc,
		.status = r->status,
		.wall_ms = r->done_wall_ms,
		.mono_ns = r->done_mono_ns,
	};
	if (r->rc)
		return;
	x->answer.body = malloc(r->length + 1);
	if (!x->answer.body) {
		x->answer.rc = RC_NOMEM;
		return;
	}
	memcpy(x->answer.body, r->body, r->length + 1);
	x->answer.len = r->length;
}

/* In the HTTP client's thread. */
static void on_answer(void *arg, const struct httpc_response *r) {
	struct poll *x = arg;
	struct poller *p = x->owner;
	take_answer(x, r);
	pthread_mutex_lock(&p->lock);
	if (p->stopping || x->dead) {
		drop(p, x);
		unlock(p);
		return;
	}
	x->phase = PHASE_JUDGING;
	p->busy++;
	pthread_mutex_unlock(&p->lock);
	hand_over(x, judge);
}

/* --- the beat --- */

/* Takes the first BMC that is due, or NULL. */
static struct poll *take_due(struct poller *p, int64_t now_ms) {
	pthread_mutex_lock(&p->lock);
	struct poll *x = p->stopping ? NULL : p->polls;
	while (x && (x->phase != PHASE_IDLE || x->due_ms > now_ms))
		x = x->next;
	if (x) {
		x->phase = PHASE_JUDGING;
		p->busy++;
	}
	pthread_mutex_unlock(&p->lock);
	return x;
}

static void begin_job(void *arg) {
	struct poll *x = arg;
	struct poller *p = x->owner;
	begin(x);
	leave(p);
}

static void tick(void *arg) {
	struct poller *p = arg;
	int64_t now_ms = clock_mono_ms();
	struct poll *x;
	while ((x = take_due(p, now_ms)))
		hand_over(x, begin_job);
}

/* --- callers --- */

struct poller *poller_new(const struct poller_config *config, struct err *err) {
	struct poller *p = calloc(1, sizeof(*p));
	if (!p) {
		err_set(err, RC_NOMEM, "no memory for the poller");
		return NULL;
	}
	p->config = *config;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->idle);
	return p;
}

enum rc poller_start(struct poller *p, struct err *err) {
	p->timer = timer_start(p->config.timers, 0, TICK_MS, tick, p);
	return p->timer ? RC_OK : err_set(err, RC_FULL, "no timer for the poller");
}

void poller_free(struct poller *p) {
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_mutex_unlock(&p->lock);
	timer_cancel(p->config.timers, p->timer);
	pthread_mutex_lock(&p->lock);
	while (p->busy)
		pthread_cond_wait(&p->idle, &p->lock);
	for (struct poll *x = p->polls, *next; x; x = next) {
		next = x->next;
		if (x->phase == PHASE_IDLE)
			drop(p, x);
	}
	p->abandoned = true;
	unlock(p);
}

static struct poll *poll_new(struct poller *p, const char *host_id, const struct bmc_settings *b) {
	struct poll *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->owner = p;
	x->settings = *b;
	str_copy(x->host_id, sizeof(x->host_id), host_id);
	if (b->password_sealed) {
		x->settings.password_sealed = strdup(b->password_sealed);
		if (!x->settings.password_sealed) {
			free(x);
			return NULL;
		}
	}
	return x;
}

/* Under the lock. */
static void retire(struct poller *p, const char *host_id) {
	for (struct poll *x = p->polls, *next; x; x = next) {
		next = x->next;
		if (x->dead || strcmp(x->host_id, host_id) != 0)
			continue;
		x->dead = true;
		if (x->phase == PHASE_IDLE)
			drop(p, x);
	}
}

enum rc poller_set(struct poller *p, const char *host_id, const struct bmc_settings *b,
	int64_t delay_ms, struct err *err) {
	struct poll *x = NULL;
	if (b && b->present) {
		x = poll_new(p, host_id, b);
		if (!x)
			return err_set(err, RC_NOMEM, "no memory to poll a BMC");
		x->due_ms = clock_mono_ms() + delay_ms;
	}
	pthread_mutex_lock(&p->lock);
	retire(p, host_id);
	if (x)
		DL_APPEND(p->polls, x);
	pthread_mutex_unlock(&p->lock);
	httpc_forget(p->config.httpc, host_id);
	return RC_OK;
}
