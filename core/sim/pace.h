/*
 * Time and energy of the simulated drives, without sockets or threads of its own. Each drive is a
 * serial server with a queue: a request waits for those before it and for its latency, is then
 * served for max(bytes / bandwidth, 1 / iops), and shares the switch, another serial server, with
 * all drives. All durations are stretched by the scale. Finish times are computed on a virtual
 * clock, each from the one before, so that a late or coarse wake-up costs no throughput. The
 * power state that holds when a request begins to be served decides its time and its energy.
 * Times are the caller's clock_mono_ns(), never going back. All functions in any thread.
 */
#ifndef DRIVEWATT_CORE_SIM_PACE_H
#define DRIVEWATT_CORE_SIM_PACE_H

#include "core/sim/model.h"

struct sim_pace;

enum sim_op_kind { SIM_OP_READ, SIM_OP_WRITE, SIM_OP_FLUSH, SIM_OP_TRIM, SIM_OP_KINDS };

/* A request in service; the caller's memory until it comes back. */
struct sim_op {
	struct sim_op *next; /* the pace's while it has the op, then the caller's */
	void *owner;
	uint64_t tag;
	enum sim_op_kind kind;
	uint32_t bytes; /* real ones */
	int64_t arrived_ns;
	int64_t start_ns, due_ns; /* filled by the pace when the service begins */
};

/* A drive's life until now, in simulated units. What is being served counts by its part. */
struct sim_totals {
	unsigned state;
	double bytes[SIM_DIRECTIONS];
	double ios[SIM_DIRECTIONS];
	double busy_s;
	double energy_j;
};

struct sim_pace *sim_pace_new(const struct sim_model *m, unsigned drives, unsigned scale,
	int64_t now_ns, struct err *err);
/* The ops still inside go back to nobody. NULL is fine. */
void sim_pace_free(struct sim_pace *p);

void sim_pace_submit(struct sim_pace *p, unsigned drive, struct sim_op *op, int64_t now_ns);
/* Takes out an op that is done by now_ns, earliest first; NULL none. */
struct sim_op *sim_pace_done(struct sim_pace *p, int64_t now_ns);
/* When the next op will be done; INT64_MAX none. */
int64_t sim_pace_next_ns(struct sim_pace *p);
/* Drops the owner's ops that wait; returns their number. One that is being served comes out of
 * sim_pace_done as ever. */
unsigned sim_pace_withdraw(struct sim_pace *p, unsigned drive, const void *owner);

unsigned sim_pace_state(struct sim_pace *p, unsigned drive);
void sim_pace_set_state(struct sim_pace *p, unsigned drive, unsigned state, int64_t now_ns);
void sim_pace_totals(struct sim_pace *p, unsigned drive, int64_t now_ns, struct sim_totals *out);

#endif
