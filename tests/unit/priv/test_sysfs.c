#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "priv/drives.h"
#include "priv/target.h"
#include "tests/support/fake_tree.h"

static struct fake_tree tree;
static struct sysfs_root root;
static char file_target[128], block_target[128];
static const char *targets[2] = {file_target, block_target};
static struct priv_config config = {.targets = targets};
static struct drives drives = {.config = &config, .root = &root};

static void add_controller(const char *name, const char *serial, const char *subsystem) {
	const struct {
		const char *attribute, *value;
	} values[] = {
		{"model", "Example NVMe                            "},
		{"serial", serial},
		{"firmware_rev", "1.0     "},
		{"transport", "pcie"},
		{"address", "0000:01:00.0"},
		{"state", "live"},
		{"numa_node", "-1"},
		{"cntlid", "3"},
		{"cntrltype", "io"},
	};
	char path[256];

	for (size_t i = 0; i < array_len(values); i++) {
		snprintf(path, sizeof(path), "sys/class/nvme/%s/%s", name, values[i].attribute);
		fake_tree_file(&tree, path, "%s\n", values[i].value);
	}
	snprintf(path, sizeof(path), "sys/class/nvme/%s/subsysnqn", name);
	fake_tree_file(&tree, path, "nqn.2014-08.invalid:%s\n", subsystem);
	snprintf(path, sizeof(path), "sys/class/nvme-subsystem/%s/%s", subsystem, name);
	fake_tree_dir(&tree, path);
}

static void add_block(const char *name, unsigned minor, uint64_t sectors) {
	char path[256];

	snprintf(path, sizeof(path), "sys/class/block/%s/dev", name);
	fake_tree_file(&tree, path, "259:%u\n", minor);
	snprintf(path, sizeof(path), "sys/class/block/%s/size", name);
	fake_tree_file(&tree, path, "%llu\n", (unsigned long long)sectors);
	snprintf(path, sizeof(path), "sys/class/block/%s/queue/logical_block_size", name);
	fake_tree_file(&tree, path, "4096\n");
	snprintf(path, sizeof(path), "dev/%s", name);
	fake_tree_file(&tree, path, "a node");
}

static void add_namespace(const char *controller, const char *entry, unsigned nsid) {
	char path[256];

	snprintf(path, sizeof(path), "sys/class/nvme/%s/%s/nsid", controller, entry);
	fake_tree_file(&tree, path, "%u\n", nsid);
}

static int make_machine(void **state) {
	(void)state;
	fake_tree_make(&tree);
	root = (struct sysfs_root){.sys = tree.sys, .proc = tree.proc, .dev = tree.dev};
	fake_tree_file(&tree, "proc/self/mountinfo", "%s", "");
	fake_tree_file(&tree, "proc/1/mountinfo", "%s", "");
	fake_tree_file(&tree, "proc/swaps", "Filename\n");
	add_controller("nvme0", "SN-A               ", "nvme-subsys0");
	add_controller("nvme10", "SN-B", "nvme-subsys10");
	/* Two controllers of one subsystem; their namespace hangs on the subsystem. */
	add_controller("nvme2", "SN-C", "nvme-subsys2");
	add_controller("nvme3", "SN-C", "nvme-subsys2");
	add_controller("nvme4", "", "nvme-subsys4");
	fake_tree_file(&tree, "sys/class/nvme/nvme4/cntrltype", "discovery\n");
	add_namespace("nvme0", "nvme0n1", 1);
	add_namespace("nvme0", "nvme0n2", 5);
	add_block("nvme0n1", 0, 1000);
	add_block("nvme0n2", 1, 500);
	add_namespace("nvme2", "nvme2c2n1", 1);
	add_namespace("nvme3", "nvme2c3n1", 1);
	add_block("nvme2n1", 2, 64);
	fake_tree_file(&tree, "sys/class/block/nvme2c2n1/hidden", "1\n");
	add_block("sdz", 9, 128);
	fake_tree_file(&tree, "sys/class/block/sdz/device/serial", "DISK-1\n");
	fake_tree_file(&tree, "sys/class/block/sdz/device/model", "Rotating Rust  \n");
	fake_tree_file(&tree, "a.img", "12345678");
	snprintf(file_target, sizeof(file_target), "%s/a.img", tree.top);
	snprintf(block_target, sizeof(block_target), "%s/sdz", tree.dev);
	config.target_count = 2;
	config.no_devices = false;
	return 0;
}

static int remove_machine(void **state) {
	(void)state;
	fake_tree_remove(&tree);
	return 0;
}

/* --- enumeration ------------------------------------------------------------------------------ */

static void a_slot_is_that_of_the_device(void **state) {
	auto_free struct priv_found *found = NULL;
	char reason[128];
	size_t count;

	(void)state;
	fake_tree_file(&tree, "sys/bus/pci/slots/7-2/address", "0000:01:00\n");
	fake_tree_file(&tree, "sys/bus/pci/slots/8/address", "0000:01:0\n");
	fake_tree_file(&tree, "sys/bus/pci/slots/9/address", "\n");
	fake_tree_file(&tree, "sys/class/nvme/nvme10/address", "0000:11:00.0\n");
	assert_int_equal(drives_enumerate(&drives, &found, &count, reason, NULL), RC_OK);
	assert_string_equal(found[0].slot, "7-2");
	assert_string_equal(found[3].drive.name, "nvme10");
	assert_string_equal(found[3].slot, "");
	assert_string_equal(found[4].slot, "");
}

static void lists_all_drives(void **state) {
	static const char *const names[] = {"nvme0", "nvme2", "nvme3", "nvme10", "t0", "t1"};
	auto_free struct priv_found *found = NULL;
	char reason[128];
	size_t count;

	(void)state;
	assert_int_equal(drives_enumerate(&drives, &found, &count, reason, NULL), RC_OK);
	assert_string_equal(reason, "");
	assert_int_equal(count, array_len(names));
	for (size_t i = 0; i < count; i++)
		assert_string_equal(found[i].drive.name, names[i]);
	assert_int_equal(found[0].drive.kind, DRIVE_NVME);
	assert_string_equal(found[0].drive.serial, "SN-A");
	assert_string_equal(found[0].model, "Example NVMe");
	assert_string_equal(found[0].firmware, "1.0");
	assert_string_equal(found[0].transport, "pcie");
	assert_string_equal(found[0].address, "0000:01:00.0");
	assert_string_equal(found[0].subsystem_nqn, "nqn.2014-08.invalid:nvme-subsys0");
	assert_string_equal(found[0].sysfs_state, "live");
	assert_int_equal(found[0].numa_node, -1);
	assert_int_equal(found[0].cntlid, 3);
	assert_int_equal(found[0].capacity_bytes, 1500 * 512);
	assert_int_equal(found[0].subsystem_controllers, 1);
	assert_int_equal(found[1].subsystem_controllers, 2);
	assert_int_equal(found[1].capacity_bytes, 64 * 512);
}

static void lists_targets_with_their_serials(void **state) {
	struct priv_found f;

	(void)state;
	assert_int_equal(target_read(&root, block_target, 1, &f, NULL), RC_OK);
	assert_int_equal(f.drive.kind, DRIVE_BLOCK);
	assert_string_equal(f.drive.serial, "DISK-1");
	assert_string_equal(f.model, "Rotating Rust");
	assert_int_equal(f.capacity_bytes, 128 * 512);
	assert_int_equal(target_read(&root, file_target, 0, &f, NULL), RC_OK);
	assert_int_equal(f.drive.kind, DRIVE_FILE);
	assert_int_equal(strlen(f.drive.serial), 20);
	assert_string_equal(f.address, "a.img");
	assert_int_equal(f.capacity_bytes, 8);
}

static void a_device_without_a_serial_is_known_for_as_long_as_it_is_there(void **state) {
	struct priv_found first, again;

	(void)state;
	fake_tree_file(&tree, "sys/class/block/loop4/dev", "7:4\n");
	fake_tree_file(&tree, "sys/class/block/loop4/diskseq", "17\n");
	fake_tree_file(&tree, "dev/loop4", "a node");
	snprintf(file_target, sizeof(file_target), "%s/loop4", tree.dev);
	assert_int_equal(target_read(&root, file_target, 0, &first, NULL), RC_OK);
	assert_int_equal(target_read(&root, file_target, 0, &again, NULL), RC_OK);
	assert_int_equal(strlen(first.drive.serial), 20);
	assert_string_equal(again.drive.serial, first.drive.serial);
	fake_tree_file(&tree, "sys/class/block/loop4/diskseq", "18\n");
	assert_int_equal(target_read(&root, file_target, 0, &again, NULL), RC_OK);
	assert_string_not_equal(again.drive.serial, first.drive.serial);
}

static void a_missing_target_leaves_a_reason(void **state) {
	auto_free struct priv_found *found = NULL;
	char reason[128];
	size_t count;

	(void)state;
	snprintf(file_target, sizeof(file_target), "%s/nosuch.img", tree.top);
	assert_int_equal(drives_enumerate(&drives, &found, &count, reason, NULL), RC_OK);
	assert_int_equal(count, 5);
	assert_non_null(strstr(reason, "nosuch.img"));
	/* The others keep their numbers. */
	assert_string_equal(found[4].drive.name, "t1");
}

static void links_and_namespaces_are_no_targets(void **state) {
	struct priv_found f;
	char path[160];

	(void)state;
	fake_tree_link(&tree, "link.img", "a.img");
	snprintf(path, sizeof(path), "%s/link.img", tree.top);
	assert_int_equal(target_read(&root, path, 0, &f, NULL), RC_INVALID);
	snprintf(path, sizeof(path), "%s/nvme0n1", tree.dev);
	assert_int_equal(target_read(&root, path, 0, &f, NULL), RC_INVALID);
	assert_int_equal(target_read(&root, tree.top, 0, &f, NULL), RC_INVALID);
}

static void nothing_is_there_where_there_is_nothing(void **state) {
	struct sysfs_root empty = {.sys = "/nonexistent", .proc = "/proc", .dev = "/dev"};
	struct priv_found *found = NULL;
	size_t count = 9;
	bool cut;

	(void)state;
	assert_int_equal(sysfs_controllers(&empty, &found, &count, &cut, NULL), RC_OK);
	assert_int_equal(count, 0);
	free(found);
	config.no_devices = true;
	char reason[128];
	assert_int_equal(drives_enumerate(&drives, &found, &count, reason, NULL), RC_OK);
	assert_int_equal(count, 0);
	free(found);
}

/* --- finding again ---------------------------------------------------------------------------- */

static enum rc find(uint8_t kind, const char *name, const char *serial) {
	struct priv_drive_ref ref = {.kind = kind};
	struct priv_found f;

	snprintf(ref.name, sizeof(ref.name), "%s", name);
	snprintf(ref.serial, sizeof(ref.serial), "%s", serial);
	return drives_find(&drives, &ref, &f, NULL);
}

static void finds_by_name_and_serial(void **state) {
	(void)state;
	assert_int_equal(find(DRIVE_NVME, "nvme0", "SN-A"), RC_OK);
	assert_int_equal(find(DRIVE_NVME, "nvme0", "SN-B"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_NVME, "nvme7", "SN-A"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_NVME, "nvme4", ""), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_NVME, "nvme0n1", "SN-A"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_BLOCK, "t1", "DISK-1"), RC_OK);
	assert_int_equal(find(DRIVE_FILE, "t1", "DISK-1"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_BLOCK, "t2", "DISK-1"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_BLOCK, "t", "DISK-1"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_BLOCK, "t01x", "DISK-1"), RC_NOT_FOUND);
	assert_int_equal(find(DRIVE_SIMULATED, "sim00", ""), RC_NOT_FOUND);
	config.no_devices = true;
	assert_int_equal(find(DRIVE_NVME, "nvme0", "SN-A"), RC_NOT_FOUND);
}

static bool is_unique(const char *name) {
	struct priv_found f;

	assert_int_equal(sysfs_controller_read(&root, name, &f, NULL), RC_OK);
	return drives_serial_is_unique(&drives, &f);
}

static void a_serial_is_unique_unless_another_drive_has_it(void **state) {
	(void)state;
	assert_true(is_unique("nvme0"));
	assert_true(is_unique("nvme2")); /* nvme3 is the same drive */
	add_controller("nvme11", "SN-A", "nvme-subsys11");
	assert_false(is_unique("nvme0"));
	assert_false(is_unique("nvme11"));
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void namespaces_are_found_by_their_id(void **state) {
	struct drive_namespace ns;
	struct priv_found f;
	char path[160], expected[160];

	(void)state;
	assert_int_equal(sysfs_controller_read(&root, "nvme0", &f, NULL), RC_OK);
	assert_int_equal(drives_path(&drives, &f, 5, path, sizeof(path), NULL), RC_OK);
	assert_int_equal(drives_namespace(&drives, &f, 5, &ns, NULL), RC_OK);
	snprintf(expected, sizeof(expected), "%s/nvme0n2", tree.dev);
	assert_string_equal(path, expected);
	assert_string_equal(ns.path, "/dev/nvme0n2");
	assert_int_equal(ns.nsid, 5);
	assert_int_equal(ns.size_bytes, 500 * 512);
	assert_int_equal(ns.lba_bytes, 4096);
	assert_int_equal(ns.dev_major, 259);
	assert_int_equal(ns.dev_minor, 1);
	assert_int_equal(ns.use_count, 0);
	assert_int_equal(drives_path(&drives, &f, 2, path, sizeof(path), NULL), RC_NOT_FOUND);
	assert_int_equal(drives_namespace(&drives, &f, 2, &ns, NULL), RC_NOT_FOUND);
}

static void a_shared_namespace_goes_by_its_head(void **state) {
	struct drive_namespace ns;
	struct priv_found f;

	(void)state;
	assert_int_equal(sysfs_controller_read(&root, "nvme3", &f, NULL), RC_OK);
	assert_int_equal(drives_namespace(&drives, &f, 1, &ns, NULL), RC_OK);
	assert_string_equal(ns.path, "/dev/nvme2n1");
	assert_int_equal(ns.use_count, 1);
	assert_int_equal(ns.uses[0].kind, USE_SHARED);
	assert_string_equal(ns.uses[0].detail, "2 controllers reach it");
}

/* --- operations ------------------------------------------------------------------------------- */

static void plain_devices_have_no_power(void **state) {
	struct priv_drive_op op = {.drive = {.kind = DRIVE_FILE, .name = "t0"}};
	auto_free struct priv_drive_reply *reply = calloc(1, sizeof(*reply));
	struct priv_found f;

	(void)state;
	assert_int_equal(target_read(&root, file_target, 0, &f, NULL), RC_OK);
	op.drive = f.drive;
	op.verb = PRIV_VERB_POWER_GET;
	drives_op(&drives, &op, reply);
	assert_int_equal(reply->rc, RC_UNSUPPORTED);
	memset(reply, 0, sizeof(*reply));
	op.verb = PRIV_VERB_IDENTIFY;
	drives_op(&drives, &op, reply);
	assert_int_equal(reply->rc, RC_OK);
	assert_int_equal(reply->u.detail.power.count, 0);
	assert_int_equal(reply->u.detail.namespace_count, 1);
	assert_int_equal(reply->u.detail.namespaces[0].size_bytes, 8);
}

static void an_observer_sets_nothing(void **state) {
	struct priv_drive_op op = {.drive = {.kind = DRIVE_NVME, .name = "nvme0", .serial = "SN-A"},
		.verb = PRIV_VERB_POWER_SET};
	auto_free struct priv_drive_reply *reply = calloc(1, sizeof(*reply));

	(void)state;
	config.observe_only = true;
	drives_op(&drives, &op, reply);
	config.observe_only = false;
	assert_int_equal(reply->rc, RC_FORBIDDEN);
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_machine, remove_machine)

int main(void) {
	const struct CMUnitTest tests[] = {
		ON_MACHINE(lists_all_drives),
		ON_MACHINE(a_slot_is_that_of_the_device),
		ON_MACHINE(lists_targets_with_their_serials),
		ON_MACHINE(a_device_without_a_serial_is_known_for_as_long_as_it_is_there),
		ON_MACHINE(a_missing_target_leaves_a_reason),
		ON_MACHINE(links_and_namespaces_are_no_targets),
		ON_MACHINE(nothing_is_there_where_there_is_nothing),
		ON_MACHINE(finds_by_name_and_serial),
		ON_MACHINE(a_serial_is_unique_unless_another_drive_has_it),
		ON_MACHINE(namespaces_are_found_by_their_id),
		ON_MACHINE(a_shared_namespace_goes_by_its_head),
		ON_MACHINE(plain_devices_have_no_power),
		ON_MACHINE(an_observer_sets_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
