/*
 * Power: claims, what is effective, and the one place that sets a drive. A claim is committed
 * before the drive is touched; the drive is read back; the reconciler repeats until observed and
 * effective agree, with back-off, and says when it cannot.
 *
 * Any thread. What changes claims blocks on the store, nothing on a drive; views never block for
 * longer than a lock that is held for moments. What is given is copied.
 */
#ifndef DRIVEWATT_CORE_POWER_H
#define DRIVEWATT_CORE_POWER_H

#include "core/drive.h"
#include "core/tasks.h"
#include "db/tasks.h"

#define POWER_MAX_CLAIMS 16 /* a drive */
#define POWER_MAX_POLICIES 256

struct power;

struct power_config {
	bool observe_only;      /* refuses every change with RC_FORBIDDEN, sets no drive */
	int64_t reconcile_ms;   /* period of reading back; 0 never by itself (10000) */
	int64_t backoff_max_ms; /* longest pause between attempts, over 0 (300000) */
};

/* All pointers are borrowed until power_free. Watches drives: before drives_start. */
struct power *power_new(const struct power_config *config, struct db *control,
	struct events *events, struct drives *drives, struct timers *timers, struct pool *jobs,
	struct err *err);
/* After drives_drain. Who still waits hears RC_UNAVAILABLE in this thread; claims stay stored. NULL
 * is fine. */
void power_free(struct power *p);
/* Loads the claims and begins to reconcile: before drives_start, so that no drive is missed. */
enum rc must_check power_start(struct power *p, struct err *err);

/* How a change ended. */
struct power_outcome {
	enum rc rc; /* RC_OK; RC_REFUSED: the drive said no and the claim was withdrawn;
		       RC_TIMEOUT: no answer yet, the claim stays; RC_UNAVAILABLE: the drive
		       went, or the service stops: the claim stays too; others as from the
		       drive */
	struct err err;
	struct power_wish wish;
	int64_t expires_ms;        /* of the wish; NONE never */
	int effective_state;       /* what is in force, all claims considered; -1 none */
	int observed_state;        /* -1 unknown */
	int64_t observed_limit_mw; /* that the drive keeps by its own means; NONE none */
	int64_t limit_mw;          /* in force: as in struct power_view */
	uint8_t limit_means;       /* enum power_means: how the drive keeps limits */
	bool in_sync;
	char held_by[CLAIM_OWNER_SIZE]; /* owner of the winning setting or cap; "" none */
	bool recorded;                  /* false: the store failed, power goes on from memory */
	bool created;                   /* there was no desired before */
};
/* In a jobs thread, or in whichever has the answer when the jobs' queue is full; o lives for the
 * call. */
typedef void power_fn(void *arg, const struct power_outcome *o);

/* Dry runs (struct actor): fn is called before the function returns, with the outcome that there
 * would be; observed_state is what is observed now, in_sync whether that would do, and recorded is
 * false. */

/* Sets the drive's desired: checked against its table, claimed, set, read back. It ends by itself
 * at expires_ms (NONE never), as if it were cleared then. On RC_OK fn is called exactly once.
 * if_version: model/version.h, of the desired alone. RC_INVALID (field), RC_NOT_FOUND,
 * RC_UNAVAILABLE (gone, or not identified yet), RC_UNSUPPORTED (no power states), RC_FULL,
 * RC_FORBIDDEN, RC_PRECONDITION. */
enum rc must_check power_set_desired(struct power *p, const struct actor *who, const char *drive_id,
	const struct power_wish *wish, int64_t expires_ms, uint32_t if_version, power_fn *fn,
	void *arg, struct err *err);
/* Removes it: the drive goes back to what is then effective, or to its default state (PS0 where
 * nothing else is known), unless leave. RC_NOT_FOUND when there is none. */
enum rc must_check power_clear_desired(struct power *p, const struct actor *who,
	const char *drive_id, bool leave, uint32_t if_version, power_fn *fn, void *arg,
	struct err *err);

/* A policy and what it does now, over the drives that are here. */
struct policy_view {
	struct policy policy;
	unsigned selected; /* drives that the selector fits */
	unsigned holding;  /* … whose power it chooses */
	unsigned in_sync;  /* … of those that are held: observed is what it wants */
	unsigned unable;   /* … that have no such state, or none below the limit */
};

/* Puts p under its name, for the drives that are here and for those that come: such a drive is set
 * before it is announced. Sets config_version and times of p; *created tells whether there was
 * none. The same again is no change. RC_INVALID (field), RC_FULL, RC_FORBIDDEN, RC_PRECONDITION, or
 * what the store says. Drives are set afterwards, by themselves. */
enum rc must_check power_policy_put(struct power *p, const struct actor *who, struct policy *policy,
	uint32_t if_version, bool *created, struct err *err);
/* Lets go of its drives: another policy holds them, or they stay as they are. RC_NOT_FOUND,
 * RC_FORBIDDEN, RC_PRECONDITION, or what the store says. */
enum rc must_check power_policy_delete(struct power *p, const struct actor *who, const char *name,
	uint32_t if_version, struct err *err);
/* What policy does, or would do if it were stored. */
void power_policy_view(struct power *p, const struct policy *policy, struct policy_view *out);
/* RC_NOT_FOUND. */
enum rc must_check power_policy_get(
	struct power *p, const char *name, struct policy_view *out, struct err *err);
/* By name, after `after` (""). The visitor returns false to stop; it may not call back. */
void power_policy_each(struct power *p, const char *after,
	bool (*visit)(void *arg, const struct policy_view *v), void *arg);
/* Changes with anything that a view of a policy shows; never comes again. */
uint64_t power_policies_version(struct power *p);

/* Lets changes of many drives be tasks of kind "power.change": before tasks_start. tasks is
 * borrowed until power_free. */
#define POWER_TASK_KIND "power.change"
enum rc must_check power_use_tasks(struct power *p, struct tasks *tasks, struct err *err);
/* The same change of desired for many drives, as a task whose targets are "/drives/<id>", with a
 * result {"observed_state", "in_sync", "recorded"} each. Ids must differ. What does not suit a
 * drive is that target's outcome. RC_FORBIDDEN, RC_FULL, or what the store says. */
enum rc must_check power_change_submit(struct power *p, const struct actor *who,
	const struct power_change *change, const char (*drive_ids)[DRIVE_ID_SIZE], unsigned count,
	struct task *out, struct err *err);
/* What a dry run of such a change would make of one drive. */
void power_change_try(struct power *p, const struct actor *who, const struct power_change *change,
	const char *drive_id, struct task_target *out);
/* What such a task wants. RC_NOT_FOUND. */
enum rc must_check power_change_get(
	struct power *p, const char *task_id, struct power_change *out, struct err *err);

/* A run's lease: stored, expiring, above desired. fn when the drive has been set and read back. */
enum rc must_check power_lease(struct power *p, const char *drive_id, const char *run_id, int state,
	int64_t expires_ms, power_fn *fn, void *arg, struct err *err);
/* Ends the run's leases on all its drives; brings them back without waiting for them. */
void power_lease_end(struct power *p, const char *run_id);

struct power_view {
	struct power_table table;
	int observed_state;        /* -1 unknown */
	int64_t observed_limit_mw; /* that the drive keeps by its own means; NONE none */
	int64_t read_ms;           /* NONE never */
	struct err last;           /* of the last operation on the drive */
	uint8_t claim_count;
	struct claim claims[POWER_MAX_CLAIMS];
	struct power_effective effective;
	bool in_sync;
	bool recorded;             /* false: the store lacks the last change of desired, for now */
	uint32_t config_version;   /* of the desired alone; VERSION_ABSENT without one */
	uint64_t observed_version; /* of all else in here; never comes again */
	int64_t limit_mw; /* in force, when watts chose: what the drive's own means are set to,
			     else the max power of the effective state; NONE */
};
/* RC_NOT_FOUND. */
enum rc must_check power_view_get(
	struct power *p, const char *drive_id, struct power_view *out, struct err *err);
/* The drive's desired; RC_NOT_FOUND (field "" ) when the drive is known but has none. */
enum rc must_check power_desired_get(struct power *p, const char *drive_id, struct claim *out,
	uint32_t *version, struct err *err);

#endif
