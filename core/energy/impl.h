/* What the files of the energy engine share. */
#ifndef DRIVEWATT_CORE_ENERGY_IMPL_H
#define DRIVEWATT_CORE_ENERGY_IMPL_H

#include <pthread.h>
#include <uthash.h>

#include "core/energy.h"

#define ENERGY_MAX_DEMANDS 256

/* All under the catalogue's lock: without it a pointer says no more than that there is one. */
struct series_entry {
	struct series series; /* used_ms as the store has it */
	bool first_known;     /* first_ms was looked up in the store */
	bool asked;           /* a producer has its id: it stays for this life */
	UT_hash_handle hh;
};

/* All series. Lock order: none is held with another. */
struct catalogue {
	pthread_mutex_t lock;
	struct series_entry *by_key;
	struct series_entry **by_id; /* ascending */
	size_t count, max;
};

struct demand {
	char host_id[37]; /* "" free */
	int64_t period_ms, until_ms;
};

struct demands {
	pthread_mutex_t lock;
	struct demand all[ENERGY_MAX_DEMANDS];
};

/* Samples taken in and not yet stored, oldest first. */
struct pending {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct sample *samples;
	size_t count, max;
	bool stopping;
	int64_t dropped; /* since the store began to fail */
};

struct energy {
	struct energy_config config;
	struct db *db; /* borrowed */
	struct catalogue catalogue;
	struct demands demands;
	struct pending pending;
	pthread_t flusher;
	bool started;
	bool failing;         /* the flusher's: the store does not take samples now */
	struct sample *batch; /* the flusher's */
};

enum rc must_check catalogue_load(struct energy *e, struct err *err);
void catalogue_release(struct catalogue *c);
/* The flusher notes when a series got its newest sample. */
void catalogue_note(struct catalogue *c, const struct sample *s, size_t n);

/* Series in use whose used_ms in the store is older than age_ms: fills id and used_ms, at most max.
 */
size_t catalogue_stale(struct catalogue *c, int64_t age_ms, struct series *out, size_t max);
/* What the store has now. */
void catalogue_touched(struct catalogue *c, const struct series *s, size_t n);
/* Drops those that nobody has used since before_ms, at most max, and fills their ids. */
size_t catalogue_prune(struct catalogue *c, int64_t before_ms, int64_t *ids, size_t max);

/* Visits stored samples of a series from from_ms to to_ms, then those still pending; same_boot:
 * taken in the boot of the one visited before. */
typedef bool energy_walk_fn(void *arg, const struct sample *s, bool same_boot);
enum rc must_check energy_walk(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	energy_walk_fn *visit, void *arg, struct err *err);

#endif
