/* What is kept about drives, and claims on their power. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/drives.h"
#include "tests/support/temp_db.h"

static void a_drive_keeps_its_labels_when_seen_again(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct drive_record d = {.id = "d1",
		.model = "M",
		.serial = "S",
		.config_version = 1,
		.first_seen_ms = 10,
		.last_seen_ms = 10};
	assert_int_equal(db_drive_seen(c, &d, NULL), RC_OK);
	assert_int_equal(db_drive_set_labels(c, "d1", "{\"rack\":\"7\"}", 2, NULL), RC_OK);

	const struct drive_record again = {.id = "d1",
		.model = "M2",
		.serial = "S2",
		.labels = "{}",
		.config_version = 9,
		.first_seen_ms = 20,
		.last_seen_ms = 20};
	assert_int_equal(db_drive_seen(c, &again, NULL), RC_OK);
	assert_int_equal(db_drive_get(c, "d1", &d, NULL), RC_OK);
	assert_string_equal(d.id, "d1");
	assert_string_equal(d.model, "M2");
	assert_string_equal(d.serial, "S2");
	assert_string_equal(d.labels, "{\"rack\":\"7\"}");
	assert_int_equal(d.config_version, 2);
	assert_int_equal(d.first_seen_ms, 10);
	assert_int_equal(d.last_seen_ms, 20);
}

static void unknown_drives_are_not_found(void **state) {
	struct drive_record d;
	assert_int_equal(db_drive_get(temp_db_conn(state), "d9", &d, NULL), RC_NOT_FOUND);
	assert_int_equal(db_drive_set_labels(temp_db_conn(state), "d9", "", 2, NULL), RC_NOT_FOUND);
}

static void put_drive(struct db_conn *c, const char *id, int64_t seen_ms, const char *labels) {
	struct drive_record d = {.config_version = 1, .last_seen_ms = seen_ms};
	snprintf(d.id, sizeof(d.id), "%s", id);
	snprintf(d.labels, sizeof(d.labels), "%s", labels);
	assert_int_equal(db_drive_seen(c, &d, NULL), RC_OK);
}

static void drives_are_forgotten_but_for_those_somebody_wanted_something_of(void **state) {
	static const char *const kept[] = {"claimed", "labelled", "recent"};
	struct db_conn *c = temp_db_conn(state);
	struct drive_record d;
	struct claim claim = {.id = "c1", .drive_id = "claimed", .expires_ms = NONE};
	int removed;
	put_drive(c, "old", 99, "");
	put_drive(c, "older", 98, "{}");
	put_drive(c, "recent", 100, "");
	put_drive(c, "labelled", 99, "{\"rack\":\"7\"}");
	put_drive(c, "claimed", 99, "");
	assert_int_equal(db_claim_put(c, &claim, NULL), RC_OK);
	assert_int_equal(db_drive_prune(c, 100, 1, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_drive_prune(c, 100, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_drive_get(c, "old", &d, NULL), RC_NOT_FOUND);
	for (size_t i = 0; i < array_len(kept); i++)
		assert_int_equal(db_drive_get(c, kept[i], &d, NULL), RC_OK);
}

static struct claim claim_of(const char *id, const char *drive, enum claim_kind kind, int state) {
	struct claim c = {.kind = kind,
		.owner = "ada",
		.created_ms = 100,
		.expires_ms = NONE,
		.wish = {.state = (int8_t)state, .limit_mw = NONE}};
	memcpy(c.id, id, strlen(id) + 1);
	memcpy(c.drive_id, drive, strlen(drive) + 1);
	return c;
}

struct claims {
	struct claim at[8];
	int n, stop_after;
};

static bool keep_claim(void *arg, const struct claim *claim) {
	struct claims *all = arg;
	all->at[all->n++] = *claim;
	return all->n != all->stop_after;
}

static struct claims list_claims(struct db_conn *c, const char *drive_id) {
	struct claims all = {.n = 0};
	assert_int_equal(db_claim_each(c, drive_id, keep_claim, &all, NULL), RC_OK);
	return all;
}

static void a_second_wish_of_an_owner_replaces_the_first(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct claim first = claim_of("c1", "d1", CLAIM_DESIRED, 1);
	struct claim second = claim_of("c2", "d1", CLAIM_DESIRED, -1);
	second.created_ms = 200;
	second.expires_ms = 300;
	second.wish.limit_mw = 12500;
	second.wish.allow_non_operational = true;
	assert_int_equal(db_claim_put(c, &first, NULL), RC_OK);
	assert_string_equal(first.id, "c1");
	assert_int_equal(db_claim_put(c, &second, NULL), RC_OK);
	assert_string_equal(second.id, "c1");
	assert_int_equal(second.created_ms, 100);

	const struct claims all = list_claims(c, "d1");
	assert_int_equal(all.n, 1);
	assert_string_equal(all.at[0].id, "c1");
	assert_string_equal(all.at[0].drive_id, "d1");
	assert_string_equal(all.at[0].owner, "ada");
	assert_int_equal(all.at[0].kind, CLAIM_DESIRED);
	assert_int_equal(all.at[0].wish.state, -1);
	assert_int_equal(all.at[0].wish.limit_mw, 12500);
	assert_true(all.at[0].wish.allow_non_operational);
	assert_int_equal(all.at[0].created_ms, 100);
	assert_int_equal(all.at[0].expires_ms, 300);
}

static void claims_differ_by_drive_kind_and_owner(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct claim claims[] = {
		claim_of("c1", "d1", CLAIM_DESIRED, 1),
		claim_of("c2", "d2", CLAIM_DESIRED, 1),
		claim_of("c3", "d1", CLAIM_LEASE, 0),
		claim_of("c4", "d1", CLAIM_DESIRED, 2),
	};
	memcpy(claims[3].owner, "bob", 4);
	for (size_t i = 0; i < array_len(claims); i++)
		assert_int_equal(db_claim_put(c, &claims[i], NULL), RC_OK);
	assert_int_equal(list_claims(c, NULL).n, 4);
	assert_int_equal(list_claims(c, "d1").n, 3);
	assert_int_equal(list_claims(c, "d2").n, 1);
	assert_int_equal(list_claims(c, "d1").at[0].wish.limit_mw, NONE);
	assert_int_equal(list_claims(c, "d1").at[0].expires_ms, NONE);

	struct claims stopped = {.stop_after = 2};
	assert_int_equal(db_claim_each(c, NULL, keep_claim, &stopped, NULL), RC_OK);
	assert_int_equal(stopped.n, 2);

	/* The id of another claim may not be taken. */
	struct claim twin = claim_of("c1", "d9", CLAIM_DESIRED, 1);
	assert_int_equal(db_claim_put(c, &twin, NULL), RC_EXISTS);
}

static void claims_are_let_go(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct claim claims[] = {
		claim_of("c1", "d1", CLAIM_DESIRED, 1),
		claim_of("c2", "d1", CLAIM_DESIRED, 1),
		claim_of("c3", "d1", CLAIM_LEASE, 1),
	};
	int removed;
	memcpy(claims[1].owner, "bob", 4);
	for (size_t i = 0; i < array_len(claims); i++)
		assert_int_equal(db_claim_put(c, &claims[i], NULL), RC_OK);
	assert_int_equal(
		db_claim_delete_kind(c, "d1", CLAIM_DESIRED, "bob", &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_claim_put(c, &claims[1], NULL), RC_OK);
	assert_int_equal(
		db_claim_delete_kind(c, "d1", CLAIM_DESIRED, "eve", &removed, NULL), RC_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(db_claim_delete_kind(c, "d1", CLAIM_DESIRED, NULL, &removed, NULL), RC_OK);
	assert_int_equal(removed, 2);
	assert_int_equal(db_claim_delete_kind(c, "d1", CLAIM_POLICY, NULL, NULL, NULL), RC_OK);
	assert_int_equal(list_claims(c, NULL).n, 1);
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(a_drive_keeps_its_labels_when_seen_again),
		WITH_DB(unknown_drives_are_not_found),
		WITH_DB(drives_are_forgotten_but_for_those_somebody_wanted_something_of),
		WITH_DB(a_second_wish_of_an_owner_replaces_the_first),
		WITH_DB(claims_differ_by_drive_kind_and_owner),
		WITH_DB(claims_are_let_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
