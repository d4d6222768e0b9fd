/*
 * Accounts, tokens and the check of credentials. A password hash costs 64 MiB and 100 ms, so
 * verified credentials are remembered for a short while, and the caller must bound how many calls
 * that compute one (said below) run at once.
 *
 * Any thread. What is not said to never block blocks on the store. What is
 * given is borrowed for the call alone.
 */
#ifndef DRIVEWATT_CORE_ACCOUNTS_H
#define DRIVEWATT_CORE_ACCOUNTS_H

#include "core/events.h"
#include "base/secret.h"
#include "db/db.h"
#include "model/account.h"
#include "model/version.h"

#define ACCOUNTS_PASSWORD_MIN 8
#define ACCOUNTS_PASSWORD_MAX 128
#define ACCOUNTS_TOKENS_MAX 100 /* of one account */

struct accounts;

struct accounts_config {
	int64_t cache_ms;      /* how long a verified credential is remembered; 0 … (60000) */
	unsigned cache_size;   /* credentials, over 0 (1024); the oldest makes room */
	unsigned max_failures; /* wrong passwords of one address before it must wait, one being
				  forgotten every 6 s; 0: it never must (10) */
};

/* config is copied, the rest borrowed until accounts_free. */
struct accounts *accounts_new(const struct accounts_config *config, struct db *control,
	struct events *events, struct err *err);
/* Nobody may be in a call any more. NULL is fine. */
void accounts_free(struct accounts *a);

/* At the first start only (no account yet): makes the administrator `admin` with password, or
 * with one made up, which is copied to made[32]; made is "" when nothing was made up. */
enum rc must_check accounts_bootstrap(
	struct accounts *a, const char *password, char made[32], struct err *err);

/* Looks a raw Authorization header value up among the verified ones. Never blocks: for the HTTP
 * loop. Fills account_id, name and role of *out. */
bool accounts_cached(struct accounts *a, const char *authorization, struct actor *out);
/* Whether accounts_verify computes a hash for such a header. */
bool accounts_is_slow(const char *authorization);
/* Whether a password from this address would be checked now, or RC_THROTTLED. Never blocks. */
enum rc must_check accounts_admit(struct accounts *a, const char *address, struct err *err);
/* How long it would not; 0: it would. Never blocks. */
int64_t accounts_wait_ms(struct accounts *a, const char *address);
/* Verifies "Basic …" or "Bearer …" and remembers it. Blocks on the store, and hashes.
 * RC_UNAUTHENTICATED without telling which part was wrong; RC_THROTTLED: out->address has sent too
 * many wrong passwords. */
enum rc must_check accounts_verify(
	struct accounts *a, const char *authorization, struct actor *out, struct err *err);

/* Whether what who showed would still let it in as what it was: RC_UNAUTHENTICATED when account or
 * token is gone, disabled or expired, has a lower role, or the password may be another. Blocks on
 * the store. For what outlives its request. */
enum rc must_check accounts_recheck(struct accounts *a, const struct actor *who, struct err *err);

/* What may change; a NULL or NULL-like field is kept on update. */
struct account_change {
	const char *name;
	const char *password;
	const char *current_password; /* only with password, of one's own account */
	enum role role;               /* ROLE_NONE: kept */
	int enabled;                  /* -1: kept */
	uint32_t if_version;          /* model/version.h */
};
/* Each writes audit and event in the same transaction and, where it changes or takes away,
 * forgets cached credentials. An account
 * may change its own password: who showed a token must give the current one too (RC_FORBIDDEN,
 * counted as a wrong password of the address; RC_THROTTLED: there were too many); everything else
 * is the administrator's (the caller checks the route's role). RC_CONFLICT: the last administrator
 * may not go. accounts_create keeps the actor's once. Both hash a password that is given, and
 * accounts_update the current one before it. */
enum rc must_check accounts_create(struct accounts *a, const struct actor *who,
	const struct account_change *c, struct account *out, struct err *err);
enum rc must_check accounts_update(struct accounts *a, const struct actor *who, const char *id,
	const struct account_change *c, struct account *out, struct err *err);
enum rc must_check accounts_delete(struct accounts *a, const struct actor *who, const char *id,
	uint32_t if_version, struct err *err);
/* secret is shown once. role at most the actor's own; made by a token, it does not outlive that
 * one: expires_ms NONE is then the same time, a later one RC_FORBIDDEN. RC_CONFLICT: the account
 * has ACCOUNTS_TOKENS_MAX that have not expired. */
enum rc must_check accounts_token_create(struct accounts *a, const struct actor *who,
	const char *name, enum role role, int64_t expires_ms, struct token *out,
	char secret[SECRET_TOKEN_SIZE], struct err *err);
enum rc must_check accounts_token_delete(
	struct accounts *a, const struct actor *who, const char *id, struct err *err);

/* Reading. Names after `after` (""), ascending; ids for tokens, account_id NULL: everybody's.
 * Visitors return false to stop. Blocks on the store. */
enum rc must_check accounts_get(
	struct accounts *a, const char *id, struct account *out, struct err *err);
enum rc must_check accounts_each(struct accounts *a, const char *after, int limit,
	bool (*visit)(void *arg, const struct account *account), void *arg, struct err *err);
enum rc must_check accounts_token_get(
	struct accounts *a, const char *id, struct token *out, struct err *err);
enum rc must_check accounts_token_each(struct accounts *a, const char *account_id,
	const char *after, int limit, bool (*visit)(void *arg, const struct token *token),
	void *arg, struct err *err);
/* Counts up at every change of accounts or tokens and never comes again, also over restarts: behind
 * the ETag of lists. Never blocks. */
uint64_t accounts_version(struct accounts *a);

#endif
