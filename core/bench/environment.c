#include "core/bench/environment.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/compiler.h"
#include "base/parse.h"

static void read_line(const char *path, char *out, size_t size) {
	FILE *f = fopen(path, "re");
	out[0] = '\0';
	if (!f)
		return;
	if (!fgets(out, (int)size, f))
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

static void read_cpu(char *out, size_t size) {
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];
	out[0] = '\0';
	while (f && !out[0] && fgets(line, sizeof(line), f)) {
		char *value = strstr(line, ": ");
		line[strcspn(line, "\n")] = '\0';
		if (value && strncmp(line, "model name", 10) == 0)
			str_copy(out, size, value + 2);
	}
	if (f)
		fclose(f);
}

void environment_read(struct environment *out) {
	struct utsname u;
	*out = (struct environment){0};
	if (uname(&u) == 0)
		snprintf(out->kernel, sizeof(out->kernel), "%s %s", u.sysname, u.release);
	read_cpu(out->cpu, sizeof(out->cpu));
	read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", out->governor,
		sizeof(out->governor));
}
