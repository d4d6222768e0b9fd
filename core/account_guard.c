#include "core/account_guard.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/secret.h"

#define WAYS 4
#define FAILURE_MS 6000 /* until one more is forgotten */

struct entry {
	uint8_t key[SECRET_FINGERPRINT_BYTES]; /* of the network */
	int64_t until_ms;                      /* monotonic; all its failures are forgotten */
};

struct account_guard {
	pthread_mutex_t lock; /* guards entries */
	int64_t allowed_ms;   /* of failures, before the last that an address may have */
	size_t sets;
	struct entry entries[];
};

struct account_guard *account_guard_new(size_t addresses, unsigned max_failures) {
	const size_t sets = (addresses + WAYS - 1) / WAYS;
	struct account_guard *g = calloc(1, sizeof(*g) + sets * WAYS * sizeof(g->entries[0]));
	if (!g)
		return NULL;
	pthread_mutex_init(&g->lock, NULL);
	g->allowed_ms = max_failures ? (max_failures - 1) * (int64_t)FAILURE_MS : INT64_MAX;
	g->sets = sets;
	return g;
}

void account_guard_free(struct account_guard *g) {
	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static void key_of(const char *address, uint8_t key[SECRET_FINGERPRINT_BYTES]) {
	uint8_t network[ADDRESS_NETWORK_BYTES];
	address_network(address, network);
	secret_fingerprint(network, sizeof(network), key);
}

/* The address's own place, else the one whose failures are forgotten first. */
static struct entry *place_of(struct account_guard *g, const uint8_t *key) {
	uint64_t hash;
	memcpy(&hash, key, sizeof(hash));
	struct entry *set = &g->entries[hash % g->sets * WAYS];
	struct entry *first = set;
	for (int i = 0; i < WAYS; i++) {
		if (memcmp(set[i].key, key, sizeof(set[i].key)) == 0)
			return &set[i];
		if (set[i].until_ms < first->until_ms)
			first = &set[i];
	}
	return first;
}

int64_t account_guard_wait_ms(struct account_guard *g, const char *address) {
	uint8_t key[SECRET_FINGERPRINT_BYTES];
	key_of(address, key);
	pthread_mutex_lock(&g->lock);
	const struct entry *e = place_of(g, key);
	const bool has_failed = memcmp(e->key, key, sizeof(e->key)) == 0;
	const int64_t failures_ms = has_failed ? e->until_ms - clock_mono_ms() : 0;
	pthread_mutex_unlock(&g->lock);
	return failures_ms > g->allowed_ms ? failures_ms - g->allowed_ms : 0;
}

void account_guard_failed(struct account_guard *g, const char *address) {
	const int64_t now_ms = clock_mono_ms();
	uint8_t key[SECRET_FINGERPRINT_BYTES];
	key_of(address, key);
	pthread_mutex_lock(&g->lock);
	struct entry *e = place_of(g, key);
	if (memcmp(e->key, key, sizeof(e->key)) != 0 || e->until_ms < now_ms)
		e->until_ms = now_ms;
	e->until_ms += FAILURE_MS;
	memcpy(e->key, key, sizeof(e->key));
	pthread_mutex_unlock(&g->lock);
}
