/*
 * Finished answers by key, each good for one version of what it shows. Bounded in bytes; the least
 * recently used go first. Any thread.
 */
#ifndef DRIVEWATT_HTTP_CACHE_H
#define DRIVEWATT_HTTP_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

struct answer;
struct cache;

struct cache *cache_new(size_t max_bytes, struct err *err);
void cache_free(struct cache *c); /* NULL is fine */
/* A reference for the caller, or NULL. */
struct answer *cache_get(struct cache *c, const char *key, uint64_t version);
/* Takes a reference of its own. What is larger than an eighth of the cache is not kept. */
void cache_put(struct cache *c, const char *key, uint64_t version, struct answer *a);
size_t cache_bytes(struct cache *c);

#endif
