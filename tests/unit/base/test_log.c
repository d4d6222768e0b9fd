#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

/* Standard error goes to a file while a test logs. */
static int saved_fd;
static int log_fd;
static char text[8192];

static int capture_start(void **state) {
	(void)state;
	char path[] = "/tmp/drivewatt-log-XXXXXX";
	log_fd = mkstemp(path);
	unlink(path);
	saved_fd = dup(STDERR_FILENO);
	return dup2(log_fd, STDERR_FILENO) < 0;
}

static const char *captured(void) {
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int capture_end(void **state) {
	(void)state;
	dup2(saved_fd, STDERR_FILENO);
	close(saved_fd);
	close(log_fd);
	return 0;
}

static void level_decides(void **state) {
	(void)state;
	log_init("proc", LOG_LEVEL_WARNING);
	log_info("sub", "hidden");
	log_warning("sub", "shown %d", 1);
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("sub", "shown too");
	assert_string_equal(captured(), "proc: warning sub: shown 1\nproc: debug sub: shown too\n");
}

static void one_message_is_one_line(void **state) {
	(void)state;
	log_init("proc", LOG_LEVEL_INFO);
	log_error("sub", "%s", "a\nerror sub: forged\r\x1b[31m");
	const char *line = captured();
	assert_string_equal(line, "proc: error sub: a error sub: forged  [31m\n");
}

static void long_messages_are_cut(void **state) {
	(void)state;
	char longest[5000];
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	log_init("proc", LOG_LEVEL_INFO);
	log_info("sub", "%s", longest);
	log_info(longest, "%s", longest);
	size_t len = strlen(captured());
	assert_true(len > 1500 && len < 2100);
	assert_int_equal(text[len - 1], '\n');
}

static void errors_name_their_field(void **state) {
	(void)state;
	struct err err;
	log_init("proc", LOG_LEVEL_INFO);
	err_field(&err, RC_INVALID, "/state", "no such state");
	log_err(LOG_LEVEL_ERROR, "sub", "set", &err);
	err_set(&err, RC_IO, "gone");
	log_err(LOG_LEVEL_ERROR, "sub", "set", &err);
	assert_string_equal(captured(),
		"proc: error sub: set: /state: no such state (invalid)\n"
		"proc: error sub: set: gone (io)\n");
}

#define log_test(f) cmocka_unit_test_setup_teardown(f, capture_start, capture_end)

int main(void) {
	const struct CMUnitTest tests[] = {
		log_test(level_decides),
		log_test(one_message_is_one_line),
		log_test(long_messages_are_cut),
		log_test(errors_name_their_field),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
