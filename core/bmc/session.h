/*
 * The session with one BMC: where to log in, whether it serves, and what stands in for it. Pure.
 * Its table of sessions is small: there is one at most, and it is closed when it is of no more use.
 */
#ifndef DRIVEWATT_CORE_BMC_SESSION_H
#define DRIVEWATT_CORE_BMC_SESSION_H

#include "core/bmc/adaptor.h"
#include "core/httpc.h"

enum session_state {
	SESSION_CLOSED,
	SESSION_OPEN,
	SESSION_BASIC /* user and password with each request */
};

struct bmc_session {
	enum session_state state;
	char collection[BMC_URI_SIZE]; /* by the service root; "" */
	unsigned tried;                /* collections that do not serve */
	char token[HTTPC_TOKEN_SIZE];
	char uri[BMC_URI_SIZE]; /* of the session, to close it; "" unknown */
	int64_t basic_until_ms; /* monotonic */
};

/* What the service root says. */
void session_learn(struct bmc_session *s, const json_t *root);
/* Must one log in before the next request? */
bool session_wants_login(const struct bmc_session *s, int64_t now_ms);
/* Where to. */
const char *session_collection(const struct bmc_session *s);

/* The answer to a login. RC_OK: open, or there is something else to go on with.
 * RC_FORBIDDEN: the password is wrong. RC_IO: makes no sense. */
struct session_answer {
	int status, retry_after_s;
	const char *token, *location, *body;
};
enum rc session_take_login(struct bmc_session *s, const struct session_answer *a, int64_t now_ms);
/* Forgets the token; the next request needs a login. */
void session_close(struct bmc_session *s);

#endif
