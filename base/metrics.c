#include "base/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>

static const struct {
	const char *name;
	const char *type;
	const char *help;
} infos[METRIC_COUNT_] = {
#define METRIC_INFO(id, name, type, help) [METRIC_##id] = {name, type, help},
	METRICS(METRIC_INFO)
#undef METRIC_INFO
};

static _Atomic int64_t values[METRIC_COUNT_];

void metric_add(enum metric m, int64_t n) {
	atomic_fetch_add_explicit(&values[m], n, memory_order_relaxed);
}

void metric_set(enum metric m, int64_t v) {
	atomic_store_explicit(&values[m], v, memory_order_relaxed);
}

int64_t metric_get(enum metric m) {
	return atomic_load_explicit(&values[m], memory_order_relaxed);
}

void metrics_render(struct buf *out) {
	for (size_t m = 0; m < METRIC_COUNT_; m++) {
		buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRId64 "\n", infos[m].name,
			infos[m].help, infos[m].name, infos[m].type, infos[m].name,
			metric_get((enum metric)m));
	}
}
