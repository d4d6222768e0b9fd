/* Reading runs, their documents and workloads, each in a short snapshot of its own. */
#include <stdlib.h>

#include "core/bench/bench_impl.h"
#include "db/runs.h"

struct overlay {
	struct bench *bench;
	struct run *run; /* a copy that may be changed */
	bool (*visit)(void *arg, const struct run *r);
	void *arg;
};

static bool visit_overlaid(void *arg, const struct run *stored) {
	struct overlay *o = arg;
	*o->run = *stored;
	bench_overlay(o->bench, o->run);
	return o->visit(o->arg, o->run);
}

enum rc bench_list(struct bench *b, int state, const char *drive_id, const char *before, int limit,
	bool (*visit)(void *arg, const struct run *r), void *arg, struct err *err) {
	auto_free struct run *run = malloc(sizeof(*run));
	struct overlay o = {.bench = b, .run = run, .visit = visit, .arg = arg};
	struct db_conn *c = NULL;
	if (!run)
		return err_set(err, RC_NOMEM, "memory is out");
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc == RC_OK)
		rc = db_run_list(c, state, drive_id, before, limit, visit_overlaid, &o, err);
	db_read_end(c);
	return rc;
}

enum rc bench_document(struct bench *b, const char *id, enum run_document which, char **out,
	size_t *len, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc == RC_OK)
		rc = db_run_document(c, id, which, out, len, err);
	db_read_end(c);
	return rc;
}

enum rc bench_workload_each(struct bench *b, bool (*visit)(void *arg, const struct workload *w),
	void *arg, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc == RC_OK)
		rc = db_workload_each(c, visit, arg, err);
	db_read_end(c);
	return rc;
}
