/*
 * Asks each BMC for its watts, one request at a time, faster where the energy engine demands it,
 * slower while the BMC fails. Requests run in the HTTP client, answers are judged in the pool.
 */
#ifndef DRIVEWATT_CORE_BMC_POLLER_H
#define DRIVEWATT_CORE_BMC_POLLER_H

#include "base/pool.h"
#include "base/secret.h"
#include "base/timer.h"
#include "core/energy.h"
#include "core/events.h"
#include "core/httpc.h"
#include "model/host.h"

struct poller;

struct poller_config {
	struct httpc *httpc; /* borrowed, like the next four; outlives the poller */
	struct timers *timers;
	struct pool *jobs;
	struct energy *energy;
	struct events *events;
	int64_t period_ms;
	uint8_t secret_key[SECRET_KEY_BYTES];
	/* Called in the pool for every reading, with or without a value. */
	void (*reading)(void *arg, const char *host_id, const struct host_power *p);
	void *arg;
};

struct poller *poller_new(const struct poller_config *config, struct err *err);
/* No reading comes after it returned. Sessions are closed, which is waited for up to 2 s. A request
 * that still runs is not waited for: it ends by itself, at the latest with the HTTP client. NULL is
 * fine. */
void poller_free(struct poller *p);
enum rc must_check poller_start(struct poller *p, struct err *err);
/* Polls this BMC from now + delay_ms on instead of the host's one so far; b NULL or not present:
 * none any more. */
enum rc must_check poller_set(struct poller *p, const char *host_id, const struct bmc_settings *b,
	int64_t delay_ms, struct err *err);

/* How a change of a limit ended. */
struct limit_outcome {
	struct err err;   /* RC_OK: it holds, read back. RC_INVALID (/limit_w): out of the BMC's
			     range;   RC_UNSUPPORTED: it has none; RC_REFUSED: it said no, or does not
			     do as   it says; RC_TIMEOUT: not done yet; RC_UNAVAILABLE: no answer;
			     RC_CANCELLED: the BMC was changed or taken away */
	bool known;       /* limit_mw was read */
	int64_t limit_mw; /* NONE none */
};
/* In any thread, at the latest in poller_free; o lives for the call. */
typedef void poller_limit_fn(void *arg, const struct limit_outcome *o);
/* Changes the limit that the host's BMC holds; NONE lifts it. Between two readings, one change at a
 * time. On RC_OK fn is called exactly once. RC_UNSUPPORTED: no BMC; RC_FULL: a change is under
 * way. */
enum rc must_check poller_set_limit(struct poller *p, const char *host_id, int64_t limit_mw,
	poller_limit_fn *fn, void *arg, struct err *err);

#endif
