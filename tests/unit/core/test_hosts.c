/* The registry of hosts on a real store, and polling of a small BMC in a process of its own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/parse.h"
#include "core/hosts.h"
#include "core/once.h"
#include "db/events.h"
#include "db/hosts.h"
#include "tests/support/fakebmc.h"
#include "tests/support/temp_db.h"

#define LOCAL "6f1c1f1e-0000-4000-8000-000000000001"
#define OTHER "6f1c1f1e-0000-4000-8000-000000000002"
#define PATIENCE_MS 20000
#define METER_MS 50

static const struct actor admin = {.account_id = "a", .name = "admin", .role = ROLE_ADMINISTRATOR};

struct fixture {
	struct temp_db *control, *samples;
	struct timers *timers;
	struct pool *jobs;
	struct httpc *httpc;
	struct events *events;
	struct energy *energy;
	struct hosts *hosts;
};

static void hosts_open(struct fixture *f) {
	const struct hosts_config config = {.local_id = LOCAL,
		.local_name = "here",
		.meter_ms = METER_MS,
		.secret_key = {1, 2, 3}};
	struct err err;
	f->hosts = hosts_new(
		&config, f->control->db, f->events, f->energy, f->httpc, f->timers, f->jobs, &err);
	assert_non_null(f->hosts);
}

static void reopen(struct fixture *f) {
	hosts_free(f->hosts);
	hosts_open(f);
}

static int setup(void **state) {
	const struct energy_config energy = {
		.max_series = 100, .queue_samples = 1000, .flush_ms = 20, .max_gap_ms = 30000};
	struct fixture *f = calloc(1, sizeof(*f));
	assert_int_equal(secret_init(NULL), RC_OK);
	f->control = temp_db_new(DB_CONTROL);
	f->samples = temp_db_new(DB_SAMPLES);
	f->timers = timers_new(64, NULL);
	f->jobs = pool_new("jobs", 2, 64, NULL);
	f->httpc = httpc_new(64, 4, NULL);
	f->events = events_new(f->control->db, NULL);
	f->energy = energy_new(&energy, f->samples->db, NULL);
	hosts_open(f);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	hosts_free(f->hosts);
	energy_free(f->energy);
	events_free(f->events);
	httpc_free(f->httpc);
	pool_free(f->jobs);
	timers_free(f->timers);
	temp_db_free(f->samples);
	temp_db_free(f->control);
	free(f);
	return 0;
}

static struct host must_get(struct fixture *f, const char *id, struct host_power *p) {
	struct host h = {0};
	assert_int_equal(hosts_get(f->hosts, id, &h, p, NULL), RC_OK);
	return h;
}

/* --- the registry --- */

static void the_local_host_is_there(void **state) {
	struct fixture *f = *state;
	struct host_power p;
	assert_string_equal(hosts_resolve(f->hosts, "local"), LOCAL);
	assert_string_equal(hosts_resolve(f->hosts, OTHER), OTHER);
	struct host h = must_get(f, LOCAL, &p);
	assert_true(h.local);
	assert_string_equal(h.name, "here");
	assert_int_equal(p.power_mw, NONE);
	assert_string_equal(p.reason, "no_meter");
	reopen(f);
	assert_int_equal(must_get(f, LOCAL, NULL).config_version, 1);
	assert_int_equal(hosts_delete(f->hosts, &admin, LOCAL, VERSION_ANY, NULL), RC_CONFLICT);
}

static struct host_change bmc_change(const char *name) {
	return (struct host_change){
		.name = name,
		.set_bmc = true,
		.bmc = {.present = true, .url = "https://10.0.0.7", .username = "root"},
		.bmc_password = "calvin",
	};
}

static bool count_event(void *arg, const struct event *e) {
	*(int *)arg += e->type == EVENT_HOST_CHANGED;
	return true;
}

static int host_events(struct fixture *f) {
	struct db_conn *c;
	int n = 0;
	assert_int_equal(db_read_begin(f->control->db, &c, NULL), RC_OK);
	assert_int_equal(db_event_list(c, 0, 1000, count_event, &n, NULL), RC_OK);
	db_read_end(c);
	return n;
}

static bool show_password(void *arg, const struct host *h) {
	if (h->bmc.password_sealed)
		str_copy(arg, 256, h->bmc.password_sealed);
	return true;
}

static void hosts_are_made_changed_and_removed(void **state) {
	struct fixture *f = *state;
	struct host_change c = bmc_change("rack1-7");
	struct host h;
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_OK);
	assert_string_equal(h.id, OTHER);
	assert_string_equal(h.bmc.vendor, "auto");
	assert_null(h.bmc.password_sealed);
	const uint32_t first = h.config_version;
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_EXISTS);
	assert_int_equal(hosts_create(f->hosts, &admin, NULL, &c, &h, NULL), RC_EXISTS);

	/* The same once more is no change. */
	uint64_t version = hosts_version(f->hosts);
	assert_int_equal(hosts_update(f->hosts, &admin, OTHER, &c, true, &h, NULL), RC_OK);
	c.bmc_password = NULL;
	assert_int_equal(hosts_update(f->hosts, &admin, OTHER, &c, true, &h, NULL), RC_OK);
	assert_int_equal(h.config_version, first);
	assert_int_equal(hosts_version(f->hosts), version);
	assert_int_equal(host_events(f), 1);

	struct host_change rename = {.name = "rack1-8", .if_version = first};
	assert_int_equal(hosts_update(f->hosts, &admin, OTHER, &rename, false, &h, NULL), RC_OK);
	assert_int_equal(h.config_version, first + 1);
	assert_true(h.bmc.present);
	assert_int_equal(
		hosts_update(f->hosts, &admin, OTHER, &rename, false, &h, NULL), RC_PRECONDITION);

	reopen(f);
	h = must_get(f, OTHER, NULL);
	assert_string_equal(h.name, "rack1-8");
	assert_string_equal(h.bmc.url, "https://10.0.0.7");
	assert_int_equal(hosts_delete(f->hosts, &admin, OTHER, first, NULL), RC_PRECONDITION);
	assert_int_equal(hosts_delete(f->hosts, &admin, OTHER, first + 1, NULL), RC_OK);
	assert_int_equal(hosts_delete(f->hosts, &admin, OTHER, first + 1, NULL), RC_NOT_FOUND);
	assert_int_equal(host_events(f), 3);
	reopen(f);
	assert_int_equal(hosts_get(f->hosts, OTHER, &h, NULL, NULL), RC_NOT_FOUND);
}

static int64_t later_ms(void) {
	return INT64_C(1900000000000);
}

/* A client that kept a tag from before must not take what is there now for it. */
static void versions_never_come_again(void **state) {
	struct fixture *f = *state;
	struct host_change c = {.name = "rack1-7"};
	struct host_power before, after;
	struct host h;
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_OK);
	const uint32_t config_version = h.config_version;
	const uint64_t version = hosts_version(f->hosts);
	must_get(f, OTHER, &before);
	assert_int_equal(hosts_delete(f->hosts, &admin, OTHER, VERSION_ANY, NULL), RC_OK);
	clock_replace(later_ms, NULL);
	reopen(f);
	assert_true(hosts_version(f->hosts) > version);
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_OK);
	assert_true(h.config_version > config_version);
	must_get(f, OTHER, &after);
	assert_true(after.observed_version > before.observed_version);
	clock_replace(NULL, NULL);
}

static void a_key_is_kept_with_the_host_it_made(void **state) {
	struct fixture *f = *state;
	const uint8_t key[SECRET_KEY_BYTES] = {1};
	struct once_request r = {.method = "POST", .path = "/hosts", .key = "k"};
	struct actor who = admin;
	struct host_change c = {.name = "rack1-7"};
	char location[ONCE_LOCATION_SIZE], want[ONCE_LOCATION_SIZE];
	struct host h;
	struct once *o = once_new(key, f->control->db, NULL);
	assert_int_equal(once_find(o, &who, &r, "{}", 2, location, NULL), RC_NOT_FOUND);
	who.once = &r;
	/* What fails keeps no key: nth is the write of the key, the event's, and the commit. */
	for (int n = 1; n <= 5; n++) {
		db_fail_nth(f->control->db, n, RC_STORE);
		assert_int_equal(hosts_create(f->hosts, &who, NULL, &c, &h, NULL), RC_STORE);
		db_fail_nth(f->control->db, 0, RC_OK);
		assert_int_equal(once_find(o, &who, &r, "{}", 2, location, NULL), RC_NOT_FOUND);
	}
	assert_int_equal(hosts_create(f->hosts, &who, NULL, &c, &h, NULL), RC_OK);
	snprintf(want, sizeof(want), "/hosts/%s", h.id);
	assert_int_equal(once_find(o, &who, &r, "{}", 2, location, NULL), RC_OK);
	assert_string_equal(location, want);

	/* Another request of the key that came before this one was done makes nothing. */
	c.name = "rack1-8";
	assert_int_equal(hosts_create(f->hosts, &who, NULL, &c, &h, NULL), RC_CONFLICT);
	assert_int_equal(host_events(f), 1);
	once_free(o);
}

static void the_password_is_sealed_and_kept(void **state) {
	struct fixture *f = *state;
	char sealed[256] = "", again[256] = "";
	struct host_change c = bmc_change("rack1-7");
	struct host h;
	struct err err;
	struct db_conn *conn;
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_OK);
	assert_int_equal(db_read_begin(f->control->db, &conn, NULL), RC_OK);
	assert_int_equal(db_host_each(conn, show_password, sealed, NULL), RC_OK);
	db_read_end(conn);
	assert_int_not_equal(sealed[0], 0);
	assert_null(strstr(sealed, "calvin"));
	/* Another URL must not get it. */
	c.bmc_password = NULL;
	str_copy(c.bmc.url, sizeof(c.bmc.url), "https://10.0.0.8");
	assert_int_equal(hosts_update(f->hosts, &admin, OTHER, &c, false, &h, &err), RC_INVALID);
	assert_string_equal(err.field, "/bmc/password");
	/* Kept through other changes. */
	str_copy(c.bmc.url, sizeof(c.bmc.url), "https://10.0.0.7/");
	str_copy(c.bmc.username, sizeof(c.bmc.username), "operator");
	assert_int_equal(hosts_update(f->hosts, &admin, OTHER, &c, false, &h, NULL), RC_OK);
	assert_int_equal(db_read_begin(f->control->db, &conn, NULL), RC_OK);
	assert_int_equal(db_host_each(conn, show_password, again, NULL), RC_OK);
	db_read_end(conn);
	assert_string_equal(sealed, again);
}

static void bad_settings_are_refused(void **state) {
	static const char *const pin =
		"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef";
	const struct {
		const char *field;
		struct bmc_settings bmc;
	} bad[] = {
		{"/bmc/url", {.url = ""}},
		{"/bmc/url", {.url = "http://10.0.0.7"}},
		{"/bmc/url", {.url = "ftp://10.0.0.7"}},
		{"/bmc/url", {.url = "https://"}},
		{"/bmc/url", {.url = "https://10.0.0.7/redfish"}},
		{"/bmc/url", {.url = "https://root:calvin@10.0.0.7"}},
		{"/bmc/url", {.url = "https://10.0.0.7?x"}},
		{"/bmc/url", {.url = "https://10.0.0.7#x"}},
		{"/bmc/url", {.url = "https://10.0.0.7:0"}},
		{"/bmc/url", {.url = "https://10.0.0.7:443x"}},
		{"/bmc/url", {.url = "https://10.0 .7"}},
		{"/bmc/username", {.url = "https://b", .username = "a:b"}},
		{"/bmc/vendor", {.url = "https://b", .vendor = "abacus"}},
		{"/bmc/tls/fingerprint_sha256", {.url = "https://b", .tls = BMC_TLS_PIN}},
		{"/bmc/tls/fingerprint_sha256",
			{.url = "https://b", .tls = BMC_TLS_PIN, .fingerprint_sha256 = "0123"}},
		{"/bmc/tls/fingerprint_sha256",
			{.url = "https://b", .tls = BMC_TLS_CA, .fingerprint_sha256 = "0123"}},
		{"/bmc/tls/ca_file", {.url = "https://b", .ca_file = "ca.pem"}},
		{"/bmc/tls/ca_file", {.url = "https://b", .ca_file = "/nowhere/ca.pem"}},
	};
	struct fixture *f = *state;
	struct host h;
	for (size_t i = 0; i < array_len(bad); i++) {
		struct host_change c = {.name = "x", .set_bmc = true, .bmc = bad[i].bmc};
		struct err err = {0};
		c.bmc.present = true;
		assert_int_equal(hosts_create(f->hosts, &admin, NULL, &c, &h, &err), RC_INVALID);
		assert_string_equal(err.field, bad[i].field);
	}
	struct host_change good = {.name = "x",
		.set_bmc = true,
		.bmc = {.present = true,
			.url = "HTTP://[fe80::1]:8080/",
			.allow_plaintext = true,
			.tls = BMC_TLS_PIN}};
	str_copy(good.bmc.fingerprint_sha256, sizeof(good.bmc.fingerprint_sha256), pin);
	assert_int_equal(hosts_create(f->hosts, &admin, NULL, &good, &h, NULL), RC_OK);
	assert_string_equal(h.bmc.url, "http://[fe80::1]:8080");
	assert_int_equal(h.bmc.fingerprint_sha256[10], 'a');
	assert_true(id_is_uuid(h.id));
}

static void names_and_ids_are_checked(void **state) {
	static const char *const names[] = {NULL, "", "a\nb",
		"12345678901234567890123456789012345678901234567890123456789012345"};
	struct fixture *f = *state;
	struct host h;
	struct err err;
	for (size_t i = 0; i < array_len(names); i++) {
		struct host_change c = {.name = names[i]};
		assert_int_equal(hosts_create(f->hosts, &admin, NULL, &c, &h, &err), RC_INVALID);
		assert_string_equal(err.field, "/name");
	}
	struct host_change c = {.name = "x"};
	assert_int_equal(hosts_create(f->hosts, &admin, "not-a-uuid", &c, &h, &err), RC_INVALID);
	assert_string_equal(err.field, "/id");
	c.name = "here";
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, &err), RC_EXISTS);
	assert_string_equal(err.field, "/name");
}

static void a_failing_store_changes_nothing(void **state) {
	struct fixture *f = *state;
	struct host_change c = bmc_change("rack1-7");
	struct host h;
	for (int n = 1; n <= 3; n++) {
		db_fail_nth(f->control->db, n, RC_NO_SPACE);
		assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_NO_SPACE);
		db_fail_nth(f->control->db, 0, RC_OK);
		assert_int_equal(hosts_get(f->hosts, OTHER, &h, NULL, NULL), RC_NOT_FOUND);
	}
	assert_int_equal(host_events(f), 0);
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_OK);
}

struct names {
	int n;
	char id[8][HOST_ID_SIZE];
};

static bool keep_id(void *arg, const struct host *h, const struct host_power *p unused_arg) {
	struct names *names = arg;
	assert_null(h->bmc.password_sealed);
	str_copy(names->id[names->n++], HOST_ID_SIZE, h->id);
	return names->n < 8;
}

static void lists_ascend(void **state) {
	struct fixture *f = *state;
	struct host_change c = bmc_change("rack1-7");
	struct host h;
	struct names names = {0};
	assert_int_equal(hosts_create(f->hosts, &admin, OTHER, &c, &h, NULL), RC_OK);
	hosts_each(f->hosts, NULL, keep_id, &names);
	assert_int_equal(names.n, 2);
	assert_string_equal(names.id[0], LOCAL);
	hosts_each(f->hosts, LOCAL, keep_id, &names);
	assert_int_equal(names.n, 3);
	assert_string_equal(names.id[2], OTHER);
}

static void baselines_are_kept(void **state) {
	struct fixture *f = *state;
	struct baseline b = {.known = true,
		.source = BASELINE_DECLARED,
		.power_mw = 120000,
		.uncertainty_mw = NONE};
	b.at_ms = 1000;
	assert_int_equal(
		hosts_set_baseline(f->hosts, &admin, LOCAL, BASELINE_IDLE_WITH_DRIVES, &b, NULL),
		RC_OK);
	assert_int_equal(must_get(f, LOCAL, NULL).config_version, 2);
	/* Declared again. */
	b.at_ms = 2000;
	assert_int_equal(
		hosts_set_baseline(f->hosts, &admin, LOCAL, BASELINE_IDLE_WITH_DRIVES, &b, NULL),
		RC_OK);
	assert_int_equal(must_get(f, LOCAL, NULL).config_version, 2);
	reopen(f);
	struct host h = must_get(f, LOCAL, NULL);
	assert_true(h.baselines[BASELINE_IDLE_WITH_DRIVES].known);
	assert_int_equal(h.baselines[BASELINE_IDLE_WITH_DRIVES].power_mw, 120000);
	assert_false(h.baselines[BASELINE_NO_DRIVES].known);
	b.power_mw = -1;
	struct err err;
	assert_int_equal(hosts_set_baseline(f->hosts, &admin, LOCAL, BASELINE_NO_DRIVES, &b, &err),
		RC_INVALID);
	assert_string_equal(err.field, "/no_drives/w");
	b.known = false;
	assert_int_equal(
		hosts_set_baseline(f->hosts, &admin, LOCAL, BASELINE_IDLE_WITH_DRIVES, &b, NULL),
		RC_OK);
	reopen(f);
	assert_false(must_get(f, LOCAL, NULL).baselines[BASELINE_IDLE_WITH_DRIVES].known);
}

static void baselines_change_together(void **state) {
	struct fixture *f = *state;
	const struct baseline idle = {.known = true,
		.source = BASELINE_DECLARED,
		.power_mw = 120000,
		.uncertainty_mw = NONE};
	struct baseline bare = idle;
	const struct baseline *both[BASELINE_KIND_COUNT_] = {
		[BASELINE_IDLE_WITH_DRIVES] = &idle, [BASELINE_NO_DRIVES] = &bare};
	const struct baseline *one[BASELINE_KIND_COUNT_] = {[BASELINE_NO_DRIVES] = &bare};
	struct host h;
	bare.power_mw = -1;
	assert_int_equal(hosts_set_baselines(f->hosts, &admin, LOCAL, both, VERSION_ANY, &h, NULL),
		RC_INVALID);
	bare.power_mw = 100000;
	assert_int_equal(
		hosts_set_baselines(f->hosts, &admin, LOCAL, both, 7, &h, NULL), RC_PRECONDITION);
	/* A store that fails half-way leaves nothing of it. */
	for (int n = 1; n <= 6; n++) {
		db_fail_nth(f->control->db, n, RC_STORE);
		assert_int_equal(
			hosts_set_baselines(f->hosts, &admin, LOCAL, both, 1, &h, NULL), RC_STORE);
		db_fail_nth(f->control->db, 0, RC_OK);
		reopen(f);
		assert_false(must_get(f, LOCAL, NULL).baselines[BASELINE_NO_DRIVES].known);
	}
	assert_int_equal(hosts_set_baselines(f->hosts, &admin, LOCAL, both, 1, &h, NULL), RC_OK);
	assert_int_equal(h.config_version, 2);
	assert_int_equal(h.baselines[BASELINE_NO_DRIVES].power_mw, 100000);
	assert_int_equal(host_events(f), 1);
	bare.known = false;
	assert_int_equal(hosts_set_baselines(f->hosts, &admin, LOCAL, one, 2, NULL, NULL), RC_OK);
	reopen(f);
	h = must_get(f, LOCAL, NULL);
	assert_int_equal(h.config_version, 3);
	assert_true(h.baselines[BASELINE_IDLE_WITH_DRIVES].known);
	assert_false(h.baselines[BASELINE_NO_DRIVES].known);
}

/* --- readings --- */

static bool count_sample(void *arg, const struct sample *s unused_arg) {
	++*(int *)arg;
	return true;
}

static int samples_of(struct fixture *f, const char *host_id) {
	struct series s;
	int n = 0;
	if (energy_find(f->energy, host_id, "host", QUANTITY_POWER, &s, NULL) == RC_OK)
		assert_int_equal(
			energy_raw(f->energy, s.id, 0, INT64_MAX, count_sample, &n, NULL), RC_OK);
	return n;
}

/* Waits until cond(f, arg) holds. */
static void wait_until(
	struct fixture *f, bool (*cond)(struct fixture *f, int64_t arg), int64_t arg) {
	struct timespec pause = {.tv_nsec = 5000000};
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
	while (!cond(f, arg)) {
		assert_true(clock_mono_ms() < deadline_ms);
		nanosleep(&pause, NULL);
	}
}

static bool local_has_samples(struct fixture *f, int64_t n) {
	return samples_of(f, LOCAL) >= n;
}

static void give_reading(struct fixture *f, int64_t at_ms, int64_t power_mw) {
	struct host_power p;
	host_power_init(&p);
	p.power_mw = power_mw;
	str_copy(p.source, sizeof(p.source), "simulated");
	p.quality = QUALITY_SIMULATED;
	p.at_ms = at_ms;
	p.at_mono_ns = at_ms * 1000000;
	if (power_mw == NONE)
		str_copy(p.reason, sizeof(p.reason), "not_reported");
	hosts_reading(f->hosts, LOCAL, &p);
}

static void readings_feed_the_history(void **state) {
	struct fixture *f = *state;
	struct host_power p;
	give_reading(f, 1000, 0);
	wait_until(f, local_has_samples, 1);
	for (int i = 0; i < 8; i++)
		give_reading(f, 2000 + i, 330000 + i * 33000);
	give_reading(f, 3000, NONE);
	assert_int_equal(samples_of(f, LOCAL), 9);
	must_get(f, LOCAL, &p);
	assert_int_equal(p.power_mw, NONE);
	assert_string_equal(p.reason, "not_reported");
	assert_int_equal(p.resolution_mw, 33000);
	assert_true(p.observed_version > 9);
}

static void give_from(struct fixture *f, bool dcmi, int64_t at_ms, int64_t power_mw) {
	struct host_power p;
	host_power_init(&p);
	p.power_mw = power_mw;
	str_copy(p.source, sizeof(p.source), dcmi ? "DCMI" : "PowerControl");
	p.at_ms = at_ms;
	p.at_mono_ns = at_ms * 1000000;
	if (dcmi)
		hosts_local_reading(f->hosts, &p);
	else
		hosts_reading(f->hosts, LOCAL, &p);
}

/* The BMC comes first, DCMI stands in for it, nothing else does. */
static void dcmi_stands_in_for_the_bmc(void **state) {
	static const struct {
		bool dcmi;
		int64_t at_ms, power_mw, shown_mw;
		const char *source;
	} steps[] = {
		{true, 1000, 200000, 200000, "DCMI"},
		{false, 2000, 210000, 210000, "PowerControl"},
		{true, 3000, 201000, 210000, "PowerControl"},
		{true, 4000, NONE, 210000, "PowerControl"},
		{false, 5000, NONE, NONE, "PowerControl"},
		{true, 6000, 202000, 202000, "DCMI"},
		{false, 7000, NONE, 202000, "DCMI"},
		{false, 8000, 212000, 212000, "PowerControl"},
		{true, 30000, 203000, 212000, "PowerControl"},
		{true, 39000, 204000, 204000, "DCMI"},
		{true, 40000, NONE, NONE, "DCMI"},
		{false, 41000, NONE, NONE, "PowerControl"},
	};
	struct fixture *f = *state;
	struct host_power p;
	for (size_t i = 0; i < array_len(steps); i++) {
		give_from(f, steps[i].dcmi, steps[i].at_ms, steps[i].power_mw);
		must_get(f, LOCAL, &p);
		if (p.power_mw != steps[i].shown_mw || strcmp(p.source, steps[i].source) != 0)
			fail_msg("step %zu: %lld of %s", i, (long long)p.power_mw, p.source);
	}
}

static void parts_are_no_host(void **state) {
	struct fixture *f = *state;
	struct host_component out[HOST_COMPONENT_MAX];
	struct host_power before, after;
	const struct host_component cpu = {.object = "cpu",
		.source = "rapl",
		.quality = QUALITY_DERIVED,
		.power_mw = 90000,
		.uncertainty_mw = 18};
	must_get(f, LOCAL, &before);
	hosts_local_components(f->hosts, &cpu, 1);
	must_get(f, LOCAL, &after);
	assert_int_equal(after.power_mw, NONE);
	assert_true(after.observed_version > before.observed_version);
	assert_int_equal(hosts_components(f->hosts, LOCAL, out), 1);
	assert_int_equal(out[0].power_mw, 90000);
	assert_int_equal(hosts_components(f->hosts, "other", out), 0);
}

static void a_bmc_of_this_machine_is_known(void **state) {
	struct fixture *f = *state;
	struct host_change c = {.name = "by its BMC"};
	struct host h;
	struct host_power p;
	assert_int_equal(hosts_create(f->hosts, &actor_system, NULL, &c, &h, NULL), RC_OK);
	host_power_init(&p);
	str_copy(p.system_uuid, sizeof(p.system_uuid), "44454c4c-3400-1044-8038-b1c04f464633");
	hosts_reading(f->hosts, h.id, &p);
	must_get(f, h.id, &p);
	assert_false(p.is_local);
	hosts_local_machine(
		f->hosts, "4c4c4544-0034-4410-8038-b1c04f464633", "https://169.254.1.1");
	must_get(f, h.id, &p);
	assert_true(p.is_local);
	assert_string_equal(p.host_interface, "");
	/* What does not say who it is is whom it was. */
	host_power_init(&p);
	hosts_reading(f->hosts, h.id, &p);
	must_get(f, h.id, &p);
	assert_true(p.is_local);
	must_get(f, LOCAL, &p);
	assert_string_equal(p.system_uuid, "4c4c4544-0034-4410-8038-b1c04f464633");
	assert_string_equal(p.host_interface, "https://169.254.1.1");
}

static bool keep_last(void *arg, const struct sample *s) {
	((int64_t *)arg)[0]++;
	((int64_t *)arg)[1] = s->value_milli;
	return true;
}

static int samples_in(struct fixture *f, enum quantity quantity, int64_t *last_milli) {
	struct series s;
	int64_t seen[2] = {0, NONE};
	if (energy_find(f->energy, LOCAL, "host", quantity, &s, NULL) == RC_OK)
		assert_int_equal(
			energy_raw(f->energy, s.id, 0, INT64_MAX, keep_last, seen, NULL), RC_OK);
	*last_milli = seen[1];
	return (int)seen[0];
}

static bool has_counter(struct fixture *f, int64_t n) {
	int64_t last_milli;
	return samples_in(f, QUANTITY_ENERGY_COUNTER, &last_milli) >= n;
}

static void give_counter(struct fixture *f, int64_t at_ms, int64_t counter_mj, int64_t since_ms) {
	struct host_power p;
	host_power_init(&p);
	p.at_ms = at_ms;
	p.at_mono_ns = at_ms * 1000000;
	p.energy_counter_mj = counter_mj;
	p.energy_since_ms = since_ms;
	hosts_reading(f->hosts, LOCAL, &p);
}

static int64_t reset_at(struct fixture *f) {
	struct host_power p;
	must_get(f, LOCAL, &p);
	return p.energy_reset_ms;
}

/* In Wh, one a minute, and each time that it begins anew. */
static void energy_counters_are_followed(void **state) {
	struct fixture *f = *state;
	int64_t last_milli;
	give_counter(f, 1000, 91234567000, NONE);
	wait_until(f, has_counter, 1);
	give_counter(f, 2000, 91234568000, NONE);
	give_counter(f, 61000, 91240000000, NONE);
	assert_int_equal(samples_in(f, QUANTITY_ENERGY_COUNTER, &last_milli), 2);
	assert_int_equal(last_milli, 25344);
	assert_int_equal(reset_at(f), NONE);
	/* It counts from the beginning. */
	give_counter(f, 62000, 36000000, NONE);
	assert_int_equal(samples_in(f, QUANTITY_ENERGY_COUNTER, &last_milli), 3);
	assert_int_equal(last_milli, 10);
	assert_int_equal(reset_at(f), 62000);
	/* Silence is no reset, and a reset stays in mind. */
	give_counter(f, 63000, NONE, NONE);
	give_counter(f, 64000, 72000000, 1000000);
	assert_int_equal(reset_at(f), 62000);
	/* It was reset so long ago that it is further than before. */
	give_counter(f, 65000, 99000000000, 50000000);
	assert_int_equal(reset_at(f), 65000);
	give_counter(f, 66000, 99000000001, 50000000 + 1000);
	assert_int_equal(reset_at(f), 65000);
}

/* What comes later about the same reading is no reading. */
static void more_about_a_reading_is_no_sample(void **state) {
	struct fixture *f = *state;
	struct host_power p;
	give_reading(f, 1000, 330000);
	wait_until(f, local_has_samples, 1);
	must_get(f, LOCAL, &p);
	p.inlet_mc = 21500;
	p.supply_count = 1;
	hosts_reading(f->hosts, LOCAL, &p);
	give_reading(f, 2000, 331000);
	assert_int_equal(samples_of(f, LOCAL), 2);
	wait_until(f, local_has_samples, 2);
	must_get(f, LOCAL, &p);
	assert_int_equal(p.supply_count, 0);
}

/* --- polling --- */

static void watch(struct fixture *f, const struct fakebmc *bmc) {
	struct host_change c = {.set_bmc = true,
		.bmc = {.present = true, .username = "root", .allow_plaintext = true},
		.bmc_password = "calvin"};
	struct host h;
	str_copy(c.bmc.url, sizeof(c.bmc.url), bmc->url);
	if (bmc->fingerprint_sha256[0]) {
		c.bmc.tls = BMC_TLS_PIN;
		str_copy(c.bmc.fingerprint_sha256, sizeof(c.bmc.fingerprint_sha256),
			bmc->fingerprint_sha256);
	}
	assert_int_equal(hosts_update(f->hosts, &admin, LOCAL, &c, false, &h, NULL), RC_OK);
}

static bool power_is(struct fixture *f, int64_t power_mw) {
	struct host_power p;
	must_get(f, LOCAL, &p);
	return p.power_mw == power_mw;
}

static bool reason_is(struct fixture *f, int64_t reason) {
	struct host_power p;
	must_get(f, LOCAL, &p);
	return strcmp(p.reason, (const char *)(uintptr_t)reason) == 0;
}

static void wait_for_reason(struct fixture *f, const char *reason) {
	wait_until(f, reason_is, (int64_t)(uintptr_t)reason);
}

static bool count_bmc_event(void *arg, const struct event *e) {
	*(int *)arg += e->type == EVENT_BMC_STATE;
	return true;
}

static bool bmc_events_are(struct fixture *f, int64_t wanted) {
	struct db_conn *c;
	int n = 0;
	assert_int_equal(db_read_begin(f->control->db, &c, NULL), RC_OK);
	assert_int_equal(db_event_list(c, 0, 1000, count_bmc_event, &n, NULL), RC_OK);
	db_read_end(c);
	return n == wanted;
}

static void a_bmc_is_read(void **state) {
	struct fixture *f = *state;
	struct host_power p;
	struct fakebmc *bmc = fakebmc_new(NULL);
	assert_int_equal(hosts_start(f->hosts, NULL), RC_OK);
	watch(f, bmc);
	wait_until(f, power_is, 402000);
	must_get(f, LOCAL, &p);
	assert_string_equal(p.source, "EnvironmentMetrics");
	assert_int_equal(p.quality, QUALITY_BMC);
	assert_true(p.at_ms > 0 && p.at_mono_ns > 0);
	wait_until(f, local_has_samples, 3);
	fakebmc_tell(bmc, "watts 317.5");
	wait_until(f, power_is, 317500);
	struct fakebmc_stats s = fakebmc_ask_stats(bmc);
	assert_int_equal(s.connections, 1);
	assert_int_equal(s.most_at_once, 1);
	/* Its resources move: they are found again. */
	fakebmc_tell(bmc, "shape power");
	fakebmc_tell(bmc, "watts 99");
	wait_until(f, power_is, 99000);
	fakebmc_tell(bmc, "watts none");
	wait_for_reason(f, "not_reported");
	fakebmc_free(bmc);
}

static void faults_have_their_reasons(void **state) {
	static const struct {
		const char *order, *reason; /* NULL: read all the same */
	} faults[] = {
		{"mode 503", "bmc_busy"},
		{"mode control_bytes", NULL},
		{"mode html", "bmc_not_json"},
		{"mode error_first", NULL},
		{"mode garbage", "bmc_not_json"},
		{"mode ok", NULL},
		{"mode truncated", "bmc_truncated"},
		{"mode ok", NULL},
		{"mode huge", "bmc_too_large"},
		{"mode ok", NULL},
	};
	static const char *const args[] = {"--plain", NULL};
	struct fixture *f = *state;
	struct fakebmc *bmc = fakebmc_new(args);
	assert_int_equal(hosts_start(f->hosts, NULL), RC_OK);
	watch(f, bmc);
	wait_until(f, power_is, 402000);
	for (size_t i = 0; i < array_len(faults); i++) {
		fakebmc_tell(bmc, faults[i].order);
		if (faults[i].reason)
			wait_for_reason(f, faults[i].reason);
		else
			wait_until(f, power_is, 402000);
	}
	fakebmc_tell(bmc, "password changed");
	fakebmc_tell(bmc, "expire 401");
	wait_for_reason(f, "bmc_unauthorized");
	fakebmc_free(bmc);
}

static void losing_a_bmc_is_an_event(void **state) {
	static const char *const args[] = {"--plain", NULL};
	struct fixture *f = *state;
	struct fakebmc *bmc = fakebmc_new(args);
	assert_int_equal(hosts_start(f->hosts, NULL), RC_OK);
	watch(f, bmc);
	wait_until(f, power_is, 402000);
	fakebmc_tell(bmc, "mode 500");
	wait_until(f, bmc_events_are, 1);
	int before = samples_of(f, LOCAL);
	fakebmc_tell(bmc, "mode ok");
	wait_until(f, bmc_events_are, 2);
	wait_until(f, power_is, 402000);
	/* Nothing was made up meanwhile. */
	assert_in_range(samples_of(f, LOCAL), before, before + 20);
	fakebmc_free(bmc);
}

static void another_certificate_is_refused(void **state) {
	struct fixture *f = *state;
	struct fakebmc *bmc = fakebmc_new(NULL);
	assert_int_equal(hosts_start(f->hosts, NULL), RC_OK);
	bmc->fingerprint_sha256[5] = bmc->fingerprint_sha256[5] == '0' ? '1' : '0';
	watch(f, bmc);
	wait_for_reason(f, "bmc_tls");
	assert_int_equal(fakebmc_ask_stats(bmc).requests, 0);
	fakebmc_free(bmc);
}

/* A BMC that hangs must hold up neither a change nor the end. */
static void a_hanging_bmc_holds_nobody(void **state) {
	static const char *const args[] = {"--plain", "--mode", "slow", NULL};
	struct timespec pause = {.tv_nsec = 5000000};
	struct fixture *f = *state;
	struct fakebmc *bmc = fakebmc_new(args);
	assert_int_equal(hosts_start(f->hosts, NULL), RC_OK);
	watch(f, bmc);
	while (!fakebmc_ask_stats(bmc).requests)
		nanosleep(&pause, NULL);
	int64_t begin_ms = clock_mono_ms();
	struct host h;
	struct host_change none = {.set_bmc = true};
	assert_int_equal(hosts_update(f->hosts, &admin, LOCAL, &none, false, &h, NULL), RC_OK);
	watch(f, bmc);
	reopen(f);
	assert_true(clock_mono_ms() - begin_ms < 5000);
	fakebmc_free(bmc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(the_local_host_is_there),
		TEST(hosts_are_made_changed_and_removed),
		TEST(versions_never_come_again),
		TEST(a_key_is_kept_with_the_host_it_made),
		TEST(the_password_is_sealed_and_kept),
		TEST(bad_settings_are_refused),
		TEST(names_and_ids_are_checked),
		TEST(a_failing_store_changes_nothing),
		TEST(lists_ascend),
		TEST(baselines_are_kept),
		TEST(baselines_change_together),
		TEST(readings_feed_the_history),
		TEST(dcmi_stands_in_for_the_bmc),
		TEST(parts_are_no_host),
		TEST(a_bmc_of_this_machine_is_known),
		TEST(energy_counters_are_followed),
		TEST(more_about_a_reading_is_no_sample),
		TEST(a_bmc_is_read),
		TEST(faults_have_their_reasons),
		TEST(losing_a_bmc_is_an_event),
		TEST(another_certificate_is_refused),
		TEST(a_hanging_bmc_holds_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
