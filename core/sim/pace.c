#include "core/sim/pace.h"

#include <math.h>
#include <pthread.h>

struct pace_drive {
	unsigned state;
	struct sim_op *serving;      /* NULL: the first, if any, waits for its time */
	struct sim_op *first, *last; /* waiting */
	int64_t free_ns;             /* when the last op ended */
	int64_t idle_since_ns;       /* idle energy is in totals up to here */
	double serving_j;
	struct sim_totals totals;
};

struct sim_pace {
	pthread_mutex_t lock; /* guards everything but model and scale */
	struct sim_model model;
	double scale;
	unsigned drive_count;
	int64_t switch_free_ns;
	/* One a drive, when something happens next, INT64_MAX never. Apart from the drives, so that
	 * the search for the first walks over few cache lines. */
	int64_t *due_ns;
	struct pace_drive *drives;
};

struct sim_pace *sim_pace_new(const struct sim_model *m, unsigned drives, unsigned scale,
	int64_t now_ns, struct err *err) {
	struct sim_pace *p = calloc(1, sizeof(*p));
	if (!p)
		goto nomem;
	pthread_mutex_init(&p->lock, NULL);
	p->model = *m;
	p->scale = scale;
	p->drive_count = drives;
	p->due_ns = calloc(drives, sizeof(p->due_ns[0]));
	p->drives = calloc(drives, sizeof(p->drives[0]));
	if (!p->due_ns || !p->drives)
		goto nomem;
	for (unsigned i = 0; i < drives; i++) {
		p->due_ns[i] = INT64_MAX;
		p->drives[i].idle_since_ns = now_ns;
	}
	return p;
nomem:
	err_set(err, RC_NOMEM, "no memory for %u simulated drives", drives);
	sim_pace_free(p);
	return NULL;
}

void sim_pace_free(struct sim_pace *p) {
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p->drives);
	free(p->due_ns);
	free(p);
}

/* --- service --- */

/* Flushes and trims move no data; they take their turn and a write's latency. */
static const struct {
	enum sim_direction direction;
	bool has_data;
} kinds[SIM_OP_KINDS] = {
	[SIM_OP_READ] = {SIM_READ, true},
	[SIM_OP_WRITE] = {SIM_WRITE, true},
	[SIM_OP_FLUSH] = {SIM_WRITE, false},
	[SIM_OP_TRIM] = {SIM_WRITE, false},
};

static int64_t max_ns(int64_t a, int64_t b) {
	return a > b ? a : b;
}

static int64_t scaled_ns(const struct sim_pace *p, double s) {
	return llround(s * p->scale * 1e9);
}

/* Reserves the switch for the op's bytes; returns when they have passed. */
static int64_t pass_switch(struct sim_pace *p, const struct sim_op *op) {
	const double limit = p->model.host.switch_bytes_per_s;
	if (!isfinite(limit) || !kinds[op->kind].has_data)
		return op->start_ns;
	p->switch_free_ns =
		max_ns(p->switch_free_ns, op->start_ns) + scaled_ns(p, op->bytes / limit);
	return p->switch_free_ns;
}

static const struct sim_service *service_of(
	const struct sim_pace *p, const struct pace_drive *d, const struct sim_op *op) {
	return &p->model.states[d->state].service[kinds[op->kind].direction];
}

/* When the first that waits may begin. Only then is its service computed: the switch must not be
 * reserved ahead of time, and the state of that moment counts. */
static void await_next(struct sim_pace *p, unsigned drive) {
	struct pace_drive *d = &p->drives[drive];
	d->serving = NULL;
	p->due_ns[drive] = INT64_MAX;
	if (!d->first)
		return;
	const double latency_us = service_of(p, d, d->first)->latency_us;
	p->due_ns[drive] =
		max_ns(d->first->arrived_ns + scaled_ns(p, latency_us / 1e6), d->free_ns);
}

static void serve_next(struct sim_pace *p, unsigned drive) {
	struct pace_drive *d = &p->drives[drive];
	struct sim_op *op = d->first;
	const struct sim_service *s = service_of(p, d, op);
	const double bytes = kinds[op->kind].has_data ? op->bytes : 0;
	d->first = op->next;
	d->serving = op;
	d->serving_j = bytes * p->scale / 1e9 * s->j_per_gb;
	op->start_ns = p->due_ns[drive];
	const int64_t drive_ns =
		op->start_ns + scaled_ns(p, fmax(bytes / s->bytes_per_s, 1 / s->iops));
	op->due_ns = max_ns(drive_ns, pass_switch(p, op));
	p->due_ns[drive] = op->due_ns;
}

static void add_served(const struct sim_pace *p, const struct sim_op *op, double part, double j,
	struct sim_totals *t) {
	if (kinds[op->kind].has_data) {
		const enum sim_direction d = kinds[op->kind].direction;
		t->bytes[d] += op->bytes * p->scale * part;
		t->ios[d] += p->scale * part;
	}
	t->busy_s += (double)(op->due_ns - op->start_ns) / 1e9 * part;
	t->energy_j += j * part;
}

static struct sim_op *finish(struct sim_pace *p, unsigned drive) {
	struct pace_drive *d = &p->drives[drive];
	struct sim_op *op = d->serving;
	add_served(p, op, 1, d->serving_j, &d->totals);
	d->free_ns = op->due_ns;
	op->next = NULL;
	await_next(p, drive);
	return op;
}

void sim_pace_submit(struct sim_pace *p, unsigned drive, struct sim_op *op, int64_t now_ns) {
	struct pace_drive *d = &p->drives[drive];
	op->next = NULL;
	op->arrived_ns = now_ns;
	pthread_mutex_lock(&p->lock);
	if (d->first)
		d->last->next = op;
	else
		d->first = op;
	d->last = op;
	if (op == d->first && !d->serving)
		await_next(p, drive);
	pthread_mutex_unlock(&p->lock);
}

static unsigned first_due(const struct sim_pace *p) {
	unsigned first = 0;
	for (unsigned i = 1; i < p->drive_count; i++)
		if (p->due_ns[i] < p->due_ns[first])
			first = i;
	return first;
}

struct sim_op *sim_pace_done(struct sim_pace *p, int64_t now_ns) {
	struct sim_op *done = NULL;
	pthread_mutex_lock(&p->lock);
	while (!done) {
		const unsigned drive = first_due(p);
		if (p->due_ns[drive] > now_ns)
			break;
		if (p->drives[drive].serving)
			done = finish(p, drive);
		else
			serve_next(p, drive);
	}
	pthread_mutex_unlock(&p->lock);
	return done;
}

int64_t sim_pace_next_ns(struct sim_pace *p) {
	pthread_mutex_lock(&p->lock);
	int64_t due_ns = p->due_ns[first_due(p)];
	pthread_mutex_unlock(&p->lock);
	return due_ns;
}

unsigned sim_pace_withdraw(struct sim_pace *p, unsigned drive, const void *owner) {
	struct pace_drive *d = &p->drives[drive];
	unsigned dropped = 0;
	pthread_mutex_lock(&p->lock);
	struct sim_op *kept = NULL;
	struct sim_op **link = &d->first;
	while (*link) {
		if ((*link)->owner == owner) {
			*link = (*link)->next;
			dropped++;
		} else {
			kept = *link;
			link = &kept->next;
		}
	}
	d->last = kept;
	if (!d->serving)
		await_next(p, drive);
	pthread_mutex_unlock(&p->lock);
	return dropped;
}

/* --- states and totals --- */

unsigned sim_pace_state(struct sim_pace *p, unsigned drive) {
	pthread_mutex_lock(&p->lock);
	unsigned state = p->drives[drive].state;
	pthread_mutex_unlock(&p->lock);
	return state;
}

static double idle_j(const struct sim_pace *p, const struct pace_drive *d, int64_t now_ns) {
	const int64_t ns = max_ns(now_ns - d->idle_since_ns, 0);
	return p->model.states[d->state].idle_w * (double)ns / 1e9;
}

void sim_pace_set_state(struct sim_pace *p, unsigned drive, unsigned state, int64_t now_ns) {
	struct pace_drive *d = &p->drives[drive];
	pthread_mutex_lock(&p->lock);
	d->totals.energy_j += idle_j(p, d, now_ns);
	d->idle_since_ns = max_ns(now_ns, d->idle_since_ns);
	d->state = state;
	pthread_mutex_unlock(&p->lock);
}

static double part_served(const struct sim_op *op, int64_t now_ns) {
	if (now_ns <= op->start_ns)
		return 0;
	if (now_ns >= op->due_ns)
		return 1;
	return (double)(now_ns - op->start_ns) / (double)(op->due_ns - op->start_ns);
}

void sim_pace_totals(struct sim_pace *p, unsigned drive, int64_t now_ns, struct sim_totals *out) {
	pthread_mutex_lock(&p->lock);
	const struct pace_drive *d = &p->drives[drive];
	*out = d->totals;
	out->state = d->state;
	out->energy_j += idle_j(p, d, now_ns);
	if (d->serving)
		add_served(p, d->serving, part_served(d->serving, now_ns), d->serving_j, out);
	pthread_mutex_unlock(&p->lock);
}
