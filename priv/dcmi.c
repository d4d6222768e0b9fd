#include "priv/dcmi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/parse.h"

#define OUTPUT_MAX 4096
#define WATTS_MAX 65535 /* two bytes on the wire */
#define KILL_WAIT_MS 2000

/* --- what they print --- */

/* What stands behind the colon of the line that begins with the label; NULL there is none. */
static const char *value_of(const char *text, const char *label) {
	size_t len = strlen(label);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, "\n\r\t ");
		if (strncmp(line, label, len) != 0)
			continue;
		line += len;
		line += strspn(line, " \t");
		if (*line == ':')
			return line + 1 + strspn(line + 1, " \t");
	}
	return NULL;
}

static const char *any_value(const char *text, const char *const labels[2]) {
	const char *value = value_of(text, labels[0]);
	return value ? value : value_of(text, labels[1]);
}

enum rc dcmi_parse(const char *text, int64_t *power_mw, struct err *err) {
	static const char *const labels[] = {"Instantaneous power reading", "Current Power"};
	const char *value = any_value(text, labels);
	char *end = NULL;
	long watts = value ? strtol(value, &end, 10) : -1;
	if (!value || end == value || watts < 0 || watts > WATTS_MAX || (*end && *end != ' '))
		return err_set(err, RC_CORRUPT, "the answer has no watts in it");
	/* Whether it measures is said too, but by some wrongly: OpenBMC never says so. */
	if (!watts)
		return err_set(err, RC_UNSUPPORTED, "the BMC measures no power over DCMI");
	*power_mw = (int64_t)watts * 1000;
	return RC_OK;
}

/* --- running them --- */

static const char *const *arguments_of(const char *program) {
	static const char *const ipmitool[] = {
		"ipmitool", "-I", "open", "dcmi", "power", "reading", NULL};
	static const char *const freeipmi[] = {"ipmi-dcmi", "--get-system-power-statistics", NULL};
	const char *slash = strrchr(program, '/');
	return slash && strcmp(slash + 1, freeipmi[0]) == 0 ? freeipmi : ipmitool;
}

/* Both of its outputs, until it closes them; what does not fit is dropped. False: not in time. */
static bool read_output(int fd, char out[OUTPUT_MAX], int64_t deadline_ms) {
	size_t len = 0;
	ssize_t n;
	do {
		char chunk[512] = "";
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left_ms = deadline_ms - clock_mono_ms();
		if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0)
			return false;
		n = read(fd, chunk, sizeof(chunk));
		size_t room = OUTPUT_MAX - 1 - len, more = n > 0 ? (size_t)n : 0;
		more = more < room ? more : room;
		memcpy(out + len, chunk, more);
		len += more;
	} while (n > 0 || (n < 0 && errno == EINTR));
	out[len] = '\0';
	return true;
}

static enum rc start(const char *program, struct child *child, int *output, struct err *err) {
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(err, errno, "pipe");
	const struct child_spec spec = {.path = program,
		.argv = arguments_of(program),
		.cwd_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = fds[1],
		.stderr_fd = fds[1],
		.drop_capabilities = true};
	enum rc rc = child_start(&spec, child, err);
	close(fds[1]);
	if (rc)
		close(fds[0]);
	else
		*output = fds[0];
	return rc;
}

/* Its complaint's first line. */
static enum rc complain(char *output, struct err *err) {
	output[strcspn(output, "\r\n")] = '\0';
	for (char *p = output; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	return err_set(err, RC_REFUSED, "%.120s", *output ? output : "it failed without a word");
}

enum rc dcmi_read(const char *program, int64_t timeout_ms, int64_t *power_mw, struct err *err) {
	struct child child;
	char output[OUTPUT_MAX];
	auto_close int fd = -1;
	int code = -1, sig = 0;
	if (access(program, X_OK) != 0)
		return err_set(err, RC_UNSUPPORTED, "%s is not installed", program);
	int64_t deadline_ms = clock_mono_ms() + timeout_ms;
	enum rc rc = start(program, &child, &fd, err);
	if (rc)
		return rc;
	bool ended = read_output(fd, output, deadline_ms);
	if (!ended || !child_wait(&child, KILL_WAIT_MS, &code, &sig)) {
		child_signal(&child, SIGKILL);
		(void)child_wait(&child, KILL_WAIT_MS, &code, &sig);
		rc = err_set(err, RC_TIMEOUT, "the BMC does not answer over IPMI");
	} else {
		rc = code ? complain(output, err) : dcmi_parse(output, power_mw, err);
	}
	child_release(&child);
	return rc;
}
