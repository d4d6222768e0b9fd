/* Standing wishes for the drives that a selector fits (control.db). */
#ifndef DRIVEWATT_DB_POLICIES_H
#define DRIVEWATT_DB_POLICIES_H

#include "db/db.h"
#include "model/policy.h"

/* Inserts, or replaces all but created_ms. */
enum rc must_check db_policy_put(struct db_conn *c, const struct policy *p, struct err *err);
/* RC_NOT_FOUND. */
enum rc must_check db_policy_get(
	struct db_conn *c, const char *name, struct policy *out, struct err *err);
enum rc must_check db_policy_delete(struct db_conn *c, const char *name, struct err *err);
/* By name. */
enum rc must_check db_policy_each(struct db_conn *c,
	bool (*visit)(void *arg, const struct policy *p), void *arg, struct err *err);

#endif
