#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rc.h"

static void every_rc_has_its_own_name(void **state) {
	(void)state;
	for (int a = 0; a < RC_COUNT_; a++) {
		assert_non_null(rc_name((enum rc)a));
		for (int b = 0; b < a; b++)
			assert_string_not_equal(rc_name((enum rc)a), rc_name((enum rc)b));
	}
	assert_string_equal(rc_name(RC_COUNT_), "unknown");
}

static void err_set_fills_and_clears(void **state) {
	(void)state;
	struct err err = {.nvme_status = 7, .field = "/old"};
	assert_int_equal(err_set(&err, RC_CONFLICT, "%s is busy", "drive"), RC_CONFLICT);
	assert_int_equal(err.rc, RC_CONFLICT);
	assert_int_equal(err.nvme_status, 0);
	assert_string_equal(err.field, "");
	assert_string_equal(err.msg, "drive is busy");
}

static void err_may_be_null(void **state) {
	(void)state;
	assert_int_equal(err_set(NULL, RC_IO, "x"), RC_IO);
	assert_int_equal(err_field(NULL, RC_INVALID, "/a", "x"), RC_INVALID);
	assert_int_equal(err_errno(NULL, ENOENT, "x"), RC_NOT_FOUND);
}

static void long_texts_are_cut(void **state) {
	(void)state;
	char text[1000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	struct err err;
	err_field(&err, RC_INVALID, text, "%s", text);
	assert_int_equal(strlen(err.field), sizeof(err.field) - 1);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

static void errno_is_mapped(void **state) {
	(void)state;
	static const struct {
		int errnum;
		enum rc rc;
	} cases[] = {
		{ENOSPC, RC_NO_SPACE},
		{ENOMEM, RC_NOMEM},
		{ENOENT, RC_NOT_FOUND},
		{ENODEV, RC_NOT_FOUND},
		{EACCES, RC_FORBIDDEN},
		{EPERM, RC_FORBIDDEN},
		{EIO, RC_IO},
		{EPIPE, RC_IO},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct err err;
		assert_int_equal(err_errno(&err, cases[i].errnum, "open"), cases[i].rc);
		assert_non_null(strstr(err.msg, "open: "));
		assert_true(strlen(err.msg) > strlen("open: "));
	}
}

static void further_faults_are_kept_while_they_fit(void **state) {
	(void)state;
	struct err err;
	const char *field, *msg;
	size_t at = 0;
	err_field(&err, RC_INVALID, "/a", "first");
	assert_false(err_next(&err, &at, &field, &msg));
	err_more(&err, "/b", "second");
	err_more(&err, "/c", "");
	assert_true(err_next(&err, &at, &field, &msg));
	assert_string_equal(field, "/b");
	assert_string_equal(msg, "second");
	assert_true(err_next(&err, &at, &field, &msg));
	assert_string_equal(field, "/c");
	assert_string_equal(msg, "");
	assert_false(err_next(&err, &at, &field, &msg));
	for (int i = 0; i < 200; i++)
		err_more(&err, "/d", "another of many");
	unsigned n = 0;
	for (at = 0; err_next(&err, &at, &field, &msg);)
		n++;
	assert_in_range(n, 10, 40);
	assert_string_equal(err.msg, "first");
	err_set(&err, RC_IO, "anew");
	at = 0;
	assert_false(err_next(&err, &at, &field, &msg));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(further_faults_are_kept_while_they_fit),
		cmocka_unit_test(every_rc_has_its_own_name),
		cmocka_unit_test(err_set_fills_and_clears),
		cmocka_unit_test(err_may_be_null),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(errno_is_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
