#include "base/pool.h"

#include "base/queue.h"
#include "base/thread.h"

struct job {
	pool_fn *fn;
	void *arg;
};

struct pool {
	struct queue *jobs; /* of struct job, owned */
	size_t thread_count;
	pthread_t threads[];
};

static void *work(void *arg) {
	struct pool *p = arg;
	struct job *job;
	while ((job = queue_pop(p->jobs, -1))) {
		struct job todo = *job;
		free(job);
		todo.fn(todo.arg);
	}
	return NULL;
}

struct pool *pool_new(const char *name, size_t threads, size_t queue_capacity, struct err *err) {
	struct pool *p = calloc(1, sizeof(*p) + threads * sizeof(p->threads[0]));
	if (!p || !(p->jobs = queue_new(queue_capacity))) {
		err_set(err, RC_NOMEM, "out of memory");
		goto fail;
	}
	for (; p->thread_count < threads; p->thread_count++) {
		if (thread_start(&p->threads[p->thread_count], name, work, p, err))
			goto fail;
	}
	return p;
fail:
	pool_free(p);
	return NULL;
}

bool pool_submit(struct pool *p, pool_fn *fn, void *arg) {
	struct job *job = malloc(sizeof(*job));
	if (!job)
		return false;
	*job = (struct job){fn, arg};
	if (queue_try_push(p->jobs, job))
		return true;
	free(job);
	return false;
}

size_t pool_queued(struct pool *p) {
	return queue_len(p->jobs);
}

void pool_close(struct pool *p) {
	queue_close(p->jobs);
}

void pool_free(struct pool *p) {
	if (!p)
		return;
	if (p->jobs)
		queue_close(p->jobs);
	for (size_t i = 0; i < p->thread_count; i++)
		pthread_join(p->threads[i], NULL);
	queue_free(p->jobs);
	free(p);
}
