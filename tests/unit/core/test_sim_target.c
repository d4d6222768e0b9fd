/* The simulated drives as the registry sees them. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/latch.h"
#include "core/sim/target.h"

#define DRIVES 3
#define SCALE 256
#define PATIENCE_MS 10000

struct fixture {
	struct sim_model model;
	struct sim_pace *pace;
	struct sim_target *target;
	struct drive_source source;
	struct drive_found found[DRIVES];
	unsigned found_count, done_count;
};

static void take_found(void *arg, const struct drive_found *found) {
	struct fixture *f = arg;
	assert_true(f->found_count < DRIVES);
	f->found[f->found_count++] = *found;
}

static void take_done(void *arg, enum rc rc, const char *reason) {
	struct fixture *f = arg;
	assert_int_equal(rc, RC_OK);
	assert_string_equal(reason, "");
	f->done_count++;
}

static void begin(struct fixture *f, const char *instance_id) {
	struct err err = {0};
	const struct sim_target_config config = {
		.model = &f->model, .drives = DRIVES, .scale = SCALE, .instance_id = instance_id};
	f->pace = sim_pace_new(&f->model, DRIVES, SCALE, clock_mono_ns(), &err);
	assert_non_null(f->pace);
	f->target = sim_target_new(&config, f->pace, &err);
	assert_non_null(f->target);
	f->source = sim_target_source(f->target);
	assert_int_equal(f->source.scan(f->source.self, take_found, take_done, f, &err), RC_OK);
	assert_int_equal(f->done_count, 1);
	assert_int_equal(f->found_count, DRIVES);
}

static void end(struct fixture *f) {
	sim_target_free(f->target);
	sim_pace_free(f->pace);
	f->found_count = f->done_count = 0;
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	*state = f;
	return sim_model_builtin("", &f->model, NULL) == RC_OK ? 0 : -1;
}

static int teardown(void **state) {
	free(*state);
	return 0;
}

/* --- asking --- */

struct answer {
	struct drive_reply reply;
	struct drive_detail detail;
	struct drive_health health;
};

static void take_answer(void *arg, const struct drive_reply *r) {
	struct latch *latch = arg;
	struct answer *a = calloc(1, sizeof(*a));
	a->reply = *r;
	if (r->detail)
		a->detail = *r->detail;
	if (r->health)
		a->health = *r->health;
	latch_open(latch, a);
	free(a);
	latch_unref(latch);
}

static struct latch *submit(
	struct fixture *f, unsigned drive, enum drive_verb verb, int power_state) {
	struct err err;
	struct latch *latch = latch_new(sizeof(struct answer));
	const struct drive_question q = {
		.verb = verb, .setting = {.state = (int8_t)power_state, .limit_mw = NONE}};
	assert_int_equal(f->source.ops->submit(f->source.self, &f->found[drive].drive, &q,
				 take_answer, latch_ref(latch), &err),
		RC_OK);
	return latch;
}

static void await(struct latch *latch, struct answer *out) {
	assert_true(latch_wait(latch, PATIENCE_MS, out));
	latch_unref(latch);
}

static void ask(struct fixture *f, unsigned drive, enum drive_verb verb, int power_state,
	struct answer *out) {
	await(submit(f, drive, verb, power_state), out);
}

/* --- identities --- */

static void drives_are_told_apart(void **state) {
	struct fixture *f = *state;
	begin(f, "11111111-1111-4111-8111-111111111111");
	for (unsigned i = 0; i < DRIVES; i++) {
		const struct drive_found *d = &f->found[i];
		char name[16];
		snprintf(name, sizeof(name), "sim%02u", i);
		assert_string_equal(d->drive.name, name);
		assert_string_equal(d->drive.model, "SIMULATED D5-P5336 61.44TB");
		assert_string_equal(d->drive.transport, "sim");
		assert_int_equal(d->drive.kind, DRIVE_SIMULATED);
		assert_int_equal(d->drive.state, DRIVE_LIVE);
		assert_int_equal(d->drive.power_state, -1);
		assert_true(d->drive.capacity_bytes == UINT64_C(61440000000000));
		assert_int_equal(strncmp(d->drive.serial, "SIM", 3), 0);
		assert_int_equal(
			strncmp(d->subsystem_nqn, "nqn.2014-08.org.nvmexpress:uuid:", 32), 0);
		assert_int_equal(strlen(d->subsystem_nqn), 32 + 36);
		for (unsigned k = 0; k < i; k++) {
			assert_string_not_equal(d->drive.serial, f->found[k].drive.serial);
			assert_string_not_equal(d->subsystem_nqn, f->found[k].subsystem_nqn);
		}
	}
	end(f);
}

static void serials_stay_with_the_instance(void **state) {
	struct fixture *f = *state;
	begin(f, "11111111-1111-4111-8111-111111111111");
	const struct drive_found before = f->found[1];
	end(f);
	begin(f, "11111111-1111-4111-8111-111111111111");
	assert_string_equal(f->found[1].drive.serial, before.drive.serial);
	assert_string_equal(f->found[1].subsystem_nqn, before.subsystem_nqn);
	end(f);
	begin(f, "22222222-2222-4222-8222-222222222222");
	assert_string_not_equal(f->found[1].drive.serial, before.drive.serial);
	assert_string_not_equal(f->found[1].subsystem_nqn, before.subsystem_nqn);
	end(f);
}

static void a_strange_drive_is_not_found(void **state) {
	struct fixture *f = *state;
	struct err err;
	const struct drive d = {.name = "sim00", .serial = "SIM0"};
	const struct drive_question q = {.verb = DRIVE_IDENTIFY};
	begin(f, "x");
	assert_int_equal(f->source.ops->submit(f->source.self, &d, &q, take_answer, NULL, &err),
		RC_NOT_FOUND);
	end(f);
}

/* --- verbs --- */

static void identify_tells_table_namespace_and_scale(void **state) {
	struct fixture *f = *state;
	struct answer *a = calloc(1, sizeof(*a));
	begin(f, "x");
	ask(f, 1, DRIVE_IDENTIFY, 0, a);
	assert_int_equal(a->reply.rc, RC_OK);
	assert_int_equal(a->detail.scale, SCALE);
	assert_int_equal(a->detail.power.count, 3);
	assert_int_equal(a->detail.power.states[2].max_uw, 10000000);
	assert_int_equal(a->detail.namespace_count, 1);
	assert_string_equal(a->detail.namespaces[0].path, "sim01.sock");
	assert_true(a->detail.namespaces[0].size_bytes == UINT64_C(61440000000000));
	assert_int_equal(a->detail.namespaces[0].lba_bytes, 512);
	assert_int_equal(a->detail.namespaces[0].use_count, 0);
	assert_int_equal(a->detail.warning_c, 70);
	assert_true(a->detail.tmt_min_c == NONE);
	assert_string_equal(a->detail.subsystem_nqn, f->found[1].subsystem_nqn);
	end(f);
	free(a);
}

static void a_state_that_is_set_is_read_back(void **state) {
	struct fixture *f = *state;
	struct answer *a = calloc(1, sizeof(*a));
	begin(f, "x");
	ask(f, 2, DRIVE_POWER_GET, 0, a);
	assert_int_equal(a->reply.power_state, 0);
	const int64_t start_ms = clock_mono_ms();
	ask(f, 2, DRIVE_POWER_SET, 2, a);
	assert_int_equal(a->reply.rc, RC_OK);
	assert_int_equal(a->reply.power_state, 2);
	assert_true(clock_mono_ms() - start_ms >= 9); /* 5 ms out of PS0, 5 ms into PS2 */
	ask(f, 2, DRIVE_POWER_GET, 0, a);
	assert_int_equal(a->reply.power_state, 2);
	assert_int_equal(sim_pace_state(f->pace, 2), 2);
	assert_int_equal(sim_pace_state(f->pace, 1), 0);
	end(f);
	free(a);
}

static void a_state_that_is_not_there_is_refused(void **state) {
	struct fixture *f = *state;
	struct answer *a = calloc(1, sizeof(*a));
	begin(f, "x");
	for (int ps = 3; ps < 32; ps += 28) {
		ask(f, 0, DRIVE_POWER_SET, ps, a);
		assert_int_equal(a->reply.rc, RC_REFUSED);
		assert_int_equal(a->reply.err.nvme_status, 0x4002);
		assert_int_equal(a->reply.power_state, 0);
	}
	end(f);
	free(a);
}

static void commands_of_one_drive_keep_their_order(void **state) {
	struct fixture *f = *state;
	struct answer *a = calloc(1, sizeof(*a));
	begin(f, "x");
	struct latch *set = submit(f, 0, DRIVE_POWER_SET, 1);
	struct latch *get = submit(f, 0, DRIVE_POWER_GET, 0);
	await(get, a);
	assert_int_equal(a->reply.power_state, 1);
	await(set, a);
	end(f);
	free(a);
}

static void smart_tells_what_was_served(void **state) {
	struct fixture *f = *state;
	struct answer *a = calloc(1, sizeof(*a));
	struct sim_op op = {.kind = SIM_OP_WRITE, .bytes = 1 << 20};
	begin(f, "x");
	sim_pace_submit(f->pace, 0, &op, clock_mono_ns() - INT64_C(2000000000));
	assert_non_null(sim_pace_done(f->pace, clock_mono_ns()));
	ask(f, 0, DRIVE_SMART, 0, a);
	assert_int_equal(a->reply.rc, RC_OK);
	assert_int_equal(a->health.data_units_written, (1 << 20) / 512 * SCALE / 1000);
	assert_int_equal(a->health.host_writes, SCALE);
	assert_int_equal(a->health.host_reads, 0);
	assert_int_equal(a->health.critical_warning, 0);
	/* At rest: 27 °C and 1.6 °C for each of 5.5 W. */
	assert_int_equal(a->health.temperature_mc, 35800);
	assert_int_equal(a->health.sensors_mc[0], 35800);
	assert_true(a->health.sensors_mc[1] == NONE);
	assert_true(a->health.interval_power_mw == NONE);
	end(f);
	free(a);
}

/* --- with the clock in hand --- */

static int64_t fake_ns;

static int64_t fake_mono_ns(void) {
	return __atomic_load_n(&fake_ns, __ATOMIC_SEQ_CST);
}

static void pass(int64_t ns) {
	__atomic_add_fetch(&fake_ns, ns, __ATOMIC_SEQ_CST);
}

static void work_warms_a_drive_that_has_a_meter(void **state) {
	struct fixture *f = *state;
	struct answer *a = calloc(1, sizeof(*a));
	f->model.drive_meter = true;
	fake_ns = INT64_C(1000000000000);
	clock_replace(NULL, fake_mono_ns);
	begin(f, "x");
	ask(f, 0, DRIVE_SMART, 0, a);
	assert_true(a->health.interval_power_mw == NONE);
	/* One long write in service for ten minutes: 6 J/GB × 3.4375 GB/s above 5.5 W. */
	struct sim_op op = {.kind = SIM_OP_WRITE, .bytes = UINT32_C(3) << 30};
	for (int64_t s = 0; s < 600; s += 200) {
		sim_pace_submit(f->pace, 0, &op, fake_mono_ns());
		pass(INT64_C(240000000000));
		assert_non_null(sim_pace_done(f->pace, fake_mono_ns()));
	}
	ask(f, 0, DRIVE_SMART, 0, a);
	const double j = 5.5 * 720 + 3 * 6.0 * 3221225472.0 * SCALE / 1e9;
	assert_int_equal(a->health.interval_power_mw / 10, (int64_t)(j / 720 * 100));
	const int64_t settled_mc = (int64_t)((27 + 1.6 * j / 720) * 1000);
	assert_true(a->health.temperature_mc > settled_mc - 200);
	assert_true(a->health.temperature_mc <= settled_mc + 1);
	/* And cools: after one time constant 37 % of the difference is left. */
	pass(INT64_C(120000000000));
	ask(f, 0, DRIVE_SMART, 0, a);
	assert_int_equal(a->health.interval_power_mw, 5500);
	const double left_c = (1.6 * (j / 720 - 5.5)) * 0.3679;
	assert_true(a->health.temperature_mc > (int64_t)((35.8 + left_c - 0.3) * 1000));
	assert_true(a->health.temperature_mc < (int64_t)((35.8 + left_c + 0.3) * 1000));
	clock_replace(NULL, NULL);
	end(f);
	free(a);
}

/* --- limits and the end --- */

struct counter {
	pthread_mutex_t lock;
	unsigned ok, cancelled;
};

static void count(void *arg, const struct drive_reply *r) {
	struct counter *c = arg;
	pthread_mutex_lock(&c->lock);
	c->ok += r->rc == RC_OK;
	c->cancelled += r->rc == RC_UNAVAILABLE;
	pthread_mutex_unlock(&c->lock);
}

static void every_command_is_answered_once_also_at_the_end(void **state) {
	struct fixture *f = *state;
	struct counter c = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct err err = {0};
	unsigned accepted = 0;
	f->model.states[1].entry_latency_us = 10e6;
	begin(f, "x");
	const struct drive_question q = {
		.verb = DRIVE_POWER_SET, .setting = {.state = 1, .limit_mw = NONE}};
	for (unsigned i = 0; i < 1000; i++) {
		enum rc rc = f->source.ops->submit(
			f->source.self, &f->found[0].drive, &q, count, &c, &err);
		accepted += rc == RC_OK;
		if (rc)
			assert_int_equal(rc, RC_FULL);
	}
	assert_int_equal(accepted, DRIVES * SIM_TARGET_COMMANDS);
	end(f);
	assert_int_equal(c.ok, 0);
	assert_int_equal(c.cancelled, accepted);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(drives_are_told_apart),
		TEST(serials_stay_with_the_instance),
		TEST(a_strange_drive_is_not_found),
		TEST(identify_tells_table_namespace_and_scale),
		TEST(a_state_that_is_set_is_read_back),
		TEST(a_state_that_is_not_there_is_refused),
		TEST(commands_of_one_drive_keep_their_order),
		TEST(smart_tells_what_was_served),
		TEST(work_warms_a_drive_that_has_a_meter),
		TEST(every_command_is_answered_once_also_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
