#include "core/account_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"

#define WAYS 4
#define RENEW_PART 8 /* of its time, an entry's last, in which it is renewed */

struct entry {
	uint8_t key[SECRET_FINGERPRINT_BYTES];
	uint64_t generation; /* 0: empty */
	int64_t expires_ms;  /* monotonic */
	int64_t renew_ms;    /* likewise; from then on one is sent to verify it */
	_Atomic bool renewing;
	enum role role;
	struct proof proof;
	char account_id[37];
	char name[65];
};

struct account_cache {
	pthread_rwlock_t lock;
	uint64_t generation; /* of the entries that count */
	size_t sets;
	struct entry entries[];
};

struct account_cache *account_cache_new(size_t entries) {
	const size_t sets = (entries + WAYS - 1) / WAYS + 1;
	struct account_cache *c = calloc(1, sizeof(*c) + sets * WAYS * sizeof(c->entries[0]));
	if (!c)
		return NULL;
	pthread_rwlock_init(&c->lock, NULL);
	c->generation = 1;
	c->sets = sets;
	return c;
}

void account_cache_free(struct account_cache *c) {
	if (!c)
		return;
	pthread_rwlock_destroy(&c->lock);
	free(c);
}

static struct entry *set_of(struct account_cache *c, const uint8_t *key) {
	uint64_t hash;
	memcpy(&hash, key, sizeof(hash));
	return &c->entries[hash % c->sets * WAYS];
}

static bool is_valid(const struct account_cache *c, const struct entry *e, int64_t now_ms) {
	return e->generation == c->generation && e->expires_ms > now_ms;
}

static struct entry *find(struct account_cache *c, const uint8_t *key) {
	struct entry *set = set_of(c, key);
	for (int i = 0; i < WAYS; i++) {
		if (set[i].generation && memcmp(set[i].key, key, sizeof(set[i].key)) == 0)
			return &set[i];
	}
	return NULL;
}

static bool must_renew(struct entry *e, int64_t now_ms) {
	return now_ms >= e->renew_ms && !atomic_exchange(&e->renewing, true);
}

static void copy_out(const struct entry *e, struct actor *out) {
	out->role = e->role;
	out->proof = e->proof;
	memcpy(out->account_id, e->account_id, sizeof(out->account_id));
	memcpy(out->name, e->name, sizeof(out->name));
}

bool account_cache_find(
	struct account_cache *c, const uint8_t key[SECRET_FINGERPRINT_BYTES], struct actor *out) {
	const int64_t now_ms = clock_mono_ms();
	pthread_rwlock_rdlock(&c->lock);
	struct entry *e = find(c, key);
	const bool found = e && is_valid(c, e, now_ms) && !must_renew(e, now_ms);
	if (found)
		copy_out(e, out);
	pthread_rwlock_unlock(&c->lock);
	return found;
}

bool account_cache_fresh(
	struct account_cache *c, const uint8_t key[SECRET_FINGERPRINT_BYTES], struct actor *out) {
	const int64_t now_ms = clock_mono_ms();
	pthread_rwlock_rdlock(&c->lock);
	const struct entry *e = find(c, key);
	const bool found = e && is_valid(c, e, now_ms) && now_ms < e->renew_ms;
	if (found)
		copy_out(e, out);
	pthread_rwlock_unlock(&c->lock);
	return found;
}

uint64_t account_cache_generation(struct account_cache *c) {
	pthread_rwlock_rdlock(&c->lock);
	const uint64_t generation = c->generation;
	pthread_rwlock_unlock(&c->lock);
	return generation;
}

/* The key's own place, else one that does not count any more, else the one that ends first. */
static struct entry *place_for(struct account_cache *c, const uint8_t *key, int64_t now_ms) {
	struct entry *own = find(c, key);
	struct entry *set = set_of(c, key);
	struct entry *best = set;
	for (int i = 0; i < WAYS && !own; i++) {
		if (!is_valid(c, &set[i], now_ms))
			return &set[i];
		if (set[i].expires_ms < best->expires_ms)
			best = &set[i];
	}
	return own ? own : best;
}

void account_cache_put(struct account_cache *c, const uint8_t key[SECRET_FINGERPRINT_BYTES],
	const struct actor *who, int64_t for_ms, uint64_t generation) {
	const int64_t now_ms = clock_mono_ms();
	pthread_rwlock_wrlock(&c->lock);
	if (generation == c->generation) {
		struct entry *e = place_for(c, key, now_ms);
		e->generation = generation;
		e->expires_ms = now_ms + for_ms;
		e->renew_ms = e->expires_ms - for_ms / RENEW_PART;
		atomic_store(&e->renewing, false);
		e->role = who->role;
		e->proof = who->proof;
		memcpy(e->key, key, sizeof(e->key));
		str_copy(e->account_id, sizeof(e->account_id), who->account_id);
		str_copy(e->name, sizeof(e->name), who->name);
	}
	pthread_rwlock_unlock(&c->lock);
}

void account_cache_forget(struct account_cache *c) {
	pthread_rwlock_wrlock(&c->lock);
	c->generation++;
	pthread_rwlock_unlock(&c->lock);
}
