#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "priv/drives.h"
#include "priv/file.h"
#include "priv/inuse.h"
#include "priv/limits.h"
#include "priv/nvme.h"
#include "priv/target.h"

/* --- finding --------------------------------------------------------------------------------- */

static void note(char reason[128], const struct err *err) {
	if (reason[0] == '\0')
		str_copy(reason, 128, err->msg);
}

static void add_targets(
	const struct drives *d, struct priv_found *out, size_t *count, char reason[128]) {
	struct err err = {0};

	for (unsigned i = 0; i < d->config->target_count; i++) {
		if (target_read(d->root, d->config->targets[i], i, &out[*count], &err) == RC_OK)
			++*count;
		else
			note(reason, &err);
	}
}

enum rc drives_enumerate(const struct drives *d, struct priv_found **out, size_t *count,
	char reason[128], struct err *err) {
	struct priv_found *grown;
	bool cut = false;
	enum rc rc;

	*out = NULL;
	*count = 0;
	reason[0] = '\0';
	if (d->config->no_devices)
		return RC_OK;
	rc = sysfs_controllers(d->root, out, count, &cut, err);
	if (rc != RC_OK)
		return rc;
	if (cut)
		snprintf(reason, 128, "only the first %d controllers are looked at",
			SYSFS_MAX_CONTROLLERS);
	grown = realloc(*out, (*count + d->config->target_count + 1) * sizeof(*grown));
	if (!grown) {
		free(*out);
		return err_set(err, RC_NOMEM, "no memory for the list of drives");
	}
	*out = grown;
	add_targets(d, grown, count, reason);
	if (*count == 0 && reason[0] == '\0')
		str_copy(reason, 128, "this machine has no NVMe controller");
	return RC_OK;
}

static enum rc find_target(const struct drives *d, const struct priv_drive_ref *ref,
	struct priv_found *out, struct err *err) {
	int64_t index = -1;

	if (ref->name[0] != 't' ||
		parse_i64(ref->name + 1, 0, (int64_t)d->config->target_count - 1, &index, "name",
			NULL) != RC_OK)
		return err_set(err, RC_NOT_FOUND, "no target %s", ref->name);
	return target_read(d->root, d->config->targets[index], (unsigned)index, out, err);
}

enum rc drives_find(const struct drives *d, const struct priv_drive_ref *ref,
	struct priv_found *out, struct err *err) {
	enum rc rc;

	if (d->config->no_devices || ref->kind == DRIVE_SIMULATED)
		return err_set(err, RC_NOT_FOUND, "no device %s", ref->name);
	if (ref->kind == DRIVE_NVME)
		rc = sysfs_controller_read(d->root, ref->name, out, err);
	else
		rc = find_target(d, ref, out, err);
	if (rc != RC_OK)
		return rc;
	if (out->drive.kind != ref->kind || strcmp(out->drive.serial, ref->serial) != 0)
		return err_set(err, RC_NOT_FOUND,
			"another %s is %s now than the one with serial %s",
			out->drive.kind == DRIVE_FILE ? "file" : "drive", ref->name, ref->serial);
	return RC_OK;
}

bool drives_serial_is_unique(const struct drives *d, const struct priv_found *found) {
	auto_free struct priv_found *all = NULL;
	char reason[128];
	size_t count, same = 0;

	if (drives_enumerate(d, &all, &count, reason, NULL) != RC_OK)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].drive.serial, found->drive.serial) == 0 &&
			(strcmp(all[i].drive.name, found->drive.name) == 0 ||
				found->subsystem_nqn[0] == '\0' ||
				strcmp(all[i].subsystem_nqn, found->subsystem_nqn) != 0))
			same++;
	return same == 1;
}

/* --- namespaces ------------------------------------------------------------------------------ */

static void look_at_namespace(const struct drives *d, const struct priv_found *found,
	const struct sysfs_namespace *from, struct drive_namespace *ns) {
	memset(ns, 0, sizeof(*ns));
	ns->nsid = from->nsid;
	snprintf(ns->path, sizeof(ns->path), "/dev/%.*s", (int)sizeof(ns->path) - 6, from->name);
	inuse_block(d->root, d->openers, from->name, ns);
	if (found->subsystem_controllers > 1)
		use_add(ns, USE_SHARED, "%u controllers reach it", found->subsystem_controllers);
}

static enum rc find_nvme_namespace(const struct drives *d, const struct priv_found *found,
	uint32_t nsid, struct sysfs_namespace *out, struct err *err) {
	struct sysfs_namespace all[64];
	bool cut;
	size_t count = sysfs_namespaces(d->root, found->drive.name, all, array_len(all), &cut);

	for (size_t i = 0; i < count; i++)
		if (all[i].nsid == nsid) {
			*out = all[i];
			return RC_OK;
		}
	return err_set(err, RC_NOT_FOUND, "%s has no namespace %u", found->drive.name, nsid);
}

static const char *target_path(const struct drives *d, const struct priv_found *found) {
	int64_t index;

	if (parse_i64(found->drive.name + 1, 0, (int64_t)d->config->target_count - 1, &index,
		    "name", NULL) != RC_OK)
		return "";
	return d->config->targets[index];
}

/* *fd: a file, opened; -1 of a block device, which is looked at by its name. */
static enum rc look_at_target(const struct drives *d, const struct priv_found *found,
	const char *path, int *fd, struct drive_namespace *ns, struct err *err) {
	enum rc rc;

	memset(ns, 0, sizeof(*ns));
	*fd = -1;
	if (found->drive.kind == DRIVE_BLOCK) {
		snprintf(ns->path, sizeof(ns->path), "/dev/%.*s", (int)sizeof(ns->path) - 6,
			found->address);
		inuse_block(d->root, d->openers, found->address, ns);
		return RC_OK;
	}
	rc = file_open(path, found->drive.serial, fd, err);
	if (rc != RC_OK)
		return rc;
	str_copy(ns->path, sizeof(ns->path), found->address);
	inuse_file(d->root, d->openers, *fd, ns);
	return RC_OK;
}

enum rc drives_path(const struct drives *d, const struct priv_found *found, uint32_t nsid,
	char *path, size_t path_size, struct err *err) {
	struct sysfs_namespace from;
	enum rc rc;

	if (found->drive.kind != DRIVE_NVME) {
		str_copy(path, path_size, target_path(d, found));
		return RC_OK;
	}
	rc = find_nvme_namespace(d, found, nsid, &from, err);
	if (rc == RC_OK)
		snprintf(path, path_size, "%s/%s", d->root->dev, from.name);
	return rc;
}

enum rc drives_namespace(const struct drives *d, const struct priv_found *found, uint32_t nsid,
	struct drive_namespace *ns, struct err *err) {
	struct sysfs_namespace from;
	auto_close int fd = -1;
	enum rc rc;

	if (found->drive.kind != DRIVE_NVME)
		return look_at_target(d, found, target_path(d, found), &fd, ns, err);
	rc = find_nvme_namespace(d, found, nsid, &from, err);
	if (rc == RC_OK)
		look_at_namespace(d, found, &from, ns);
	return rc;
}

/* --- operations ------------------------------------------------------------------------------ */

static int open_device(const char *path) {
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void add_signature(int fd, struct drive_namespace *ns) {
	if (fd < 0)
		use_add(ns, USE_UNKNOWN, "it could not be opened to look for signatures");
	else
		inuse_signature(fd, ns);
}

static void add_sharing(int controller, uint32_t nsid, int fd, struct drive_namespace *ns) {
	struct nvme_sharing sharing;
	struct err err = {0};

	if (nvme_namespace_sharing(controller, fd, nsid, &sharing, &err) != RC_OK)
		use_add(ns, USE_UNSEEN, "who shares it could not be asked: %s", err.msg);
	if (sharing.attachable)
		use_add(ns, USE_SHARED, "the drive lets other controllers attach it");
	if (sharing.registrants > 0 || sharing.reservation > 0)
		use_add(ns, USE_RESERVED, "%u registered for reservations, held: %s",
			sharing.registrants, nvme_reservation_name(sharing.reservation));
}

void drives_add_sharing(
	const struct priv_found *found, uint32_t nsid, int fd, struct drive_namespace *ns) {
	auto_close int controller = -1;
	struct err err = {0};

	if (nvme_drive_open(found->drive.name, &controller, &err) != RC_OK)
		use_add(ns, USE_UNSEEN, "who shares it could not be asked: %s", err.msg);
	else
		add_sharing(controller, nsid, fd, ns);
}

static void add_nvme_namespaces(const struct drives *d, const struct priv_found *found,
	int controller, struct drive_detail *detail) {
	struct sysfs_namespace all[DRIVE_MAX_NAMESPACES];
	char path[PATH_MAX];
	size_t count = sysfs_namespaces(
		d->root, found->drive.name, all, DRIVE_MAX_NAMESPACES, &detail->namespaces_cut);

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", d->root->dev, all[i].name);
		look_at_namespace(d, found, &all[i], &detail->namespaces[i]);
		auto_close int fd = open_device(path);
		add_signature(fd, &detail->namespaces[i]);
		add_sharing(controller, all[i].nsid, fd, &detail->namespaces[i]);
	}
	detail->namespace_count = (uint8_t)count;
}

static enum rc identify_target(const struct drives *d, const struct priv_found *found,
	struct drive_detail *detail, struct err *err) {
	const char *path = target_path(d, found);
	auto_close int fd = -1;
	enum rc rc = look_at_target(d, found, path, &fd, &detail->namespaces[0], err);

	if (rc != RC_OK)
		return rc;
	if (found->drive.kind == DRIVE_BLOCK)
		fd = open_device(path);
	add_signature(fd, &detail->namespaces[0]);
	detail->scale = 1;
	detail->warning_c = detail->critical_c = NONE;
	detail->tmt_min_c = detail->tmt_max_c = NONE;
	detail->namespace_count = 1;
	return RC_OK;
}

static enum rc command(
	int fd, const struct priv_drive_op *op, struct priv_drive_reply *reply, struct err *err) {
	enum rc rc;
	int state;

	switch ((enum priv_verb)op->verb) {
	case PRIV_VERB_IDENTIFY:
		return nvme_drive_identify(fd, &reply->u.detail, err);
	case PRIV_VERB_SMART:
		return nvme_drive_smart(fd, op->logs, op->uuid_index, &reply->u.health, err);
	case PRIV_VERB_POWER_SET:
		rc = limits_set(fd, op, err);
		if (rc != RC_OK)
			return rc;
		break;
	case PRIV_VERB_POWER_GET:
	case PRIV_VERB_COUNT_:
		break;
	}
	rc = nvme_drive_power_get(fd, &state, err);
	if (rc == RC_OK)
		rc = limits_get(
			fd, (enum power_means)op->means, op->uuid_index, &reply->limit_mw, err);
	if (rc == RC_OK)
		reply->power_state = state;
	return rc;
}

/* Is the drive in a state in which it is not to be asked this? Reading the state itself wakes no
 * drive: it is an admin command without data. */
static bool is_asleep(int fd, const struct priv_drive_op *op, struct priv_drive_reply *reply) {
	int state;

	if (op->asleep == 0 || (op->verb != PRIV_VERB_IDENTIFY && op->verb != PRIV_VERB_SMART) ||
		nvme_drive_power_get(fd, &state, NULL) != RC_OK || !(op->asleep >> state & 1))
		return false;
	reply->asleep = true;
	reply->power_state = state;
	return true;
}

static enum rc nvme_op(const struct drives *d, const struct priv_found *found,
	const struct priv_drive_op *op, struct priv_drive_reply *reply, struct err *err) {
	auto_close int fd = -1;
	enum rc rc = nvme_drive_open(found->drive.name, &fd, err);

	if (rc != RC_OK || is_asleep(fd, op, reply))
		return rc;
	rc = command(fd, op, reply, err);
	if (rc == RC_OK && op->verb == PRIV_VERB_IDENTIFY)
		add_nvme_namespaces(d, found, fd, &reply->u.detail);
	return rc;
}

static enum rc perform(const struct drives *d, const struct priv_drive_op *op,
	struct priv_drive_reply *reply, struct err *err) {
	struct priv_found found;
	enum rc rc;

	if (d->config->observe_only && op->verb == PRIV_VERB_POWER_SET)
		return err_set(err, RC_FORBIDDEN, "the server only observes");
	rc = drives_find(d, &op->drive, &found, err);
	if (rc != RC_OK)
		return rc;
	if (found.drive.kind == DRIVE_NVME)
		return nvme_op(d, &found, op, reply, err);
	if (op->verb != PRIV_VERB_IDENTIFY)
		return err_set(err, RC_UNSUPPORTED, "%s is a plain device or file", op->drive.name);
	return identify_target(d, &found, &reply->u.detail, err);
}

void drives_op(
	const struct drives *d, const struct priv_drive_op *op, struct priv_drive_reply *reply) {
	struct err err = {0};

	reply->verb = op->verb;
	reply->power_state = -1;
	reply->limit_mw = NONE;
	reply->rc = (int32_t)perform(d, op, reply, &err);
	if (reply->rc == RC_OK)
		return;
	reply->nvme_status = err.nvme_status;
	str_copy(reply->msg, sizeof(reply->msg), err.msg);
}
