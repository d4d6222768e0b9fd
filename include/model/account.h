/* Who may do what. */
#ifndef DRIVEWATT_MODEL_ACCOUNT_H
#define DRIVEWATT_MODEL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/quality.h"

/* Ordered: a higher role may do all that a lower one may. */
enum role { ROLE_NONE, ROLE_READ_ONLY, ROLE_OPERATOR, ROLE_ADMINISTRATOR };
const char *role_name(enum role r); /* "ReadOnly", "Operator", "Administrator" */
bool role_from_name(const char *name, enum role *out);

struct account {
	char id[37];
	char name[65];
	enum role role;
	bool enabled;
	int64_t created_ms;
	uint32_t config_version;
};

struct token {
	char id[37];
	char account_id[37];
	char name[65];
	enum role role; /* at most the account's */
	int64_t created_ms;
	int64_t expires_ms; /* NONE never */
};

struct once_request;

/* How an actor showed who it is: enough to tell later whether that still holds. */
struct proof {
	char token_id[37];        /* "" a password */
	uint32_t account_version; /* config_version of the account then */
	int64_t expires_ms;       /* epoch; NONE never */
};

/* Who acts, carried through every change into claims, events and the audit trail. */
struct actor {
	char account_id[37]; /* "" for the daemon itself */
	char name[65];       /* account name, or "system" */
	enum role role;
	struct proof proof;
	char address[48];    /* peer address, "" for the daemon itself */
	char request_id[37]; /* "" none */
	bool dry_run; /* everything is checked and nothing changed: core answers what would be */
	const struct once_request *once; /* core/once.h; NULL none. Borrowed: only a call that
					    makes something looks at it, copies never */
};

#endif
