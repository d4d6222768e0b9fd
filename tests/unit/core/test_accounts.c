/* Accounts: who gets in, what is remembered, and what may not be changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "core/accounts.h"
#include "core/accounts_impl.h"
#include "tests/support/temp_db.h"

/* base64 of "admin:correct horse", "admin:wrong horse", "nobody:correct horse" */
#define ADMIN_RIGHT "Basic YWRtaW46Y29ycmVjdCBob3JzZQ=="
#define ADMIN_WRONG "Basic YWRtaW46d3JvbmcgaG9yc2U="
#define NOBODY "Basic bm9ib2R5OmNvcnJlY3QgaG9yc2U="
#define CACHE_MS 60000
#define MAX_FAILURES 20

struct fixture {
	struct temp_db *store;
	struct events *events;
	struct accounts *accounts;
	struct actor admin;
};

static atomic_llong mono_ms;

static int64_t fake_mono_ns(void) {
	return atomic_load(&mono_ms) * 1000000;
}

static void make(struct fixture *f) {
	const struct accounts_config config = {
		.cache_ms = CACHE_MS, .cache_size = 16, .max_failures = MAX_FAILURES};
	struct err err;
	char made[32];
	f->accounts = accounts_new(&config, f->store->db, f->events, &err);
	assert_non_null(f->accounts);
	assert_int_equal(accounts_bootstrap(f->accounts, "correct horse", made, &err), RC_OK);
	assert_string_equal(made, "");
}

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err;
	atomic_store(&mono_ms, 1000);
	clock_replace(NULL, fake_mono_ns);
	assert_int_equal(secret_init(&err), RC_OK);
	f->store = temp_db_new(DB_CONTROL);
	f->events = events_new(f->store->db, &err);
	make(f);
	assert_int_equal(accounts_verify(f->accounts, ADMIN_RIGHT, &f->admin, &err), RC_OK);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	accounts_free(f->accounts);
	events_free(f->events);
	temp_db_free(f->store);
	clock_replace(NULL, NULL);
	free(f);
	return 0;
}

static enum rc verify(struct fixture *f, const char *authorization) {
	struct actor who = {.account_id = ""};
	struct err err;
	return accounts_verify(f->accounts, authorization, &who, &err);
}

static bool is_cached(struct fixture *f, const char *authorization) {
	struct actor who = {0};
	return accounts_cached(f->accounts, authorization, &who);
}

static void create(struct fixture *f, const char *name, enum role role, struct account *out) {
	const struct account_change c = {
		.name = name, .password = "correct horse", .role = role, .enabled = 1};
	struct err err;
	if (accounts_create(f->accounts, &f->admin, &c, out, &err))
		fail_msg("%s", err.msg);
}

static struct actor actor_of(const struct account *a) {
	struct actor who = {.role = a->role};
	memcpy(who.account_id, a->id, sizeof(who.account_id));
	memcpy(who.name, a->name, sizeof(who.name));
	return who;
}

static void right_credentials_tell_who(void **state) {
	struct fixture *f = *state;
	assert_string_equal(f->admin.name, "admin");
	assert_int_equal(f->admin.role, ROLE_ADMINISTRATOR);
	assert_int_equal(strlen(f->admin.account_id), 36);
	assert_int_equal(verify(f, "basic   YWRtaW46Y29ycmVjdCBob3JzZQ=="), RC_OK);
}

static void wrong_ones_are_all_alike(void **state) {
	struct fixture *f = *state;
	static const char *const wrong[] = {ADMIN_WRONG, NOBODY, "", "Basic", "Basic !!!",
		"Basic =", "Basic YWRtaW4=", "Basic AAAA", "Bearer dwt_nothing", "Digest x",
		"Basic YWRt\x80W4="};
	char long_one[4096];
	memset(long_one, 'A', sizeof(long_one));
	long_one[sizeof(long_one) - 1] = '\0';
	assert_int_equal(verify(f, long_one), RC_UNAUTHENTICATED);
	for (size_t i = 0; i < array_len(wrong); i++) {
		assert_int_equal(verify(f, wrong[i]), RC_UNAUTHENTICATED);
		assert_false(is_cached(f, wrong[i]));
	}
}

static void an_unknown_name_costs_a_hash_too(void **state) {
	struct fixture *f = *state;
	const int64_t before = metric_get(METRIC_AUTH_HASHES);
	assert_int_equal(verify(f, NOBODY), RC_UNAUTHENTICATED);
	assert_int_equal(metric_get(METRIC_AUTH_HASHES), before + 1);
}

static void verified_ones_are_remembered_for_a_while(void **state) {
	struct fixture *f = *state;
	struct actor who = {.address = "kept"};
	assert_true(accounts_cached(f->accounts, ADMIN_RIGHT, &who));
	assert_string_equal(who.name, "admin");
	assert_string_equal(who.address, "kept");
	assert_false(is_cached(f, ADMIN_WRONG));
	atomic_fetch_add(&mono_ms, CACHE_MS);
	assert_false(is_cached(f, ADMIN_RIGHT));
}

static void one_is_sent_to_renew_before_all_would_have_to(void **state) {
	struct fixture *f = *state;
	atomic_fetch_add(&mono_ms, CACHE_MS - 1);
	assert_false(is_cached(f, ADMIN_RIGHT));
	assert_true(is_cached(f, ADMIN_RIGHT));
	assert_int_equal(verify(f, ADMIN_RIGHT), RC_OK);
	atomic_fetch_add(&mono_ms, CACHE_MS / 2);
	assert_true(is_cached(f, ADMIN_RIGHT));
	assert_true(is_cached(f, ADMIN_RIGHT));
}

static void what_is_changed_makes_all_be_asked_again(void **state) {
	struct fixture *f = *state;
	struct account a, out;
	struct err err;
	uint64_t version = accounts_version(f->accounts);
	create(f, "second", ROLE_READ_ONLY, &a);
	assert_true(accounts_version(f->accounts) > version);
	assert_true(is_cached(f, ADMIN_RIGHT));
	version = accounts_version(f->accounts);
	const struct account_change change = {.role = ROLE_OPERATOR, .enabled = -1};
	assert_int_equal(accounts_update(f->accounts, &f->admin, a.id, &change, &out, &err), RC_OK);
	assert_true(accounts_version(f->accounts) > version);
	assert_false(is_cached(f, ADMIN_RIGHT));
}

static void what_was_verified_before_a_change_is_not_remembered_after_it(void **state) {
	struct fixture *f = *state;
	struct account_cache *c = f->accounts->cache;
	const uint8_t key[SECRET_FINGERPRINT_BYTES] = {1};
	struct actor who = {0};
	const uint64_t generation = account_cache_generation(c);
	account_cache_forget(c);
	account_cache_put(c, key, &f->admin, 1000, generation);
	assert_false(account_cache_find(c, key, &who));
	account_cache_put(c, key, &f->admin, 1000, account_cache_generation(c));
	assert_true(account_cache_find(c, key, &who));
}

static void the_cache_is_bounded(void **state) {
	struct fixture *f = *state;
	struct account_cache *c = f->accounts->cache;
	const uint64_t generation = account_cache_generation(c);
	struct actor who = {0};
	unsigned found = 0;
	for (uint8_t i = 0; i < 200; i++)
		account_cache_put(c, (uint8_t[SECRET_FINGERPRINT_BYTES]){i, i, 7}, &f->admin, 1000,
			generation);
	for (uint8_t i = 0; i < 200; i++)
		found += account_cache_find(c, (uint8_t[SECRET_FINGERPRINT_BYTES]){i, i, 7}, &who);
	assert_in_range(found, 1, 20);
}

static enum rc verify_from(struct fixture *f, const char *address, const char *authorization) {
	struct actor who = {.account_id = ""};
	struct err err;
	snprintf(who.address, sizeof(who.address), "%s", address);
	return accounts_verify(f->accounts, authorization, &who, &err);
}

static void an_address_with_many_failures_must_wait(void **state) {
	struct fixture *f = *state;
	struct err err;
	const char *const here = "192.0.2.1";
	account_cache_forget(f->accounts->cache);
	for (int i = 0; i < MAX_FAILURES; i++) {
		assert_int_equal(accounts_admit(f->accounts, here, &err), RC_OK);
		assert_int_equal(verify_from(f, here, ADMIN_WRONG), RC_UNAUTHENTICATED);
	}
	const int64_t hashes = metric_get(METRIC_AUTH_HASHES);
	assert_int_equal(accounts_admit(f->accounts, here, &err), RC_THROTTLED);
	assert_int_equal(verify_from(f, here, ADMIN_WRONG), RC_THROTTLED);
	assert_int_equal(verify_from(f, here, ADMIN_RIGHT), RC_THROTTLED);
	assert_int_equal(metric_get(METRIC_AUTH_HASHES), hashes);
	assert_in_range(accounts_wait_ms(f->accounts, here), 1, 6000);
	/* nobody else is held up, and what is remembered is not checked again */
	assert_int_equal(verify_from(f, "192.0.2.2", ADMIN_RIGHT), RC_OK);
	assert_int_equal(verify_from(f, here, ADMIN_RIGHT), RC_OK);
	account_cache_forget(f->accounts->cache);
	atomic_fetch_add(&mono_ms, accounts_wait_ms(f->accounts, here));
	assert_int_equal(verify_from(f, here, ADMIN_RIGHT), RC_OK);
	assert_int_equal(verify_from(f, here, ADMIN_WRONG), RC_UNAUTHENTICATED);
	assert_int_equal(verify_from(f, here, ADMIN_WRONG), RC_THROTTLED);
	atomic_fetch_add(&mono_ms, 1000000);
	assert_int_equal(verify_from(f, here, ADMIN_WRONG), RC_UNAUTHENTICATED);
	assert_int_equal(verify_from(f, here, ADMIN_WRONG), RC_UNAUTHENTICATED);
}

static void the_guard_is_bounded_and_keeps_the_worst(void **state) {
	(void)state;
	struct account_guard *g = account_guard_new(4, 2);
	char address[32];
	for (int i = 0; i < 5; i++)
		account_guard_failed(g, "192.0.2.1");
	for (int i = 0; i < 100; i++) {
		snprintf(address, sizeof(address), "198.51.100.%d", i);
		account_guard_failed(g, address);
		account_guard_failed(g, address);
	}
	assert_true(account_guard_wait_ms(g, "192.0.2.1") > 0);
	assert_true(account_guard_wait_ms(g, "198.51.100.99") > 0);
	assert_int_equal(account_guard_wait_ms(g, "198.51.100.50"), 0);
	account_guard_free(g);
}

static void no_limit_never_makes_wait(void **state) {
	(void)state;
	struct account_guard *g = account_guard_new(4, 0);
	for (int i = 0; i < 100; i++)
		account_guard_failed(g, "192.0.2.1");
	assert_int_equal(account_guard_wait_ms(g, "192.0.2.1"), 0);
	account_guard_free(g);
}

static void *verify_often(void *arg) {
	struct fixture *f = arg;
	struct actor who = {0};
	struct err err;
	for (int i = 0; i < 3; i++) {
		if (accounts_verify(f->accounts, ADMIN_RIGHT, &who, &err))
			return arg;
		accounts_cached(f->accounts, ADMIN_RIGHT, &who);
	}
	return NULL;
}

static void many_threads_get_their_turn(void **state) {
	struct fixture *f = *state;
	pthread_t threads[4];
	void *failed;
	for (size_t i = 0; i < array_len(threads); i++)
		assert_int_equal(thread_start(&threads[i], "verify", verify_often, f, NULL), RC_OK);
	for (size_t i = 0; i < array_len(threads); i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

/* They waited for a thread while another verified the same header. */
static void what_was_just_verified_is_not_hashed_again(void **state) {
	struct fixture *f = *state;
	const int64_t before = metric_get(METRIC_AUTH_HASHES);
	for (int i = 0; i < 3; i++)
		assert_int_equal(verify(f, ADMIN_RIGHT), RC_OK);
	assert_int_equal(metric_get(METRIC_AUTH_HASHES), before);
	atomic_fetch_add(&mono_ms, CACHE_MS - 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(verify(f, ADMIN_RIGHT), RC_OK);
	assert_int_equal(metric_get(METRIC_AUTH_HASHES), before + 1);
}

static void a_name_is_taken_once(void **state) {
	struct fixture *f = *state;
	struct account a;
	struct err err;
	const struct account_change c = {
		.name = "admin", .password = "correct horse", .role = ROLE_OPERATOR};
	assert_int_equal(accounts_create(f->accounts, &f->admin, &c, &a, &err), RC_EXISTS);
}

static void bad_fields_are_named(void **state) {
	struct fixture *f = *state;
	const struct {
		struct account_change change;
		const char *field;
	} cases[] = {
		{{.password = "12345678", .role = ROLE_OPERATOR}, "/name"},
		{{.name = ".x", .password = "12345678", .role = ROLE_OPERATOR}, "/name"},
		{{.name = "x", .role = ROLE_OPERATOR}, "/password"},
		{{.name = "x", .password = "1234567", .role = ROLE_OPERATOR}, "/password"},
		{{.name = "x", .password = "12345678"}, "/role"},
	};
	struct account a;
	struct err err;
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(
			accounts_create(f->accounts, &f->admin, &cases[i].change, &a, &err),
			RC_INVALID);
		assert_string_equal(err.field, cases[i].field);
	}
}

static void the_last_administrator_stays(void **state) {
	struct fixture *f = *state;
	struct account second;
	struct account out;
	struct err err;
	const struct account_change demote = {.role = ROLE_OPERATOR, .enabled = -1};
	const struct account_change disable = {.enabled = 0};
	const char *id = f->admin.account_id;
	assert_int_equal(
		accounts_delete(f->accounts, &f->admin, id, VERSION_ANY, &err), RC_CONFLICT);
	assert_int_equal(
		accounts_update(f->accounts, &f->admin, id, &demote, &out, &err), RC_CONFLICT);
	assert_int_equal(
		accounts_update(f->accounts, &f->admin, id, &disable, &out, &err), RC_CONFLICT);
	assert_int_equal(verify(f, ADMIN_RIGHT), RC_OK);
	create(f, "second", ROLE_ADMINISTRATOR, &second);
	assert_int_equal(accounts_update(f->accounts, &f->admin, id, &demote, &out, &err), RC_OK);
	assert_int_equal(out.role, ROLE_OPERATOR);
}

static void an_update_without_a_change_changes_nothing(void **state) {
	struct fixture *f = *state;
	struct account a, out;
	struct err err;
	create(f, "second", ROLE_OPERATOR, &a);
	struct account_change c = {.name = "second", .role = ROLE_OPERATOR, .enabled = 1};
	assert_int_equal(accounts_update(f->accounts, &f->admin, a.id, &c, &out, &err), RC_OK);
	assert_int_equal(out.config_version, a.config_version);
	c.role = ROLE_READ_ONLY;
	c.if_version = a.config_version + 1;
	assert_int_equal(
		accounts_update(f->accounts, &f->admin, a.id, &c, &out, &err), RC_PRECONDITION);
	c.if_version = a.config_version;
	assert_int_equal(accounts_update(f->accounts, &f->admin, a.id, &c, &out, &err), RC_OK);
	assert_int_equal(out.config_version, a.config_version + 1);
}

static void an_account_is_deleted_as_it_was_seen(void **state) {
	struct fixture *f = *state;
	struct account a;
	struct err err;
	create(f, "second", ROLE_OPERATOR, &a);
	const uint32_t other = a.config_version + 1;
	assert_int_equal(
		accounts_delete(f->accounts, &f->admin, a.id, other, &err), RC_PRECONDITION);
	assert_int_equal(
		accounts_delete(f->accounts, &f->admin, a.id, a.config_version, &err), RC_OK);
	assert_int_equal(accounts_delete(f->accounts, &f->admin, a.id, a.config_version, &err),
		RC_NOT_FOUND);
}

static void others_may_change_their_own_password_alone(void **state) {
	struct fixture *f = *state;
	struct account a, out;
	struct err err;
	create(f, "second", ROLE_OPERATOR, &a);
	const struct actor who = actor_of(&a);
	const struct account_change password = {.password = "another horse", .enabled = -1};
	const struct account_change role = {.role = ROLE_ADMINISTRATOR, .enabled = -1};
	assert_int_equal(accounts_update(f->accounts, &who, a.id, &password, &out, &err), RC_OK);
	assert_int_equal(accounts_update(f->accounts, &who, a.id, &role, &out, &err), RC_FORBIDDEN);
	assert_int_equal(
		accounts_update(f->accounts, &who, f->admin.account_id, &password, &out, &err),
		RC_FORBIDDEN);
	assert_int_equal(accounts_delete(f->accounts, &who, a.id, VERSION_ANY, &err), RC_FORBIDDEN);
}

static void a_disabled_account_does_not_get_in(void **state) {
	struct fixture *f = *state;
	struct account a, out;
	struct err err;
	create(f, "second", ROLE_OPERATOR, &a);
	/* "second:correct horse" */
	const char *second = "Basic c2Vjb25kOmNvcnJlY3QgaG9yc2U=";
	assert_int_equal(verify(f, second), RC_OK);
	const struct account_change disable = {.enabled = 0};
	assert_int_equal(
		accounts_update(f->accounts, &f->admin, a.id, &disable, &out, &err), RC_OK);
	assert_false(is_cached(f, second));
	assert_int_equal(verify(f, second), RC_UNAUTHENTICATED);
}

static void a_token_is_its_account_with_less(void **state) {
	struct fixture *f = *state;
	char secret[SECRET_TOKEN_SIZE], header[SECRET_TOKEN_SIZE + 16];
	struct token t;
	struct actor who = {0};
	struct err err;
	assert_int_equal(accounts_token_create(f->accounts, &f->admin, "ci", ROLE_READ_ONLY, NONE,
				 &t, secret, &err),
		RC_OK);
	snprintf(header, sizeof(header), "Bearer %s", secret);
	assert_int_equal(accounts_verify(f->accounts, header, &who, &err), RC_OK);
	assert_int_equal(who.role, ROLE_READ_ONLY);
	assert_string_equal(who.account_id, f->admin.account_id);
	assert_int_equal(accounts_token_create(
				 f->accounts, &who, "more", ROLE_OPERATOR, NONE, &t, secret, &err),
		RC_FORBIDDEN);
	assert_string_equal(err.field, "/role");
	assert_true(is_cached(f, header));
	assert_int_equal(accounts_token_delete(f->accounts, &f->admin, t.id, &err), RC_OK);
	assert_false(is_cached(f, header));
	assert_int_equal(verify(f, header), RC_UNAUTHENTICATED);
}

static enum rc update(struct fixture *f, const char *id, const struct account_change *c) {
	struct account out;
	struct err err;
	return accounts_update(f->accounts, &f->admin, id, c, &out, &err);
}

static void what_was_shown_may_not_hold_any_more(void **state) {
	struct fixture *f = *state;
	char secret[SECRET_TOKEN_SIZE], header[SECRET_TOKEN_SIZE + 16];
	struct account a;
	struct token t;
	struct actor by_password = {0}, by_token = {0};
	struct err err;
	const struct account_change password = {.password = "another horse", .enabled = -1};
	const struct account_change demote = {.role = ROLE_READ_ONLY, .enabled = -1};
	create(f, "second", ROLE_OPERATOR, &a);
	/* "second:correct horse" */
	assert_int_equal(accounts_verify(f->accounts,
				 "Basic c2Vjb25kOmNvcnJlY3QgaG9yc2U=", &by_password, &err),
		RC_OK);
	assert_int_equal(accounts_token_create(f->accounts, &by_password, "ci", ROLE_NONE, NONE, &t,
				 secret, &err),
		RC_OK);
	snprintf(header, sizeof(header), "Bearer %s", secret);
	assert_int_equal(accounts_verify(f->accounts, header, &by_token, &err), RC_OK);
	assert_int_equal(accounts_recheck(f->accounts, &by_password, &err), RC_OK);
	assert_int_equal(accounts_recheck(f->accounts, &by_token, &err), RC_OK);
	assert_int_equal(update(f, a.id, &password), RC_OK);
	assert_int_equal(accounts_recheck(f->accounts, &by_password, &err), RC_UNAUTHENTICATED);
	assert_int_equal(accounts_recheck(f->accounts, &by_token, &err), RC_OK);
	assert_int_equal(update(f, a.id, &demote), RC_OK);
	assert_int_equal(accounts_recheck(f->accounts, &by_token, &err), RC_UNAUTHENTICATED);
	by_token.role = ROLE_READ_ONLY;
	assert_int_equal(accounts_recheck(f->accounts, &by_token, &err), RC_OK);
	assert_int_equal(accounts_token_delete(f->accounts, &f->admin, t.id, &err), RC_OK);
	assert_int_equal(accounts_recheck(f->accounts, &by_token, &err), RC_UNAUTHENTICATED);
}

static void a_token_ends_when_it_says(void **state) {
	struct fixture *f = *state;
	char secret[SECRET_TOKEN_SIZE], header[SECRET_TOKEN_SIZE + 16];
	struct token t;
	struct err err;
	assert_int_equal(accounts_token_create(f->accounts, &f->admin, "old", ROLE_OPERATOR,
				 clock_wall_ms() - 1, &t, secret, &err),
		RC_INVALID);
	assert_int_equal(accounts_token_create(f->accounts, &f->admin, "short", ROLE_OPERATOR,
				 clock_wall_ms() + 30000, &t, secret, &err),
		RC_OK);
	snprintf(header, sizeof(header), "Bearer %s", secret);
	assert_int_equal(verify(f, header), RC_OK);
	atomic_fetch_add(&mono_ms, 30000);
	assert_false(is_cached(f, header));
}

static void a_token_of_another_is_not_there(void **state) {
	struct fixture *f = *state;
	char secret[SECRET_TOKEN_SIZE];
	struct token t;
	struct account a;
	struct err err;
	create(f, "second", ROLE_OPERATOR, &a);
	const struct actor who = actor_of(&a);
	assert_int_equal(accounts_token_create(f->accounts, &f->admin, "ci", ROLE_READ_ONLY, NONE,
				 &t, secret, &err),
		RC_OK);
	assert_int_equal(accounts_token_delete(f->accounts, &who, t.id, &err), RC_NOT_FOUND);
	assert_int_equal(accounts_token_delete(f->accounts, &f->admin, t.id, &err), RC_OK);
}

static void a_failing_store_changes_nothing(void **state) {
	struct fixture *f = *state;
	struct account a;
	struct err err;
	const struct account_change c = {
		.name = "third", .password = "correct horse", .role = ROLE_OPERATOR, .enabled = 1};
	for (int n = 1; n <= 3; n++) {
		db_fail_nth(f->store->db, n, RC_NO_SPACE);
		assert_int_equal(
			accounts_create(f->accounts, &f->admin, &c, &a, &err), RC_NO_SPACE);
	}
	db_fail_nth(f->store->db, 0, RC_OK);
	assert_true(is_cached(f, ADMIN_RIGHT));
	assert_int_equal(accounts_create(f->accounts, &f->admin, &c, &a, &err), RC_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(right_credentials_tell_who),
		TEST(wrong_ones_are_all_alike),
		TEST(an_unknown_name_costs_a_hash_too),
		TEST(verified_ones_are_remembered_for_a_while),
		TEST(one_is_sent_to_renew_before_all_would_have_to),
		TEST(what_is_changed_makes_all_be_asked_again),
		TEST(what_was_verified_before_a_change_is_not_remembered_after_it),
		TEST(the_cache_is_bounded),
		TEST(an_address_with_many_failures_must_wait),
		TEST(the_guard_is_bounded_and_keeps_the_worst),
		TEST(no_limit_never_makes_wait),
		TEST(many_threads_get_their_turn),
		TEST(what_was_just_verified_is_not_hashed_again),
		TEST(a_name_is_taken_once),
		TEST(bad_fields_are_named),
		TEST(the_last_administrator_stays),
		TEST(an_update_without_a_change_changes_nothing),
		TEST(an_account_is_deleted_as_it_was_seen),
		TEST(others_may_change_their_own_password_alone),
		TEST(a_disabled_account_does_not_get_in),
		TEST(a_token_is_its_account_with_less),
		TEST(a_token_ends_when_it_says),
		TEST(what_was_shown_may_not_hold_any_more),
		TEST(a_token_of_another_is_not_there),
		TEST(a_failing_store_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
