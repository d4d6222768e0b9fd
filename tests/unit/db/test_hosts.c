/* Hosts, their BMC settings and baselines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/hosts.h"
#include "tests/support/temp_db.h"

static const struct host rack7 = {
	.id = "h1",
	.name = "rack1-7",
	.labels = "{\"row\":\"b\"}",
	.local = true,
	.config_version = 3,
	.bmc = {.present = true,
		.url = "https://10.0.0.7",
		.username = "root",
		.password_sealed = (char[]){"sealed"},
		.vendor = "auto",
		.tls = BMC_TLS_PIN,
		.allow_plaintext = true,
		.ca_file = "/etc/ca.pem",
		.fingerprint_sha256 = "ab12"},
};

struct hosts {
	struct host at[4]; /* password_sealed is not kept */
	char password[32];
	int n, stop_after;
};

static bool keep_host(void *arg, const struct host *h) {
	struct hosts *all = arg;
	all->password[0] = '\0';
	if (h->bmc.password_sealed)
		snprintf(all->password, sizeof(all->password), "%s", h->bmc.password_sealed);
	all->at[all->n++] = *h;
	return all->n != all->stop_after;
}

static struct hosts list_hosts(struct db_conn *c) {
	struct hosts all = {.n = 0};
	assert_int_equal(db_host_each(c, keep_host, &all, NULL), RC_OK);
	return all;
}

static void a_host_comes_back_as_it_was(void **state) {
	struct db_conn *c = temp_db_conn(state);
	bool created = false;
	assert_int_equal(db_host_put(c, &rack7, &created, NULL), RC_OK);
	assert_true(created);
	const struct hosts all = list_hosts(c);
	const struct host *h = &all.at[0];
	assert_int_equal(all.n, 1);
	assert_string_equal(h->id, rack7.id);
	assert_string_equal(h->name, rack7.name);
	assert_string_equal(h->labels, rack7.labels);
	assert_true(h->local);
	assert_int_equal(h->config_version, 3);
	assert_true(h->bmc.present);
	assert_string_equal(h->bmc.url, rack7.bmc.url);
	assert_string_equal(h->bmc.username, rack7.bmc.username);
	assert_string_equal(all.password, "sealed");
	assert_string_equal(h->bmc.vendor, rack7.bmc.vendor);
	assert_int_equal(h->bmc.tls, BMC_TLS_PIN);
	assert_true(h->bmc.allow_plaintext);
	assert_string_equal(h->bmc.ca_file, rack7.bmc.ca_file);
	assert_string_equal(h->bmc.fingerprint_sha256, rack7.bmc.fingerprint_sha256);
	assert_false(h->baselines[BASELINE_NO_DRIVES].known);
	assert_false(h->baselines[BASELINE_IDLE_WITH_DRIVES].known);
}

static void a_second_put_replaces_all_but_the_baselines(void **state) {
	struct db_conn *c = temp_db_conn(state);
	const struct baseline b = {.known = true,
		.source = BASELINE_DECLARED,
		.power_mw = 462000,
		.uncertainty_mw = NONE,
		.at_ms = 5};
	struct host bare = {.id = "h1", .name = "new", .config_version = 4};
	bool created = true;
	assert_int_equal(db_host_put(c, &rack7, NULL, NULL), RC_OK);
	assert_int_equal(db_baseline_put(c, "h1", BASELINE_NO_DRIVES, &b, NULL), RC_OK);
	assert_int_equal(db_host_put(c, &bare, &created, NULL), RC_OK);
	assert_false(created);
	const struct hosts all = list_hosts(c);
	assert_int_equal(all.n, 1);
	assert_string_equal(all.at[0].name, "new");
	assert_string_equal(all.at[0].labels, "");
	assert_false(all.at[0].local);
	assert_false(all.at[0].bmc.present);
	assert_string_equal(all.at[0].bmc.url, "");
	assert_string_equal(all.password, "");
	assert_int_equal(all.at[0].bmc.tls, BMC_TLS_CA);
	assert_true(all.at[0].baselines[BASELINE_NO_DRIVES].known);
}

static void baselines_are_kept_by_kind(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct baseline measured = {.known = true,
		.source = BASELINE_MEASURED,
		.power_mw = 594000,
		.uncertainty_mw = 16500,
		.at_ms = 1234};
	const struct baseline none = {.known = false};
	assert_int_equal(db_host_put(c, &rack7, NULL, NULL), RC_OK);
	assert_int_equal(
		db_baseline_put(c, "h1", BASELINE_IDLE_WITH_DRIVES, &measured, NULL), RC_OK);
	struct hosts all = list_hosts(c);
	const struct baseline *b = &all.at[0].baselines[BASELINE_IDLE_WITH_DRIVES];
	assert_true(b->known);
	assert_int_equal(b->source, BASELINE_MEASURED);
	assert_int_equal(b->power_mw, 594000);
	assert_int_equal(b->uncertainty_mw, 16500);
	assert_int_equal(b->at_ms, 1234);
	assert_false(all.at[0].baselines[BASELINE_NO_DRIVES].known);

	measured.power_mw = 600000;
	measured.uncertainty_mw = NONE;
	assert_int_equal(
		db_baseline_put(c, "h1", BASELINE_IDLE_WITH_DRIVES, &measured, NULL), RC_OK);
	all = list_hosts(c);
	assert_int_equal(all.at[0].baselines[BASELINE_IDLE_WITH_DRIVES].power_mw, 600000);
	assert_int_equal(all.at[0].baselines[BASELINE_IDLE_WITH_DRIVES].uncertainty_mw, NONE);

	assert_int_equal(db_baseline_put(c, "h1", BASELINE_IDLE_WITH_DRIVES, &none, NULL), RC_OK);
	assert_int_equal(db_baseline_put(c, "h1", BASELINE_IDLE_WITH_DRIVES, &none, NULL), RC_OK);
	assert_false(list_hosts(c).at[0].baselines[BASELINE_IDLE_WITH_DRIVES].known);
	assert_int_equal(
		db_baseline_put(c, "h9", BASELINE_NO_DRIVES, &measured, NULL), RC_NOT_FOUND);
}

static void hosts_go_with_their_baselines(void **state) {
	struct db_conn *c = temp_db_conn(state);
	const struct baseline b = {.known = true, .power_mw = 1};
	assert_int_equal(db_host_put(c, &rack7, NULL, NULL), RC_OK);
	assert_int_equal(db_baseline_put(c, "h1", BASELINE_NO_DRIVES, &b, NULL), RC_OK);
	assert_int_equal(db_host_delete(c, "h1", NULL), RC_OK);
	assert_int_equal(db_host_delete(c, "h1", NULL), RC_NOT_FOUND);
	assert_int_equal(db_host_put(c, &rack7, NULL, NULL), RC_OK);
	assert_false(list_hosts(c).at[0].baselines[BASELINE_NO_DRIVES].known);
}

static void the_visitor_may_stop(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct hosts all = {.stop_after = 1};
	struct host other = {.id = "h2"};
	assert_int_equal(db_host_put(c, &rack7, NULL, NULL), RC_OK);
	assert_int_equal(db_host_put(c, &other, NULL, NULL), RC_OK);
	assert_int_equal(db_host_each(c, keep_host, &all, NULL), RC_OK);
	assert_int_equal(all.n, 1);
	assert_int_equal(list_hosts(c).n, 2);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_host_comes_back_as_it_was),
		WITH_DB(a_second_put_replaces_all_but_the_baselines),
		WITH_DB(baselines_are_kept_by_kind),
		WITH_DB(hosts_go_with_their_baselines),
		WITH_DB(the_visitor_may_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
