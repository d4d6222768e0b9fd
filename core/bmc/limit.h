/*
 * A change of the limit that a BMC holds its host to: looked at, checked, written, read back. Pure:
 * it names what is to be asked next and is fed the answers.
 *
 *	limit_begin(l, places, limit_mw, now_ms);
 *	while (l->next[0])
 *		ask, after l->wait_ms; limit_feed(l, answer);
 */
#ifndef DRIVEWATT_CORE_BMC_LIMIT_H
#define DRIVEWATT_CORE_BMC_LIMIT_H

#include "base/rc.h"
#include "core/bmc/adaptor.h"
#include "core/httpc.h"

enum limit_step {
	LIMIT_LIST,   /* finds the control */
	LIMIT_LOOK,   /* is it there, and what is it? */
	LIMIT_WRITE,  /* asks for another */
	LIMIT_FOLLOW, /* waits for it to be done */
	LIMIT_CHECK   /* reads it back */
};

struct limit_change {
	char next[BMC_URI_SIZE]; /* to GET, or to PATCH with the body; "" when it is over */
	bool write;
	char body[160];
	char if_match[HTTPC_ETAG_SIZE]; /* "" none */
	int64_t wait_ms;                /* before it is asked */
	/* When it is over. */
	struct err err;   /* rc RC_OK: it holds */
	int64_t limit_mw; /* as last read, if known */
	bool known, changed;

	/* The rest is its own. */
	int64_t wish_mw; /* NONE: no limit */
	struct bmc_limit_places places;
	enum limit_place place;
	enum limit_step step;
	struct limit_found found;
	char etag[HTTPC_ETAG_SIZE], body_etag[HTTPC_ETAG_SIZE]; /* of what was found */
	bool looked;
	unsigned rung; /* of the ladder of If-Match */
	unsigned renewals;
	unsigned way; /* of asking, see redfish_limit_body */
	bool complained;
	char complaint[160];
	int64_t end_ms;    /* it must be over by then */
	int64_t settle_ms; /* and it must show by then */
};

/* What came of asking. */
struct limit_answer {
	enum rc rc; /* of the HTTP client */
	int status;
	const json_t *doc; /* borrowed; error objects too; NULL none */
	const char *etag, *location;
	int retry_after_s;
	int64_t now_ms; /* monotonic */
};

void limit_begin(struct limit_change *l, const struct bmc_limit_places *places, int64_t limit_mw,
	int64_t now_ms);
void limit_feed(struct limit_change *l, const struct limit_answer *a);

#endif
