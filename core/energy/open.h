/*
 * Hours that are still open: their samples, packed, and their quarters' integrals, which grow with
 * every sample. A sample is put into its hour and into those beside it as far as a stretch could
 * reach, so that each hour can be closed alone. Nothing here locks: all of it, and what is
 * returned, is the engine's under its lock.
 */
#ifndef DRIVEWATT_CORE_ENERGY_OPEN_H
#define DRIVEWATT_CORE_ENERGY_OPEN_H

#include "core/energy/chunk.h"

#define QUARTER_MS INT64_C(900000)
#define QUARTERS_OF_HOUR 4

struct open_hour {
	struct open_hour *next;
	int64_t begin_ms;
	int64_t opened_ms;  /* what the newest sample of all was then */
	int64_t first_tick; /* no tick before has a sample of it */
	size_t count;       /* samples put into it */
	size_t in_chunk;    /* as many of them are in the store's chunk */
	size_t spilt;       /* as many of them, the first, are there alone */
	bool in_order;
	struct buf bytes;    /* of the samples that are not spilt */
	struct reading tail; /* the sample put in last */
	int64_t newest;      /* the number of the newest one in order that was put in */
	int64_t tail_step_ms;
	struct integrator in;
	struct integral quarters[QUARTERS_OF_HOUR];
};

struct open_series {
	int64_t id;
	struct joining how;
	bool has_last;
	int64_t number;      /* of the newest: how many came in order */
	struct reading last; /* the newest in order */
	int64_t last_tick;   /* no tick before has it */
	bool stepped;        /* the wall clock, between these two, which are neighbours */
	struct reading before, after;
	int64_t first_ms, last_ms; /* of the samples' wall times since the start; NONE */
	struct open_hour *hours;   /* the one that was used last stands first */
};

struct open_set {
	struct open_series **slots; /* hashed by id; a power of two, never more than half full */
	struct open_series **all;   /* the same, ascending */
	size_t slot_count, count, max;
	size_t bytes;       /* of all packed samples */
	int64_t newest_ms;  /* wall time of the sample that came last */
	int64_t horizon_ms; /* older samples are not taken */
	int64_t next_tick;  /* where the next sample will be stored */
	int64_t closed_ms;  /* hours before are not opened again: their samples are in chunks */
};

bool must_check open_set_init(struct open_set *set, size_t max_series);
void open_set_release(struct open_set *set);

/* False when full or out of memory; true also when it is there. */
bool must_check open_register(struct open_set *set, int64_t id, const struct joining *how);
void open_forget(struct open_set *set, int64_t id);
struct open_series *open_find(const struct open_set *set, int64_t id);
/* The place in set->all of the first one whose id is over `after`. */
size_t open_after(const struct open_set *set, int64_t after);

/* False when it is not taken: too old, beyond all bounds, too many in its hour, late though it
 * counts, no memory. */
bool must_check open_add(struct open_set *set, struct open_series *s, const struct reading *r);

/* Appends those samples of the hour that are not spilt, as they came. */
bool must_check open_read(const struct open_hour *h, struct readings *out);
/* All that was put in up to now is in the chunk too: its bytes are dropped. */
void open_spill(struct open_set *set, struct open_hour *h);
/* Ends an hour of the series. */
void open_drop(struct open_set *set, struct open_series *s, struct open_hour *h);

static inline int64_t floor_to(int64_t v, int64_t unit) {
	int64_t rest = v % unit;
	return v - rest - (rest < 0 ? unit : 0);
}

#endif
