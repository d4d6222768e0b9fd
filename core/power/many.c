#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "core/power/power_impl.h"

/* Changes of many drives: a task, whose targets are changed as one drive is. */

#define DRIVE_PATH "/drives/"

static const char *drive_of(const char *object) {
	return object + sizeof(DRIVE_PATH) - 1;
}

static void write_result(const struct power_outcome *o, char result[TASK_RESULT_SIZE]) {
	char state[16] = "null";
	if (o->observed_state >= 0)
		snprintf(state, sizeof(state), "%d", o->observed_state);
	snprintf(result, TASK_RESULT_SIZE, "{\"observed_state\":%s,\"in_sync\":%s,\"recorded\":%s}",
		state, o->in_sync ? "true" : "false", o->recorded ? "true" : "false");
}

static void on_outcome(void *arg, const struct power_outcome *o) {
	char result[TASK_RESULT_SIZE];
	write_result(o, result);
	task_step_done(arg, o->rc, &o->err, result);
}

/* One that is gone need not be tried again and again. */
static enum rc check_here(struct power *p, const char *drive_id, struct err *err) {
	struct drive d;
	const enum rc rc = drives_get(p->drives, drive_id, &d, NULL, NULL, err);
	if (!rc && d.state == DRIVE_GONE)
		return err_set(err, RC_NOT_FOUND, "the drive is gone");
	return rc;
}

/* A drive of which nothing is desired has what the change wants. */
static enum rc clear(struct power *p, const struct actor *who, const char *drive_id,
	struct task_step *step, struct err *err) {
	const enum rc rc =
		power_clear_desired(p, who, drive_id, false, VERSION_ANY, on_outcome, step, err);
	if (rc != RC_NOT_FOUND)
		return rc;
	task_step_done(step, RC_OK, NULL, NULL);
	return RC_OK;
}

static enum rc begin(void *self, const struct task *t, const char *object, struct task_step *step,
	struct err *err) {
	struct power *p = self;
	struct power_change change;
	const char *id = drive_of(object);
	enum rc rc = power_change_get(p, t->id, &change, err);
	if (!rc)
		rc = check_here(p, id, err);
	if (rc)
		return rc;
	return change.clear ? clear(p, &t->who, id, step, err)
			    : power_set_desired(p, &t->who, id, &change.wish, change.expires_ms,
				      VERSION_ANY, on_outcome, step, err);
}

enum rc power_use_tasks(struct power *p, struct tasks *tasks, struct err *err) {
	const struct task_kind kind = {
		.name = POWER_TASK_KIND, .resumes = true, .begin = begin, .self = p};
	p->tasks = tasks;
	return tasks_add_kind(tasks, &kind, err);
}

static enum rc store(void *arg, struct db_conn *c, const char *task_id, struct err *err) {
	return db_power_change_put(c, task_id, arg, err);
}

enum rc power_change_submit(struct power *p, const struct actor *who,
	const struct power_change *change, const char (*drive_ids)[DRIVE_ID_SIZE], unsigned count,
	struct task *out, struct err *err) {
	struct power_change copy = *change;
	auto_free char(*objects)[TASK_OBJECT_SIZE] = calloc(count + 1, TASK_OBJECT_SIZE);
	const enum rc rc = power_check_may(p, who, err);
	if (rc)
		return rc;
	if (!objects)
		return err_set(err, RC_NOMEM, "out of memory");
	for (unsigned i = 0; i < count; i++)
		snprintf(objects[i], TASK_OBJECT_SIZE, DRIVE_PATH "%s", drive_ids[i]);
	const struct task_spec spec = {
		.kind = POWER_TASK_KIND,
		.path = "/power-changes",
		.action = POWER_TASK_KIND,
		.count = count,
		.objects = (const char(*)[TASK_OBJECT_SIZE])objects,
		.store = store,
		.arg = &copy,
	};
	return tasks_submit(p->tasks, who, &spec, out, err);
}

static void on_tried(void *arg, const struct power_outcome *o) {
	struct task_target *t = arg;
	write_result(o, t->result);
}

void power_change_try(struct power *p, const struct actor *who, const struct power_change *change,
	const char *drive_id, struct task_target *out) {
	struct err err = {0};
	*out = (struct task_target){
		.state = TARGET_COMPLETED, .started_ms = NONE, .ended_ms = NONE};
	snprintf(out->object, sizeof(out->object), DRIVE_PATH "%s", drive_id);
	enum rc rc = check_here(p, drive_id, &err);
	if (!rc && change->clear)
		rc = power_clear_desired(p, who, drive_id, false, VERSION_ANY, on_tried, out, &err);
	else if (!rc)
		rc = power_set_desired(p, who, drive_id, &change->wish, change->expires_ms,
			VERSION_ANY, on_tried, out, &err);
	if (!rc || (change->clear && rc == RC_NOT_FOUND))
		return;
	out->state = TARGET_FAILED;
	out->outcome = rc;
	str_copy(out->reason, sizeof(out->reason), err.msg);
}

enum rc power_change_get(
	struct power *p, const char *task_id, struct power_change *out, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(p->control_db, &c, err);
	if (rc)
		return rc;
	rc = db_power_change_get(c, task_id, out, err);
	db_read_end(c);
	return rc;
}
