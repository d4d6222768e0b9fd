#include "http/auth.h"

#include "core/accounts.h"
#include "http/mhd.h"
#include "http/peer.h"
#include "http/request_impl.h"
#include "http/server_impl.h"

static bool is_public(const struct http_request *q) {
	return q->route->flags & HTTP_PUBLIC ||
		(q->route->flags & HTTP_METRICS && q->server->config.public_metrics);
}

static int check_role(struct http_request *q, struct err *err) {
	if (q->actor.role >= q->route->role)
		return 0;
	err_set(err, RC_FORBIDDEN, "this needs the role %s", role_name(q->route->role));
	return 403;
}

static int let_in(struct http_request *q, struct err *err) {
	q->verified = true;
	mhd_known(q->server, q->conn);
	return check_role(q, err);
}

/* Seconds, rounded up, until the address may try again. */
static int refused(struct http_request *q, const struct err *err) {
	if (err->rc == RC_THROTTLED) {
		const int64_t ms = accounts_wait_ms(q->server->accounts, q->actor.address);
		q->r.retry_after_s = (int)(ms / 1000) + 1;
	}
	return http_status_of(err->rc);
}

/* Not known, and a password: whether it may wait for its turn. */
static int check_slow(struct http_request *q, struct err *err) {
	peer_take(q);
	return accounts_admit(q->server->accounts, q->actor.address, err) ? refused(q, err) : 0;
}

int auth_check(struct http_request *q, struct err *err) {
	if (is_public(q)) {
		q->verified = true;
		return 0;
	}
	q->accounts_version = accounts_version(q->server->accounts);
	const char *authorization = http_header(q, "Authorization");
	if (!authorization || !authorization[0]) {
		err_set(err, RC_UNAUTHENTICATED, "credentials are needed");
		return 401;
	}
	if (accounts_cached(q->server->accounts, authorization, &q->actor))
		return let_in(q, err);
	q->is_slow = accounts_is_slow(authorization);
	return q->is_slow ? check_slow(q, err) : 0;
}

int auth_verify(struct http_request *q, struct err *err) {
	enum rc rc = accounts_verify(
		q->server->accounts, http_header(q, "Authorization"), &q->actor, err);
	if (rc)
		return refused(q, err);
	return let_in(q, err);
}
