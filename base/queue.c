#include "base/queue.h"

#include "base/thread.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* an item came, or closed */
	size_t capacity;
	size_t first;
	size_t len;
	bool closed;
	void *items[];
};

struct queue *queue_new(size_t capacity) {
	size_t size;
	if (__builtin_mul_overflow(capacity, sizeof(void *), &size) ||
		__builtin_add_overflow(size, sizeof(struct queue), &size))
		return NULL;
	struct queue *q = calloc(1, size);
	if (!q)
		return NULL;
	q->capacity = capacity;
	pthread_mutex_init(&q->lock, NULL);
	cond_init(&q->changed);
	return q;
}

void queue_free(struct queue *q) {
	if (!q)
		return;
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

bool queue_try_push(struct queue *q, void *item) {
	pthread_mutex_lock(&q->lock);
	bool taken = !q->closed && q->len < q->capacity;
	if (taken) {
		q->items[(q->first + q->len) % q->capacity] = item;
		q->len++;
		pthread_cond_signal(&q->changed);
	}
	pthread_mutex_unlock(&q->lock);
	return taken;
}

static void *take_first(struct queue *q) {
	void *item = q->items[q->first];
	q->first = (q->first + 1) % q->capacity;
	q->len--;
	return item;
}

void *queue_pop(struct queue *q, int64_t timeout_ms) {
	struct timespec deadline = thread_deadline(timeout_ms);
	pthread_mutex_lock(&q->lock);
	bool in_time = timeout_ms != 0;
	while (!q->len && !q->closed && in_time)
		in_time = cond_wait_until(&q->changed, &q->lock, &deadline);
	void *item = q->len ? take_first(q) : NULL;
	pthread_mutex_unlock(&q->lock);
	return item;
}

void queue_close(struct queue *q) {
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

size_t queue_len(struct queue *q) {
	pthread_mutex_lock(&q->lock);
	size_t len = q->len;
	pthread_mutex_unlock(&q->lock);
	return len;
}
