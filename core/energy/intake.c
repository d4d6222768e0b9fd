/* Samples come in: into their open hours, where they can be asked for at once, and into the queue
 * of what is to be stored. */
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "core/energy/impl.h"
#include "db/samples.h"

#define NS_PER_MS INT64_C(1000000)
/* Two looks at two clocks are never at the same instant. */
#define SAME_CLOCK_MS 2

enum rc intake_init(struct energy *e, struct err *err) {
	struct intake *in = &e->intake;
	pthread_mutex_init(&in->lock, NULL);
	cond_init(&in->wake);
	cond_init(&in->pruned);
	in->max = e->config.queue_samples;
	in->waiting = calloc(in->max, sizeof(in->waiting[0]));
	e->batch = calloc(in->max, sizeof(e->batch[0]));
	if (!in->waiting || !e->batch || !open_set_init(&in->open, e->config.max_series))
		return err_set(err, RC_NOMEM, "no memory for the queue of samples");
	return RC_OK;
}

void intake_release(struct intake *in) {
	open_set_release(&in->open);
	free(in->waiting);
	pthread_cond_destroy(&in->pruned);
	pthread_cond_destroy(&in->wake);
	pthread_mutex_destroy(&in->lock);
}

/* The monotonic time to the millisecond, and as far from the wall clock as before where nothing
 * stepped: so it costs no bytes. */
static int64_t settle_clock(struct intake *in, const struct sample *s) {
	int64_t ahead_ms = s->at_mono_ns / NS_PER_MS - s->at_ms;
	if (ahead_ms - in->ahead_ms > SAME_CLOCK_MS || in->ahead_ms - ahead_ms > SAME_CLOCK_MS)
		in->ahead_ms = ahead_ms;
	return (s->at_ms + in->ahead_ms) * NS_PER_MS;
}

static bool take(struct intake *in, const struct sample *s) {
	struct open_series *series = open_find(&in->open, s->series_id);
	if (!series || s->at_ms == NONE || s->value_milli == NONE)
		return false;
	const struct reading r = {
		s->at_ms, settle_clock(in, s), s->value_milli, in->boot, LINK_NEXT};
	if (!open_add(&in->open, series, &r))
		return false;
	in->waiting[in->count] = *s;
	in->waiting[in->count++].at_mono_ns = r.at_mono_ns;
	return true;
}

/* Samples taken before the first that is not. */
static size_t take_run(struct intake *in, const struct sample *s, size_t n) {
	size_t taken = 0;
	pthread_mutex_lock(&in->lock);
	while (taken < n && in->count + in->storing < in->max && take(in, &s[taken]))
		taken++;
	in->dropped += taken < n;
	if (in->count >= in->max / 2)
		pthread_cond_signal(&in->wake);
	pthread_mutex_unlock(&in->lock);
	return taken;
}

size_t energy_ingest(struct energy *e, const struct sample *s, size_t n) {
	size_t taken = 0;
	for (size_t i = 0; i < n; i++) {
		const size_t run = take_run(&e->intake, &s[i], n - i);
		if (run)
			subscribers_tell(&e->subscribers, &s[i], run);
		taken += run;
		i += run;
	}
	metric_add(METRIC_SAMPLES_IN, (int64_t)taken);
	metric_add(METRIC_SAMPLES_DROPPED, (int64_t)(n - taken));
	return taken;
}

void intake_again(struct energy *e, const struct sample *s, int32_t boot) {
	struct intake *in = &e->intake;
	struct open_series *series = open_find(&in->open, s->series_id);
	const struct reading r = {s->at_ms, settle_clock(in, s), s->value_milli, boot, LINK_NEXT};
	/* What is not taken was too old or too much then, too. */
	if (series)
		(void)!open_add(&in->open, series, &r);
}

void intake_take(struct energy *e) {
	struct intake *in = &e->intake;
	struct sample *spare = e->batch;
	pthread_mutex_lock(&in->lock);
	e->batch = in->waiting;
	e->batch_count = in->storing = in->count;
	in->waiting = spare;
	in->count = 0;
	/* What comes from now on is stored behind this. */
	if (e->batch_count)
		in->open.next_tick++;
	pthread_mutex_unlock(&in->lock);
}

int64_t intake_stored(struct energy *e) {
	struct intake *in = &e->intake;
	pthread_mutex_lock(&in->lock);
	int64_t dropped = in->dropped;
	in->storing = 0;
	in->dropped = 0;
	pthread_mutex_unlock(&in->lock);
	e->batch_count = 0;
	return dropped;
}

bool intake_wait(struct intake *in, int64_t flush_ms) {
	struct timespec deadline = thread_deadline(flush_ms);
	pthread_mutex_lock(&in->lock);
	/* What could not be stored is not tried again at once. */
	while (!in->stopping && !in->prune && (in->storing || in->count < (in->max + 1) / 2) &&
		cond_wait_until(&in->wake, &in->lock, &deadline))
		;
	bool stopping = in->stopping;
	pthread_mutex_unlock(&in->lock);
	return !stopping;
}
