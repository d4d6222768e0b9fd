/*
 * What the files of core/bench share. A run's job is one for queue and worker; its answers come
 * from foreign threads, which hold a reference and touch nothing else.
 * Locks: bench.lock before run_job.lock.
 */
#ifndef DRIVEWATT_CORE_BENCH_IMPL_H
#define DRIVEWATT_CORE_BENCH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/id.h"
#include "core/bench.h"
#include "core/privc.h"
#include "db/runs.h"

#define BENCH_SUBSYSTEM "bench"

/* What a run must know of a drive, taken when it was submitted. */
struct run_drive {
	struct drive drive;
	uint32_t nsid;
	uint32_t scale; /* 1 but for simulated drives */
	bool has_states;
	char space[ID_HASH_SIZE]; /* what runs exclude each other by: the namespace */
	char subsystem_nqn[224];
};

struct run_documents {
	const char *result, *series, *fio; /* each may be NULL */
};

enum run_wish { WISH_NONE, WISH_CANCEL, WISH_STOP };

/* What a run waits for from one of its drives. */
struct run_ask {
	struct run_job *job;
	unsigned drive;
};

struct run_job {
	struct run_job *next; /* bench.lock, likewise the next three */
	bool stored;
	bool taken;
	bool alone; /* no other run was active since it was taken */

	/* constant after the submit */
	char id[RUN_ID_SIZE];
	struct run_spec spec;
	unsigned drive_count;
	struct run_drive *drives; /* owned */
	struct run_ask asks[RUN_MAX_DRIVES];

	atomic_uint refs;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct run run; /* as stored, with live progress; an end also before it is stored */
	const struct run_documents *kept; /* of such an end; the worker's own */
	enum run_wish wish;
	char cancelled_by[65];
	unsigned asked, answered; /* drives, in the step at hand */
	struct err ask_err;       /* the first that went wrong */
	bool has_started, has_exited;
	struct priv_run_started started;
	int dir_fd;
	int64_t stopped_ms; /* wall time of our first signal; NONE. The worker's own */
	struct priv_run_exited exited;
	int64_t late_before; /* METRIC_SIM_LATE when the load began. The worker's own */
};

struct bench {
	struct bench_config config;
	char host_id[37];
	struct db *control;
	struct events *events;
	struct energy *energy;
	struct hosts *hosts;
	struct drives *drives;
	struct power *power;
	struct privc *privc; /* NULL without a helper */
	struct timers *timers;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
	unsigned queued, active;
	unsigned unrecorded;   /* active ones that are over, but not in the store yet */
	struct run_job *first; /* queued and active ones in order of arrival */
	unsigned worker_count;
	pthread_t workers[BENCH_MAX_RUNS];
	uint32_t deleted_workload_version; /* the highest; the store's writer's own */
};

/* job.c */
struct run_job *run_job_new(const struct run_spec *spec, struct err *err);
struct run_job *run_job_ref(struct run_job *j);
void run_job_unref(struct run_job *j);
void run_job_wish(struct run_job *j, enum run_wish wish, const char *by);
enum run_wish run_job_wished(struct run_job *j);
/* Waits until ready says so or somebody wishes an end; false after timeout_ms. ready NULL: only
 * the wish. */
bool run_job_wait(struct run_job *j, bool (*ready)(const struct run_job *j), int64_t timeout_ms);
/* Likewise, whatever is wished. */
bool run_job_await(struct run_job *j, bool (*ready)(const struct run_job *j), int64_t timeout_ms);
/* Fills err: somebody wished the run to end. */
enum rc run_job_wished_away(struct err *err);
void run_job_copy(struct run_job *j, struct run *out);
/* A question to all drives: run_job_ask_begin, then run_job_answer for each of `asked` from
 * whatever thread, which gives a reference back; run_job_ask_end waits for them, a wish, the first
 * error or RUN_ASK_MS. */
#define RUN_ASK_MS 30000
void run_job_ask_begin(struct run_job *j, unsigned asked);
void run_job_answer(struct run_job *j, enum rc rc, const struct err *err);
enum rc must_check run_job_ask_end(struct run_job *j, const char *what, struct err *err);

/* interlock.c: everything that can be checked at the submit: the request alone, then with the
 * drives, which fills j->drives. */
enum rc must_check interlock_check_spec(const struct run_spec *s, struct err *err);
enum rc must_check interlock_check(struct bench *b, struct run_job *j, struct err *err);
/* The same when its turn has come, with what the drives are now; changes nothing in j. */
enum rc must_check interlock_check_again(struct bench *b, const struct run_job *j, struct err *err);
bool run_jobs_collide(const struct run_job *a, const struct run_job *b);
/* bench.c: is the namespace in the hands of a run other than `run_id` that is active now? */
bool bench_holds(struct bench *b, const char *space, const char *run_id);
/* One more run is over and waits for the store, or one less: meanwhile no other is begun. */
void bench_note_unrecorded(struct bench *b, bool unrecorded);
/* True as soon as the daemon stops, else false after that time. */
bool bench_pause(struct bench *b, int64_t ms);

/* store.c: moves in one transaction with their event; j->run follows what is stored. */
void run_store_prepare(struct run_job *j, const struct actor *who);
enum rc must_check run_store_new(
	struct bench *b, struct run_job *j, const struct actor *who, struct err *err);
/* To RUN_RUNNING with fio's process, if it has started. */
enum rc must_check run_store_state(struct bench *b, struct run_job *j, enum run_state to,
	const char *reason, const struct run_documents *documents, struct err *err);
/* May the store take later what it has refused so? */
bool run_store_recovers(enum rc rc);
/* The final move: while the store cannot take it the end is shown from memory and tried again,
 * until it is stored or the daemon stops. Bounded, since it holds up the worker. */
void run_store_end(struct bench *b, struct run_job *j, enum run_state to, const char *reason,
	const struct run_documents *documents);
/* An open run of an earlier life: interrupted. */
enum rc must_check run_store_interrupted(struct bench *b, const char *id, struct err *err);
enum rc must_check run_store_get(struct bench *b, const char *id, struct run *out, struct err *err);
enum rc must_check run_store_delete(
	struct bench *b, const struct actor *who, const char *id, struct err *err);
/* A store that fails is logged: the action itself must not depend on it. */
void run_store_audit(struct bench *b, const struct actor *who, const char *action, const char *id);

/* run.c: the whole life of a run that was taken from the queue. */
void run_carry_out(struct bench *b, struct run_job *j);
/* The end of one that no worker took, by what is wished. */
enum rc must_check run_end_unbegun(
	struct bench *b, struct run_job *j, enum run_wish wish, const char *by, struct err *err);

#endif
