#include <stdio.h>
#include <stdlib.h>

#include "base/jsonw.h"
#include "core/tasks/tasks_impl.h"
#include "db/tasks.h"

#define EVENT_DATA_MAX 512

/* What of a job is to be written, taken out of it. */
struct change {
	bool row, ended;
	struct task task;
	unsigned count;
	unsigned *positions;
	struct task_target *targets;
};

static void change_release(struct change *ch) {
	free(ch->positions);
	free(ch->targets);
}

static unsigned count_dirty(const struct job *j) {
	unsigned n = 0;
	for (unsigned i = 0; i < j->task.total; i++)
		n += j->steps[i].dirty;
	return n;
}

static enum rc take_change(struct job *j, struct change *out, struct err *err) {
	*out = (struct change){0};
	pthread_mutex_lock(&j->all->lock);
	const unsigned dirty = count_dirty(j);
	out->positions = calloc(dirty + 1, sizeof(out->positions[0]));
	out->targets = calloc(dirty + 1, sizeof(out->targets[0]));
	const bool room = out->positions && out->targets;
	for (unsigned i = 0; room && i < j->task.total; i++) {
		if (!j->steps[i].dirty)
			continue;
		out->positions[out->count] = i;
		out->targets[out->count++] = j->steps[i].t;
		j->steps[i].dirty = false;
	}
	out->task = j->task;
	out->row = j->dirty;
	out->ended = j->dirty && task_state_is_final(j->task.state);
	j->dirty = j->dirty && !room;
	pthread_mutex_unlock(&j->all->lock);
	return room ? RC_OK : err_set(err, RC_NOMEM, "out of memory");
}

static void put_back(struct job *j, const struct change *ch) {
	pthread_mutex_lock(&j->all->lock);
	for (unsigned i = 0; i < ch->count; i++)
		j->steps[ch->positions[i]].dirty = true;
	j->dirty = j->dirty || ch->row;
	pthread_mutex_unlock(&j->all->lock);
}

enum rc task_tell(struct tasks *ts, struct db_conn *c, const struct task *t, struct err *err) {
	char object[EVENT_OBJECT_SIZE];
	struct buf data;
	struct jsonw w;
	snprintf(object, sizeof(object), "/tasks/%s", t->id);
	buf_init(&data, EVENT_DATA_MAX);
	jsonw_init(&w, &data);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "kind", t->kind);
	jsonw_str(&w, "state", task_state_name(t->state));
	jsonw_uint(&w, "targets", t->total);
	jsonw_uint(&w, "failed", t->counts[TARGET_FAILED]);
	jsonw_object_end(&w);
	const enum rc rc =
		events_add(ts->events, c, EVENT_TASK_STATE, &t->who, object, buf_str(&data), err);
	buf_release(&data);
	return rc;
}

static enum rc write_change(struct tasks *ts, struct db_conn *c, const struct change *ch,
	const struct actor *who, const char *action, struct err *err) {
	char object[EVENT_OBJECT_SIZE];
	enum rc rc = RC_OK;
	snprintf(object, sizeof(object), "/tasks/%s", ch->task.id);
	for (unsigned i = 0; i < ch->count && !rc; i++)
		rc = db_task_target_put(c, ch->task.id, ch->positions[i], &ch->targets[i], err);
	if (!rc && ch->row)
		rc = db_task_update(c, &ch->task, err);
	if (!rc && ch->ended)
		rc = task_tell(ts, c, &ch->task, err);
	if (!rc && who)
		rc = events_audit(c, who, action, object, rc_name(RC_OK), NULL, err);
	return rc;
}

static enum rc store_change(struct tasks *ts, const struct change *ch, const struct actor *who,
	const char *action, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_write_begin(ts->control, &c, err);
	if (rc)
		return rc;
	rc = write_change(ts, c, ch, who, action, err);
	if (rc) {
		db_write_abort(c);
		return rc;
	}
	rc = db_write_commit(c, err);
	if (!rc && ch->ended)
		events_publish(ts->events);
	return rc;
}

enum rc job_store(struct job *j, const struct actor *who, const char *action, struct err *err) {
	struct change ch;
	enum rc rc = take_change(j, &ch, err);
	if (!rc && (ch.count || ch.row || who)) {
		rc = store_change(j->all, &ch, who, action, err);
		if (rc)
			put_back(j, &ch);
	}
	change_release(&ch);
	return rc;
}
