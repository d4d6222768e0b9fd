/* How a workload reads and is read in JSON: for the catalogue and inside a benchmark. */
#ifndef DRIVEWATT_API_V1_WORKLOAD_JSON_H
#define DRIVEWATT_API_V1_WORKLOAD_JSON_H

#include "api/v1/v1.h"

/* The members, without the braces. */
void workload_render(struct jsonw *w, const struct workload *l);
/* Checked; base is the object's pointer. */
enum rc must_check workload_decode(
	const json_t *object, const char *base, struct workload *out, struct err *err);

#endif
