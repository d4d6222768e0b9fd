#include "core/accounts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/accounts_impl.h"
#include "db/accounts.h"

#define AUTHORIZATION_MAX 1024
#define GUARDED_ADDRESSES 4096

/* --- life --- */

struct accounts *accounts_new(const struct accounts_config *config, struct db *control,
	struct events *events, struct err *err) {
	struct accounts *a = calloc(1, sizeof(*a));
	if (!a || !(a->cache = account_cache_new(config->cache_size)) ||
		!(a->guard = account_guard_new(GUARDED_ADDRESSES, config->max_failures))) {
		accounts_free(a);
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	a->config = *config;
	a->control = control;
	a->events = events;
	atomic_init(&a->version, clock_first_version());
	return a;
}

void accounts_free(struct accounts *a) {
	if (!a)
		return;
	account_guard_free(a->guard);
	account_cache_free(a->cache);
	free(a);
}

uint64_t accounts_version(struct accounts *a) {
	return atomic_load(&a->version);
}

/* --- reading the header --- */

static const char *after_scheme(const char *authorization, const char *scheme) {
	const size_t len = strlen(scheme);
	if (strncasecmp(authorization, scheme, len) != 0 || authorization[len] != ' ')
		return NULL;
	return authorization + len + strspn(authorization + len, " ");
}

static int base64_value(char c) {
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

/* Text without a NUL inside, or false. */
static bool base64_decode(const char *in, char *out, size_t size) {
	unsigned bits = 0, pending = 0;
	size_t len = 0;
	for (; *in && *in != '='; in++) {
		const int value = base64_value(*in);
		if (value < 0)
			return false;
		bits = (bits << 6 | (unsigned)value) & 0xffff;
		pending += 6;
		if (pending < 8)
			continue;
		pending -= 8;
		const char c = (char)(bits >> pending & 0xff);
		if (!c || len + 1 >= size)
			return false;
		out[len++] = c;
	}
	out[len] = '\0';
	return strspn(in, "=") == strlen(in);
}

/* --- verifying --- */

int64_t accounts_wait_ms(struct accounts *a, const char *address) {
	return account_guard_wait_ms(a->guard, address);
}

enum rc accounts_admit(struct accounts *a, const char *address, struct err *err) {
	if (!accounts_wait_ms(a, address))
		return RC_OK;
	metric_add(METRIC_AUTH_THROTTLED, 1);
	return err_set(err, RC_THROTTLED, "too many wrong passwords came from this address");
}

static enum rc refuse(struct err *err) {
	metric_add(METRIC_AUTH_FAILURES, 1);
	return err_set(err, RC_UNAUTHENTICATED, "the credentials are missing or wrong");
}

static enum rc find_account(struct accounts *a, const char *name, struct account *out,
	char hash[SECRET_PASSWORD_HASH_SIZE], struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc)
		return rc;
	rc = db_account_by_name(c, name, out, hash, err);
	db_read_end(c);
	return rc;
}

/* What a verified header is remembered under. */
struct memory {
	uint8_t key[SECRET_FINGERPRINT_BYTES];
	uint64_t generation;
};

static void remember(
	struct accounts *a, const struct memory *m, const struct actor *who, int64_t for_ms) {
	account_cache_put(a->cache, m->key, who, for_ms, m->generation);
}

/* token NULL: a password. */
static void take_account(
	struct actor *out, const struct account *account, const struct token *token) {
	str_copy(out->account_id, sizeof(out->account_id), account->id);
	str_copy(out->name, sizeof(out->name), account->name);
	out->role = token && token->role < account->role ? token->role : account->role;
	out->proof = (struct proof){
		.account_version = account->config_version,
		.expires_ms = token ? token->expires_ms : NONE,
	};
	if (token)
		str_copy(out->proof.token_id, sizeof(out->proof.token_id), token->id);
}

/* A name that nobody has costs as much time as a wrong password. */
static enum rc check_password(struct accounts *a, const char *name, const char *password,
	struct actor *out, struct err *err) {
	char hash[SECRET_PASSWORD_HASH_SIZE];
	struct account account = {0};
	const enum rc rc = find_account(a, name, &account, hash, err);
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	metric_add(METRIC_AUTH_HASHES, 1);
	if (!secret_password_matches(password, rc ? NULL : hash) || !account.enabled) {
		account_guard_failed(a->guard, out->address);
		return refuse(err);
	}
	take_account(out, &account, NULL);
	return RC_OK;
}

enum rc accounts_check_own(
	struct accounts *a, const struct actor *who, const char *password, struct err *err) {
	char hash[SECRET_PASSWORD_HASH_SIZE];
	struct account account;
	enum rc rc = accounts_admit(a, who->address, err);
	if (!rc)
		rc = find_account(a, who->name, &account, hash, err);
	if (rc)
		return rc;
	metric_add(METRIC_AUTH_HASHES, 1);
	if (strcmp(account.id, who->account_id) == 0 && secret_password_matches(password, hash))
		return RC_OK;
	account_guard_failed(a->guard, who->address);
	metric_add(METRIC_AUTH_FAILURES, 1);
	return err_field(err, RC_FORBIDDEN, "/current_password", "is not the account's password");
}

/* Who waited for a thread may have waited behind others: of the same header, or of the same
 * address. */
static enum rc check_in_turn(struct accounts *a, const struct memory *m, const char *name,
	const char *password, struct actor *out, struct err *err) {
	if (account_cache_fresh(a->cache, m->key, out))
		return RC_OK;
	enum rc rc = accounts_admit(a, out->address, err);
	if (!rc)
		rc = check_password(a, name, password, out, err);
	if (!rc)
		remember(a, m, out, a->config.cache_ms);
	return rc;
}

static enum rc verify_basic(struct accounts *a, const struct memory *m, const char *encoded,
	struct actor *out, struct err *err) {
	char plain[AUTHORIZATION_MAX];
	char *password = NULL;
	if (base64_decode(encoded, plain, sizeof(plain)))
		password = strchr(plain, ':');
	if (!password)
		return refuse(err);
	*password++ = '\0';
	const enum rc rc = check_in_turn(a, m, plain, password, out, err);
	secret_wipe(plain, sizeof(plain));
	return rc;
}

static enum rc find_token(struct accounts *a, const char *secret, struct token *token,
	struct account *account, struct err *err) {
	char hash[SECRET_TOKEN_HASH_SIZE];
	struct db_conn *c;
	enum rc rc = db_read_begin(a->control, &c, err);
	if (rc)
		return rc;
	secret_token_hash(secret, hash);
	rc = db_token_by_hash(c, hash, clock_wall_ms(), token, account, err);
	db_read_end(c);
	return rc;
}

static enum rc verify_bearer(struct accounts *a, const struct memory *m, const char *secret,
	struct actor *out, struct err *err) {
	struct token token;
	struct account account;
	int64_t for_ms = a->config.cache_ms;
	enum rc rc = find_token(a, secret, &token, &account, err);
	if (rc)
		return rc == RC_NOT_FOUND ? refuse(err) : rc;
	take_account(out, &account, &token);
	if (token.expires_ms != NONE) {
		const int64_t left_ms = token.expires_ms - clock_wall_ms();
		for_ms = left_ms < for_ms ? left_ms : for_ms;
	}
	remember(a, m, out, for_ms);
	return RC_OK;
}

bool accounts_is_slow(const char *authorization) {
	return after_scheme(authorization, "Basic");
}

enum rc accounts_verify(
	struct accounts *a, const char *authorization, struct actor *out, struct err *err) {
	const size_t len = strnlen(authorization, AUTHORIZATION_MAX);
	if (len == AUTHORIZATION_MAX)
		return refuse(err);
	struct memory m = {.generation = account_cache_generation(a->cache)};
	secret_fingerprint(authorization, len, m.key);
	const char *basic = after_scheme(authorization, "Basic");
	const char *bearer = after_scheme(authorization, "Bearer");
	if (basic)
		return verify_basic(a, &m, basic, out, err);
	return bearer ? verify_bearer(a, &m, bearer, out, err) : refuse(err);
}

bool accounts_cached(struct accounts *a, const char *authorization, struct actor *out) {
	const size_t len = strnlen(authorization, AUTHORIZATION_MAX);
	if (len == AUTHORIZATION_MAX)
		return false;
	uint8_t key[SECRET_FINGERPRINT_BYTES];
	secret_fingerprint(authorization, len, key);
	return account_cache_find(a->cache, key, out);
}
