#include "base/latch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"

struct latch {
	atomic_uint refs;
	pthread_mutex_t lock;
	pthread_cond_t opened;
	bool open;
	size_t result_size;
	_Alignas(max_align_t) unsigned char result[];
};

struct latch *latch_new(size_t result_size) {
	struct latch *l = calloc(1, sizeof(*l) + result_size);
	if (!l)
		return NULL;
	atomic_init(&l->refs, 1);
	pthread_mutex_init(&l->lock, NULL);
	cond_init(&l->opened);
	l->result_size = result_size;
	return l;
}

struct latch *latch_ref(struct latch *l) {
	atomic_fetch_add(&l->refs, 1);
	return l;
}

void latch_unref(struct latch *l) {
	if (!l || atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	pthread_cond_destroy(&l->opened);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void latch_open(struct latch *l, const void *result) {
	pthread_mutex_lock(&l->lock);
	if (!l->open) {
		if (l->result_size)
			memcpy(l->result, result, l->result_size);
		l->open = true;
		pthread_cond_broadcast(&l->opened);
	}
	pthread_mutex_unlock(&l->lock);
}

bool latch_wait(struct latch *l, int64_t timeout_ms, void *result) {
	struct timespec deadline = thread_deadline(timeout_ms);
	pthread_mutex_lock(&l->lock);
	bool in_time = timeout_ms != 0;
	while (!l->open && in_time)
		in_time = cond_wait_until(&l->opened, &l->lock, &deadline);
	bool open = l->open;
	if (open && l->result_size)
		memcpy(result, l->result, l->result_size);
	pthread_mutex_unlock(&l->lock);
	return open;
}
