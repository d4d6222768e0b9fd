/*
 * JSON as BMCs send it: control bytes and broken UTF-8 within strings are repaired, a byte order
 * mark is dropped, of several documents the last that is no error object counts. All else is
 * strict: a damaged number is never guessed. Pure.
 */
#ifndef DRIVEWATT_CORE_BMC_FOREIGN_JSON_H
#define DRIVEWATT_CORE_BMC_FOREIGN_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/rc.h"

#define FOREIGN_JSON_MAX_DEPTH 64
#define FOREIGN_JSON_MAX_BYTES (4u * 1024 * 1024)

struct foreign_json {
	json_t *doc; /* an object or array; the holder's to json_decref. With RC_REFUSED, the
			error object */
	bool repaired;
	const char *reason; /* one word for what is wrong, static text; NULL when nothing is:
			       bmc_not_json, bmc_bad_json, bmc_truncated, bmc_error */
};

/* RC_CORRUPT; RC_REFUSED when there is nothing but an error object; RC_TOO_LARGE. */
enum rc must_check foreign_json_parse(
	const char *text, size_t len, struct foreign_json *out, struct err *err);

#endif
