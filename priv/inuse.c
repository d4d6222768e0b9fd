#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/parse.h"
#include "priv/inuse.h"
#include "priv/kernel_uses.h"
#include "priv/procfs.h"

#define FAMILY_MAX 256 /* a disk, its partitions, and what sits on and under them */

/* In order of kind, so that a mount is what people are told first. */
static void insert(struct drive_namespace *ns, const struct drive_use *use) {
	uint8_t at = 0;

	while (at < ns->use_count && ns->uses[at].kind <= use->kind)
		at++;
	if (at == DRIVE_MAX_USES)
		return;
	if (ns->use_count < DRIVE_MAX_USES)
		ns->use_count++;
	memmove(&ns->uses[at + 1], &ns->uses[at],
		(size_t)(ns->use_count - 1 - at) * sizeof(ns->uses[0]));
	ns->uses[at] = *use;
}

void use_add(struct drive_namespace *ns, enum use_kind kind, const char *fmt, ...) {
	struct drive_use use = {.kind = (uint8_t)kind};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(use.detail, sizeof(use.detail), fmt, ap);
	va_end(ap);
	for (uint8_t i = 0; i < ns->use_count; i++)
		if (ns->uses[i].kind == kind && strcmp(ns->uses[i].detail, use.detail) == 0)
			return;
	insert(ns, &use);
}

/* --- paths ----------------------------------------------------------------------------------- */

/* "/dev/x" of the real or of a test's tree → the kernel's name "x"; '/' is '!' there. */
static bool name_of_node(const struct sysfs_root *root, const char *canonical, char *name) {
	size_t lead = strlen(root->dev);

	if (strncmp(canonical, root->dev, lead) != 0 || canonical[lead] != '/' ||
		!str_copy(name, SYSFS_NAME_SIZE, canonical + lead + 1))
		return false;
	for (char *slash = name; (slash = strchr(slash, '/')) != NULL;)
		*slash = '!';
	return true;
}

enum rc inuse_resolve(const struct sysfs_root *root, const char *path, char name[SYSFS_NAME_SIZE],
	struct err *err) {
	char canonical[PATH_MAX];
	struct sysfs_block block;

	if (strchr(path, ':'))
		return err_set(err, RC_INVALID, "%s: a colon would separate several files", path);
	if (!realpath(path, canonical))
		return err_errno(err, errno, path);
	if (strcmp(path, canonical) != 0)
		return err_set(err, RC_INVALID, "%s is not canonical, %s is", path, canonical);
	if (!name_of_node(root, canonical, name) || !sysfs_block_read(root, name, &block))
		return err_set(err, RC_INVALID, "%s is not a block device", path);
	if (block.hidden)
		return err_set(err, RC_INVALID, "%s is a hidden path of a multipath device", path);
	return RC_OK;
}

/* --- the disk and its relatives -------------------------------------------------------------- */

struct member {
	char name[SYSFS_NAME_SIZE];
	dev_t dev;
	char generic[SYSFS_NAME_SIZE]; /* a namespace's character device, "" none */
	dev_t generic_dev;
};

struct family {
	const struct sysfs_root *root;
	struct drive_namespace *ns;
	size_t count;
	struct member members[FAMILY_MAX];
};

static bool any_name(unused_arg const char *name) {
	return true;
}

static const struct member *family_find(const struct family *f, const char *name) {
	for (size_t i = 0; i < f->count; i++)
		if (strcmp(f->members[i].name, name) == 0)
			return &f->members[i];
	return NULL;
}

/* "nvme0n1" → "ng0n1", another way to the same blocks that knows no exclusive open. */
static void find_generic(const struct family *f, const char *name, struct member *m) {
	unsigned dev_major, dev_minor;
	char generic[SYSFS_NAME_SIZE] = "ng", text[32];

	if (strncmp(name, "nvme", 4) != 0)
		return;
	str_copy(generic + 2, sizeof(generic) - 2, name + 4);
	if (!sysfs_read(
		    text, sizeof(text), "%s/class/nvme-generic/%s/dev", f->root->sys, generic) ||
		sscanf(text, "%u:%u", &dev_major, &dev_minor) != 2)
		return;
	str_copy(m->generic, sizeof(m->generic), generic);
	m->generic_dev = makedev(dev_major, dev_minor);
}

static void family_add(struct family *f, const char *name) {
	struct sysfs_block block;
	struct member *m;

	if (family_find(f, name))
		return;
	if (f->count == FAMILY_MAX || !sysfs_block_read(f->root, name, &block)) {
		use_add(f->ns, USE_UNKNOWN, "%s could not be looked at", name);
		return;
	}
	m = &f->members[f->count++];
	str_copy(m->name, sizeof(m->name), name);
	m->dev = makedev(block.dev_major, block.dev_minor);
	find_generic(f, name, m);
}

static size_t block_entries(const struct family *f, const char *name, const char *folder,
	char (*names)[SYSFS_NAME_SIZE]) {
	char dir[PATH_MAX];
	size_t count;
	bool cut;

	snprintf(dir, sizeof(dir), "%s/class/block/%s/%s", f->root->sys, name, folder);
	count = sysfs_list(dir, any_name, names, FAMILY_MAX, &cut);
	if (cut)
		use_add(f->ns, USE_UNKNOWN, "%s has too many relatives", name);
	return count;
}

/* One use for all of them: a long list must not push out what says more. */
static void add_partitions(struct family *f, const char *name) {
	char names[FAMILY_MAX][SYSFS_NAME_SIZE], number[16];
	size_t count = block_entries(f, name, "", names), partitions = 0;

	for (size_t i = 0; i < count; i++) {
		if (!sysfs_read(number, sizeof(number), "%s/class/block/%s/%s/partition",
			    f->root->sys, name, names[i]))
			continue;
		family_add(f, names[i]);
		partitions++;
	}
	if (partitions > 0)
		use_add(f->ns, USE_PARTITION, "%s has %zu partition(s)", name, partitions);
}

static void add_holders(struct family *f, const char *name) {
	char names[FAMILY_MAX][SYSFS_NAME_SIZE], dm[64];
	size_t count = block_entries(f, name, "holders", names);

	for (size_t i = 0; i < count; i++) {
		family_add(f, names[i]);
		if (sysfs_read(dm, sizeof(dm), "%s/class/block/%s/dm/name", f->root->sys, names[i]))
			use_add(f->ns, USE_HOLDER, "%s is held by %s (%s)", name, names[i], dm);
		else
			use_add(f->ns, USE_HOLDER, "%s is held by %s", name, names[i]);
	}
}

static void add_slaves(struct family *f, const char *name) {
	char names[FAMILY_MAX][SYSFS_NAME_SIZE];
	size_t count = block_entries(f, name, "slaves", names);

	for (size_t i = 0; i < count; i++)
		family_add(f, names[i]);
}

/* Upwards all that hangs on the disk, downwards only what carries it: a slave's other holders
 * are not ours. */
static void family_collect(struct family *f, const char *disk) {
	size_t lower;

	family_add(f, disk);
	for (size_t i = 0; i < f->count; i++) {
		add_partitions(f, f->members[i].name);
		add_holders(f, f->members[i].name);
	}
	lower = f->count;
	add_slaves(f, disk);
	for (size_t i = lower; i < f->count; i++)
		add_slaves(f, f->members[i].name);
}

/* --- mounts and swap ------------------------------------------------------------------------- */

/* A member named by a path, through links: "/dev/disk/by-id/…", "/dev/mapper/…". */
static const struct member *family_by_path(const struct family *f, const char *path) {
	char moved[PATH_MAX], canonical[PATH_MAX], name[SYSFS_NAME_SIZE];

	if (strncmp(path, "/dev/", 5) != 0)
		return NULL;
	snprintf(moved, sizeof(moved), "%s/%s", f->root->dev, path + 5);
	if (!realpath(moved, canonical) || !name_of_node(f->root, canonical, name))
		return NULL;
	return family_find(f, name);
}

static const struct member *family_by_number(const struct family *f, dev_t dev) {
	for (size_t i = 0; i < f->count; i++)
		if (f->members[i].dev == dev)
			return &f->members[i];
	return NULL;
}

/* "36 35 259:2 / /srv rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw": btrfs and the like show a
 * number of their own, so the source is looked at too. */
static void check_mount(void *family, char *line) {
	struct family *f = family;
	unsigned dev_major, dev_minor;
	const struct member *m;
	char *source, *where, *rest;
	int root_at = 0;

	if (sscanf(line, "%*d %*d %u:%u %n", &dev_major, &dev_minor, &root_at) != 2 || !root_at)
		return;
	where = strchr(line + root_at, ' ');
	rest = strstr(line, " - ");
	source = rest ? strchr(rest + 3, ' ') : NULL;
	if (!where || !source)
		return;
	*rest = '\0';
	where++;
	where[strcspn(where, " ")] = '\0';
	source++;
	source[strcspn(source, " \n")] = '\0';
	procfs_unescape(where);
	procfs_unescape(source);
	m = family_by_number(f, makedev(dev_major, dev_minor));
	if (!m)
		m = family_by_path(f, source);
	if (m)
		use_add(f->ns, USE_MOUNT, "%s mounted on %s", m->name, where);
}

static void check_swap(void *family, char *line) {
	struct family *f = family;
	const struct member *m;

	line[strcspn(line, " \t\n")] = '\0';
	procfs_unescape(line);
	m = family_by_path(f, line);
	if (m)
		use_add(f->ns, USE_SWAP, "swap on %s", m->name);
}

/* --- whoever has one of them
 * -------------------------------------------------------------------------------- */

static const char *match_member(const void *family, const struct inode_ref *what) {
	const struct family *f = family;
	const struct member *m;

	if (what->type == S_IFBLK) {
		m = family_by_number(f, what->dev);
		return m ? m->name : NULL;
	}
	for (size_t i = 0; what->type == S_IFCHR && i < f->count; i++)
		if (f->members[i].generic[0] && f->members[i].generic_dev == what->dev)
			return f->members[i].generic;
	return NULL;
}

/* --- all together ----------------------------------------------------------------------------- */

void inuse_block(const struct sysfs_root *root, struct openers *openers, const char *name,
	struct drive_namespace *ns) {
	struct sysfs_block block;
	auto_free struct family *f = calloc(1, sizeof(*f));

	if (!f || !sysfs_block_read(root, name, &block)) {
		use_add(ns, USE_UNKNOWN, "%s is not in sysfs", name);
		return;
	}
	ns->size_bytes = block.size_bytes;
	ns->lba_bytes = block.lba_bytes;
	ns->dev_major = block.dev_major;
	ns->dev_minor = block.dev_minor;
	ns->zoned = block.zoned;
	f->root = root;
	f->ns = ns;
	family_collect(f, name);
	if (!procfs_each_line(root, "self/mountinfo", check_mount, f))
		use_add(ns, USE_UNKNOWN, "the mounts could not be read");
	/* Ours may be a mount namespace of its own, as services and containers have it. */
	if (!procfs_each_line(root, "1/mountinfo", check_mount, f))
		use_add(ns, USE_UNSEEN, "the mounts of the machine's init could not be read");
	if (!procfs_each_line(root, "swaps", check_swap, f) && errno != ENOENT)
		use_add(ns, USE_UNKNOWN, "the swap areas could not be read");
	if (block.zoned)
		use_add(ns, USE_ZONED, "%s has host-managed zones", name);
	kernel_uses_add(root, match_member, f, ns);
	if (openers)
		openers_add_uses(openers, match_member, f, ns);
}
