/* Requests that make something at most once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/once.h"
#include "db/events.h"
#include "tests/support/temp_db.h"

static const uint8_t key_one[SECRET_KEY_BYTES] = {1}, key_two[SECRET_KEY_BYTES] = {2};
static const struct once_request asked = {.method = "POST", .path = "/api/v1/hosts", .key = "k"};

struct fixture {
	struct temp_db *control;
	struct once *once;
	struct actor who;
	struct once_request request;
	char location[ONCE_LOCATION_SIZE];
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	assert_int_equal(secret_init(NULL), RC_OK);
	f->control = temp_db_new(DB_CONTROL);
	f->once = once_new(key_one, f->control->db, NULL);
	f->who = (struct actor){.account_id = "a1", .name = "alice"};
	f->request = asked;
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	once_free(f->once);
	temp_db_free(f->control);
	free(f);
	return 0;
}

static enum rc find(struct fixture *f, const char *body) {
	return once_find(f->once, &f->who, &f->request, body, strlen(body), f->location, NULL);
}

static enum rc keep(struct fixture *f, const char *location) {
	f->who.once = &f->request;
	const enum rc rc = once_keep(temp_db_begin(f->control), &f->who, location, NULL);
	if (rc)
		temp_db_abort(f->control);
	else
		temp_db_commit(f->control);
	return rc;
}

static void keys_are_printable(void **state) {
	(void)state;
	char key[ONCE_KEY_MAX + 2];
	memset(key, 'k', sizeof(key));
	key[ONCE_KEY_MAX] = '\0';
	assert_true(once_key_is_valid(key));
	key[ONCE_KEY_MAX] = 'k';
	key[ONCE_KEY_MAX + 1] = '\0';
	assert_false(once_key_is_valid(key));
	assert_true(once_key_is_valid("!"));
	assert_true(once_key_is_valid("a b~"));
	assert_false(once_key_is_valid(""));
	assert_false(once_key_is_valid(" a"));
	assert_false(once_key_is_valid("a "));
	assert_false(once_key_is_valid("a\tb"));
	assert_false(once_key_is_valid("a\x7f"));
	assert_false(once_key_is_valid("\xc3\xa9"));
}

static void what_was_made_is_found_again(void **state) {
	struct fixture *f = *state;
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	assert_int_equal(keep(f, "/hosts/h1"), RC_OK);
	assert_int_equal(find(f, "{}"), RC_OK);
	assert_string_equal(f->location, "/hosts/h1");
	assert_int_equal(find(f, "{ }"), RC_UNSUPPORTED);
	assert_int_equal(find(f, ""), RC_UNSUPPORTED);
}

static void who_was_slower_makes_nothing(void **state) {
	struct fixture *f = *state;
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	assert_int_equal(keep(f, "/hosts/h1"), RC_OK);
	assert_int_equal(keep(f, "/hosts/h2"), RC_CONFLICT);
	assert_int_equal(find(f, "{}"), RC_OK);
	assert_string_equal(f->location, "/hosts/h1");
}

static void a_key_means_something_within_its_scope(void **state) {
	struct fixture *f = *state;
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	assert_int_equal(keep(f, "/hosts/h1"), RC_OK);
	f->request.path = "/api/v1/benchmarks";
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	f->request = asked;
	f->request.method = "PUT";
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	f->request = asked;
	f->request.key = "K";
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	f->request = asked;
	memcpy(f->who.account_id, "a2", 3);
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
}

static void nothing_is_kept_without_a_key(void **state) {
	struct fixture *f = *state;
	assert_int_equal(once_keep(temp_db_begin(f->control), &f->who, "/hosts/h1", NULL), RC_OK);
	temp_db_commit(f->control);
	assert_int_equal(find(f, ""), RC_NOT_FOUND);
}

/* The digest is not one that anybody could compute from a guessed body. */
static void the_digest_has_the_instances_key(void **state) {
	struct fixture *f = *state;
	char first[SECRET_DIGEST_SIZE];
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	memcpy(first, f->request.fingerprint, sizeof(first));
	once_free(f->once);
	f->once = once_new(key_two, f->control->db, NULL);
	assert_int_equal(find(f, "{}"), RC_NOT_FOUND);
	assert_string_not_equal(f->request.fingerprint, first);
}

static void what_cannot_be_kept_is_refused(void **state) {
	struct fixture *f = *state;
	char path[400];
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	f->request.path = path;
	assert_int_equal(find(f, "{}"), RC_INVALID);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_printable),
		TEST(what_was_made_is_found_again),
		TEST(who_was_slower_makes_nothing),
		TEST(a_key_means_something_within_its_scope),
		TEST(nothing_is_kept_without_a_key),
		TEST(the_digest_has_the_instances_key),
		TEST(what_cannot_be_kept_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
