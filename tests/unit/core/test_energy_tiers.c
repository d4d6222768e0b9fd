/*
 * Whatever tier answers, and wherever a sample is just now (in memory, in the tick log, in a chunk,
 * in aggregates): the energy is that of all samples integrated at once. On made-up histories with
 * gaps, late and double samples, steps of the wall clock, restarts and faults of the store.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/energy/impl.h"
#include "db/history.h"
#include "db/samples.h"
#include "tests/support/temp_db.h"

#define SERIES 3
#define GAP_MS 30000
#define QUEUE 8000
#define PATIENCE_MS 60000
#define BEGIN_MS (INT64_C(20000) * DAY_MS)

struct world {
	struct temp_db *store;
	struct energy *energy;
	size_t open_bytes;
	int64_t id[SERIES];
	enum quantity quantity[SERIES];
	struct readings all[SERIES]; /* what must be there */
	struct sample *queued;       /* next to be taken in, all series */
	size_t count;
	int64_t now_ms, mono_ms;
	int64_t watts[SERIES];
	int32_t boot;
	int64_t stepped_ms,
		step_ms; /* when the wall clock stepped last, by the monotonic, and by how much */
};

static uint64_t seed;

static int64_t below(int64_t n) {
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (int64_t)(seed % (uint64_t)n);
}

static bool chance(int64_t in) {
	return below(in) == 0;
}

/* --- the engine --- */

static void engine_open(struct world *w) {
	const struct energy_config config = {
		.max_series = SERIES,
		.queue_samples = QUEUE,
		.flush_ms = 5,
		.max_gap_ms = GAP_MS,
		.open_bytes = w->open_bytes,
	};
	struct err err;
	w->energy = energy_new(&config, w->store->db, &err);
	if (!w->energy)
		fail_msg("%s", err.msg);
}

static void make_series(struct world *w) {
	for (int i = 0; i < SERIES; i++) {
		struct series_key key = {.host_id = "host", .quality = QUALITY_BMC};
		key.object[0] = (char)('a' + i);
		key.quantity = (uint8_t)w->quantity[i];
		assert_int_equal(energy_series(w->energy, &key, "test", &w->id[i], NULL), RC_OK);
	}
}

static struct world *world_new(uint64_t with_seed, size_t open_bytes) {
	struct world *w = calloc(1, sizeof(*w));
	seed = with_seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	w->store = temp_db_new(DB_SAMPLES);
	w->open_bytes = open_bytes;
	w->now_ms = BEGIN_MS + below(DAY_MS);
	w->mono_ms = 100000000;
	w->boot = 1;
	w->queued = calloc(QUEUE, sizeof(*w->queued));
	w->quantity[1] = QUANTITY_ENERGY_COUNTER;
	w->quantity[2] = QUANTITY_TEMPERATURE;
	engine_open(w);
	make_series(w);
	return w;
}

static void world_free(struct world *w) {
	energy_free(w->energy);
	temp_db_free(w->store);
	for (int i = 0; i < SERIES; i++)
		readings_release(&w->all[i]);
	free(w->queued);
	free(w);
}

static void wait_until_stored(struct world *w) {
	const struct timespec nap = {.tv_nsec = 1000000};
	struct intake *in = &w->energy->intake;
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
	for (bool stored = false; !stored;) {
		pthread_mutex_lock(&in->lock);
		stored = in->count + in->storing == 0;
		pthread_mutex_unlock(&in->lock);
		assert_true(clock_mono_ms() < deadline_ms);
		if (!stored)
			nanosleep(&nap, NULL);
	}
}

static void restart(struct world *w) {
	energy_free(w->energy);
	temp_db_close(w->store);
	temp_db_open(w->store);
	engine_open(w);
}

/* --- samples --- */

static bool is_earlier(const struct reading *a, const struct reading *b) {
	return a->boot != b->boot ? a->boot < b->boot : a->at_mono_ns < b->at_mono_ns;
}

static void note(struct world *w, int i, const struct sample *s) {
	const struct reading r = {s->at_ms, s->at_mono_ns, s->value_milli, w->boot, LINK_NEXT};
	struct readings *all = &w->all[i];
	for (size_t k = all->count; k-- > 0 && all->count - k < 20;) {
		const struct reading *old = &all->all[k];
		if (old->at_ms == r.at_ms && old->value_milli == r.value_milli &&
			old->at_mono_ns == r.at_mono_ns)
			return;
	}
	if (all->count == all->room) {
		all->room = all->room ? 2 * all->room : 1024;
		all->all = realloc(all->all, all->room * sizeof(r));
	}
	all->all[all->count++] = r;
	/* In the order in which they were taken. */
	for (size_t k = all->count - 1; k > 0 && is_earlier(&all->all[k], &all->all[k - 1]); k--) {
		struct reading later = all->all[k - 1];
		all->all[k - 1] = all->all[k];
		all->all[k] = later;
	}
}

/* A sample taken some time ago, by the clock of then. */
static void add(struct world *w, int i, int64_t back_ms, int64_t value) {
	int64_t mono_ms = w->mono_ms - back_ms;
	int64_t at_ms = w->now_ms - back_ms - (mono_ms < w->stepped_ms ? w->step_ms : 0);
	w->queued[w->count++] = (struct sample){w->id[i], at_ms, mono_ms * 1000000, value};
}

static int64_t next_value(struct world *w, int i) {
	if (w->quantity[i] != QUANTITY_ENERGY_COUNTER) {
		w->watts[i] += below(21) - 10;
		return 1000 * (200 + w->watts[i]) + below(3);
	}
	w->watts[i] = chance(2000) ? 0 : w->watts[i] + below(4);
	return w->watts[i];
}

static void pass(struct world *w, int64_t ms) {
	w->now_ms += ms;
	w->mono_ms += ms;
	if (chance(500))
		pass(w, chance(4) ? below(40 * HOUR_MS) : below(200000));
	if (chance(3000) && w->mono_ms > w->stepped_ms + 200000) {
		w->stepped_ms = w->mono_ms;
		w->step_ms = below(3 * HOUR_MS) - 2 * HOUR_MS;
		w->now_ms += w->step_ms;
	}
}

/* So many rounds of samples into w->queued. */
static void make_samples(struct world *w, int rounds) {
	for (int k = 0; k < rounds; k++) {
		pass(w, 9000 + below(2000));
		for (int i = 0; i < SERIES; i++) {
			if (chance(20))
				continue;
			add(w, i, 0, next_value(w, i));
			if (chance(50))
				add(w, i, 0, next_value(w, i));
			if (w->quantity[i] != QUANTITY_ENERGY_COUNTER && w->mono_ms > 150000 &&
				chance(100))
				add(w, i, 1000 * below(100), next_value(w, i));
		}
	}
}

static void note_any(struct world *w, const struct sample *s) {
	for (int i = 0; i < SERIES; i++) {
		if (s->series_id == w->id[i])
			note(w, i, s);
	}
}

static void take_in(struct world *w) {
	assert_int_equal(energy_ingest(w->energy, w->queued, w->count), w->count);
	for (size_t k = 0; k < w->count; k++)
		note_any(w, &w->queued[k]);
	w->count = 0;
}

/* --- what it should be --- */

static void integrate(
	const struct world *w, int i, struct integral *steps, size_t n, int64_t to_ms) {
	struct integrator in;
	const struct joining how = energy_joining(w->energy, (int)w->quantity[i]);
	integrator_init(&in, &how, steps, n, to_ms);
	for (size_t k = 0; k < w->all[i].count; k++)
		integrator_add(&in, &w->all[i].all[k]);
}

/* Which query is being checked. */
struct question {
	int series;
	int64_t from_ms, to_ms, step_ms, at_ms;
};

static void check_near(
	const struct question *q, const char *what, int64_t got, double want, double tolerance) {
	if (fabs((double)got - want) <= tolerance)
		return;
	char from[32], to[32], at[32];
	format_time(q->from_ms, from);
	format_time(q->to_ms, to);
	format_time(q->at_ms, at);
	fail_msg("series %d from %s to %s by %lld ms: %s at %s is %lld, not %.3f", q->series, from,
		to, (long long)q->step_ms, what, at, (long long)got, want);
}

static void check_query(struct world *w, int i, int64_t from_ms, int64_t to_ms, int64_t step_ms) {
	struct energy_history h;
	struct question q = {i, from_ms, to_ms, step_ms, from_ms};
	struct err err;
	if (energy_query(w->energy, w->id[i], from_ms, to_ms, step_ms, NULL, &h, &err))
		fail_msg("%s", err.msg);
	struct integral *steps = calloc(h.count, sizeof(*steps));
	for (size_t k = 0; k < h.count; k++)
		steps[k].at_ms = h.points[k].at_ms;
	integrate(w, i, steps, h.count, to_ms);
	double minutes = (double)(h.step_ms + MINUTE_MS) / MINUTE_MS, energy_mj = 0;
	for (size_t k = 0; k < h.count; k++) {
		const struct energy_point *p = &h.points[k];
		double covered_ms = steps[k].covered_ms;
		q.at_ms = p->at_ms;
		q.step_ms = h.step_ms;
		if (!quantity_is_energy(w->quantity[i]))
			assert_int_equal(p->energy_mj, 0);
		else
			check_near(
				&q, "energy", p->energy_mj, steps[k].milli_ms / 1000, 1 + minutes);
		check_near(&q, "covered", p->covered_ms, covered_ms, 1 + minutes);
		if (covered_ms > 1000)
			check_near(&q, "average", p->avg_milli, steps[k].milli_ms / covered_ms,
				1 + fabs(steps[k].milli_ms) / covered_ms / 500);
		check_near(&q, "minimum", p->min_milli, (double)steps[k].min_milli, 0);
		check_near(&q, "maximum", p->max_milli, (double)steps[k].max_milli, 0);
		energy_mj += steps[k].milli_ms / 1000;
	}
	if (quantity_is_energy(w->quantity[i]))
		check_near(&q, "sum", h.energy_mj, energy_mj, 1 + minutes * (double)h.count);
	assert_int_equal(h.resolution_ms, 0);
	energy_history_release(&h);
	free(steps);
}

static void check_some(struct world *w) {
	static const int64_t steps_ms[] = {0, 0, 7000, MINUTE_MS, 5 * MINUTE_MS, QUARTER_MS,
		HOUR_MS, 5400000, 6 * HOUR_MS, DAY_MS};
	for (int k = 0; k < 12; k++) {
		int64_t step_ms = steps_ms[below(array_len(steps_ms))];
		int64_t span_ms = 1 + below(step_ms ? 1000 * step_ms : 20 * DAY_MS);
		int64_t to_ms = w->now_ms + HOUR_MS - below(w->now_ms + HOUR_MS - BEGIN_MS);
		int64_t unit_ms = chance(2) ? 1 : chance(2) ? MINUTE_MS : HOUR_MS;
		check_query(w, (int)below(SERIES), floor_to(to_ms - span_ms, unit_ms),
			floor_to(to_ms, unit_ms) + unit_ms, step_ms);
	}
}

static void live(struct world *w, int rounds) {
	for (int k = 0; k < rounds; k++) {
		make_samples(w, 100 + (int)below(900));
		take_in(w);
		if (chance(3))
			check_some(w);
		wait_until_stored(w);
		if (chance(10))
			restart(w);
		check_some(w);
	}
}

/* --- */

static void tiers_are_as_samples(void **state unused_arg) {
	for (uint64_t s = 1; s <= 3; s++) {
		struct world *w = world_new(s, 0);
		live(w, 40);
		world_free(w);
	}
}

/* So little memory that hours go into chunks in pieces. */
static void little_memory_will_do(void **state unused_arg) {
	struct world *w = world_new(5, 2000);
	live(w, 40);
	world_free(w);
}

/* The store fails in the middle of something, and the program with it. */
static void crash(struct world *w) {
	struct intake *in = &w->energy->intake;
	const struct timespec nap = {.tv_nsec = 1000000};
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
	struct db_status status = {0};
	db_fail_nth(w->store->db, 1 + (int)below(400), RC_STORE);
	make_samples(w, 1300);
	size_t count = w->count;
	assert_int_equal(energy_ingest(w->energy, w->queued, count), count);
	bool stored = false;
	while (!stored && !status.failures) {
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&in->lock);
		stored = in->count + in->storing == 0;
		pthread_mutex_unlock(&in->lock);
		db_status_get(w->store->db, &status);
		assert_true(clock_mono_ms() < deadline_ms);
	}
	pthread_mutex_lock(&in->lock);
	stored = in->count + in->storing == 0;
	pthread_mutex_unlock(&in->lock);
	energy_free(w->energy);
	/* What was not stored is lost, and nothing else. */
	w->energy = NULL;
	db_fail_nth(w->store->db, 0, RC_OK);
	if (stored) {
		for (size_t k = 0; k < count; k++)
			note_any(w, &w->queued[k]);
	}
	w->count = 0;
	temp_db_close(w->store);
	temp_db_open(w->store);
	engine_open(w);
}

static void a_crash_costs_what_was_not_stored(void **state unused_arg) {
	struct world *w = world_new(11, 0);
	for (int k = 0; k < 30; k++) {
		live(w, 1);
		crash(w);
		check_some(w);
	}
	world_free(w);
}

/* In boots of their own, before this program's life. */
static void boots_are_joined_by_the_wall_clock(void **state unused_arg) {
	struct world *w = world_new(17, 0);
	energy_free(w->energy);
	for (int32_t boot = 1; boot <= 9; boot++) {
		char boot_id[8] = {'b', (char)('0' + boot), '\0'};
		w->mono_ms = w->stepped_ms = 5000;
		make_samples(w, 900);
		struct db_conn *c = temp_db_begin(w->store);
		assert_int_equal(db_tick_insert(c, boot_id, w->queued, w->count, NULL), RC_OK);
		temp_db_commit(w->store);
		w->boot = boot;
		for (size_t k = 0; k < w->count; k++)
			note_any(w, &w->queued[k]);
		w->count = 0;
	}
	w->boot++;
	engine_open(w);
	check_some(w);
	live(w, 5);
	world_free(w);
}

/* Between two that the wall clock was set back between, and too far apart to be joined. */
static void what_comes_late_at_a_step_counts(void **state unused_arg) {
	struct world *w = world_new(31, 0);
	int64_t hour_ms = floor_to(w->now_ms, HOUR_MS);
	w->now_ms = hour_ms + HOUR_MS / 2;
	add(w, 0, 0, 100000);
	w->mono_ms += 40000;
	w->stepped_ms = w->mono_ms - 20000;
	w->step_ms = -HOUR_MS;
	w->now_ms += 40000 + w->step_ms;
	add(w, 0, 0, 200000);
	add(w, 0, 25000, 300000);
	take_in(w);
	check_query(w, 0, hour_ms - HOUR_MS, hour_ms + HOUR_MS, MINUTE_MS);
	world_free(w);
}

/* --- */

static double sum_of(struct world *w, int64_t from_ms, int64_t to_ms, int64_t step_ms) {
	struct energy_history h;
	double mj = 0;
	assert_int_equal(
		energy_query(w->energy, w->id[0], from_ms, to_ms, step_ms, NULL, &h, NULL), RC_OK);
	for (size_t k = 0; k < h.count; k++)
		mj += (double)h.points[k].energy_mj;
	assert_true((double)h.energy_mj == mj);
	energy_history_release(&h);
	return mj;
}

/* Minutes are rounded once, and what is made of them is their sum. */
static void parts_add_up_exactly(void **state unused_arg) {
	struct world *w = world_new(23, 0);
	live(w, 30);
	restart(w);
	for (int64_t day = 1; day < 20; day++) {
		int64_t from_ms = floor_to(w->now_ms, DAY_MS) - day * DAY_MS;
		double mj = sum_of(w, from_ms, from_ms + DAY_MS, MINUTE_MS);
		assert_true(sum_of(w, from_ms, from_ms + DAY_MS, QUARTER_MS) == mj);
		assert_true(sum_of(w, from_ms, from_ms + DAY_MS, HOUR_MS) == mj);
		assert_true(sum_of(w, from_ms, from_ms + DAY_MS, DAY_MS) == mj);
	}
	world_free(w);
}

/* Samples are gone, then quarters too: sums stay, by ever coarser parts. */
static void what_is_kept_serves(void **state unused_arg) {
	static const int64_t ages[][2] = {{2, 30}, {2, 2}};
	struct world *w = world_new(29, 0);
	live(w, 60);
	restart(w);
	int64_t today_ms = floor_to(w->now_ms, DAY_MS), from_ms = today_ms - 12 * DAY_MS;
	double mj = sum_of(w, from_ms, today_ms, HOUR_MS);
	assert_true(mj != 0);
	for (size_t k = 0; k < array_len(ages); k++) {
		const struct energy_horizon kept = {
			today_ms - ages[k][0] * DAY_MS, today_ms - ages[k][1] * DAY_MS, NONE};
		struct energy_history h;
		energy_prune(w->energy, &(struct energy_horizons){kept, kept});
		assert_true(sum_of(w, from_ms, today_ms, HOUR_MS) == mj);
		assert_true(sum_of(w, from_ms, today_ms, DAY_MS) == mj);
		/* Out of line: shared out evenly, and so it is said. */
		assert_int_equal(energy_query(w->energy, w->id[0], from_ms, today_ms, 7 * MINUTE_MS,
					 NULL, &h, NULL),
			RC_OK);
		assert_true(fabs((double)h.energy_mj - mj) < 10);
		assert_int_equal(h.resolution_ms, QUARTER_MS);
		energy_history_release(&h);
	}
	world_free(w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiers_are_as_samples),
		cmocka_unit_test(little_memory_will_do),
		cmocka_unit_test(a_crash_costs_what_was_not_stored),
		cmocka_unit_test(boots_are_joined_by_the_wall_clock),
		cmocka_unit_test(what_comes_late_at_a_step_counts),
		cmocka_unit_test(parts_add_up_exactly),
		cmocka_unit_test(what_is_kept_serves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
