/* Event streams outlive their request: whether those who read them still may is asked again. */
#include "http/review.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "core/accounts.h"
#include "http/server_impl.h"

static bool find(struct http_server *s, uint64_t version, uint64_t *number, struct actor *who) {
	*number = stream_set_unchecked(&s->streams, version, clock_wall_ms(), who);
	return *number;
}

/* A store that does not answer ends nobody's stream; the next round asks again. */
static void review(void *arg) {
	struct http_server *s = arg;
	const uint64_t version = accounts_version(s->accounts);
	struct actor who;
	uint64_t number;
	while (find(s, version, &number, &who)) {
		struct err err;
		enum rc rc = accounts_recheck(s->accounts, &who, &err);
		if (rc && rc != RC_UNAUTHENTICATED)
			break;
		stream_set_checked(&s->streams, number, version, !rc);
		if (rc)
			log_info("http", "a stream of %s ends: %s", who.name, err.msg);
	}
	atomic_store(&s->reviewing, false);
}

void review_streams(void *server) {
	struct http_server *s = server;
	struct actor who;
	uint64_t number;
	if (!find(s, accounts_version(s->accounts), &number, &who) ||
		atomic_exchange(&s->reviewing, true))
		return;
	if (!pool_submit(s->workers, review, s))
		atomic_store(&s->reviewing, false);
}
