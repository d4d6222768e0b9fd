/* A change of many things that goes on by itself, with an outcome for each of them. */
#ifndef DRIVEWATT_MODEL_TASK_H
#define DRIVEWATT_MODEL_TASK_H

#include "base/rc.h"
#include "model/account.h"

#define TASK_ID_SIZE 37
#define TASK_MAX_TARGETS 1024

enum task_state {
	TASK_QUEUED,    /* no target was begun with yet */
	TASK_RUNNING,   /* … some were; those of a cancelled one still end */
	TASK_COMPLETED, /* final from here on: all targets did well */
	TASK_FAILED,    /* not all did */
	TASK_CANCELLED,
	TASK_INTERRUPTED, /* the service ended meanwhile, and the kind is not taken up again */
	TASK_STATE_COUNT_
};
const char *task_state_name(enum task_state s);
bool task_state_from_name(const char *name, enum task_state *out);
static inline bool task_state_is_final(enum task_state s) {
	return s >= TASK_COMPLETED;
}

enum target_state {
	TARGET_WAITING,
	TARGET_RUNNING,
	TARGET_COMPLETED,
	TARGET_FAILED,
	TARGET_CANCELLED,
	TARGET_STATE_COUNT_
};
const char *target_state_name(enum target_state s);
bool target_state_from_name(const char *name, enum target_state *out);

struct task {
	char id[TASK_ID_SIZE];                    /* sorts by creation */
	char kind[24];                            /* "power.change" */
	uint8_t state;                            /* enum task_state */
	bool cancelling;                          /* no more targets are begun with */
	struct actor who;                         /* who asked, without once */
	int64_t created_ms, started_ms, ended_ms; /* NONE: not yet */
	unsigned total;
	unsigned counts[TARGET_STATE_COUNT_]; /* of targets in each state */
};

#define TASK_OBJECT_SIZE 64  /* "/drives/<id>" */
#define TASK_RESULT_SIZE 128 /* a short JSON object, "" none */

struct task_target {
	char object[TASK_OBJECT_SIZE]; /* path below /api/v1 */
	uint8_t state;                 /* enum target_state */
	enum rc outcome;               /* when it ended */
	uint16_t nvme_status;          /* 0 none */
	char reason[160];              /* why it failed, "" */
	char result[TASK_RESULT_SIZE];
	int64_t started_ms, ended_ms; /* NONE: not yet */
};

/* What the states of the targets make of a task that is not cancelled. */
enum task_state task_judge(const struct task *t);

#endif
