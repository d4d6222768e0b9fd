/*
 * What the files of the accounts share. Locks: hash_lock guards hashing and waiting; the cache has
 * its own; version is atomic; all else is fixed at construction. Neither lock is held while the
 * store is asked or a hash is computed.
 */
#ifndef DRIVEWATT_CORE_ACCOUNTS_IMPL_H
#define DRIVEWATT_CORE_ACCOUNTS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/account_cache.h"
#include "core/accounts.h"

struct accounts {
	struct accounts_config config;
	struct db *control;
	struct events *events;
	struct account_cache *cache;
	pthread_mutex_t hash_lock;
	pthread_cond_t hash_ended;
	unsigned hashing;
	unsigned waiting; /* for a turn */
	_Atomic uint64_t version;
};

/* Waits for a turn to hash, at most config.wait_ms: RC_FULL. Tells whether it had to. */
enum rc must_check accounts_hash_begin(struct accounts *a, bool *waited, struct err *err);
void accounts_hash_end(struct accounts *a);

#endif
