#include <fcntl.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <cmocka.h>

#include "priv/consent.h"
#include "priv/inuse.h"
#include "tests/support/fake_tree.h"
#include "tests/support/stranger.h"

/* --- a machine with every way to be in use ---------------------------------------------------- */

static struct fake_tree tree;
static struct sysfs_root root;

static void add_block(const char *name, unsigned major, unsigned minor) {
	char path[256];

	snprintf(path, sizeof(path), "sys/class/block/%s/dev", name);
	fake_tree_file(&tree, path, "%u:%u\n", major, minor);
	snprintf(path, sizeof(path), "sys/class/block/%s/size", name);
	fake_tree_file(&tree, path, "2048\n");
	snprintf(path, sizeof(path), "sys/class/block/%s/queue/logical_block_size", name);
	fake_tree_file(&tree, path, "512\n");
	snprintf(path, sizeof(path), "sys/class/block/%s/queue/zoned", name);
	fake_tree_file(&tree, path, "none\n");
	snprintf(path, sizeof(path), "sys/class/block/%s/holders", name);
	fake_tree_dir(&tree, path);
	snprintf(path, sizeof(path), "sys/class/block/%s/slaves", name);
	fake_tree_dir(&tree, path);
	snprintf(path, sizeof(path), "dev/%s", name);
	fake_tree_file(&tree, path, "a node");
}

static void add_partition(const char *disk, const char *name, unsigned major, unsigned minor) {
	char path[256];

	add_block(name, major, minor);
	snprintf(path, sizeof(path), "sys/class/block/%s/%s/partition", disk, name);
	fake_tree_file(&tree, path, "1\n");
}

static void add_holder(const char *below, const char *above) {
	char path[256];

	snprintf(path, sizeof(path), "sys/class/block/%s/holders/%s", below, above);
	fake_tree_link(&tree, path, "somewhere");
	snprintf(path, sizeof(path), "sys/class/block/%s/slaves/%s", above, below);
	fake_tree_link(&tree, path, "somewhere");
}

static void add_disks(void) {
	for (unsigned i = 0; i <= 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "nvme%un1", i);
		add_block(name, 259, i * 10);
	}
	add_partition("nvme0n1", "nvme0n1p1", 259, 1);
	add_partition("nvme0n1", "nvme0n1p2", 259, 2);
	add_partition("nvme4n1", "nvme4n1p1", 259, 41);
	add_partition("nvme5n1", "nvme5n1p1", 259, 51);
	add_block("dm-0", 253, 0);
	fake_tree_file(&tree, "sys/class/block/dm-0/dm/name", "vg0-data\n");
	add_holder("nvme1n1", "dm-0");
	add_block("md127", 9, 127);
	add_holder("nvme2n1", "md127");
	add_block("nvme9n1", 259, 90); /* a btrfs: the mount shows a number of its own */
	fake_tree_file(&tree, "sys/class/block/nvme7n1/queue/zoned", "host-managed\n");
	fake_tree_file(&tree, "sys/class/block/nvme8c0n1/hidden", "1\n");
	fake_tree_file(&tree, "dev/nvme8c0n1", "should not be there");
	fake_tree_file(&tree, "dev/nvme0", "a character device");
	fake_tree_file(&tree, "dev/ng3n1", "a character device");
	fake_tree_link(&tree, "dev/disk/by-id/nvme-EXAMPLE_SN5", "../../nvme5n1");
	fake_tree_link(&tree, "dev/disk/by-id/nvme-EXAMPLE_SN5-part1", "../../nvme5n1p1");
	fake_tree_link(&tree, "dev/mapper/vg0-data", "../dm-0");
}

static int make_machine(void **state) {
	(void)state;
	fake_tree_make(&tree);
	root = (struct sysfs_root){.sys = tree.sys, .proc = tree.proc, .dev = tree.dev};
	add_disks();
	fake_tree_file(&tree, "proc/self/mountinfo",
		"22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
		"23 22 259:1 / /boot/efi rw,relatime - vfat /dev/nvme0n1p1 rw\n"
		"24 22 253:0 / /srv/data\\040one rw,relatime shared:2 master:1 - xfs "
		"/dev/mapper/vg0-data rw\n"
		"25 22 0:51 / /mnt/old rw,relatime - ext4 "
		"/dev/disk/by-id/nvme-EXAMPLE_SN5-part1 rw\n"
		"26 22 0:60 / /btrfs rw - btrfs /dev/nvme9n1 rw\n"
		"27 22 0:22 / /run rw - tmpfs tmpfs rw\n");
	fake_tree_file(&tree, "proc/1/mountinfo",
		"22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
		"30 22 259:80 / /only/in/init rw - ext4 /dev/nvme8n1 rw\n");
	fake_tree_file(&tree, "proc/swaps",
		"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
		"/dev/nvme4n1p1                          partition\t8388604\t\t0\t\t-2\n"
		"/swap\\040file                           file\t8388604\t\t0\t\t-3\n");
	return 0;
}

static int remove_machine(void **state) {
	(void)state;
	fake_tree_remove(&tree);
	return 0;
}

static void look(const char *name, struct drive_namespace *ns) {
	memset(ns, 0, sizeof(*ns));
	inuse_block(&root, NULL, name, ns);
}

static bool has_use(const struct drive_namespace *ns, enum use_kind kind, const char *detail) {
	for (uint8_t i = 0; i < ns->use_count; i++)
		if (ns->uses[i].kind == kind && strcmp(ns->uses[i].detail, detail) == 0)
			return true;
	return false;
}

/* A process of the made-up machine that has a real device open. */
static void add_process(int pid, const char *comm, const char *device) {
	char path[64];

	snprintf(path, sizeof(path), "proc/%d/comm", pid);
	fake_tree_file(&tree, path, "%s\n", comm);
	snprintf(path, sizeof(path), "proc/%d/fd/3", pid);
	fake_tree_link(&tree, path, device);
}

/* --- what is found ---------------------------------------------------------------------------- */

static void finds_mounted_partitions(void **state) {
	struct drive_namespace ns;

	(void)state;
	look("nvme0n1", &ns);
	assert_true(has_use(&ns, USE_MOUNT, "nvme0n1p2 mounted on /"));
	assert_true(has_use(&ns, USE_MOUNT, "nvme0n1p1 mounted on /boot/efi"));
	assert_true(has_use(&ns, USE_PARTITION, "nvme0n1 has 2 partition(s)"));
	/* init's mounts are the same ones here: told once. */
	assert_int_equal(ns.use_count, 3);
	assert_int_equal(ns.dev_major, 259);
	assert_int_equal(ns.size_bytes, 2048 * 512);
	assert_int_equal(ns.lba_bytes, 512);
}

static void finds_holders_and_what_is_mounted_of_them(void **state) {
	struct drive_namespace ns;

	(void)state;
	look("nvme1n1", &ns);
	assert_true(has_use(&ns, USE_HOLDER, "nvme1n1 is held by dm-0 (vg0-data)"));
	assert_true(has_use(&ns, USE_MOUNT, "dm-0 mounted on /srv/data one"));
	look("nvme2n1", &ns);
	assert_true(has_use(&ns, USE_HOLDER, "nvme2n1 is held by md127"));
	assert_int_equal(ns.use_count, 1);
}

static void a_slaves_other_uses_are_not_the_holders(void **state) {
	struct drive_namespace ns;

	(void)state;
	look("md127", &ns);
	assert_int_equal(ns.use_count, 0);
}

static void finds_swap_links_and_odd_numbers(void **state) {
	struct drive_namespace ns;

	(void)state;
	look("nvme4n1", &ns);
	assert_true(has_use(&ns, USE_SWAP, "swap on nvme4n1p1"));
	look("nvme5n1", &ns);
	assert_true(has_use(&ns, USE_MOUNT, "nvme5n1p1 mounted on /mnt/old"));
	look("nvme9n1", &ns);
	assert_true(has_use(&ns, USE_MOUNT, "nvme9n1 mounted on /btrfs"));
	look("nvme8n1", &ns);
	assert_true(has_use(&ns, USE_MOUNT, "nvme8n1 mounted on /only/in/init"));
}

static void look_at_processes(const char *name, struct drive_namespace *ns) {
	struct openers *openers = openers_new(&root);

	memset(ns, 0, sizeof(*ns));
	inuse_block(&root, openers, name, ns);
	openers_free(openers);
}

static void finds_who_has_a_part_or_the_character_device_open(void **state) {
	char node[160];
	struct drive_namespace ns;

	(void)state;
	snprintf(node, sizeof(node), "%s/node", tree.top);
	assert_int_equal(mknod(node, S_IFBLK | 0600, makedev(259, 51)), 0);
	fake_tree_file(&tree, "proc/2/comm", "kthreadd\n");
	add_process(70, "qemu", node);
	look_at_processes("nvme5n1", &ns);
	assert_true(has_use(&ns, USE_PROCESS, "qemu (process 70) has nvme5n1p1 open"));
	look_at_processes("nvme3n1", &ns);
	assert_int_equal(ns.use_count, 0);

	/* Another character device stands in for it. */
	fake_tree_file(&tree, "sys/class/nvme-generic/ng3n1/dev", "1:5\n");
	fake_tree_file(&tree, "proc/devices", "  1 nvme-generic\n");
	add_process(71, "spdk", "/dev/zero");
	look_at_processes("nvme3n1", &ns);
	assert_int_equal(ns.use_count, 1);
	assert_true(has_use(&ns, USE_PROCESS, "spdk (process 71) has ng3n1 open"));
	look_at_processes("nvme6n1", &ns);
	assert_int_equal(ns.use_count, 0);
}

static void finds_zones(void **state) {
	struct drive_namespace ns;

	(void)state;
	look("nvme7n1", &ns);
	assert_true(ns.zoned);
	assert_int_equal(ns.use_count, 1);
	assert_int_equal(ns.uses[0].kind, USE_ZONED);
}

static void finds_nothing_on_an_empty_disk(void **state) {
	struct drive_namespace ns;

	(void)state;
	look("nvme3n1", &ns);
	assert_int_equal(ns.use_count, 0);
	assert_false(ns.zoned);
}

static void what_cannot_be_looked_at_counts(void **state) {
	struct sysfs_root blind = {.sys = tree.sys, .proc = "/nonexistent", .dev = tree.dev};
	struct drive_namespace ns = {0};

	(void)state;
	inuse_block(&blind, NULL, "nvme3n1", &ns);
	assert_int_equal(ns.use_count, 2);
	assert_true(has_use(&ns, USE_UNSEEN, "the mounts of the machine's init could not be read"));
	assert_true(has_use(&ns, USE_UNKNOWN, "the mounts could not be read"));
	look("nvme77n1", &ns);
	assert_int_equal(ns.uses[0].kind, USE_UNKNOWN);
}

static void uses_are_bounded(void **state) {
	struct drive_namespace ns = {0};

	(void)state;
	for (int i = 0; i < 40; i++)
		use_add(&ns, USE_HOLDER, "number %d", i);
	assert_int_equal(ns.use_count, DRIVE_MAX_USES);
	use_add(&ns, USE_SHARED, "too late");
	use_add(&ns, USE_MOUNT, "matters more");
	assert_int_equal(ns.use_count, DRIVE_MAX_USES);
	assert_string_equal(ns.uses[0].detail, "matters more");
	assert_string_equal(ns.uses[DRIVE_MAX_USES - 1].detail, "number 14");
}

static void look_at_file(
	const struct sysfs_root *at, const char *path, struct drive_namespace *ns) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	memset(ns, 0, sizeof(*ns));
	inuse_file(at, NULL, fd, ns);
}

static void path_in_tree(char path[160], const char *name) {
	snprintf(path, 160, "%s/%s", tree.top, name);
}

static void files_may_be_swap_under_any_name(void **state) {
	char swap[160], other[160], link_path[160];
	struct drive_namespace ns;

	(void)state;
	path_in_tree(swap, "swap file");
	path_in_tree(other, "other");
	path_in_tree(link_path, "hard link");
	fake_tree_file(&tree, "swap file", "12345");
	fake_tree_file(&tree, "other", "123");
	assert_int_equal(link(swap, link_path), 0);
	fake_tree_file(
		&tree, "proc/swaps", "Filename Type\n%s/swap\\040file file 1 0 -2\n", tree.top);
	look_at_file(&root, swap, &ns);
	assert_true(has_use(&ns, USE_SWAP, "it is a swap file"));
	assert_int_equal(ns.size_bytes, 5);
	look_at_file(&root, link_path, &ns);
	assert_true(has_use(&ns, USE_SWAP, "it is a swap file"));
	look_at_file(&root, other, &ns);
	assert_int_equal(ns.use_count, 0);
	/* Removed while it is in use: it may be any file that has another name. */
	fake_tree_file(&tree, "proc/swaps", "Filename Type\n/gone\\040(deleted) file 1 0 -2\n");
	look_at_file(&root, other, &ns);
	assert_true(
		has_use(&ns, USE_UNSEEN, "the swap file /gone (deleted) could not be looked at"));
}

/* --- real loop devices ------------------------------------------------------------------------ */

/* Its number. */
static int loop_add(const char *backing) {
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	auto_close int file = open(backing, O_RDONLY | O_CLOEXEC);
	char path[32];

	assert_true(control >= 0 && file >= 0);
	for (int tries = 0; tries < 100; tries++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		assert_true(number >= 0);
		snprintf(path, sizeof(path), "/dev/loop%d", number);
		auto_close int loop = open(path, O_RDONLY | O_CLOEXEC);
		if (loop >= 0 && ioctl(loop, LOOP_SET_FD, file) == 0)
			return number;
	}
	fail_msg("no loop device");
	return -1;
}

static void loop_remove(int number) {
	char path[32];

	snprintf(path, sizeof(path), "/dev/loop%d", number);
	auto_close int loop = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(ioctl(loop, LOOP_CLR_FD, 0), 0);
}

static void finds_a_loop_device_made_of_another(void **state) {
	char image[160], below[32], detail[64], other_detail[64];
	struct drive_namespace ns = {0};
	int lower, upper;

	(void)state;
	path_in_tree(image, "image");
	fake_tree_file(&tree, "image", "%8192s", "");
	lower = loop_add(image);
	snprintf(below, sizeof(below), "/dev/loop%d", lower);
	upper = loop_add(below);
	inuse_block(&sysfs_live, NULL, below + 5, &ns);
	snprintf(detail, sizeof(detail), "loop%d is made of loop%d", upper, lower);
	snprintf(other_detail, sizeof(other_detail), "loop%d is made of loop%d", lower, lower);
	loop_remove(upper);
	loop_remove(lower);
	assert_true(has_use(&ns, USE_HOLDER, detail));
	assert_false(has_use(&ns, USE_HOLDER, other_detail));
}

static bool is_made_into(const char *path, int loop) {
	struct drive_namespace ns;
	char detail[64];

	look_at_file(&sysfs_live, path, &ns);
	snprintf(detail, sizeof(detail), "loop%d is made of it", loop);
	return has_use(&ns, USE_HOLDER, detail);
}

static void finds_loop_devices_under_any_name(void **state) {
	char image[160], other[160], hard[160], bound[160];
	int loop;

	(void)state;
	path_in_tree(image, "image");
	path_in_tree(other, "other");
	path_in_tree(hard, "hard");
	path_in_tree(bound, "bound");
	fake_tree_file(&tree, "image", "%8192s", "");
	fake_tree_file(&tree, "other", "%8192s", "");
	fake_tree_file(&tree, "bound", "%s", "");
	assert_int_equal(link(image, hard), 0);
	assert_int_equal(mount(image, bound, NULL, MS_BIND, NULL), 0);
	loop = loop_add(hard);
	bool by_name = is_made_into(hard, loop), by_link = is_made_into(image, loop),
	     by_mount = is_made_into(bound, loop), by_mistake = is_made_into(other, loop);
	assert_int_equal(rename(hard, other), 0);
	bool after_rename = is_made_into(image, loop);
	loop_remove(loop);
	bool afterwards = is_made_into(image, loop);
	assert_int_equal(umount(bound), 0);
	assert_true(by_name && by_link && by_mount && after_rename);
	assert_false(by_mistake);
	assert_false(afterwards);
}

static void a_loop_device_that_does_not_answer_counts(void **state) {
	struct drive_namespace ns;
	char path[160];

	(void)state;
	path_in_tree(path, "image");
	fake_tree_file(&tree, "image", "1");
	fake_tree_file(&tree, "proc/swaps", "Filename\n");
	add_block("loop3", 7, 3);
	fake_tree_file(&tree, "sys/class/block/loop3/loop/backing_file", "/somewhere/else\n");
	look_at_file(&root, path, &ns);
	assert_true(has_use(&ns, USE_UNSEEN, "loop3 could not be asked what it is made of"));
	assert_int_equal(ns.use_count, 1);
}

/* --- exports ---------------------------------------------------------------------------------- */

#define NVMET "sys/kernel/config/nvmet/subsystems/nqn.one/"

static void finds_what_is_exported_to_other_machines(void **state) {
	struct drive_namespace ns;
	char node[160];

	(void)state;
	path_in_tree(node, "node");
	assert_int_equal(mknod(node, S_IFBLK | 0600, makedev(259, 51)), 0);
	fake_tree_file(&tree, NVMET "namespaces/1/device_path", "/dev/nvme3n1\n");
	fake_tree_file(&tree, NVMET "namespaces/2/device_path", "(null)\n");
	fake_tree_file(&tree, NVMET "namespaces/3/device_path", "%s\n", node);
	fake_tree_file(&tree, "sys/kernel/config/target/core/iblock_0/a/udev_path", "/dev/dm-0\n");
	look("nvme3n1", &ns);
	assert_int_equal(ns.use_count, 1);
	assert_true(has_use(&ns, USE_EXPORT, "nvmet exports nvme3n1"));
	look("nvme5n1", &ns);
	assert_true(has_use(&ns, USE_EXPORT, "nvmet exports nvme5n1p1"));
	look("nvme1n1", &ns);
	assert_true(has_use(&ns, USE_EXPORT, "LIO exports dm-0"));
	look("nvme6n1", &ns);
	assert_int_equal(ns.use_count, 0);
}

static void finds_a_controller_that_is_passed_on(void **state) {
	struct drive_namespace ns;

	(void)state;
	fake_tree_file(&tree, "sys/class/nvme/nvme9/nvme3c9n1/nsid", "1\n");
	fake_tree_file(&tree, NVMET "passthru/device_path", "/dev/nvme9\n");
	look("nvme3n1", &ns);
	assert_true(has_use(&ns, USE_EXPORT, "nvmet passes on nvme3n1"));
	look("nvme6n1", &ns);
	assert_int_equal(ns.use_count, 0);
}

static void exports_that_cannot_be_seen_are_told(void **state) {
	struct drive_namespace ns;

	(void)state;
	fake_tree_dir(&tree, "sys/module/nvmet");
	look("nvme3n1", &ns);
	assert_true(has_use(&ns, USE_UNSEEN, "nvmet is loaded, what it exports cannot be seen"));
	assert_int_equal(ns.use_count, 1);
	fake_tree_dir(&tree, "sys/kernel/config/nvmet");
	look("nvme3n1", &ns);
	assert_int_equal(ns.use_count, 0);
}

static void finds_files_that_are_exported(void **state) {
	struct drive_namespace ns;
	char image[160];

	(void)state;
	path_in_tree(image, "image");
	fake_tree_file(&tree, "image", "1");
	fake_tree_file(&tree, "proc/swaps", "Filename\n");
	look_at_file(&root, image, &ns);
	assert_int_equal(ns.use_count, 0);
	fake_tree_file(&tree, NVMET "namespaces/1/device_path", "%s\n", image);
	look_at_file(&root, image, &ns);
	assert_true(has_use(&ns, USE_EXPORT, "nvmet exports it"));
}

/* --- files that somebody writes to, or has locked --------------------------------------------- */

static bool open_to_write(const void *path) {
	return open(path, O_RDWR) >= 0;
}

static bool map_to_write(const void *path) {
	auto_close int fd = open(path, O_RDWR);

	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

static bool lock_to_read(const void *path) {
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 1};
	int fd = open(path, O_RDONLY);

	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static void finds_who_writes_to_a_file_without_proc(void **state) {
	static const struct {
		bool (*act)(const void *path);
		const char *detail;
	} cases[] = {
		{open_to_write, "somebody has it open for writing"},
		{map_to_write, "somebody has it open for writing"},
		{lock_to_read, "somebody has locked it"},
	};
	struct drive_namespace ns;
	struct stranger s;
	char image[160];

	(void)state;
	path_in_tree(image, "image");
	fake_tree_file(&tree, "image", "%8192s", "");
	fake_tree_file(&tree, "proc/swaps", "Filename\n");
	for (size_t i = 0; i < array_len(cases); i++) {
		stranger_make(&s, cases[i].act, image);
		look_at_file(&root, image, &ns);
		stranger_release(&s);
		assert_int_equal(ns.use_count, 1);
		assert_true(has_use(&ns, USE_OPEN, cases[i].detail));
		look_at_file(&root, image, &ns);
		assert_int_equal(ns.use_count, 0);
	}
}

/* --- signatures --------------------------------------------------------------------------------
 */

static void put_image(FILE *f, const char *image, size_t size) {
	rewind(f);
	fwrite(image, size, 1, f);
	fflush(f);
}

static void finds_signatures_and_partition_tables(void **state) {
	static char image[70000];
	struct drive_namespace ns = {0};
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	put_image(f, image, sizeof(image));
	inuse_signature(fileno(f), &ns);
	assert_int_equal(ns.use_count, 0);

	image[1024 + 0x38] = 0x53; /* the magic number of ext2 */
	image[1024 + 0x39] = (char)0xef;
	put_image(f, image, sizeof(image));
	inuse_signature(fileno(f), &ns);
	assert_true(has_use(&ns, USE_SIGNATURE, "ext2 signature"));
	assert_int_equal(ns.use_count, 1);

	memset(&ns, 0, sizeof(ns));
	memset(image, 0, sizeof(image));
	image[510] = 0x55;
	image[511] = (char)0xaa;
	image[446 + 4] = (char)0x83; /* a partition of type Linux … */
	image[446 + 8] = 1;          /* … from sector 1 … */
	image[446 + 12] = 10;        /* … of ten sectors */
	put_image(f, image, sizeof(image));
	inuse_signature(fileno(f), &ns);
	assert_true(has_use(&ns, USE_PARTITION, "partition table (dos)"));
	assert_int_equal(ns.use_count, 1);
	fclose(f);
}

static void an_unreadable_device_counts_as_used(void **state) {
	struct drive_namespace ns = {0};

	(void)state;
	inuse_signature(-1, &ns);
	assert_int_equal(ns.use_count, 1);
	assert_int_equal(ns.uses[0].kind, USE_UNKNOWN);
}

/* --- a run on each target ----------------------------------------------------------------------
 */

enum answer {
	REFUSED_PATH, /* before anything is looked at */
	REFUSED,      /* whatever is confirmed */
	WITH_CONSENT, /* the loss of data, or reads while in use, confirmed */
	WITH_OVERRIDE /* … and the signature overridden */
};

static const struct request {
	const char *target;
	uint8_t pattern;
	enum answer answer;
	const char *reason;
} requests[] = {
	{"/dev/nvme0n1", PATTERN_RANDWRITE, REFUSED, "nvme0n1p2 mounted on /"},
	{"/dev/nvme0n1", PATTERN_RANDREAD, WITH_CONSENT, "nvme0n1p2 mounted on /"},
	{"/dev/nvme1n1", PATTERN_WRITE, REFUSED, "dm-0 mounted on /srv/data one"},
	{"/dev/nvme2n1", PATTERN_WRITE, REFUSED, "nvme2n1 is held by md127"},
	{"/dev/nvme3n1", PATTERN_RANDRW, WITH_CONSENT, ""},
	{"/dev/nvme4n1", PATTERN_WRITE, REFUSED, "swap on nvme4n1p1"},
	{"/dev/nvme5n1", PATTERN_WRITE, REFUSED, "nvme5n1p1 mounted on /mnt/old"},
	{"/dev/../dev/nvme0n1", PATTERN_WRITE, REFUSED_PATH, ""},
	{"/dev/nvme3n1:/dev/nvme0n1", PATTERN_WRITE, REFUSED_PATH, ""},
	{"/dev/nvme6n1", PATTERN_WRITE, WITH_OVERRIDE, "LVM2_member signature"},
	{"/dev/nvme7n1", PATTERN_RANDWRITE, REFUSED, "nvme7n1 has host-managed zones"},
	{"/dev/nvme8c0n1", PATTERN_READ, REFUSED_PATH, ""},
	{"/dev/nvme0", PATTERN_READ, REFUSED_PATH, ""},
	{"/dev/ng3n1", PATTERN_WRITE, REFUSED_PATH, ""},
	{"/dev/disk/by-id/nvme-EXAMPLE_SN5", PATTERN_READ, REFUSED_PATH, ""},
	{"/dev/nosuch", PATTERN_READ, REFUSED_PATH, ""},
};

static enum rc ask(const struct request *r, const struct drive_namespace *ns, bool consent,
	bool override, struct err *err) {
	struct priv_config config = {.allow_destructive = true, .allow_in_use = true};
	struct priv_run_start start = {.workload.pattern = r->pattern};
	struct consent_target target = {
		.index = 2, .serial = "SN", .serial_unique = true, .ns = ns};

	if (consent) {
		start.confirm_count = start.confirm_in_use_count = 1;
		snprintf(start.confirm_destructive[0], 21, "SN");
		snprintf(start.confirm_in_use[0], 21, "SN");
	}
	start.override_signature = override;
	return consent_target(&config, &start, &target, err);
}

static void check_request(const struct request *r) {
	char path[256], name[SYSFS_NAME_SIZE];
	struct drive_namespace ns;
	struct err err = {0};
	enum rc resolved;

	snprintf(path, sizeof(path), "%s%s", tree.top, r->target);
	if (strchr(r->target, ':')) /* both names in the tree */
		snprintf(path, sizeof(path), "%s/nvme3n1:%s/nvme0n1", tree.dev, tree.dev);
	resolved = inuse_resolve(&root, path, name, &err);
	assert_int_equal(resolved == RC_OK, r->answer != REFUSED_PATH);
	if (resolved != RC_OK)
		return;
	look(name, &ns);
	if (strcmp(name, "nvme6n1") == 0)
		use_add(&ns, USE_SIGNATURE, "LVM2_member signature");
	assert_int_equal(ask(r, &ns, false, true, &err), RC_FORBIDDEN);
	assert_int_equal(ask(r, &ns, true, true, &err) == RC_OK, r->answer != REFUSED);
	assert_int_equal(ask(r, &ns, true, false, &err) == RC_OK, r->answer == WITH_CONSENT);
	if (r->answer != WITH_CONSENT) {
		assert_int_equal(err.rc, RC_CONFLICT);
		assert_string_equal(err.field, "/drives/2");
		assert_string_equal(err.msg, r->reason);
	}
}

static void answers_every_request_rightly(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(requests); i++) {
		print_message("%s %s\n", requests[i].target, requests[i].reason);
		check_request(&requests[i]);
	}
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_machine, remove_machine)

int main(void) {
	const struct CMUnitTest tests[] = {
		ON_MACHINE(finds_mounted_partitions),
		ON_MACHINE(finds_holders_and_what_is_mounted_of_them),
		ON_MACHINE(a_slaves_other_uses_are_not_the_holders),
		ON_MACHINE(finds_swap_links_and_odd_numbers),
		ON_MACHINE(finds_who_has_a_part_or_the_character_device_open),
		ON_MACHINE(finds_zones),
		ON_MACHINE(finds_nothing_on_an_empty_disk),
		ON_MACHINE(what_cannot_be_looked_at_counts),
		ON_MACHINE(files_may_be_swap_under_any_name),
		ON_MACHINE(finds_loop_devices_under_any_name),
		ON_MACHINE(finds_a_loop_device_made_of_another),
		ON_MACHINE(a_loop_device_that_does_not_answer_counts),
		ON_MACHINE(finds_what_is_exported_to_other_machines),
		ON_MACHINE(finds_a_controller_that_is_passed_on),
		ON_MACHINE(exports_that_cannot_be_seen_are_told),
		ON_MACHINE(finds_files_that_are_exported),
		ON_MACHINE(finds_who_writes_to_a_file_without_proc),
		ON_MACHINE(answers_every_request_rightly),
		cmocka_unit_test(uses_are_bounded),
		cmocka_unit_test(finds_signatures_and_partition_tables),
		cmocka_unit_test(an_unreadable_device_counts_as_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
