/*
 * Events and the audit trail, written in the transaction of the change that they tell of; ids
 * ascend and are never reused (control.db). Also small named values and idempotency keys.
 */
#ifndef DRIVEWATT_DB_EVENTS_H
#define DRIVEWATT_DB_EVENTS_H

#include "db/db.h"
#include "model/event.h"

/* Sets e->id. */
enum rc must_check db_event_insert(struct db_conn *c, struct event *e, struct err *err);
/* id > after, ascending, at most limit. The event's data is borrowed for the call. */
enum rc must_check db_event_list(struct db_conn *c, int64_t after, int limit,
	bool (*visit)(void *arg, const struct event *e), void *arg, struct err *err);
/* Oldest and newest id kept; 0 and 0 when empty. */
enum rc must_check db_event_range(
	struct db_conn *c, int64_t *first, int64_t *last, struct err *err);
enum rc must_check db_event_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

enum rc must_check db_audit_insert(struct db_conn *c, struct audit_entry *a, struct err *err);
/* id < before (INT64_MAX from the newest), descending. */
enum rc must_check db_audit_list(struct db_conn *c, int64_t before, int limit,
	bool (*visit)(void *arg, const struct audit_entry *a), void *arg, struct err *err);
enum rc must_check db_audit_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

/* Named values of the instance: its UUID and the like. RC_NOT_FOUND. */
enum rc must_check db_meta_get(
	struct db_conn *c, const char *key, char *out, size_t size, struct err *err);
enum rc must_check db_meta_set(
	struct db_conn *c, const char *key, const char *value, struct err *err);

/* What was made under (account, method, path, key). */
struct idempotency {
	char account_id[37];
	char method[8];
	char path[256];
	char key[129];
	char fingerprint[65]; /* hex of the body's digest */
	char location[256];
	int64_t created_ms;
};
/* In the creating transaction. RC_EXISTS. */
enum rc must_check db_idempotency_insert(
	struct db_conn *c, const struct idempotency *i, struct err *err);
/* Looks for i's scope and key and fills the rest. RC_NOT_FOUND. */
enum rc must_check db_idempotency_get(struct db_conn *c, struct idempotency *i, struct err *err);
enum rc must_check db_idempotency_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

#endif
