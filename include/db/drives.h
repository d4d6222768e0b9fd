/* What is kept about drives: that they were seen, labels, claims (control.db). */
#ifndef DRIVEWATT_DB_DRIVES_H
#define DRIVEWATT_DB_DRIVES_H

#include "db/db.h"
#include "model/drive.h"
#include "model/power.h"

struct drive_record {
	char id[DRIVE_ID_SIZE];
	char model[41], serial[21];
	char labels[512]; /* JSON object of strings, "" none */
	uint32_t config_version;
	int64_t first_seen_ms, last_seen_ms;
};

/* Inserts, or refreshes model, serial and last_seen_ms; labels and version are kept. */
enum rc must_check db_drive_seen(struct db_conn *c, const struct drive_record *d, struct err *err);
enum rc must_check db_drive_get(
	struct db_conn *c, const char *id, struct drive_record *out, struct err *err);
/* Writes labels and config_version; RC_NOT_FOUND. */
enum rc must_check db_drive_set_labels(struct db_conn *c, const char *id, const char *labels,
	uint32_t config_version, struct err *err);
/* Those last seen before then, but for those with labels or claims. */
enum rc must_check db_drive_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);

/* One claim a (drive, kind, owner): a second put replaces the wish, keeping id and created_ms,
 * which are written back into *claim. */
enum rc must_check db_claim_put(struct db_conn *c, struct claim *claim, struct err *err);
/* owner NULL: of any owner. Not an error when none; *removed may be NULL. */
enum rc must_check db_claim_delete_kind(struct db_conn *c, const char *drive_id,
	enum claim_kind kind, const char *owner, int *removed, struct err *err);
/* drive_id NULL: all drives. */
enum rc must_check db_claim_each(struct db_conn *c, const char *drive_id,
	bool (*visit)(void *arg, const struct claim *claim), void *arg, struct err *err);

#endif
