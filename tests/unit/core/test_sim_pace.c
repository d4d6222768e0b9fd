/* Time and energy of simulated drives, on a clock that the test moves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/sim/pace.h"

#define SECOND INT64_C(1000000000)
#define DRIVES 24
#define MAX_DEPTH 128

/* A closed loop: whoever is answered asks again. */
struct load {
	struct sim_pace *pace;
	struct sim_model model;
	unsigned drives;
	double scale;
	int64_t now_ns;
	int64_t tick_ns; /* wake-ups only at multiples of it; 0: whenever something is due */
	struct sim_op ops[DRIVES][MAX_DEPTH];
};

static struct load *load_new(unsigned drives, unsigned scale) {
	struct err err = {0};
	struct load *l = calloc(1, sizeof(*l));
	assert_non_null(l);
	assert_int_equal(sim_model_builtin("", &l->model, &err), RC_OK);
	l->now_ns = 77 * SECOND;
	l->drives = drives;
	l->scale = scale;
	l->pace = sim_pace_new(&l->model, drives, scale, l->now_ns, &err);
	assert_non_null(l->pace);
	return l;
}

static void load_free(struct load *l) {
	sim_pace_free(l->pace);
	free(l);
}

static void start(struct load *l, unsigned depth, enum sim_op_kind kind, uint32_t bytes) {
	for (unsigned d = 0; d < l->drives; d++)
		for (unsigned i = 0; i < depth; i++) {
			l->ops[d][i] = (struct sim_op){.kind = kind, .bytes = bytes, .tag = d};
			sim_pace_submit(l->pace, d, &l->ops[d][i], l->now_ns);
		}
}

static void run(struct load *l, int64_t ns) {
	const int64_t end_ns = l->now_ns + ns;
	for (;;) {
		int64_t next_ns = sim_pace_next_ns(l->pace);
		if (l->tick_ns)
			next_ns = l->now_ns + l->tick_ns;
		if (next_ns > end_ns)
			break;
		l->now_ns = next_ns;
		struct sim_op *op;
		while ((op = sim_pace_done(l->pace, l->now_ns)))
			sim_pace_submit(l->pace, (unsigned)op->tag, op, l->now_ns);
	}
	l->now_ns = end_ns;
}

static struct sim_totals all(struct load *l) {
	struct sim_totals sum = {0};
	for (unsigned d = 0; d < l->drives; d++) {
		struct sim_totals t;
		sim_pace_totals(l->pace, d, l->now_ns, &t);
		for (int i = 0; i < SIM_DIRECTIONS; i++) {
			sum.bytes[i] += t.bytes[i];
			sum.ios[i] += t.ios[i];
		}
		sum.energy_j += t.energy_j;
	}
	return sum;
}

struct rates {
	double read, write; /* bytes/s */
	double iops, w;
};

/* Simulated figures over a real span, after it has settled. */
static struct rates measure(struct load *l, int64_t settle_ns, int64_t ns) {
	run(l, settle_ns);
	const struct sim_totals a = all(l);
	run(l, ns);
	const struct sim_totals b = all(l);
	const double s = (double)ns / 1e9;
	return (struct rates){
		.read = (b.bytes[SIM_READ] - a.bytes[SIM_READ]) / s,
		.write = (b.bytes[SIM_WRITE] - a.bytes[SIM_WRITE]) / s,
		.iops = (b.ios[SIM_READ] + b.ios[SIM_WRITE] - a.ios[SIM_READ] - a.ios[SIM_WRITE]) /
			s,
		.w = (b.energy_j - a.energy_j) / s,
	};
}

static void set_all(struct load *l, unsigned state) {
	for (unsigned d = 0; d < l->drives; d++)
		sim_pace_set_state(l->pace, d, state, l->now_ns);
}

static void assert_near(double value, double wanted, double part) {
	if (fabs(value - wanted) > part * wanted)
		fail_msg("%g is not %g within %g %%", value, wanted, part * 100);
}

/* --- throughput --- */

static void a_saturated_drive_gives_its_rate_at_any_depth(void **state) {
	(void)state;
	for (unsigned ps = 0; ps < 3; ps++)
		for (unsigned depth = 16; depth <= 128; depth *= 2) {
			struct load *l = load_new(1, 256);
			set_all(l, ps);
			start(l, depth, SIM_OP_WRITE, 131072);
			struct rates r = measure(l, SECOND, 20 * SECOND);
			assert_near(
				r.write, l->model.states[ps].service[SIM_WRITE].bytes_per_s, 0.001);
			assert_true(r.read == 0);
			load_free(l);
		}
}

static void small_blocks_meet_the_iops_ceiling(void **state) {
	(void)state;
	struct load *l = load_new(1, 256);
	start(l, 128, SIM_OP_READ, 4096);
	assert_near(measure(l, SECOND, 10 * SECOND).iops, 1005000, 0.001);
	load_free(l);
}

static void one_request_takes_latency_and_service_times_the_scale(void **state) {
	(void)state;
	struct load *l = load_new(1, 100);
	start(l, 1, SIM_OP_READ, 131072);
	run(l, SECOND / 1000);
	struct sim_op *op = NULL;
	while (!op) {
		l->now_ns = sim_pace_next_ns(l->pace);
		op = sim_pace_done(l->pace, l->now_ns);
	}
	const double us = 110 + 131072 / 7e9 * 1e6;
	assert_near((double)(op->due_ns - op->arrived_ns), us * 1000 * 100, 0.0001);
	assert_true(sim_pace_next_ns(l->pace) == INT64_MAX);
	load_free(l);
}

static void coarse_wake_ups_cost_no_throughput(void **state) {
	(void)state;
	struct load *l = load_new(1, 256);
	l->tick_ns = SECOND / 100;
	start(l, 128, SIM_OP_READ, 131072);
	assert_near(measure(l, SECOND, 20 * SECOND).read, 7e9, 0.002);
	load_free(l);
}

static void flushes_and_trims_serve_no_bytes(void **state) {
	(void)state;
	struct load *l = load_new(2, 1);
	start(l, 4, SIM_OP_FLUSH, 131072);
	struct rates r = measure(l, 0, SECOND / 100);
	assert_true(r.read == 0 && r.write == 0 && r.iops == 0);
	assert_near(r.w, 2 * 5.5, 0.0001);
	load_free(l);
}

/* --- the switch --- */

static void many_drives_share_the_switch_evenly(void **state) {
	(void)state;
	struct load *l = load_new(DRIVES, 16);
	start(l, 32, SIM_OP_READ, 131072);
	assert_near(measure(l, SECOND / 10, SECOND).read, 109e9, 0.002);
	for (unsigned d = 0; d < DRIVES; d++) {
		struct sim_totals t;
		sim_pace_totals(l->pace, d, l->now_ns, &t);
		assert_near(t.bytes[SIM_READ], 109e9 * 1.1 / DRIVES, 0.02);
	}
	load_free(l);
}

static void few_drives_do_not_meet_it(void **state) {
	(void)state;
	struct load *l = load_new(4, 16);
	start(l, 32, SIM_OP_READ, 131072);
	assert_near(measure(l, SECOND / 10, SECOND).read, 4 * 7e9, 0.002);
	load_free(l);
}

/* One that asks seldom must not reserve the switch while its latency passes. */
static void an_idler_does_not_hold_up_the_others(void **state) {
	(void)state;
	struct load *l = load_new(3, 256);
	for (unsigned i = 0; i < 64; i++) {
		const unsigned drive = i ? i % 2 : 2;
		l->ops[drive][i] =
			(struct sim_op){.kind = SIM_OP_READ, .bytes = 131072, .tag = drive};
		sim_pace_submit(l->pace, drive, &l->ops[drive][i], l->now_ns);
	}
	const double idler = 131072 / (110e-6 + 131072 / 7e9);
	assert_near(measure(l, SECOND, 10 * SECOND).read, 2 * 7e9 + idler, 0.005);
	load_free(l);
}

/* --- states --- */

static void a_change_shows_at_once_with_a_full_queue(void **state) {
	(void)state;
	struct load *l = load_new(1, 256);
	start(l, 128, SIM_OP_WRITE, 131072);
	assert_near(measure(l, SECOND, 5 * SECOND).write, 3437.5e6, 0.01);
	set_all(l, 2);
	/* One request may have been in service. */
	const int64_t one_ns = (int64_t)(131072 / 3437.5e6 * 256 * 1e9) + 1;
	assert_near(measure(l, one_ns, 5 * SECOND).write, 720.833e6, 0.001);
	set_all(l, 0);
	assert_near(measure(l, SECOND / 10, 5 * SECOND).write, 3437.5e6, 0.01);
	assert_int_equal(sim_pace_state(l->pace, 0), 0);
	load_free(l);
}

/* --- energy --- */

static void an_idle_drive_takes_its_idle_watts(void **state) {
	(void)state;
	struct load *l = load_new(1, 256);
	run(l, 10 * SECOND);
	set_all(l, 2);
	run(l, 10 * SECOND);
	assert_near(all(l).energy_j, 20 * 5.5, 1e-9);
	load_free(l);
}

static void what_is_being_served_counts_by_its_part(void **state) {
	(void)state;
	struct load *l = load_new(1, 1000);
	start(l, 1, SIM_OP_WRITE, 1 << 20);
	const int64_t service_ns = (int64_t)((1 << 20) / 3437.5e6 * 1000 * 1e9);
	const int64_t begin_ns = l->now_ns + 30 * 1000 * 1000;
	l->now_ns = begin_ns;
	assert_null(sim_pace_done(l->pace, l->now_ns));
	l->now_ns = begin_ns + service_ns / 4;
	assert_near(all(l).bytes[SIM_WRITE], 1000.0 * (1 << 20) / 4, 0.001);
	l->now_ns = begin_ns + service_ns * 2;
	assert_near(all(l).bytes[SIM_WRITE], 1000.0 * (1 << 20), 0.001);
	assert_non_null(sim_pace_done(l->pace, l->now_ns));
	assert_near(all(l).bytes[SIM_WRITE], 1000.0 * (1 << 20), 1e-9);
	load_free(l);
}

struct published {
	unsigned state;
	enum sim_op_kind kind;
	double bytes_per_s, w;
};

/* None of these watts stand in the model: they come out of bytes served. */
static const struct published published[] = {
	{0, SIM_OP_READ, 109e9, 858},
	{1, SIM_OP_READ, 105e9, 858},
	{2, SIM_OP_READ, 79.8e9, 759},
	{0, SIM_OP_WRITE, 82.5e9, 1089},
	{1, SIM_OP_WRITE, 34.4e9, 825},
	{2, SIM_OP_WRITE, 17.3e9, 726},
};

static void a_full_server_gives_the_published_table(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(published); i++) {
		const struct published *p = &published[i];
		struct load *l = load_new(DRIVES, 8);
		set_all(l, p->state);
		start(l, 128, p->kind, 131072);
		struct rates r = measure(l, SECOND / 2, SECOND);
		assert_near(r.read + r.write, p->bytes_per_s, 0.002);
		assert_near(l->model.host.base_w + r.w, p->w, 0.001);
		load_free(l);
	}
}

/* --- clients that go --- */

static void waiting_requests_of_a_lost_client_are_dropped(void **state) {
	(void)state;
	struct load *l = load_new(1, 256);
	int one, two;
	for (unsigned i = 0; i < 9; i++) {
		struct sim_op *op = &l->ops[0][i];
		*op = (struct sim_op){
			.kind = SIM_OP_WRITE, .bytes = 4096, .owner = i % 3 == 2 ? &two : &one};
		sim_pace_submit(l->pace, 0, op, l->now_ns);
	}
	l->now_ns += 30 * 256 * 1000 + 1;
	assert_null(sim_pace_done(l->pace, l->now_ns));
	assert_int_equal(sim_pace_withdraw(l->pace, 0, &one), 5);
	unsigned of_one = 0, of_two = 0;
	struct sim_op *op;
	while ((op = sim_pace_done(l->pace, l->now_ns + SECOND)))
		*(op->owner == &one ? &of_one : &of_two) += 1;
	assert_int_equal(of_one, 1);
	assert_int_equal(of_two, 3);
	assert_int_equal(sim_pace_withdraw(l->pace, 0, &two), 0);
	load_free(l);
}

static void a_drive_goes_on_after_all_was_withdrawn(void **state) {
	(void)state;
	struct load *l = load_new(1, 256);
	start(l, 2, SIM_OP_READ, 4096);
	assert_int_equal(sim_pace_withdraw(l->pace, 0, NULL), 2);
	assert_true(sim_pace_next_ns(l->pace) == INT64_MAX);
	start(l, 1, SIM_OP_READ, 4096);
	assert_non_null(sim_pace_done(l->pace, l->now_ns + SECOND));
	load_free(l);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_saturated_drive_gives_its_rate_at_any_depth),
		cmocka_unit_test(small_blocks_meet_the_iops_ceiling),
		cmocka_unit_test(one_request_takes_latency_and_service_times_the_scale),
		cmocka_unit_test(coarse_wake_ups_cost_no_throughput),
		cmocka_unit_test(flushes_and_trims_serve_no_bytes),
		cmocka_unit_test(many_drives_share_the_switch_evenly),
		cmocka_unit_test(few_drives_do_not_meet_it),
		cmocka_unit_test(an_idler_does_not_hold_up_the_others),
		cmocka_unit_test(a_change_shows_at_once_with_a_full_queue),
		cmocka_unit_test(an_idle_drive_takes_its_idle_watts),
		cmocka_unit_test(what_is_being_served_counts_by_its_part),
		cmocka_unit_test(a_full_server_gives_the_published_table),
		cmocka_unit_test(waiting_requests_of_a_lost_client_are_dropped),
		cmocka_unit_test(a_drive_goes_on_after_all_was_withdrawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
