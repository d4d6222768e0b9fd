/* What the files of the energy engine share. */
#ifndef DRIVEWATT_CORE_ENERGY_IMPL_H
#define DRIVEWATT_CORE_ENERGY_IMPL_H

#include <pthread.h>
#include <uthash.h>

#include "core/energy.h"
#include "core/energy/open.h"
#include "core/energy/subscribers.h"

#define ENERGY_MAX_DEMANDS 256
#define DAY_MS INT64_C(86400000)
#define MONTH_DAYS 32

/* All under the catalogue's lock: without it a pointer says no more than that there is one. */
struct series_entry {
	struct series series; /* used_ms as the store has it, the range as it was at the start */
	bool asked;           /* a producer has its id: it stays for this life */
	UT_hash_handle hh;
};

/* All series. Its lock comes before the intake's; no other is held with it. */
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

/* Samples taken in: in their open hours at once, and waiting to be stored. */
struct intake {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct open_set open;
	struct sample *waiting; /* oldest first */
	size_t count, max;
	size_t storing;   /* of max, with the keeper now */
	int32_t boot;     /* this one's number */
	int64_t ahead_ms; /* how far the monotonic clock is ahead of the wall clock */
	bool stopping;
	int64_t dropped; /* since the store began to fail */
	/* What the keeper should delete; NULL once it has. */
	const struct energy_horizons *prune;
	pthread_cond_t pruned;
};

struct energy {
	struct energy_config config;
	struct db *db; /* borrowed */
	struct catalogue catalogue;
	struct demands demands;
	struct intake intake;
	struct subscribers subscribers;
	pthread_t keeper; /* stores samples, closes hours, makes aggregates */
	bool started;

	/* The keeper's own. */
	bool failing;             /* the store does not take samples now */
	int64_t dropped, told_ms; /* samples dropped since that was told, and when */
	bool behind;              /* nor chunks and aggregates */
	bool boot_known;          /* this boot's number is in the store */
	struct sample *batch;     /* what it stores */
	size_t batch_count;
	int64_t scanned_id; /* series looked at last for hours that are over */
	bool unforgotten;   /* something was closed, and is still in memory and the tick log */
	bool spilling;      /* all that is open goes into chunks, since there is too much */
	int64_t forced_ms;  /* spans that end before are over whatever comes */
	int64_t rolled_ms;  /* when days were looked for */
};

/* --- series.c --- */

enum rc must_check catalogue_load(struct energy *e, struct err *err);
void catalogue_release(struct catalogue *c);
/* -1: no such series. */
int catalogue_quantity(struct catalogue *c, int64_t id);

/* Series in use whose used_ms in the store is older than age_ms: fills id and used_ms, at most max.
 */
size_t catalogue_stale(struct energy *e, int64_t age_ms, struct series *out, size_t max);
/* What the store has now. */
void catalogue_touched(struct catalogue *c, const struct series *s, size_t n);
/* Drops those that nobody has used since before_ms, at most max, and fills their ids. */
size_t catalogue_prune(struct energy *e, int64_t before_ms, int64_t *ids, size_t max);
/* No range of power and energy, or of all else, begins before it any more. */
void catalogue_cut(struct energy *e, bool of_energy, int64_t before_ms);

/* How neighbours of a series are joined. */
struct joining energy_joining(const struct energy *e, int quantity);

/* --- intake.c --- */

enum rc must_check intake_init(struct energy *e, struct err *err);
void intake_release(struct intake *in);
/* Takes what waits over into e->batch; at most once until intake_stored. */
void intake_take(struct energy *e);
/* Says that the batch is in the store, and how many were dropped meanwhile. */
int64_t intake_stored(struct energy *e);
/* A sample that was stored before, of this boot. */
void intake_again(struct energy *e, const struct sample *s, int32_t boot);
/* True when it is time to store, false when the engine ends. */
bool intake_wait(struct intake *in, int64_t flush_ms);

/* --- replay.c --- */

/* Opens the hours again that the last life left. */
enum rc must_check energy_replay(struct energy *e, struct err *err);

/* --- close.c --- */

#define CLOSED_TICK "closed_tick" /* of all samples up to this tick … */
#define CLOSED_MS "closed_ms"     /* … those of hours before this are in chunks */

/* One piece of the work that is to be done beside storing: puts some hours that are over into
 * chunks, makes aggregates of them, forgets what is not needed any more. *more: there is another.
 */
enum rc must_check energy_keep(struct energy *e, bool *more, struct err *err);

/* How long after its end an hour is closed. */
int64_t energy_grace_ms(const struct energy *e);
/* Whether an hour, or a day, is over for so long that nothing usual comes for it any more; or has
 * not begun, by a clock that was set back since. */
bool span_is_past(const struct energy *e, int64_t newest_ms, int64_t begin_ms, int64_t length_ms);

/* --- retention.c --- */

/* Chunks of hours before these are deleted, by kind. */
#define PRUNED_ENERGY "pruned_energy"
#define PRUNED_OTHERS "pruned_others"

/* Deletes what energy_prune asked for, if it did. */
void prune_if_asked(struct energy *e);

/* --- tiers.c --- */

/* The buckets of one hour that is over, from its chunks. */
enum rc must_check tiers_hour(struct energy *e, int64_t newest_ms, bool *done, struct err *err);
/* Some days that are over, from their chunks into their series' months. */
enum rc must_check tiers_days(struct energy *e, int64_t newest_ms, bool *more, struct err *err);
#define TIER_COUNT 2
extern const int64_t tiers_ms[TIER_COUNT]; /* fine to coarse */

/* --- read.c --- */

/* The open hours of a series, copied: what is not in its chunks. */
struct open_copy {
	size_t count;
	struct copied_hour {
		int64_t begin_ms;
		struct readings samples;
	} * hours; /* owned */
};
enum rc must_check open_copy(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	struct open_copy *out, struct err *err);
void open_copy_release(struct open_copy *c);

/* Reads hours of one series, of what is open and what is stored as one. */
struct hour_reader {
	struct db_conn *c;
	int64_t series_id;
	struct joining how;
	struct open_copy open;
	struct buf bytes;
	struct chunk chunk;        /* the one that was read last */
	struct readings samples;   /* settled, where no minutes were found */
	struct aggregates minutes; /* keyed 0 … 59 */
};
/* Copies the open hours, then begins to read. */
enum rc must_check hour_reader_init(struct hour_reader *r, struct energy *e, const struct series *s,
	int64_t from_ms, int64_t to_ms, struct err *err);
void hour_reader_release(struct hour_reader *r);
bool hour_reader_has_open(const struct hour_reader *r, int64_t from_ms, int64_t to_ms);
enum hour_found { HOUR_EMPTY, HOUR_SAMPLES, HOUR_MINUTES };
/* minutes: they will do, where they are stored. */
enum rc must_check hour_reader_get(struct hour_reader *r, int64_t begin_ms, bool minutes,
	enum hour_found *found, struct err *err);

#endif
