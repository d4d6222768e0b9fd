/* Samples on the stream: taken as they come, told a few times a second, rendered once for all. */
#include "api/v1/live.h"

#include <pthread.h>
#include <string.h>

#include "base/metrics.h"
#include "base/pool.h"
#include "base/timer.h"
#include "core/energy.h"

#define PERIOD_MS 250
#define PENDING_MAX 8192
#define RING 512
#define BLOCK_BYTES_MAX (16 * 1024)
#define SAMPLE_BYTES_MAX 512

struct live {
	struct core *core;
	struct http_channel *channel;
	pthread_mutex_t lock; /* guards what follows */
	bool rendering;       /* a job is under way: batches are told in their order */
	size_t count;
	struct sample pending[PENDING_MAX];
	struct sample batch[PENDING_MAX]; /* the job's */
};

/* In the producers' threads. */
static void take_samples(void *arg, const struct sample *s, size_t n) {
	struct live *l = arg;
	if (!http_channel_readers(l->channel))
		return;
	pthread_mutex_lock(&l->lock);
	size_t taken = PENDING_MAX - l->count;
	if (taken > n)
		taken = n;
	memcpy(l->pending + l->count, s, taken * sizeof(*s));
	l->count += taken;
	pthread_mutex_unlock(&l->lock);
	metric_add(METRIC_LIVE_DROPPED, (int64_t)(n - taken));
}

static bool take_series(void *arg, const struct series *s) {
	*(struct series *)arg = *s;
	return false;
}

/* Without asking the store for the series' range. */
static bool find_series(struct core *core, int64_t id, struct series *s) {
	struct err ignored;
	if (s->id == id)
		return true;
	s->id = 0;
	return !energy_list(core->energy, NULL, NULL, -1, id - 1, 1, take_series, s, &ignored) &&
		s->id == id;
}

static void render_sample(struct jsonw *w, const struct series *series, const struct sample *s) {
	jsonw_object(w, NULL);
	jsonw_strf(w, "series", "%lld", (long long)series->id);
	jsonw_str(w, "host", series->key.host_id);
	jsonw_str(w, "object", series->key.object);
	jsonw_str(w, "quantity", quantity_name(series->key.quantity));
	jsonw_str(w, "unit", quantity_unit(series->key.quantity));
	jsonw_str(w, "quality", quality_name(series->key.quality));
	jsonw_time(w, "at", s->at_ms);
	jsonw_milli(w, "value", s->value_milli);
	jsonw_object_end(w);
}

/* One block; returns how many samples are in it or were of no series. */
static size_t tell_block(struct live *l, const struct sample *s, size_t n) {
	struct series series = {.id = 0};
	struct buf block;
	struct jsonw w;
	size_t i = 0;
	buf_init(&block, BLOCK_BYTES_MAX);
	buf_adds(&block, "event: samples\ndata: ");
	jsonw_init(&w, &block);
	jsonw_array(&w, NULL);
	for (; i < n && block.len < BLOCK_BYTES_MAX - SAMPLE_BYTES_MAX; i++) {
		if (find_series(l->core, s[i].series_id, &series))
			render_sample(&w, &series, &s[i]);
	}
	jsonw_array_end(&w);
	buf_adds(&block, "\n\n");
	if (!block.failed)
		http_channel_publish(l->channel, block.data, block.len);
	buf_release(&block);
	return i;
}

static void is_rendering(struct live *l, bool rendering) {
	pthread_mutex_lock(&l->lock);
	l->rendering = rendering;
	pthread_mutex_unlock(&l->lock);
}

static void tell(void *arg) {
	struct live *l = arg;
	pthread_mutex_lock(&l->lock);
	const size_t n = l->count;
	memcpy(l->batch, l->pending, n * sizeof(l->batch[0]));
	l->count = 0;
	pthread_mutex_unlock(&l->lock);
	for (size_t i = 0; i < n;)
		i += tell_block(l, l->batch + i, n - i);
	is_rendering(l, false);
}

static void on_time(void *arg) {
	struct live *l = arg;
	pthread_mutex_lock(&l->lock);
	const bool begin = l->count && !l->rendering;
	l->rendering |= begin;
	pthread_mutex_unlock(&l->lock);
	if (begin && !pool_submit(l->core->jobs, tell, l))
		is_rendering(l, false);
}

struct live *live_new(
	struct core *core, unsigned max_readers, int64_t heartbeat_ms, struct err *err) {
	struct live *l = calloc(1, sizeof(*l));
	if (!l) {
		err_set(err, RC_NOMEM, "memory is out");
		return NULL;
	}
	l->core = core;
	pthread_mutex_init(&l->lock, NULL);
	l->channel = http_channel_new(RING, max_readers, heartbeat_ms, err);
	if (l->channel)
		return l;
	live_free(l);
	return NULL;
}

enum rc live_start(struct live *l, struct err *err) {
	enum rc rc = energy_subscribe(l->core->energy, take_samples, l, err);
	if (!rc && !timer_start(l->core->timers, PERIOD_MS, PERIOD_MS, on_time, l))
		rc = err_set(err, RC_FULL, "there are too many timers");
	return rc;
}

void live_free(struct live *l) {
	if (!l)
		return;
	http_channel_free(l->channel);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct http_channel *live_channel(struct live *l) {
	return l->channel;
}
