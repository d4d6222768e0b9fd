/* What a run's drives are when its turn has come: much may have happened since the submit. */
#include "core/bench/run_impl.h"

static void on_identified(void *arg, const struct drive_reply *r) {
	const struct run_ask *a = arg;
	const struct drive *d = &a->job->drives[a->drive].drive;
	struct err err;
	if (r->rc)
		err_set(&err, r->rc, "drive %s (%s) cannot be looked at: %.120s", d->name,
			d->serial, r->err.msg);
	run_job_answer(a->job, r->rc, &err);
}

enum rc run_identify_all(struct bench *b, struct run_job *j, struct err *err) {
	run_job_ask_begin(j, j->drive_count);
	for (unsigned i = 0; i < j->drive_count; i++) {
		run_job_ref(j);
		enum rc rc = drives_submit(b->drives, j->drives[i].drive.id, DRIVE_IDENTIFY, NULL,
			true, on_identified, &j->asks[i], err);
		if (rc) {
			run_job_unref(j);
			return rc;
		}
	}
	return run_job_ask_end(j, "could be looked at", err);
}
