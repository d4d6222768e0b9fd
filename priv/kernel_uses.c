#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/parse.h"
#include "priv/inuse.h"
#include "priv/kernel_uses.h"

#define LOOPS_MAX 1024
#define NAMESPACES_MAX 64

struct query {
	const struct sysfs_root *root;
	inode_match *match;
	const void *arg;
	struct drive_namespace *ns;
};

static const char *match_inode(const struct query *q, mode_t type, dev_t dev, ino_t ino) {
	const struct inode_ref what = {.type = type, .dev = dev, .ino = ino};

	return q->match(q->arg, &what);
}

/* --- loop devices ----------------------------------------------------------------------------- */

static bool is_loop(const char *name) {
	return strncmp(name, "loop", 4) == 0;
}

/* For a file, the number of the device is that of its file system, or none. */
static const char *match_backing(const struct query *q, const struct loop_info64 *info) {
	if (info->lo_rdevice && info->lo_rdevice != info->lo_device)
		return match_inode(q, S_IFBLK, info->lo_rdevice, 0);
	return match_inode(q, S_IFREG, info->lo_device, info->lo_inode);
}

/* sysfs tells a path as it was in the mount namespace of whoever set the device up. */
static void check_loop(const struct query *q, const char *name) {
	struct loop_info64 info;
	char path[PATH_MAX];
	const char *below;

	snprintf(path, sizeof(path), "%s/%s", q->root->dev, name);
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) != 0) {
		if (fd < 0 || errno != ENXIO)
			use_add(q->ns, USE_UNSEEN, "%s could not be asked what it is made of",
				name);
		return;
	}
	below = match_backing(q, &info);
	if (below)
		use_add(q->ns, USE_HOLDER, "%s is made of %s", name, below);
}

static void check_loops(const struct query *q) {
	auto_free char(*names)[SYSFS_NAME_SIZE] = calloc(LOOPS_MAX, SYSFS_NAME_SIZE);
	char dir[PATH_MAX], backing[16];
	size_t count;
	bool cut = true;

	snprintf(dir, sizeof(dir), "%s/class/block", q->root->sys);
	count = names ? sysfs_list(dir, is_loop, names, LOOPS_MAX, &cut) : 0;
	if (cut)
		use_add(q->ns, USE_UNSEEN, "the loop devices could not all be looked at");
	for (size_t i = 0; i < count; i++)
		if (sysfs_read(backing, sizeof(backing), "%s/%s/loop/backing_file", dir, names[i]))
			check_loop(q, names[i]);
}

/* --- exports ---------------------------------------------------------------------------------- */

static const struct exporter {
	const char *module, *folder, *pattern; /* of attributes that name what is exported */
	const char *words;
} exporters[] = {
	{"nvmet", "nvmet", "subsystems/*/namespaces/*/device_path", "nvmet exports"},
	{"nvmet", "nvmet", "subsystems/*/passthru/device_path", "nvmet passes on"},
	{"target_core_mod", "target", "core/*/*/udev_path", "LIO exports"},
};

static const char *match_block(const struct query *q, const char *name) {
	struct sysfs_block block;

	if (!sysfs_block_read(q->root, name, &block) || block.hidden)
		return NULL;
	return match_inode(q, S_IFBLK, makedev(block.dev_major, block.dev_minor), 0);
}

static const char *match_controller(const struct query *q, const char *name) {
	struct sysfs_namespace all[NAMESPACES_MAX];
	const char *found = NULL;
	bool cut;
	size_t count = sysfs_namespaces(q->root, name, all, NAMESPACES_MAX, &cut);

	for (size_t i = 0; i < count && !found; i++)
		found = match_block(q, all[i].name);
	return found;
}

/* By what stands there; by the kernel's name where the path means nothing here. */
static const char *match_path(const struct query *q, const char *path) {
	const char *name = strrchr(path, '/');
	struct stat st;

	name = name ? name + 1 : path;
	if (sysfs_is_controller_name(name))
		return match_controller(q, name);
	if (stat(path, &st) != 0)
		return match_block(q, name);
	if (S_ISREG(st.st_mode))
		return match_inode(q, S_IFREG, st.st_dev, st.st_ino);
	return match_inode(q, st.st_mode & S_IFMT, st.st_rdev, 0);
}

static void check_exports(const struct query *q, const struct exporter *e) {
	char pattern[PATH_MAX], path[PATH_MAX];
	const char *name;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/kernel/config/%s/%s", q->root->sys, e->folder,
		e->pattern);
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		sysfs_read(path, sizeof(path), "%s", found.gl_pathv[i]);
		name = path[0] ? match_path(q, path) : NULL;
		if (name)
			use_add(q->ns, USE_EXPORT, "%s %s", e->words, name);
	}
	globfree(&found);
}

static bool is_there(const struct sysfs_root *root, const char *folder, const char *name) {
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/%s", root->sys, folder, name);
	return access(path, F_OK) == 0;
}

static void check_exporter(const struct query *q, const struct exporter *e) {
	if (is_there(q->root, "module", e->module) &&
		!is_there(q->root, "kernel/config", e->folder))
		use_add(q->ns, USE_UNSEEN, "%s is loaded, what it exports cannot be seen",
			e->module);
	check_exports(q, e);
}

void kernel_uses_add(const struct sysfs_root *root, inode_match *match, const void *arg,
	struct drive_namespace *ns) {
	const struct query q = {.root = root, .match = match, .arg = arg, .ns = ns};

	check_loops(&q);
	for (size_t i = 0; i < array_len(exporters); i++)
		check_exporter(&q, &exporters[i]);
}
