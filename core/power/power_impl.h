/*
 * What the files of power share.
 *
 * Locks: write_lock is held over a change of claims, store included, so that memory and store see
 * changes in one order. `lock` guards the table and everything in the controls, for moments; it is
 * never held while the store, a drive or a caller is called, but for the registry's own readings.
 * Order: write_lock, the store's writer, lock, the registry's lock. Controls live as long as the
 * power they belong to. A wait belongs to the list it is in, else to the thread that took it out.
 */
#ifndef DRIVEWATT_CORE_POWER_IMPL_H
#define DRIVEWATT_CORE_POWER_IMPL_H

#include <pthread.h>

#include "base/buf.h"
#include "core/power.h"

#define POWER_MAX_CONTROLS (4 * DRIVES_MAX) /* claims of drives that are not here included */

enum wait_kind { WAIT_DESIRED, WAIT_CLEARED, WAIT_LEASE };

/* A caller who waits for a drive. */
struct wait {
	struct wait *next;
	enum wait_kind kind;
	power_fn *fn;
	void *arg;
	struct actor who;
	struct claim claim;  /* as put, or as removed */
	struct claim before; /* the desired that was replaced */
	bool had_before;
	bool changed; /* claims differ from before */
	struct power_outcome outcome;
};

struct wait_list {
	struct wait *first, *last;
};

/* Everything about one drive's power. */
struct control {
	struct power *power;
	char drive_id[DRIVE_ID_SIZE];
	uint8_t claim_count;
	struct claim claims[POWER_MAX_CLAIMS];
	bool unrecorded; /* the store lacks the last change of desired */
	bool present;    /* identified, and not gone since */
	bool apst;       /* the drive may choose non-operational states by itself */
	struct power_table table;
	/* What to go to once while nobody wishes anything; state -1 none. */
	struct power_setting release_to, before_lease;
	bool owes_release; /* the store has leases that are over; they go when the drive is back */
	bool changing;     /* a claim is being committed: before that the drive is not touched */
	bool busy;         /* a command of ours is on its way */
	struct power_setting target; /* of that command, when it sets */
	bool holds;                  /* it came: may be announced once it is where it shall be */
	bool confirmed;    /* observed was what was wanted, since claims or drive last changed */
	bool owes_applied; /* a set was not answered in time: tell when it took effect */
	bool told_refused;
	int64_t backoff_ms;                /* 0: none */
	int64_t next_try_ms, next_read_ms; /* monotonic */
	unsigned waiters;
	struct wait_list waiting; /* the next command is for them */
	struct wait_list asked;   /* the command under way is for them */
};

struct power {
	struct power_config config;
	struct db *control_db;
	struct events *events;
	struct drives *drives;
	struct timers *timers;
	struct pool *jobs;
	struct tasks *tasks; /* NULL: no changes of many */
	timer_id tick;
	pthread_mutex_t write_lock;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool ticking;            /* a tick is queued or runs */
	uint64_t claims_version; /* counts changes of any claims and of recorded */
	uint32_t deleted_policy_version;
	size_t policy_count;
	struct policy *policies[POWER_MAX_POLICIES]; /* the first that fits a drive counts */
	size_t count;
	struct control *controls[POWER_MAX_CONTROLS]; /* by drive id */
};

/* --- power.c; under lock --- */

struct control *control_find(struct power *p, const char *drive_id);
struct control *control_find_or_add(struct power *p, const char *drive_id);
/* One that is in no table. */
void control_init(struct control *ct, struct power *p, const char *drive_id);
/* Views show it: counts as a change of the claims. */
void control_set_recorded(struct control *ct, bool recorded);

/* Not under lock. The i-th, NULL past the end. */
struct control *control_at(struct power *p, size_t i);
/* RC_FORBIDDEN where nothing may be changed; a dry run changes nothing. */
enum rc must_check power_check_may(const struct power *p, const struct actor *who, struct err *err);

/* --- claims.c; the first eight under lock --- */

/* Index or -1; owner NULL: any. */
int claims_find(const struct control *ct, enum claim_kind kind, const char *owner);
/* By either clock. */
bool claim_is_over(const struct claim *c);
/* False when there are POWER_MAX_CLAIMS of others. */
bool claims_put(struct control *ct, const struct claim *claim);
void claims_remove(struct control *ct, int index);
/* Removes a claim that ended by itself: without others the drive goes back to its default, after
 * the last lease to where it was. */
void claims_drop(struct control *ct, int index);
/* Leases that are over are in the store still, and the drive is back. */
bool claims_released(const struct control *ct);
/* The same desired has the same version, also after a restart; VERSION_ABSENT without one. */
uint32_t claims_desired_version(const struct control *ct);

/* What stands beside a change of claims in its transaction. */
struct claims_note {
	const struct actor *who;
	const char *action; /* of the audit row; NULL none */
	const char *outcome;
	enum event_type event; /* EVENT_TYPE_COUNT_ none */
	const char *data;
};
/* Under write_lock: makes the drive's desired in the store what it is in memory. */
enum rc must_check claims_store_desired(
	struct power *p, struct control *ct, const struct claims_note *n, struct err *err);
enum rc must_check claims_store_lease(struct power *p, struct claim *claim, struct err *err);
/* Under write_lock. Removes the leases of a drive that has none any more. */
enum rc must_check claims_unstore_leases(struct power *p, struct control *ct, struct err *err);
/* Under write_lock. Removes claims of one kind and owner from the store. */
enum rc must_check claims_unstore(struct power *p, const struct claim *claim, struct err *err);
/* Ends a transaction by what came out of it so far. */
enum rc must_check claims_finish(struct power *p, struct db_conn *c, enum rc rc, struct err *err);
/* A note without any change. */
enum rc must_check claims_write_note(
	struct power *p, const char *drive_id, const struct claims_note *n, struct err *err);
/* Reads all claims into the controls. No run outlives the daemon: drives with leases go back. */
enum rc must_check claims_load(struct power *p, struct err *err);

/* --- policies.c --- */

/* Reads all policies: before any drive is known. */
enum rc must_check policies_load(struct power *p, struct err *err);
/* Under lock. Makes the drive's claim of kind policy what the policies say. */
void policies_refresh(struct power *p, struct control *ct);
void policies_free(struct power *p);

/* --- apply.c: the one place that sets a drive --- */

/* Not under lock. Looks at what is wanted and what was observed and asks the drive if need be. */
void power_apply(struct power *p, struct control *ct);
/* What was read of a drive. */
struct power_read {
	int state;        /* -1 unknown */
	int64_t limit_mw; /* NONE: none, or unknown */
};
/* A setting by state alone; -1: none. */
struct power_setting setting_of_state(int state);
/* Under lock. What shall be in force; state -1: nothing. */
struct power_setting control_wanted(const struct control *ct);
/* Under lock. */
struct power_effective control_effective(const struct control *ct);
/* Under lock. What was read last. */
struct power_read control_observed(const struct control *ct);
/* Under lock. Is observed as good as wanted? */
bool control_matches(const struct control *ct, const struct power_setting *wanted,
	const struct power_read *observed);
/* Under lock: the next attempt waits longer than the one before. */
void control_back_off(struct control *ct);
/* Under lock: claims or drive have changed, so that nothing is known to be in force. */
void control_renew(struct control *ct);
/* Under lock. Who holds the drive, and what was observed, for the outcome. */
void control_fill_outcome(const struct control *ct, struct power_outcome *o);

void waits_add(struct wait_list *l, struct wait *w);
struct wait *waits_take(struct wait_list *l);
/* Calls the waiters: here, or in a job unless the jobs' queue is full. */
void waits_deliver(struct power *p, struct wait *list, bool here);

/* --- tell.c: events and audit of what came out; not under lock --- */

void tell_outcome(struct power *p, struct control *ct, const struct wait *w);
void tell_event(struct power *p, const char *drive_id, enum event_type type,
	const struct actor *who, int wanted, int observed, const struct err *why);
/* JSON object text about a wish that ends at expires_ms (NONE never); reason NULL: none. To be
 * released. */
void tell_wish(struct buf *out, const char *drive_id, const struct power_wish *wish,
	int64_t expires_ms, const char *reason);

/* --- reconcile.c --- */

void reconcile_on_news(void *arg, const char *drive_id, enum drive_news news);
void reconcile_on_tick(void *arg);
/* The registry's gate: is anything wished of a drive that comes? */
bool reconcile_holds(void *arg, const char *drive_id);
/* Nobody waits for a drive that is not there. */
void reconcile_abandon(struct power *p, struct control *ct);
/* First time of a drive's periodic reading, spread over the period. */
int64_t reconcile_first_read_ms(const struct power *p, const char *drive_id);

#endif
