/* The configuration: a file, then flags, each behind a NUL. What loads must dump to a file that
 * loads to the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 16
#define TEXT_MAX 65536

static void must(bool holds) {
	if (!holds)
		abort();
}

/* A path that stands for a file with these bytes. */
static const char *file_with(const char *text, size_t len) {
	static char path[64];
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("config", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(ftruncate(fd, 0) == 0 && pwrite(fd, text, len, 0) == (ssize_t)len);
	return path;
}

/* Flags that name another file are left out: the one made here is the only one that is read. */
static bool is_config_flag(const char *word) {
	return strncmp(word, "--config", 8) == 0;
}

static char *dump(const struct config *c) {
	struct buf out;
	buf_init(&out, 1024 * 1024);
	config_dump(c, &out);
	must(buf_status(&out, NULL) == RC_OK);
	return buf_take(&out, NULL);
}

static void must_read_back(const struct config *c) {
	static struct config again;
	char *first = dump(c);
	enum config_action action;
	struct err err;
	char *argv[] = {
		(char *)"drivewattd", (char *)"--config", (char *)file_with(first, strlen(first))};
	must(config_load(&again, 3, argv, &action, &err) == RC_OK);
	char *second = dump(&again);
	must(strcmp(first, second) == 0);
	free(first);
	free(second);
}

/* text is data with a NUL behind it. */
static int split_words(char *text, size_t size, char *argv[WORDS_MAX]) {
	size_t len = strlen(text);
	int argc = 0;
	argv[argc++] = (char *)"drivewattd";
	argv[argc++] = (char *)"--config";
	argv[argc++] = (char *)file_with(text, len);
	for (char *p = text + len + 1; p < text + size && argc < WORDS_MAX; p += strlen(p) + 1) {
		if (!is_config_flag(p))
			argv[argc++] = p;
	}
	return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct config c;
	static char text[TEXT_MAX + 1];
	char *argv[WORDS_MAX];
	enum config_action action;
	struct err err = {0};
	if (size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	int argc = split_words(text, size, argv);
	if (config_load(&c, argc, argv, &action, &err) != RC_OK)
		must(err.rc != RC_OK && err.msg[0]);
	else if (action != CONFIG_HELP && action != CONFIG_VERSION)
		must_read_back(&c);
	return 0;
}
