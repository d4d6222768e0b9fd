/*
 * The one error vocabulary. A fallible function returns enum rc and, last, fills a struct err:
 * set once, where the fault is seen; logged once, at the top; never both logged and returned.
 */
#ifndef DRIVEWATT_BASE_RC_H
#define DRIVEWATT_BASE_RC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum rc {
	RC_OK = 0,
	RC_INVALID,         /* input breaks a rule; err.field names it */
	RC_UNAUTHENTICATED, /* no or wrong credentials */
	RC_FORBIDDEN,       /* credentials are right, the role or a permission is not */
	RC_NOT_FOUND,
	RC_EXISTS,                /* a unique name is taken */
	RC_CONFLICT,              /* the object's state does not allow it now */
	RC_PRECONDITION,          /* If-Match or a like condition failed */
	RC_PRECONDITION_REQUIRED, /* a condition is demanded and there is none */
	RC_TOO_LARGE,             /* a hard maximum was met */
	RC_THROTTLED,             /* whoever asks must wait, others need not */
	RC_FULL,                  /* a queue, pool or table is full; try again later */
	RC_TIMEOUT,               /* no answer in time; it may still come */
	RC_UNAVAILABLE,           /* the thing that should answer is gone or not set up */
	RC_REFUSED, /* the device or peer answered no; err.nvme_status where it is NVMe */
	RC_UNSUPPORTED,
	RC_CANCELLED,
	RC_NO_SPACE, /* disk full */
	RC_STORE,    /* the store cannot be written */
	RC_CORRUPT,  /* stored or received data is damaged */
	RC_IO,
	RC_NOMEM,
	RC_INTERNAL, /* a bug, or a state that cannot be */
	RC_COUNT_
};

struct err {
	enum rc rc;
	uint16_t nvme_status; /* SC | SCT << 8 | … as the drive gave it, 0 if none */
	char field[96];       /* RFC 6901 pointer into the input ("/state"), or a query parameter's
				 name; empty when no field is at fault */
	char msg[256];        /* one sentence for a person, no trailing full stop */
	uint16_t more_len;    /* of more: further fields at fault, each with its sentence */
	char more[510];
};

/* "invalid", "not_found" …: stable words for logs and JSON. Any thread. */
const char *rc_name(enum rc rc);

/* Fills *err (may be NULL) and returns rc, so that `return err_set(err, RC_X, "…")` reads well. */
enum rc err_set(struct err *err, enum rc rc, const char *fmt, ...) printf_like(3, 4);

/* As err_set with the field at fault. */
enum rc err_field(struct err *err, enum rc rc, const char *field, const char *fmt, ...)
	printf_like(4, 5);

/* As err_set from errno, "what: strerror". ENOSPC → RC_NO_SPACE, ENOMEM → RC_NOMEM,
 * ENOENT/ENODEV → RC_NOT_FOUND, EACCES/EPERM → RC_FORBIDDEN, else RC_IO. */
enum rc err_errno(struct err *err, int errnum, const char *what);

/* Notes one more field of the same input that is at fault; what does not fit is left out. err is
 * filled already. */
void err_more(struct err *err, const char *field, const char *msg);
/* Goes through those: *at begins with 0. False at the end. */
bool err_next(const struct err *err, size_t *at, const char **field, const char **msg);

#endif
