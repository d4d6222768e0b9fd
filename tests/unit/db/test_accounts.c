/* Accounts and tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "db/accounts.h"
#include "tests/support/temp_db.h"

static const struct account ada = {.id = "a1",
	.name = "ada",
	.role = ROLE_ADMINISTRATOR,
	.enabled = true,
	.created_ms = 11,
	.config_version = 1};
static const struct account bob = {.id = "a2",
	.name = "bob",
	.role = ROLE_READ_ONLY,
	.enabled = true,
	.created_ms = 12,
	.config_version = 7};

static void insert_both(struct db_conn *c) {
	assert_int_equal(db_account_insert(c, &ada, "hash of ada", NULL), RC_OK);
	assert_int_equal(db_account_insert(c, &bob, "hash of bob", NULL), RC_OK);
}

static void check_account(const struct account *got, const struct account *want) {
	assert_string_equal(got->id, want->id);
	assert_string_equal(got->name, want->name);
	assert_int_equal(got->role, want->role);
	assert_int_equal(got->enabled, want->enabled);
	assert_int_equal(got->created_ms, want->created_ms);
	assert_int_equal(got->config_version, want->config_version);
}

static void accounts_are_found_by_id_and_name(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char hash[SECRET_PASSWORD_HASH_SIZE];
	struct account a;
	struct err err;
	insert_both(c);
	assert_int_equal(db_account_get(c, "a2", &a, &err), RC_OK);
	check_account(&a, &bob);
	assert_int_equal(db_account_by_name(c, "ada", &a, hash, &err), RC_OK);
	check_account(&a, &ada);
	assert_string_equal(hash, "hash of ada");
	assert_int_equal(db_account_by_name(c, "bob", &a, NULL, &err), RC_OK);
	assert_int_equal(db_account_get(c, "a3", &a, &err), RC_NOT_FOUND);
	assert_string_equal(err.msg, "no such account");
	assert_int_equal(db_account_by_name(c, "ADA", &a, hash, &err), RC_NOT_FOUND);
}

/* The failed statement is undone, the transaction goes on. */
static void names_and_ids_are_unique(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct account other = bob;
	int64_t n;
	insert_both(c);
	memcpy(other.id, "a3", 3);
	assert_int_equal(db_account_insert(c, &other, "h", NULL), RC_EXISTS);
	memcpy(other.name, "eve", 4);
	memcpy(other.id, "a1", 3);
	assert_int_equal(db_account_insert(c, &other, "h", NULL), RC_EXISTS);
	memcpy(other.id, "a2", 3);
	memcpy(other.name, "ada", 4);
	assert_int_equal(db_account_update(c, &other, NULL, NULL), RC_EXISTS);
	assert_int_equal(db_account_count(c, &n, NULL), RC_OK);
	assert_int_equal(n, 2);
	temp_db_commit(*state);
}

static void an_update_keeps_the_password_unless_told(void **state) {
	struct db_conn *c = temp_db_conn(state);
	char hash[SECRET_PASSWORD_HASH_SIZE];
	struct account a = bob, got;
	insert_both(c);
	memcpy(a.name, "rob", 4);
	a.role = ROLE_OPERATOR;
	a.enabled = false;
	a.config_version = 8;
	assert_int_equal(db_account_update(c, &a, NULL, NULL), RC_OK);
	assert_int_equal(db_account_by_name(c, "rob", &got, hash, NULL), RC_OK);
	check_account(&got, &a);
	assert_string_equal(hash, "hash of bob");
	assert_int_equal(db_account_update(c, &a, "new hash", NULL), RC_OK);
	assert_int_equal(db_account_by_name(c, "rob", &got, hash, NULL), RC_OK);
	assert_string_equal(hash, "new hash");
	memcpy(a.id, "a9", 3);
	assert_int_equal(db_account_update(c, &a, NULL, NULL), RC_NOT_FOUND);
}

static void administrators_are_counted_while_enabled(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct account a = ada;
	int64_t n;
	insert_both(c);
	assert_int_equal(db_account_count_administrators(c, &n, NULL), RC_OK);
	assert_int_equal(n, 1);
	a.enabled = false;
	assert_int_equal(db_account_update(c, &a, NULL, NULL), RC_OK);
	assert_int_equal(db_account_count_administrators(c, &n, NULL), RC_OK);
	assert_int_equal(n, 0);
}

struct seen {
	char names[256];
	int stop_after; /* 0: never */
	int n;
};

static bool note(struct seen *s, const char *name) {
	const size_t len = strlen(s->names);
	snprintf(s->names + len, sizeof(s->names) - len, "%s ", name);
	return ++s->n != s->stop_after;
}

static bool note_account(void *arg, const struct account *a) {
	return note(arg, a->name);
}

static bool note_token(void *arg, const struct token *t) {
	return note(arg, t->id);
}

static void accounts_are_listed_by_name(void **state) {
	struct db_conn *c = temp_db_conn(state);
	static const struct {
		const char *after;
		int limit, stop_after;
		const char *want;
	} cases[] = {
		{"", 10, 0, "ada bob "},
		{"ada", 10, 0, "bob "},
		{"bob", 10, 0, ""},
		{"", 1, 0, "ada "},
		{"", 10, 1, "ada "},
	};
	insert_both(c);
	for (size_t i = 0; i < array_len(cases); i++) {
		struct seen s = {.stop_after = cases[i].stop_after};
		assert_int_equal(
			db_account_list(c, cases[i].after, cases[i].limit, note_account, &s, NULL),
			RC_OK);
		assert_string_equal(s.names, cases[i].want);
	}
}

static const struct token token1 = {.id = "t1",
	.account_id = "a1",
	.name = "ci",
	.role = ROLE_OPERATOR,
	.created_ms = 20,
	.expires_ms = NONE};
static const struct token token2 = {.id = "t2",
	.account_id = "a2",
	.name = "ui",
	.role = ROLE_READ_ONLY,
	.created_ms = 21,
	.expires_ms = 1000};

static const char hash1[SECRET_TOKEN_HASH_SIZE] = "hash1";
static const char hash2[SECRET_TOKEN_HASH_SIZE] = "hash2";
static const char hash3[SECRET_TOKEN_HASH_SIZE] = "hash3";

static void insert_tokens(struct db_conn *c) {
	insert_both(c);
	assert_int_equal(db_token_insert(c, &token1, hash1, NULL), RC_OK);
	assert_int_equal(db_token_insert(c, &token2, hash2, NULL), RC_OK);
}

static void tokens_are_found_by_hash_until_they_expire(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct token t;
	struct account a;
	insert_tokens(c);
	assert_int_equal(db_token_by_hash(c, hash1, INT64_MAX, &t, &a, NULL), RC_OK);
	assert_string_equal(t.id, "t1");
	assert_string_equal(t.account_id, "a1");
	assert_string_equal(t.name, "ci");
	assert_int_equal(t.role, ROLE_OPERATOR);
	assert_int_equal(t.created_ms, 20);
	assert_int_equal(t.expires_ms, NONE);
	check_account(&a, &ada);
	assert_int_equal(db_token_by_hash(c, hash2, 999, &t, &a, NULL), RC_OK);
	assert_int_equal(t.expires_ms, 1000);
	check_account(&a, &bob);
	assert_int_equal(db_token_by_hash(c, hash2, 1000, &t, &a, NULL), RC_NOT_FOUND);
	assert_int_equal(db_token_by_hash(c, hash3, 0, &t, &a, NULL), RC_NOT_FOUND);
}

static void expired_tokens_are_pruned(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct token t;
	int removed;
	insert_tokens(c);
	assert_int_equal(db_token_prune(c, 1000, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(db_token_prune(c, 1001, 9, &removed, NULL), RC_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(db_token_get(c, "t1", &t, NULL), RC_OK);
	assert_int_equal(db_token_get(c, "t2", &t, NULL), RC_NOT_FOUND);
}

static void tokens_of_a_disabled_account_do_not_count(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct account a = ada;
	struct token t;
	insert_tokens(c);
	a.enabled = false;
	assert_int_equal(db_account_update(c, &a, NULL, NULL), RC_OK);
	assert_int_equal(db_token_by_hash(c, hash1, 0, &t, &a, NULL), RC_NOT_FOUND);
	assert_int_equal(db_token_get(c, "t1", &t, NULL), RC_OK);
}

static void tokens_go_with_their_account(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct token t;
	insert_tokens(c);
	assert_int_equal(db_account_delete(c, "a1", NULL), RC_OK);
	assert_int_equal(db_account_delete(c, "a1", NULL), RC_NOT_FOUND);
	assert_int_equal(db_token_get(c, "t1", &t, NULL), RC_NOT_FOUND);
	assert_int_equal(db_token_get(c, "t2", &t, NULL), RC_OK);
	assert_int_equal(db_token_delete(c, "t2", NULL), RC_OK);
	assert_int_equal(db_token_delete(c, "t2", NULL), RC_NOT_FOUND);
}

static void a_token_needs_its_account_and_a_hash_of_its_own(void **state) {
	struct db_conn *c = temp_db_conn(state);
	struct token t = token1;
	insert_tokens(c);
	memcpy(t.id, "t3", 3);
	assert_int_equal(db_token_insert(c, &t, hash1, NULL), RC_EXISTS);
	memcpy(t.account_id, "a9", 3);
	assert_int_equal(db_token_insert(c, &t, hash3, NULL), RC_NOT_FOUND);
}

static void tokens_are_listed_by_id(void **state) {
	struct db_conn *c = temp_db_conn(state);
	static const struct {
		const char *account, *after;
		int limit, stop_after;
		const char *want;
	} cases[] = {
		{NULL, "", 10, 0, "t1 t2 "},
		{"a2", "", 10, 0, "t2 "},
		{"a3", "", 10, 0, ""},
		{NULL, "t1", 10, 0, "t2 "},
		{NULL, "", 1, 0, "t1 "},
		{NULL, "", 10, 1, "t1 "},
	};
	insert_tokens(c);
	for (size_t i = 0; i < array_len(cases); i++) {
		struct seen s = {.stop_after = cases[i].stop_after};
		assert_int_equal(db_token_list(c, cases[i].account, cases[i].after, cases[i].limit,
					 note_token, &s, NULL),
			RC_OK);
		assert_string_equal(s.names, cases[i].want);
	}
}

#define WITH_DB(f) cmocka_unit_test_setup_teardown(f, temp_control_begin, temp_db_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		WITH_DB(accounts_are_found_by_id_and_name),
		WITH_DB(names_and_ids_are_unique),
		WITH_DB(an_update_keeps_the_password_unless_told),
		WITH_DB(administrators_are_counted_while_enabled),
		WITH_DB(accounts_are_listed_by_name),
		WITH_DB(tokens_are_found_by_hash_until_they_expire),
		WITH_DB(expired_tokens_are_pruned),
		WITH_DB(tokens_of_a_disabled_account_do_not_count),
		WITH_DB(tokens_go_with_their_account),
		WITH_DB(a_token_needs_its_account_and_a_hash_of_its_own),
		WITH_DB(tokens_are_listed_by_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
