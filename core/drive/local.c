#include <string.h>

#include "base/metrics.h"
#include "base/parse.h"
#include "core/drive.h"
#include "core/privc.h"

/* --- scanning --- */

struct scan {
	void (*found)(void *arg, const struct drive_found *f);
	void (*done)(void *arg, enum rc rc, const char *reason);
	void *arg;
};

/* "new", "resetting", "connecting" pass; what is being deleted or is dead does not come back. */
static enum drive_state state_of(const char *sysfs) {
	if (strcmp(sysfs, "live") == 0)
		return DRIVE_LIVE;
	return strncmp(sysfs, "de", 2) == 0 ? DRIVE_FAILED : DRIVE_RESETTING;
}

static void on_found(void *arg, const struct priv_found *f) {
	const struct scan *s = arg;
	struct drive_found out = {
		.drive = {.kind = f->drive.kind,
			.state = (uint8_t)state_of(f->sysfs_state),
			.numa_node = f->numa_node,
			.capacity_bytes = f->capacity_bytes},
		.cntlid = f->cntlid,
		/* Fabrics hand the ids out anew at each connection. */
		.cntlid_matters = f->subsystem_controllers > 1 && strcmp(f->transport, "pcie") == 0,
	};
	str_copy(out.drive.name, sizeof(out.drive.name), f->drive.name);
	str_copy(out.drive.serial, sizeof(out.drive.serial), f->drive.serial);
	str_copy(out.drive.model, sizeof(out.drive.model), f->model);
	str_copy(out.drive.firmware, sizeof(out.drive.firmware), f->firmware);
	str_copy(out.drive.transport, sizeof(out.drive.transport), f->transport);
	str_copy(out.drive.address, sizeof(out.drive.address), f->address);
	str_copy(out.drive.slot, sizeof(out.drive.slot), f->slot);
	str_copy(out.subsystem_nqn, sizeof(out.subsystem_nqn), f->subsystem_nqn);
	s->found(s->arg, &out);
}

static void on_done(void *arg, enum rc rc, const struct priv_enumerated *e) {
	struct scan *s = arg;
	s->done(s->arg, rc, e->reason);
	free(s);
}

static enum rc scan(void *self, void (*found)(void *arg, const struct drive_found *f),
	void (*done)(void *arg, enum rc rc, const char *reason), void *arg, struct err *err) {
	struct scan *s = malloc(sizeof(*s));
	if (!s)
		return err_set(err, RC_NOMEM, "out of memory");
	*s = (struct scan){found, done, arg};
	const enum rc rc = privc_enumerate(self, on_found, on_done, s, err);
	if (rc)
		free(s);
	return rc;
}

/* --- commands --- */

struct call {
	drive_reply_fn *fn;
	void *arg;
};

static const enum priv_verb verbs[] = {
	[DRIVE_IDENTIFY] = PRIV_VERB_IDENTIFY,
	[DRIVE_POWER_GET] = PRIV_VERB_POWER_GET,
	[DRIVE_POWER_SET] = PRIV_VERB_POWER_SET,
	[DRIVE_SMART] = PRIV_VERB_SMART,
};

static void on_reply(void *arg, const struct priv_drive_reply *r, bool late) {
	struct call *c = arg;
	const enum rc rc = (enum rc)r->rc;
	struct drive_reply out = {
		.rc = rc,
		.late = late,
		.more = !late && rc == RC_TIMEOUT && r->more,
		.power_state = r->power_state,
		.limit_mw = r->limit_mw,
	};
	if (rc) {
		err_set(&out.err, rc, "%s", r->msg);
		out.err.nvme_status = r->nvme_status;
	} else if (r->asleep) {
		out.asleep = true;
	} else if (r->verb == PRIV_VERB_IDENTIFY) {
		out.detail = &r->u.detail;
	} else if (r->verb == PRIV_VERB_SMART) {
		out.health = &r->u.health;
	}
	c->fn(c->arg, &out);
	if (!out.more)
		free(c);
}

static enum rc submit(void *self, const struct drive *d, const struct drive_question *q,
	drive_reply_fn *fn, void *arg, struct err *err) {
	struct priv_drive_op op = {
		.drive = {.kind = d->kind},
		.verb = verbs[q->verb],
		.means = q->means,
		.uuid_index = q->uuid_index,
		.logs = q->logs,
		.asleep = q->asleep,
		.power_state = q->setting.state,
		.fallback_state = q->setting.fallback_state,
		.limit_mw = q->setting.limit_mw,
	};
	str_copy(op.drive.name, sizeof(op.drive.name), d->name);
	str_copy(op.drive.serial, sizeof(op.drive.serial), d->serial);
	struct call *c = malloc(sizeof(*c));
	if (!c)
		return err_set(err, RC_NOMEM, "out of memory");
	*c = (struct call){fn, arg};
	const enum rc rc = privc_drive_op(self, &op, on_reply, c, err);
	if (rc)
		free(c);
	return rc;
}

struct drive_source drive_local_source(struct privc *p) {
	static const struct drive_target_ops ops = {submit};
	return (struct drive_source){&ops, p, scan};
}

/* --- what the kernel tells --- */

static void on_hint(void *arg, const struct priv_hint *hint) {
	metric_add(METRIC_DRIVE_HINTS, 1);
	metric_add(METRIC_DRIVE_HINTS_LOST, hint->lost);
	drives_hint(arg, hint->name, hint->reset);
}

void drive_local_watch(struct privc *p, struct drives *ds) {
	privc_watch(p, on_hint, ds);
}
