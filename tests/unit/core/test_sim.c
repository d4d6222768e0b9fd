/* The simulator as a whole, with stand-ins for the hosts and the energy engine. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "core/hosts.h"
#include "core/sim.h"

#define PATIENCE_MS 10000
#define HOST "11111111-1111-4111-8111-111111111111"

/* --- stand-ins --- */

const struct actor actor_system = {.name = "system"};

struct hosts {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct host host;
	unsigned set_count;
	struct host_power last;
	unsigned readings;
};

struct energy {
	int64_t period_ms;
};

int64_t energy_period(struct energy *e, const char *host_id, int64_t fallback_ms) {
	assert_string_equal(host_id, HOST);
	return e->period_ms ? e->period_ms : fallback_ms;
}

const char *hosts_resolve(struct hosts *hs, const char *id_or_alias) {
	assert_string_equal(id_or_alias, "local");
	return hs->host.id;
}

enum rc hosts_get(struct hosts *hs, const char *id, struct host *out, struct host_power *power,
	struct err *err) {
	(void)power;
	if (strcmp(id, hs->host.id) != 0)
		return err_set(err, RC_NOT_FOUND, "no such host");
	*out = hs->host;
	return RC_OK;
}

enum rc hosts_set_baseline(struct hosts *hs, const struct actor *who, const char *host_id,
	enum baseline_kind kind, const struct baseline *b, struct err *err) {
	(void)err;
	assert_ptr_equal(who, &actor_system);
	assert_string_equal(host_id, HOST);
	hs->host.baselines[kind] = *b;
	hs->set_count++;
	return RC_OK;
}

void hosts_reading(struct hosts *hs, const char *host_id, const struct host_power *p) {
	pthread_mutex_lock(&hs->lock);
	if (strcmp(host_id, HOST) == 0) {
		hs->last = *p;
		hs->readings++;
	}
	pthread_cond_signal(&hs->changed);
	pthread_mutex_unlock(&hs->lock);
}

/* --- fixture --- */

struct fixture {
	char dir[64], sockets[80];
	struct hosts hosts;
	struct energy energy;
	struct timers *timers;
	struct sim_config config;
	struct err err;
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	char top[] = "/tmp/sim-whole-XXXXXX";
	if (!f || !mkdtemp(top))
		return -1;
	snprintf(f->dir, sizeof(f->dir), "%s", top);
	snprintf(f->sockets, sizeof(f->sockets), "%s/sim", top);
	pthread_mutex_init(&f->hosts.lock, NULL);
	cond_init(&f->hosts.changed);
	snprintf(f->hosts.host.id, sizeof(f->hosts.host.id), HOST);
	f->energy.period_ms = 500;
	f->timers = timers_new(16, &f->err);
	f->config = (struct sim_config){
		.drives = 24, .model = "", .instance_id = HOST, .socket_dir = f->sockets};
	*state = f;
	return f->timers ? 0 : -1;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	timers_free(f->timers);
	rmdir(f->sockets);
	const int left_over = rmdir(f->dir);
	free(f);
	return left_over;
}

static struct sim *begin(struct fixture *f) {
	struct sim *s = sim_new(&f->config, &f->energy, &f->hosts, f->timers, &f->err);
	if (!s)
		fail_msg("%s", f->err.msg);
	return s;
}

static unsigned await_readings(struct fixture *f, unsigned n, int64_t timeout_ms) {
	struct hosts *hs = &f->hosts;
	const struct timespec until = thread_deadline(timeout_ms);
	pthread_mutex_lock(&hs->lock);
	while (hs->readings < n && cond_wait_until(&hs->changed, &hs->lock, &until))
		continue;
	n = hs->readings;
	pthread_mutex_unlock(&hs->lock);
	return n;
}

/* --- tests --- */

static unsigned count_sockets(const char *dir) {
	unsigned n = 0;
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strstr(e->d_name, ".sock") != NULL;
	closedir(d);
	return n;
}

static void drives_have_sockets_while_it_lives(void **state) {
	struct fixture *f = *state;
	struct stat st;
	char path[128];
	struct sim *s = begin(f);
	snprintf(path, sizeof(path), "%s/sim23.sock", f->sockets);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(count_sockets(f->sockets), 24);
	assert_int_equal(sim_scale(s), 256);
	assert_non_null(sim_source(s).ops->submit);
	sim_free(s);
	assert_int_equal(count_sockets(f->sockets), 0);
	f->config.scale = 1024;
	s = begin(f);
	assert_int_equal(sim_scale(s), 1024);
	sim_free(s);
}

static void sockets_left_by_an_earlier_life_are_replaced(void **state) {
	struct fixture *f = *state;
	char path[128];
	assert_int_equal(mkdir(f->sockets, 0700), 0);
	snprintf(path, sizeof(path), "%s/sim00.sock", f->sockets);
	FILE *left = fopen(path, "w");
	assert_non_null(left);
	fclose(left);
	sim_free(begin(f));
}

static void the_idle_server_shows_594_watts(void **state) {
	struct fixture *f = *state;
	struct sim *s = begin(f);
	assert_true(await_readings(f, 1, PATIENCE_MS) >= 1);
	pthread_mutex_lock(&f->hosts.lock);
	const struct host_power p = f->hosts.last;
	pthread_mutex_unlock(&f->hosts.lock);
	assert_int_equal(p.power_mw, 594000);
	assert_string_equal(p.source, "simulated");
	assert_int_equal(p.quality, QUALITY_SIMULATED);
	assert_true(llabs(p.at_ms - clock_wall_ms()) < PATIENCE_MS);
	assert_true(p.limit_mw == NONE && p.energy_counter_mj == NONE);
	sim_free(s);
}

/* Demanded is more than the meter can, and less than it does by itself. */
static void readings_come_as_demanded_but_no_faster_than_the_meter(void **state) {
	struct fixture *f = *state;
	f->energy.period_ms = 10;
	struct sim *s = begin(f);
	const int64_t start_ms = clock_mono_ms();
	assert_true(await_readings(f, 3, PATIENCE_MS) >= 3);
	assert_true(clock_mono_ms() - start_ms >= 1490);
	sim_free(s);
}

static void without_a_demand_readings_are_few(void **state) {
	struct fixture *f = *state;
	f->energy.period_ms = 0;
	struct sim *s = begin(f);
	const int64_t start_ms = clock_mono_ms();
	const unsigned first = await_readings(f, 1, PATIENCE_MS);
	const int64_t first_ms = clock_mono_ms();
	assert_true(first >= 1);
	assert_true(await_readings(f, first + 1, PATIENCE_MS) > first);
	assert_true(clock_mono_ms() - first_ms >= 1400);
	assert_true(first_ms - start_ms < PATIENCE_MS);
	sim_free(s);
}

static void both_baselines_are_set_once(void **state) {
	struct fixture *f = *state;
	sim_free(begin(f));
	const struct baseline *b = f->hosts.host.baselines;
	assert_int_equal(b[BASELINE_NO_DRIVES].power_mw, 462000);
	assert_int_equal(b[BASELINE_IDLE_WITH_DRIVES].power_mw, 594000);
	for (int k = 0; k < BASELINE_KIND_COUNT_; k++) {
		assert_true(b[k].known);
		assert_int_equal(b[k].source, BASELINE_SIMULATED);
	}
	assert_int_equal(f->hosts.set_count, 2);
	sim_free(begin(f));
	assert_int_equal(f->hosts.set_count, 2);
	f->config.drives = 12;
	sim_free(begin(f));
	assert_int_equal(b[BASELINE_IDLE_WITH_DRIVES].power_mw, 528000);
}

static void a_measured_baseline_stays(void **state) {
	struct fixture *f = *state;
	struct baseline *b = &f->hosts.host.baselines[BASELINE_IDLE_WITH_DRIVES];
	*b = (struct baseline){.known = true, .source = BASELINE_MEASURED, .power_mw = 600000};
	sim_free(begin(f));
	assert_int_equal(b->power_mw, 600000);
	assert_int_equal(b->source, BASELINE_MEASURED);
	assert_int_equal(f->hosts.set_count, 1);
}

static void a_users_own_model_is_taken_from_its_file(void **state) {
	struct fixture *f = *state;
	f->config.model_file = "core/sim/models/d7-ps1010-1.92tb.json";
	f->config.drives = 1;
	struct sim *s = begin(f);
	assert_int_equal(sim_scale(s), 1024);
	sim_free(s);
}

static void what_cannot_be_simulated_is_refused(void **state) {
	struct fixture *f = *state;
	f->config.drives = SIM_MAX_DRIVES + 1;
	assert_null(sim_new(&f->config, NULL, NULL, NULL, &f->err));
	assert_int_equal(f->err.rc, RC_INVALID);
	f->config.drives = 0;
	assert_null(sim_new(&f->config, NULL, NULL, NULL, &f->err));
	assert_int_equal(f->err.rc, RC_INVALID);
	f->config.drives = 1;
	f->config.model = "no-such";
	assert_null(sim_new(&f->config, NULL, NULL, NULL, &f->err));
	assert_int_equal(f->err.rc, RC_NOT_FOUND);
}

static void the_most_drives_can_be_simulated_without_hosts(void **state) {
	struct fixture *f = *state;
	f->config.drives = SIM_MAX_DRIVES;
	struct sim *s = sim_new(&f->config, NULL, NULL, NULL, &f->err);
	assert_non_null(s);
	assert_int_equal(count_sockets(f->sockets), SIM_MAX_DRIVES);
	sim_free(s);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(drives_have_sockets_while_it_lives),
		TEST(sockets_left_by_an_earlier_life_are_replaced),
		TEST(the_idle_server_shows_594_watts),
		TEST(readings_come_as_demanded_but_no_faster_than_the_meter),
		TEST(without_a_demand_readings_are_few),
		TEST(both_baselines_are_set_once),
		TEST(a_measured_baseline_stays),
		TEST(a_users_own_model_is_taken_from_its_file),
		TEST(what_cannot_be_simulated_is_refused),
		TEST(the_most_drives_can_be_simulated_without_hosts),
	};
	log_init("test", LOG_LEVEL_WARNING);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
