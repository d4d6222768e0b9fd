#include "base/log.h"
#include "core/bench/bench_impl.h"

#include <stdio.h>
#include <string.h>

enum rc bench_workload_find(
	struct bench *b, const char *name, struct workload *out, struct err *err) {
	const struct workload *builtin = workload_builtin(name);
	if (builtin) {
		*out = *builtin;
		return RC_OK;
	}
	struct db_conn *c;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_workload_get(c, name, out, err);
	db_read_end(c);
	return rc;
}

enum rc bench_workload_each(struct bench *b, bool (*visit)(void *arg, const struct workload *w),
	void *arg, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_workload_each(c, visit, arg, err);
	db_read_end(c);
	return rc;
}

static enum rc check_name(const char *name, struct err *err) {
	if (!id_is_name(name))
		return err_field(err, RC_INVALID, "/name",
			"1 to 64 letters, digits, '.', '_' or '-', not beginning with a dot");
	if (workload_builtin(name))
		return err_set(err, RC_CONFLICT, "%s is a built-in workload", name);
	return RC_OK;
}

static enum rc finish(struct db_conn *c, const struct actor *who, const char *action,
	const char *name, enum rc rc, struct err *err) {
	char path[96];
	snprintf(path, sizeof(path), "/workloads/%s", name);
	if (!rc)
		rc = events_audit(c, who, action, path, rc_name(RC_OK), NULL, err);
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

enum rc bench_workload_put(struct bench *b, const struct actor *who, const struct workload *w,
	bool *created, struct err *err) {
	struct workload own = *w;
	struct db_conn *c;
	own.builtin = false;
	enum rc rc = check_name(w->name, err);
	if (rc)
		return rc;
	rc = workload_check(w, "", err);
	if (rc)
		return rc;
	rc = db_write_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_workload_put(c, &own, created, err);
	return finish(c, who, "workload.put", w->name, rc, err);
}

enum rc bench_workload_delete(
	struct bench *b, const struct actor *who, const char *name, struct err *err) {
	struct db_conn *c;
	if (workload_builtin(name))
		return err_set(err, RC_CONFLICT, "%s is a built-in workload", name);
	enum rc rc = db_write_begin(b->control, &c, err);
	if (rc)
		return rc;
	rc = db_workload_delete(c, name, err);
	return finish(c, who, "workload.delete", name, rc, err);
}
