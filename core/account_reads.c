/* Reading accounts and tokens, each in a short snapshot of its own. */
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
