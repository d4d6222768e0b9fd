#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "priv/protocol.h"

/* --- whole messages --------------------------------------------------------------------------- */

static _Alignas(uint64_t) uint8_t message[PRIV_MESSAGE_MAX];

static void *message_of(uint32_t type) {
	struct priv_header *h = (struct priv_header *)message;

	memset(message, 0, sizeof(message));
	*h = (struct priv_header){.magic = PRIV_PROTOCOL_MAGIC,
		.type = type,
		.seq = 7,
		.length = (uint32_t)priv_body_size(type)};
	return h + 1;
}

static enum rc check(void) {
	const struct priv_header *h = (const struct priv_header *)message;
	struct err err = {0};
	enum rc rc = priv_message_check(message, sizeof(*h) + h->length, &err);

	assert_true(rc == RC_OK || (rc == RC_CORRUPT && err.msg[0] != '\0'));
	return rc;
}

static const char run_id[] = "018f3c5e-9c1a-7def-8abc-0123456789ab";

static struct priv_drive_op *drive_op(void) {
	struct priv_drive_op *op = message_of(PRIV_DRIVE_OP);

	op->drive.kind = DRIVE_NVME;
	snprintf(op->drive.name, sizeof(op->drive.name), "nvme3");
	snprintf(op->drive.serial, sizeof(op->drive.serial), "SN 1");
	op->verb = PRIV_VERB_POWER_SET;
	op->power_state = 2;
	op->fallback_state = -1;
	op->limit_mw = NONE;
	return op;
}

static struct priv_run_start *run_start(void) {
	struct priv_run_start *r = message_of(PRIV_RUN_START);
	size_t count;

	snprintf(r->run_id, sizeof(r->run_id), "%s", run_id);
	r->workload = workload_builtins(&count)[0];
	r->runtime_s = 60;
	r->target_count = 2;
	for (unsigned i = 0; i < 2; i++) {
		struct priv_run_target *t = &r->targets[i];

		t->drive.kind = DRIVE_NVME;
		snprintf(t->drive.name, sizeof(t->drive.name), "nvme%u", i);
		snprintf(t->drive_id, sizeof(t->drive_id), "Abc_-%u", i);
		t->nsid = 1;
		t->numa_node = -1;
	}
	r->confirm_count = 1;
	snprintf(r->confirm_destructive[0], sizeof(r->confirm_destructive[0]), "SN");
	return r;
}

static struct priv_drive_reply *identify_reply(void) {
	struct priv_drive_reply *r = message_of(PRIV_DRIVE_REPLY);
	struct drive_namespace *ns = &r->u.detail.namespaces[0];

	r->verb = PRIV_VERB_IDENTIFY;
	r->u.detail.power.count = 2;
	r->u.detail.power.states[1].state = 1;
	r->u.detail.namespace_count = 1;
	ns->use_count = 1;
	ns->uses[0].kind = USE_SIGNATURE;
	return r;
}

/* --- the envelope ----------------------------------------------------------------------------- */

static void sizes_are_known_for_known_types(void **state) {
	(void)state;
	assert_int_equal(priv_body_size(PRIV_ENUMERATE), 0);
	assert_int_equal(priv_body_size(PRIV_DRIVE_REPLY), sizeof(struct priv_drive_reply));
	assert_true(priv_body_size(0) == SIZE_MAX);
	assert_true(priv_body_size(PRIV_OPEN + 1) == SIZE_MAX);
	assert_true(priv_body_size(PRIV_HINT + 1) == SIZE_MAX);
	assert_true(priv_body_size(UINT32_MAX) == SIZE_MAX);
}

static void refuses_a_wrong_envelope(void **state) {
	struct priv_header *h = (struct priv_header *)message;

	(void)state;
	drive_op();
	for (size_t n = 0; n < sizeof(*h) + h->length; n++)
		assert_int_equal(priv_message_check(message, n, NULL), RC_CORRUPT);
	assert_int_equal(priv_message_check(message, sizeof(*h) + h->length, NULL), RC_OK);
	assert_int_equal(priv_message_check(message, sizeof(*h) + h->length + 1, NULL), RC_CORRUPT);
	h->length--;
	assert_int_equal(check(), RC_CORRUPT);
	drive_op();
	h->magic++;
	assert_int_equal(check(), RC_CORRUPT);
	drive_op();
	h->reserved = 1;
	assert_int_equal(check(), RC_CORRUPT);
	drive_op();
	h->type = 200;
	assert_int_equal(check(), RC_CORRUPT);
	message_of(PRIV_ENUMERATE);
	assert_int_equal(check(), RC_OK);
}

/* --- the bodies ------------------------------------------------------------------------------- */

/* Sets a field of a good message to a bad value and expects a refusal. */
#define REFUSED(make, field, value) \
	do { \
		make()->field = (value); \
		assert_int_equal(check(), RC_CORRUPT); \
	} while (0)

static void refuses_wrong_drive_ops(void **state) {
	struct priv_drive_op *op;

	(void)state;
	drive_op();
	assert_int_equal(check(), RC_OK);
	REFUSED(drive_op, drive.kind, DRIVE_FILE + 1);
	REFUSED(drive_op, drive.name[0], '/');
	REFUSED(drive_op, drive.name[0], '\0');
	REFUSED(drive_op, drive.name[0], '.');
	REFUSED(drive_op, verb, PRIV_VERB_COUNT_);
	REFUSED(drive_op, power_state, 32);
	REFUSED(drive_op, power_state, -1);
	REFUSED(drive_op, fallback_state, 32);
	REFUSED(drive_op, fallback_state, -2);
	REFUSED(drive_op, means, POWER_MEANS_COUNT_);
	REFUSED(drive_op, uuid_index, 128);
	REFUSED(drive_op, limit_mw, 20000); /* by state there is none */
	op = drive_op();
	op->means = POWER_MEANS_LIMIT;
	op->limit_mw = 655350;
	assert_int_equal(check(), RC_OK);
	op->limit_mw++;
	assert_int_equal(check(), RC_CORRUPT);
	op->limit_mw = 0;
	assert_int_equal(check(), RC_CORRUPT);
	op = drive_op();
	memset(op->drive.name, 'x', sizeof(op->drive.name));
	assert_int_equal(check(), RC_CORRUPT);
	op = drive_op();
	memset(op->drive.serial, 'x', sizeof(op->drive.serial));
	assert_int_equal(check(), RC_CORRUPT);
}

static struct priv_hint *hint(void) {
	struct priv_hint *h = message_of(PRIV_HINT);

	snprintf(h->name, sizeof(h->name), "nvme3");
	return h;
}

static void refuses_wrong_hints(void **state) {
	(void)state;
	hint();
	assert_int_equal(check(), RC_OK);
	hint()->name[0] = '\0';
	assert_int_equal(check(), RC_OK);
	REFUSED(hint, name[0], '/');
	REFUSED(hint, reset, 2);
	REFUSED(hint, lost, 2);
}

static void refuses_wrong_runs(void **state) {
	struct priv_run_start *r;

	(void)state;
	run_start();
	assert_int_equal(check(), RC_OK);
	REFUSED(run_start, run_id[0], 'x');
	REFUSED(run_start, run_id[36], 'x');
	REFUSED(run_start, workload.pattern, PATTERN_COUNT_);
	REFUSED(run_start, workload.block_bytes, 100);
	REFUSED(run_start, workload.jobs, 0);
	REFUSED(run_start, workload.iodepth, 5000);
	REFUSED(run_start, runtime_s, 0);
	REFUSED(run_start, runtime_s, 86401);
	REFUSED(run_start, ramp_s, 3601);
	REFUSED(run_start, override_signature, 2);
	REFUSED(run_start, target_count, 0);
	REFUSED(run_start, target_count, RUN_MAX_DRIVES + 1);
	REFUSED(run_start, targets[1].nsid, 0);
	REFUSED(run_start, targets[1].drive_id[0], ']');
	REFUSED(run_start, targets[1].drive_id[0], '\n');
	REFUSED(run_start, targets[1].numa_node, -2);
	REFUSED(run_start, confirm_count, RUN_MAX_DRIVES + 1);
	REFUSED(run_start, confirm_in_use_count, RUN_MAX_DRIVES + 1);
	r = run_start();
	snprintf(r->targets[0].drive_id, sizeof(r->targets[0].drive_id), "global");
	assert_int_equal(check(), RC_CORRUPT);
	r = run_start();
	memset(r->confirm_destructive[0], 'x', sizeof(r->confirm_destructive[0]));
	assert_int_equal(check(), RC_CORRUPT);
	r = run_start();
	memset(r->workload.name, 'x', sizeof(r->workload.name));
	assert_int_equal(check(), RC_CORRUPT);
	r = run_start();
	memset(&r->workload.direct, 2, 1);
	assert_int_equal(check(), RC_CORRUPT);
}

static void refuses_wrong_answers(void **state) {
	struct priv_drive_reply *r;
	struct priv_run_started *s;

	(void)state;
	identify_reply();
	assert_int_equal(check(), RC_OK);
	REFUSED(identify_reply, rc, RC_COUNT_);
	REFUSED(identify_reply, rc, -1);
	REFUSED(identify_reply, more, 1);
	REFUSED(identify_reply, power_state, 32);
	REFUSED(identify_reply, u.detail.power.count, POWER_STATES_MAX + 1);
	REFUSED(identify_reply, u.detail.power.states[1].state, 5);
	REFUSED(identify_reply, u.detail.namespace_count, DRIVE_MAX_NAMESPACES + 1);
	REFUSED(identify_reply, u.detail.namespaces[0].use_count, DRIVE_MAX_USES + 1);
	REFUSED(identify_reply, u.detail.namespaces[0].uses[0].kind, USE_KIND_COUNT_);
	r = identify_reply();
	memset(r->u.detail.namespaces[0].uses[0].detail, 'x',
		sizeof(r->u.detail.namespaces[0].uses[0].detail));
	assert_int_equal(check(), RC_CORRUPT);
	r = identify_reply();
	memset(&r->u.detail.apst_supported, 3, 1);
	assert_int_equal(check(), RC_CORRUPT);
	s = message_of(PRIV_RUN_STARTED);
	assert_int_equal(check(), RC_CORRUPT); /* it runs, without a pid */
	s->pid = 4242;
	assert_int_equal(check(), RC_OK);
	s->rc = RC_CONFLICT;
	assert_int_equal(check(), RC_CORRUPT);
}

/* Whatever byte is changed to whatever, the check ends and what it lets through can be printed. */
static void survives_every_changed_byte(void **state) {
	(void)state;
	run_start();
	for (size_t i = 0; i < sizeof(struct priv_run_start); i++)
		for (unsigned v = 1; v < 256; v *= 2) {
			message[sizeof(struct priv_header) + i] ^= (uint8_t)v;
			if (check() == RC_OK) {
				const struct priv_run_start *r =
					(const void *)(message + sizeof(struct priv_header));

				for (unsigned t = 0; t < r->target_count; t++)
					assert_true(strlen(r->targets[t].drive.name) < 24);
			}
			message[sizeof(struct priv_header) + i] ^= (uint8_t)v;
		}
}

/* --- the socket ------------------------------------------------------------------------------- */

static int pair[2];

static int open_pair(void **state) {
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state) {
	(void)state;
	close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
	return 0;
}

static _Alignas(uint64_t) uint8_t buffer[PRIV_MESSAGE_MAX];

static enum rc receive(struct priv_header **h, const void **body, int *fd) {
	struct err err;

	*fd = -1;
	return priv_receive(pair[1], buffer, h, body, fd, &err);
}

static void carries_the_largest_body(void **state) {
	struct priv_drive_reply *r = identify_reply();
	struct priv_header *h;
	const void *body;
	int fd;

	(void)state;
	r->u.detail.cntlid = 77;
	assert_int_equal(priv_send(pair[0], PRIV_DRIVE_REPLY, 9, r, -1, NULL), RC_OK);
	assert_int_equal(receive(&h, &body, &fd), RC_OK);
	assert_int_equal(h->seq, 9);
	assert_int_equal(h->type, PRIV_DRIVE_REPLY);
	assert_memory_equal(body, r, sizeof(*r));
	assert_int_equal(fd, -1);
}

static void carries_a_descriptor(void **state) {
	struct priv_run_started s = {.pid = 42};
	struct priv_header *h;
	const void *body;
	struct stat sent, got;
	int fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(priv_send(pair[0], PRIV_RUN_STARTED, 1, &s, null, NULL), RC_OK);
	assert_int_equal(receive(&h, &body, &fd), RC_OK);
	assert_int_equal(fstat(null, &sent), 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(sent.st_rdev, got.st_rdev);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	close(null);
}

static void a_bad_message_loses_its_descriptor(void **state) {
	struct priv_run_started s = {.rc = RC_COUNT_};
	struct priv_header *h;
	const void *body;
	int fd, next, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(priv_send(pair[0], PRIV_RUN_STARTED, 1, &s, null, NULL), RC_OK);
	close(null);
	next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(next);
	assert_int_equal(receive(&h, &body, &fd), RC_CORRUPT);
	assert_int_equal(fd, -1);
	/* The lowest free number is free again. */
	assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), next);
	close(next);
}

static void tells_that_the_peer_is_gone(void **state) {
	struct priv_header *h;
	const void *body;
	int fd;

	(void)state;
	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(receive(&h, &body, &fd), RC_UNAVAILABLE);
	assert_int_equal(priv_send(pair[1], PRIV_ENUMERATE, 1, NULL, -1, NULL), RC_UNAVAILABLE);
}

#define ON_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_known_for_known_types),
		cmocka_unit_test(refuses_a_wrong_envelope),
		cmocka_unit_test(refuses_wrong_drive_ops),
		cmocka_unit_test(refuses_wrong_hints),
		cmocka_unit_test(refuses_wrong_runs),
		cmocka_unit_test(refuses_wrong_answers),
		cmocka_unit_test(survives_every_changed_byte),
		ON_PAIR(carries_the_largest_body),
		ON_PAIR(carries_a_descriptor),
		ON_PAIR(a_bad_message_loses_its_descriptor),
		ON_PAIR(tells_that_the_peer_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
