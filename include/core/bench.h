/*
 * Benchmark runs: queued, one a namespace at a time, carried out by a bounded pool of workers,
 * each of which takes one run through prepare, load, result and restore in straight code. What
 * uses the drives is checked three times: at the submit by what is known, when the run's turn has
 * come by a fresh look, and by the helper with the devices open.
 *
 * A run of the idle workload that covers all drives of the host while no other run is active, and
 * whose meter gave enough readings, becomes the host's baseline idle_with_drives.
 *
 * The end of a run that the store cannot take (a full disk) stays in memory with its documents, is
 * shown as `unrecorded` and tried again until it is stored; meanwhile its worker waits and no other
 * run is begun, so that there are never more such ends than workers. When the daemon stops before,
 * it is lost, and the run interrupted at the next start.
 *
 * Any thread. All functions but bench_active and bench_unable block on the store, none on a drive
 * or on fio. What is given is copied where it is needed longer than the call.
 */
#ifndef DRIVEWATT_CORE_BENCH_H
#define DRIVEWATT_CORE_BENCH_H

#include "core/drive.h"
#include "core/energy.h"
#include "core/events.h"
#include "core/hosts.h"
#include "core/power.h"
#include "model/run.h"
#include "model/version.h"

struct bench;
struct privc;

#define BENCH_MAX_RUNS 64

struct bench_config {
	unsigned max_runs;   /* at once, a worker each: 0 … BENCH_MAX_RUNS; 0: none is begun */
	unsigned max_queued; /* more are RC_FULL */
	int64_t settle_ms;   /* 0 …, between a state change and the load */
	bool observe_only, allow_destructive, allow_in_use;
	unsigned simulate_scale; /* of the simulated drives; 1 without */
	const char *host_id;     /* copied */
};

/* All pointers are borrowed until bench_free; privc NULL: there is no helper. */
struct bench *bench_new(const struct bench_config *config, struct db *control,
	struct events *events, struct energy *energy, struct hosts *hosts, struct drives *drives,
	struct power *power, struct privc *privc, struct timers *timers, struct err *err);
/* Ends what runs: fio is stopped, the runs are marked interrupted, drives are let go. Waits for
 * that. NULL is fine. */
void bench_free(struct bench *b);
/* Runs that an earlier life left open: their fio is ended, they become `interrupted`.
 * Before power_start, which brings back the drives that they had leased. */
enum rc must_check bench_recover(struct bench *b, struct err *err);

/* Checks everything that can be checked now (drives, workload, interlock, consent), stores the
 * run as queued and returns it; keeps the actor's once. RC_INVALID (field: drives and workloads
 * that are not there too), RC_FORBIDDEN, RC_CONFLICT (in use), RC_FULL. */
enum rc must_check bench_submit(struct bench *b, const struct actor *who,
	const struct run_spec *spec, struct run *out, struct err *err);
/* RC_CONFLICT when it is over already. Returns once the wish is noted. What is queued is over at
 * once, or stays queued when the store does not take that (RC_NO_SPACE, RC_STORE). */
enum rc must_check bench_cancel(
	struct bench *b, const struct actor *who, const char *id, struct err *err);
/* RC_CONFLICT while it is not over, RC_STORE while its end is not stored. */
enum rc must_check bench_delete(
	struct bench *b, const struct actor *who, const char *id, struct err *err);
/* The stored run with its live progress; RC_NOT_FOUND. */
enum rc must_check bench_get(struct bench *b, const char *id, struct run *out, struct err *err);
/* Newest first, with live progress; `before` is an id or "", state -1 any, drive_id NULL any. The
 * visitor returns false to stop. */
enum rc must_check bench_list(struct bench *b, int state, const char *drive_id, const char *before,
	int limit, bool (*visit)(void *arg, const struct run *r), void *arg, struct err *err);
/* *out is the caller's to free; RC_NOT_FOUND when there is none (yet). */
enum rc must_check bench_document(struct bench *b, const char *id, enum run_document which,
	char **out, size_t *len, struct err *err);
/* How many were begun and are not over. Never blocks. */
unsigned bench_active(struct bench *b);
/* Why no benchmark that loads drives can run, or NULL. */
const char *bench_unable(struct bench *b);

/* Own workloads beside the built-in ones, by name. RC_CONFLICT: a built-in name; RC_PRECONDITION:
 * if_version (model/version.h) does not hold. Putting what is there already is no change. */
enum rc must_check bench_workload_each(struct bench *b,
	bool (*visit)(void *arg, const struct workload *w), void *arg, struct err *err);
enum rc must_check bench_workload_find(
	struct bench *b, const char *name, struct workload *out, struct err *err);
enum rc must_check bench_workload_put(struct bench *b, const struct actor *who, struct workload *w,
	uint32_t if_version, bool *created, struct err *err); /* fills config_version */
enum rc must_check bench_workload_delete(struct bench *b, const struct actor *who, const char *name,
	uint32_t if_version, struct err *err);

#endif
