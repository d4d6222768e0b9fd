/* A temporary directory that stands in for /sys, /proc and /dev. Aborts when it cannot be made. */
#ifndef DRIVEWATT_TESTS_FAKE_TREE_H
#define DRIVEWATT_TESTS_FAKE_TREE_H

#include "base/compiler.h"

struct fake_tree {
	char top[64];
	char sys[80], proc[80], dev[80];
};

void fake_tree_make(struct fake_tree *t);
void fake_tree_remove(struct fake_tree *t);

/* Paths are below the top, "sys/class/nvme/nvme0/model"; parents are made as needed. */
void fake_tree_file(struct fake_tree *t, const char *path, const char *fmt, ...) printf_like(3, 4);
void fake_tree_dir(struct fake_tree *t, const char *path);
void fake_tree_link(struct fake_tree *t, const char *path, const char *to);

#endif
