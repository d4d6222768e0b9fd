#include "db/accounts.h"

#include "db/sqlite.h"

/* --- accounts --------------------------------------------------------------------------------- */

#define ACCOUNT_COLUMNS "id, name, role, enabled, created_ms, config_version"

static bool read_account(struct stmt *st, int first, struct account *a) {
	*a = (struct account){
		.enabled = col_int(st, first + 3) != 0,
		.created_ms = col_int(st, first + 4),
		.config_version = (uint32_t)col_int(st, first + 5),
	};
	col_copy(st, first, a->id, sizeof(a->id));
	col_copy(st, first + 1, a->name, sizeof(a->name));
	return role_from_name(col_text(st, first + 2), &a->role);
}

enum rc db_account_insert(
	struct db_conn *c, const struct account *a, const char *password_hash, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO account (" ACCOUNT_COLUMNS ", password_hash)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7)");
	stmt_text(st, 1, a->id);
	stmt_text(st, 2, a->name);
	stmt_text(st, 3, role_name(a->role));
	stmt_int(st, 4, a->enabled);
	stmt_int(st, 5, a->created_ms);
	stmt_int(st, 6, a->config_version);
	stmt_text(st, 7, password_hash);
	return stmt_run(st, NULL, err);
}

enum rc db_account_update(
	struct db_conn *c, const struct account *a, const char *password_hash, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"UPDATE account SET name = $1, role = $2, enabled = $3, config_version = $4,"
		" password_hash = coalesce($5, password_hash) WHERE id = $6");
	stmt_text(st, 1, a->name);
	stmt_text(st, 2, role_name(a->role));
	stmt_int(st, 3, a->enabled);
	stmt_int(st, 4, a->config_version);
	stmt_text(st, 5, password_hash);
	stmt_text(st, 6, a->id);
	return stmt_change(st, "account", err);
}

enum rc db_account_delete(struct db_conn *c, const char *id, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM account WHERE id = $1");
	stmt_text(st, 1, id);
	return stmt_change(st, "account", err);
}

enum rc db_account_get(struct db_conn *c, const char *id, struct account *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " ACCOUNT_COLUMNS " FROM account WHERE id = $1");
	stmt_text(st, 1, id);
	const enum rc rc = stmt_one(st, "account", err);
	if (rc == RC_OK && !read_account(st, 0, out))
		return stmt_damaged(st, err);
	return rc;
}

enum rc db_account_by_name(struct db_conn *c, const char *name, struct account *out,
	char hash_out[SECRET_PASSWORD_HASH_SIZE], struct err *err) {
	auto_stmt struct stmt *st = stmt_get(
		c, "SELECT " ACCOUNT_COLUMNS ", password_hash FROM account WHERE name = $1");
	stmt_text(st, 1, name);
	const enum rc rc = stmt_one(st, "account", err);
	if (rc != RC_OK)
		return rc;
	if (!read_account(st, 0, out))
		return stmt_damaged(st, err);
	if (hash_out)
		col_copy(st, 6, hash_out, SECRET_PASSWORD_HASH_SIZE);
	return RC_OK;
}

enum rc db_account_count(struct db_conn *c, int64_t *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT count(*) FROM account");
	const enum rc rc = stmt_one(st, "count", err);
	if (rc == RC_OK)
		*out = col_int(st, 0);
	return rc;
}

enum rc db_account_count_administrators(struct db_conn *c, int64_t *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT count(*) FROM account WHERE role = $1 AND enabled = 1");
	stmt_text(st, 1, role_name(ROLE_ADMINISTRATOR));
	const enum rc rc = stmt_one(st, "count", err);
	if (rc == RC_OK)
		*out = col_int(st, 0);
	return rc;
}

enum rc db_account_list(struct db_conn *c, const char *after, int limit,
	bool (*visit)(void *arg, const struct account *a), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " ACCOUNT_COLUMNS " FROM account WHERE name > $1 ORDER BY name LIMIT $2");
	enum rc rc;
	bool row;
	stmt_text(st, 1, after);
	stmt_int(st, 2, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct account a;
		if (!read_account(st, 0, &a))
			return stmt_damaged(st, err);
		if (!visit(arg, &a))
			break;
	}
	return rc;
}

/* --- tokens ----------------------------------------------------------------------------------- */

#define TOKEN_COLUMNS "t.id, t.account_id, t.name, t.role, t.created_ms, t.expires_ms"

static bool read_token(struct stmt *st, struct token *t) {
	*t = (struct token){.created_ms = col_int(st, 4), .expires_ms = col_opt(st, 5)};
	col_copy(st, 0, t->id, sizeof(t->id));
	col_copy(st, 1, t->account_id, sizeof(t->account_id));
	col_copy(st, 2, t->name, sizeof(t->name));
	return role_from_name(col_text(st, 3), &t->role);
}

enum rc db_token_insert(struct db_conn *c, const struct token *t,
	const char token_hash[SECRET_TOKEN_HASH_SIZE], struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO token (id, account_id, name, role, created_ms, expires_ms, hash)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7)");
	stmt_text(st, 1, t->id);
	stmt_text(st, 2, t->account_id);
	stmt_text(st, 3, t->name);
	stmt_text(st, 4, role_name(t->role));
	stmt_int(st, 5, t->created_ms);
	stmt_opt(st, 6, t->expires_ms);
	stmt_text(st, 7, token_hash);
	return stmt_run(st, NULL, err);
}

enum rc db_token_get(struct db_conn *c, const char *id, struct token *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " TOKEN_COLUMNS " FROM token t WHERE t.id = $1");
	stmt_text(st, 1, id);
	const enum rc rc = stmt_one(st, "token", err);
	if (rc == RC_OK && !read_token(st, out))
		return stmt_damaged(st, err);
	return rc;
}

enum rc db_token_by_hash(struct db_conn *c, const char token_hash[SECRET_TOKEN_HASH_SIZE],
	int64_t now_ms, struct token *out, struct account *account, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " TOKEN_COLUMNS ", a.id, a.name, a.role, a.enabled, a.created_ms,"
		" a.config_version FROM token t JOIN account a ON a.id = t.account_id"
		" WHERE t.hash = $1 AND a.enabled = 1"
		" AND (t.expires_ms IS NULL OR t.expires_ms > $2)");
	stmt_text(st, 1, token_hash);
	stmt_int(st, 2, now_ms);
	const enum rc rc = stmt_one(st, "token", err);
	if (rc == RC_OK && (!read_token(st, out) || !read_account(st, 6, account)))
		return stmt_damaged(st, err);
	return rc;
}

enum rc db_token_delete(struct db_conn *c, const char *id, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM token WHERE id = $1");
	stmt_text(st, 1, id);
	return stmt_change(st, "token", err);
}

enum rc db_token_prune(
	struct db_conn *c, int64_t before_ms, int limit, int *removed, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"DELETE FROM token WHERE id IN"
		" (SELECT id FROM token WHERE expires_ms < $1 ORDER BY id LIMIT $2)");
	stmt_int(st, 1, before_ms);
	stmt_int(st, 2, limit);
	return stmt_run(st, removed, err);
}

enum rc db_token_count(struct db_conn *c, const char *account_id, int64_t *out, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "SELECT count(*) FROM token WHERE account_id = $1");
	stmt_text(st, 1, account_id);
	const enum rc rc = stmt_one(st, "count", err);
	if (rc == RC_OK)
		*out = col_int(st, 0);
	return rc;
}

enum rc db_token_delete_expired(
	struct db_conn *c, const char *account_id, int64_t before_ms, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "DELETE FROM token WHERE account_id = $1 AND expires_ms <= $2");
	stmt_text(st, 1, account_id);
	stmt_int(st, 2, before_ms);
	return stmt_run(st, NULL, err);
}

enum rc db_token_list(struct db_conn *c, const char *account_id, const char *after, int limit,
	bool (*visit)(void *arg, const struct token *t), void *arg, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"SELECT " TOKEN_COLUMNS " FROM token t WHERE ($1 IS NULL OR t.account_id = $1)"
		" AND t.id > $2 ORDER BY t.id LIMIT $3");
	enum rc rc;
	bool row;
	stmt_text(st, 1, account_id);
	stmt_text(st, 2, after);
	stmt_int(st, 3, limit);
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct token t;
		if (!read_token(st, &t))
			return stmt_damaged(st, err);
		if (!visit(arg, &t))
			break;
	}
	return rc;
}
