#include "http/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "http/answer.h"

#define BUCKETS 512
/* What an answer costs besides its body: the entry, headers, the library's objects. */
#define OVERHEAD_BYTES 1024

struct entry {
	struct entry *prev, *next; /* by use, the latest last */
	struct entry *next_in_bucket;
	struct answer *answer;
	uint64_t version;
	size_t bytes;
	unsigned bucket;
	char key[];
};

struct cache {
	pthread_mutex_t lock; /* guards all below */
	size_t max_bytes;
	size_t bytes;
	struct entry *entries;
	struct entry *buckets[BUCKETS];
};

struct cache *cache_new(size_t max_bytes, struct err *err) {
	struct cache *c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->max_bytes = max_bytes;
	return c;
}

/* FNV-1a */
static unsigned bucket_of(const char *key) {
	uint32_t h = 2166136261U;
	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 16777619U;
	return (h ^ h >> 16) % BUCKETS;
}

static struct entry *find(struct cache *c, const char *key, unsigned bucket) {
	struct entry *e = c->buckets[bucket];
	while (e && strcmp(e->key, key))
		e = e->next_in_bucket;
	return e;
}

static void drop(struct cache *c, struct entry *e) {
	struct entry **link = &c->buckets[e->bucket];
	while (*link != e)
		link = &(*link)->next_in_bucket;
	*link = e->next_in_bucket;
	DL_DELETE(c->entries, e);
	c->bytes -= e->bytes;
	answer_unref(e->answer);
	free(e);
}

void cache_free(struct cache *c) {
	if (!c)
		return;
	while (c->entries)
		drop(c, c->entries);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void touch(struct cache *c, struct entry *e) {
	if (c->entries->prev == e)
		return; /* the latest already: the first one's prev */
	DL_DELETE(c->entries, e);
	DL_APPEND(c->entries, e);
}

struct answer *cache_get(struct cache *c, const char *key, uint64_t version) {
	unsigned bucket = bucket_of(key);
	struct answer *found = NULL;
	pthread_mutex_lock(&c->lock);
	struct entry *e = find(c, key, bucket);
	if (e && e->version == version) {
		found = answer_ref(e->answer);
		touch(c, e);
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

static void insert(struct cache *c, struct entry *e) {
	struct entry *old = find(c, e->key, e->bucket);
	if (old)
		drop(c, old);
	while (c->entries && c->bytes + e->bytes > c->max_bytes)
		drop(c, c->entries);
	e->next_in_bucket = c->buckets[e->bucket];
	c->buckets[e->bucket] = e;
	DL_APPEND(c->entries, e);
	c->bytes += e->bytes;
}

void cache_put(struct cache *c, const char *key, uint64_t version, struct answer *a) {
	size_t key_size = strlen(key) + 1;
	size_t bytes = (a->bytes ? a->bytes->len : 0) + key_size + OVERHEAD_BYTES;
	if (bytes > c->max_bytes / 8)
		return;
	struct entry *e = malloc(sizeof(*e) + key_size);
	if (!e)
		return;
	*e = (struct entry){.answer = answer_ref(a),
		.version = version,
		.bytes = bytes,
		.bucket = bucket_of(key)};
	memcpy(e->key, key, key_size);
	pthread_mutex_lock(&c->lock);
	insert(c, e);
	pthread_mutex_unlock(&c->lock);
}

size_t cache_bytes(struct cache *c) {
	pthread_mutex_lock(&c->lock);
	size_t bytes = c->bytes;
	pthread_mutex_unlock(&c->lock);
	return bytes;
}
