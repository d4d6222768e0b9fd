/* File targets against somebody who wants another file to be taken for them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "priv/file.h"
#include "tests/support/fake_tree.h"

#define SOMEBODY 12345
#define RACES 20000

static struct fake_tree tree;
static struct err err;

static int make_tree(void **state) {
	(void)state;
	fake_tree_make(&tree);
	fake_tree_file(&tree, "dir/target.img", "%s", "the target");
	return 0;
}

static int remove_tree(void **state) {
	(void)state;
	fake_tree_remove(&tree);
	return 0;
}

/* Below the tree; of two paths at a time. */
static const char *at(const char *path) {
	static char full[2][256];
	static unsigned turn;

	turn ^= 1;
	snprintf(full[turn], sizeof(full[turn]), "%s/%s", tree.top, path);
	return full[turn];
}

static enum rc find(const char *path) {
	auto_close int fd = -1;

	err = (struct err){0};
	return file_find(path, &fd, &err);
}

static void serial_of(const char *path, char serial[FILE_SERIAL_SIZE]) {
	auto_close int fd = -1;

	assert_int_equal(file_find(path, &fd, &err), RC_OK);
	assert_int_equal(file_serial(path, fd, serial, &err), RC_OK);
	assert_int_equal(strlen(serial), FILE_SERIAL_SIZE - 1);
}

static enum rc open_as(const char *path, const char *serial) {
	auto_close int fd = -1;

	err = (struct err){0};
	return file_open(path, serial, &fd, &err);
}

/* --- the way ---------------------------------------------------------------------------------- */

static void opens_a_file_and_reads_it(void **state) {
	char serial[FILE_SERIAL_SIZE], text[32] = "";
	auto_close int fd = -1;

	(void)state;
	serial_of(at("dir/target.img"), serial);
	assert_int_equal(file_open(at("dir/target.img"), serial, &fd, &err), RC_OK);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 10);
	assert_string_equal(text, "the target");
}

static void paths_must_be_canonical(void **state) {
	static const char *const bad[] = {"dir/../dir/target.img", "dir/./target.img",
		"dir//target.img", "dir/target.img/", "dir/target.img/.", "dir/.."};

	(void)state;
	for (size_t i = 0; i < array_len(bad); i++)
		assert_int_equal(find(at(bad[i])), RC_INVALID);
	assert_int_equal(find(""), RC_INVALID);
	assert_int_equal(find("/"), RC_INVALID);
	assert_int_equal(find("relative"), RC_INVALID);
	assert_int_equal(find(at("dir/nothing.img")), RC_NOT_FOUND);
	fake_tree_file(&tree, "dir/..odd..name.", "1");
	assert_int_equal(find(at("dir/..odd..name.")), RC_OK);
}

static void links_are_not_followed(void **state) {
	(void)state;
	fake_tree_link(&tree, "dir/link.img", "target.img");
	fake_tree_link(&tree, "way", "dir");
	fake_tree_link(&tree, "dir/nowhere", "/nonexistent/x");
	assert_int_equal(find(at("dir/link.img")), RC_INVALID);
	assert_non_null(strstr(err.msg, "link.img is a link"));
	assert_int_equal(find(at("way/target.img")), RC_INVALID);
	assert_non_null(strstr(err.msg, "way is a link"));
	assert_int_equal(find(at("dir/nowhere")), RC_INVALID);
}

static void ways_through_proc_are_not_followed(void **state) {
	char path[128];
	auto_close int fd = open(at("dir/target.img"), O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(find(path), RC_INVALID);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	assert_int_equal(find(path), RC_INVALID);
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)getpid(), at("dir/target.img"));
	assert_int_equal(find(path), RC_INVALID);
}

static void only_regular_files_are_taken(void **state) {
	(void)state;
	/* None of them is opened: a FIFO would wait, a device may do something. */
	assert_int_equal(mkfifo(at("dir/fifo"), 0600), 0);
	assert_int_equal(mknod(at("dir/null"), S_IFCHR | 0600, 0x103), 0);
	fake_tree_dir(&tree, "dir/folder");
	assert_int_equal(find(at("dir/fifo")), RC_INVALID);
	assert_int_equal(find(at("dir/null")), RC_INVALID);
	assert_int_equal(find(at("dir/folder")), RC_INVALID);
	assert_int_equal(find(at("dir/target.img/below")), RC_IO);
}

/* --- who could bend it ------------------------------------------------------------------------ */

static const struct way {
	mode_t mode; /* of the directory */
	uid_t owner;
	enum rc as_parent, further_up;
} ways[] = {
	{0755, 0, RC_OK, RC_OK},
	{0700, 0, RC_OK, RC_OK},
	{0777, 0, RC_FORBIDDEN, RC_FORBIDDEN},
	{0775, 0, RC_FORBIDDEN, RC_FORBIDDEN}, /* by the group, or an access list */
	{0757, 0, RC_FORBIDDEN, RC_FORBIDDEN},
	{0755, SOMEBODY, RC_FORBIDDEN, RC_FORBIDDEN},
	{01755, SOMEBODY, RC_FORBIDDEN, RC_FORBIDDEN},
	/* A file in it may be a link that somebody made, a directory may not. */
	{01777, 0, RC_FORBIDDEN, RC_OK},
	{01777, SOMEBODY, RC_FORBIDDEN, RC_FORBIDDEN},
};

static void set_way(const char *path, const struct way *w) {
	assert_int_equal(chown(path, w->owner, w->owner), 0);
	assert_int_equal(chmod(path, w->mode), 0);
}

static void every_directory_on_the_way_counts(void **state) {
	(void)state;
	fake_tree_file(&tree, "up/dir/target.img", "1");
	for (size_t i = 0; i < array_len(ways); i++) {
		print_message("%o %u\n", (unsigned)ways[i].mode, (unsigned)ways[i].owner);
		set_way(at("dir"), &ways[i]);
		assert_int_equal(find(at("dir/target.img")), ways[i].as_parent);
		set_way(at("up"), &ways[i]);
		assert_int_equal(find(at("up/dir/target.img")), ways[i].further_up);
	}
}

static void a_directory_of_somebody_in_a_sticky_one_is_refused(void **state) {
	(void)state;
	fake_tree_file(&tree, "tmp/dir/target.img", "1");
	assert_int_equal(chmod(at("tmp"), 01777), 0);
	assert_int_equal(find(at("tmp/dir/target.img")), RC_OK);
	assert_int_equal(chown(at("tmp/dir"), SOMEBODY, SOMEBODY), 0);
	assert_int_equal(find(at("tmp/dir/target.img")), RC_FORBIDDEN);
	assert_non_null(strstr(err.msg, "user 12345"));
}

/* --- what it is ------------------------------------------------------------------------------- */

static void another_file_of_the_name_has_another_serial(void **state) {
	char first[FILE_SERIAL_SIZE], again[FILE_SERIAL_SIZE];

	(void)state;
	serial_of(at("dir/target.img"), first);
	fake_tree_file(&tree, "dir/target.img", "%s", "written anew in place");
	serial_of(at("dir/target.img"), again);
	assert_string_equal(again, first);
	assert_int_equal(open_as(at("dir/target.img"), first), RC_OK);
	fake_tree_file(&tree, "dir/other.img", "%s", "another");
	assert_int_equal(rename(at("dir/other.img"), at("dir/target.img")), 0);
	assert_int_equal(open_as(at("dir/target.img"), first), RC_NOT_FOUND);
	assert_non_null(strstr(err.msg, "is another file now than the one with serial"));
}

/* File systems give an inode's number out again at once. */
static void a_file_made_again_has_another_serial(void **state) {
	char first[FILE_SERIAL_SIZE];

	(void)state;
	serial_of(at("dir/target.img"), first);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(unlink(at("dir/target.img")), 0);
		fake_tree_file(&tree, "dir/target.img", "%s", "the target");
		assert_int_equal(open_as(at("dir/target.img"), first), RC_NOT_FOUND);
	}
}

static void a_hard_link_is_another_target(void **state) {
	char first[FILE_SERIAL_SIZE], second[FILE_SERIAL_SIZE];

	(void)state;
	assert_int_equal(link(at("dir/target.img"), at("dir/second.img")), 0);
	serial_of(at("dir/target.img"), first);
	serial_of(at("dir/second.img"), second);
	assert_string_not_equal(first, second);
}

/* In a process and a mount namespace of its own; its status is how open_as() ended there. */
static enum rc open_after_mount(const char *from, const char *to, const char *serial) {
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) != 0 ||
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
			mount(from, to, "tmpfs", from[0] == '/' ? MS_BIND : 0, NULL) != 0)
			_exit(255);
		_exit((int)open_as(at("dir/target.img"), serial));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (enum rc)WEXITSTATUS(status);
}

static void what_is_mounted_over_it_is_not_it(void **state) {
	char serial[FILE_SERIAL_SIZE];

	(void)state;
	serial_of(at("dir/target.img"), serial);
	fake_tree_file(&tree, "other/target.img", "%s", "another");
	assert_int_equal(open_after_mount(at("other/target.img"), at("dir/target.img"), serial),
		RC_NOT_FOUND);
	assert_int_equal(open_after_mount(at("other"), at("dir"), serial), RC_NOT_FOUND);
	assert_int_equal(open_after_mount("tmpfs", at("dir"), serial), RC_NOT_FOUND);
	/* The same file through a mount is the same file. */
	assert_int_equal(
		open_after_mount(at("dir/target.img"), at("other/target.img"), serial), RC_OK);
}

/* --- races ------------------------------------------------------------------------------------ */

struct race {
	_Atomic bool over;
	char names[3][256];
};

/* Something else stands there every other moment, and not when it is over. */
static void *swap_about(void *arg) {
	struct race *r = arg;

	while (!atomic_load(&r->over)) {
		renameat2(AT_FDCWD, r->names[0], AT_FDCWD, r->names[1], RENAME_EXCHANGE);
		renameat2(AT_FDCWD, r->names[0], AT_FDCWD, r->names[1], RENAME_EXCHANGE);
	}
	return NULL;
}

/* Opens the target again and again; whatever opens must be the one with this serial. */
static unsigned opened_in_a_race(const char *moved, const char *other, const char *serial) {
	struct race r = {.over = false};
	unsigned opened = 0;
	struct stat st, good;
	pthread_t thread;
	int fd;

	snprintf(r.names[0], sizeof(r.names[0]), "%s", at(moved));
	snprintf(r.names[1], sizeof(r.names[1]), "%s", at(other));
	snprintf(r.names[2], sizeof(r.names[2]), "%s", at("dir/target.img"));
	assert_int_equal(stat(r.names[2], &good), 0);
	assert_int_equal(pthread_create(&thread, NULL, swap_about, &r), 0);
	for (int i = 0; i < RACES; i++) {
		if (file_open(r.names[2], serial, &fd, NULL) != RC_OK)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		assert_true(st.st_ino == good.st_ino && st.st_dev == good.st_dev);
		close(fd);
		opened++;
	}
	atomic_store(&r.over, true);
	pthread_join(thread, NULL);
	return opened;
}

static void no_race_opens_another_file(void **state) {
	char serial[FILE_SERIAL_SIZE];

	(void)state;
	fake_tree_file(&tree, "bait/target.img", "%s", "not the target");
	fake_tree_link(&tree, "link", "bait");
	fake_tree_link(&tree, "dir/link.img", "../bait/target.img");
	fake_tree_file(&tree, "dir/bait.img", "%s", "not the target");
	serial_of(at("dir/target.img"), serial);
	opened_in_a_race("dir", "bait", serial);
	opened_in_a_race("dir", "link", serial);
	opened_in_a_race("dir/target.img", "dir/link.img", serial);
	opened_in_a_race("dir/target.img", "dir/bait.img", serial);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, make_tree, remove_tree)

int main(void) {
	const struct CMUnitTest tests[] = {
		IN_TREE(opens_a_file_and_reads_it),
		IN_TREE(paths_must_be_canonical),
		IN_TREE(links_are_not_followed),
		IN_TREE(ways_through_proc_are_not_followed),
		IN_TREE(only_regular_files_are_taken),
		IN_TREE(every_directory_on_the_way_counts),
		IN_TREE(a_directory_of_somebody_in_a_sticky_one_is_refused),
		IN_TREE(another_file_of_the_name_has_another_serial),
		IN_TREE(a_file_made_again_has_another_serial),
		IN_TREE(a_hard_link_is_another_target),
		IN_TREE(what_is_mounted_over_it_is_not_it),
		IN_TREE(no_race_opens_another_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
