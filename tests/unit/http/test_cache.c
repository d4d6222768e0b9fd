#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "http/answer.h"
#include "http/cache.h"

static struct answer *make(const char *etag, size_t len) {
	struct answer_head head = {.status = 200, .content_type = "text/plain", .etag = etag};
	struct answer *a = answer_new(&head, bytes_new_owned(calloc(1, len + 1), len));
	assert_non_null(a);
	return a;
}

static void put(struct cache *c, const char *key, uint64_t version, size_t len) {
	struct answer *a = make(key, len);
	cache_put(c, key, version, a);
	answer_unref(a);
}

static bool has(struct cache *c, const char *key, uint64_t version) {
	struct answer *a = cache_get(c, key, version);
	bool found = a && !strcmp(a->etag, key);
	answer_unref(a);
	return found;
}

static void keeps_one_version(void **state) {
	(void)state;
	struct err err;
	struct cache *c = cache_new(100000, &err);
	assert_false(has(c, "a", 1));
	put(c, "a", 1, 10);
	assert_true(has(c, "a", 1));
	assert_false(has(c, "a", 2));
	assert_false(has(c, "b", 1));
	put(c, "a", 2, 10);
	assert_false(has(c, "a", 1));
	assert_true(has(c, "a", 2));
	cache_free(c);
}

static void evicts_what_is_used_least(void **state) {
	(void)state;
	struct err err;
	struct cache *c = cache_new(50000, &err);
	char key[16];
	put(c, "kept", 1, 3000);
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		put(c, key, 1, 3000);
		assert_true(has(c, key, 1));
		assert_true(has(c, "kept", 1));
		assert_true(cache_bytes(c) <= 50000);
	}
	assert_true(cache_bytes(c) > 40000);
	assert_false(has(c, "key0", 1));
	assert_true(has(c, "key195", 1));
	cache_free(c);
}

static void bytes_are_counted(void **state) {
	(void)state;
	struct err err;
	struct cache *c = cache_new(50000, &err);
	for (uint64_t i = 0; i < 100; i++)
		put(c, "same", i, 3000);
	assert_true(cache_bytes(c) < 5000);
	put(c, "large", 1, 40000);
	assert_false(has(c, "large", 1));
	assert_true(has(c, "same", 99));
	cache_free(c);
	c = cache_new(0, &err);
	put(c, "a", 1, 1);
	assert_false(has(c, "a", 1));
	assert_int_equal(cache_bytes(c), 0);
	cache_free(c);
	cache_free(NULL);
}

static void answers_outlive_the_cache(void **state) {
	(void)state;
	struct err err;
	struct cache *c = cache_new(50000, &err);
	put(c, "a", 1, 100);
	struct answer *a = cache_get(c, "a", 1);
	put(c, "a", 2, 100);
	cache_free(c);
	assert_int_equal(a->bytes->len, 100);
	assert_int_equal(a->bytes->data[99], 0);
	struct answer *with_id = answer_with_id(a, "id-1");
	struct answer *not_modified = answer_not_modified(a, NULL);
	answer_unref(a);
	assert_int_equal(with_id->bytes->len, 100);
	assert_int_equal(not_modified->status, 304);
	assert_string_equal(not_modified->etag, "a");
	answer_unref(with_id);
	answer_unref(not_modified);
	answer_unref(NULL);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_one_version),
		cmocka_unit_test(evicts_what_is_used_least),
		cmocka_unit_test(bytes_are_counted),
		cmocka_unit_test(answers_outlive_the_cache),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
