#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/fake_tree.h"

#define PATH_SIZE 512

static void must(bool ok, const char *what) {
	if (ok)
		return;
	perror(what);
	abort();
}

void fake_tree_make(struct fake_tree *t) {
	snprintf(t->top, sizeof(t->top), "/tmp/drivewatt-tree-XXXXXX");
	must(mkdtemp(t->top) != NULL, t->top);
	snprintf(t->sys, sizeof(t->sys), "%s/sys", t->top);
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->top);
	snprintf(t->dev, sizeof(t->dev), "%s/dev", t->top);
	fake_tree_dir(t, "sys");
	fake_tree_dir(t, "proc");
	fake_tree_dir(t, "dev");
}

static int remove_entry(const char *path, unused_arg const struct stat *st, unused_arg int type,
	unused_arg struct FTW *ftw) {
	return remove(path);
}

void fake_tree_remove(struct fake_tree *t) {
	nftw(t->top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void path_below(const struct fake_tree *t, const char *path, char out[PATH_SIZE]) {
	int n = snprintf(out, PATH_SIZE, "%s/%s", t->top, path);

	must(n > 0 && n < PATH_SIZE, path);
	for (char *p = out + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		must(mkdir(out, 0755) == 0 || errno == EEXIST, out);
		*p = '/';
	}
}

void fake_tree_file(struct fake_tree *t, const char *path, const char *fmt, ...) {
	char full[PATH_SIZE];
	FILE *f;
	va_list ap;

	path_below(t, path, full);
	f = fopen(full, "w");
	must(f != NULL, full);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	must(fclose(f) == 0, full);
}

void fake_tree_dir(struct fake_tree *t, const char *path) {
	char full[PATH_SIZE];

	path_below(t, path, full);
	must(mkdir(full, 0755) == 0 || errno == EEXIST, full);
}

void fake_tree_link(struct fake_tree *t, const char *path, const char *to) {
	char full[PATH_SIZE];

	path_below(t, path, full);
	must(symlink(to, full) == 0, full);
}
