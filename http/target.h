/* A request target taken apart: "/a/b%2Fc?x=1" gives the segments "a" and "b/c" and x = "1". */
#ifndef DRIVEWATT_HTTP_TARGET_H
#define DRIVEWATT_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rc.h"

#define TARGET_MAX_SEGMENTS 16
#define TARGET_MAX_ARGS 32

struct target {
	size_t path_len; /* of the raw target */
	unsigned segment_count;
	unsigned arg_count;
	const char *segments[TARGET_MAX_SEGMENTS];
	struct target_arg {
		const char *name;
		const char *value; /* "" when there is none */
	} args[TARGET_MAX_ARGS];
};

/* Room for the decoded texts. */
#define target_scratch_size(raw_len) ((raw_len) + 2)

/* Each part is decoded by itself, so that %2F does not cut a segment. One slash at the end is
 * dropped, nothing else is normalised. scratch (target_scratch_size) keeps the decoded texts and
 * must live as long as *t. RC_INVALID: bad %, NUL, bad UTF-8, too many arguments; the segments
 * decoded until then are filled. RC_NOT_FOUND: deeper than any route. */
enum rc must_check target_parse(struct target *t, const char *raw, char *scratch, struct err *err);

/* raw without scheme and authority where it is in absolute form. */
const char *target_origin(const char *raw);

/* NULL when absent. */
const char *target_arg(const struct target *t, const char *name);

#endif
