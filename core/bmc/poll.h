/* What the files of the poller share: one BMC, and what is going on with it. */
#ifndef DRIVEWATT_CORE_BMC_POLL_H
#define DRIVEWATT_CORE_BMC_POLL_H

#include <pthread.h>

#include "core/bmc/adaptor.h"
#include "core/bmc/limit.h"
#include "core/bmc/poller.h"
#include "core/bmc/session.h"

enum poll_phase {
	PHASE_IDLE,   /* the poller's */
	PHASE_ASKING, /* the HTTP client's */
	PHASE_JUDGING /* a pool job's */
};

enum poll_step {
	STEP_ROOT,  /* the service root is asked for */
	STEP_LOGIN, /* on the way to what the walk asks for */
	STEP_WALK,
	STEP_LIMIT
};

struct poll_answer {
	enum rc rc;
	int status, retry_after_s;
	char *body; /* owned; NULL none */
	size_t len;
	char token[HTTPC_TOKEN_SIZE], location[256], etag[HTTPC_ETAG_SIZE];
	int64_t wall_ms, mono_ns;
};

/* A change of the limit that is wished for or under way. But for what poller_set_limit gives it, it
 * belongs to whoever has the poll. */
struct poll_limit {
	int64_t wish_mw;
	poller_limit_fn *fn;
	void *arg;
	bool read;  /* the BMC was asked for a reading first */
	bool begun; /* change is good */
	struct limit_change change;
};

/* One BMC. What stands above the line is guarded by the poller's lock, the rest belongs to whoever
 * the phase says. */
struct poll {
	struct poll *prev, *next;
	struct poll *next_due; /* of those that one tick begins with */
	enum poll_phase phase;
	bool dead;       /* replaced: dropped when idle */
	bool in_session; /* when it was last asked */
	int64_t due_ms;
	struct poll_limit *limit; /* owned; NULL none */
	int64_t limit_due_ms;
	/* --- */
	struct poller *owner;
	char host_id[HOST_ID_SIZE];
	struct bmc_settings settings; /* password_sealed owned */
	struct bmc_session session;
	struct bmc_walk walk;
	struct poll_answer answer;
	char uri[BMC_URI_SIZE]; /* that was asked for */
	enum poll_step step, after_login;
	bool told_repair, unreachable;
	unsigned failures; /* in a row */
	int64_t discover_due_ms, extras_due_ms, extras_at_ms, relogin_due_ms;
	/* Of the last counter of joules. */
	int64_t joules_mj, joules_ns; /* NONE */
	const char *last_failure;     /* of a reading, static text; NULL none */
	bool for_limit;               /* what runs is for the change of the limit */
	/* Of this reading. */
	unsigned requests;
	bool rediscovered, logged_in, unlicensed;
	bool retried, redirected;  /* the request that runs */
	bool reported;             /* the watts are settled */
	bool told;                 /* and were new */
	int64_t at_ms, at_mono_ns; /* of the watts */
};

struct poller {
	struct poller_config config;
	timer_id timer;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle;
	struct poll *polls;
	unsigned busy;    /* threads that work on a poll and may touch the parts borrowed */
	unsigned logouts; /* requests that close sessions */
	bool stopping;
	bool abandoned; /* freed by its owner: the last poll or logout frees it */
};

/* --- poller.c --- */

/* Drops the lock, and the poller if it is abandoned and this was the last to need it. */
void poller_unlock(struct poller *p);
void poll_set_phase(struct poll *x, enum poll_phase phase);
/* The reading is over. */
void poll_rest(struct poll *x, int64_t due_ms);
/* What runs for the limit goes on at that time. */
void poll_pause(struct poll *x, int64_t limit_due_ms);
int64_t poll_period(const struct poll *x);
/* The next beat, unless it was missed. */
int64_t poll_next_beat(const struct poll *x);
/* Hands the answer that came to a pool job that judges it. */
void poll_answered(struct poll *x);

/* --- poll_request.c --- */

/* Asks for what the step says, after a login where one is needed. RC_OK: the poll is the HTTP
 * client's. RC_CORRUPT: the password does not unseal. */
enum rc must_check poll_send(struct poll *x);
/* Closes the session, if there is one, and waits for nothing. */
void poll_logout(struct poll *x);

/* --- poll_judge.c --- */

void poll_begin(struct poll *x);
void poll_judge(struct poll *x);
/* Asks for what the step says; fails what runs when that cannot be sent. */
void poll_ask(struct poll *x, enum poll_step step);
/* How long to leave a BMC alone after so many failures in a row, 1 at least: twice as long each
 * time, and by the noise not in step with other BMCs. */
int64_t poll_backoff_ms(unsigned failures, int64_t period_ms, int64_t at_least_ms, int64_t noise);
/* A reading. */
void poll_read(struct poll *x);

/* --- poll_limit.c --- */

/* Is there a change to begin or to go on with? */
bool poll_limit_is_due(struct poll *x);
void poll_limit_begin(struct poll *x);
/* Takes the answer in. */
void poll_limit_judge(struct poll *x);
/* The BMC cannot be asked. */
void poll_limit_fail(struct poll *x, const char *reason);
/* Takes the change off the poll and tells how it ended. Also without one. */
void poll_limit_end(struct poll *x, const struct limit_outcome *o);

#endif
