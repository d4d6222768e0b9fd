/* Reading accounts and tokens, each in a short snapshot of its own. */
#include "base/clock.h"
#include "core/accounts_impl.h"
#include "db/accounts.h"

enum rc accounts_get(struct accounts *a, const char *id, struct account *out, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc == RC_OK)
		rc = db_account_get(c, id, out, err);
	db_read_end(c);
	return rc;
}

enum rc accounts_each(struct accounts *a, const char *after, int limit,
	bool (*visit)(void *arg, const struct account *account), void *arg, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc == RC_OK)
		rc = db_account_list(c, after, limit, visit, arg, err);
	db_read_end(c);
	return rc;
}

static bool is_past(int64_t expires_ms) {
	return expires_ms != NONE && expires_ms <= clock_wall_ms();
}

/* Any change of the account may be one of its password; a token does not depend on that. */
static enum rc still_holds(const struct actor *who, const struct account *account,
	const struct token *token, struct err *err) {
	const bool holds = account->enabled && account->role >= who->role &&
		(token ? token->role >= who->role && !is_past(token->expires_ms)
		       : account->config_version == who->proof.account_version);
	return holds ? RC_OK
		     : err_set(err, RC_UNAUTHENTICATED, "the credentials do not hold any more");
}

enum rc accounts_recheck(struct accounts *a, const struct actor *who, struct err *err) {
	struct db_conn *c = NULL;
	struct account account;
	struct token token;
	const bool by_token = who->proof.token_id[0];
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc == RC_OK)
		rc = db_account_get(c, who->account_id, &account, err);
	if (rc == RC_OK && by_token)
		rc = db_token_get(c, who->proof.token_id, &token, err);
	db_read_end(c);
	if (rc == RC_NOT_FOUND)
		return err_set(err, RC_UNAUTHENTICATED, "the credentials are gone");
	return rc ? rc : still_holds(who, &account, by_token ? &token : NULL, err);
}

enum rc accounts_token_get(struct accounts *a, const char *id, struct token *out, struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc == RC_OK)
		rc = db_token_get(c, id, out, err);
	db_read_end(c);
	return rc;
}

enum rc accounts_token_each(struct accounts *a, const char *account_id, const char *after,
	int limit, bool (*visit)(void *arg, const struct token *token), void *arg,
	struct err *err) {
	struct db_conn *c = NULL;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc == RC_OK)
		rc = db_token_list(c, account_id, after, limit, visit, arg, err);
	db_read_end(c);
	return rc;
}
