#include "core/bench.h"

#include <string.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/bench/bench_impl.h"

/* --- the queue --------------------------------------------------------------------------------
 * One list in order of arrival. A run goes when no active run and none before it in the list
 * shares a namespace with it: drives are given in order, and a busy drive holds up nobody who
 * does not want it.
 */

static bool may_go(const struct bench *b, const struct run_job *j) {
	bool before = true;
	for (const struct run_job *o = b->first; o; o = o->next) {
		if (o == j)
			before = false;
		else if ((before || o->taken) && run_jobs_collide(o, j))
			return false;
	}
	return true;
}

/* None while an end waits for the store: what is not stored must not grow. */
static struct run_job *next_to_go(const struct bench *b) {
	if (b->unrecorded)
		return NULL;
	for (struct run_job *j = b->first; j; j = j->next) {
		if (j->stored && !j->taken && may_go(b, j))
			return j;
	}
	return NULL;
}

/* Out of the queue, or back into it. */
static void take_queued(struct bench *b, struct run_job *j, bool taken) {
	const unsigned one = taken ? 1 : -1u;
	j->taken = taken;
	b->queued -= one;
	b->active += one;
}

static void mark_taken(struct bench *b, struct run_job *j) {
	j->alone = b->active == 0;
	for (struct run_job *o = b->first; o && !j->alone; o = o->next) {
		if (o->taken)
			o->alone = false;
	}
	take_queued(b, j, true);
}

static struct run_job *take(struct bench *b) {
	struct run_job *j = NULL;
	pthread_mutex_lock(&b->lock);
	while (!b->stopping && !(j = next_to_go(b)))
		pthread_cond_wait(&b->changed, &b->lock);
	if (j)
		mark_taken(b, j);
	pthread_mutex_unlock(&b->lock);
	return j;
}

static void append(struct bench *b, struct run_job *j) {
	struct run_job **end = &b->first;
	while (*end)
		end = &(*end)->next;
	*end = run_job_ref(j);
}

static void unlink_job(struct bench *b, struct run_job *j) {
	struct run_job **at = &b->first;
	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	run_job_unref(j);
}

/* Of a job that was taken. */
static void drop(struct bench *b, struct run_job *j) {
	pthread_mutex_lock(&b->lock);
	b->active--;
	unlink_job(b, j);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static struct run_job *find(const struct bench *b, const char *id) {
	for (struct run_job *j = b->first; j; j = j->next) {
		if (strcmp(j->id, id) == 0)
			return j;
	}
	return NULL;
}

bool bench_holds(struct bench *b, const char *space, const char *run_id) {
	bool held = false;
	pthread_mutex_lock(&b->lock);
	for (const struct run_job *j = b->first; j; j = j->next) {
		const bool is_other = j->taken && strcmp(j->id, run_id) != 0;
		for (unsigned i = 0; is_other && i < j->drive_count; i++)
			held |= strcmp(j->drives[i].space, space) == 0;
	}
	pthread_mutex_unlock(&b->lock);
	return held;
}

void bench_note_unrecorded(struct bench *b, bool unrecorded) {
	pthread_mutex_lock(&b->lock);
	b->unrecorded += unrecorded ? 1 : -1u;
	metric_set(METRIC_RUNS_UNRECORDED, b->unrecorded);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

bool bench_pause(struct bench *b, int64_t ms) {
	const struct timespec deadline = thread_deadline(ms);
	pthread_mutex_lock(&b->lock);
	while (!b->stopping && cond_wait_until(&b->changed, &b->lock, &deadline))
		;
	const bool stops = b->stopping;
	pthread_mutex_unlock(&b->lock);
	return stops;
}

static void *work(void *arg) {
	struct bench *b = arg;
	struct run_job *j;
	while ((j = take(b))) {
		run_carry_out(b, j);
		drop(b, j);
	}
	return NULL;
}

/* --- life --------------------------------------------------------------------------------------
 */

static enum rc start_workers(struct bench *b, struct err *err) {
	if (b->config.max_runs > BENCH_MAX_RUNS)
		return err_field(err, RC_INVALID, "max-runs", "at most %d", BENCH_MAX_RUNS);
	for (; b->worker_count < b->config.max_runs; b->worker_count++) {
		enum rc rc = thread_start(&b->workers[b->worker_count], "run", work, b, err);
		if (rc)
			return rc;
	}
	return RC_OK;
}

struct bench *bench_new(const struct bench_config *config, struct db *control,
	struct events *events, struct energy *energy, struct hosts *hosts, struct drives *drives,
	struct power *power, struct privc *privc, struct timers *timers, struct err *err) {
	struct bench *b = calloc(1, sizeof(*b));
	if (!b) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	b->config = *config;
	str_copy(b->host_id, sizeof(b->host_id), config->host_id);
	b->config.host_id = b->host_id;
	b->control = control;
	b->events = events;
	b->energy = energy;
	b->hosts = hosts;
	b->drives = drives;
	b->power = power;
	b->privc = privc;
	b->timers = timers;
	pthread_mutex_init(&b->lock, NULL);
	cond_init(&b->changed);
	if (start_workers(b, err)) {
		bench_free(b);
		return NULL;
	}
	return b;
}

static void stop_all(struct bench *b) {
	pthread_mutex_lock(&b->lock);
	b->stopping = true;
	for (struct run_job *j = b->first; j; j = j->next)
		run_job_wish(j, WISH_STOP, "");
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

void bench_free(struct bench *b) {
	if (!b)
		return;
	stop_all(b);
	for (unsigned i = 0; i < b->worker_count; i++)
		pthread_join(b->workers[i], NULL);
	while (b->first) {
		struct run_job *j = b->first;
		struct err err;
		if (run_end_unbegun(b, j, WISH_STOP, "", &err))
			log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, j->id, &err);
		unlink_job(b, j);
	}
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* --- leftovers of an earlier life
 * ----------------------------------------------------------------*/

#define RECOVER_MAX 512

struct leftover {
	char id[RUN_ID_SIZE];
	int64_t pid;
	uint64_t start_ticks;
};

struct leftovers {
	size_t count;
	struct leftover all[RECOVER_MAX];
};

static bool take_leftover(void *arg, const struct run *r, int64_t pid, uint64_t start_ticks) {
	struct leftovers *l = arg;
	struct leftover *o = &l->all[l->count++];
	*o = (struct leftover){.pid = pid, .start_ticks = start_ticks};
	str_copy(o->id, sizeof(o->id), r->id);
	return l->count < RECOVER_MAX;
}

static enum rc read_leftovers(struct bench *b, struct leftovers *out, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc)
		return rc;
	out->count = 0;
	rc = db_run_each_open(c, take_leftover, out, err);
	db_read_end(c);
	return rc;
}

static void reap(struct bench *b, const struct leftover *o) {
	bool was_alive = false;
	struct err err;
	if (!b->privc || o->pid <= 0)
		return;
	if (privc_reap(b->privc, o->pid, o->start_ticks, &was_alive, &err))
		log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, "fio of an earlier life", &err);
	else if (was_alive)
		log_warning(BENCH_SUBSYSTEM, "ended fio %lld of run %s", (long long)o->pid, o->id);
}

enum rc bench_recover(struct bench *b, struct err *err) {
	auto_free struct leftovers *l = malloc(sizeof(*l));
	if (!l)
		return err_set(err, RC_NOMEM, "out of memory");
	do {
		enum rc rc = read_leftovers(b, l, err);
		for (size_t i = 0; !rc && i < l->count; i++) {
			reap(b, &l->all[i]);
			rc = run_store_interrupted(b, l->all[i].id, err);
		}
		if (rc)
			return rc;
	} while (l->count == RECOVER_MAX);
	return RC_OK;
}

/* --- requests ------------------------------------------------------------------------------------
 */

static enum rc reserve(struct bench *b, struct run_job *j, struct err *err) {
	enum rc rc = RC_OK;
	pthread_mutex_lock(&b->lock);
	if (b->stopping)
		rc = err_set(err, RC_UNAVAILABLE, "the daemon is stopping");
	else if (b->queued >= b->config.max_queued)
		rc = err_set(err, RC_FULL, "%u runs are waiting already", b->queued);
	else
		append(b, j);
	b->queued += rc == RC_OK;
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* In the list before it is stored, so that who reads the row finds the job; to be taken after.
 * Not stored under the lock, since the store may be slow. */
static enum rc enqueue(struct bench *b, struct run_job *j, const struct actor *who,
	struct run *queued, struct err *err) {
	run_store_prepare(j, who);
	run_job_copy(j, queued); /* before a worker moves it on */
	enum rc rc = reserve(b, j, err);
	if (rc)
		return rc;
	rc = run_store_new(b, j, who, err);
	pthread_mutex_lock(&b->lock);
	j->stored = rc == RC_OK && !who->dry_run;
	if (!j->stored) {
		b->queued--;
		unlink_job(b, j);
	}
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* What was in use may be so no more: a second try finds out. */
static void look_again(struct bench *b, const struct run_spec *s) {
	for (unsigned i = 0; i < s->drive_count; i++)
		(void)!drives_submit(
			b->drives, s->drives[i], DRIVE_IDENTIFY, NULL, true, NULL, NULL, NULL);
}

enum rc bench_submit(struct bench *b, const struct actor *who, const struct run_spec *spec,
	struct run *out, struct err *err) {
	enum rc rc = interlock_check_spec(spec, err);
	if (rc)
		return rc;
	struct run_job *j = run_job_new(spec, err);
	if (!j)
		return RC_NOMEM;
	rc = interlock_check(b, j, err);
	if (rc == RC_CONFLICT)
		look_again(b, spec);
	if (!rc)
		rc = enqueue(b, j, who, out, err);
	run_job_unref(j);
	return rc;
}

/* Live progress laid over a row of the store; false when there is no such job. */
static bool overlay(struct bench *b, struct run *r) {
	pthread_mutex_lock(&b->lock);
	struct run_job *j = find(b, r->id);
	if (j)
		run_job_copy(j, r);
	pthread_mutex_unlock(&b->lock);
	return j != NULL;
}

static void tell_lost(struct run *r) {
	r->state = RUN_INTERRUPTED;
	str_copy(r->reason, sizeof(r->reason), "its end could not be stored");
}

enum rc bench_get(struct bench *b, const char *id, struct run *out, struct err *err) {
	enum rc rc = run_store_get(b, id, out, err);
	if (rc || run_state_is_final(out->state) || overlay(b, out))
		return rc;
	/* It has ended since it was read, or the store has failed at its end. */
	rc = run_store_get(b, id, out, err);
	if (!rc && !run_state_is_final(out->state))
		tell_lost(out);
	return rc;
}

struct listing {
	struct bench *bench;
	bool (*visit)(void *arg, const struct run *r);
	void *arg;
};

static bool show(void *arg, const struct run *r) {
	const struct listing *l = arg;
	struct run live = *r;
	if (!run_state_is_final(live.state))
		overlay(l->bench, &live);
	return l->visit(l->arg, &live);
}

enum rc bench_list(struct bench *b, int state, const char *drive_id, const char *before, int limit,
	bool (*visit)(void *arg, const struct run *r), void *arg, struct err *err) {
	struct listing l = {b, visit, arg};
	struct db_conn *c;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_run_list(c, state, drive_id, before, limit, show, &l, err);
	db_read_end(c);
	return rc;
}

static const char *kept_document(const struct run_documents *kept, enum run_document which) {
	const char *const texts[] = {[RUN_DOCUMENT_RESULT] = kept->result,
		[RUN_DOCUMENT_SERIES] = kept->series,
		[RUN_DOCUMENT_FIO] = kept->fio};
	return texts[which];
}

/* Of an end that waits for the store; NULL when there is none. The caller's to free. */
static char *copy_kept(struct bench *b, const char *id, enum run_document which) {
	char *copy = NULL;
	pthread_mutex_lock(&b->lock);
	struct run_job *j = find(b, id);
	if (j) {
		pthread_mutex_lock(&j->lock);
		const char *text = j->kept ? kept_document(j->kept, which) : NULL;
		copy = text ? strdup(text) : NULL;
		pthread_mutex_unlock(&j->lock);
	}
	pthread_mutex_unlock(&b->lock);
	return copy;
}

enum rc bench_document(struct bench *b, const char *id, enum run_document which, char **out,
	size_t *len, struct err *err) {
	struct db_conn *c;
	*out = copy_kept(b, id, which);
	*len = *out ? strlen(*out) : 0;
	if (*out)
		return RC_OK;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_run_document(c, id, which, out, len, err);
	db_read_end(c);
	return rc;
}

unsigned bench_active(struct bench *b) {
	pthread_mutex_lock(&b->lock);
	unsigned n = b->active - b->unrecorded;
	pthread_mutex_unlock(&b->lock);
	return n;
}

/* The job to cancel, with a reference, when it is still there. A queued one is taken, so that no
 * worker begins it. */
static struct run_job *take_to_cancel(struct bench *b, const char *id, bool *queued) {
	pthread_mutex_lock(&b->lock);
	struct run_job *j = find(b, id);
	*queued = j && !j->taken;
	if (*queued)
		take_queued(b, j, true);
	if (j)
		run_job_ref(j);
	pthread_mutex_unlock(&b->lock);
	return j;
}

/* Goes on waiting when the store does not take its end. */
static enum rc cancel_queued(
	struct bench *b, const struct actor *who, struct run_job *j, struct err *err) {
	enum rc rc = run_end_unbegun(b, j, WISH_CANCEL, who->name, err);
	if (!rc) {
		drop(b, j);
		return RC_OK;
	}
	pthread_mutex_lock(&b->lock);
	take_queued(b, j, false);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

static enum rc cancel_active(const struct actor *who, struct run_job *j, struct err *err) {
	struct run r;
	run_job_copy(j, &r);
	if (run_state_is_final(r.state))
		return err_set(err, RC_CONFLICT, "the run is over");
	run_job_wish(j, WISH_CANCEL, who->name);
	return RC_OK;
}

/* Could it be cancelled? */
static enum rc check_open(struct bench *b, struct run *r, struct err *err) {
	const bool open = overlay(b, r) && !run_state_is_final(r->state);
	return open ? RC_OK : err_set(err, RC_CONFLICT, "the run is over");
}

enum rc bench_cancel(struct bench *b, const struct actor *who, const char *id, struct err *err) {
	struct run r;
	enum rc rc = run_store_get(b, id, &r, err);
	if (rc)
		return rc;
	bool queued;
	if (who->dry_run)
		return check_open(b, &r, err);
	struct run_job *j = take_to_cancel(b, id, &queued);
	if (!j)
		return err_set(err, RC_CONFLICT, "the run is over");
	rc = queued ? cancel_queued(b, who, j, err) : cancel_active(who, j, err);
	if (!rc)
		run_store_audit(b, who, "benchmark.cancel", id);
	run_job_unref(j);
	return rc;
}

enum rc bench_delete(struct bench *b, const struct actor *who, const char *id, struct err *err) {
	struct run r;
	enum rc rc = bench_get(b, id, &r, err);
	if (rc)
		return rc;
	if (!run_state_is_final(r.state))
		return err_set(err, RC_CONFLICT, "the run is %s: cancel it first",
			run_state_name(r.state));
	if (r.unrecorded)
		return err_set(err, RC_STORE, "the run's end is not stored yet");
	return run_store_delete(b, who, id, err);
}
