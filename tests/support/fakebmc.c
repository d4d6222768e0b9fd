#include "tests/support/fakebmc.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>

#define PROGRAM "tests/support/fakebmc.py"
#define ARGS_MAX 16

static void become(int in, int out, char *const *argv) {
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	execv(argv[0], argv);
	_exit(127);
}

static void spawn(struct fakebmc *f, char *const *argv) {
	int to[2], from[2];
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid)
		become(to[0], from[1], argv);
	close(to[0]);
	close(from[1]);
	f->to = fdopen(to[1], "w");
	f->from = fdopen(from[0], "r");
}

static void read_line(struct fakebmc *f, char *line, int size) {
	if (!fgets(line, size, f->from))
		fail_msg("%s ended", PROGRAM);
}

/* The text of "key": "text" in a flat line of JSON. */
static void take(const char *line, const char *key, char *out, size_t size) {
	char wanted[64];
	snprintf(wanted, sizeof(wanted), "\"%s\": \"", key);
	const char *p = strstr(line, wanted);
	assert_non_null(p);
	p += strlen(wanted);
	size_t len = strcspn(p, "\"");
	assert_true(len < size);
	memcpy(out, p, len);
	out[len] = '\0';
}

struct fakebmc *fakebmc_new(const char *const *args) {
	char *argv[ARGS_MAX] = {"/usr/bin/python3", PROGRAM};
	char line[512];
	struct fakebmc *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	for (size_t i = 0; args && args[i] && i + 3 < ARGS_MAX; i++)
		argv[i + 2] = (char *)(uintptr_t)args[i];
	spawn(f, argv);
	read_line(f, line, sizeof(line));
	take(line, "url", f->url, sizeof(f->url));
	take(line, "ca_file", f->ca_file, sizeof(f->ca_file));
	take(line, "fingerprint_sha256", f->fingerprint_sha256, sizeof(f->fingerprint_sha256));
	return f;
}

static void say(struct fakebmc *f, const char *line, char *reply, int size) {
	fprintf(f->to, "%s\n", line);
	fflush(f->to);
	read_line(f, reply, size);
}

void fakebmc_tell(struct fakebmc *f, const char *line) {
	char reply[64];
	say(f, line, reply, sizeof(reply));
	assert_string_equal(reply, "ok\n");
}

struct fakebmc_stats fakebmc_ask_stats(struct fakebmc *f) {
	struct fakebmc_stats s = {0};
	char reply[64];
	say(f, "stats", reply, sizeof(reply));
	assert_int_equal(
		sscanf(reply, "%d %d %d", &s.requests, &s.connections, &s.most_at_once), 3);
	return s;
}

struct fakebmc_sessions fakebmc_ask_sessions(struct fakebmc *f) {
	struct fakebmc_sessions s = {0};
	char reply[64];
	say(f, "session_stats", reply, sizeof(reply));
	assert_int_equal(sscanf(reply, "%d %d %d", &s.opened, &s.closed, &s.refused), 3);
	return s;
}

void fakebmc_free(struct fakebmc *f) {
	fclose(f->to);
	fclose(f->from);
	waitpid(f->pid, NULL, 0);
	free(f);
}
