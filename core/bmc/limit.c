#include "core/bmc/limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "core/bmc/redfish.h"

#define TOTAL_MS 60000
#define SETTLE_MS 10000 /* until a limit that was taken shows */
#define COMPLAINED_MS 2000
#define PAUSE_MS 1000 /* between two looks */
#define PAUSE_MAX_MS 10000
#define RENEWALS_MAX 2
#define SAME_MW 1000 /* BMCs round to watts */

/* --- what is asked next --- */

static void ask(struct limit_change *l, enum limit_step step, const char *uri, int64_t wait_ms) {
	l->step = step;
	l->write = step == LIMIT_WRITE;
	l->wait_ms = wait_ms;
	str_copy(l->next, sizeof(l->next), uri);
}

static void end(struct limit_change *l) {
	l->next[0] = '\0';
}

static void fail(struct limit_change *l, enum rc rc, const char *what) {
	err_set(&l->err, rc, "%s%s%s", what, l->complained ? ": " : "",
		l->complained ? l->complaint : "");
	end(l);
}

static const char *uri_of(const struct limit_change *l) {
	return l->places.uri[l->place];
}

static void look_from(struct limit_change *l, unsigned place) {
	while (place < LIMIT_PLACE_COUNT_ && !l->places.uri[place][0])
		place++;
	if (place == LIMIT_PLACE_COUNT_) {
		fail(l, l->complained ? RC_REFUSED : RC_UNSUPPORTED,
			"the BMC has no power limit that could be set");
		return;
	}
	l->place = (enum limit_place)place;
	l->rung = l->renewals = l->way = 0;
	l->looked = false;
	bool list = place == LIMIT_CONTROL && l->places.control_is_list;
	ask(l, list ? LIMIT_LIST : LIMIT_LOOK, uri_of(l), 0);
}

static void look_elsewhere(struct limit_change *l) {
	look_from(l, l->place + 1u);
}

static void check(struct limit_change *l, int64_t wait_ms) {
	ask(l, LIMIT_CHECK, uri_of(l), wait_ms);
}

void limit_begin(struct limit_change *l, const struct bmc_limit_places *places, int64_t limit_mw,
	int64_t now_ms) {
	*l = (struct limit_change){.wish_mw = limit_mw,
		.limit_mw = NONE,
		.places = *places,
		.end_ms = now_ms + TOTAL_MS,
		.settle_ms = INT64_MAX};
	look_from(l, 0);
}

/* --- If-Match --- */

/* "x" of W/"x" and of x. */
static void strong(const char *etag, char out[HTTPC_ETAG_SIZE]) {
	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	bool quoted = *etag == '"';
	/* Cut short, it fits nothing: the ladder goes on. */
	int len = snprintf(
		out, HTTPC_ETAG_SIZE, "%s%s%s", quoted ? "" : "\"", etag, quoted ? "" : "\"");
	if (len >= HTTPC_ETAG_SIZE)
		out[0] = '\0';
}

/* From what the BMC said to what it may have meant; at last, whatever there is. */
static bool rung(const struct limit_change *l, unsigned n, char out[HTTPC_ETAG_SIZE]) {
	const char *any = l->etag[0] ? l->etag : l->body_etag;
	out[0] = '\0';
	switch (n) {
	case 0:
		/* Also where there is no tag: then without. */
		str_copy(out, HTTPC_ETAG_SIZE, any);
		return true;
	case 1:
		str_copy(out, HTTPC_ETAG_SIZE, l->body_etag);
		return true;
	case 2:
		if (any[0])
			strong(any, out);
		return true;
	case 3:
		str_copy(out, HTTPC_ETAG_SIZE, "*");
		return true;
	default:
		return false;
	}
}

static bool was_tried(const struct limit_change *l, const char *if_match) {
	char tried[HTTPC_ETAG_SIZE];
	for (unsigned i = 0; i < l->rung; i++) {
		rung(l, i, tried);
		if (strcmp(tried, if_match) == 0)
			return true;
	}
	return false;
}

static bool next_rung(struct limit_change *l) {
	do {
		l->rung++;
		if (!rung(l, l->rung, l->if_match))
			return false;
	} while (!l->if_match[0] || was_tried(l, l->if_match));
	return true;
}

static void take_etag(char out[HTTPC_ETAG_SIZE], const char *etag) {
	size_t len = strlen(etag);
	out[0] = '\0';
	for (size_t i = 0; i < len; i++) {
		if (etag[i] <= ' ' || etag[i] > '~')
			return;
	}
	if (len < HTTPC_ETAG_SIZE)
		memcpy(out, etag, len + 1);
}

/* True when they are others than before. */
static bool take_etags(struct limit_change *l, const struct limit_answer *a) {
	char old[HTTPC_ETAG_SIZE], old_body[HTTPC_ETAG_SIZE];
	str_copy(old, sizeof(old), l->etag);
	str_copy(old_body, sizeof(old_body), l->body_etag);
	take_etag(l->etag, a->etag);
	take_etag(l->body_etag, redfish_text(a->doc, "@odata.etag"));
	return strcmp(old, l->etag) != 0 || strcmp(old_body, l->body_etag) != 0;
}

/* --- looking --- */

static bool is_wished(const struct limit_change *l) {
	if (l->found.limit_mw == NONE || l->wish_mw == NONE)
		return l->found.limit_mw == l->wish_mw;
	return llabs(l->found.limit_mw - l->wish_mw) < SAME_MW;
}

static bool find(struct limit_change *l, const struct limit_answer *a) {
	if (a->status / 100 != 2 ||
		!redfish_limit_find(l->place, a->doc, l->places.mode, &l->found))
		return false;
	l->limit_mw = l->found.limit_mw;
	l->known = true;
	return true;
}

static bool is_in_range(struct limit_change *l) {
	const struct limit_found *f = &l->found;
	bool below = f->min_mw != NONE && l->wish_mw < f->min_mw;
	bool above = f->max_mw != NONE && l->wish_mw > f->max_mw;
	if (l->wish_mw == NONE || (!below && !above))
		return true;
	err_field(&l->err, RC_INVALID, "/limit_w", "must be %s %.0f W",
		below ? "at least" : "at most", (double)(below ? f->min_mw : f->max_mw) / 1000);
	end(l);
	return false;
}

static void write_limit(struct limit_change *l) {
	if (redfish_limit_body(l->place, &l->found, l->wish_mw, l->way, l->body, sizeof(l->body)))
		ask(l, LIMIT_WRITE, uri_of(l), 0);
	else
		look_elsewhere(l);
}

static void feed_list(struct limit_change *l, const struct limit_answer *a) {
	if (a->status / 100 != 2 || !redfish_choose_control(a->doc, l->places.uri[LIMIT_CONTROL])) {
		look_elsewhere(l);
		return;
	}
	l->places.control_is_list = false;
	look_from(l, LIMIT_CONTROL);
}

static void feed_look(struct limit_change *l, const struct limit_answer *a) {
	if (!find(l, a)) {
		look_elsewhere(l);
		return;
	}
	if (take_etags(l, a) || !l->looked) {
		l->looked = true;
		l->rung = 0;
		rung(l, 0, l->if_match);
	} else if (!next_rung(l)) {
		fail(l, RC_REFUSED, "the BMC takes no change, whatever the If-Match");
		return;
	}
	if (is_wished(l))
		end(l);
	else if (is_in_range(l))
		write_limit(l);
}

/* --- writing --- */

/* The tag was of another state, or in another form than the BMC wants. */
static void climb(struct limit_change *l) {
	if (l->renewals++ < RENEWALS_MAX)
		ask(l, LIMIT_LOOK, uri_of(l), 0);
	else if (next_rung(l))
		write_limit(l);
	else
		fail(l, RC_REFUSED, "the BMC takes no change, whatever the If-Match");
}

static void try_another_way(struct limit_change *l) {
	l->way++;
	if (redfish_limit_body(l->place, &l->found, l->wish_mw, l->way, l->body, sizeof(l->body)))
		ask(l, LIMIT_WRITE, uri_of(l), 0);
	else
		fail(l, RC_REFUSED, "the BMC refused the limit");
}

static int64_t pause_of(const struct limit_answer *a) {
	int64_t ms = (int64_t)a->retry_after_s * 1000;
	return ms < PAUSE_MS ? PAUSE_MS : ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : ms;
}

/* The task monitor may stand at another place than the task, and at a name of its own. */
static bool monitor_of(const struct limit_answer *a, char out[BMC_URI_SIZE]) {
	return redfish_take_uri(redfish_path_of(a->location), out) ||
		redfish_take_uri(redfish_text(a->doc, "TaskMonitor"), out) ||
		redfish_link(a->doc, NULL, out);
}

static void feed_written(struct limit_change *l, const struct limit_answer *a) {
	char monitor[BMC_URI_SIZE];
	l->changed = true;
	l->settle_ms = a->now_ms + (l->complained ? COMPLAINED_MS : SETTLE_MS);
	if (a->status == 202 && monitor_of(a, monitor))
		ask(l, LIMIT_FOLLOW, monitor, pause_of(a));
	else
		check(l, 0);
}

static void feed_write(struct limit_change *l, const struct limit_answer *a) {
	l->complained = redfish_complaint(a->doc, l->complaint, sizeof(l->complaint));
	/* Whether it was heard is found by looking. */
	if (a->rc || a->status / 100 == 2)
		feed_written(l, a);
	else if (a->status == 412 || a->status == 428)
		climb(l);
	else if (a->status == 400 || a->status == 422)
		try_another_way(l);
	else if (a->status == 404 || a->status == 405 || a->status == 501)
		look_elsewhere(l);
	else if (a->status == 401 || a->status == 403)
		fail(l, RC_REFUSED, "the BMC's account may not set the limit");
	else if (a->status == 429 || a->status == 503)
		fail(l, RC_UNAVAILABLE, "the BMC is busy");
	else
		fail(l, RC_REFUSED, "the BMC refused the limit");
}

/* --- following --- */

enum progress { RUNNING, DONE, FAILED };

static enum progress progress_of(const struct limit_answer *a) {
	static const char *const failed[] = {"Exception", "Killed", "Cancelled", "Interrupted"};
	static const char *const running[] = {"New", "Starting", "Running", "Pending", "Suspended",
		"Stopping", "Cancelling", "Service"};
	const char *state = redfish_text(a->doc, "TaskState");
	if (*state && redfish_mentions(state, failed, array_len(failed)))
		return FAILED;
	if (a->rc || a->status == 202 ||
		(*state && redfish_mentions(state, running, array_len(running))))
		return RUNNING;
	/* Some forget a task that is done. */
	return a->status / 100 == 2 || a->status == 404 || a->status == 410 ? DONE : FAILED;
}

static void feed_follow(struct limit_change *l, const struct limit_answer *a) {
	switch (progress_of(a)) {
	case RUNNING:
		l->wait_ms = pause_of(a);
		return;
	case DONE:
		l->settle_ms = a->now_ms + SETTLE_MS;
		l->complained |= redfish_complaint(a->doc, l->complaint, sizeof(l->complaint));
		check(l, 0);
		return;
	case FAILED:
		l->complained = redfish_complaint(a->doc, l->complaint, sizeof(l->complaint));
		fail(l, RC_REFUSED, "the BMC began the change and gave it up");
	}
}

/* --- reading back --- */

static void tell_difference(struct limit_change *l) {
	char what[80];
	if (l->found.limit_mw == NONE)
		snprintf(what, sizeof(what), "the BMC took the change, but there is no limit");
	else
		snprintf(what, sizeof(what), "the BMC took the change, but its limit is %.0f W",
			(double)l->found.limit_mw / 1000);
	fail(l, RC_REFUSED, l->complained ? "the BMC refused the limit" : what);
}

static void feed_check(struct limit_change *l, const struct limit_answer *a) {
	bool found = find(l, a);
	if (found && is_wished(l))
		end(l);
	else if (found && a->now_ms >= l->settle_ms)
		tell_difference(l);
	else
		check(l, PAUSE_MS);
}

/* --- answers --- */

static bool is_late(struct limit_change *l, const struct limit_answer *a) {
	if (a->now_ms < l->end_ms)
		return false;
	fail(l, RC_TIMEOUT, "the BMC is not done with it yet");
	return true;
}

void limit_feed(struct limit_change *l, const struct limit_answer *a) {
	static void (*const feed[])(struct limit_change * l, const struct limit_answer *a) = {
		[LIMIT_LIST] = feed_list,
		[LIMIT_LOOK] = feed_look,
		[LIMIT_WRITE] = feed_write,
		[LIMIT_FOLLOW] = feed_follow,
		[LIMIT_CHECK] = feed_check,
	};
	bool looking = l->step == LIMIT_LIST || l->step == LIMIT_LOOK;
	if (looking && a->rc)
		fail(l, RC_UNAVAILABLE, "the BMC does not answer");
	else if (looking && (a->status == 401 || a->status == 429 || a->status == 503))
		fail(l, RC_UNAVAILABLE, "the BMC refuses to say what its limit is");
	else
		feed[l->step](l, a);
	if (l->next[0])
		is_late(l, a);
}
