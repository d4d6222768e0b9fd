/*
 * Verified credentials, remembered for a while under a keyed digest of the raw header. A fixed
 * table of small sets; a full set gives up its oldest entry. One rwlock guards all of it; it is a
 * leaf and held for moments, since readers run on the HTTP loop.
 */
#ifndef DRIVEWATT_CORE_ACCOUNT_CACHE_H
#define DRIVEWATT_CORE_ACCOUNT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "model/account.h"

struct account_cache;

struct account_cache *account_cache_new(size_t entries);
void account_cache_free(struct account_cache *c);

/* False when it is not there or has expired; and once for an entry that is about to, so that one
 * request verifies it anew before all would have to. */
bool account_cache_find(
	struct account_cache *c, const uint8_t key[SECRET_FINGERPRINT_BYTES], struct actor *out);
/* The same of one that was verified so lately that it need not be renewed. */
bool account_cache_fresh(
	struct account_cache *c, const uint8_t key[SECRET_FINGERPRINT_BYTES], struct actor *out);
/* What is remembered after a forget() that came since generation was read is not wanted. */
uint64_t account_cache_generation(struct account_cache *c);
void account_cache_put(struct account_cache *c, const uint8_t key[SECRET_FINGERPRINT_BYTES],
	const struct actor *who, int64_t for_ms, uint64_t generation);
void account_cache_forget(struct account_cache *c);

#endif
