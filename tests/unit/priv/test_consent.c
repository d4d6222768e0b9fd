#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "priv/consent.h"
#include "priv/inuse.h"

static struct priv_config config;
static struct priv_run_start start;
static struct drive_namespace ns;
static struct consent_target target;
static struct err err;

/* All that can be permitted and confirmed is. */
static int permit_all(void **state) {
	(void)state;
	config = (struct priv_config){.allow_destructive = true, .allow_in_use = true};
	memset(&start, 0, sizeof(start));
	start.workload.pattern = PATTERN_RANDWRITE;
	start.override_signature = 1;
	start.confirm_count = start.confirm_in_use_count = 2;
	snprintf(start.confirm_destructive[1], 21, "SN-1");
	snprintf(start.confirm_in_use[1], 21, "SN-1");
	memset(&ns, 0, sizeof(ns));
	memset(&err, 0, sizeof(err));
	target = (struct consent_target){
		.index = 3, .serial = "SN-1", .serial_unique = true, .ns = &ns};
	return 0;
}

static enum rc ask(void) {
	return consent_target(&config, &start, &target, &err);
}

static void expect(enum rc rc, const char *field) {
	assert_int_equal(ask(), rc);
	if (rc != RC_OK)
		assert_string_equal(err.field, field);
}

static void an_empty_drive_may_be_written(void **state) {
	(void)state;
	expect(RC_OK, "");
}

static void writing_wants_every_consent(void **state) {
	(void)state;
	config.allow_destructive = false;
	expect(RC_FORBIDDEN, "/workload");
	permit_all(NULL);
	start.confirm_count = 1; /* the serial stands behind the end */
	expect(RC_FORBIDDEN, "/confirm_destructive");
	permit_all(NULL);
	target.serial = "SN-2";
	expect(RC_FORBIDDEN, "/confirm_destructive");
	permit_all(NULL);
	target.serial_unique = false;
	expect(RC_CONFLICT, "/drives/3");
	permit_all(NULL);
	target.serial = "";
	expect(RC_CONFLICT, "/drives/3");
}

static void no_use_may_be_written_to_but_an_overridden_signature(void **state) {
	(void)state;
	for (unsigned kind = 0; kind < USE_KIND_COUNT_; kind++) {
		permit_all(NULL);
		use_add(&ns, (enum use_kind)kind, "why");
		expect(kind == USE_SIGNATURE ? RC_OK : RC_CONFLICT, "/drives/3");
		start.override_signature = 0;
		expect(RC_CONFLICT, "/drives/3");
		assert_string_equal(err.msg, "why");
	}
}

/* Of too many uses those of the later kinds are left out. */
static void what_is_left_out_is_never_stricter(void **state) {
	bool weaker_seen = false;

	(void)state;
	for (unsigned kind = 0; kind < USE_KIND_COUNT_; kind++) {
		permit_all(NULL);
		use_add(&ns, (enum use_kind)kind, "why");
		if (kind + 1 < USE_KIND_COUNT_)
			expect(RC_CONFLICT, "/drives/3");
		start.workload.pattern = PATTERN_READ;
		start.confirm_in_use_count = 0;
		assert_false(weaker_seen && ask() != RC_OK);
		weaker_seen |= ask() == RC_OK;
	}
}

static void reading_cares_for_what_is_in_use_alone(void **state) {
	static const struct {
		enum use_kind kind;
		bool with_consent, without;
	} cases[] = {
		{USE_MOUNT, true, false},
		{USE_HOLDER, true, false},
		{USE_SWAP, true, false},
		{USE_PARTITION, true, true},
		{USE_SIGNATURE, true, true},
		{USE_OPEN, true, false},
		{USE_EXPORT, true, false},
		{USE_PROCESS, true, false},
		{USE_RESERVED, true, false},
		{USE_UNSEEN, true, true},
		{USE_ZONED, true, true},
		{USE_SHARED, true, true},
		{USE_UNKNOWN, true, false},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		permit_all(NULL);
		start.workload.pattern = PATTERN_READ;
		use_add(&ns, cases[i].kind, "why");
		assert_int_equal(ask() == RC_OK, cases[i].with_consent);
		start.confirm_in_use_count = 0;
		assert_int_equal(ask() == RC_OK, cases[i].without);
		permit_all(NULL);
		start.workload.pattern = PATTERN_READ;
		use_add(&ns, cases[i].kind, "why");
		config.allow_in_use = false;
		assert_int_equal(ask() == RC_OK, cases[i].without);
	}
}

static void reading_needs_no_permission_to_destroy(void **state) {
	(void)state;
	config.allow_destructive = false;
	start.workload.pattern = PATTERN_RANDREAD;
	start.confirm_count = 0;
	target.serial_unique = false;
	expect(RC_OK, "");
}

static void an_observer_runs_nothing(void **state) {
	(void)state;
	assert_int_equal(consent_run(&config, &start, &err), RC_OK);
	config.observe_only = true;
	assert_int_equal(consent_run(&config, &start, &err), RC_FORBIDDEN);
}

static void idling_is_no_job_for_fio(void **state) {
	(void)state;
	start.workload.pattern = PATTERN_IDLE;
	assert_int_equal(consent_run(&config, &start, &err), RC_INVALID);
	assert_string_equal(err.field, "/workload/pattern");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_drive_may_be_written, permit_all),
		cmocka_unit_test_setup(writing_wants_every_consent, permit_all),
		cmocka_unit_test_setup(
			no_use_may_be_written_to_but_an_overridden_signature, permit_all),
		cmocka_unit_test_setup(what_is_left_out_is_never_stricter, permit_all),
		cmocka_unit_test_setup(reading_cares_for_what_is_in_use_alone, permit_all),
		cmocka_unit_test_setup(reading_needs_no_permission_to_destroy, permit_all),
		cmocka_unit_test_setup(an_observer_runs_nothing, permit_all),
		cmocka_unit_test_setup(idling_is_no_job_for_fio, permit_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
