#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/accounts_impl.h"
#include "core/once.h"
#include "db/accounts.h"

/* --- the one way to change something --- */

struct change {
	struct db_conn *c;
	const struct actor *who;
	const char *action; /* "account.create" … */
	char object[64];    /* "/accounts/<id>" */
	bool adds;          /* what was verified before holds all the same */
};

static enum rc change_begin(struct accounts *a, struct change *ch, struct err *err) {
	return db_write_begin_for(a->control, ch->who, &ch->c, err);
}

static enum rc change_note(struct accounts *a, const struct change *ch, struct err *err) {
	char data[80];
	snprintf(data, sizeof(data), "{\"action\":\"%s\"}", ch->action);
	enum rc rc =
		events_audit(ch->c, ch->who, ch->action, ch->object, rc_name(RC_OK), NULL, err);
	if (rc)
		return rc;
	return events_add(a->events, ch->c, EVENT_ACCOUNT_CHANGED, ch->who, ch->object, data, err);
}

/* What was made, under the key of the request. */
static enum rc keep_once(const struct change *ch, enum rc rc, struct err *err) {
	return rc ? rc : once_keep(ch->c, ch->who, ch->object, err);
}

/* Commits with audit and event when rc is good so far, else rolls back. */
static enum rc change_end(struct accounts *a, struct change *ch, enum rc rc, struct err *err) {
	if (!rc)
		rc = change_note(a, ch, err);
	if (rc) {
		db_write_abort(ch->c);
		return rc;
	}
	rc = db_write_commit(ch->c, err);
	if (rc || ch->who->dry_run)
		return rc;
	if (!ch->adds)
		account_cache_forget(a->cache);
	atomic_fetch_add(&a->version, 1);
	events_publish(a->events);
	return RC_OK;
}

/* --- rules --- */

static enum rc check_administrator(const struct actor *who, struct err *err) {
	return who->role >= ROLE_ADMINISTRATOR
		? RC_OK
		: err_set(err, RC_FORBIDDEN, "this needs the role Administrator");
}

static enum rc check_name(const char *name, struct err *err) {
	return id_is_name(name) ? RC_OK
				: err_field(err, RC_INVALID, "/name",
					  "a name is 1 to 64 letters, digits, dots, dashes or "
					  "underscores and does not begin with a dot");
}

static enum rc check_password(const char *password, struct err *err) {
	const size_t len = strnlen(password, ACCOUNTS_PASSWORD_MAX + 1);
	return len >= ACCOUNTS_PASSWORD_MIN && len <= ACCOUNTS_PASSWORD_MAX
		? RC_OK
		: err_field(err, RC_INVALID, "/password", "a password has %d to %d bytes",
			  ACCOUNTS_PASSWORD_MIN, ACCOUNTS_PASSWORD_MAX);
}

/* Asked within the transaction, after the change. */
static enum rc check_administrator_left(struct db_conn *c, struct err *err) {
	int64_t count = 0;
	enum rc rc = db_account_count_administrators(c, &count, err);
	if (!rc && count == 0)
		rc = err_set(err, RC_CONFLICT, "this is the last enabled administrator");
	return rc;
}

static enum rc hash_password(
	const char *password, char out[SECRET_PASSWORD_HASH_SIZE], struct err *err) {
	metric_add(METRIC_AUTH_HASHES, 1);
	return secret_password_hash(password, out, err);
}

/* --- accounts --- */

static enum rc check_new(const struct account_change *n, struct err *err) {
	if (!n->name)
		return err_field(err, RC_INVALID, "/name", "a name is needed");
	if (!n->password)
		return err_field(err, RC_INVALID, "/password", "a password is needed");
	if (n->role == ROLE_NONE)
		return err_field(err, RC_INVALID, "/role", "a role is needed");
	enum rc rc = check_name(n->name, err);
	return rc ? rc : check_password(n->password, err);
}

/* The store's own words would tell of tables. */
static enum rc name_taken(enum rc rc, struct err *err) {
	return rc == RC_EXISTS ? err_field(err, rc, "/name", "is taken by another account") : rc;
}

static enum rc create(struct accounts *a, const struct actor *who, const struct account_change *n,
	struct account *out, struct err *err) {
	char hash[SECRET_PASSWORD_HASH_SIZE];
	enum rc rc = check_new(n, err);
	if (!rc)
		rc = hash_password(n->password, hash, err);
	if (rc)
		return rc;
	*out = (struct account){
		.role = n->role,
		.enabled = n->enabled != 0,
		.created_ms = clock_wall_ms(),
		.config_version = 1,
	};
	id_uuid(out->id);
	str_copy(out->name, sizeof(out->name), n->name);
	struct change ch = {.who = who, .action = "account.create", .adds = true};
	snprintf(ch.object, sizeof(ch.object), "/accounts/%s", out->id);
	rc = change_begin(a, &ch, err);
	if (rc)
		return rc;
	rc = name_taken(db_account_insert(ch.c, out, hash, err), err);
	return change_end(a, &ch, keep_once(&ch, rc, err), err);
}

enum rc accounts_create(struct accounts *a, const struct actor *who, const struct account_change *c,
	struct account *out, struct err *err) {
	enum rc rc = check_administrator(who, err);
	return rc ? rc : create(a, who, c, out, err);
}

static enum rc count_accounts(struct accounts *a, int64_t *out, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc)
		return rc;
	rc = db_account_count(c, out, err);
	db_read_end(c);
	return rc;
}

enum rc accounts_bootstrap(
	struct accounts *a, const char *password, char made[32], struct err *err) {
	int64_t count = 0;
	made[0] = '\0';
	enum rc rc = count_accounts(a, &count, err);
	if (rc || count)
		return rc;
	if (!password)
		secret_password_make(made);
	const struct account_change admin = {
		.name = "admin",
		.password = password ? password : made,
		.role = ROLE_ADMINISTRATOR,
		.enabled = 1,
	};
	struct account out;
	rc = create(a, &actor_system, &admin, &out, err);
	if (rc)
		made[0] = '\0';
	return rc;
}

static enum rc check_update(
	const struct actor *who, const char *id, const struct account_change *u, struct err *err) {
	enum rc rc = RC_OK;
	const bool own_password = strcmp(who->account_id, id) == 0 && !u->name &&
		u->role == ROLE_NONE && u->enabled < 0;
	if (!own_password)
		rc = check_administrator(who, err);
	if (!rc && u->name)
		rc = check_name(u->name, err);
	if (!rc && u->password)
		rc = check_password(u->password, err);
	return rc;
}

/* A token is not enough for one's own password: it would give away what the token was bounded in.
 */
static enum rc check_current(struct accounts *a, const struct actor *who, const char *id,
	const struct account_change *u, struct err *err) {
	const bool own = u->password && strcmp(who->account_id, id) == 0;
	if (u->current_password && !own)
		return err_field(err, RC_INVALID, "/current_password",
			"belongs to a new password of one's own account");
	if (u->current_password)
		return accounts_check_own(a, who, u->current_password, err);
	return own && who->proof.token_id[0]
		? err_field(err, RC_FORBIDDEN, "/current_password",
			  "is needed where a token changes the password of its own account")
		: RC_OK;
}

/* True when the account is another one after it. */
static bool apply(struct account *account, const struct account_change *u) {
	const struct account before = *account;
	if (u->name)
		str_copy(account->name, sizeof(account->name), u->name);
	if (u->role != ROLE_NONE)
		account->role = u->role;
	if (u->enabled >= 0)
		account->enabled = u->enabled != 0;
	return u->password || strcmp(before.name, account->name) != 0 ||
		before.role != account->role || before.enabled != account->enabled;
}

/* *changed is false when everything is as wished already. A token below its account's role does not
 * change the password even so. */
static enum rc update(struct db_conn *c, const struct actor *who, const char *id,
	const struct account_change *u, const char *hash, struct account *out, bool *changed,
	struct err *err) {
	enum rc rc = db_account_get(c, id, out, err);
	if (rc)
		return rc;
	if (who->role < out->role)
		return err_set(err, RC_FORBIDDEN, "this needs the role %s", role_name(out->role));
	if (u->if_version != VERSION_ANY && u->if_version != out->config_version)
		return err_set(err, RC_PRECONDITION, "the account has changed meanwhile");
	*changed = apply(out, u);
	if (!*changed)
		return RC_OK;
	out->config_version++;
	rc = db_account_update(c, out, hash, err);
	return rc ? rc : check_administrator_left(c, err);
}

enum rc accounts_update(struct accounts *a, const struct actor *who, const char *id,
	const struct account_change *c, struct account *out, struct err *err) {
	char hash[SECRET_PASSWORD_HASH_SIZE];
	struct change ch = {.who = who, .action = "account.update"};
	snprintf(ch.object, sizeof(ch.object), "/accounts/%s", id);
	enum rc rc = check_update(who, id, c, err);
	if (!rc)
		rc = check_current(a, who, id, c, err);
	if (!rc && c->password)
		rc = hash_password(c->password, hash, err);
	if (!rc)
		rc = change_begin(a, &ch, err);
	if (rc)
		return rc;
	bool changed = false;
	rc = update(ch.c, who, id, c, c->password ? hash : NULL, out, &changed, err);
	if (!rc && !changed) {
		db_write_abort(ch.c);
		return RC_OK;
	}
	return change_end(a, &ch, rc, err);
}

static enum rc check_version(
	struct db_conn *c, const char *id, uint32_t if_version, struct err *err) {
	struct account account;
	enum rc rc = if_version == VERSION_ANY ? RC_OK : db_account_get(c, id, &account, err);
	if (!rc && if_version != VERSION_ANY && if_version != account.config_version)
		rc = err_set(err, RC_PRECONDITION, "the account has changed meanwhile");
	return rc;
}

enum rc accounts_delete(struct accounts *a, const struct actor *who, const char *id,
	uint32_t if_version, struct err *err) {
	struct change ch = {.who = who, .action = "account.delete"};
	snprintf(ch.object, sizeof(ch.object), "/accounts/%s", id);
	enum rc rc = check_administrator(who, err);
	if (!rc)
		rc = change_begin(a, &ch, err);
	if (rc)
		return rc;
	rc = check_version(ch.c, id, if_version, err);
	if (!rc)
		rc = db_account_delete(ch.c, id, err);
	if (!rc)
		rc = check_administrator_left(ch.c, err);
	return change_end(a, &ch, rc, err);
}

/* --- tokens --- */

static enum rc check_token(const struct actor *who, const char *name, enum role role,
	int64_t expires_ms, struct err *err) {
	if (!who->account_id[0])
		return err_set(err, RC_FORBIDDEN, "a token belongs to an account");
	if (role > who->role)
		return err_field(err, RC_FORBIDDEN, "/role", "a token's role is at most one's own");
	if (expires_ms != NONE && expires_ms <= clock_wall_ms())
		return err_field(err, RC_INVALID, "/expires_at", "the time is past");
	if (expires_ms != NONE && who->proof.expires_ms != NONE &&
		expires_ms > who->proof.expires_ms)
		return err_field(err, RC_FORBIDDEN, "/expires_at",
			"a token does not outlive the one that makes it");
	return check_name(name, err);
}

/* Within the transaction. Those that expired are still shown for a while, but make room. */
static enum rc check_room(
	struct db_conn *c, const char *account_id, int64_t now_ms, struct err *err) {
	int64_t count = 0;
	enum rc rc = db_token_count(c, account_id, &count, err);
	if (rc || count < ACCOUNTS_TOKENS_MAX)
		return rc;
	rc = db_token_delete_expired(c, account_id, now_ms, err);
	if (!rc)
		rc = db_token_count(c, account_id, &count, err);
	if (!rc && count >= ACCOUNTS_TOKENS_MAX)
		rc = err_set(err, RC_CONFLICT,
			"the account has %d tokens, as many as one may have: delete some",
			ACCOUNTS_TOKENS_MAX);
	return rc;
}

enum rc accounts_token_create(struct accounts *a, const struct actor *who, const char *name,
	enum role role, int64_t expires_ms, struct token *out, char secret[SECRET_TOKEN_SIZE],
	struct err *err) {
	char hash[SECRET_TOKEN_HASH_SIZE];
	struct change ch = {.who = who, .action = "token.create", .adds = true};
	enum rc rc = check_token(who, name, role, expires_ms, err);
	if (rc)
		return rc;
	*out = (struct token){
		.role = role == ROLE_NONE ? who->role : role,
		.created_ms = clock_wall_ms(),
		.expires_ms = expires_ms == NONE ? who->proof.expires_ms : expires_ms,
	};
	id_uuid(out->id);
	str_copy(out->account_id, sizeof(out->account_id), who->account_id);
	str_copy(out->name, sizeof(out->name), name);
	secret_token_make(secret);
	secret_token_hash(secret, hash);
	snprintf(ch.object, sizeof(ch.object), "/tokens/%s", out->id);
	rc = change_begin(a, &ch, err);
	if (rc)
		return rc;
	rc = check_room(ch.c, out->account_id, out->created_ms, err);
	if (!rc)
		rc = db_token_insert(ch.c, out, hash, err);
	return change_end(a, &ch, rc, err);
}

/* Somebody else's token is not there for anyone but an administrator. */
static enum rc delete_token(
	struct db_conn *c, const struct actor *who, const char *id, struct err *err) {
	struct token token;
	enum rc rc = db_token_get(c, id, &token, err);
	if (rc)
		return rc;
	if (who->role < ROLE_ADMINISTRATOR && strcmp(token.account_id, who->account_id) != 0)
		return err_set(err, RC_NOT_FOUND, "no such token");
	return db_token_delete(c, id, err);
}

enum rc accounts_token_delete(
	struct accounts *a, const struct actor *who, const char *id, struct err *err) {
	struct change ch = {.who = who, .action = "token.delete"};
	snprintf(ch.object, sizeof(ch.object), "/tokens/%s", id);
	enum rc rc = change_begin(a, &ch, err);
	return rc ? rc : change_end(a, &ch, delete_token(ch.c, who, id, err), err);
}
