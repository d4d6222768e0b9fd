/* Polling of a small BMC in a process of its own: its sessions, and vendors' services over HTTP. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/bmc/poll.h"
#include "tests/support/fakebmc.h"
#include "tests/support/temp_db.h"

#define HOST "6f1c1f1e-0000-4000-8000-000000000001"
#define PATIENCE_MS 120000 /* that only a broken program needs */
#define PERIOD_MS 50

struct fixture {
	struct temp_db *control, *samples;
	struct timers *timers;
	struct pool *jobs;
	struct httpc *httpc;
	struct events *events;
	struct energy *energy;
	struct poller *poller;
	struct fakebmc *bmc;
	char *sealed;
	pthread_mutex_t lock;                /* guards what follows */
	struct host_power power, with_watts; /* the last, and the last that had some */
	unsigned readings;
};

static const uint8_t key[SECRET_KEY_BYTES] = {7};

static void on_reading(void *arg, const char *host_id, const struct host_power *p) {
	struct fixture *f = arg;
	assert_string_equal(host_id, HOST);
	pthread_mutex_lock(&f->lock);
	f->readings += p->at_mono_ns != f->power.at_mono_ns;
	f->power = *p;
	if (p->power_mw != NONE)
		f->with_watts = *p;
	pthread_mutex_unlock(&f->lock);
}

static struct host_power last(struct fixture *f) {
	pthread_mutex_lock(&f->lock);
	struct host_power p = f->power;
	pthread_mutex_unlock(&f->lock);
	return p;
}

static struct host_power last_with_watts(struct fixture *f) {
	pthread_mutex_lock(&f->lock);
	struct host_power p = f->with_watts;
	pthread_mutex_unlock(&f->lock);
	return p;
}

static unsigned readings(struct fixture *f) {
	pthread_mutex_lock(&f->lock);
	unsigned n = f->readings;
	pthread_mutex_unlock(&f->lock);
	return n;
}

static void pause_or_fail(struct fixture *f, const char *awaited, int64_t deadline_ms) {
	struct timespec pause = {.tv_nsec = 5000000};
	if (clock_mono_ms() >= deadline_ms)
		fail_msg("still not %s: %lld mW, %s, after %u readings", awaited,
			(long long)last(f).power_mw, last(f).reason, readings(f));
	nanosleep(&pause, NULL);
}

#define WAIT_UNTIL(f, condition) \
	do { \
		int64_t deadline_ms_ = clock_mono_ms() + PATIENCE_MS; \
		while (!(condition)) \
			pause_or_fail(f, #condition, deadline_ms_); \
	} while (0)

static void wait_for_watts(struct fixture *f, int64_t power_mw) {
	WAIT_UNTIL(f, last(f).power_mw == power_mw);
}

static void wait_for_reason(struct fixture *f, const char *reason) {
	WAIT_UNTIL(f, strcmp(last(f).reason, reason) == 0);
}

static void wait_for_readings(struct fixture *f, unsigned more) {
	unsigned wanted = readings(f) + more;
	WAIT_UNTIL(f, readings(f) >= wanted);
}

static int setup(void **state) {
	const struct energy_config energy = {
		.max_series = 100, .queue_samples = 1000, .flush_ms = 20, .max_gap_ms = 30000};
	struct fixture *f = calloc(1, sizeof(*f));
	assert_int_equal(secret_init(NULL), RC_OK);
	pthread_mutex_init(&f->lock, NULL);
	host_power_init(&f->power);
	host_power_init(&f->with_watts);
	f->control = temp_db_new(DB_CONTROL);
	f->samples = temp_db_new(DB_SAMPLES);
	f->timers = timers_new(64, NULL);
	f->jobs = pool_new("jobs", 2, 64, NULL);
	f->httpc = httpc_new(64, 4, NULL);
	f->events = events_new(f->control->db, NULL);
	f->energy = energy_new(&energy, f->samples->db, NULL);
	assert_int_equal(secret_seal(key, "calvin", &f->sealed, NULL), RC_OK);
	struct poller_config config = {.httpc = f->httpc,
		.timers = f->timers,
		.jobs = f->jobs,
		.energy = f->energy,
		.events = f->events,
		.period_ms = PERIOD_MS,
		.reading = on_reading,
		.arg = f};
	memcpy(config.secret_key, key, sizeof(key));
	f->poller = poller_new(&config, NULL);
	assert_int_equal(poller_start(f->poller, NULL), RC_OK);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	poller_free(f->poller);
	energy_free(f->energy);
	events_free(f->events);
	httpc_free(f->httpc);
	pool_free(f->jobs);
	timers_free(f->timers);
	temp_db_free(f->samples);
	temp_db_free(f->control);
	if (f->bmc)
		fakebmc_free(f->bmc);
	pthread_mutex_destroy(&f->lock);
	free(f->sealed);
	free(f);
	return 0;
}

/* Polls a BMC made with these arguments; a and b may be NULL. */
static void watch(struct fixture *f, const char *option, const char *value) {
	const char *const args[] = {"--plain", option, value, NULL};
	struct bmc_settings b = {.present = true,
		.username = "root",
		.password_sealed = f->sealed,
		.vendor = "auto",
		.allow_plaintext = true};
	f->bmc = fakebmc_new(args);
	str_copy(b.url, sizeof(b.url), f->bmc->url);
	assert_int_equal(poller_set(f->poller, HOST, &b, 0, NULL), RC_OK);
}

static void set(struct fixture *f, const char *uri, const char *name, const char *json) {
	char line[256];
	snprintf(line, sizeof(line), "set %s %s %s", uri, name, json);
	fakebmc_tell(f->bmc, line);
}

/* --- sessions --- */

static void one_session_is_used_and_closed(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	wait_for_readings(f, 20);
	struct fakebmc_sessions s = fakebmc_ask_sessions(f->bmc);
	assert_int_equal(s.opened, 1);
	assert_int_equal(s.closed, 0);
	poller_free(f->poller);
	f->poller = NULL;
	WAIT_UNTIL(f, fakebmc_ask_sessions(f->bmc).closed == 1);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 1);
}

static void a_bmc_that_is_left_has_its_session_closed(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	assert_int_equal(poller_set(f->poller, HOST, NULL, 0, NULL), RC_OK);
	WAIT_UNTIL(f, fakebmc_ask_sessions(f->bmc).closed);
}

static void a_full_table_means_basic(void **state) {
	struct fixture *f = *state;
	watch(f, "--sessions", "full");
	wait_for_watts(f, 402000);
	wait_for_readings(f, 10);
	struct fakebmc_sessions s = fakebmc_ask_sessions(f->bmc);
	assert_int_equal(s.opened, 0);
	assert_int_equal(s.refused, 1);
}

static void an_old_collection_is_found(void **state) {
	struct fixture *f = *state;
	watch(f, "--sessions", "old");
	wait_for_watts(f, 402000);
	wait_for_readings(f, 5);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 1);
}

static void without_a_session_service_basic_does(void **state) {
	struct fixture *f = *state;
	watch(f, "--sessions", "none");
	wait_for_watts(f, 402000);
	/* Root, three collections, the list of chassis, the chassis, its metrics: no more logins.
	 */
	wait_for_readings(f, 10);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 0);
}

static void dead_sessions_are_opened_anew(void **state) {
	static const char *const expiries[] = {"expire 401", "expire 403"};
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	for (unsigned i = 0; i < array_len(expiries); i++) {
		fakebmc_tell(f->bmc, expiries[i]);
		wait_for_readings(f, 5);
		assert_int_equal(last(f).power_mw, 402000);
		assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 2 + (int)i);
	}
}

static void one_that_answers_404_too(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	fakebmc_tell(f->bmc, "expire 404");
	wait_for_readings(f, 5);
	assert_int_equal(last(f).power_mw, 402000);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 2);
}

/* What is forbidden stays so: one more login, and no more. */
static void a_login_that_does_not_help_is_not_repeated(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	fakebmc_tell(f->bmc, "mode 403");
	wait_for_reason(f, "bmc_forbidden");
	wait_for_readings(f, 10);
	struct fakebmc_sessions s = fakebmc_ask_sessions(f->bmc);
	assert_int_equal(s.opened, 2);
	assert_int_equal(s.closed, 1);
	fakebmc_tell(f->bmc, "mode ok");
	wait_for_watts(f, 402000);
}

static void a_page_to_log_in_is_taken_for_a_dead_session(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	fakebmc_tell(f->bmc, "mode html");
	wait_for_reason(f, "bmc_not_json");
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 2);
}

static void a_wrong_password_is_tried_once(void **state) {
	struct fixture *f = *state;
	watch(f, "--password", "other");
	wait_for_reason(f, "bmc_unauthorized");
	assert_int_equal(fakebmc_ask_stats(f->bmc).requests, 2);
}

/* Sealed by another key: nobody is asked with half of the credentials. */
static void a_password_that_does_not_open_goes_nowhere(void **state) {
	struct fixture *f = *state;
	static const uint8_t other_key[SECRET_KEY_BYTES] = {8};
	free(f->sealed);
	assert_int_equal(secret_seal(other_key, "calvin", &f->sealed, NULL), RC_OK);
	watch(f, NULL, NULL);
	wait_for_reason(f, "password_unreadable");
	assert_int_equal(fakebmc_ask_stats(f->bmc).requests, 1);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 0);
}

static void a_missing_licence_says_so(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	fakebmc_tell(f->bmc, "mode licence");
	wait_for_reason(f, "bmc_license");
	wait_for_readings(f, 3);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 1);
}

static void failures_are_spread_and_bounded(void **state unused_arg) {
	static const struct {
		unsigned failures;
		int64_t at_least_ms, from_ms, to_ms;
	} cases[] = {
		{1, 0, 10000, 12500},
		{2, 0, 20000, 25000},
		{4, 0, 80000, 100000},
		{6, 0, 300000, 375000},
		{100000, 0, 300000, 375000},
		{1, 60000, 60000, 75000},
		{1, 3600000, 300000, 375000},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		bool early = false, late = false;
		for (int64_t noise = 0; noise < 1000003; noise += 997) {
			int64_t ms = poll_backoff_ms(
				cases[i].failures, 10000, cases[i].at_least_ms, noise);
			assert_in_range(ms, cases[i].from_ms, cases[i].to_ms);
			early |= ms - cases[i].from_ms < cases[i].from_ms / 16;
			late |= cases[i].to_ms - ms < cases[i].from_ms / 16;
		}
		assert_true(early && late);
	}
}

/* --- redirects --- */

static void redirects_stay_on_the_bmc(void **state) {
	struct fixture *f = *state;
	watch(f, NULL, NULL);
	wait_for_watts(f, 402000);
	fakebmc_tell(f->bmc, "mode slash");
	fakebmc_tell(f->bmc, "watts 403");
	wait_for_watts(f, 403000);
	fakebmc_tell(f->bmc, "mode away");
	wait_for_reason(f, "bmc_redirects");
}

/* --- vendors over HTTP --- */

static const struct {
	const char *vendor;
	int64_t power_mw;
	const char *reason;
} vendors[] = {
	{"dell8", 177000, ""},
	{"dell9", 317000, ""},
	{"dell10", 402000, ""},
	{"dell10_sensor", 402000, ""},
	{"dell10_supplies", 427000, ""},
	{"ilo4", 93000, ""},
	{"ilo4_no_meter", NONE, "not_supported"},
	{"ilo5", 246000, ""},
	{"openbmc", 732000, ""},
	{"openbmc_off", NONE, "not_reported"},
	{"xcc", 233000, ""},
	{"supermicro", 198000, ""},
	{"supermicro_gb300", 1212500, ""},
	{"ami", 148000, ""},
	{"cisco", 324000, ""},
	{"fujitsu", 156000, ""},
	{"huawei", 187000, ""},
	{"inspur", 139000, ""},
	{"openubmc", 211000, ""},
	{"nvidia", 1349264, ""},
};

static void vendors_are_polled(void **state) {
	struct fixture *f = *state;
	for (size_t i = 0; i < array_len(vendors); i++) {
		pthread_mutex_lock(&f->lock);
		host_power_init(&f->power);
		pthread_mutex_unlock(&f->lock);
		watch(f, "--vendor", vendors[i].vendor);
		if (vendors[i].power_mw == NONE)
			wait_for_reason(f, vendors[i].reason);
		else
			wait_for_watts(f, vendors[i].power_mw);
		assert_string_equal(last(f).reason, vendors[i].reason);
		assert_int_equal(poller_set(f->poller, HOST, NULL, 0, NULL), RC_OK);
		fakebmc_free(f->bmc);
		f->bmc = NULL;
	}
}

#define METRICS "/redfish/v1/Chassis/1/EnvironmentMetrics"

/* iLO 7 counts joules, and tells no watts. */
static void joules_become_watts(void **state) {
	struct fixture *f = *state;
	watch(f, "--vendor", "ilo7");
	WAIT_UNTIL(f, last(f).energy_counter_mj == 91234567000);
	assert_int_equal(last(f).power_mw, NONE);
	set(f, METRICS, "EnergyJoules/Reading", "91234967");
	WAIT_UNTIL(f, last_with_watts(f).power_mw != NONE);
	struct host_power p = last_with_watts(f);
	assert_int_equal(p.quality, QUALITY_DERIVED);
	assert_string_equal(p.source, "EnergyJoules");
	/* 400 J in half a second at least, and in less than all the patience. */
	assert_in_range(p.power_mw, 400000 * 1000 / PATIENCE_MS, 800000);
	/* A counter that begins anew gives no watts. */
	set(f, METRICS, "EnergyJoules/Reading", "5");
	WAIT_UNTIL(f, last(f).power_mw == NONE);
}

static void extras_come_with_the_watts(void **state) {
	struct fixture *f = *state;
	watch(f, "--vendor", "dell9");
	wait_for_watts(f, 317000);
	WAIT_UNTIL(f, last(f).energy_counter_mj != NONE);
	struct host_power p = last(f);
	assert_int_equal(p.energy_since_ms, 1625257740000);
	assert_int_equal(p.inlet_mc, 21000);
	assert_int_equal(p.supply_count, 2);
	assert_string_equal(p.supplies[1].state, "UnavailableOffline");
	/* They stay while only the watts are asked for. */
	set(f, "/redfish/v1/Chassis/System.Embedded.1/Power", "PowerControl/0/PowerConsumedWatts",
		"318");
	wait_for_watts(f, 318000);
	assert_int_equal(last(f).inlet_mc, 21000);
}

/* --- limits --- */

struct told {
	pthread_mutex_t lock;
	unsigned count;
	struct limit_outcome last;
};

static void on_limit(void *arg, const struct limit_outcome *o) {
	struct told *t = arg;
	pthread_mutex_lock(&t->lock);
	t->count++;
	t->last = *o;
	pthread_mutex_unlock(&t->lock);
}

static unsigned told_count(struct told *t) {
	pthread_mutex_lock(&t->lock);
	unsigned n = t->count;
	pthread_mutex_unlock(&t->lock);
	return n;
}

static void a_limit_is_set_before_the_first_reading(void **state) {
	struct fixture *f = *state;
	struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER};
	watch(f, "--shape", "power");
	assert_int_equal(poller_set_limit(f->poller, HOST, 700000, on_limit, &told, NULL), RC_OK);
	WAIT_UNTIL(f, told_count(&told) == 1);
	assert_int_equal(told.last.err.rc, RC_OK);
	assert_int_equal(told.last.limit_mw, 700000);
	wait_for_readings(f, 3);
	assert_int_equal(last(f).limit_mw, 700000);
	assert_int_equal(fakebmc_ask_sessions(f->bmc).opened, 1);
}

static void a_bmc_that_says_nothing_has_no_limit_to_set(void **state) {
	struct fixture *f = *state;
	struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER};
	watch(f, "--mode", "503");
	assert_int_equal(poller_set_limit(f->poller, HOST, 700000, on_limit, &told, NULL), RC_OK);
	WAIT_UNTIL(f, told_count(&told) == 1);
	assert_int_equal(told.last.err.rc, RC_UNAVAILABLE);
	assert_non_null(strstr(told.last.err.msg, "bmc_busy"));
	assert_int_equal(
		poller_set_limit(f->poller, "other", 1, on_limit, &told, NULL), RC_UNSUPPORTED);
}

static void the_end_tells_who_waits(void **state) {
	struct fixture *f = *state;
	struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER};
	watch(f, "--shape", "power");
	wait_for_watts(f, 402000);
	fakebmc_tell(f->bmc, "limits forever");
	assert_int_equal(poller_set_limit(f->poller, HOST, 700000, on_limit, &told, NULL), RC_OK);
	assert_int_equal(poller_set_limit(f->poller, HOST, 600000, on_limit, &told, NULL), RC_FULL);
	poller_free(f->poller);
	f->poller = NULL;
	WAIT_UNTIL(f, told_count(&told) == 1);
	assert_int_equal(told.last.err.rc, RC_CANCELLED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(one_session_is_used_and_closed),
		TEST(a_bmc_that_is_left_has_its_session_closed),
		TEST(a_full_table_means_basic),
		TEST(an_old_collection_is_found),
		TEST(without_a_session_service_basic_does),
		TEST(dead_sessions_are_opened_anew),
		TEST(one_that_answers_404_too),
		TEST(a_login_that_does_not_help_is_not_repeated),
		TEST(a_page_to_log_in_is_taken_for_a_dead_session),
		TEST(a_wrong_password_is_tried_once),
		TEST(a_password_that_does_not_open_goes_nowhere),
		TEST(a_missing_licence_says_so),
		cmocka_unit_test(failures_are_spread_and_bounded),
		TEST(redirects_stay_on_the_bmc),
		TEST(vendors_are_polled),
		TEST(joules_become_watts),
		TEST(extras_come_with_the_watts),
		TEST(a_limit_is_set_before_the_first_reading),
		TEST(a_bmc_that_says_nothing_has_no_limit_to_set),
		TEST(the_end_tells_who_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
