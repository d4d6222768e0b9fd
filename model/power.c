#include "model/power.h"

#include <stdio.h>

#include "base/compiler.h"
#include "model/names.h"
#include "model/power_table.h"

bool power_wish_is_same(const struct power_wish *a, const struct power_wish *b) {
	return a->state == b->state && a->limit_mw == b->limit_mw &&
		a->allow_non_operational == b->allow_non_operational;
}

static const char *const claim_names[] = {
	[CLAIM_DESIRED] = "desired",
	[CLAIM_LEASE] = "lease",
	[CLAIM_POLICY] = "policy",
	[CLAIM_BUDGET] = "budget",
	[CLAIM_EMERGENCY] = "emergency",
};
_Static_assert(array_len(claim_names) == CLAIM_KIND_COUNT_, "every kind has a name");

const char *claim_kind_name(enum claim_kind k) {
	return names_get(claim_names, array_len(claim_names), k);
}

bool claim_kind_from_name(const char *name, enum claim_kind *out) {
	return names_find(claim_names, array_len(claim_names), name, out);
}

/* Which setting wins: the highest. Caps have no rank. */
static const int ranks[CLAIM_KIND_COUNT_] = {
	[CLAIM_POLICY] = 1,
	[CLAIM_DESIRED] = 2,
	[CLAIM_LEASE] = 3,
};

static bool expired(const struct claim *c, int64_t now_ms) {
	return c->expires_ms != NONE && c->expires_ms <= now_ms;
}

static bool outranks(const struct claim *a, const struct claim *b) {
	if (ranks[a->kind] != ranks[b->kind])
		return ranks[a->kind] > ranks[b->kind];
	return a->created_ms > b->created_ms;
}

static int find_setting(const struct claim *claims, size_t n, int64_t now_ms) {
	int best = -1;
	for (size_t i = 0; i < n; i++) {
		if (claim_kind_is_cap(claims[i].kind) || expired(&claims[i], now_ms))
			continue;
		if (best < 0 || outranks(&claims[i], &claims[best]))
			best = (int)i;
	}
	return best;
}

/* What a cap allows. One by a state whose power nobody knows allows nothing, to be safe. */
static int64_t cap_limit_mw(const struct power_table *t, const struct power_wish *w) {
	if (w->limit_mw != NONE)
		return w->limit_mw;
	const struct power_state *s = power_table_find(t, w->state);
	return s && s->max_uw != NONE ? power_state_max_mw(s) : 0;
}

static int64_t tighter(int64_t a_mw, int64_t b_mw) {
	if (a_mw == NONE || b_mw == NONE)
		return a_mw == NONE ? b_mw : a_mw;
	return a_mw < b_mw ? a_mw : b_mw;
}

static int64_t find_cap(
	const struct power_table *t, const struct claim *claims, size_t n, int64_t now_ms) {
	int64_t cap = NONE;
	for (size_t i = 0; i < n; i++) {
		if (claim_kind_is_cap(claims[i].kind) && !expired(&claims[i], now_ms))
			cap = tighter(cap, cap_limit_mw(t, &claims[i].wish));
	}
	return cap;
}

static struct power_setting set_state(int state) {
	return (struct power_setting){
		.state = (int8_t)state, .fallback_state = -1, .limit_mw = NONE};
}

/* What a wish under a cap sets. *missed: nothing fits, the nearest was taken. */
static struct power_setting choose(
	const struct power_table *t, const struct power_wish *w, int64_t cap_mw, bool *missed) {
	if (w && w->state >= 0) {
		const struct power_state *s = power_table_find(t, w->state);
		if (s && (cap_mw == NONE || power_state_fits(s, cap_mw)))
			return set_state(s->state);
	}
	const int64_t limit_mw = tighter(w ? w->limit_mw : NONE, cap_mw);
	if (limit_mw == NONE) {
		*missed = w != NULL;
		return set_state(-1);
	}
	return power_limits_setting(t, limit_mw, missed);
}

struct power_effective power_effective_compute(
	const struct power_table *t, const struct claim *claims, size_t n, int64_t now_ms) {
	const int holder = find_setting(claims, n, now_ms);
	const struct power_wish *wish = holder >= 0 ? &claims[holder].wish : NULL;
	const int64_t cap_mw = find_cap(t, claims, n, now_ms);
	bool missed = false, missed_free = false;
	const struct power_setting setting = choose(t, wish, cap_mw, &missed);
	const struct power_setting uncapped = choose(t, wish, NONE, &missed_free);
	return (struct power_effective){
		.state = setting.state,
		.setting = setting,
		.limit_mw = tighter(wish ? wish->limit_mw : NONE, cap_mw),
		.holder = (int8_t)holder,
		.capped = !power_setting_is_same(&setting, &uncapped),
		.unsatisfiable = missed,
	};
}

int64_t power_limit_in_force(const struct power_table *t, const struct power_effective *e) {
	const struct power_state *s = power_table_find(t, e->state);
	if (e->setting.limit_mw != NONE)
		return e->setting.limit_mw;
	return e->limit_mw != NONE && s && s->max_uw != NONE ? power_state_max_mw(s) : NONE;
}

static enum rc wish_error(
	struct err *err, const char *base, const char *name, enum rc rc, const char *msg) {
	char field[sizeof(err->field)];
	snprintf(field, sizeof(field), "%s%s", base, name);
	return err_field(err, rc, field, "%s", msg);
}

static enum rc check_state(const struct power_table *t, const struct power_wish *w,
	const char *base, struct err *err) {
	char msg[96];
	const struct power_state *s = power_table_find(t, w->state);
	if (!s) {
		snprintf(msg, sizeof(msg), "the drive has the power states 0 to %d", t->count - 1);
		return wish_error(err, base, "/state", RC_INVALID, msg);
	}
	if (!s->operational && !w->allow_non_operational) {
		snprintf(msg, sizeof(msg), "power state %d is non-operational", w->state);
		return wish_error(err, base, "/state", RC_INVALID, msg);
	}
	return RC_OK;
}

static enum rc check_limit(const struct power_table *t, const struct power_wish *w,
	const char *base, struct err *err) {
	char msg[96];
	bool missed;
	power_limits_setting(t, w->limit_mw, &missed);
	if (!missed)
		return RC_OK;
	const struct power_state *s = power_table_find(t, power_table_lowest(t));
	if (!s || s->max_uw == NONE)
		return wish_error(err, base, "/limit_w", RC_UNSUPPORTED,
			"the drive does not say how much power its states take");
	snprintf(msg, sizeof(msg), "the least that an operational state allows is %.3f W",
		(double)power_state_max_mw(s) / 1000);
	return wish_error(err, base, "/limit_w", RC_INVALID, msg);
}

enum rc power_wish_check(const struct power_table *t, const struct power_wish *w, const char *base,
	struct err *err) {
	if (t->count == 0)
		return wish_error(err, base, "", RC_UNSUPPORTED, "the drive has no power states");
	if ((w->state < 0) == (w->limit_mw == NONE))
		return wish_error(err, base, "", RC_INVALID, "either state or limit_w is needed");
	return w->state >= 0 ? check_state(t, w, base, err) : check_limit(t, w, base, err);
}
