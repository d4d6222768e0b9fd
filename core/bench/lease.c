/* The power state that a run wants, on all its drives at once. */
#include "base/clock.h"
#include "core/bench/run_impl.h"

#define LEASE_WAIT_MS 30000
/* Beyond the load itself: settling of other drives, fio's start and end. */
#define LEASE_MARGIN_MS 120000

static enum rc judge_lease(
	const struct run_lease *l, const struct power_outcome *o, struct err *err) {
	const struct drive *d = &l->job->drives[l->drive].drive;
	int8_t wanted = l->job->spec.power_state;
	if (o->rc)
		return err_set(err, o->rc, "drive %s (%s), power state %d: %.120s", d->name,
			d->serial, wanted, o->err.msg);
	if (o->observed_state != wanted)
		return err_set(err, RC_CONFLICT,
			"drive %s (%s) is in power state %d, not %d, held by %s", d->name,
			d->serial, o->observed_state, wanted, o->held_by);
	return RC_OK;
}

static void leased(void *arg, const struct power_outcome *o) {
	const struct run_lease *l = arg;
	struct run_job *j = l->job;
	struct err err;
	enum rc rc = judge_lease(l, o, &err);
	pthread_mutex_lock(&j->lock);
	j->leases_done++;
	if (rc && !j->lease_err.rc)
		j->lease_err = err;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	run_job_unref(j);
}

static bool leases_answered(const struct run_job *j) {
	return j->lease_err.rc || j->leases_done == j->leases_wanted;
}

static enum rc lease_one(
	struct bench *b, struct run_job *j, unsigned i, int64_t expires_ms, struct err *err) {
	run_job_ref(j);
	enum rc rc = power_lease(b->power, j->drives[i].drive.id, j->id, j->spec.power_state,
		expires_ms, leased, &j->leases[i], err);
	if (rc)
		run_job_unref(j);
	return rc;
}

enum rc run_lease_all(struct bench *b, struct run_job *j, struct err *err) {
	if (j->spec.power_state < 0)
		return RC_OK;
	int64_t expires_ms =
		clock_wall_ms() + b->config.settle_ms + run_load_ms(j) + LEASE_MARGIN_MS;
	for (unsigned i = 0; i < j->drive_count; i++)
		j->leases_wanted += j->drives[i].has_states;
	for (unsigned i = 0; i < j->drive_count; i++) {
		enum rc rc = RC_OK;
		if (j->drives[i].has_states)
			rc = lease_one(b, j, i, expires_ms, err);
		if (rc)
			return rc;
	}
	bool happened = run_job_wait(j, leases_answered, LEASE_WAIT_MS);
	if (run_job_wished(j) != WISH_NONE)
		return run_wished_away(err);
	if (!happened)
		return err_set(err, RC_TIMEOUT, "not all drives took their power state within %d s",
			LEASE_WAIT_MS / 1000);
	pthread_mutex_lock(&j->lock);
	if (j->lease_err.rc)
		*err = j->lease_err;
	enum rc rc = j->lease_err.rc;
	pthread_mutex_unlock(&j->lock);
	return rc;
}
