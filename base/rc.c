#include "base/rc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[RC_COUNT_] = {
	[RC_OK] = "ok",
	[RC_INVALID] = "invalid",
	[RC_UNAUTHENTICATED] = "unauthenticated",
	[RC_FORBIDDEN] = "forbidden",
	[RC_NOT_FOUND] = "not_found",
	[RC_EXISTS] = "exists",
	[RC_CONFLICT] = "conflict",
	[RC_PRECONDITION] = "precondition",
	[RC_PRECONDITION_REQUIRED] = "precondition_required",
	[RC_TOO_LARGE] = "too_large",
	[RC_THROTTLED] = "throttled",
	[RC_FULL] = "full",
	[RC_TIMEOUT] = "timeout",
	[RC_UNAVAILABLE] = "unavailable",
	[RC_REFUSED] = "refused",
	[RC_UNSUPPORTED] = "unsupported",
	[RC_CANCELLED] = "cancelled",
	[RC_NO_SPACE] = "no_space",
	[RC_STORE] = "store",
	[RC_CORRUPT] = "corrupt",
	[RC_IO] = "io",
	[RC_NOMEM] = "nomem",
	[RC_INTERNAL] = "internal",
};

const char *rc_name(enum rc rc) {
	if ((unsigned)rc >= RC_COUNT_)
		return "unknown";
	return names[rc];
}

static printf_like(4, 0) enum rc
	fill(struct err *err, enum rc rc, const char *field, const char *fmt, va_list ap) {
	if (!err)
		return rc;
	err->rc = rc;
	err->nvme_status = 0;
	err->more_len = 0;
	snprintf(err->field, sizeof(err->field), "%s", field);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	return rc;
}

enum rc err_set(struct err *err, enum rc rc, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	fill(err, rc, "", fmt, ap);
	va_end(ap);
	return rc;
}

enum rc err_field(struct err *err, enum rc rc, const char *field, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	fill(err, rc, field ? field : "", fmt, ap);
	va_end(ap);
	return rc;
}

static enum rc rc_from_errno(int errnum) {
	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
		return RC_NO_SPACE;
	case ENOMEM:
		return RC_NOMEM;
	case ENOENT:
	case ENODEV:
		return RC_NOT_FOUND;
	case EACCES:
	case EPERM:
		return RC_FORBIDDEN;
	default:
		return RC_IO;
	}
}

enum rc err_errno(struct err *err, int errnum, const char *what) {
	char text[128];
	/* The GNU form, which may leave text alone and return its own. */
	return err_set(
		err, rc_from_errno(errnum), "%s: %s", what, strerror_r(errnum, text, sizeof(text)));
}

void err_more(struct err *err, const char *field, const char *msg) {
	const size_t field_size = strlen(field) + 1, msg_size = strlen(msg) + 1;
	if (err->more_len + field_size + msg_size > sizeof(err->more))
		return;
	memcpy(err->more + err->more_len, field, field_size);
	memcpy(err->more + err->more_len + field_size, msg, msg_size);
	err->more_len = (uint16_t)(err->more_len + field_size + msg_size);
}

bool err_next(const struct err *err, size_t *at, const char **field, const char **msg) {
	if (*at >= err->more_len)
		return false;
	*field = err->more + *at;
	*msg = *field + strlen(*field) + 1;
	*at += strlen(*field) + strlen(*msg) + 2;
	return true;
}
