/* Requests to a BMC: whose credentials they carry, and how sessions are opened and closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/bmc/poll.h"

#define CONNECT_MS 5000
#define TOTAL_MS 20000
#define ANSWER_MAX (1024u * 1024)
#define LOGIN_MAX 1024 /* of the body sent */
#define URL_SIZE (sizeof(((struct bmc_settings *)0)->url) + BMC_URI_SIZE)

/* url is kept by the caller. */
static struct httpc_request request_to(const struct poll *x, const char *uri, char url[URL_SIZE]) {
	const struct bmc_settings *b = &x->settings;
	snprintf(url, URL_SIZE, "%s%s", b->url, uri);
	return (struct httpc_request){
		.method = "GET",
		.url = url,
		.tls = b->tls,
		.allow_plaintext = b->allow_plaintext,
		.ca_file = b->ca_file[0] ? b->ca_file : NULL,
		.fingerprint_sha256 = b->fingerprint_sha256,
		.ciphers = b->ciphers[0] ? b->ciphers : NULL,
		.connect_ms = CONNECT_MS,
		.total_ms = TOTAL_MS,
		.max_bytes = ANSWER_MAX,
	};
}

static enum rc unseal(const struct poll *x, char **password) {
	const char *sealed = x->settings.password_sealed;
	*password = NULL;
	if (!sealed)
		return RC_OK;
	return secret_unseal(x->owner->config.secret_key, sealed, password, NULL) == RC_OK
		? RC_OK
		: RC_CORRUPT;
}

static void wipe(char *secret) {
	if (secret)
		secret_wipe(secret, strlen(secret));
	free(secret);
}

/* --- answers, in the HTTP client's thread --- */

static void take_answer(struct poll *x, const struct httpc_response *r) {
	struct poll_answer *a = &x->answer;
	free(a->body);
	*a = (struct poll_answer){
		.rc = r->rc,
		.status = r->status,
		.retry_after_s = r->retry_after_s,
		.wall_ms = r->done_wall_ms,
		.mono_ns = r->done_mono_ns,
	};
	if (r->rc)
		return;
	str_copy(a->etag, sizeof(a->etag), r->etag);
	str_copy(a->location, sizeof(a->location), r->location);
	str_copy(a->token, sizeof(a->token), r->token);
	a->body = malloc(r->length + 1);
	if (!a->body) {
		a->rc = RC_NOMEM;
		return;
	}
	memcpy(a->body, r->body, r->length + 1);
	a->len = r->length;
}

static void on_answer(void *arg, const struct httpc_response *r) {
	struct poll *x = arg;
	take_answer(x, r);
	poll_answered(x);
}

/* --- asking --- */

static enum rc send_login(struct poll *x, char *password) {
	char url[URL_SIZE];
	struct buf body;
	struct jsonw w;
	struct httpc_request request = request_to(x, x->uri, url);
	buf_init(&body, LOGIN_MAX);
	jsonw_init(&w, &body);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "UserName", x->settings.username);
	jsonw_str(&w, "Password", password ? password : "");
	jsonw_object_end(&w);
	enum rc rc = buf_status(&body, NULL);
	request.method = "POST";
	request.body = buf_str(&body);
	if (!rc)
		rc = httpc_send(x->owner->config.httpc, x->host_id, &request, on_answer, x, NULL);
	if (body.data)
		secret_wipe(body.data, body.len);
	buf_release(&body);
	return rc;
}

/* To PATCH, where the limit's change asks for that. */
static void add_change(const struct poll *x, struct httpc_request *request) {
	if (x->step != STEP_LIMIT || !x->limit->change.write)
		return;
	request->method = "PATCH";
	request->body = x->limit->change.body;
	if (x->limit->change.if_match[0])
		request->if_match = x->limit->change.if_match;
}

static enum rc send_request(struct poll *x, const char *password) {
	char url[URL_SIZE];
	const struct bmc_session *s = &x->session;
	struct httpc_request request = request_to(x, x->uri, url);
	add_change(x, &request);
	if (s->state == SESSION_OPEN) {
		request.token = s->token;
	} else if (s->state == SESSION_BASIC) {
		request.username = x->settings.username;
		request.password = password;
	}
	return httpc_send(x->owner->config.httpc, x->host_id, &request, on_answer, x, NULL);
}

static void choose_uri(struct poll *x) {
	bool login = x->settings.username[0] && session_wants_login(&x->session, clock_mono_ms());
	if ((x->step == STEP_WALK || x->step == STEP_LIMIT) && login) {
		x->after_login = x->step;
		x->step = STEP_LOGIN;
	}
	const char *uri = x->step == STEP_ROOT ? BMC_SERVICE_ROOT
		: x->step == STEP_LOGIN        ? session_collection(&x->session)
		: x->step == STEP_LIMIT        ? x->limit->change.next
					       : x->walk.next;
	str_copy(x->uri, sizeof(x->uri), uri);
}

enum rc poll_send(struct poll *x) {
	char *password = NULL;
	if (!x->redirected)
		choose_uri(x);
	bool login = x->step == STEP_LOGIN;
	enum rc rc = login || x->session.state == SESSION_BASIC ? unseal(x, &password) : RC_OK;
	if (rc)
		return rc;
	poll_set_phase(x, PHASE_ASKING);
	rc = login ? send_login(x, password) : send_request(x, password);
	wipe(password);
	if (rc)
		poll_set_phase(x, PHASE_JUDGING);
	return rc;
}

/* --- closing --- */

static void on_logout(void *arg, const struct httpc_response *r unused_arg) {
	struct poller *p = arg;
	pthread_mutex_lock(&p->lock);
	if (!--p->logouts)
		pthread_cond_broadcast(&p->idle);
	poller_unlock(p);
}

void poll_logout(struct poll *x) {
	struct poller *p = x->owner;
	char url[URL_SIZE];
	if (x->session.state != SESSION_OPEN)
		return;
	if (x->session.uri[0]) {
		struct httpc_request request = request_to(x, x->session.uri, url);
		request.method = "DELETE";
		request.token = x->session.token;
		pthread_mutex_lock(&p->lock);
		p->logouts++;
		pthread_mutex_unlock(&p->lock);
		if (httpc_send(p->config.httpc, x->host_id, &request, on_logout, p, NULL))
			on_logout(p, NULL);
	}
	session_close(&x->session);
}
