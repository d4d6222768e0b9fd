#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/parse.h"
#include "priv/file.h"
#include "priv/inuse.h"
#include "priv/target.h"

static void hash_of(const char *const *parts, size_t count, char *out, size_t size) {
	char hash[ID_HASH_SIZE];

	id_hash(parts, count, hash);
	str_copy(out, size, hash);
}

/* The kernel counts the disks that it has seen since the boot: another disk under the same name,
 * and another medium or backing file, has another number. */
static void make_serial(
	const struct sysfs_root *root, const char *name, const char *path, struct priv_found *out) {
	char sequence[32];
	const char *const parts[] = {path, sequence};

	if (!sysfs_read(sequence, sizeof(sequence), "%s/class/block/%s/diskseq", root->sys, name))
		sysfs_read(sequence, sizeof(sequence), "%s/class/block/%s/../diskseq", root->sys,
			name);
	hash_of(parts, array_len(parts), out->drive.serial, sizeof(out->drive.serial));
}

static void read_serial(
	const struct sysfs_root *root, const char *name, const char *path, struct priv_found *out) {
	static const char *const attributes[] = {"device/serial", "serial", "device/wwid", "wwid"};
	char text[128];

	for (size_t i = 0; i < array_len(attributes); i++) {
		if (!sysfs_read(text, sizeof(text), "%s/class/block/%s/%s", root->sys, name,
			    attributes[i]) ||
			text[0] == '\0')
			continue;
		if (strlen(text) < sizeof(out->drive.serial))
			str_copy_padded(
				out->drive.serial, sizeof(out->drive.serial), text, strlen(text));
		else
			hash_of((const char *const[]){text}, 1, out->drive.serial,
				sizeof(out->drive.serial));
		return;
	}
	make_serial(root, name, path, out);
}

static enum rc read_block(
	const struct sysfs_root *root, const char *path, struct priv_found *out, struct err *err) {
	char name[SYSFS_NAME_SIZE], text[64];
	struct sysfs_block block;
	enum rc rc = inuse_resolve(root, path, name, err);

	if (rc != RC_OK)
		return rc;
	if (strncmp(name, "nvme", 4) == 0)
		return err_set(err, RC_INVALID, "%s belongs to an NVMe drive, use that", path);
	if (!sysfs_block_read(root, name, &block))
		return err_set(err, RC_NOT_FOUND, "%s is gone", path);
	out->drive.kind = DRIVE_BLOCK;
	read_serial(root, name, path, out);
	sysfs_read(text, sizeof(text), "%s/class/block/%s/device/model", root->sys, name);
	str_copy_padded(out->model, sizeof(out->model), text, strlen(text));
	str_copy(out->transport, sizeof(out->transport), "block");
	str_copy(out->address, sizeof(out->address), name);
	out->capacity_bytes = block.size_bytes;
	return RC_OK;
}

static enum rc read_file(const char *path, struct priv_found *out, struct err *err) {
	auto_close int fd = -1;
	struct stat st;
	enum rc rc = file_find(path, &fd, err);

	if (rc == RC_OK)
		rc = file_serial(path, fd, out->drive.serial, err);
	if (rc != RC_OK)
		return rc;
	if (fstat(fd, &st) != 0)
		return err_errno(err, errno, path);
	out->drive.kind = DRIVE_FILE;
	str_copy(out->transport, sizeof(out->transport), "file");
	str_copy(out->address, sizeof(out->address), strrchr(path, '/') + 1);
	out->capacity_bytes = (uint64_t)st.st_size;
	return RC_OK;
}

enum rc target_read(const struct sysfs_root *root, const char *path, unsigned index,
	struct priv_found *out, struct err *err) {
	size_t dev = strlen(root->dev);
	bool below_dev = strncmp(path, root->dev, dev) == 0 && path[dev] == '/';
	enum rc rc;

	memset(out, 0, sizeof(*out));
	rc = below_dev ? read_block(root, path, out, err) : read_file(path, out, err);
	if (rc != RC_OK)
		return rc;
	snprintf(out->drive.name, sizeof(out->drive.name), "t%u", index);
	str_copy(out->sysfs_state, sizeof(out->sysfs_state), "live");
	out->numa_node = -1;
	out->subsystem_controllers = 1;
	return RC_OK;
}
