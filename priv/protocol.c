/* Messages to and from the privileged helper: sizes, checks, the socket. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/id.h"
#include "priv/protocol.h"

#define RAMP_MAX_S 3600
#define RUNTIME_MAX_S 86400
#define UUID_INDEX_MAX 127
#define LIMIT_MAX_MW 655350

union any_body {
	struct priv_drive_op drive_op;
	struct priv_run_start run_start;
	struct priv_run_stop run_stop;
	struct priv_run_forget run_forget;
	struct priv_reap reap;
	struct priv_open open;
	struct priv_opened opened;
	struct priv_found found;
	struct priv_enumerated enumerated;
	struct priv_drive_reply drive_reply;
	struct priv_run_started run_started;
	struct priv_run_exited run_exited;
	struct priv_reaped reaped;
	struct priv_meter_ask meter_ask;
	struct priv_meter_reply meter_reply;
	struct priv_hint hint;
};

_Static_assert(sizeof(struct priv_header) % 8 == 0, "a body is aligned behind its header");
_Static_assert(sizeof(struct priv_header) + sizeof(union any_body) <= PRIV_MESSAGE_MAX,
	"the largest message fits");

/* --- the fields ------------------------------------------------------------------------------ */

static enum rc bad(struct err *err, const char *field) {
	return err_set(err, RC_CORRUPT, "%s is out of range", field);
}

static bool is_text(const char *s, size_t size) {
	return memchr(s, '\0', size) != NULL;
}
#define IS_TEXT(array) is_text(array, sizeof(array))

/* A bool of the peer's may hold any byte; reading one as bool then is undefined. */
static bool is_bool(const bool *b) {
	uint8_t byte;

	memcpy(&byte, b, 1);
	return byte <= 1;
}

static bool is_made_of(const char *s, const char *chars) {
	return s[0] != '\0' && s[strspn(s, chars)] == '\0';
}

static bool is_kernel_name(const char *s) {
	return is_made_of(s, "abcdefghijklmnopqrstuvwxyz0123456789");
}

/* It becomes a section of fio's job file, where "global" means something else. */
static bool is_drive_id(const char *s) {
	return is_made_of(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") &&
		strcmp(s, "global") != 0;
}

static bool is_run_id(const char *s) {
	return is_text(s, RUN_ID_SIZE) && id_is_uuid(s);
}

static bool is_rc(int32_t rc) {
	return rc >= RC_OK && rc < RC_COUNT_;
}

static bool is_ref(const struct priv_drive_ref *ref) {
	return ref->kind <= DRIVE_FILE && IS_TEXT(ref->name) && is_kernel_name(ref->name) &&
		IS_TEXT(ref->serial);
}

static bool is_serial_list(const char (*list)[21], uint16_t count) {
	if (count > RUN_MAX_DRIVES)
		return false;
	for (uint16_t i = 0; i < count; i++)
		if (!is_text(list[i], sizeof(list[i])))
			return false;
	return true;
}

/* --- the bodies ------------------------------------------------------------------------------ */

static enum rc check_drive_op(const void *body, struct err *err) {
	const struct priv_drive_op *op = body;

	if (!is_ref(&op->drive))
		return bad(err, "drive");
	if (op->verb >= PRIV_VERB_COUNT_)
		return bad(err, "verb");
	if (op->power_state < -1 || op->power_state >= POWER_STATES_MAX ||
		(op->verb == PRIV_VERB_POWER_SET && op->power_state < 0))
		return bad(err, "power_state");
	if (op->fallback_state < -1 || op->fallback_state >= POWER_STATES_MAX)
		return bad(err, "fallback_state");
	if (op->means >= POWER_MEANS_COUNT_ || op->uuid_index > UUID_INDEX_MAX)
		return bad(err, "means");
	if (op->logs > DRIVE_LOGS_ALL_)
		return bad(err, "logs");
	if (op->verb == PRIV_VERB_POWER_SET && op->limit_mw != NONE &&
		(op->means == POWER_MEANS_STATE || op->limit_mw < 1 || op->limit_mw > LIMIT_MAX_MW))
		return bad(err, "limit_mw");
	return RC_OK;
}

static enum rc check_workload(const struct workload *w, unsigned drives, struct err *err) {
	struct err why = {0};

	if (!IS_TEXT(w->name) || !is_bool(&w->builtin) || !is_bool(&w->direct))
		return bad(err, "workload");
	if (workload_check(w, "/workload", &why) != RC_OK ||
		workload_check_buffers(w, drives, "/workload", &why) != RC_OK)
		return err_set(err, RC_CORRUPT, "workload: %s", why.msg);
	return RC_OK;
}

static enum rc check_target(const struct priv_run_target *t, struct err *err) {
	if (!is_ref(&t->drive))
		return bad(err, "targets.drive");
	if (!IS_TEXT(t->drive_id) || !is_drive_id(t->drive_id))
		return bad(err, "targets.drive_id");
	if ((t->drive.kind == DRIVE_NVME) != (t->nsid != 0))
		return bad(err, "targets.nsid");
	if (t->numa_node < -1)
		return bad(err, "targets.numa_node");
	return RC_OK;
}

static enum rc check_run_start(const void *body, struct err *err) {
	const struct priv_run_start *r = body;

	if (!is_run_id(r->run_id))
		return bad(err, "run_id");
	if (r->runtime_s < 1 || r->runtime_s > RUNTIME_MAX_S || r->ramp_s > RAMP_MAX_S)
		return bad(err, "runtime_s or ramp_s");
	if (r->override_signature > 1)
		return bad(err, "override_signature");
	if (r->target_count < 1 || r->target_count > RUN_MAX_DRIVES)
		return bad(err, "target_count");
	if (check_workload(&r->workload, r->target_count, err) != RC_OK)
		return RC_CORRUPT;
	for (uint16_t i = 0; i < r->target_count; i++)
		if (check_target(&r->targets[i], err) != RC_OK)
			return RC_CORRUPT;
	if (!is_serial_list(r->confirm_destructive, r->confirm_count))
		return bad(err, "confirm_destructive");
	if (!is_serial_list(r->confirm_in_use, r->confirm_in_use_count))
		return bad(err, "confirm_in_use");
	return RC_OK;
}

static enum rc check_run_stop(const void *body, struct err *err) {
	const struct priv_run_stop *s = body;

	return is_run_id(s->run_id) && s->kill <= 1 ? RC_OK : bad(err, "run_id or kill");
}

static enum rc check_run_forget(const void *body, struct err *err) {
	const struct priv_run_forget *f = body;

	return is_run_id(f->run_id) ? RC_OK : bad(err, "run_id");
}

static enum rc check_reap(const void *body, struct err *err) {
	const struct priv_reap *r = body;

	return r->pid > 1 ? RC_OK : bad(err, "pid");
}

static enum rc check_found(const void *body, struct err *err) {
	const struct priv_found *f = body;

	if (!is_ref(&f->drive) || f->drive.kind == DRIVE_SIMULATED)
		return bad(err, "drive");
	if (!IS_TEXT(f->model) || !IS_TEXT(f->firmware) || !IS_TEXT(f->transport) ||
		!IS_TEXT(f->address) || !IS_TEXT(f->slot) || !IS_TEXT(f->subsystem_nqn) ||
		!IS_TEXT(f->sysfs_state))
		return bad(err, "text");
	return f->numa_node >= -1 ? RC_OK : bad(err, "numa_node");
}

static enum rc check_enumerated(const void *body, struct err *err) {
	const struct priv_enumerated *e = body;

	return IS_TEXT(e->reason) ? RC_OK : bad(err, "reason");
}

static bool is_namespace(const struct drive_namespace *ns) {
	if (!IS_TEXT(ns->path) || !is_bool(&ns->zoned) || ns->use_count > DRIVE_MAX_USES)
		return false;
	for (uint8_t i = 0; i < ns->use_count; i++)
		if (ns->uses[i].kind >= USE_KIND_COUNT_ || !IS_TEXT(ns->uses[i].detail))
			return false;
	return true;
}

static bool is_power_table(const struct power_table *t) {
	if (t->count > POWER_STATES_MAX)
		return false;
	for (uint8_t i = 0; i < t->count; i++)
		if (t->states[i].state != i || !is_bool(&t->states[i].operational) ||
			t->states[i].active_workload > 2)
			return false;
	return t->limits.means < POWER_MEANS_COUNT_ && t->limits.ocp_uuid_index <= UUID_INDEX_MAX;
}

static enum rc check_detail(const struct drive_detail *d, struct err *err) {
	if (!IS_TEXT(d->subsystem_nqn) || !is_bool(&d->volatile_write_cache) ||
		!is_bool(&d->apst_supported) || !is_bool(&d->namespaces_cut) ||
		d->logs > DRIVE_LOGS_ALL_)
		return bad(err, "detail");
	if (!is_power_table(&d->power))
		return bad(err, "detail.power");
	if (d->namespace_count > DRIVE_MAX_NAMESPACES)
		return bad(err, "detail.namespace_count");
	for (uint8_t i = 0; i < d->namespace_count; i++)
		if (!is_namespace(&d->namespaces[i]))
			return bad(err, "detail.namespaces");
	return RC_OK;
}

static enum rc check_health(const struct drive_health *h, struct err *err) {
	if (h->logs > DRIVE_LOGS_ALL_ || !is_bool(&h->measurement.enabled) ||
		!is_bool(&h->measurement.estimated))
		return bad(err, "health");
	return RC_OK;
}

static enum rc check_drive_reply(const void *body, struct err *err) {
	const struct priv_drive_reply *r = body;

	if (!is_rc(r->rc))
		return bad(err, "rc");
	if (r->verb >= PRIV_VERB_COUNT_)
		return bad(err, "verb");
	if (!IS_TEXT(r->msg) || r->more > (r->rc == RC_TIMEOUT))
		return bad(err, "msg or more");
	if (r->power_state < -1 || r->power_state >= POWER_STATES_MAX)
		return bad(err, "power_state");
	if (r->asleep > 1 || (r->asleep && r->rc != RC_OK))
		return bad(err, "asleep");
	if (r->verb == PRIV_VERB_IDENTIFY && r->rc == RC_OK && !r->asleep)
		return check_detail(&r->u.detail, err);
	if (r->verb == PRIV_VERB_SMART && r->rc == RC_OK && !r->asleep)
		return check_health(&r->u.health, err);
	return RC_OK;
}

static enum rc check_run_started(const void *body, struct err *err) {
	const struct priv_run_started *s = body;

	if (!is_rc(s->rc) || !IS_TEXT(s->field) || !IS_TEXT(s->msg))
		return bad(err, "rc, field or msg");
	return (s->rc == RC_OK) == (s->pid > 1) ? RC_OK : bad(err, "pid");
}

static enum rc check_run_exited(const void *body, struct err *err) {
	const struct priv_run_exited *e = body;

	if (!is_run_id(e->run_id) || e->asked > 1 || e->abandoned > 1)
		return bad(err, "run_id, asked or abandoned");
	return (e->gone != 0) == (e->gone_ms > 0) ? RC_OK : bad(err, "gone_ms");
}

static enum rc check_reaped(const void *body, struct err *err) {
	const struct priv_reaped *r = body;

	return r->was_alive <= 1 ? RC_OK : bad(err, "was_alive");
}

static enum rc check_meter_ask(const void *body, struct err *err) {
	const struct priv_meter_ask *a = body;

	return a->meter < PRIV_METER_COUNT_ ? RC_OK : bad(err, "meter");
}

static enum rc check_parts(const struct priv_parts *p, struct err *err) {
	if (p->package_count > PRIV_MAX_PACKAGES || p->packages_cut > 1)
		return bad(err, "package_count");
	if (p->sensor_count > PRIV_MAX_SENSORS || p->sensors_cut > 1)
		return bad(err, "sensor_count");
	for (uint16_t i = 0; i < p->package_count; i++)
		if (!IS_TEXT(p->packages[i].name))
			return bad(err, "packages.name");
	for (uint16_t i = 0; i < p->sensor_count; i++)
		if (!IS_TEXT(p->sensors[i].name))
			return bad(err, "sensors.name");
	return RC_OK;
}

static enum rc check_machine(const struct priv_machine *m, struct err *err) {
	return IS_TEXT(m->uuid) && IS_TEXT(m->redfish_url) ? RC_OK : bad(err, "machine");
}

static enum rc check_meter_reply(const void *body, struct err *err) {
	const struct priv_meter_reply *r = body;

	if (!is_rc(r->rc) || !IS_TEXT(r->msg))
		return bad(err, "rc or msg");
	if (r->meter >= PRIV_METER_COUNT_)
		return bad(err, "meter");
	if (r->rc == RC_OK && r->meter == PRIV_METER_PARTS)
		return check_parts(&r->u.parts, err);
	if (r->rc == RC_OK && r->meter == PRIV_METER_MACHINE)
		return check_machine(&r->u.machine, err);
	return RC_OK;
}

static enum rc check_open(const void *body, struct err *err) {
	const struct priv_open *o = body;

	return o->file < PRIV_FILE_COUNT_ ? RC_OK : bad(err, "file");
}

static enum rc check_opened(const void *body, struct err *err) {
	const struct priv_opened *o = body;

	return is_rc(o->rc) && IS_TEXT(o->msg) ? RC_OK : bad(err, "rc or msg");
}

static enum rc check_hint(const void *body, struct err *err) {
	const struct priv_hint *h = body;

	if (!IS_TEXT(h->name) || (h->name[0] && !is_kernel_name(h->name)))
		return bad(err, "name");
	return h->reset <= 1 && h->lost <= 1 ? RC_OK : bad(err, "reset or lost");
}

static const struct body_rule {
	bool known;
	size_t size;
	enum rc (*check)(const void *body, struct err *err); /* NULL: an empty body */
} body_rules[] = {
	[PRIV_ENUMERATE] = {true, 0, NULL},
	[PRIV_DRIVE_OP] = {true, sizeof(struct priv_drive_op), check_drive_op},
	[PRIV_RUN_START] = {true, sizeof(struct priv_run_start), check_run_start},
	[PRIV_RUN_STOP] = {true, sizeof(struct priv_run_stop), check_run_stop},
	[PRIV_RUN_FORGET] = {true, sizeof(struct priv_run_forget), check_run_forget},
	[PRIV_REAP] = {true, sizeof(struct priv_reap), check_reap},
	[PRIV_OPEN] = {true, sizeof(struct priv_open), check_open},
	[PRIV_FOUND] = {true, sizeof(struct priv_found), check_found},
	[PRIV_ENUMERATED] = {true, sizeof(struct priv_enumerated), check_enumerated},
	[PRIV_DRIVE_REPLY] = {true, sizeof(struct priv_drive_reply), check_drive_reply},
	[PRIV_RUN_STARTED] = {true, sizeof(struct priv_run_started), check_run_started},
	[PRIV_RUN_EXITED] = {true, sizeof(struct priv_run_exited), check_run_exited},
	[PRIV_REAPED] = {true, sizeof(struct priv_reaped), check_reaped},
	[PRIV_METER] = {true, sizeof(struct priv_meter_ask), check_meter_ask},
	[PRIV_METER_REPLY] = {true, sizeof(struct priv_meter_reply), check_meter_reply},
	[PRIV_OPENED] = {true, sizeof(struct priv_opened), check_opened},
	[PRIV_HINT] = {true, sizeof(struct priv_hint), check_hint},
};

static const struct body_rule *rule_of(uint32_t type) {
	return type < array_len(body_rules) && body_rules[type].known ? &body_rules[type] : NULL;
}

size_t priv_body_size(uint32_t type) {
	const struct body_rule *rule = rule_of(type);

	return rule ? rule->size : SIZE_MAX;
}

enum rc priv_message_check(const void *message, size_t length, struct err *err) {
	const struct priv_header *h = message;
	const struct body_rule *rule;

	if (length < sizeof(*h))
		return err_set(err, RC_CORRUPT, "message of %zu bytes has no header", length);
	if (h->magic != PRIV_PROTOCOL_MAGIC || h->reserved != 0)
		return err_set(err, RC_CORRUPT, "not a message of this protocol");
	rule = rule_of(h->type);
	if (!rule)
		return err_set(err, RC_CORRUPT, "unknown message type %u", h->type);
	if (h->length != rule->size || length != sizeof(*h) + rule->size)
		return err_set(err, RC_CORRUPT, "message type %u has the wrong length", h->type);
	return rule->check ? rule->check(h + 1, err) : RC_OK;
}

/* --- the socket ------------------------------------------------------------------------------ */

union fd_control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void attach_fd(struct msghdr *msg, union fd_control *control, int fd) {
	struct cmsghdr *c;

	msg->msg_control = control->bytes;
	msg->msg_controllen = sizeof(control->bytes);
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
}

static int detach_fd(struct msghdr *msg) {
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

enum rc priv_send(
	int sock, enum priv_type type, uint64_t seq, const void *body, int fd, struct err *err) {
	size_t size = priv_body_size(type);
	struct priv_header h = {
		.magic = PRIV_PROTOCOL_MAGIC, .type = type, .seq = seq, .length = (uint32_t)size};
	struct iovec iov[2] = {{.iov_base = &h, .iov_len = sizeof(h)},
		{.iov_base = (void *)body, .iov_len = size}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = size ? 2 : 1};
	union fd_control control = {0};
	ssize_t n;

	if (size == SIZE_MAX)
		return err_set(err, RC_INTERNAL, "unknown message type %u", type);
	if (fd >= 0)
		attach_fd(&msg, &control, fd);
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return RC_OK;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return err_set(err, RC_UNAVAILABLE, "the other process is gone");
	return err_errno(err, errno, "sendmsg");
}

enum rc priv_receive(int sock, void *buffer, struct priv_header **header, const void **body,
	int *fd, struct err *err) {
	struct iovec iov = {.iov_base = buffer, .iov_len = PRIV_MESSAGE_MAX};
	union fd_control control = {0};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	enum rc rc;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return err_set(err, RC_UNAVAILABLE, "the other process is gone");
	if (n < 0)
		return err_errno(err, errno, "recvmsg");
	*fd = detach_fd(&msg);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		rc = err_set(err, RC_CORRUPT, "message was cut");
	else
		rc = priv_message_check(buffer, (size_t)n, err);
	if (rc != RC_OK) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		return rc;
	}
	*header = buffer;
	*body = (const char *)buffer + sizeof(struct priv_header);
	return RC_OK;
}
