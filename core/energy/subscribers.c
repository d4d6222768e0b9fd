#include "core/energy/subscribers.h"

#include "core/energy/impl.h"

void subscribers_init(struct subscribers *s) {
	*s = (struct subscribers){.count = 0};
	pthread_rwlock_init(&s->lock, NULL);
}

void subscribers_release(struct subscribers *s) {
	pthread_rwlock_destroy(&s->lock);
}

/* Under the lock: nobody subscribes from within. */
void subscribers_tell(struct subscribers *s, const struct sample *samples, size_t n) {
	pthread_rwlock_rdlock(&s->lock);
	for (size_t i = 0; n && i < s->count; i++)
		s->all[i].fn(s->all[i].arg, samples, n);
	pthread_rwlock_unlock(&s->lock);
}

enum rc energy_subscribe(struct energy *e, energy_subscriber_fn *fn, void *arg, struct err *err) {
	struct subscribers *s = &e->subscribers;
	pthread_rwlock_wrlock(&s->lock);
	const bool room = s->count < ENERGY_MAX_SUBSCRIBERS;
	if (room) {
		s->all[s->count].fn = fn;
		s->all[s->count++].arg = arg;
	}
	pthread_rwlock_unlock(&s->lock);
	return room ? RC_OK
		    : err_set(err, RC_FULL, "more than %d subscribers", ENERGY_MAX_SUBSCRIBERS);
}
