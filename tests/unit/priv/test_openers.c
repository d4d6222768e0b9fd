/* Who has it open: real processes, and a made-up /proc for what cannot be had otherwise. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "priv/openers.h"
#include "tests/support/fake_tree.h"
#include "tests/support/stranger.h"

static struct fake_tree tree;
static struct sysfs_root made_up;
static struct openers *openers;
static struct drive_namespace ns;

static int begin(void **state) {
	(void)state;
	fake_tree_make(&tree);
	made_up = (struct sysfs_root){.sys = tree.sys, .proc = tree.proc, .dev = tree.dev};
	fake_tree_file(&tree, "proc/2/comm", "kthreadd\n");
	memset(&ns, 0, sizeof(ns));
	openers = NULL;
	return 0;
}

static int end(void **state) {
	(void)state;
	openers_free(openers);
	fake_tree_remove(&tree);
	return 0;
}

static void ask_at(const struct sysfs_root *root, inode_match *match, const void *arg) {
	openers_free(openers);
	openers = openers_new(root);
	assert_non_null(openers);
	memset(&ns, 0, sizeof(ns));
	openers_add_uses(openers, match, arg, &ns);
}

static unsigned count_of(enum use_kind kind) {
	unsigned count = 0;

	for (uint8_t i = 0; i < ns.use_count; i++)
		count += ns.uses[i].kind == kind;
	return count;
}

static bool is_told(enum use_kind kind, const char *part) {
	for (uint8_t i = 0; i < ns.use_count; i++)
		if (ns.uses[i].kind == kind && strstr(ns.uses[i].detail, part))
			return true;
	return false;
}

static const char *match_device(const void *arg, const struct inode_ref *what) {
	const struct inode_ref *wanted = arg;

	return what->type == wanted->type && what->dev == wanted->dev ? "the device" : NULL;
}

/* --- real processes --------------------------------------------------------------------------- */

/* A block device of its own, that nothing stands behind. */
static struct inode_ref make_device(char path[96]) {
	struct inode_ref device = {.type = S_IFBLK, .dev = makedev(7, 250)};

	snprintf(path, 96, "%s/device", tree.top);
	assert_int_equal(mknod(path, S_IFBLK | 0600, device.dev), 0);
	return device;
}

static bool open_path(const void *path) {
	return open(path, O_PATH) >= 0;
}

static void a_stranger_is_told_by_name_and_number(void **state) {
	struct stranger s;
	char path[96], words[96];
	struct inode_ref device = make_device(path);

	(void)state;
	ask_at(&sysfs_live, match_device, &device);
	assert_int_equal(count_of(USE_PROCESS), 0);
	stranger_make(&s, open_path, path);
	ask_at(&sysfs_live, match_device, &device);
	stranger_release(&s);
	snprintf(words, sizeof(words), "(process %d) has the device open", (int)s.pid);
	assert_int_equal(count_of(USE_PROCESS), 1);
	assert_true(is_told(USE_PROCESS, words));
	assert_true(is_told(USE_PROCESS, "test_openers"));
	assert_int_equal(count_of(USE_UNSEEN), 0);
	ask_at(&sysfs_live, match_device, &device);
	assert_int_equal(count_of(USE_PROCESS), 0);
}

static void it_is_found_under_any_name(void **state) {
	struct stranger s;
	char path[96], other[96];
	struct inode_ref device = make_device(path);

	(void)state;
	snprintf(other, sizeof(other), "%s/another name", tree.top);
	assert_int_equal(mknod(other, S_IFBLK | 0600, device.dev), 0);
	stranger_make(&s, open_path, other);
	assert_int_equal(unlink(other), 0);
	ask_at(&sysfs_live, match_device, &device);
	stranger_release(&s);
	assert_int_equal(count_of(USE_PROCESS), 1);
}

static void we_and_our_children_are_no_strangers(void **state) {
	char path[96], byte;
	struct inode_ref device = make_device(path);
	auto_close int own = open(path, O_PATH | O_CLOEXEC);
	int hold[2], status;
	pid_t child;

	(void)state;
	assert_true(own >= 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
	}
	ask_at(&sysfs_live, match_device, &device);
	close(hold[0]);
	close(hold[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(count_of(USE_PROCESS), 0);
}

static bool open_under_odd_name(const void *path) {
	return prctl(PR_SET_NAME, "a)\n\x01\xff b", 0, 0, 0) == 0 && open_path(path);
}

static void names_are_made_printable(void **state) {
	struct stranger s;
	char path[96];
	struct inode_ref device = make_device(path);

	(void)state;
	stranger_make(&s, open_under_odd_name, path);
	ask_at(&sysfs_live, match_device, &device);
	stranger_release(&s);
	assert_int_equal(count_of(USE_PROCESS), 1);
	for (const char *p = ns.uses[0].detail; *p; p++)
		assert_true(*p >= ' ' && *p <= '~');
}

static void many_are_counted(void **state) {
	struct stranger all[7];
	char path[96];
	struct inode_ref device = make_device(path);

	(void)state;
	for (size_t i = 0; i < array_len(all); i++)
		stranger_make(&all[i], open_path, path);
	ask_at(&sysfs_live, match_device, &device);
	for (size_t i = 0; i < array_len(all); i++)
		stranger_release(&all[i]);
	assert_int_equal(count_of(USE_PROCESS), 5);
	assert_true(is_told(USE_PROCESS, "3 more processes have it open"));
}

static void a_file_is_found_by_any_of_its_names(void **state) {
	char path[96], second[96];
	struct stranger s;
	struct stat st;

	(void)state;
	fake_tree_file(&tree, "file", "1");
	fake_tree_file(&tree, "other", "1");
	snprintf(path, sizeof(path), "%s/file", tree.top);
	snprintf(second, sizeof(second), "%s/second", tree.top);
	assert_int_equal(link(path, second), 0);
	assert_int_equal(stat(path, &st), 0);
	stranger_make(&s, open_path, second);
	openers = openers_new(&sysfs_live);
	openers_add_uses_of_file(openers, st.st_dev, st.st_ino, &ns);
	assert_true(is_told(USE_PROCESS, "has it open"));
	memset(&ns, 0, sizeof(ns));
	snprintf(path, sizeof(path), "%s/other", tree.top);
	assert_int_equal(stat(path, &st), 0);
	openers_add_uses_of_file(openers, st.st_dev, st.st_ino, &ns);
	stranger_release(&s);
	assert_int_equal(count_of(USE_PROCESS), 0);
}

/* --- who cannot see ----------------------------------------------------------------------------
 */

/* In a process of its own: 1 when the use was told. */
static bool told_in_child(
	bool (*act)(void), const struct inode_ref *device, enum use_kind kind, const char *part) {
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (!act())
			_exit(2);
		ask_at(&sysfs_live, match_device, device);
		_exit(is_told(kind, part));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

static bool give_up_rights(void) {
	return setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
}

static bool enter_process_namespace(void) {
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return false;
	pid = fork();
	if (pid != 0) {
		waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	return mount("proc", "/proc", "proc", 0, NULL) == 0;
}

static void what_may_not_be_looked_into_is_told(void **state) {
	struct stranger s;
	char path[96];
	struct inode_ref device = make_device(path);

	(void)state;
	stranger_make(&s, open_path, path);
	bool told = told_in_child(
		give_up_rights, &device, USE_UNSEEN, "process(es) could not be looked into");
	stranger_release(&s);
	assert_true(told);
}

static void a_containers_processes_are_not_the_machines(void **state) {
	char path[96];
	struct inode_ref device = make_device(path);

	(void)state;
	assert_true(told_in_child(enter_process_namespace, &device, USE_UNSEEN,
		"the machine's processes cannot be seen from here"));
}

static void init_may_keep_its_descriptors_to_itself(void **state) {
	struct inode_ref device = {.type = S_IFBLK, .dev = makedev(7, 250)};

	(void)state;
	fake_tree_file(&tree, "proc/1/fd", "no directory: it cannot be opened as one");
	ask_at(&made_up, match_device, &device);
	assert_int_equal(ns.use_count, 0);
	fake_tree_file(&tree, "proc/33/fd", "no directory");
	fake_tree_file(&tree, "proc/33/comm", "hidden\n");
	ask_at(&made_up, match_device, &device);
	assert_true(is_told(USE_UNSEEN, "1 process(es) could not be looked into, as hidden (33)"));
	assert_int_equal(ns.use_count, 1);
}

static void without_proc_nothing_is_seen(void **state) {
	struct sysfs_root blind = {.sys = tree.sys, .proc = "/nonexistent", .dev = tree.dev};
	struct inode_ref device = {.type = S_IFBLK, .dev = makedev(7, 250)};

	(void)state;
	ask_at(&blind, match_device, &device);
	assert_int_equal(count_of(USE_UNSEEN), 1);
}

/* --- a made-up /proc ---------------------------------------------------------------------------
 */

static void namespaces_have_a_character_device_too(void **state) {
	struct inode_ref zero = {.type = S_IFCHR, .dev = makedev(1, 5)};

	(void)state;
	fake_tree_file(&tree, "proc/77/comm", "nvme\n");
	fake_tree_link(&tree, "proc/77/fd/3", "/dev/zero");
	ask_at(&made_up, match_device, &zero);
	assert_int_equal(ns.use_count, 0);
	fake_tree_file(&tree, "proc/devices", "Character devices:\n  1 nvme-generic\n240 nvme\n");
	ask_at(&made_up, match_device, &zero);
	assert_true(is_told(USE_PROCESS, "nvme (process 77) has the device open"));
}

struct fleeting {
	struct inode_ref device;
	char link[160];
};

/* Closed as soon as a look has found it. */
static const char *match_and_close(const void *arg, const struct inode_ref *what) {
	const struct fleeting *f = arg;

	if (!match_device(&f->device, what))
		return NULL;
	unlink(f->link);
	return "the device";
}

static void who_closes_it_soon_does_not_count(void **state) {
	struct fleeting f;
	char path[96];

	(void)state;
	f.device = make_device(path);
	snprintf(f.link, sizeof(f.link), "%s/77/fd/3", tree.proc);
	fake_tree_link(&tree, "proc/77/fd/3", path);
	ask_at(&made_up, match_and_close, &f);
	assert_int_equal(ns.use_count, 0);
	assert_int_not_equal(access(f.link, F_OK), 0);
}

static void too_many_are_told_as_such(void **state) {
	struct inode_ref other = {.type = S_IFBLK, .dev = makedev(7, 251)};
	char path[96], name[64];

	(void)state;
	make_device(path);
	for (int i = 0; i < 2049; i++) {
		snprintf(name, sizeof(name), "proc/%d/fd/3", 5000000 + i);
		fake_tree_link(&tree, name, path);
	}
	ask_at(&made_up, match_device, &other);
	assert_true(is_told(USE_UNSEEN, "too much is open to look at all of it"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_stranger_is_told_by_name_and_number),
		TEST(it_is_found_under_any_name),
		TEST(we_and_our_children_are_no_strangers),
		TEST(names_are_made_printable),
		TEST(many_are_counted),
		TEST(a_file_is_found_by_any_of_its_names),
		TEST(what_may_not_be_looked_into_is_told),
		TEST(a_containers_processes_are_not_the_machines),
		TEST(init_may_keep_its_descriptors_to_itself),
		TEST(without_proc_nothing_is_seen),
		TEST(namespaces_have_a_character_device_too),
		TEST(who_closes_it_soon_does_not_count),
		TEST(too_many_are_told_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
