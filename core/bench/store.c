#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/bench/bench_impl.h"
#include "core/once.h"

#include <stdio.h>

#define EVENT_DATA_MAX 1024
#define END_PAUSE_MS 500 /* the first; doubled from time to time */
#define END_PAUSE_MAX_MS 15000

static void run_path(const char *id, char out[64]) {
	snprintf(out, 64, "/benchmarks/%s", id);
}

static void state_json(struct buf *out, const struct run *r) {
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "state", run_state_name(r->state));
	if (r->reason[0])
		jsonw_str(&w, "reason", r->reason);
	jsonw_object_end(&w);
}

static enum rc add_event(struct bench *b, struct db_conn *c, const struct run *r,
	const struct actor *who, struct err *err) {
	char path[64];
	run_path(r->id, path);
	struct buf data;
	buf_init(&data, EVENT_DATA_MAX);
	state_json(&data, r);
	enum rc rc = events_add(b->events, c, EVENT_RUN_STATE, who, path, buf_str(&data), err);
	buf_release(&data);
	return rc;
}

/* Ends the transaction by what became of it, and tells of it. */
static enum rc commit(struct bench *b, struct db_conn *c, enum rc rc, struct err *err) {
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	if (!rc)
		events_publish(b->events);
	return rc;
}

void run_store_prepare(struct run_job *j, const struct actor *who) {
	j->run = (struct run){.state = RUN_QUEUED,
		.created_ms = clock_wall_ms(),
		.started_ms = NONE,
		.ended_ms = NONE,
		.read_bytes_per_s = NONE,
		.write_bytes_per_s = NONE,
		.spec = j->spec};
	str_copy(j->run.id, sizeof(j->run.id), j->id);
	str_copy(j->run.owner, sizeof(j->run.owner), who->name);
}

enum rc run_store_new(
	struct bench *b, struct run_job *j, const struct actor *who, struct err *err) {
	char path[64];
	struct db_conn *c;
	run_path(j->id, path);
	enum rc rc = db_write_begin_for(b->control, who, &c, err);
	if (rc)
		return rc;
	rc = db_run_insert(c, &j->run, err);
	if (!rc)
		rc = add_event(b, c, &j->run, who, err);
	if (!rc)
		rc = events_audit(c, who, "benchmark.create", path, rc_name(RC_OK), NULL, err);
	if (!rc)
		rc = once_keep(c, who, path, err);
	return commit(b, c, rc, err);
}

static void move(struct run *r, enum run_state to, const char *reason) {
	r->state = to;
	str_copy(r->reason, sizeof(r->reason), reason);
	if (to == RUN_PREPARING)
		r->started_ms = clock_wall_ms();
	if (!run_state_is_final(to))
		return;
	r->ended_ms = clock_wall_ms();
	r->read_bytes_per_s = r->write_bytes_per_s = NONE;
	if (to == RUN_COMPLETED)
		r->progress = 1;
}

static enum rc write_state(struct bench *b, struct db_conn *c, const struct run *r,
	const struct priv_run_started *process, const struct run_documents *d, struct err *err) {
	enum rc rc = db_run_update(c, r, err);
	if (!rc && (run_state_is_final(r->state) || process->pid))
		rc = db_run_set_process(c, r->id, process->pid, process->start_ticks, err);
	if (!rc && d && (d->result || d->series || d->fio))
		rc = db_run_set_result(c, r->id, d->result, d->series, d->fio, err);
	if (!rc)
		rc = add_event(b, c, r, &actor_system, err);
	return rc;
}

/* The run as it is after the move. */
static enum rc moved(struct run_job *j, enum run_state to, const char *reason, struct run *out,
	struct err *err) {
	run_job_copy(j, out);
	if (!run_state_may_move(out->state, to))
		return err_set(err, RC_INTERNAL, "a run may not move from %s to %s",
			run_state_name(out->state), run_state_name(to));
	move(out, to, reason);
	return RC_OK;
}

static enum rc store_moved(struct bench *b, struct run_job *j, const struct run *r,
	const struct run_documents *documents, struct err *err) {
	struct priv_run_started process = {0};
	struct db_conn *c;
	enum rc rc = db_write_begin(b->control, &c, err);
	if (rc)
		return rc;
	if (r->state == RUN_RUNNING && j->has_started)
		process = j->started;
	rc = commit(b, c, write_state(b, c, r, &process, documents, err), err);
	if (rc)
		return rc;
	pthread_mutex_lock(&j->lock);
	j->run = *r;
	pthread_mutex_unlock(&j->lock);
	return RC_OK;
}

enum rc run_store_state(struct bench *b, struct run_job *j, enum run_state to, const char *reason,
	const struct run_documents *documents, struct err *err) {
	struct run r;
	enum rc rc = moved(j, to, reason, &r, err);
	return rc ? rc : store_moved(b, j, &r, documents, err);
}

/* --- an end that the store does not take ------------------------------------------------------ */

bool run_store_recovers(enum rc rc) {
	return rc == RC_NO_SPACE || rc == RC_STORE || rc == RC_IO || rc == RC_NOMEM;
}

/* Shown from memory with its documents; NULL: no more. */
static void keep(struct bench *b, struct run_job *j, const struct run *r,
	const struct run_documents *documents) {
	pthread_mutex_lock(&j->lock);
	if (documents) {
		j->run = *r;
		j->run.unrecorded = true;
	}
	j->kept = documents;
	pthread_mutex_unlock(&j->lock);
	bench_note_unrecorded(b, documents != NULL);
}

static enum rc store_later(struct bench *b, struct run_job *j, const struct run *r,
	const struct run_documents *documents, struct err *err) {
	int64_t pause_ms = END_PAUSE_MS;
	bool stops;
	enum rc rc;
	keep(b, j, r, documents);
	do {
		stops = bench_pause(b, pause_ms);
		rc = store_moved(b, j, r, documents, err);
		pause_ms = pause_ms < END_PAUSE_MAX_MS / 2 ? 2 * pause_ms : END_PAUSE_MAX_MS;
	} while (run_store_recovers(rc) && !stops);
	keep(b, j, r, NULL);
	return rc;
}

void run_store_end(struct bench *b, struct run_job *j, enum run_state to, const char *reason,
	const struct run_documents *documents) {
	struct run r;
	struct err err;
	metric_add(METRIC_RUNS_FAILED, to == RUN_FAILED);
	enum rc rc = moved(j, to, reason, &r, &err);
	if (!rc)
		rc = store_moved(b, j, &r, documents, &err);
	if (run_store_recovers(rc)) {
		log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, "a run's end waits for the store",
			&err);
		rc = store_later(b, j, &r, documents, &err);
	}
	if (rc)
		log_err(LOG_LEVEL_ERROR, BENCH_SUBSYSTEM, "a run's end could not be stored", &err);
}

static enum rc interrupt(struct bench *b, struct db_conn *c, const char *id, struct err *err) {
	struct run r;
	enum rc rc = db_run_get(c, id, &r, err);
	if (rc)
		return rc;
	move(&r, RUN_INTERRUPTED, "the daemon ended while the run was open");
	const struct priv_run_started none = {0};
	return write_state(b, c, &r, &none, NULL, err);
}

enum rc run_store_interrupted(struct bench *b, const char *id, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(b->control, &c, err);
	return rc ? rc : commit(b, c, interrupt(b, c, id, err), err);
}

enum rc run_store_get(struct bench *b, const char *id, struct run *out, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_run_get(c, id, out, err);
	db_read_end(c);
	return rc;
}

enum rc run_store_delete(
	struct bench *b, const struct actor *who, const char *id, struct err *err) {
	char path[64];
	struct db_conn *c;
	run_path(id, path);
	enum rc rc = db_write_begin_for(b->control, who, &c, err);
	if (rc)
		return rc;
	rc = db_run_delete(c, id, err);
	if (!rc)
		rc = events_audit(c, who, "benchmark.delete", path, rc_name(RC_OK), NULL, err);
	if (!rc)
		rc = events_add(
			b->events, c, EVENT_RUN_STATE, who, path, "{\"state\":\"deleted\"}", err);
	return commit(b, c, rc, err);
}

void run_store_audit(struct bench *b, const struct actor *who, const char *action, const char *id) {
	char path[64];
	struct db_conn *c;
	struct err err;
	run_path(id, path);
	enum rc rc = db_write_begin(b->control, &c, &err);
	if (!rc)
		rc = commit(
			b, c, events_audit(c, who, action, path, rc_name(RC_OK), NULL, &err), &err);
	if (rc)
		log_err(LOG_LEVEL_WARNING, BENCH_SUBSYSTEM, action, &err);
}
