/* How a limit in watts becomes what a drive is set to. */
#include "base/compiler.h"
#include "model/names.h"
#include "model/power_table.h"

static const char *const means_names[] = {
	[POWER_MEANS_STATE] = "power_state",
	[POWER_MEANS_OCP] = "ocp_power_state",
	[POWER_MEANS_LIMIT] = "power_limit",
};
_Static_assert(array_len(means_names) == POWER_MEANS_COUNT_, "every means has a name");

const char *power_means_name(enum power_means m) {
	return names_get(means_names, array_len(means_names), m);
}

/* --- values ----------------------------------------------------------------------------------- */

/* A value has 16 bits and counts in 0.1 mW or 10 mW. */
#define FINE_MAX_MW 6553
#define COARSE_MW 10
#define COARSE_MAX_MW (UINT16_MAX * COARSE_MW)

static int64_t limit_value(int64_t limit_mw) {
	if (limit_mw <= 0)
		return NONE;
	if (limit_mw <= FINE_MAX_MW)
		return limit_mw;
	return limit_mw > COARSE_MAX_MW ? COARSE_MAX_MW : limit_mw / COARSE_MW * COARSE_MW;
}

static int ocp_state(const struct power_table *t, int64_t watts) {
	const uint8_t entry = t->limits.ocp_states[watts];
	const int state = entry & (POWER_STATES_MAX - 1);
	return entry & OCP_POWER_STATE_VALID && power_table_find(t, state) ? state : -1;
}

static int64_t ocp_value(const struct power_table *t, int64_t limit_mw) {
	int64_t watts = limit_mw / 1000;
	if (watts >= OCP_POWER_STATES)
		watts = OCP_POWER_STATES - 1;
	while (watts > 0 && ocp_state(t, watts) < 0)
		watts--;
	return watts > 0 ? watts * 1000 : NONE;
}

int64_t power_limits_value(const struct power_table *t, int64_t limit_mw) {
	switch ((enum power_means)t->limits.means) {
	case POWER_MEANS_LIMIT:
		return limit_value(limit_mw);
	case POWER_MEANS_OCP:
		return ocp_value(t, limit_mw);
	default:
		return NONE;
	}
}

/* --- settings --------------------------------------------------------------------------------- */

static struct power_setting by_state(int state, int fallback_state, int64_t limit_mw) {
	return (struct power_setting){.state = (int8_t)state,
		.fallback_state = (int8_t)fallback_state,
		.limit_mw = limit_mw};
}

struct power_setting power_limits_setting(
	const struct power_table *t, int64_t limit_mw, bool *missed) {
	const struct power_state *lowest = power_table_find(t, power_table_lowest(t));
	const int64_t value_mw = power_limits_value(t, limit_mw);
	int fits = power_table_state_for_limit(t, limit_mw);
	if (t->limits.means == POWER_MEANS_OCP && value_mw != NONE) {
		*missed = false;
		return by_state(ocp_state(t, value_mw / 1000), -1, value_mw);
	}
	/* Where the states' power is not told, the drive itself knows what is too low. */
	const bool tells = lowest && lowest->max_uw != NONE;
	*missed = fits < 0 && (tells || value_mw == NONE);
	if (fits < 0)
		fits = lowest ? lowest->state : -1;
	if (value_mw == NONE || *missed)
		return by_state(fits, -1, NONE);
	return by_state(power_table_fastest(t), fits, value_mw);
}

bool power_setting_is_same(const struct power_setting *a, const struct power_setting *b) {
	return a->state == b->state && a->limit_mw == b->limit_mw;
}

/* The drive has a state of its choice below the limit, no slower than it must. */
static bool serves(const struct power_table *t, int fallback_state, int observed_state) {
	const struct power_state *must = power_table_find(t, fallback_state);
	const struct power_state *is = power_table_find(t, observed_state);
	return must && is && is->operational && is->max_uw >= must->max_uw;
}

static bool limit_is_kept(
	const struct power_limits *l, const struct power_setting *s, int64_t observed_limit_mw) {
	if (l->means == POWER_MEANS_STATE || (l->means == POWER_MEANS_OCP && s->limit_mw == NONE))
		return true;
	return observed_limit_mw == s->limit_mw;
}

bool power_setting_is_kept(const struct power_table *t, const struct power_setting *s,
	int observed_state, int64_t observed_limit_mw) {
	return limit_is_kept(&t->limits, s, observed_limit_mw) &&
		(observed_state == s->state || serves(t, s->fallback_state, observed_state));
}
