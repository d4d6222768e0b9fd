/*
 * Samples in, histories out. Producers know one function, energy_ingest; the engine knows no
 * producer. What producers should do faster for a while is said by demands.
 *
 * Any thread. energy_ingest, energy_demand, energy_period and energy_list never block for longer
 * than a lock that is held for moments; all else may block on the store. What is given is copied.
 */
#ifndef DRIVEWATT_CORE_ENERGY_H
#define DRIVEWATT_CORE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

#include "db/db.h"
#include "model/sample.h"

struct energy;

struct energy_config {
	unsigned max_series;    /* in memory (16384) */
	unsigned queue_samples; /* taken in but not yet stored (65536); more are dropped, counted */
	int64_t flush_ms;       /* how long samples wait to be stored together (2000) */
	int64_t max_gap_ms;     /* two samples further apart have no energy between them (60000, or
				   three periods of the meter) */
	size_t open_bytes;      /* of samples in hours that are not over; 0: 64 MiB */
};                              /* each but the last over 0, else RC_INVALID */

/* samples is borrowed until energy_free. */
struct energy *energy_new(const struct energy_config *config, struct db *samples, struct err *err);
/* Flushes first; nobody may be in a call any more. NULL is fine. */
void energy_free(struct energy *e);

/* Finds or makes a series; its id is valid until energy_free. Blocks on the store the first time.
 * RC_FULL at max_series. */
enum rc must_check energy_series(struct energy *e, const struct series_key *key, const char *source,
	int64_t *id, struct err *err);
/* Takes samples in; returns how many were taken (the rest is dropped and counted). */
size_t energy_ingest(struct energy *e, const struct sample *s, size_t n);

#define ENERGY_MAX_SUBSCRIBERS 4
typedef void energy_subscriber_fn(void *arg, const struct sample *s, size_t n);
/* fn hears of the samples that were taken in, in the thread that brought them: those of a series in
 * their order, of several series at once. It must be quick and not call back. RC_FULL. There is no
 * unsubscribing: subscribers live until the last producer has ended. */
enum rc must_check energy_subscribe(
	struct energy *e, energy_subscriber_fn *fn, void *arg, struct err *err);

/* "From now until until_ms (wall), sample this host every period_ms": for a run. RC_INVALID: period
 * not over 0; RC_FULL: 256 demands are open. */
enum rc must_check energy_demand(struct energy *e, const char *host_id, int64_t period_ms,
	int64_t until_ms, struct err *err);
/* What a producer should do: the shortest period demanded now, or fallback_ms. */
int64_t energy_period(struct energy *e, const char *host_id, int64_t fallback_ms);

/* The series of (host, object, quantity) that should be shown: measured before bmc before
 * derived, declared, estimated, simulated. RC_NOT_FOUND. Both block on the store when they are the
 * first to ask for the series' range. */
enum rc must_check energy_find(struct energy *e, const char *host_id, const char *object,
	enum quantity q, struct series *out, struct err *err);
enum rc must_check energy_get(
	struct energy *e, int64_t series_id, struct series *out, struct err *err);
/* Each filter may be NULL, quantity -1; ids after `after`, ascending, at most limit. The visitor
 * must not call back. */
enum rc must_check energy_list(struct energy *e, const char *host_id, const char *object,
	int quantity, int64_t after, int limit, bool (*visit)(void *arg, const struct series *s),
	void *arg, struct err *err);

/* Samples with from_ms <= at_ms < to_ms by the hour, within an hour in the order in which they were
 * taken, which is by time but for steps of the wall clock; those not yet stored included. The
 * visitor returns false to stop. */
enum rc must_check energy_raw(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	bool (*visit)(void *arg, const struct sample *s), void *arg, struct err *err);

struct energy_point {
	int64_t at_ms;     /* start of the step */
	int64_t avg_milli; /* time-weighted over covered time; NONE when nothing is covered */
	int64_t min_milli, max_milli; /* NONE without a sample */
	int64_t energy_mj;            /* of power and energy counters; 0 when nothing is covered */
	int64_t covered_ms;
};

#define ENERGY_MAX_POINTS 11000

struct energy_history {
	struct series series;
	int64_t from_ms, to_ms, step_ms; /* step_ms 86,400,000 with a zone: days, 23–25 h long */
	size_t count;
	struct energy_point *points; /* owned */
	int64_t energy_mj, covered_ms, expected_ms;
	/* Over 0: what is that old is known in stretches of this length alone, and was divided
	 * evenly among steps that are not in line with them. */
	int64_t resolution_ms;
};
/* step_ms 0: auto, at most 500 points, which begin at multiples of the step but for the first; else
 * steps begin at from_ms. tz: IANA name for days, NULL UTC. Trapezoid between samples at most
 * max_gap_ms apart, on the monotonic clock where both are of one boot; of an energy counter its
 * rises, across at most a day without a sample.
 * RC_INVALID (from, to, step, tz; step where it would give more than ENERGY_MAX_POINTS). */
enum rc must_check energy_query(struct energy *e, int64_t series_id, int64_t from_ms, int64_t to_ms,
	int64_t step_ms, const char *tz, struct energy_history *out, struct err *err);
void energy_history_release(struct energy_history *h);

/* From when on something is kept; NONE: all of it. */
struct energy_horizons {
	struct energy_horizon {
		int64_t samples_ms, quarters_ms, hours_ms;
	} energy, others; /* power and counters of energy, and all other quantities */
};
/* Deletes what is older (samples by whole days, UTC), and a day later series that had neither
 * samples nor, in this life, a producer since. Blocks until it is done, a thread at a time. */
void energy_prune(struct energy *e, const struct energy_horizons *horizons);

#endif
