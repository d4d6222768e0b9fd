#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/secret.h"

static const uint8_t key_a[SECRET_KEY_BYTES] = {1}, key_b[SECRET_KEY_BYTES] = {2};

static int group_setup(void **state) {
	(void)state;
	return secret_init(NULL) == RC_OK && secret_init(NULL) == RC_OK ? 0 : -1;
}

static void password_matches_its_hash_alone(void **state) {
	(void)state;
	char hash[SECRET_PASSWORD_HASH_SIZE], other[SECRET_PASSWORD_HASH_SIZE];
	assert_int_equal(secret_password_hash("correct horse", hash, NULL), RC_OK);
	assert_int_equal(secret_password_hash("correct horse", other, NULL), RC_OK);
	assert_int_equal(strncmp(hash, "$argon2id$", 10), 0);
	assert_string_not_equal(hash, other);
	assert_true(secret_password_matches("correct horse", hash));
	assert_false(secret_password_matches("correct horsf", hash));
	assert_false(secret_password_matches("", hash));
	assert_false(secret_password_matches("correct horse", "not a hash"));
	assert_false(secret_password_matches("correct horse", ""));
}

static int64_t cpu_us_of_matching(const char *hash) {
	struct timespec from, to;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	assert_false(secret_password_matches("correct horse", hash));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
}

static void no_hash_takes_as_long(void **state) {
	(void)state;
	char hash[SECRET_PASSWORD_HASH_SIZE];
	assert_int_equal(secret_password_hash("battery staple", hash, NULL), RC_OK);
	assert_true(cpu_us_of_matching(NULL) > cpu_us_of_matching(hash) / 4);
	assert_true(cpu_us_of_matching(hash) > cpu_us_of_matching(NULL) / 4);
}

static void made_passwords_differ(void **state) {
	(void)state;
	char a[32], b[32];
	secret_password_make(a);
	secret_password_make(b);
	assert_int_equal(strlen(a), 31);
	assert_string_not_equal(a, b);
	assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789-"), 31);
}

static void tokens_differ_and_hash_stably(void **state) {
	(void)state;
	char a[SECRET_TOKEN_SIZE], b[SECRET_TOKEN_SIZE];
	char hash[SECRET_TOKEN_HASH_SIZE], again[SECRET_TOKEN_HASH_SIZE];
	secret_token_make(a);
	secret_token_make(b);
	assert_int_equal(strlen(a), 47);
	assert_int_equal(strncmp(a, "dwt_", 4), 0);
	assert_string_not_equal(a, b);
	secret_token_hash(a, hash);
	secret_token_hash(a, again);
	assert_string_equal(hash, again);
	secret_token_hash(b, again);
	assert_string_not_equal(hash, again);
	secret_token_hash("abc", hash);
	assert_string_equal(
		hash, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void fingerprints_are_stable_within_the_process(void **state) {
	(void)state;
	uint8_t a[SECRET_FINGERPRINT_BYTES], b[SECRET_FINGERPRINT_BYTES];
	secret_fingerprint("user:password", 13, a);
	secret_fingerprint("user:password", 13, b);
	assert_memory_equal(a, b, sizeof(a));
	secret_fingerprint("user:passwore", 13, b);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void sealed_opens_with_its_key(void **state) {
	(void)state;
	static const char *const plains[] = {"", "x", "calvin", "\xc3\xa4 with spaces"};
	for (size_t i = 0; i < array_len(plains); i++) {
		auto_free char *sealed = NULL;
		auto_free char *again = NULL;
		auto_free char *plain = NULL;
		assert_int_equal(secret_seal(key_a, plains[i], &sealed, NULL), RC_OK);
		assert_int_equal(secret_seal(key_a, plains[i], &again, NULL), RC_OK);
		assert_string_not_equal(sealed, again);
		assert_int_equal(secret_unseal(key_a, sealed, &plain, NULL), RC_OK);
		assert_string_equal(plain, plains[i]);
	}
}

static void assert_corrupt(const char *sealed) {
	char *plain = NULL;
	struct err err;
	assert_int_equal(secret_unseal(key_a, sealed, &plain, &err), RC_CORRUPT);
	assert_int_equal(err.rc, RC_CORRUPT);
	assert_null(plain);
}

static void wrong_key_or_damage_is_corrupt(void **state) {
	(void)state;
	auto_free char *sealed = NULL;
	char *plain = NULL;
	assert_int_equal(secret_seal(key_b, "calvin", &sealed, NULL), RC_OK);
	assert_corrupt(sealed);
	assert_corrupt("");
	assert_corrupt("AAAA");
	assert_corrupt("not base64 at all!");
	sealed[40] = sealed[40] == 'A' ? 'B' : 'A';
	assert_int_equal(secret_unseal(key_b, sealed, &plain, NULL), RC_CORRUPT);
	assert_null(plain);
}

static void endless_secrets_are_refused(void **state) {
	(void)state;
	size_t size = 200000;
	auto_free char *text = malloc(size + 1);
	auto_free char *sealed = NULL;
	memset(text, 'A', size);
	text[size] = '\0';
	assert_int_equal(secret_seal(key_a, text, &sealed, NULL), RC_TOO_LARGE);
	assert_corrupt(text);
	text[65536] = '\0';
	auto_free char *plain = NULL;
	assert_int_equal(secret_seal(key_a, text, &sealed, NULL), RC_OK);
	assert_int_equal(secret_unseal(key_a, sealed, &plain, NULL), RC_OK);
	assert_string_equal(plain, text);
}

static void key_file_is_made_once(void **state) {
	(void)state;
	char dir[] = "/tmp/drivewatt-key-XXXXXX", path[64];
	uint8_t first[SECRET_KEY_BYTES] = {0}, second[SECRET_KEY_BYTES] = {0}, zero[32] = {0};
	struct stat st;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/key", dir);
	assert_int_equal(secret_key_load(path, first, NULL), RC_OK);
	assert_memory_not_equal(first, zero, sizeof(zero));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(secret_key_load(path, second, NULL), RC_OK);
	assert_memory_equal(first, second, sizeof(first));

	struct err err;
	chmod(path, 0644);
	assert_int_equal(secret_key_load(path, second, &err), RC_FORBIDDEN);
	chmod(path, 0600);
	assert_int_equal(truncate(path, 31), 0);
	assert_int_equal(secret_key_load(path, second, &err), RC_CORRUPT);
	assert_int_equal(truncate(path, 33), 0);
	assert_int_equal(secret_key_load(path, second, &err), RC_CORRUPT);
	unlink(path);
	rmdir(dir);
	/* The directory is gone: nowhere to make it. */
	assert_int_equal(secret_key_load(path, second, &err), RC_NOT_FOUND);
}

static void digests_depend_on_text_and_key(void **state) {
	(void)state;
	const uint8_t one[SECRET_KEY_BYTES] = {1}, two[SECRET_KEY_BYTES] = {2};
	char a[SECRET_DIGEST_SIZE], b[SECRET_DIGEST_SIZE];
	secret_digest(one, "text", 4, a);
	assert_int_equal(strlen(a), SECRET_DIGEST_SIZE - 1);
	secret_digest(one, "text", 4, b);
	assert_string_equal(a, b);
	secret_digest(one, "texts", 5, b);
	assert_string_not_equal(a, b);
	secret_digest(two, "text", 4, b);
	assert_string_not_equal(a, b);
	secret_digest(one, "", 0, b);
	assert_string_not_equal(a, b);
}

static void wipe_wipes(void **state) {
	(void)state;
	char text[] = "secret", zero[sizeof(text)] = {0};
	secret_wipe(text, sizeof(text));
	assert_memory_equal(text, zero, sizeof(text));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(password_matches_its_hash_alone),
		cmocka_unit_test(no_hash_takes_as_long),
		cmocka_unit_test(made_passwords_differ),
		cmocka_unit_test(tokens_differ_and_hash_stably),
		cmocka_unit_test(fingerprints_are_stable_within_the_process),
		cmocka_unit_test(sealed_opens_with_its_key),
		cmocka_unit_test(wrong_key_or_damage_is_corrupt),
		cmocka_unit_test(endless_secrets_are_refused),
		cmocka_unit_test(key_file_is_made_once),
		cmocka_unit_test(digests_depend_on_text_and_key),
		cmocka_unit_test(wipe_wipes),
	};
	return cmocka_run_group_tests(tests, group_setup, NULL);
}
