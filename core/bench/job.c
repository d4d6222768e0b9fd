#include "base/thread.h"
#include "core/bench/bench_impl.h"

#include "base/parse.h"

struct run_job *run_job_new(const struct run_spec *spec, struct err *err) {
	struct run_job *j = calloc(1, sizeof(*j));
	if (j)
		j->drives = calloc(spec->drive_count, sizeof(j->drives[0]));
	if (!j || !j->drives) {
		free(j);
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	id_uuid_ordered(j->id);
	j->spec = *spec;
	j->drive_count = spec->drive_count;
	for (unsigned i = 0; i < RUN_MAX_DRIVES; i++)
		j->asks[i] = (struct run_ask){j, i};
	atomic_init(&j->refs, 1);
	pthread_mutex_init(&j->lock, NULL);
	cond_init(&j->changed);
	j->dir_fd = -1;
	j->stopped_ms = NONE;
	return j;
}

struct run_job *run_job_ref(struct run_job *j) {
	atomic_fetch_add(&j->refs, 1);
	return j;
}

void run_job_unref(struct run_job *j) {
	if (!j || atomic_fetch_sub(&j->refs, 1) != 1)
		return;
	if (j->dir_fd >= 0)
		close(j->dir_fd);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j->drives);
	free(j);
}

void run_job_wish(struct run_job *j, enum run_wish wish, const char *by) {
	pthread_mutex_lock(&j->lock);
	if (j->wish == WISH_NONE) {
		j->wish = wish;
		str_copy(j->cancelled_by, sizeof(j->cancelled_by), by);
		pthread_cond_broadcast(&j->changed);
	}
	pthread_mutex_unlock(&j->lock);
}

enum run_wish run_job_wished(struct run_job *j) {
	pthread_mutex_lock(&j->lock);
	enum run_wish wish = j->wish;
	pthread_mutex_unlock(&j->lock);
	return wish;
}

static bool is_wished(const struct run_job *j) {
	return j->wish != WISH_NONE;
}

static bool never(const struct run_job *j unused_arg) {
	return false;
}

static bool wait_for(struct run_job *j, bool (*ready)(const struct run_job *),
	bool (*or_else)(const struct run_job *), int64_t timeout_ms) {
	struct timespec deadline = thread_deadline(timeout_ms);
	bool in_time = timeout_ms != 0;
	pthread_mutex_lock(&j->lock);
	while (in_time && !ready(j) && !or_else(j))
		in_time = cond_wait_until(&j->changed, &j->lock, &deadline);
	bool happened = ready(j) || or_else(j);
	pthread_mutex_unlock(&j->lock);
	return happened;
}

bool run_job_wait(struct run_job *j, bool (*ready)(const struct run_job *j), int64_t timeout_ms) {
	return wait_for(j, ready ? ready : never, is_wished, timeout_ms);
}

bool run_job_await(struct run_job *j, bool (*ready)(const struct run_job *j), int64_t timeout_ms) {
	return wait_for(j, ready, never, timeout_ms);
}

void run_job_copy(struct run_job *j, struct run *out) {
	pthread_mutex_lock(&j->lock);
	*out = j->run;
	pthread_mutex_unlock(&j->lock);
}

/* --- questions to the drives --- */

void run_job_ask_begin(struct run_job *j, unsigned asked) {
	pthread_mutex_lock(&j->lock);
	j->asked = asked;
	j->answered = 0;
	pthread_mutex_unlock(&j->lock);
}

void run_job_answer(struct run_job *j, enum rc rc, const struct err *err) {
	pthread_mutex_lock(&j->lock);
	j->answered++;
	if (rc && !j->ask_err.rc)
		j->ask_err = *err;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	run_job_unref(j);
}

static bool is_answered(const struct run_job *j) {
	return j->ask_err.rc || j->answered == j->asked;
}

enum rc run_job_wished_away(struct err *err) {
	return err_set(err, RC_CANCELLED, "cancelled");
}

enum rc run_job_ask_end(struct run_job *j, const char *what, struct err *err) {
	const bool happened = run_job_wait(j, is_answered, RUN_ASK_MS);
	if (run_job_wished(j) != WISH_NONE)
		return run_job_wished_away(err);
	if (!happened)
		return err_set(
			err, RC_TIMEOUT, "not all drives %s within %d s", what, RUN_ASK_MS / 1000);
	pthread_mutex_lock(&j->lock);
	const enum rc rc = j->ask_err.rc;
	if (rc)
		*err = j->ask_err;
	pthread_mutex_unlock(&j->lock);
	return rc;
}
