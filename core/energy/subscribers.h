/* Who hears of every sample. */
#ifndef DRIVEWATT_CORE_ENERGY_SUBSCRIBERS_H
#define DRIVEWATT_CORE_ENERGY_SUBSCRIBERS_H

#include <pthread.h>

#include "core/energy.h"

struct subscribers {
	pthread_rwlock_t lock;
	size_t count;
	struct {
		energy_subscriber_fn *fn;
		void *arg;
	} all[ENERGY_MAX_SUBSCRIBERS];
};

void subscribers_init(struct subscribers *s);
void subscribers_release(struct subscribers *s);
void subscribers_tell(struct subscribers *s, const struct sample *samples, size_t n);

#endif
