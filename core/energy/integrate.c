#include "core/energy/integrate.h"

#include <math.h>
#include <stdlib.h>

void integrator_init(struct integrator *in, const struct joining *how, struct integral *steps,
	size_t count, int64_t end_ms) {
	*in = (struct integrator){.how = *how, .steps = steps, .count = count, .end_ms = end_ms};
	for (size_t i = 0; i < count; i++)
		steps[i] = (struct integral){
			.at_ms = steps[i].at_ms, .min_milli = NONE, .max_milli = NONE};
}

static inline int64_t step_end_ms(const struct integrator *in, size_t i) {
	return i + 1 < in->count ? in->steps[i + 1].at_ms : in->end_ms;
}

/* Samples mostly go on in the step of the one before. */
static inline bool holds(const struct integrator *in, size_t i, int64_t at_ms) {
	return in->steps[i].at_ms <= at_ms && at_ms < step_end_ms(in, i);
}

static size_t search_step(const struct integrator *in, int64_t at_ms) {
	size_t low = 0, high = in->count;
	while (high - low > 1) {
		size_t mid = (low + high) / 2;
		if (in->steps[mid].at_ms <= at_ms)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* The step that holds at_ms; the first one for what lies before all, the last for what is after. */
static inline size_t step_of(struct integrator *in, int64_t at_ms) {
	if (!holds(in, in->at, at_ms))
		in->at = in->at + 1 < in->count && holds(in, in->at + 1, at_ms)
			? in->at + 1
			: search_step(in, at_ms);
	return in->at;
}

static inline void note_value(struct integrator *in, const struct reading *r) {
	struct integral *step = &in->steps[step_of(in, r->at_ms)];
	if (r->at_ms < step->at_ms || r->at_ms >= in->end_ms)
		return;
	if (step->min_milli == NONE || r->value_milli < step->min_milli)
		step->min_milli = r->value_milli;
	if (step->max_milli == NONE || r->value_milli > step->max_milli)
		step->max_milli = r->value_milli;
	step->count++;
	step->sum_milli += r->value_milli;
}

/* --- what lies between two samples --- */

/* A stretch of wall time with the values at its ends, and how long it really was. */
struct stretch {
	double begin_ms, length_ms; /* on the wall clock */
	double real_ms;
	double begin_milli, end_milli;
};

/* The mean value between two places of the stretch. */
static double mean_between(const struct stretch *s, double from_ms, double to_ms) {
	double middle = ((from_ms + to_ms) / 2 - s->begin_ms) / s->length_ms;
	return s->begin_milli + (s->end_milli - s->begin_milli) * middle;
}

static void lay_part(struct integral *step, const struct stretch *s, double from_ms, double to_ms) {
	double real_ms = (to_ms - from_ms) * s->real_ms / s->length_ms;
	step->milli_ms += mean_between(s, from_ms, to_ms) * real_ms;
	step->covered_ms += to_ms - from_ms;
}

static void lay_whole(struct integral *step, const struct stretch *s) {
	step->milli_ms += (s->begin_milli + s->end_milli) / 2 * s->real_ms;
	step->covered_ms += s->length_ms;
}

static void lay(struct integrator *in, const struct stretch *s) {
	double end_ms = s->begin_ms + s->length_ms;
	for (size_t i = step_of(in, (int64_t)s->begin_ms); i < in->count; i++) {
		double from_ms = (double)in->steps[i].at_ms;
		double to_ms = (double)step_end_ms(in, i);
		if (from_ms >= end_ms)
			return;
		if (from_ms <= s->begin_ms && end_ms <= to_ms) {
			lay_whole(&in->steps[i], s);
			return;
		}
		from_ms = from_ms > s->begin_ms ? from_ms : s->begin_ms;
		to_ms = to_ms < end_ms ? to_ms : end_ms;
		if (from_ms < to_ms)
			lay_part(&in->steps[i], s, from_ms, to_ms);
	}
}

/* --- joining --- */

static inline double real_ms_between(const struct reading *a, const struct reading *b) {
	if (a->boot != b->boot)
		return (double)(b->at_ms - a->at_ms);
	return (double)(b->at_mono_ns - a->at_mono_ns) / 1e6;
}

static inline bool agree(double wall_ms, double real_ms) {
	return fabs(wall_ms - real_ms) <= 10 + real_ms / 100;
}

bool readings_agree(const struct reading *a, const struct reading *b) {
	return agree((double)(b->at_ms - a->at_ms), real_ms_between(a, b));
}

/* False when nothing is between them. On the wall's own marks neighbours neither overlap nor leave
 * a crack; after a step of the wall clock there are no such marks. */
static inline bool make_stretch(const struct joining *how, const struct reading *a,
	const struct reading *b, struct stretch *out) {
	double wall_ms = (double)(b->at_ms - a->at_ms);
	double real_ms = real_ms_between(a, b);
	bool on_wall = wall_ms > 0 && agree(wall_ms, real_ms);
	*out = (struct stretch){
		.begin_ms = (double)a->at_ms,
		.length_ms = on_wall ? wall_ms : real_ms,
		.real_ms = real_ms,
		.begin_milli = (double)a->value_milli,
		.end_milli = (double)b->value_milli,
	};
	return b->link != LINK_APART && real_ms > 0 && real_ms <= (double)how->max_gap_ms;
}

bool joining_span(const struct joining *how, const struct reading *a, const struct reading *b,
	int64_t *begin_ms, int64_t *end_ms) {
	struct stretch s;
	if (!make_stretch(how, a, b, &s))
		return false;
	*begin_ms = a->at_ms;
	*end_ms = a->at_ms + (int64_t)ceil(s.length_ms);
	return true;
}

/* As much value for the whole stretch as gives the counter's rise. */
static void count_rise(struct integrator *in, struct stretch *s) {
	double rise = s->end_milli - s->begin_milli;
	if (rise < 0) {
		rise = s->end_milli;
		in->resets++;
	}
	s->begin_milli = s->end_milli = rise * in->how.per_milli / s->real_ms;
}

void integrator_add(struct integrator *in, const struct reading *r) {
	struct stretch s;
	if (in->has_last && make_stretch(&in->how, &in->last, r, &s)) {
		if (in->how.per_milli > 0)
			count_rise(in, &s);
		lay(in, &s);
	} else if (in->has_last && r->link != LINK_APART && s.real_ms > 0) {
		in->uncovered_ms += s.real_ms;
	}
	note_value(in, r);
	in->last = *r;
	in->has_last = true;
}
