#include "http/farewell.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timer.h"

#define MAX 64
#define PERIOD_MS 20
#define WAIT_MS 5000
#define BYTES_MAX (32 * 1024 * 1024)
#define BYTES_AT_ONCE (1024 * 1024)

struct kept {
	int fd;
	int64_t until_ms;
	int64_t bytes_left;
};

struct farewell {
	struct timers *timers;
	pthread_mutex_t lock; /* guards all below */
	bool running;         /* the timer, while there is something to read */
	bool closed;
	unsigned count;
	struct kept kept[MAX];
};

struct farewell *farewell_new(struct timers *timers, struct err *err) {
	struct farewell *l = calloc(1, sizeof(*l));
	if (!l) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	l->timers = timers;
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

/* False when there is nothing more to wait for. */
static bool discard(struct kept *k, int64_t now_ms) {
	char waste[16384];
	ssize_t n = 1;
	for (int64_t got = 0; got < BYTES_AT_ONCE; got += n) {
		n = recv(k->fd, waste, sizeof(waste), MSG_DONTWAIT);
		if (n <= 0)
			break;
		k->bytes_left -= n;
	}
	const bool more = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
	return more && k->bytes_left > 0 && k->until_ms > now_ms;
}

static void discard_all(void *arg);

/* The timers have a place for this one. */
static void go_on(struct farewell *l) {
	(void)!timer_start(l->timers, PERIOD_MS, 0, discard_all, l);
}

static void discard_all(void *arg) {
	struct farewell *l = arg;
	const int64_t now_ms = clock_mono_ms();
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->count;) {
		if (discard(&l->kept[i], now_ms)) {
			i++;
			continue;
		}
		close(l->kept[i].fd);
		l->kept[i] = l->kept[--l->count];
	}
	const bool more = l->count;
	l->running = more;
	pthread_mutex_unlock(&l->lock);
	if (more)
		go_on(l);
}

void farewell_keep(struct farewell *l, int fd) {
	bool begins = false;
	pthread_mutex_lock(&l->lock);
	const int own = !l->closed && l->count < MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
	if (own >= 0) {
		shutdown(own, SHUT_WR);
		l->kept[l->count++] = (struct kept){own, clock_mono_ms() + WAIT_MS, BYTES_MAX};
		begins = !l->running;
		l->running = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (begins)
		go_on(l);
}

void farewell_close(struct farewell *l) {
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	while (l->count)
		close(l->kept[--l->count].fd);
	pthread_mutex_unlock(&l->lock);
}

void farewell_free(struct farewell *l) {
	if (!l)
		return;
	pthread_mutex_destroy(&l->lock);
	free(l);
}
