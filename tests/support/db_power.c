#include "tests/support/db_power.h"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"

#define SECTOR 512
#define FILES_MAX 32
#define PATH_SIZE 128

/* What is left behind by a power cut: the database and its log. The log's index is not on disk. */
static const char *const kept[] = {"", "-wal"};

struct bytes {
	unsigned char *data; /* owned */
	size_t len;
};

static struct bytes read_file(const char *path) {
	struct bytes b = {NULL, 0};
	struct stat st;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return b;
	assert_int_equal(fstat(fd, &st), 0);
	b.len = (size_t)st.st_size;
	b.data = malloc(b.len + 1);
	assert_non_null(b.data);
	assert_int_equal(read(fd, b.data, b.len), b.len);
	return b;
}

/* Whole or not at all, should we be killed meanwhile. */
static void write_file(const char *path, const struct bytes *b) {
	char other[PATH_SIZE + 8];
	snprintf(other, sizeof(other), "%s.new", path);
	auto_close int fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, b->data, b->len), b->len);
	assert_int_equal(rename(other, path), 0);
}

static void durable_path(const char *path, char out[PATH_SIZE]) {
	assert_true(snprintf(out, PATH_SIZE, "%s.durable", path) < PATH_SIZE);
}

static void keep(const char *path) {
	char durable[PATH_SIZE];
	struct bytes b = read_file(path);
	durable_path(path, durable);
	write_file(durable, &b);
	free(b.data);
}

/* --- the process that will be killed ------------------------------------------------------------
 */

static struct watched {
	sqlite3_file *file; /* NULL: a free place */
	const char *path;   /* SQLite's, as long as the file is open */
	const sqlite3_io_methods *methods;
	sqlite3_io_methods ours;
} watched[FILES_MAX];

static sqlite3_vfs ours;

static struct watched *find(const sqlite3_file *file) {
	for (size_t i = 0; i < FILES_MAX; i++) {
		if (watched[i].file == file)
			return &watched[i];
	}
	fail_msg("more than %d files", FILES_MAX);
	return NULL;
}

/* Through SQLite: closing a descriptor of our own would drop its locks. */
static void keep_open(const struct watched *w) {
	char durable[PATH_SIZE];
	sqlite3_int64 size;
	durable_path(w->path, durable);
	assert_int_equal(w->methods->xFileSize(w->file, &size), SQLITE_OK);
	struct bytes b = {malloc((size_t)size + 1), (size_t)size};
	assert_non_null(b.data);
	if (size)
		assert_int_equal(w->methods->xRead(w->file, b.data, (int)size, 0), SQLITE_OK);
	write_file(durable, &b);
	free(b.data);
}

static int sync_file(sqlite3_file *file, int flags) {
	const struct watched *w = find(file);
	const int code = w->methods->xSync(file, flags);
	if (code == SQLITE_OK)
		keep_open(w);
	return code;
}

static int close_file(sqlite3_file *file) {
	struct watched *w = find(file);
	w->file = NULL;
	return w->methods->xClose(file);
}

static int open_file(
	sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags) {
	sqlite3_vfs *real = vfs->pAppData;
	const int code = real->xOpen(real, path, file, flags, out_flags);
	if (code != SQLITE_OK || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
		return code;
	struct watched *w = find(NULL);
	*w = (struct watched){file, path, file->pMethods, *file->pMethods};
	w->ours.xSync = sync_file;
	w->ours.xClose = close_file;
	file->pMethods = &w->ours;
	return code;
}

void db_power_watch(void) {
	sqlite3_vfs *real = sqlite3_vfs_find(NULL);
	ours = *real;
	ours.zName = "power";
	ours.pAppData = real;
	ours.xOpen = open_file;
	assert_int_equal(sqlite3_vfs_register(&ours, 1), SQLITE_OK);
}

/* --- afterwards
 * ----------------------------------------------------------------------------------- */

void db_power_settle(const char *db_path) {
	for (size_t i = 0; i < array_len(kept); i++) {
		char path[PATH_SIZE];
		snprintf(path, sizeof(path), "%s%s", db_path, kept[i]);
		keep(path);
	}
}

static void cut(const char *path) {
	char durable[PATH_SIZE], half[PATH_SIZE + 8];
	durable_path(path, durable);
	struct bytes old = read_file(durable), now = read_file(path);
	const bool has_new_size = rand() % 2;
	struct bytes left = {calloc(1, old.len + now.len + 1), has_new_size ? now.len : old.len};
	assert_non_null(left.data);
	for (size_t at = 0; at < left.len; at += SECTOR) {
		const struct bytes *from = rand() % 2 ? &now : &old;
		const size_t n = from->len > at ? from->len - at : 0;
		if (n)
			memcpy(left.data + at, from->data + at, n < SECTOR ? n : SECTOR);
	}
	write_file(path, &left);
	unlink(durable);
	snprintf(half, sizeof(half), "%s.new", durable);
	unlink(half);
	free(left.data);
	free(now.data);
	free(old.data);
}

void db_power_cut(const char *db_path) {
	char path[PATH_SIZE];
	for (size_t i = 0; i < array_len(kept); i++) {
		snprintf(path, sizeof(path), "%s%s", db_path, kept[i]);
		cut(path);
	}
	snprintf(path, sizeof(path), "%s-shm", db_path);
	unlink(path);
}
