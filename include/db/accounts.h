/* Accounts and API tokens (control.db). Visitors return false to stop. */
#ifndef DRIVEWATT_DB_ACCOUNTS_H
#define DRIVEWATT_DB_ACCOUNTS_H

#include "base/secret.h"
#include "db/db.h"
#include "model/account.h"

enum rc must_check db_account_insert(struct db_conn *c, const struct account *a,
	const char *password_hash, struct err *err); /* RC_EXISTS: name taken */
/* Writes name, role, enabled and config_version; password_hash NULL keeps the old one. */
enum rc must_check db_account_update(
	struct db_conn *c, const struct account *a, const char *password_hash, struct err *err);
enum rc must_check db_account_delete(struct db_conn *c, const char *id, struct err *err);
enum rc must_check db_account_get(
	struct db_conn *c, const char *id, struct account *out, struct err *err);
/* hash_out may be NULL. */
enum rc must_check db_account_by_name(struct db_conn *c, const char *name, struct account *out,
	char hash_out[SECRET_PASSWORD_HASH_SIZE], struct err *err);
enum rc must_check db_account_count(struct db_conn *c, int64_t *out, struct err *err);
/* Enabled administrators: the last one may not go. */
enum rc must_check db_account_count_administrators(
	struct db_conn *c, int64_t *out, struct err *err);
/* Names after `after` ("" from the start), ascending, at most limit. */
enum rc must_check db_account_list(struct db_conn *c, const char *after, int limit,
	bool (*visit)(void *arg, const struct account *a), void *arg, struct err *err);

enum rc must_check db_token_insert(struct db_conn *c, const struct token *t,
	const char token_hash[SECRET_TOKEN_HASH_SIZE], struct err *err);
enum rc must_check db_token_get(
	struct db_conn *c, const char *id, struct token *out, struct err *err);
/* Joined with its account, which must be enabled; expired ones are RC_NOT_FOUND. */
enum rc must_check db_token_by_hash(struct db_conn *c,
	const char token_hash[SECRET_TOKEN_HASH_SIZE], int64_t now_ms, struct token *out,
	struct account *account, struct err *err);
enum rc must_check db_token_delete(struct db_conn *c, const char *id, struct err *err);
/* Those that expired before then. */
enum rc must_check db_token_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err);
/* Of one account: how many there are, and those away that expired before then. */
enum rc must_check db_token_count(
	struct db_conn *c, const char *account_id, int64_t *out, struct err *err);
enum rc must_check db_token_delete_expired(
	struct db_conn *c, const char *account_id, int64_t before_ms, struct err *err);
/* By id; account_id NULL lists all. */
enum rc must_check db_token_list(struct db_conn *c, const char *account_id, const char *after,
	int limit, bool (*visit)(void *arg, const struct token *t), void *arg, struct err *err);

#endif
