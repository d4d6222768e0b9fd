#include "core/bmc/session.h"

#include <string.h>

#include "base/parse.h"
#include "base/secret.h"
#include "core/bmc/foreign_json.h"
#include "core/bmc/redfish.h"

#define FULL_PAUSE_S 300 /* until the table of sessions is tried again, where it does not say */
#define FULL_PAUSE_MIN_S 30
#define FULL_PAUSE_MAX_S 3600

static const char *const well_known[] = {
	"/redfish/v1/SessionService/Sessions", "/redfish/v1/Sessions"};

static bool find_collection(const json_t *root, char out[BMC_URI_SIZE]) {
	static const char *const keys[] = {"Links", "links"};
	for (size_t i = 0; i < array_len(keys); i++) {
		if (redfish_link(json_object_get(root, keys[i]), "Sessions", out))
			return true;
	}
	return false;
}

void session_learn(struct bmc_session *s, const json_t *root) {
	char found[BMC_URI_SIZE] = "";
	find_collection(root, found);
	if (strcmp(found, s->collection) == 0)
		return;
	str_copy(s->collection, sizeof(s->collection), found);
	s->tried = 0;
	if (s->state == SESSION_BASIC)
		s->state = SESSION_CLOSED;
}

bool session_wants_login(const struct bmc_session *s, int64_t now_ms) {
	return s->state == SESSION_CLOSED ||
		(s->state == SESSION_BASIC && now_ms >= s->basic_until_ms);
}

/* The n-th that there is: the one of the service root, then the well-known ones. */
static const char *collection(const struct bmc_session *s, unsigned n) {
	if (s->collection[0] && n-- == 0)
		return s->collection;
	for (size_t i = 0; i < array_len(well_known); i++) {
		if (strcmp(well_known[i], s->collection) != 0 && n-- == 0)
			return well_known[i];
	}
	return NULL;
}

const char *session_collection(const struct bmc_session *s) {
	const char *uri = collection(s, s->tried);
	return uri ? uri : well_known[0];
}

/* --- login --- */

static void take_uri(struct bmc_session *s, const struct session_answer *a) {
	struct foreign_json json = {0};
	s->uri[0] = '\0';
	if (redfish_take_uri(redfish_path_of(a->location), s->uri))
		return;
	if (foreign_json_parse(a->body, strlen(a->body), &json, NULL) == RC_OK)
		redfish_link(json.doc, NULL, s->uri);
	json_decref(json.doc);
}

static enum rc open(struct bmc_session *s, const struct session_answer *a) {
	if (!a->token[0])
		return RC_IO;
	str_copy(s->token, sizeof(s->token), a->token);
	take_uri(s, a);
	s->state = SESSION_OPEN;
	return RC_OK;
}

static bool is_full(const struct session_answer *a) {
	static const char *const messages[] = {"RAC0218", "SessionLimitExceeded"};
	return a->status == 503 || a->status == 429 ||
		redfish_mentions(a->body, messages, array_len(messages));
}

static enum rc use_basic(struct bmc_session *s, int64_t until_ms) {
	s->state = SESSION_BASIC;
	s->basic_until_ms = until_ms;
	return RC_OK;
}

static int64_t pause_ms(int retry_after_s) {
	int64_t s = retry_after_s > 0 ? retry_after_s : FULL_PAUSE_S;
	if (s < FULL_PAUSE_MIN_S)
		s = FULL_PAUSE_MIN_S;
	return (s > FULL_PAUSE_MAX_S ? FULL_PAUSE_MAX_S : s) * 1000;
}

enum rc session_take_login(struct bmc_session *s, const struct session_answer *a, int64_t now_ms) {
	if (a->status / 100 == 2)
		return open(s, a);
	if (is_full(a))
		return use_basic(s, now_ms + pause_ms(a->retry_after_s));
	if (a->status == 401 || a->status == 403)
		return RC_FORBIDDEN;
	if (a->status >= 500)
		return RC_IO;
	/* It is not there. That is remembered until the service is discovered anew. */
	s->tried++;
	return collection(s, s->tried) ? RC_OK : use_basic(s, INT64_MAX);
}

void session_close(struct bmc_session *s) {
	secret_wipe(s->token, sizeof(s->token));
	s->uri[0] = '\0';
	s->state = SESSION_CLOSED;
}
