/*
 * The registry of drives and the one way to ask a drive anything. A drive target is the seam
 * behind which stand the helper's lanes, the simulator, and plain files; it is asynchronous.
 *
 * Any thread, once started; what comes before drives_start and from drives_stop on: one thread.
 * Nothing but drives_start, drives_settled, drives_stop, drives_drain and drives_set_labels (store)
 * blocks for longer than a lock that is held for moments. What is given is copied.
 */
#ifndef DRIVEWATT_CORE_DRIVE_H
#define DRIVEWATT_CORE_DRIVE_H

#include "base/pool.h"
#include "base/timer.h"
#include "core/energy.h"
#include "core/events.h"
#include "db/drives.h"
#include "model/drive.h"
#include "model/policy.h"
#include "model/version.h"

#define DRIVES_MAX 1024
#define DRIVE_MAX_WAITERS 2
#define DRIVE_MAX_COMMANDS 6 /* sent to one drive and not yet answered, late ones included */

enum drive_verb { DRIVE_IDENTIFY, DRIVE_POWER_GET, DRIVE_POWER_SET, DRIVE_SMART };

struct drive_reply {
	enum rc rc; /* RC_OK, RC_REFUSED (err.nvme_status), RC_TIMEOUT, RC_NOT_FOUND … */
	struct err err;
	bool late;       /* after an RC_TIMEOUT for the same operation */
	bool more;       /* with RC_TIMEOUT, from a target: fn is called once more, with late set */
	bool asleep;     /* with RC_OK: it was not asked, power_state tells why */
	int power_state; /* POWER_GET, POWER_SET: read back */
	int64_t limit_mw;                  /* … by the drive's own means; NONE none */
	const struct drive_detail *detail; /* IDENTIFY; drive_detail_bytes() of it; valid during
					      the call */
	const struct drive_health *health; /* SMART; likewise */
};
typedef void drive_reply_fn(void *arg, const struct drive_reply *r);

/* What a target is asked. */
struct drive_question {
	enum drive_verb verb;
	struct power_setting setting; /* POWER_SET */
	uint8_t means;                /* POWER_GET, POWER_SET: how the drive keeps a limit */
	uint8_t uuid_index;           /* of OCP's features and logs; 0 none */
	uint8_t logs;                 /* SMART: enum drive_logs that it has */
	uint32_t asleep; /* a bit for each power state in which it is not to be asked */
};

/* A kind of target. submit answers RC_OK when fn will be called, from a thread of the target's own:
 * exactly once, or twice when the first reply has more set (then the late answer, or its loss).
 * It never blocks. */
struct drive_target_ops {
	enum rc (*submit)(void *source, const struct drive *d, const struct drive_question *q,
		drive_reply_fn *fn, void *arg, struct err *err);
};

/* What a source finds: the identity and what a list needs. id is made by the registry. */
struct drive_found {
	struct drive drive; /* id empty; name, model, serial, firmware, transport, address, kind,
			       state, numa_node, capacity_bytes */
	char subsystem_nqn[224];
	uint16_t cntlid;
	bool cntlid_matters; /* the subsystem has several static controllers */
};

/* Where drives come from. scan calls found for each and then done once, from any thread. */
struct drive_source {
	const struct drive_target_ops *ops;
	void *self;
	enum rc (*scan)(void *self, void (*found)(void *arg, const struct drive_found *f),
		void (*done)(void *arg, enum rc rc, const char *reason), void *arg,
		struct err *err);
};

struct drives;

struct drives_config {
	int64_t timeout_ms;  /* of one operation, as the waiters see it; over 0 (5000) */
	int64_t health_ms;   /* period of SMART readings, and of looking at uses and namespaces
				again; 0 never by itself (60000) */
	int64_t rescan_ms;   /* period of scans; 0 never by itself (30000) */
	const char *host_id; /* copied */
};

/* jobs runs completions that touch the store. energy NULL: no samples. All pointers are borrowed
 * until drives_free. */
struct drives *drives_new(const struct drives_config *config, struct db *control,
	struct events *events, struct energy *energy, struct timers *timers, struct pool *jobs,
	struct err *err);
/* No more commands, scans or readings. Afterwards the sources may be ended; answers that still
 * come are taken in. */
void drives_stop(struct drives *ds);
/* After drives_stop and the sources' end: waits until every completion and watcher has run. */
void drives_drain(struct drives *ds);
/* After drives_drain. NULL is fine. */
void drives_free(struct drives *ds);
/* At most 4, before drives_start. What source points to is borrowed until drives_drain. */
enum rc must_check drives_add_source(
	struct drives *ds, const struct drive_source *source, struct err *err);
/* First scan and identification of all, then the periodic work. Returns when the first scan is
 * done; identifications go on. */
enum rc must_check drives_start(struct drives *ds, struct err *err);
/* Soon, in a job; left out when the jobs' queue is full. */
void drives_rescan(struct drives *ds);
/* Somebody has heard that drives have changed: they are looked for again, and the one that the
 * kernel calls name is identified; with reset its power state is read again as well. "": none in
 * particular, with reset all. Never blocks. */
void drives_hint(struct drives *ds, const char *name, bool reset);
/* Waits until every drive found so far has been identified or has failed, at most timeout_ms. */
bool drives_settled(struct drives *ds, int64_t timeout_ms);

/* Watchers hear of a drive that came (again) to life or was observed; in a jobs thread, in order
 * for one drive. At most 4, before drives_start. */
enum drive_news {
	DRIVE_NEWS_IDENTIFIED,
	DRIVE_NEWS_STATE,
	DRIVE_NEWS_POWER_READ,
	DRIVE_NEWS_LABELS, /* set, or read from the store */
	DRIVE_NEWS_GONE
};
enum rc must_check drives_watch(struct drives *ds,
	void (*fn)(void *arg, const char *drive_id, enum drive_news news), void *arg,
	struct err *err);

/* Asked of a drive that came, before it is announced: shall it be held back until drives_admit?
 * Meanwhile it is DRIVE_ARRIVING and its watchers hear of it. Once, before drives_start. fn may not
 * be asked yet about a drive that another thread admits. Not under a lock of the registry. */
typedef bool drives_gate_fn(void *arg, const char *drive_id);
void drives_set_gate(struct drives *ds, drives_gate_fn *fn, void *arg);
/* Announces a drive that was held back; nothing otherwise. Never blocks. */
void drives_admit(struct drives *ds, const char *id);

/* Version of the whole list: changes with anything that drives_each would show and never comes
 * again, also over restarts. Never blocks. */
uint64_t drives_version(struct drives *ds);
size_t drives_count(struct drives *ds);
/* Why there are no drives, or not all: "" fine. */
void drives_reason(struct drives *ds, char *out, size_t size);
/* By id after `after` (""), ascending; the visitor returns false to stop. Holds the registry's
 * read lock: the visitor must not call back. labels is JSON text or "". */
void drives_each(struct drives *ds, const char *after,
	bool (*visit)(void *arg, const struct drive *d, const char *labels), void *arg);
/* Does the selector fit the drive? Pure but for the parsing of labels. */
bool drives_selects(const struct drives *ds, const struct drive_selector *s, const struct drive *d,
	const char *labels);
/* As drives_each over the drives that are here and that the selector fits. */
void drives_select(struct drives *ds, const struct drive_selector *s,
	bool (*visit)(void *arg, const struct drive *d, const char *labels), void *arg);
/* RC_NOT_FOUND. labels (512 bytes) and detail may be NULL. */
enum rc must_check drives_get(struct drives *ds, const char *id, struct drive *out, char *labels,
	struct drive_detail *detail, struct err *err);
/* The table alone, without copying the detail; RC_UNAVAILABLE until the drive was identified. */
enum rc must_check drives_table(
	struct drives *ds, const char *id, struct power_table *out, struct err *err);
/* The last SMART reading; RC_UNAVAILABLE when there was none. */
enum rc must_check drives_health(
	struct drives *ds, const char *id, struct drive_health *out, struct err *err);
/* Wall time and text of the last power read or failure; at_ms NONE never. */
struct drive_observed {
	int64_t at_ms;
	int power_state;  /* -1 never read */
	int64_t limit_mw; /* that it keeps by its own means; NONE none or never read */
	struct err last;  /* rc RC_OK when the last operation worked */
};
enum rc must_check drives_observed(
	struct drives *ds, const char *id, struct drive_observed *out, struct err *err);

/* Asks the drive; on RC_OK fn is called exactly once, in a jobs thread, at most timeout_ms
 * later; the registry has taken the answer in before. A late answer only updates the registry.
 * RC_FULL when DRIVE_MAX_WAITERS already wait (internal = true is not counted) or
 * DRIVE_MAX_COMMANDS are unanswered, RC_NOT_FOUND, RC_UNAVAILABLE (gone). When the jobs' queue is
 * full fn hears RC_FULL, at once and in the answering thread. fn may be NULL; setting is of
 * POWER_SET, else NULL. Never blocks. */
enum rc must_check drives_submit(struct drives *ds, const char *id, enum drive_verb verb,
	const struct power_setting *setting, bool internal, drive_reply_fn *fn, void *arg,
	struct err *err);

/* What core/power computed, for lists. */
void drives_set_effective(struct drives *ds, const char *id, int effective_state, bool in_sync);
/* labels: JSON object text, stored with its audit row. RC_NOT_FOUND, RC_INVALID (over 511 bytes),
 * RC_PRECONDITION (if_version: model/version.h). Blocks on the store. */
enum rc must_check drives_set_labels(struct drives *ds, const struct actor *who, const char *id,
	const char *labels, uint32_t if_version, struct err *err);

/* The local drives, through the helper, which is borrowed. */
struct privc;
struct drive_source drive_local_source(struct privc *p);
/* Has ds hear what the kernel tells of them, until p is freed. */
void drive_local_watch(struct privc *p, struct drives *ds);

#endif
