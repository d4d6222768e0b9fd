/* Prometheus text format 0.0.4, a line at a time. */
#ifndef DRIVEWATT_API_ROOT_PROM_H
#define DRIVEWATT_API_ROOT_PROM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* HELP and TYPE; the samples of the family follow at once. help has neither backslash nor line
 * feed. */
void prom_family(struct buf *out, const char *name, const char *type, const char *help);

/* One sample: begin, labels, value. */
struct prom {
	struct buf *out;
	bool labelled;
};
struct prom prom_begin(struct buf *out, const char *name);
/* value is any text: it is escaped. */
void prom_label(struct prom *p, const char *name, const char *value);
void prom_value(struct prom *p, double value);

/* A family of one sample without labels. */
void prom_gauge(struct buf *out, const char *name, const char *help, double value);

/* What is kept as thousandths, in the unit itself; false for NONE: no sample is shown. */
bool prom_milli(int64_t milli, double *value);

#endif
