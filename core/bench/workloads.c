#include "core/bench/bench_impl.h"

#include <stdio.h>

#include "model/version.h"

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

/* What stands under the name, as far as the change may find it; *found tells whether anything. */
static enum rc find_for(struct db_conn *c, const char *name, uint32_t if_version,
	struct workload *out, bool *found, struct err *err) {
	*out = (struct workload){.name = ""};
	enum rc rc = db_workload_get(c, name, out, err);
	*found = rc == RC_OK;
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (if_version == VERSION_ANY ||
		if_version == (*found ? out->config_version : VERSION_ABSENT))
		return RC_OK;
	return err_set(err, RC_PRECONDITION, "the workload was changed meanwhile");
}

static bool is_same(const struct workload *a, const struct workload *b) {
	return a->pattern == b->pattern && a->block_bytes == b->block_bytes &&
		a->iodepth == b->iodepth && a->jobs == b->jobs && a->read_pct == b->read_pct &&
		a->size_bytes == b->size_bytes && a->rate_bytes_per_s == b->rate_bytes_per_s &&
		a->direct == b->direct;
}

/* Ends the transaction, with a row of the trail when there was a change. */
static enum rc finish(struct db_conn *c, const struct actor *who, const char *action,
	const char *name, enum rc rc, struct err *err) {
	char path[EVENT_OBJECT_SIZE];
	snprintf(path, sizeof(path), "/workloads/%s", name);
	if (!rc)
		rc = events_audit(c, who, action, path, rc_name(RC_OK), NULL, err);
	if (!rc)
		return db_write_commit(c, err);
	db_write_abort(c);
	return rc;
}

static enum rc check_own(const struct workload *w, struct err *err) {
	enum rc rc = check_name(w->name, err);
	return rc ? rc : workload_check(w, "", err);
}

enum rc bench_workload_put(struct bench *b, const struct actor *who, struct workload *w,
	uint32_t if_version, bool *created, struct err *err) {
	struct workload before;
	struct db_conn *c;
	bool found = false;
	enum rc rc = check_own(w, err);
	if (!rc)
		rc = db_write_begin_for(b->control, who, &c, err);
	if (rc)
		return rc;
	rc = find_for(c, w->name, if_version, &before, &found, err);
	*created = !found;
	if (!rc && found && is_same(&before, w)) {
		*w = before;
		db_write_abort(c);
		return RC_OK;
	}
	w->builtin = false;
	w->config_version =
		found ? before.config_version + 1 : version_first(b->deleted_workload_version);
	if (!rc)
		rc = db_workload_put(c, w, err);
	return finish(c, who, "workload.put", w->name, rc, err);
}

enum rc bench_workload_delete(struct bench *b, const struct actor *who, const char *name,
	uint32_t if_version, struct err *err) {
	struct workload before;
	struct db_conn *c;
	bool found = false;
	if (workload_builtin(name))
		return err_set(err, RC_CONFLICT, "%s is a built-in workload", name);
	enum rc rc = db_write_begin_for(b->control, who, &c, err);
	if (rc)
		return rc;
	rc = find_for(c, name, if_version, &before, &found, err);
	if (!rc)
		rc = db_workload_delete(c, name, err);
	if (!rc && !who->dry_run && before.config_version > b->deleted_workload_version)
		b->deleted_workload_version = before.config_version;
	return finish(c, who, "workload.delete", name, rc, err);
}
