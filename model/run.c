#include "model/run.h"

#include "base/compiler.h"
#include "model/names.h"

static const char *const names[] = {
	[RUN_QUEUED] = "queued",
	[RUN_PREPARING] = "preparing",
	[RUN_RUNNING] = "running",
	[RUN_COMPLETED] = "completed",
	[RUN_FAILED] = "failed",
	[RUN_CANCELLED] = "cancelled",
	[RUN_INTERRUPTED] = "interrupted",
};
_Static_assert(array_len(names) == RUN_STATE_COUNT_, "every state has a name");

#define TO(s) (1u << (s))
#define TO_ANY_BAD_END (TO(RUN_FAILED) | TO(RUN_CANCELLED) | TO(RUN_INTERRUPTED))

/* A state from which nothing leads on is final. */
static const unsigned moves[RUN_STATE_COUNT_] = {
	[RUN_QUEUED] = TO(RUN_PREPARING) | TO_ANY_BAD_END,
	[RUN_PREPARING] = TO(RUN_RUNNING) | TO_ANY_BAD_END,
	[RUN_RUNNING] = TO(RUN_COMPLETED) | TO_ANY_BAD_END,
};

const char *run_state_name(enum run_state s) {
	return names_get(names, array_len(names), s);
}

bool run_state_from_name(const char *name, enum run_state *out) {
	return names_find(names, array_len(names), name, out);
}

bool run_state_is_final(enum run_state s) {
	return s < RUN_STATE_COUNT_ && moves[s] == 0;
}

bool run_state_may_move(enum run_state from, enum run_state to) {
	return from < RUN_STATE_COUNT_ && to < RUN_STATE_COUNT_ && (moves[from] & TO(to)) != 0;
}
