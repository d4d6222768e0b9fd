#include <limits.h>
#include <stdio.h>

#include "priv/procfs.h"

#define LINES_MAX 100000

bool procfs_each_line(const struct sysfs_root *root, const char *file,
	void (*check)(void *arg, char *line), void *arg) {
	char path[PATH_MAX];
	auto_free char *line = NULL;
	size_t size = 0;
	FILE *in;
	bool whole;

	snprintf(path, sizeof(path), "%s/%s", root->proc, file);
	in = fopen(path, "re");
	if (!in)
		return false;
	for (int i = 0; i < LINES_MAX && getline(&line, &size, in) > 0; i++)
		check(arg, line);
	whole = feof(in) && !ferror(in);
	fclose(in);
	return whole;
}

void procfs_unescape(char *s) {
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}
