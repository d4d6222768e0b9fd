#include "http/auth.h"

#include "base/metrics.h"
#include "core/accounts.h"
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
	q->verified = accounts_cached(q->server->accounts, authorization, &q->actor);
	return q->verified ? check_role(q, err) : 0;
}

int auth_verify(struct http_request *q, struct err *err) {
	enum rc rc = accounts_verify(
		q->server->accounts, http_header(q, "Authorization"), &q->actor, err);
	if (rc) {
		metric_add(METRIC_AUTH_FAILURES, rc == RC_UNAUTHENTICATED);
		return http_status_of(rc);
	}
	q->verified = true;
	return check_role(q, err);
}
