/* The helper's main thread: reads requests, hands them to lanes, watches fio. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "priv/dcmi.h"
#include "priv/files.h"
#include "priv/helper.h"
#include "priv/hotplug.h"
#include "priv/lanes.h"
#include "priv/parts.h"
#include "priv/privileges.h"
#include "priv/rundir.h"
#include "priv/runs.h"

#define LANES_WAIT_MS 1000
#define FIO_WAIT_MS 4000
#define DCMI_MS 10000

struct helper {
	int sock;
	struct sysfs_root root;
	struct drives drives;
	struct lanes *lanes;
	struct runs *runs;
	struct hotplug hotplug;
};

static void answer_fd(int sock, enum priv_type type, uint64_t seq, const void *body, int fd) {
	struct err err;

	if (priv_send(sock, type, seq, body, fd, &err) != RC_OK)
		log_err(LOG_LEVEL_WARNING, "priv", "answer not sent", &err);
}

static void answer(int sock, enum priv_type type, uint64_t seq, const void *body) {
	answer_fd(sock, type, seq, body, -1);
}

/* --- enumeration, in a lane ------------------------------------------------------------------- */

struct enumerate_op {
	struct lane_op op;
	struct helper *helper;
	uint64_t seq;
	struct priv_found *found;
	size_t count;
	struct priv_enumerated end;
};

static void enumerate_run(struct lane_op *op) {
	struct enumerate_op *e = (struct enumerate_op *)op;
	struct err err = {0};

	if (drives_enumerate(&e->helper->drives, &e->found, &e->count, e->end.reason, &err) !=
		RC_OK)
		str_copy(e->end.reason, sizeof(e->end.reason), err.msg);
	e->end.count = (uint32_t)e->count;
}

static void enumerate_finish(struct lane_op *op, bool late) {
	struct enumerate_op *e = (struct enumerate_op *)op;

	if (late)
		return;
	for (size_t i = 0; i < e->count; i++)
		answer(e->helper->sock, PRIV_FOUND, e->seq, &e->found[i]);
	answer(e->helper->sock, PRIV_ENUMERATED, e->seq, &e->end);
}

static void enumerate_overdue(struct lane_op *op, unused_arg bool begun) {
	struct enumerate_op *e = (struct enumerate_op *)op;
	struct priv_enumerated end = {.reason = "looking for drives takes too long"};

	answer(e->helper->sock, PRIV_ENUMERATED, e->seq, &end);
}

static void enumerate_release(struct lane_op *op) {
	struct enumerate_op *e = (struct enumerate_op *)op;

	free(e->found);
	free(e);
}

static const struct lane_op_kind enumerate_kind = {
	.run = enumerate_run,
	.finish = enumerate_finish,
	.overdue = enumerate_overdue,
	.release = enumerate_release,
};

static enum rc submit_enumerate(struct helper *h, uint64_t seq, struct err *err) {
	struct enumerate_op *e = calloc(1, sizeof(*e));
	enum rc rc;

	if (!e)
		return err_set(err, RC_NOMEM, "no memory to look for drives");
	e->op.kind = &enumerate_kind;
	e->helper = h;
	e->seq = seq;
	rc = lanes_submit(h->lanes, "enumerate", &e->op, err);
	if (rc != RC_OK)
		free(e);
	return rc;
}

static void on_enumerate(struct helper *h, uint64_t seq, unused_arg const void *body) {
	struct priv_enumerated end = {0};
	struct err err = {0};

	if (submit_enumerate(h, seq, &err) == RC_OK)
		return;
	str_copy(end.reason, sizeof(end.reason), err.msg);
	answer(h->sock, PRIV_ENUMERATED, seq, &end);
}

/* --- a drive's commands, in its lane ---------------------------------------------------------- */

struct drive_op {
	struct lane_op op;
	struct helper *helper;
	uint64_t seq;
	struct priv_drive_op request;
	struct priv_drive_reply reply;
};

static void drive_op_run(struct lane_op *op) {
	struct drive_op *o = (struct drive_op *)op;

	drives_op(&o->helper->drives, &o->request, &o->reply);
}

static void drive_op_finish(struct lane_op *op, unused_arg bool late) {
	const struct drive_op *o = (const struct drive_op *)op;

	answer(o->helper->sock, PRIV_DRIVE_REPLY, o->seq, &o->reply);
}

static void answer_failed(
	const struct helper *h, uint64_t seq, struct priv_drive_reply *reply, const char *msg) {
	reply->power_state = -1;
	str_copy(reply->msg, sizeof(reply->msg), msg);
	answer(h->sock, PRIV_DRIVE_REPLY, seq, reply);
}

static void drive_op_overdue(struct lane_op *op, bool begun) {
	const struct drive_op *o = (const struct drive_op *)op;
	struct priv_drive_reply reply = {.rc = RC_TIMEOUT, .verb = o->request.verb, .more = begun};

	answer_failed(o->helper, o->seq, &reply,
		begun ? "the drive has not answered in time"
		      : "not sent: the drive has not answered an earlier command");
}

static void drive_op_release(struct lane_op *op) {
	free(op);
}

static const struct lane_op_kind drive_op_kind = {
	.run = drive_op_run,
	.finish = drive_op_finish,
	.overdue = drive_op_overdue,
	.release = drive_op_release,
};

/* What may read from the media, or much, has a lane of its own: a change of power is not to wait
 * for it. */
static void lane_name(const struct priv_drive_op *op, char name[LANE_NAME_SIZE]) {
	const bool slow = op->verb == PRIV_VERB_IDENTIFY || op->verb == PRIV_VERB_SMART;

	snprintf(name, LANE_NAME_SIZE, "%s%s", op->drive.name, slow ? ":look" : "");
}

static enum rc submit_drive_op(
	struct helper *h, uint64_t seq, const struct priv_drive_op *request, struct err *err) {
	struct drive_op *o = calloc(1, sizeof(*o));
	char lane[LANE_NAME_SIZE];
	enum rc rc;

	if (!o)
		return err_set(err, RC_NOMEM, "no memory for a command");
	o->op.kind = &drive_op_kind;
	o->helper = h;
	o->seq = seq;
	o->request = *request;
	lane_name(request, lane);
	rc = lanes_submit(h->lanes, lane, &o->op, err);
	if (rc != RC_OK)
		free(o);
	return rc;
}

static void on_drive_op(struct helper *h, uint64_t seq, const void *body) {
	const struct priv_drive_op *request = body;
	struct priv_drive_reply reply = {.verb = request->verb};
	struct err err = {0};

	if (submit_drive_op(h, seq, request, &err) == RC_OK)
		return;
	reply.rc = (int32_t)err.rc;
	answer_failed(h, seq, &reply, err.msg);
}

/* --- the machine's own meters, each in a lane ---------------------------------------------------
 */

struct meter_op {
	struct lane_op op;
	struct helper *helper;
	uint64_t seq;
	struct priv_meter_reply reply;
};

static enum rc read_dcmi(const struct helper *h, struct priv_meter_reply *r, struct err *err) {
	const struct priv_config *c = h->drives.config;

	if (!c->dcmi_path || c->no_devices)
		return err_set(err, RC_UNSUPPORTED, "DCMI is not to be asked");
	return dcmi_read(c->dcmi_path, DCMI_MS, &r->power_mw, err);
}

static enum rc read_parts(
	const struct helper *h, struct priv_meter_reply *r, unused_arg struct err *err) {
	parts_read(&h->root, &r->u.parts);
	return RC_OK;
}

static enum rc read_machine(
	const struct helper *h, struct priv_meter_reply *r, unused_arg struct err *err) {
	machine_read(&h->root, &r->u.machine);
	return RC_OK;
}

static const struct {
	const char *lane;
	enum rc (*read)(const struct helper *h, struct priv_meter_reply *r, struct err *err);
} meters[PRIV_METER_COUNT_] = {
	[PRIV_METER_DCMI] = {"meter:dcmi", read_dcmi},
	[PRIV_METER_PARTS] = {"meter:parts", read_parts},
	[PRIV_METER_MACHINE] = {"meter:machine", read_machine},
};

static void answer_meter(
	const struct helper *h, uint64_t seq, struct priv_meter_reply *r, const struct err *err) {
	r->rc = (int32_t)err->rc;
	str_copy(r->msg, sizeof(r->msg), err->msg);
	answer(h->sock, PRIV_METER_REPLY, seq, r);
}

static void meter_run(struct lane_op *op) {
	struct meter_op *m = (struct meter_op *)op;
	struct err err = {0};

	m->reply.rc = (int32_t)meters[m->reply.meter].read(m->helper, &m->reply, &err);
	m->reply.at_ms = clock_wall_ms();
	m->reply.at_mono_ns = clock_mono_ns();
	str_copy(m->reply.msg, sizeof(m->reply.msg), err.msg);
}

static void meter_finish(struct lane_op *op, bool late) {
	const struct meter_op *m = (const struct meter_op *)op;

	if (!late)
		answer(m->helper->sock, PRIV_METER_REPLY, m->seq, &m->reply);
}

static void meter_overdue(struct lane_op *op, unused_arg bool begun) {
	const struct meter_op *m = (const struct meter_op *)op;
	struct priv_meter_reply late = {.meter = m->reply.meter};
	struct err err;

	err_set(&err, RC_TIMEOUT, "the meter has not answered in time");
	answer_meter(m->helper, m->seq, &late, &err);
}

static const struct lane_op_kind meter_kind = {
	.run = meter_run,
	.finish = meter_finish,
	.overdue = meter_overdue,
	.release = drive_op_release,
};

static enum rc submit_meter(struct helper *h, uint64_t seq, uint32_t meter, struct err *err) {
	struct meter_op *m = calloc(1, sizeof(*m));
	enum rc rc;

	if (!m)
		return err_set(err, RC_NOMEM, "no memory to read a meter");
	m->op.kind = &meter_kind;
	m->helper = h;
	m->seq = seq;
	m->reply.meter = meter;
	rc = lanes_submit(h->lanes, meters[meter].lane, &m->op, err);
	if (rc != RC_OK)
		free(m);
	return rc;
}

static void on_meter(struct helper *h, uint64_t seq, const void *body) {
	const struct priv_meter_ask *ask = body;
	struct priv_meter_reply reply = {.meter = ask->meter};
	struct err err = {0};

	if (submit_meter(h, seq, ask->meter, &err) != RC_OK)
		answer_meter(h, seq, &reply, &err);
}

/* --- files of the configuration, in a lane ---------------------------------------------------- */

struct open_op {
	struct lane_op op;
	struct helper *helper;
	uint64_t seq;
	uint32_t file;
	int fd;
	struct priv_opened opened;
};

static void open_run(struct lane_op *op) {
	struct open_op *o = (struct open_op *)op;

	o->fd = files_open(o->helper->drives.config, o->file, &o->opened);
}

static void open_finish(struct lane_op *op, bool late) {
	const struct open_op *o = (const struct open_op *)op;

	if (!late)
		answer_fd(o->helper->sock, PRIV_OPENED, o->seq, &o->opened, o->fd);
}

static void answer_unopened(const struct helper *h, uint64_t seq, enum rc rc, const char *msg) {
	struct priv_opened opened = {.rc = (int32_t)rc};

	str_copy(opened.msg, sizeof(opened.msg), msg);
	answer(h->sock, PRIV_OPENED, seq, &opened);
}

static void open_overdue(struct lane_op *op, unused_arg bool begun) {
	const struct open_op *o = (const struct open_op *)op;

	answer_unopened(o->helper, o->seq, RC_TIMEOUT, "opening the file takes too long");
}

static void open_release(struct lane_op *op) {
	struct open_op *o = (struct open_op *)op;

	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

static const struct lane_op_kind open_kind = {
	.run = open_run,
	.finish = open_finish,
	.overdue = open_overdue,
	.release = open_release,
};

static enum rc submit_open(struct helper *h, uint64_t seq, uint32_t file, struct err *err) {
	struct open_op *o = calloc(1, sizeof(*o));
	enum rc rc;

	if (!o)
		return err_set(err, RC_NOMEM, "no memory to open a file");
	*o = (struct open_op){{.kind = &open_kind}, h, seq, file, -1, {0}};
	rc = lanes_submit(h->lanes, "files", &o->op, err);
	if (rc != RC_OK)
		free(o);
	return rc;
}

static void on_open(struct helper *h, uint64_t seq, const void *body) {
	const struct priv_open *request = body;
	struct err err = {0};

	if (submit_open(h, seq, request->file, &err) != RC_OK)
		answer_unopened(h, seq, err.rc, err.msg);
}

/* --- runs --------------------------------------------------------------------------------------
 */

static void on_run_start(struct helper *h, uint64_t seq, const void *body) {
	runs_start(h->runs, seq, body);
}

static void on_run_stop(struct helper *h, unused_arg uint64_t seq, const void *body) {
	runs_stop(h->runs, body);
}

static void on_run_forget(struct helper *h, unused_arg uint64_t seq, const void *body) {
	runs_forget(h->runs, body);
}

static void on_reap(struct helper *h, uint64_t seq, const void *body) {
	struct priv_reaped reaped = {.was_alive = runs_reap(body)};

	answer(h->sock, PRIV_REAPED, seq, &reaped);
}

/* --- the loop ----------------------------------------------------------------------------------
 */

static void (*const handlers[])(struct helper *h, uint64_t seq, const void *body) = {
	[PRIV_ENUMERATE] = on_enumerate,
	[PRIV_DRIVE_OP] = on_drive_op,
	[PRIV_RUN_START] = on_run_start,
	[PRIV_RUN_STOP] = on_run_stop,
	[PRIV_RUN_FORGET] = on_run_forget,
	[PRIV_REAP] = on_reap,
	[PRIV_METER] = on_meter,
	[PRIV_OPEN] = on_open,
};

static enum rc handle_message(struct helper *h, void *buffer, struct err *err) {
	struct priv_header *header;
	const void *body;
	int fd = -1;
	enum rc rc = priv_receive(h->sock, buffer, &header, &body, &fd, err);

	if (fd >= 0)
		close(fd);
	if (rc != RC_OK)
		return rc;
	if (header->type >= array_len(handlers) || !handlers[header->type])
		return err_set(err, RC_CORRUPT, "message type %u is no request", header->type);
	handlers[header->type](h, header->seq, body);
	return RC_OK;
}

static int sooner(int64_t a, int64_t b) {
	int64_t ms = a < 0 || (b >= 0 && b < a) ? b : a;

	return ms < 0 ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static void tell_hint(void *arg, const struct priv_hint *hint) {
	const struct helper *h = arg;

	answer(h->sock, PRIV_HINT, 0, hint);
}

/* Milliseconds until something is to be done without being asked; -1 never. */
static int tick(struct helper *h) {
	int64_t next = sooner(runs_tick(h->runs), lanes_tick(h->lanes));

	return sooner(next, hotplug_tick(&h->hotplug, clock_mono_ms(), tell_hint, h));
}

/* Until the peer is gone (RC_UNAVAILABLE) or broken. */
static enum rc serve(struct helper *h, void *buffer, struct err *err) {
	struct pollfd fds[2 + RUNS_POLL_MAX];
	enum rc rc = RC_OK;

	while (rc == RC_OK) {
		int wait_ms = tick(h);
		unsigned n;

		fds[0] = (struct pollfd){.fd = h->sock, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = h->hotplug.fd, .events = POLLIN};
		n = 2 + runs_poll(h->runs, fds + 2);
		if (poll(fds, n, wait_ms) < 0 && errno != EINTR)
			return err_errno(err, errno, "poll");
		if (fds[1].revents)
			hotplug_read(&h->hotplug);
		if (fds[0].revents)
			rc = handle_message(h, buffer, err);
	}
	return rc;
}

static enum rc helper_init(
	struct helper *h, int sock, const struct priv_config *config, struct err *err) {
	int bytes = 4 * PRIV_MESSAGE_MAX;

	/* The default may be below a single message. */
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	h->sock = sock;
	h->root = sysfs_live;
	h->root.sys = config->sysfs;
	h->drives = (struct drives){
		.config = config, .root = &h->root, .openers = openers_new(&h->root)};
	if (!h->drives.openers)
		return err_set(err, RC_NOMEM, "no memory to look at other processes");
	h->lanes = lanes_new(config->max_lanes, config->command_ms, err);
	if (!h->lanes)
		return err->rc;
	h->runs = runs_new(&h->drives, h->lanes, sock, err);
	if (h->runs && !config->no_devices)
		hotplug_init(&h->hotplug, &h->root);
	return h->runs ? RC_OK : err->rc;
}

/* A signal to the whole process group must not take the helper away while the other process still
 * stops its runs in order; this one ends at end of file. */
static void ignore_signals(void) {
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};

	for (size_t i = 0; i < array_len(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

int priv_helper_main(int sock, const struct priv_config *config) {
	auto_free void *buffer = malloc(PRIV_MESSAGE_MAX);
	struct helper h = {.hotplug = {.fd = -1}};
	struct err err = {0};
	enum rc rc;

	log_init("priv", config->log_level);
	umask(022); /* a run's files are read by the network process, which is somebody else */
	ignore_signals();
	privileges_reduce();
	rundir_sweep();
	rc = buffer ? helper_init(&h, sock, config, &err)
		    : err_set(&err, RC_NOMEM, "no memory for messages");
	if (rc == RC_OK)
		rc = serve(&h, buffer, &err);
	if (rc != RC_UNAVAILABLE)
		log_err(LOG_LEVEL_ERROR, "priv", "ends", &err);
	if (lanes_free(h.lanes, LANES_WAIT_MS))
		openers_free(h.drives.openers);
	runs_free(h.runs, FIO_WAIT_MS);
	hotplug_release(&h.hotplug);
	return rc == RC_UNAVAILABLE ? 0 : 1;
}
