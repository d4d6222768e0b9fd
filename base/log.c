#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static _Atomic(const char *) log_process = "drivewatt";
static _Atomic(enum log_level) log_level = LOG_LEVEL_INFO;

void log_init(const char *process, enum log_level level) {
	atomic_store(&log_process, process);
	atomic_store(&log_level, level);
}

void log_set_level(enum log_level level) {
	atomic_store(&log_level, level);
}

/* One message stays one line, whatever a drive or a peer put into it. */
static void flatten(char *s, size_t len) {
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			s[i] = ' ';
	}
}

/* len as snprintf returned it, cut to what fits into size. */
static size_t written(int len, size_t size) {
	if (len < 0)
		return 0;
	return (size_t)len < size ? (size_t)len : size - 1;
}

void log_write(enum log_level level, const char *subsystem, const char *fmt, ...) {
	if (level > atomic_load(&log_level))
		return;
	int saved_errno = errno;
	char line[LINE_MAX_BYTES];
	size_t room = sizeof(line) - 1; /* for the newline */
	size_t len = written(snprintf(line, room, "%s: %s %s: ", atomic_load(&log_process),
				     level_names[level], subsystem),
		room);
	va_list ap;
	va_start(ap, fmt);
	len += written(vsnprintf(line + len, room - len, fmt, ap), room - len);
	va_end(ap);
	flatten(line, len);
	line[len++] = '\n';
	/* One write, so that lines of several threads and processes do not mix. There is nobody to
	 * tell when it fails. */
	ssize_t n = write(STDERR_FILENO, line, len);
	(void)n;
	errno = saved_errno;
}

void log_err(enum log_level level, const char *subsystem, const char *what, const struct err *err) {
	bool has_field = err->field[0] != '\0';
	log_write(level, subsystem, "%s: %s%s%s (%s)", what, err->field, has_field ? ": " : "",
		err->msg, rc_name(err->rc));
}
