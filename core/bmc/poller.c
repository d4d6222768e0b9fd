#include "core/bmc/poller.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/bmc/poll.h"

#define TICK_MS 100
#define LOGOUT_MS 2000 /* that the end waits for sessions to be closed */

/* --- life of polls --- */

static void poll_free(struct poll *x) {
	char *sealed = x->settings.password_sealed;
	if (sealed)
		secret_wipe(sealed, strlen(sealed));
	free(sealed);
	free(x->answer.body);
	session_close(&x->session);
	free(x);
}

/* Under the lock. */
static void drop(struct poller *p, struct poll *x) {
	DL_DELETE(p->polls, x);
	poll_free(x);
}

void poller_unlock(struct poller *p) {
	bool last = p->abandoned && !p->polls && !p->logouts;
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
	poller_unlock(p);
}

static bool is_unwanted(struct poll *x) {
	struct poller *p = x->owner;
	pthread_mutex_lock(&p->lock);
	bool unwanted = x->dead || p->stopping;
	pthread_mutex_unlock(&p->lock);
	return unwanted;
}

/* Nobody else has it any more. */
static void end(struct poll *x) {
	struct poller *p = x->owner;
	struct limit_outcome gone = {.known = false};
	err_set(&gone.err, RC_CANCELLED, "the BMC was changed or taken away, or the service stops");
	poll_limit_end(x, &gone);
	poll_logout(x);
	pthread_mutex_lock(&p->lock);
	drop(p, x);
	pthread_cond_broadcast(&p->idle);
	poller_unlock(p);
}

void poll_set_phase(struct poll *x, enum poll_phase phase) {
	pthread_mutex_lock(&x->owner->lock);
	x->phase = phase;
	x->in_session = x->session.state == SESSION_OPEN;
	pthread_mutex_unlock(&x->owner->lock);
}

void poll_rest(struct poll *x, int64_t due_ms) {
	struct poller *p = x->owner;
	pthread_mutex_lock(&p->lock);
	bool over = x->dead;
	if (!over) {
		x->phase = PHASE_IDLE;
		x->due_ms = due_ms;
	}
	pthread_mutex_unlock(&p->lock);
	if (over)
		end(x);
}

void poll_pause(struct poll *x, int64_t limit_due_ms) {
	pthread_mutex_lock(&x->owner->lock);
	x->limit_due_ms = limit_due_ms;
	pthread_mutex_unlock(&x->owner->lock);
	poll_rest(x, x->due_ms);
}

/* --- when --- */

int64_t poll_period(const struct poll *x) {
	return energy_period(x->owner->config.energy, x->host_id, x->owner->config.period_ms);
}

int64_t poll_next_beat(const struct poll *x) {
	int64_t period_ms = poll_period(x), now_ms = clock_mono_ms();
	int64_t due_ms = x->due_ms + period_ms;
	return due_ms > now_ms ? due_ms : now_ms + period_ms;
}

/* --- jobs --- */

/* To the pool; where it is full this beat is left out. */
static void hand_over(struct poll *x, pool_fn *job) {
	struct poller *p = x->owner;
	if (pool_submit(p->config.jobs, job, x))
		return;
	metric_add(METRIC_BMC_FAILURES, 1);
	poll_rest(x, poll_next_beat(x));
	leave(p);
}

static void judge_job(void *arg) {
	struct poll *x = arg;
	struct poller *p = x->owner;
	if (is_unwanted(x))
		poll_rest(x, 0);
	else
		poll_judge(x);
	leave(p);
}

void poll_answered(struct poll *x) {
	struct poller *p = x->owner;
	pthread_mutex_lock(&p->lock);
	bool unwanted = p->stopping || x->dead;
	if (!unwanted) {
		x->phase = PHASE_JUDGING;
		p->busy++;
	}
	pthread_mutex_unlock(&p->lock);
	if (unwanted)
		end(x);
	else
		hand_over(x, judge_job);
}

/* --- the beat --- */

/* Under the lock. */
static bool is_due(const struct poll *x, int64_t now_ms) {
	bool limit = x->limit && x->limit_due_ms <= now_ms;
	return x->phase == PHASE_IDLE && (x->due_ms <= now_ms || limit);
}

/* Takes all BMCs that are due, by next_due. */
static struct poll *take_due(struct poller *p, int64_t now_ms) {
	struct poll *due = NULL, *x;
	pthread_mutex_lock(&p->lock);
	DL_FOREACH (p->stopping ? NULL : p->polls, x) {
		if (!is_due(x, now_ms))
			continue;
		x->phase = PHASE_JUDGING;
		p->busy++;
		LL_PREPEND2(due, x, next_due);
	}
	pthread_mutex_unlock(&p->lock);
	return due;
}

static void begin_job(void *arg) {
	struct poll *x = arg;
	struct poller *p = x->owner;
	poll_begin(x);
	leave(p);
}

static void tick(void *arg) {
	struct poll *next;
	for (struct poll *x = take_due(arg, clock_mono_ms()); x; x = next) {
		next = x->next_due;
		hand_over(x, begin_job);
	}
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

/* The first that is idle and of that host, which is nobody else's then; host_id NULL: of any. */
static struct poll *take_idle(struct poller *p, const char *host_id) {
	pthread_mutex_lock(&p->lock);
	struct poll *x = p->polls;
	while (x && (x->phase != PHASE_IDLE || (host_id && strcmp(x->host_id, host_id) != 0)))
		x = x->next;
	if (x)
		x->phase = PHASE_JUDGING;
	pthread_mutex_unlock(&p->lock);
	return x;
}

/* Under the lock. */
static bool has_sessions(const struct poller *p) {
	const struct poll *x = p->polls;
	while (x && !x->in_session)
		x = x->next;
	return x || p->logouts;
}

static void wait_for_logouts(struct poller *p) {
	struct timespec deadline = thread_deadline(LOGOUT_MS);
	bool in_time = true;
	pthread_mutex_lock(&p->lock);
	while (has_sessions(p) && in_time)
		in_time = cond_wait_until(&p->idle, &p->lock, &deadline);
	p->abandoned = true;
	poller_unlock(p);
}

void poller_free(struct poller *p) {
	struct poll *x;
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_mutex_unlock(&p->lock);
	timer_cancel(p->config.timers, p->timer);
	pthread_mutex_lock(&p->lock);
	while (p->busy)
		pthread_cond_wait(&p->idle, &p->lock);
	pthread_mutex_unlock(&p->lock);
	while ((x = take_idle(p, NULL)))
		end(x);
	wait_for_logouts(p);
}

static struct poll *poll_new(struct poller *p, const char *host_id, const struct bmc_settings *b) {
	struct poll *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->owner = p;
	x->settings = *b;
	x->joules_ns = NONE;
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

/* Those that are not idle end with their answer. */
static void retire(struct poller *p, const char *host_id) {
	struct poll *x;
	pthread_mutex_lock(&p->lock);
	DL_FOREACH (p->polls, x) {
		if (x->phase != PHASE_IDLE && strcmp(x->host_id, host_id) == 0)
			x->dead = true;
	}
	pthread_mutex_unlock(&p->lock);
	while ((x = take_idle(p, host_id)))
		end(x);
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
	retire(p, host_id);
	pthread_mutex_lock(&p->lock);
	if (x)
		DL_APPEND(p->polls, x);
	pthread_mutex_unlock(&p->lock);
	httpc_forget(p->config.httpc, host_id);
	return RC_OK;
}
