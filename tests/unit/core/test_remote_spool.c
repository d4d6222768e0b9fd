/* Remote write's spool: in order, bounded, and there again after an end at any moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/remote/spool.h"

#define BLOCK SPOOL_BLOCK_BYTES

struct fixture {
	char top[64], dir[80];
	struct spool s;
};

static int set_up(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	snprintf(f->top, sizeof(f->top), "/tmp/dw-spool-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	snprintf(f->dir, sizeof(f->dir), "%s/spool", f->top);
	f->s.dir = -1;
	*state = f;
	return 0;
}

static unsigned files(struct fixture *f, bool remove) {
	unsigned n = 0;
	DIR *d = opendir(f->dir);
	char path[PATH_MAX];
	for (const struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", f->dir, e->d_name);
		if (remove)
			unlink(path);
	}
	if (d)
		closedir(d);
	return n;
}

static int tear_down(void **state) {
	struct fixture *f = *state;
	spool_close(&f->s);
	files(f, true);
	rmdir(f->dir);
	rmdir(f->top);
	free(f);
	return 0;
}

static void open_with(struct fixture *f, int64_t max_bytes) {
	struct err err;
	spool_close(&f->s);
	assert_int_equal(spool_open(&f->s, f->dir, max_bytes, &err), RC_OK);
}

static int64_t put(struct fixture *f, int64_t at_ms, unsigned samples, const char *text) {
	struct err err;
	int64_t dropped;
	assert_int_equal(
		spool_put(&f->s, at_ms, samples, text, strlen(text), &dropped, &err), RC_OK);
	return dropped;
}

static void oldest_is(struct fixture *f, const char *text) {
	struct err err;
	struct buf b;
	buf_init(&b, 65536);
	const struct spool_entry *e = spool_oldest(&f->s);
	assert_non_null(e);
	assert_int_equal(spool_read(&f->s, e, &b, &err), RC_OK);
	assert_string_equal(buf_str(&b), text);
	buf_release(&b);
}

static void test_in_order(void **state) {
	struct fixture *f = *state;
	open_with(f, 1 << 20);
	assert_null(spool_oldest(&f->s));
	put(f, 10, 1, "a");
	put(f, 5, 2, "b"); /* the wall clock went back */
	put(f, 11, 3, "c");
	assert_int_equal(f->s.samples, 6);
	oldest_is(f, "a");
	assert_int_equal(spool_remove(&f->s, spool_oldest(&f->s)->number), 1);
	oldest_is(f, "b");
	assert_int_equal(spool_remove(&f->s, spool_oldest(&f->s)->number + 1), 0);
	assert_int_equal(spool_remove(&f->s, spool_oldest(&f->s)->number), 2);
	oldest_is(f, "c");
	assert_int_equal(files(f, false), 1);
}

static void test_there_again(void **state) {
	struct fixture *f = *state;
	open_with(f, 1 << 20);
	for (int i = 0; i < 12; i++)
		put(f, 1000 + i, 7, i ? "x" : "first");
	open_with(f, 1 << 20);
	assert_int_equal(f->s.samples, 84);
	assert_int_equal(spool_oldest(&f->s)->at_ms, 1000);
	oldest_is(f, "first");
	put(f, 1, 1, "last");
	for (int i = 0; i < 12; i++)
		spool_remove(&f->s, spool_oldest(&f->s)->number);
	oldest_is(f, "last");
}

static void test_what_is_no_message_goes(void **state) {
	static const char *const names[] = {"new", "00000000000000000001-5-3.snappy.tmp",
		"1-5-3.snappy", "00000000000000000001-5--3.snappy", "x"};
	struct fixture *f = *state;
	char path[PATH_MAX];
	open_with(f, 1 << 20);
	put(f, 1, 1, "a");
	for (size_t i = 0; i < array_len(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		close(open(path, O_WRONLY | O_CREAT, 0600));
	}
	open_with(f, 1 << 20);
	assert_int_equal(f->s.samples, 1);
	assert_int_equal(files(f, false), 1);
}

static void test_the_oldest_goes_when_it_is_full(void **state) {
	struct fixture *f = *state;
	char large[2 * BLOCK + 1];
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	open_with(f, 4 * BLOCK);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(put(f, i, i + 1, i == 3 ? "d" : "a"), 0);
	assert_int_equal(put(f, 4, 5, "e"), 1);
	assert_int_equal(put(f, 5, 6, large), 2 + 3 + 4);
	assert_int_equal(f->s.samples, 11);
	oldest_is(f, "e");
	assert_int_equal(files(f, false), 2);
	/* One that is larger than all does not stay either. */
	open_with(f, BLOCK);
	assert_int_equal(put(f, 6, 7, large), 5 + 6 + 7);
	assert_null(spool_oldest(&f->s));
	assert_int_equal(f->s.blocks, 0);
	assert_int_equal(files(f, false), 0);
}

static void test_the_old_go(void **state) {
	struct fixture *f = *state;
	open_with(f, 1 << 20);
	for (unsigned i = 0; i < 5; i++)
		put(f, 100 * i, i, "a");
	assert_int_equal(spool_expire(&f->s, 300), 0 + 1 + 2);
	assert_int_equal(spool_expire(&f->s, 300), 0);
	assert_int_equal(spool_oldest(&f->s)->at_ms, 300);
}

static void test_many(void **state) {
	struct fixture *f = *state;
	open_with(f, 1 << 20);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 200; i++)
			put(f, i, 1, "a");
		for (int i = 0; i < 190; i++)
			assert_int_equal(spool_remove(&f->s, spool_oldest(&f->s)->number), 1);
	}
	assert_int_equal(f->s.samples, 50);
	assert_true(f->s.room <= 512);
	assert_int_equal(files(f, false), 50);
}

static void test_a_failed_write_leaves_all_as_it_was(void **state) {
	struct fixture *f = *state;
	struct err err;
	int64_t dropped = -1;
	open_with(f, 1 << 20);
	put(f, 1, 1, "a");
	int dir = f->s.dir;
	f->s.dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
	assert_int_not_equal(spool_put(&f->s, 2, 9, "b", 1, &dropped, &err), RC_OK);
	close(f->s.dir);
	f->s.dir = dir;
	assert_int_equal(dropped, 0);
	assert_int_equal(f->s.samples, 1);
	put(f, 3, 1, "c");
	oldest_is(f, "a");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_in_order),
		TEST(test_there_again),
		TEST(test_what_is_no_message_goes),
		TEST(test_the_oldest_goes_when_it_is_full),
		TEST(test_the_old_go),
		TEST(test_many),
		TEST(test_a_failed_write_leaves_all_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
