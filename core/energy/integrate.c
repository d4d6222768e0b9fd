#include "core/energy/integrate.h"

#include <stdlib.h>

void integrator_init(struct integrator *in, int64_t max_gap_ms, struct integral *steps,
	size_t count, int64_t end_ms) {
	*in = (struct integrator){
		.max_gap_ms = max_gap_ms, .steps = steps, .count = count, .end_ms = end_ms};
	for (size_t i = 0; i < count; i++)
		steps[i] = (struct integral){
			.at_ms = steps[i].at_ms, .min_milli = NONE, .max_milli = NONE};
}

/* The step that holds at_ms; the first one for what lies before all. */
static size_t step_of(const struct integrator *in, int64_t at_ms) {
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

static void note_extremes(struct integrator *in, const struct sample *s) {
	if (s->at_ms < in->steps[0].at_ms || s->at_ms >= in->end_ms)
		return;
	struct integral *step = &in->steps[step_of(in, s->at_ms)];
	if (step->min_milli == NONE || s->value_milli < step->min_milli)
		step->min_milli = s->value_milli;
	if (step->max_milli == NONE || s->value_milli > step->max_milli)
		step->max_milli = s->value_milli;
}

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

static void spread(struct integrator *in, const struct stretch *s) {
	double end_ms = s->begin_ms + s->length_ms;
	for (size_t i = step_of(in, (int64_t)s->begin_ms); i < in->count; i++) {
		double from_ms = (double)in->steps[i].at_ms;
		double to_ms = (double)(i + 1 < in->count ? in->steps[i + 1].at_ms : in->end_ms);
		if (from_ms >= end_ms)
			return;
		if (from_ms < s->begin_ms)
			from_ms = s->begin_ms;
		if (to_ms > end_ms)
			to_ms = end_ms;
		if (from_ms >= to_ms)
			continue;
		double real_ms = (to_ms - from_ms) * s->real_ms / s->length_ms;
		in->steps[i].milli_ms += mean_between(s, from_ms, to_ms) * real_ms;
		in->steps[i].real_ms += real_ms;
		in->steps[i].covered_ms += to_ms - from_ms;
	}
}

/* Wall and monotonic clock tell the same but for rounding and slewing. */
static bool agree(double wall_ms, double real_ms) {
	double off_ms = wall_ms > real_ms ? wall_ms - real_ms : real_ms - wall_ms;
	return off_ms <= 10 + real_ms / 100;
}

static void join(
	struct integrator *in, const struct sample *a, const struct sample *b, bool same_boot) {
	double wall_ms = (double)(b->at_ms - a->at_ms);
	double real_ms = same_boot ? (double)(b->at_mono_ns - a->at_mono_ns) / 1e6 : wall_ms;
	if (real_ms <= 0)
		return;
	if (real_ms > (double)in->max_gap_ms) {
		in->uncovered_ms += real_ms;
		return;
	}
	/* On the wall's own marks neighbours neither overlap nor leave a crack; after a step of the
	 * wall clock there are no such marks. */
	bool on_wall = wall_ms > 0 && agree(wall_ms, real_ms);
	spread(in,
		&(struct stretch){
			.begin_ms = (double)a->at_ms,
			.length_ms = on_wall ? wall_ms : real_ms,
			.real_ms = real_ms,
			.begin_milli = (double)a->value_milli,
			.end_milli = (double)b->value_milli,
		});
}

void integrator_add(struct integrator *in, const struct sample *s, bool same_boot) {
	note_extremes(in, s);
	if (in->has_last)
		join(in, &in->last, s, same_boot);
	in->last = *s;
	in->has_last = true;
}
