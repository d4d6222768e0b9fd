/* Hosts, their BMC settings and baselines (control.db). */
#ifndef DRIVEWATT_DB_HOSTS_H
#define DRIVEWATT_DB_HOSTS_H

#include "db/db.h"
#include "model/host.h"

/* Borrowed strings in h->bmc are copied. Inserts or replaces everything but the baselines. */
enum rc must_check db_host_put(
	struct db_conn *c, const struct host *h, bool *created, struct err *err);
/* h->bmc.password_sealed is the visitor's to copy, not to keep. Baselines are filled. */
enum rc must_check db_host_each(struct db_conn *c, bool (*visit)(void *arg, const struct host *h),
	void *arg, struct err *err);
enum rc must_check db_host_delete(struct db_conn *c, const char *id, struct err *err);
/* known = false removes it. */
enum rc must_check db_baseline_put(struct db_conn *c, const char *host_id, enum baseline_kind kind,
	const struct baseline *b, struct err *err);

#endif
