/* The power state that a run wants, on all its drives at once. */
#include "base/clock.h"
#include "core/bench/run_impl.h"

/* Beyond the load itself: settling of other drives, fio's start and end. */
#define LEASE_MARGIN_MS 120000

static enum rc judge_lease(
	const struct run_ask *a, const struct power_outcome *o, struct err *err) {
	const struct drive *d = &a->job->drives[a->drive].drive;
	int8_t wanted = a->job->spec.power_state;
	if (o->rc)
		return err_set(err, o->rc, "drive %s (%s), power state %d: %.120s", d->name,
			d->serial, wanted, o->err.msg);
	if (o->observed_state != wanted)
		return err_set(err, RC_CONFLICT,
			"drive %s (%s) is in power state %d, not %d, held by %s", d->name,
			d->serial, o->observed_state, wanted, o->held_by);
	return RC_OK;
}

static void on_leased(void *arg, const struct power_outcome *o) {
	const struct run_ask *a = arg;
	struct err err;
	enum rc rc = judge_lease(a, o, &err);
	run_job_answer(a->job, rc, &err);
}

static enum rc lease_one(
	struct bench *b, struct run_job *j, unsigned i, int64_t expires_ms, struct err *err) {
	if (!j->drives[i].has_states)
		return RC_OK;
	run_job_ref(j);
	enum rc rc = power_lease(b->power, j->drives[i].drive.id, j->id, j->spec.power_state,
		expires_ms, on_leased, &j->asks[i], err);
	if (rc)
		run_job_unref(j);
	return rc;
}

enum rc run_lease_all(struct bench *b, struct run_job *j, struct err *err) {
	if (j->spec.power_state < 0)
		return RC_OK;
	int64_t expires_ms =
		clock_wall_ms() + b->config.settle_ms + run_load_ms(j) + LEASE_MARGIN_MS;
	unsigned asked = 0;
	for (unsigned i = 0; i < j->drive_count; i++)
		asked += j->drives[i].has_states;
	run_job_ask_begin(j, asked);
	for (unsigned i = 0; i < j->drive_count; i++) {
		enum rc rc = lease_one(b, j, i, expires_ms, err);
		if (rc)
			return rc;
	}
	return run_job_ask_end(j, "took their power state", err);
}
