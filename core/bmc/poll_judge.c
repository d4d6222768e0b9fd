/* What a BMC's answers mean, and what is done next. Runs in the pool. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "core/bmc/foreign_json.h"
#include "core/bmc/poll.h"
#include "core/bmc/redfish.h"

#define MAX_REQUESTS 160         /* for one reading */
#define DISCOVER_EVERY_MS 60000  /* while no source answers */
#define BETTER_EVERY_MS 300000   /* while the watts are derived */
#define LICENCE_EVERY_MS 3600000 /* while a licence is missing */
#define EXTRAS_EVERY_MS 60000
#define EXTRAS_AGAIN_MS 10000 /* when they failed */
#define EXTRAS_STALE_MS 300000
#define BACKOFF_MAX_MS 300000
#define REFUSED_PAUSE_MS 60000  /* wrong passwords lock accounts */
#define RELOGIN_EVERY_MS 600000 /* where it did not help */
#define UNREACHABLE_AFTER 3     /* failures in a row */
#define JOULES_MIN_NS INT64_C(500000000)
#define JOULES_STILL_NS INT64_C(60000000000) /* that a counter may stand still between steps */
#define JOULES_MAX_NS INT64_C(600000000000)

int64_t poll_backoff_ms(unsigned failures, int64_t period_ms, int64_t at_least_ms, int64_t noise) {
	unsigned doublings = failures < 10 ? failures - 1 : 9;
	int64_t delay_ms = period_ms << doublings;
	if (delay_ms < at_least_ms)
		delay_ms = at_least_ms;
	if (delay_ms > BACKOFF_MAX_MS)
		delay_ms = BACKOFF_MAX_MS;
	return delay_ms + noise % (delay_ms / 4 + 1);
}

static int64_t next_try(const struct poll *x, int64_t at_least_ms) {
	int64_t now_ns = clock_mono_ns();
	return now_ns / 1000000 + poll_backoff_ms(x->failures, poll_period(x), at_least_ms, now_ns);
}

/* --- telling --- */

static void tell_state(struct poll *x, const char *reason) {
	char object[64], data[128];
	bool now = reason != NULL;
	if (x->unreachable == now)
		return;
	x->unreachable = now;
	snprintf(object, sizeof(object), "/hosts/%s", x->host_id);
	if (now)
		snprintf(data, sizeof(data), "{\"state\":\"unreachable\",\"reason\":\"%s\"}",
			reason);
	else
		snprintf(data, sizeof(data), "{\"state\":\"reachable\"}");
	events_record(x->owner->config.events, EVENT_BMC_STATE, &actor_system, object, data);
}

static void tell(struct poll *x, const struct bmc_reading *r, const struct bmc_extras *e) {
	struct host_power p;
	host_power_init(&p);
	p.power_mw = r->power_mw;
	p.quality = (uint8_t)r->quality;
	p.at_ms = x->at_ms;
	p.at_mono_ns = x->at_mono_ns;
	p.limit_mw = e->limit_mw;
	p.limit_min_mw = e->limit_min_mw;
	p.limit_max_mw = e->limit_max_mw;
	p.energy_counter_mj = e->energy_counter_mj;
	p.energy_since_ms = e->energy_since_ms;
	p.inlet_mc = e->inlet_mc;
	str_copy(p.system_uuid, sizeof(p.system_uuid), e->system_uuid);
	p.supply_count = e->supply_count;
	memcpy(p.supplies, e->supplies, sizeof(p.supplies));
	if (r->power_mw == NONE)
		str_copy(p.reason, sizeof(p.reason), r->reason);
	str_copy(p.source, sizeof(p.source), r->power_mw == NONE ? "" : r->source);
	x->owner->config.reading(x->owner->config.arg, x->host_id, &p);
}

static void tell_reading(struct poll *x) {
	struct bmc_extras e;
	bmc_walk_extras(&x->walk, &e);
	tell(x, &x->walk.reading, &e);
}

/* The counter of joules is the base of what comes next. */
static void note_joules(struct poll *x) {
	x->joules_mj = x->walk.reading.more.energy_counter_mj;
	x->joules_ns = x->at_mono_ns;
}

/* Where no source gives watts, but a counter of joules runs: the average since the last reading.
 * False when that was a moment ago or it did not move since, and nothing can be said yet. */
static bool derive_from_joules(struct poll *x) {
	struct bmc_reading *r = &x->walk.reading;
	if (r->power_mw != NONE || !r->more.energy_in_joules)
		return true;
	if (x->joules_ns == NONE) {
		note_joules(x);
		return true;
	}
	int64_t passed_ns = x->at_mono_ns - x->joules_ns;
	int64_t used_mj = r->more.energy_counter_mj - x->joules_mj;
	if (used_mj >= 0 && passed_ns < (used_mj ? JOULES_MIN_NS : JOULES_STILL_NS))
		return false;
	note_joules(x);
	if (used_mj > 0 && passed_ns <= JOULES_MAX_NS) {
		r->power_mw = llround((double)used_mj * 1e9 / (double)passed_ns);
		r->source = "EnergyJoules";
		r->quality = QUALITY_DERIVED;
	}
	return true;
}

static void tell_watts(struct poll *x) {
	struct bmc_reading *r = &x->walk.reading;
	x->at_ms = x->answer.wall_ms;
	x->at_mono_ns = x->answer.mono_ns;
	x->reported = true;
	if (x->unlicensed && strcmp(r->reason, "bmc_forbidden") == 0)
		r->reason = "bmc_license";
	x->told = derive_from_joules(x);
	if (x->told)
		tell_reading(x);
}

/* --- how it ended --- */

static void succeed(struct poll *x) {
	int64_t now_ms = clock_mono_ms();
	metric_add(METRIC_BMC_POLLS, 1);
	x->failures = 0;
	if (x->walk.with_extras) {
		x->extras_at_ms = now_ms;
		x->extras_due_ms = now_ms + EXTRAS_EVERY_MS;
	}
	if (x->walk.with_extras && x->told)
		tell_reading(x);
	tell_state(x, NULL);
	poll_rest(x, poll_next_beat(x));
}

/* The watts are told; without the rest one can do for a while. */
static void leave_extras(struct poll *x) {
	metric_add(METRIC_BMC_FAILURES, 1);
	x->extras_due_ms = clock_mono_ms() + EXTRAS_AGAIN_MS;
	poll_rest(x, poll_next_beat(x));
}

static void fail(struct poll *x, const char *reason, int64_t pause_ms) {
	struct bmc_reading none;
	x->last_failure = reason;
	if (x->for_limit) {
		poll_limit_fail(x, reason);
		return;
	}
	if (x->reported) {
		leave_extras(x);
		return;
	}
	bmc_reading_init(&none);
	none.reason = reason;
	metric_add(METRIC_BMC_FAILURES, 1);
	x->failures++;
	x->at_ms = clock_wall_ms();
	x->at_mono_ns = clock_mono_ns();
	tell(x, &none, &none.more);
	if (x->failures >= UNREACHABLE_AFTER)
		tell_state(x, reason);
	poll_rest(x, next_try(x, pause_ms));
}

/* --- asking --- */

static void ask(struct poll *x) {
	if (++x->requests > MAX_REQUESTS) {
		fail(x, "bmc_error", 0);
		return;
	}
	enum rc rc = poll_send(x);
	if (rc == RC_CORRUPT)
		fail(x, "password_unreadable", REFUSED_PAUSE_MS);
	else if (rc)
		fail(x, "busy", 0);
}

void poll_ask(struct poll *x, enum poll_step step) {
	x->step = step;
	x->retried = x->redirected = false;
	ask(x);
}

static void go_on(struct poll *x) {
	const struct bmc_walk *w = &x->walk;
	if (!w->next[0] && !w->discovered && !x->rediscovered) {
		x->rediscovered = true;
		poll_ask(x, STEP_ROOT);
		return;
	}
	if (w->answered && !x->reported)
		tell_watts(x);
	if (w->next[0])
		poll_ask(x, STEP_WALK);
	else
		succeed(x);
}

static bool is_discovery_due(const struct poll *x, int64_t now_ms, bool hurried) {
	const struct bmc_reading *r = &x->walk.reading;
	if (!x->walk.discovered)
		return true;
	if (r->power_mw == NONE)
		return now_ms >= x->discover_due_ms;
	return r->quality == QUALITY_DERIVED && !hurried &&
		now_ms >= x->discover_due_ms + BETTER_EVERY_MS - DISCOVER_EVERY_MS;
}

void poll_read(struct poll *x) {
	int64_t now_ms = clock_mono_ms();
	/* Who wants readings fast does not want them held up by the rest. */
	bool hurried = poll_period(x) < x->owner->config.period_ms;
	x->requests = 0;
	x->for_limit = false;
	x->reported = x->told = x->logged_in = x->unlicensed = false;
	x->rediscovered = is_discovery_due(x, now_ms, hurried);
	if (x->rediscovered) {
		poll_ask(x, STEP_ROOT);
		return;
	}
	if (now_ms - x->extras_at_ms > EXTRAS_STALE_MS)
		bmc_walk_drop_extras(&x->walk);
	bmc_walk_begin(&x->walk, now_ms >= x->extras_due_ms && !hurried);
	go_on(x);
}

void poll_begin(struct poll *x) {
	if (poll_limit_is_due(x))
		poll_limit_begin(x);
	else
		poll_read(x);
}

/* --- what is refused --- */

static const char *transport_reason(enum rc rc) {
	switch (rc) {
	case RC_TIMEOUT:
		return "bmc_timeout";
	case RC_FORBIDDEN:
		return "bmc_tls";
	case RC_CORRUPT:
		return "bmc_truncated";
	case RC_TOO_LARGE:
		return "bmc_too_large";
	case RC_UNAVAILABLE:
		return "bmc_unreachable";
	default:
		return "bmc_error";
	}
}

/* Statuses that fail the whole reading, not one resource. */
static const struct {
	int status;
	const char *reason;
	int64_t pause_ms;
} refusals[] = {
	{401, "bmc_unauthorized", REFUSED_PAUSE_MS},
	{429, "bmc_busy", 0},
	{500, "bmc_error", 0},
	{502, "bmc_error", 0},
	{503, "bmc_busy", 0},
	{504, "bmc_error", 0},
};

static bool is_refused(struct poll *x) {
	int64_t wished_ms = (int64_t)x->answer.retry_after_s * 1000;
	for (size_t i = 0; i < array_len(refusals); i++) {
		if (refusals[i].status != x->answer.status)
			continue;
		fail(x, refusals[i].reason,
			wished_ms > refusals[i].pause_ms ? wished_ms : refusals[i].pause_ms);
		return true;
	}
	return false;
}

/* A session that died is answered by 401, 403 or 404, or by a page to log in. */
static bool may_relogin(const struct poll *x) {
	return x->session.state == SESSION_OPEN && !x->logged_in &&
		clock_mono_ms() >= x->relogin_due_ms;
}

static void login_for(struct poll *x, enum poll_step step) {
	x->after_login = step;
	poll_ask(x, STEP_LOGIN);
}

static void relogin(struct poll *x) {
	if (x->answer.status != 401)
		x->relogin_due_ms = clock_mono_ms() + RELOGIN_EVERY_MS;
	poll_logout(x);
	login_for(x, x->step);
}

static bool lacks_licence(const struct poll *x) {
	static const char *const messages[] = {"SWC0242", "LicenseNot", "license is missing"};
	return x->answer.status == 403 && x->answer.body &&
		redfish_mentions(x->answer.body, messages, array_len(messages));
}

static bool is_session_dead(struct poll *x) {
	int status = x->answer.status;
	bool by_404 = status == 404 && x->step == STEP_WALK && bmc_walk_knows_next(&x->walk);
	return (status == 401 || status == 403 || by_404) && may_relogin(x);
}

/* Some want a login even for the service root. */
static bool is_root_closed(const struct poll *x) {
	return x->step == STEP_ROOT && (x->answer.status == 401 || x->answer.status == 403) &&
		x->session.state == SESSION_CLOSED && x->settings.username[0];
}

/* --- what is told --- */

static void feed(struct poll *x, const json_t *doc) {
	if (x->step == STEP_ROOT && !doc) {
		fail(x, x->answer.status == 403 ? "bmc_forbidden" : "bmc_no_redfish", 0);
		return;
	}
	if (x->step == STEP_ROOT) {
		session_learn(&x->session, doc);
		bmc_walk_discover(&x->walk, x->settings.vendor, doc);
		x->discover_due_ms = clock_mono_ms() + DISCOVER_EVERY_MS;
	} else {
		bmc_walk_feed(&x->walk, x->answer.status, doc);
	}
	go_on(x);
}

static void retry_or_fail(struct poll *x, const char *reason) {
	if (x->retried) {
		fail(x, reason, 0);
		return;
	}
	x->retried = true;
	ask(x);
}

static void tell_repair(struct poll *x) {
	if (!x->told_repair)
		log_warning(
			"bmc", "host %s: bmc_json_repaired: its BMC sends faulty JSON", x->host_id);
	x->told_repair = true;
}

static void judge_document(struct poll *x) {
	struct foreign_json json;
	enum rc rc = foreign_json_parse(x->answer.body, x->answer.len, &json, NULL);
	if (json.repaired && !rc)
		tell_repair(x);
	if (rc == RC_CORRUPT && strcmp(json.reason, "bmc_truncated") == 0)
		retry_or_fail(x, json.reason);
	else if (rc == RC_CORRUPT && strcmp(json.reason, "bmc_not_json") == 0 && may_relogin(x))
		relogin(x);
	else if (rc && rc != RC_REFUSED)
		fail(x, json.reason, 0);
	else
		feed(x, rc ? NULL : json.doc);
	json_decref(json.doc);
}

static void judge_login(struct poll *x) {
	const struct session_answer a = {.status = x->answer.status,
		.retry_after_s = x->answer.retry_after_s,
		.token = x->answer.token,
		.location = x->answer.location,
		.body = x->answer.body};
	enum rc rc = session_take_login(&x->session, &a, clock_mono_ms());
	x->logged_in = x->session.state == SESSION_OPEN;
	if (rc == RC_FORBIDDEN)
		fail(x, "bmc_unauthorized", REFUSED_PAUSE_MS);
	else if (rc)
		fail(x, "bmc_error", 0);
	else
		poll_ask(x, x->session.state == SESSION_CLOSED ? STEP_LOGIN : x->after_login);
}

/* A redirect is followed once, and on the same BMC only: elsewhere nobody gets its credentials. */
static void judge_redirect(struct poll *x) {
	const char *to = x->answer.location;
	size_t own = strlen(x->settings.url);
	if (strncmp(to, x->settings.url, own) == 0)
		to += own;
	if (x->redirected || !redfish_take_uri(to, x->uri)) {
		fail(x, "bmc_redirects", 0);
		return;
	}
	x->redirected = true;
	ask(x);
}

static bool is_redirect(int status) {
	return status == 301 || status == 302 || status == 307 || status == 308;
}

static void judge_refusal(struct poll *x) {
	if (lacks_licence(x)) {
		x->unlicensed = true;
		feed(x, NULL);
		x->discover_due_ms = clock_mono_ms() + LICENCE_EVERY_MS;
	} else if (is_root_closed(x)) {
		login_for(x, STEP_ROOT);
	} else if (is_session_dead(x)) {
		relogin(x);
	} else if (!is_refused(x)) {
		feed(x, NULL);
	}
}

static void judge_limit(struct poll *x) {
	if (!x->answer.rc && is_session_dead(x))
		relogin(x);
	else if (!x->answer.rc && is_redirect(x->answer.status) && !x->limit->change.write)
		judge_redirect(x);
	else
		poll_limit_judge(x);
}

void poll_judge(struct poll *x) {
	const struct poll_answer *a = &x->answer;
	if (x->step == STEP_LIMIT)
		judge_limit(x);
	else if (a->rc == RC_CORRUPT && x->step != STEP_LOGIN)
		retry_or_fail(x, transport_reason(a->rc));
	else if (a->rc)
		fail(x, transport_reason(a->rc), 0);
	else if (x->step == STEP_LOGIN)
		judge_login(x);
	else if (a->status / 100 == 2)
		judge_document(x);
	else if (is_redirect(a->status))
		judge_redirect(x);
	else
		judge_refusal(x);
}
