/* Watts over DCMI: what ipmitool and FreeIPMI print, and programs that do not do well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "model/quality.h"
#include "priv/dcmi.h"
#include "tests/support/fake_tree.h"

#define IPMITOOL(watts, state) \
	"\n    Instantaneous power reading:                   " watts " Watts\n" \
	"    Minimum during sampling period:                  6 Watts\n" \
	"    Maximum during sampling period:                304 Watts\n" \
	"    Average power reading over sample period:       49 Watts\n" \
	"    IPMI timestamp:                           Thu Feb 15 08:36:01 2024\n" \
	"    Sampling period:                          00000001 Seconds.\n" \
	"    Power reading state is:                   " state "\n\n\n"
#define FREEIPMI \
	"Current Power                        : 332 Watts\n" \
	"Minimum Power over sampling duration : 68 watts\n" \
	"Maximum Power over sampling duration : 504 watts\n" \
	"Average Power over sampling duration : 348 watts\n" \
	"Time Stamp                           : 11/03/2023 - 08:36:29\n" \
	"Statistics reporting time period     : 1000 milliseconds\n" \
	"Power Measurement                    : Active\n"

static void both_programs_are_understood(void **state) {
	static const struct {
		const char *text;
		enum rc rc;
		int64_t power_mw;
	} cases[] = {
		{IPMITOOL("  220", "activated"), RC_OK, 220000},
		{IPMITOOL("65535", "activated"), RC_OK, 65535000},
		/* OpenBMC reads, and says that it does not. */
		{IPMITOOL("  235", "deactivated"), RC_OK, 235000},
		{IPMITOOL("    0", "deactivated"), RC_UNSUPPORTED, NONE},
		{IPMITOOL("    0", "activated"), RC_UNSUPPORTED, NONE},
		{IPMITOOL("65536", "activated"), RC_CORRUPT, NONE},
		{IPMITOOL("   -5", "activated"), RC_CORRUPT, NONE},
		{IPMITOOL(" none", "activated"), RC_CORRUPT, NONE},
		{IPMITOOL("22x", "activated"), RC_CORRUPT, NONE},
		{FREEIPMI, RC_OK, 332000},
		{"Current Power: 49 Watts", RC_OK, 49000},
		{"Current Power", RC_CORRUPT, NONE},
		{"Current Power :", RC_CORRUPT, NONE},
		{"", RC_CORRUPT, NONE},
		{"\n\n", RC_CORRUPT, NONE},
	};
	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		int64_t power_mw = NONE;
		enum rc rc = dcmi_parse(cases[i].text, &power_mw, NULL);
		if (rc != cases[i].rc || power_mw != cases[i].power_mw)
			fail_msg("case %zu: %s, %lld", i, rc_name(rc), (long long)power_mw);
	}
}

/* --- programs --- */

static struct fake_tree tree;

static int make_tree(void **state unused_arg) {
	fake_tree_make(&tree);
	return 0;
}

static int remove_tree(void **state unused_arg) {
	fake_tree_remove(&tree);
	return 0;
}

static enum rc run(const char *name, const char *script, int64_t timeout_ms, int64_t *power_mw,
	struct err *err) {
	char path[256];
	snprintf(path, sizeof(path), "bin/%s", name);
	fake_tree_file(&tree, path, "#!/bin/sh\n%s\n", script);
	snprintf(path, sizeof(path), "%s/bin/%s", tree.top, name);
	assert_int_equal(chmod(path, 0755), 0);
	return dcmi_read(path, timeout_ms, power_mw, err);
}

static void arguments_are_fixed(void **state unused_arg) {
	struct err err = {0};
	int64_t power_mw = NONE;
	assert_int_equal(run("ipmitool",
				 "[ \"$*\" = '-I open dcmi power reading' ] && "
				 "echo 'Instantaneous power reading: 217 Watts'",
				 30000, &power_mw, &err),
		RC_OK);
	assert_int_equal(power_mw, 217000);
	assert_int_equal(run("ipmi-dcmi",
				 "[ \"$*\" = '--get-system-power-statistics' ] && "
				 "echo 'Current Power : 218 Watts'",
				 30000, &power_mw, &err),
		RC_OK);
	assert_int_equal(power_mw, 218000);
}

static void complaints_are_passed_on(void **state unused_arg) {
	struct err err = {0};
	int64_t power_mw = NONE;
	assert_int_equal(
		run("ipmitool", "echo 'Could not open device' >&2; exit 1", 30000, &power_mw, &err),
		RC_REFUSED);
	assert_string_equal(err.msg, "Could not open device");
	assert_int_equal(run("ipmitool", "exit 3", 30000, &power_mw, &err), RC_REFUSED);
	assert_int_equal(run("ipmitool", "echo nothing", 30000, &power_mw, &err), RC_CORRUPT);
	assert_int_equal(
		dcmi_read("/nonexistent/ipmitool", 30000, &power_mw, &err), RC_UNSUPPORTED);
	assert_int_equal(power_mw, NONE);
}

static void much_output_is_no_trouble(void **state unused_arg) {
	int64_t power_mw = NONE;
	assert_int_equal(run("ipmitool",
				 "echo 'Current Power: 5 Watts'; i=0; while [ $i -lt 3000 ]; do "
				 "echo 0123456789012345678901234567890123456789; i=$((i+1)); done",
				 30000, &power_mw, NULL),
		RC_OK);
	assert_int_equal(power_mw, 5000);
}

static void one_that_hangs_is_killed(void **state unused_arg) {
	struct err err = {0};
	int64_t power_mw = NONE, begun_ms = clock_mono_ms();
	assert_int_equal(run("ipmitool", "exec sleep 600", 200, &power_mw, &err), RC_TIMEOUT);
	assert_true(clock_mono_ms() - begun_ms < 300000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_programs_are_understood),
		cmocka_unit_test(arguments_are_fixed),
		cmocka_unit_test(complaints_are_passed_on),
		cmocka_unit_test(much_output_is_no_trouble),
		cmocka_unit_test(one_that_hangs_is_killed),
	};
	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
