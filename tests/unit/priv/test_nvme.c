/* The program defines ioctl() itself: libnvme calls it, and the model answers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "priv/limits.h"
#include "priv/nvme.h"
#include "tests/support/nvme_model.h"

static struct nvme_model model;
static int fd = -1;
static uint32_t last_cdw10, last_cdw11, last_nsid;

static int answer(struct nvme_passthru_cmd *cmd, bool io) {
	struct nvme_model_command c = {
		.opcode = cmd->opcode,
		.nsid = cmd->nsid,
		.cdw10 = cmd->cdw10,
		.cdw11 = cmd->cdw11,
		.cdw12 = cmd->cdw12,
		.cdw13 = cmd->cdw13,
		.cdw14 = cmd->cdw14,
		.data = (void *)(uintptr_t)cmd->addr,
		.data_bytes = cmd->data_len,
	};
	int status;

	last_cdw10 = cmd->cdw10;
	last_cdw11 = cmd->cdw11;
	last_nsid = cmd->nsid;
	if (model.fail_errno) {
		errno = model.fail_errno;
		return -1;
	}
	status = io ? nvme_model_io(&model, &c) : nvme_model_admin(&model, &c);
	cmd->result = c.result;
	return status;
}

int ioctl(int to, unsigned long request, ...) {
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (to == fd && (request == NVME_IOCTL_ADMIN_CMD || request == NVME_IOCTL_IO_CMD))
		return answer(arg, request == NVME_IOCTL_IO_CMD);
	return (int)syscall(SYS_ioctl, to, request, arg);
}

static int open_drive(void **state) {
	(void)state;
	nvme_model_init(&model, 7);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? 0 : -1;
}

static int close_drive(void **state) {
	(void)state;
	close(fd);
	fd = -1;
	return 0;
}

/* --- identify --------------------------------------------------------------------------------- */

static void identifies(void **state) {
	struct drive_detail d = {0};

	(void)state;
	assert_int_equal(nvme_drive_identify(fd, &d, NULL), RC_OK);
	assert_string_equal(d.subsystem_nqn, "nqn.2014-08.invalid.drivewatt:bed:BED0007");
	assert_int_equal(d.vendor_id, 0x1b36);
	assert_int_equal(d.cntlid, 8);
	assert_true(d.volatile_write_cache);
	assert_true(d.apst_supported);
	assert_int_equal(d.warning_c, 70);
	assert_int_equal(d.critical_c, 80);
	assert_int_equal(d.tmt_min_c, 0);
	assert_int_equal(d.tmt_max_c, 80);
	assert_int_equal(d.scale, 1);
	assert_int_equal(d.power.count, 4);
	assert_int_equal(d.power.states[0].max_uw, 25000000);
	assert_int_equal(d.power.states[1].idle_uw, 4500000);
	assert_int_equal(d.power.states[2].exit_latency_us, 300);
	assert_int_equal(d.power.states[3].max_uw, 45000);
	assert_false(d.power.states[3].operational);
}

static void what_is_not_reported_is_none(void **state) {
	static const uint8_t zeros[NVME_IDENTIFY_BYTES];
	struct drive_detail d = {0};

	(void)state;
	assert_int_equal(nvme_identify_decode(zeros, &d, NULL), RC_OK);
	assert_true(d.warning_c == NONE && d.critical_c == NONE);
	assert_true(d.tmt_min_c == NONE && d.tmt_max_c == NONE);
	assert_string_equal(d.subsystem_nqn, "");
}

/* --- power ------------------------------------------------------------------------------------ */

static void sets_and_reads_back_power_states(void **state) {
	int ps = -1;

	(void)state;
	for (int want = 3; want >= 0; want--) {
		assert_int_equal(nvme_drive_power_set(fd, want, NULL), RC_OK);
		assert_int_equal(last_cdw10, 0x02);
		assert_int_equal(last_cdw11, want);
		assert_int_equal(last_nsid, 0);
		assert_int_equal(nvme_drive_power_get(fd, &ps, NULL), RC_OK);
		assert_int_equal(ps, want);
	}
}

static void a_workload_hint_is_not_part_of_the_state(void **state) {
	int ps = -1;

	(void)state;
	model.power = 2 << 5 | 1;
	assert_int_equal(nvme_drive_power_get(fd, &ps, NULL), RC_OK);
	assert_int_equal(ps, 1);
}

static void keeps_the_status_of_a_refusal(void **state) {
	struct err err = {0};

	(void)state;
	assert_int_equal(nvme_drive_power_set(fd, 31, &err), RC_REFUSED);
	assert_int_equal(err.nvme_status, 0x4002);
	model.power_fixed = true;
	assert_int_equal(nvme_drive_power_set(fd, 1, &err), RC_REFUSED);
	assert_int_equal(err.nvme_status, 0x410e);
	assert_non_null(strstr(err.msg, "does not let the feature be changed"));
}

static void a_fixed_state_may_be_wished(void **state) {
	(void)state;
	model.power = 1;
	model.power_fixed = true;
	assert_int_equal(nvme_drive_power_set(fd, 1, NULL), RC_OK);
	assert_int_equal(nvme_drive_power_set(fd, 0, NULL), RC_REFUSED);
}

/* --- limits in watts ---------------------------------------------------------------------------
 */

static struct priv_drive_op set_op(enum power_means means, int8_t power_state, int64_t limit_mw) {
	return (struct priv_drive_op){.verb = PRIV_VERB_POWER_SET,
		.means = (uint8_t)means,
		.power_state = power_state,
		.fallback_state = -1,
		.limit_mw = limit_mw};
}

static int64_t limit_of(enum power_means means, uint8_t uuid_index) {
	int64_t limit_mw = 1;

	assert_int_equal(limits_get(fd, means, uuid_index, &limit_mw, NULL), RC_OK);
	return limit_mw;
}

static void tells_how_it_keeps_a_limit(void **state) {
	struct drive_detail d = {0};

	(void)state;
	assert_int_equal(nvme_drive_identify(fd, &d, NULL), RC_OK);
	assert_int_equal(d.power.limits.means, POWER_MEANS_STATE);
	assert_int_equal(d.power.limits.ocp_uuid_index, 0);
	model.has_ocp = true;
	assert_int_equal(nvme_drive_identify(fd, &d, NULL), RC_OK);
	assert_int_equal(d.power.limits.means, POWER_MEANS_OCP);
	assert_int_equal(d.power.limits.ocp_uuid_index, 2);
	assert_int_equal(power_limits_value(&d.power, 14000), 12000);
	assert_int_equal(power_limits_value(&d.power, 9999), NONE);
	/* The finer one is the better one. */
	model.has_limit = true;
	assert_int_equal(nvme_drive_identify(fd, &d, NULL), RC_OK);
	assert_int_equal(d.power.limits.means, POWER_MEANS_LIMIT);
	assert_int_equal(d.power.limits.ocp_uuid_index, 2);
}

static void a_drive_without_means_is_asked_nothing_about_them(void **state) {
	struct drive_detail d = {0};
	const struct priv_drive_op op = set_op(POWER_MEANS_STATE, 2, NONE);
	uint32_t before = model.commands;

	(void)state;
	assert_int_equal(nvme_drive_identify(fd, &d, NULL), RC_OK);
	assert_int_equal(model.commands - before, 1);
	assert_int_equal(limits_set(fd, &op, NULL), RC_OK);
	assert_int_equal(limit_of(POWER_MEANS_STATE, 0), NONE);
	assert_int_equal(model.commands - before, 2);
	assert_int_equal(model.power, 2);
}

static void sets_and_takes_away_a_power_limit(void **state) {
	struct priv_drive_op op = set_op(POWER_MEANS_LIMIT, 0, 20000);

	(void)state;
	model.has_limit = true;
	model.power = 2;
	assert_int_equal(limits_set(fd, &op, NULL), RC_OK);
	assert_int_equal(model.limit, 2000 | 2 << 16);
	assert_int_equal(model.power, 0);
	assert_int_equal(limit_of(POWER_MEANS_LIMIT, 0), 20000);
	op = set_op(POWER_MEANS_LIMIT, 1, NONE);
	assert_int_equal(limits_set(fd, &op, NULL), RC_OK);
	assert_int_equal(model.limit, 0);
	assert_int_equal(model.power, 1);
	assert_int_equal(limit_of(POWER_MEANS_LIMIT, 0), NONE);
}

static void a_forbidden_state_gives_way_to_one_that_fits(void **state) {
	struct priv_drive_op op = set_op(POWER_MEANS_LIMIT, 0, 20000);

	(void)state;
	model.has_limit = model.limit_forbids = true;
	model.power = 2;
	op.fallback_state = 1;
	assert_int_equal(limits_set(fd, &op, NULL), RC_OK);
	assert_int_equal(model.power, 1);
}

static void a_limit_that_is_too_low_is_refused(void **state) {
	struct priv_drive_op op = set_op(POWER_MEANS_LIMIT, 0, 9000);
	struct err err = {0};

	(void)state;
	model.has_limit = true;
	assert_int_equal(limits_set(fd, &op, &err), RC_REFUSED);
	assert_int_equal(err.nvme_status, 0x413e);
	assert_int_equal(model.limit, 0);
}

static void sets_an_ocp_power_state(void **state) {
	struct priv_drive_op op = set_op(POWER_MEANS_OCP, 2, 12000);

	(void)state;
	model.has_ocp = true;
	op.uuid_index = 2;
	assert_int_equal(limits_set(fd, &op, NULL), RC_OK);
	assert_int_equal(model.ocp_watts, 12);
	assert_int_equal(model.power, 2);
	assert_int_equal(limit_of(POWER_MEANS_OCP, 2), 12000);
	/* By state it is the state alone. */
	op = set_op(POWER_MEANS_OCP, 0, NONE);
	op.uuid_index = 2;
	assert_int_equal(limits_set(fd, &op, NULL), RC_OK);
	assert_int_equal(model.power, 0);
	assert_int_equal(model.ocp_watts, 12);
}

/* What the asker believes is checked by asking the drive. */
static void means_are_not_taken_on_trust(void **state) {
	struct priv_drive_op op = set_op(POWER_MEANS_LIMIT, 0, 20000);
	struct err err = {0};

	(void)state;
	assert_int_equal(limits_set(fd, &op, &err), RC_CONFLICT);
	model.has_ocp = true;
	op = set_op(POWER_MEANS_OCP, 2, 12000);
	assert_int_equal(limits_set(fd, &op, &err), RC_CONFLICT); /* another UUID's feature */
	op.uuid_index = 2;
	op.limit_mw = 13000;
	assert_int_equal(limits_set(fd, &op, &err), RC_CONFLICT);
	op.limit_mw = 12500;
	assert_int_equal(limits_set(fd, &op, &err), RC_CONFLICT);
	assert_int_equal(model.power, 0);
	assert_int_equal(model.ocp_watts, 0);
}

static void values_have_two_scales(void **state) {
	static const struct {
		int64_t limit_mw;
		uint32_t dword;
	} cases[] = {
		{NONE, 0},
		{1, 10 | 1 << 16},
		{6553, 65530 | 1 << 16},
		{6560, 656 | 2 << 16},
		{25000, 2500 | 2 << 16},
		{655350, 0xffff | 2 << 16},
	};

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(limits_encode(cases[i].limit_mw), cases[i].dword);
		assert_int_equal(limits_decode(cases[i].dword), cases[i].limit_mw);
	}
	assert_int_equal(limits_decode(100), NONE);           /* without a scale */
	assert_int_equal(limits_decode(100 | 3 << 16), NONE); /* of an unknown one */
}

/* --- health ----------------------------------------------------------------------------------- */

static void reads_the_health(void **state) {
	struct drive_health h;

	(void)state;
	assert_int_equal(nvme_drive_smart(fd, 0, 0, &h, NULL), RC_OK);
	assert_int_equal(last_nsid, 0xffffffffu);
	assert_int_equal(h.temperature_mc, 37850);
	assert_int_equal(h.data_units_written, 2000);
	assert_int_equal(h.power_on_h, 1234);
	assert_true(h.read_ms > 0);
	model.temperature_k = 0;
	assert_int_equal(nvme_drive_smart(fd, 0, 0, &h, NULL), RC_OK);
	assert_true(h.temperature_mc == NONE);
}

static void reads_the_other_logs_that_the_drive_has(void **state) {
	struct drive_detail d = {0};
	struct drive_health h;

	(void)state;
	model.has_ocp = model.measures = true;
	model.average = 1234 | 2 << 16;
	assert_int_equal(nvme_drive_identify(fd, &d, NULL), RC_OK);
	assert_int_equal(d.logs, DRIVE_LOG_OCP | DRIVE_LOG_MEASUREMENT);
	assert_int_equal(nvme_drive_smart(fd, d.logs, 2, &h, NULL), RC_OK);
	assert_int_equal(h.logs, d.logs);
	assert_int_equal(h.ocp.media_written_bytes, 2000 * 512000);
	assert_int_equal(h.ocp.throttling_events, 7);
	assert_int_equal(h.measurement.average_mw, 12340);
	assert_int_equal(drive_health_power_mw(&h), 12340);
	/* Another vendor's log under the same number. */
	assert_int_equal(nvme_drive_smart(fd, d.logs, 1, &h, NULL), RC_OK);
	assert_int_equal(h.logs, DRIVE_LOG_MEASUREMENT);
	model.average = 0;
	assert_int_equal(nvme_drive_smart(fd, d.logs, 2, &h, NULL), RC_OK);
	assert_int_equal(drive_health_power_mw(&h), NONE);
}

/* --- sharing ---------------------------------------------------------------------------------- */

static void a_namespace_may_be_shared(void **state) {
	struct nvme_sharing s;

	(void)state;
	assert_int_equal(nvme_namespace_sharing(fd, fd, 1, &s, NULL), RC_OK);
	assert_false(s.attachable);
	assert_false(s.reservable);
	model.nmic = 1;
	assert_int_equal(nvme_namespace_sharing(fd, fd, 1, &s, NULL), RC_OK);
	assert_true(s.attachable);
	model.nmic = 0xfe;
	assert_int_equal(nvme_namespace_sharing(fd, fd, 1, &s, NULL), RC_OK);
	assert_false(s.attachable);
}

static void reservations_are_read_with_either_size_of_host_identifier(void **state) {
	struct nvme_sharing s;

	(void)state;
	model.reservable = true;
	model.registrants = 0x203;
	model.reservation = 3;
	for (int i = 0; i < 2; i++) {
		model.long_host_ids = i == 1;
		assert_int_equal(nvme_namespace_sharing(fd, fd, 1, &s, NULL), RC_OK);
		assert_true(s.reservable);
		assert_int_equal(s.registrants, 0x203);
		assert_int_equal(s.reservation, 3);
	}
	assert_string_equal(
		nvme_reservation_name(s.reservation), "write exclusive - registrants only");
	assert_string_equal(nvme_reservation_name(7), "unknown");
}

/* A drive that does not know the command counts it as an error. */
static void a_drive_without_reservations_is_not_asked_for_them(void **state) {
	struct nvme_sharing s;
	uint32_t before = model.commands;

	(void)state;
	assert_int_equal(nvme_namespace_sharing(fd, fd, 1, &s, NULL), RC_OK);
	assert_int_equal(model.commands - before, 2);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void errors_become_one_vocabulary(void **state) {
	static const struct {
		int32_t errnum, status;
		enum rc rc;
	} cases[] = {
		{EACCES, 0, RC_FORBIDDEN}, {EPERM, 0, RC_FORBIDDEN}, {ENODEV, 0, RC_NOT_FOUND},
		{EINTR, 0, RC_TIMEOUT}, /* no signal: the kernel's own time-out */
		{EBUSY, 0, RC_UNAVAILABLE}, {EIO, 0, RC_IO}, {0, 0x370, RC_UNAVAILABLE},
		{0, 0x371, RC_TIMEOUT}, {0, 0x4001, RC_UNSUPPORTED}, {0, 0x4109, RC_UNSUPPORTED},
		{0, 0x1d, RC_REFUSED}, {0, 0x4306, RC_REFUSED}, /* one that no table knows */
	};
	struct nvme_sharing sharing;
	struct drive_health h;
	int ps;

	(void)state;
	for (size_t i = 0; i < array_len(cases); i++) {
		struct err err = {0};

		model.fail_errno = cases[i].errnum;
		model.fail_status = cases[i].status;
		assert_int_equal(nvme_drive_smart(fd, 0, 0, &h, &err), cases[i].rc);
		assert_int_equal(err.rc, cases[i].rc);
		assert_int_equal(err.nvme_status, cases[i].status);
		assert_int_equal(nvme_drive_power_get(fd, &ps, NULL), cases[i].rc);
		assert_int_equal(nvme_namespace_sharing(fd, fd, 1, &sharing, NULL), cases[i].rc);
		assert_false(sharing.attachable || sharing.reservable);
		assert_int_equal(nvme_drive_power_set(fd, 0, NULL), cases[i].rc);
	}
}

static void opens_controllers_only(void **state) {
	static const char *const names[] = {"nvme0n1", "nvme0c0n1", "../null", "nvme", "", "null"};
	int opened;

	(void)state;
	for (size_t i = 0; i < array_len(names); i++)
		assert_int_equal(nvme_drive_open(names[i], &opened, NULL), RC_INVALID);
	assert_int_equal(nvme_drive_open("nvme999", &opened, NULL), RC_NOT_FOUND);
}

#define ON_DRIVE(test) cmocka_unit_test_setup_teardown(test, open_drive, close_drive)

int main(void) {
	const struct CMUnitTest tests[] = {
		ON_DRIVE(identifies),
		ON_DRIVE(what_is_not_reported_is_none),
		ON_DRIVE(sets_and_reads_back_power_states),
		ON_DRIVE(a_workload_hint_is_not_part_of_the_state),
		ON_DRIVE(keeps_the_status_of_a_refusal),
		ON_DRIVE(a_fixed_state_may_be_wished),
		ON_DRIVE(tells_how_it_keeps_a_limit),
		ON_DRIVE(a_drive_without_means_is_asked_nothing_about_them),
		ON_DRIVE(sets_and_takes_away_a_power_limit),
		ON_DRIVE(a_forbidden_state_gives_way_to_one_that_fits),
		ON_DRIVE(a_limit_that_is_too_low_is_refused),
		ON_DRIVE(sets_an_ocp_power_state),
		ON_DRIVE(means_are_not_taken_on_trust),
		ON_DRIVE(values_have_two_scales),
		ON_DRIVE(reads_the_health),
		ON_DRIVE(reads_the_other_logs_that_the_drive_has),
		ON_DRIVE(a_namespace_may_be_shared),
		ON_DRIVE(reservations_are_read_with_either_size_of_host_identifier),
		ON_DRIVE(a_drive_without_reservations_is_not_asked_for_them),
		ON_DRIVE(errors_become_one_vocabulary),
		ON_DRIVE(opens_controllers_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
