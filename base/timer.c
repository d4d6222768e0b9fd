#include "base/timer.h"

#include "base/clock.h"
#include "base/thread.h"

/* Slots hold the timers and keep their place; the heap orders the slots in use by due time. An id
 * is the slot's number below the generation that tells its tenants apart. */
struct slot {
	timer_id id; /* 0: free */
	int64_t due_ms;
	int64_t period_ms;
	timer_fn *fn;
	void *arg;
	size_t heap_at;
	size_t next_free;
};

struct timers {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the first due time may have changed */
	pthread_cond_t idle;    /* a callback returned */
	pthread_t thread;
	bool started;
	bool stopping;
	timer_id running; /* whose callback runs now */
	uint64_t generation;
	size_t max;
	size_t first_free; /* max: none */
	size_t heap_len;
	struct slot *slots;
	size_t *heap; /* heap[0] is due first */
};

/* --- heap --- */

static bool is_before(const struct timers *t, size_t a, size_t b) {
	return t->slots[t->heap[a]].due_ms < t->slots[t->heap[b]].due_ms;
}

static void heap_put(struct timers *t, size_t at, size_t slot) {
	t->heap[at] = slot;
	t->slots[slot].heap_at = at;
}

static void heap_swap(struct timers *t, size_t a, size_t b) {
	size_t slot = t->heap[a];
	heap_put(t, a, t->heap[b]);
	heap_put(t, b, slot);
}

static void sift_up(struct timers *t, size_t at) {
	while (at && is_before(t, at, (at - 1) / 2)) {
		heap_swap(t, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static void sift_down(struct timers *t, size_t at) {
	for (;;) {
		size_t child = at * 2 + 1;
		if (child + 1 < t->heap_len && is_before(t, child + 1, child))
			child++;
		if (child >= t->heap_len || !is_before(t, child, at))
			return;
		heap_swap(t, at, child);
		at = child;
	}
}

static void heap_add(struct timers *t, size_t slot) {
	heap_put(t, t->heap_len, slot);
	sift_up(t, t->heap_len++);
}

static void heap_remove(struct timers *t, size_t at) {
	heap_swap(t, at, --t->heap_len);
	if (at < t->heap_len) {
		sift_up(t, at);
		sift_down(t, at);
	}
}

/* --- slots --- */

static struct slot *slot_of(struct timers *t, timer_id id) {
	struct slot *s = &t->slots[id % t->max];
	return id && s->id == id ? s : NULL;
}

static void slot_free(struct timers *t, struct slot *s) {
	s->id = 0;
	s->next_free = t->first_free;
	t->first_free = (size_t)(s - t->slots);
}

static void slots_init(struct timers *t) {
	for (size_t i = 0; i < t->max; i++)
		t->slots[i].next_free = i + 1;
}

/* --- the thread --- */

/* Takes the first timer out of the heap, or sets its next time, before its callback runs. */
static void advance(struct timers *t, struct slot *s, int64_t now_ms) {
	heap_remove(t, s->heap_at);
	if (!s->period_ms) {
		slot_free(t, s);
		return;
	}
	s->due_ms += s->period_ms;
	/* What was missed is not made up for. */
	if (s->due_ms <= now_ms)
		s->due_ms = now_ms + s->period_ms;
	heap_add(t, (size_t)(s - t->slots));
}

static void run_first(struct timers *t, int64_t now_ms) {
	struct slot *s = &t->slots[t->heap[0]];
	struct slot todo = *s;
	advance(t, s, now_ms);
	t->running = todo.id;
	pthread_mutex_unlock(&t->lock);
	todo.fn(todo.arg);
	pthread_mutex_lock(&t->lock);
	t->running = 0;
	pthread_cond_broadcast(&t->idle);
}

static void *run(void *arg) {
	struct timers *t = arg;
	pthread_mutex_lock(&t->lock);
	while (!t->stopping) {
		int64_t now_ms = clock_mono_ms();
		int64_t wait_ms = t->heap_len ? t->slots[t->heap[0]].due_ms - now_ms : INT64_MAX;
		if (wait_ms <= 0) {
			run_first(t, now_ms);
			continue;
		}
		struct timespec deadline = thread_deadline(wait_ms);
		cond_wait_until(&t->changed, &t->lock, &deadline);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct timers *timers_new(size_t max_timers, struct err *err) {
	struct timers *t = calloc(1, sizeof(*t));
	if (!t || !max_timers)
		goto nomem;
	t->max = max_timers;
	t->slots = calloc(max_timers, sizeof(t->slots[0]));
	t->heap = calloc(max_timers, sizeof(t->heap[0]));
	if (!t->slots || !t->heap)
		goto nomem;
	slots_init(t);
	pthread_mutex_init(&t->lock, NULL);
	cond_init(&t->changed);
	cond_init(&t->idle);
	if (thread_start(&t->thread, "timers", run, t, err))
		goto fail;
	t->started = true;
	return t;
nomem:
	err_set(err, RC_NOMEM, "no memory for %zu timers", max_timers);
fail:
	timers_free(t);
	return NULL;
}

static void stop(struct timers *t) {
	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->idle);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
}

void timers_free(struct timers *t) {
	if (!t)
		return;
	if (t->started)
		stop(t);
	free(t->heap);
	free(t->slots);
	free(t);
}

/* --- callers --- */

static timer_id add(struct timers *t, struct slot new) {
	size_t at = t->first_free;
	if (at == t->max)
		return 0;
	struct slot *s = &t->slots[at];
	t->first_free = s->next_free;
	new.id = ++t->generation * t->max + at;
	*s = new;
	heap_add(t, at);
	if (t->heap[0] == at)
		pthread_cond_signal(&t->changed);
	return s->id;
}

timer_id timer_start(
	struct timers *t, int64_t delay_ms, int64_t period_ms, timer_fn *fn, void *arg) {
	pthread_mutex_lock(&t->lock);
	timer_id id = add(t,
		(struct slot){
			.due_ms = clock_mono_ms() + delay_ms,
			.period_ms = period_ms,
			.fn = fn,
			.arg = arg,
		});
	pthread_mutex_unlock(&t->lock);
	return id;
}

void timer_cancel(struct timers *t, timer_id id) {
	pthread_mutex_lock(&t->lock);
	struct slot *s = slot_of(t, id);
	if (s) {
		heap_remove(t, s->heap_at);
		slot_free(t, s);
	}
	while (id && t->running == id && !pthread_equal(pthread_self(), t->thread))
		pthread_cond_wait(&t->idle, &t->lock);
	pthread_mutex_unlock(&t->lock);
}
