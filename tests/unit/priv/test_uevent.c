/* What the kernel tells of devices: its text, its socket, what is made of many messages. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "priv/hotplug.h"
#include "tests/support/fake_tree.h"

#define WAIT_MS 30000
#define PCI "/devices/pci0000:00/0000:00:03.0/nvme/nvme0"

/* --- the text --------------------------------------------------------------------------------- */

static const struct {
	const char *devpath, *action, *subsystem, *more;
	enum uevent_meaning meaning;
	const char *name;
} texts[] = {
	{PCI, "add", "nvme", "DEVNAME=nvme0", UEVENT_LOOK, "nvme0"},
	{PCI, "remove", "nvme", "DEVNAME=nvme0", UEVENT_LOOK, "nvme0"},
	{PCI, "change", "nvme", "NVME_EVENT=connected", UEVENT_RESET, "nvme0"},
	{PCI, "change", "nvme", "NVME_EVENT=rediscover", UEVENT_CHANGED, "nvme0"},
	{PCI, "change", "nvme", "NVME_AEN=0x020201", UEVENT_CHANGED, "nvme0"},
	{PCI "/nvme0n1", "add", "block", "DEVTYPE=disk", UEVENT_CHANGED, "nvme0"},
	{PCI "/nvme0n1/nvme0n1p1", "remove", "block", "DEVTYPE=partition", UEVENT_CHANGED, "nvme0"},
	{"/devices/virtual/nvme-fabrics/ctl/nvme12/nvme12n1", "change", "block", "RESIZE=1",
		UEVENT_CHANGED, "nvme12"},
	/* A namespace that several controllers reach hangs on their subsystem, whose number is
	 * nobody's. */
	{"/devices/virtual/nvme-subsystem/nvme-subsys2/nvme2n1", "add", "block", "DEVTYPE=disk",
		UEVENT_CHANGED, "nvme-subsys2"},
	/* Not ours. */
	{"/devices/virtual/block/loop0", "change", "block", "DEVNAME=loop0", UEVENT_NOTHING, NULL},
	{PCI "/hwmon1", "add", "hwmon", "", UEVENT_NOTHING, NULL},
	{"/devices/virtual/nvme-fabrics/ctl", "add", "nvme-fabrics", "", UEVENT_NOTHING, NULL},
	{"/devices/x/nvme01234567890123456789012345678901234567890", "add", "nvme", "",
		UEVENT_NOTHING, NULL},
	{"", "add", "nvme", "", UEVENT_NOTHING, NULL},
};

static size_t write_text(char message[UEVENT_MAX_BYTES], size_t i) {
	int n = snprintf(message, UEVENT_MAX_BYTES,
		"%s@%s%cACTION=%s%cDEVPATH=%s%cSUBSYSTEM=%s%c%s%cSEQNUM=7", texts[i].action,
		texts[i].devpath, 0, texts[i].action, 0, texts[i].devpath, 0, texts[i].subsystem, 0,
		texts[i].more, 0);

	return (size_t)n + 1;
}

static void a_text_means_what_its_keys_say(void **state) {
	char message[UEVENT_MAX_BYTES];

	(void)state;
	for (size_t i = 0; i < array_len(texts); i++) {
		struct uevent e = uevent_read(message, write_text(message, i));

		if (e.meaning != texts[i].meaning)
			fail_msg("case %zu: %d", i, (int)e.meaning);
		if (texts[i].name)
			assert_string_equal(e.name, texts[i].name);
	}
}

static void what_is_cut_means_nothing(void **state) {
	char message[UEVENT_MAX_BYTES];
	size_t whole = write_text(message, 0);
	size_t to_subsystem =
		whole - sizeof("SUBSYSTEM=nvme") - sizeof("DEVNAME=nvme0") - sizeof("SEQNUM=7");

	(void)state;
	assert_int_equal(uevent_read(message, whole).meaning, UEVENT_LOOK);
	assert_int_equal(uevent_read(message, whole - 1).meaning, UEVENT_NOTHING);
	assert_int_equal(uevent_read(message, to_subsystem).meaning, UEVENT_NOTHING);
	assert_int_equal(uevent_read(message, 0).meaning, UEVENT_NOTHING);
}

/* --- the socket ------------------------------------------------------------------------------- */

/* In a network namespace of our own, where nobody else sends. */
static int enter_network(void **state) {
	(void)state;
	return unshare(CLONE_NEWNET);
}

/* Has the kernel tell that a loop device changed. */
static void have_kernel_tell(void) {
	int fd = open("/sys/class/block/loop0/uevent", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "change", 6), 6);
	close(fd);
}

static void wait_for(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
}

static void the_kernel_is_heard(void **state) {
	char message[UEVENT_MAX_BYTES];
	size_t length = 0;
	int fd;

	(void)state;
	assert_int_equal(uevent_open(&fd, NULL), RC_OK);
	have_kernel_tell();
	wait_for(fd);
	assert_int_equal(uevent_receive(fd, message, &length, NULL), RC_OK);
	assert_true(length > 0 && strchr(message, '@'));
	close(fd);
}

static void others_are_not_believed(void **state) {
	const struct sockaddr_nl all = {.nl_family = AF_NETLINK, .nl_groups = 1};
	char message[UEVENT_MAX_BYTES];
	size_t length = write_text(message, 0);
	int fd, liar = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

	(void)state;
	assert_int_equal(uevent_open(&fd, NULL), RC_OK);
	assert_int_equal(
		sendto(liar, message, length, 0, (const struct sockaddr *)&all, sizeof(all)),
		length);
	/* The kernel may tell of other tests' devices before. */
	do {
		wait_for(fd);
		assert_int_equal(uevent_receive(fd, message, &length, NULL), RC_OK);
	} while (length > 0 && strcmp(message, "add@" PCI) != 0);
	assert_int_equal(length, 0);
	close(liar);
	close(fd);
}

static void loss_is_noticed(void **state) {
	const int least = 1;
	char message[UEVENT_MAX_BYTES];
	size_t length;
	int fd;
	enum rc rc = RC_OK;

	(void)state;
	assert_int_equal(uevent_open(&fd, NULL), RC_OK);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	for (int i = 0; i < 64; i++)
		have_kernel_tell();
	for (int i = 0; i < 65 && rc == RC_OK; i++)
		rc = uevent_receive(fd, message, &length, NULL);
	assert_int_equal(rc, RC_FULL);
	close(fd);
}

/* --- many messages ---------------------------------------------------------------------------- */

static struct fake_tree tree;
static struct sysfs_root root;
static struct hotplug hotplug;
static struct priv_hint told[2 * HOTPLUG_MAX_HINTS];
static unsigned told_count;

static int make_tree(void **state) {
	(void)state;
	fake_tree_make(&tree);
	root = (struct sysfs_root){.sys = tree.sys, .proc = tree.proc, .dev = tree.dev};
	fake_tree_dir(&tree, "sys/class/nvme-subsystem/nvme-subsys2/nvme5");
	fake_tree_dir(&tree, "sys/class/nvme-subsystem/nvme-subsys2/nvme6");
	fake_tree_dir(&tree, "sys/class/nvme-subsystem/nvme-subsys2/nvme2n1");
	hotplug_init(&hotplug, &root);
	told_count = 0;
	return 0;
}

static int remove_tree(void **state) {
	(void)state;
	hotplug_release(&hotplug);
	fake_tree_remove(&tree);
	return 0;
}

static void tell(void *arg, const struct priv_hint *hint) {
	(void)arg;
	assert_true(told_count < array_len(told));
	told[told_count++] = *hint;
}

static void take(enum uevent_meaning meaning, const char *name) {
	struct uevent e = {.meaning = meaning};

	snprintf(e.name, sizeof(e.name), "%s", name);
	hotplug_take(&hotplug, &e);
}

static void the_same_is_told_once(void **state) {
	(void)state;
	assert_int_equal(hotplug_tick(&hotplug, 1000, tell, NULL), -1);
	take(UEVENT_CHANGED, "nvme1");
	take(UEVENT_RESET, "nvme1");
	take(UEVENT_CHANGED, "nvme1");
	take(UEVENT_LOOK, "nvme2");
	take(UEVENT_LOOK, "nvme3");
	take(UEVENT_NOTHING, "nvme4");
	assert_int_equal(hotplug_tick(&hotplug, 1000, tell, NULL), -1);
	assert_int_equal(told_count, 2);
	assert_string_equal(told[0].name, "nvme1");
	assert_int_equal(told[0].reset, 1);
	assert_string_equal(told[1].name, "");
	assert_int_equal(told[1].reset, 0);
}

static void what_follows_soon_waits_a_moment(void **state) {
	(void)state;
	take(UEVENT_LOOK, "nvme1");
	assert_int_equal(hotplug_tick(&hotplug, 1000, tell, NULL), -1);
	take(UEVENT_LOOK, "nvme1");
	assert_int_equal(hotplug_tick(&hotplug, 1040, tell, NULL), HOTPLUG_PAUSE_MS - 40);
	assert_int_equal(told_count, 1);
	assert_int_equal(hotplug_tick(&hotplug, 1000 + HOTPLUG_PAUSE_MS, tell, NULL), -1);
	assert_int_equal(told_count, 2);
}

static void a_subsystem_stands_for_its_controllers(void **state) {
	(void)state;
	take(UEVENT_CHANGED, "nvme-subsys2");
	take(UEVENT_CHANGED, "nvme-subsys3"); /* gone meanwhile */
	hotplug_tick(&hotplug, 1000, tell, NULL);
	assert_int_equal(told_count, 2);
	assert_string_equal(told[0].name, "nvme5");
	assert_string_equal(told[1].name, "nvme6");
}

static void of_too_many_all_are_meant(void **state) {
	char name[16];

	(void)state;
	for (int i = 0; i <= HOTPLUG_MAX_HINTS; i++) {
		snprintf(name, sizeof(name), "nvme%d", i);
		take(UEVENT_CHANGED, name);
	}
	take(UEVENT_CHANGED, "nvme0");
	hotplug_tick(&hotplug, 1000, tell, NULL);
	assert_int_equal(told_count, 1);
	assert_string_equal(told[0].name, "");
	assert_int_equal(told[0].reset, 1);
	assert_int_equal(told[0].lost, 0);
	take(UEVENT_CHANGED, "nvme0");
	hotplug_take_loss(&hotplug);
	hotplug_tick(&hotplug, 2000, tell, NULL);
	assert_int_equal(told_count, 2);
	assert_int_equal(told[1].lost, 1);
}

static void the_kernels_are_read_from_the_socket(void **state) {
	(void)state;
	have_kernel_tell();
	wait_for(hotplug.fd);
	hotplug_read(&hotplug);
	assert_true(hotplug.fd >= 0);
	assert_int_equal(hotplug_tick(&hotplug, 1000, tell, NULL), -1);
	assert_int_equal(told_count, 0); /* a loop device is no drive of ours */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_means_what_its_keys_say),
		cmocka_unit_test(what_is_cut_means_nothing),
		cmocka_unit_test(the_kernel_is_heard),
		cmocka_unit_test(others_are_not_believed),
		cmocka_unit_test(loss_is_noticed),
		TEST(the_same_is_told_once),
		TEST(what_follows_soon_waits_a_moment),
		TEST(a_subsystem_stands_for_its_controllers),
		TEST(of_too_many_all_are_meant),
		TEST(the_kernels_are_read_from_the_socket),
	};
	return cmocka_run_group_tests(tests, enter_network, NULL);
}
