/* What is refused before a run is queued, by which rule and at which field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/core/bench_fakes.h"

static const struct bench_config permissive = {.max_runs = 0,
	.max_queued = 4,
	.allow_destructive = true,
	.allow_in_use = true,
	.host_id = HOST};

static void use(unsigned drive, enum use_kind kind, const char *detail) {
	struct drive_namespace *ns = &world.details[drive]->namespaces[0];
	struct drive_use *u = &ns->uses[ns->use_count++];
	u->kind = (uint8_t)kind;
	str_copy(u->detail, sizeof(u->detail), detail);
}

static void open_with(const struct bench_config *config) {
	world_open(config);
	add_drive("one", DRIVE_NVME);
	add_drive("two", DRIVE_NVME);
	struct drive *sim = add_drive("sim", DRIVE_SIMULATED);
	world.details[2]->scale = 16;
	str_copy(sim->name, sizeof(sim->name), "sim00");
}

static int setup(void **state unused_arg) {
	open_with(&permissive);
	return 0;
}

static int teardown(void **state unused_arg) {
	world_close();
	return 0;
}

static void expect(const struct run_spec *s, enum rc rc, const char *field) {
	struct err err = {0};
	struct run r;
	assert_int_equal(bench_submit(world.bench, &alice, s, &r, &err), rc);
	if (rc)
		assert_string_equal(err.field, field);
}

static struct run_spec spec(const char *first, const char *second) {
	const char *ids[] = {first, second};
	return make_spec(ids, second ? 2 : 1);
}

static struct run_spec writing(const char *first, const char *second) {
	struct run_spec s = spec(first, second);
	s.workload.pattern = PATTERN_RANDWRITE;
	return s;
}

static void confirm(struct run_spec *s, const char *serial) {
	str_copy(s->confirm_destructive[s->confirm_count++], 21, serial);
}

static void drives_must_exist_and_answer(void **state unused_arg) {
	struct run_spec s = spec("one", "two");
	s.drive_count = 0;
	expect(&s, RC_INVALID, "/drives");
	s.drive_count = RUN_MAX_DRIVES + 1;
	expect(&s, RC_INVALID, "/drives");
	s = spec("one", "one");
	expect(&s, RC_INVALID, "/drives/1");
	s = spec("one", "none");
	expect(&s, RC_INVALID, "/drives/1");
	s = spec("one", "sim");
	expect(&s, RC_INVALID, "/drives");
	world.drives[1].state = DRIVE_UNRESPONSIVE;
	s = spec("one", "two");
	expect(&s, RC_CONFLICT, "/drives/1");
	world.details[0]->namespace_count = 0;
	s = spec("one", NULL);
	expect(&s, RC_INVALID, "/drives/0");
}

static void two_ways_to_one_namespace_are_one(void **state unused_arg) {
	struct run_spec s = spec("one", "two");
	str_copy(world.details[1]->subsystem_nqn, 224, world.details[0]->subsystem_nqn);
	str_copy(world.drives[1].serial, 21, world.drives[0].serial);
	expect(&s, RC_INVALID, "/drives/1");
}

static void figures_stay_in_their_ranges(void **state unused_arg) {
	struct run_spec s = spec("one", NULL);
	s.runtime_s = 0;
	expect(&s, RC_INVALID, "/runtime_s");
	s.runtime_s = 86401;
	expect(&s, RC_INVALID, "/runtime_s");
	s = spec("one", NULL);
	s.ramp_s = 3601;
	expect(&s, RC_INVALID, "/ramp_s");
	s = spec("one", NULL);
	s.workload.block_bytes = 1;
	expect(&s, RC_INVALID, "/workload/block_bytes");
	s = spec("one", NULL);
	s.workload.size_bytes = 1ull << 41;
	expect(&s, RC_INVALID, "/workload/size_bytes");
}

static void power_states_must_be_operational(void **state unused_arg) {
	struct run_spec s = spec("one", "two");
	s.power_state = 2; /* not operational */
	expect(&s, RC_INVALID, "/power_state");
	s.power_state = 3;
	expect(&s, RC_INVALID, "/power_state");
	world.details[0]->power.count = world.details[1]->power.count = 0;
	s.power_state = 0;
	expect(&s, RC_INVALID, "/power_state");
	world.details[1]->power.count = 3;
	expect(&s, RC_OK, "");
}

static void writing_wants_permission_and_serials(void **state unused_arg) {
	struct run_spec s = writing("one", "two");
	expect(&s, RC_FORBIDDEN, "/confirm_destructive");
	confirm(&s, "SNone");
	expect(&s, RC_FORBIDDEN, "/confirm_destructive");
	confirm(&s, "SNtwo");
	expect(&s, RC_OK, "");
	confirm(&s, "SNother");
	expect(&s, RC_INVALID, "/confirm_destructive/2");
	world.drives[0].serial_unique = false;
	s.confirm_count = 2;
	expect(&s, RC_CONFLICT, "/drives/0");
	/* made-up drives lose nothing */
	s = writing("sim", NULL);
	expect(&s, RC_OK, "");
}

static const struct {
	enum use_kind kind;
	enum rc writing, overriding, reading;
} uses[] = {
	{USE_MOUNT, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_HOLDER, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_SWAP, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_PARTITION, RC_CONFLICT, RC_CONFLICT, RC_OK},
	{USE_SIGNATURE, RC_CONFLICT, RC_OK, RC_OK},
	{USE_OPEN, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_EXPORT, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_PROCESS, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_RESERVED, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
	{USE_UNSEEN, RC_CONFLICT, RC_CONFLICT, RC_OK},
	{USE_ZONED, RC_CONFLICT, RC_CONFLICT, RC_OK},
	{USE_SHARED, RC_CONFLICT, RC_CONFLICT, RC_OK},
	{USE_UNKNOWN, RC_CONFLICT, RC_CONFLICT, RC_FORBIDDEN},
};

static void a_drive_in_use_is_left_alone(void **state unused_arg) {
	for (size_t i = 0; i < array_len(uses); i++) {
		world_close();
		struct bench_config roomy = permissive;
		roomy.max_queued = 100;
		open_with(&roomy);
		use(1, uses[i].kind, "nvme1n1p2 mounted on /");
		struct run_spec s = writing("one", "two");
		confirm(&s, "SNone");
		confirm(&s, "SNtwo");
		expect(&s, uses[i].writing, "/drives/1");
		s.override_signature = true;
		expect(&s, uses[i].overriding, "/drives/1");
		s = spec("one", "two");
		expect(&s, uses[i].reading, "/confirm_in_use");
		s.confirm_in_use_count = 1;
		str_copy(s.confirm_in_use[0], 21, "SNtwo");
		expect(&s, RC_OK, "");
		str_copy(s.confirm_in_use[0], 21, "SNthree");
		expect(&s, uses[i].reading == RC_OK ? RC_INVALID : RC_FORBIDDEN,
			uses[i].reading == RC_OK ? "/confirm_in_use/0" : "/confirm_in_use");
	}
}

static void reading_what_is_in_use_wants_the_servers_permission(void **state unused_arg) {
	world_close();
	struct bench_config strict = permissive;
	strict.allow_in_use = strict.allow_destructive = false;
	open_with(&strict);
	use(0, USE_MOUNT, "nvme0n1p2 mounted on /");
	struct run_spec s = spec("one", NULL);
	s.confirm_in_use_count = 1;
	str_copy(s.confirm_in_use[0], 21, "SNone");
	struct err err = {0};
	struct run r;
	assert_int_equal(bench_submit(world.bench, &alice, &s, &r, &err), RC_CONFLICT);
	assert_string_equal(err.field, "/drives/0");
	assert_string_equal(err.msg,
		"nvme0n1p2 mounted on /; the server does not allow reads of what is in use");
	/* A second try will know better, should it have been unmounted. */
	assert_int_equal(world.identified, 1);
	s = writing("two", NULL);
	confirm(&s, "SNtwo");
	expect(&s, RC_FORBIDDEN, "/workload");
	s = writing("sim", NULL);
	expect(&s, RC_OK, "");
}

static void an_observer_runs_nothing(void **state unused_arg) {
	world_close();
	struct bench_config config = permissive;
	config.observe_only = true;
	open_with(&config);
	struct run_spec s = spec("sim", NULL);
	expect(&s, RC_FORBIDDEN, "");
}

static void without_a_helper_there_is_only_idling(void **state unused_arg) {
	struct run_spec s = spec("sim", NULL);
	assert_null(bench_unable(world.bench));
	world.helper_lost = true;
	assert_non_null(bench_unable(world.bench));
	expect(&s, RC_UNAVAILABLE, "");
	s.workload = *workload_builtin("idle");
	expect(&s, RC_OK, "");
}

static void too_many_workers_are_refused(void **state unused_arg) {
	struct bench_config config = permissive;
	struct err err;
	config.max_runs = BENCH_MAX_RUNS + 1;
	assert_null(bench_new(
		&config, world.store->db, world.events, NULL, NULL, NULL, NULL, NULL, NULL, &err));
	assert_int_equal(err.rc, RC_INVALID);
}

static void the_queue_has_an_end(void **state unused_arg) {
	struct run_spec s = spec("one", NULL);
	for (unsigned i = 0; i < permissive.max_queued; i++)
		expect(&s, RC_OK, "");
	expect(&s, RC_FULL, "");
}

static void a_failing_store_queues_nothing(void **state unused_arg) {
	struct run_spec s = spec("one", NULL);
	db_fail_nth(world.store->db, 1, RC_NO_SPACE);
	expect(&s, RC_NO_SPACE, "");
	db_fail_nth(world.store->db, 0, RC_OK);
	for (unsigned i = 0; i < permissive.max_queued; i++)
		expect(&s, RC_OK, "");
}

static enum rc put(struct workload *w, uint32_t if_version, bool *created) {
	return bench_workload_put(world.bench, &alice, w, if_version, created, NULL);
}

static enum rc drop(const char *name, uint32_t if_version) {
	return bench_workload_delete(world.bench, &alice, name, if_version, NULL);
}

static const struct workload own = {
	.name = "mine", .pattern = PATTERN_READ, .block_bytes = 65536, .iodepth = 1, .jobs = 1};

static void own_workloads_stand_beside_the_catalogue(void **state unused_arg) {
	struct workload w = own, got;
	bool created;
	assert_int_equal(put(&w, VERSION_ANY, &created), RC_OK);
	assert_true(created);
	assert_int_equal(bench_workload_find(world.bench, "mine", &got, NULL), RC_OK);
	assert_int_equal(got.block_bytes, 65536);
	assert_int_equal(bench_workload_find(world.bench, "idle", &got, NULL), RC_OK);
	assert_int_equal(bench_workload_find(world.bench, "none", &got, NULL), RC_NOT_FOUND);
	str_copy(w.name, sizeof(w.name), "seq-read-128k");
	assert_int_equal(put(&w, VERSION_ANY, &created), RC_CONFLICT);
	str_copy(w.name, sizeof(w.name), ".hidden");
	assert_int_equal(put(&w, VERSION_ANY, &created), RC_INVALID);
	assert_int_equal(drop("mine", VERSION_ANY), RC_OK);
	assert_int_equal(drop("mine", VERSION_ANY), RC_NOT_FOUND);
	assert_int_equal(drop("idle", VERSION_ANY), RC_CONFLICT);
}

static void own_workloads_change_only_as_found(void **state unused_arg) {
	struct workload w = own, got;
	bool created;
	assert_int_equal(put(&w, 7, &created), RC_PRECONDITION);
	assert_int_equal(put(&w, VERSION_ABSENT, &created), RC_OK);
	assert_true(created);
	const uint32_t first = w.config_version;
	assert_int_not_equal(first, 0);
	assert_int_equal(put(&w, VERSION_ABSENT, &created), RC_PRECONDITION);

	/* Twice the same is no change. */
	w.config_version = 0;
	assert_int_equal(put(&w, first, &created), RC_OK);
	assert_false(created);
	assert_int_equal(w.config_version, first);

	w.jobs = 2;
	assert_int_equal(put(&w, first, &created), RC_OK);
	assert_int_equal(w.config_version, first + 1);
	assert_int_equal(put(&w, first, &created), RC_PRECONDITION);
	assert_int_equal(drop("mine", first), RC_PRECONDITION);
	assert_int_equal(bench_workload_find(world.bench, "mine", &got, NULL), RC_OK);
	assert_int_equal(got.config_version, first + 1);
	assert_int_equal(drop("mine", first + 1), RC_OK);
	assert_int_equal(drop("mine", first + 1), RC_PRECONDITION);
	/* Within the same second, perhaps. */
	assert_int_equal(put(&w, VERSION_ABSENT, &created), RC_OK);
	assert_true(w.config_version > first + 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(drives_must_exist_and_answer),
		TEST(two_ways_to_one_namespace_are_one),
		TEST(figures_stay_in_their_ranges),
		TEST(power_states_must_be_operational),
		TEST(writing_wants_permission_and_serials),
		TEST(a_drive_in_use_is_left_alone),
		TEST(reading_what_is_in_use_wants_the_servers_permission),
		TEST(an_observer_runs_nothing),
		TEST(without_a_helper_there_is_only_idling),
		TEST(too_many_workers_are_refused),
		TEST(the_queue_has_an_end),
		TEST(a_failing_store_queues_nothing),
		TEST(own_workloads_stand_beside_the_catalogue),
		TEST(own_workloads_change_only_as_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
