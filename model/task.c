#include "model/task.h"

#include "base/compiler.h"
#include "model/names.h"

static const char *const state_names[] = {
	[TASK_QUEUED] = "queued",
	[TASK_RUNNING] = "running",
	[TASK_COMPLETED] = "completed",
	[TASK_FAILED] = "failed",
	[TASK_CANCELLED] = "cancelled",
	[TASK_INTERRUPTED] = "interrupted",
};
_Static_assert(array_len(state_names) == TASK_STATE_COUNT_, "every state has a name");

static const char *const target_names[] = {
	[TARGET_WAITING] = "waiting",
	[TARGET_RUNNING] = "running",
	[TARGET_COMPLETED] = "completed",
	[TARGET_FAILED] = "failed",
	[TARGET_CANCELLED] = "cancelled",
};
_Static_assert(array_len(target_names) == TARGET_STATE_COUNT_, "every state has a name");

const char *task_state_name(enum task_state s) {
	return names_get(state_names, array_len(state_names), s);
}

bool task_state_from_name(const char *name, enum task_state *out) {
	return names_find(state_names, array_len(state_names), name, out);
}

const char *target_state_name(enum target_state s) {
	return names_get(target_names, array_len(target_names), s);
}

bool target_state_from_name(const char *name, enum target_state *out) {
	return names_find(target_names, array_len(target_names), name, out);
}

enum task_state task_judge(const struct task *t) {
	const unsigned open = t->counts[TARGET_WAITING] + t->counts[TARGET_RUNNING];
	if (t->counts[TARGET_WAITING] == t->total && t->total)
		return TASK_QUEUED;
	if (open)
		return TASK_RUNNING;
	return t->counts[TARGET_COMPLETED] == t->total ? TASK_COMPLETED : TASK_FAILED;
}
