/*
 * What the files of the registry share.
 *
 * Locks: `lock` guards the entries and all in them, the commands' lists, the sources' scan state
 * and the counters. It is never held while a target, a watcher, a completion, the store or the
 * energy engine is called. `progress_lock` goes with the condition that waiters for progress sleep
 * on; order: progress_lock before lock. `version` is atomic. What an entry calls its drain's own
 * belongs to that, of which there is one at a time.
 */
#ifndef DRIVEWATT_CORE_DRIVE_REGISTRY_H
#define DRIVEWATT_CORE_DRIVE_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/drive.h"

#define MAX_SOURCES 4
#define MAX_WATCHERS 4

enum drive_change {
	CHANGE_NONE,
	CHANGE_ADDED, /* told of only when the store did not know the drive */
	CHANGE_RETURNED,
	CHANGE_REMOVED,
	CHANGE_STATE
};

/* What an entry's drain has to do: answer a command, write an event, tell the watchers. */
struct todo {
	struct todo *next;
	drive_reply_fn *fn; /* NULL: nobody to answer */
	void *arg;
	struct drive_reply reply;
	struct drive_detail *detail; /* owned, drive_detail_bytes() of it; what reply points to */
	struct drive_health *health; /* owned; likewise */
	enum drive_change change;
	uint8_t from_state, to_state; /* CHANGE_STATE */
	unsigned news;                /* bits, 1 << enum drive_news */
};

/* A command on its way. */
struct command {
	struct command *prev, *next; /* in ds->waiting or ds->overdue */
	struct entry *entry;
	enum drive_verb verb;
	bool internal;
	bool timed_out; /* answered with RC_TIMEOUT: what comes is late */
	int64_t deadline_ms;
	struct todo *todo; /* of the first answer, made beforehand; then NULL */
};

struct entry {
	struct drives *ds;
	struct source *source;
	struct drive d;
	char labels[512];
	char subsystem_nqn[224];
	struct drive_detail *detail; /* drive_detail_bytes() of it; NULL until identified */
	struct drive_health health;
	bool has_health;
	struct drive_observed observed;
	uint64_t scan;       /* number of the scan that found it last */
	uint8_t found_state; /* enum drive_state that that scan saw */
	bool want_identify;  /* and not asked yet */
	bool identifying;
	bool anew;            /* it came, or was reset: its power state must be read again */
	bool settled;         /* identified, or that failed, or it cannot be asked now */
	bool announced;       /* as added or returned, since it came */
	bool unknown;         /* the store did not know it when it came */
	bool arriving;        /* identified, and held back by the gate */
	uint8_t arrival;      /* enum drive_change: what to tell once it is let in */
	int64_t admit_due_ms; /* monotonic: then it is let in whatever the gate says */
	bool returned;        /* it had gone in this life */
	unsigned waiters;
	unsigned commands;
	int64_t health_due_ms, identify_due_ms; /* monotonic; INT64_MAX not wanted */
	struct todo *first_todo, *last_todo;
	bool draining;
	/* The drain's own. */
	int64_t recorded_ms;             /* wall; its row in the store was up to date; 0 never */
	int64_t series[QUANTITY_COUNT_]; /* ids; 0 not asked for yet */
};

struct source {
	struct drives *ds;
	struct drive_source is;
	uint64_t scan;
	bool scanning;
	bool again; /* a scan was asked for meanwhile */
	char reason[128];
};

struct watcher {
	void (*fn)(void *arg, const char *drive_id, enum drive_news news);
	void *arg;
};

struct command_list {
	struct command *first, *last;
};

struct drives {
	struct drives_config config;
	char host_id[37];
	struct db *control;
	struct events *events;
	struct energy *energy;
	struct timers *timers;
	struct pool *jobs;
	timer_id tick, rescan;
	pthread_rwlock_t lock;
	pthread_mutex_t progress_lock;
	pthread_cond_t progress;
	_Atomic uint64_t version;
	bool started;
	bool stopping;
	bool working;      /* a work job is queued or runs */
	unsigned calling;  /* calls into sources, and jobs that will call them, under way */
	unsigned draining; /* entries whose drain is queued or runs */
	bool cut;          /* a drive was left out since there are too many */
	size_t source_count;
	struct source sources[MAX_SOURCES];
	drives_gate_fn *gate; /* NULL none; fixed once started, like what follows */
	void *gate_arg;
	size_t watcher_count;
	struct watcher watchers[MAX_WATCHERS];
	struct command_list waiting; /* by deadline */
	struct command_list overdue;
	size_t count;
	struct entry *entries[DRIVES_MAX]; /* by id */
};

/* --- registry.c; find, insert and touch under lock --- */

struct entry *registry_find(struct drives *ds, const char *id);
/* A new entry, or NULL: no memory, or DRIVES_MAX drives none of which is gone and idle. */
struct entry *registry_insert(struct drives *ds, const char *id);
/* Something that a list shows has changed. */
void registry_touch(struct entry *e);
/* Wakes those who wait for something to happen. */
void registry_progress(struct drives *ds);
/* Not under lock: takes back one of ds->calling. */
void registry_end_call(struct drives *ds);

/* --- scan.c --- */

void scan_all(struct drives *ds);
/* Frees nothing; true when no source is being scanned. Under lock. */
bool scan_is_idle(const struct drives *ds);

/* --- arrive.c: between being found and being announced --- */

/* Not under lock. At the start: those whom nobody holds back are there. */
bool arrive_at_start(struct entry *e);
/* Not under lock, in the drain. It was identified: is let in now, or by drives_admit. */
void arrive(struct entry *e, enum drive_change change);
/* Not under lock. Lets in who has been held back for too long. */
void arrive_overdue(struct drives *ds);

/* --- command.c --- */

/* Asks without anybody waiting, unless that might end the drive's sleep. Not under lock. */
enum rc must_check command_poll(
	struct drives *ds, const char *id, enum drive_verb verb, struct err *err);
/* Answers those that are overdue. */
void commands_expire(struct drives *ds);
void commands_free(struct command_list *l);

/* --- drain.c --- */

/* Under lock. Takes t over. */
void drain_add(struct entry *e, struct todo *t);
/* Under lock. Has the watchers told; returns as drain_claim. */
bool drain_tell(struct entry *e, enum drive_news news);
/* Under lock. True when the caller must call drain_start() after the lock; until the drain has
 * ended the entry stays. */
bool drain_claim(struct entry *e);
/* False when the jobs' queue is full: who waits has been told. */
bool drain_start(struct entry *e);
/* Claims and starts all that have something to do. */
void drain_start_all(struct drives *ds);
/* Does in this thread what no job does. */
void drain_finish(struct drives *ds);
void todo_free(struct todo *t);

/* --- record.c: what a drain writes; not under lock --- */

/* Notes in the store that the drive is here, once an hour, and takes its labels from there. True
 * when it had never been seen before. */
bool record_seen(struct entry *e);
/* Does so at the start, before there is any drain, for all that the first scan found: in one
 * transaction, with the events of those that had never been seen. */
void record_found(struct drives *ds);
void record_change(struct entry *e, const struct todo *t);
void record_health(struct entry *e, const struct drive_health *h);

/* --- work.c: the periodic part --- */

enum rc must_check work_start(struct drives *ds, struct err *err);
void work_stop(struct drives *ds);
/* Has the work done soon instead of at the next tick. */
void work_kick(struct drives *ds);
/* Begins a drive's periodic SMART readings, and a period later the periodic identification, which
 * shows new uses and namespaces. Under lock. */
void work_plan(struct entry *e);

#endif
