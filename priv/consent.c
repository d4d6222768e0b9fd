#include <stdio.h>
#include <string.h>

#include "priv/consent.h"

static const struct use_rule {
	bool stops_reads; /* … too, unless reads of what is in use are permitted and confirmed */
	bool overridable; /* by override_signature */
	bool always;      /* stops everything, whatever is confirmed */
} use_rules[] = {
	[USE_MOUNT] = {.stops_reads = true},
	[USE_HOLDER] = {.stops_reads = true},
	[USE_SWAP] = {.stops_reads = true},
	[USE_PARTITION] = {.stops_reads = false},
	[USE_SIGNATURE] = {.overridable = true},
	[USE_OPEN] = {.stops_reads = true},
	[USE_RUN] = {.always = true},
	[USE_ZONED] = {.stops_reads = false},
	[USE_SHARED] = {.stops_reads = false},
	[USE_UNKNOWN] = {.stops_reads = true},
};

static bool is_listed(const char *serial, const char (*list)[21], uint16_t count) {
	for (uint16_t i = 0; i < count; i++)
		if (strcmp(list[i], serial) == 0)
			return true;
	return false;
}

static enum rc conflict(
	const struct consent_target *t, enum rc rc, const char *words, struct err *err) {
	char field[24];

	snprintf(field, sizeof(field), "/drives/%u", t->index);
	return err_field(err, rc, field, "%s", words);
}

enum rc consent_run(
	const struct priv_config *config, const struct priv_run_start *start, struct err *err) {
	if (config->observe_only)
		return err_set(err, RC_FORBIDDEN, "the server only observes");
	if (start->workload.pattern == PATTERN_IDLE)
		return err_field(err, RC_INVALID, "/workload/pattern", "idle needs no fio");
	return RC_OK;
}

static enum rc check_write(
	const struct priv_run_start *start, const struct consent_target *t, struct err *err) {
	const struct drive_namespace *ns = t->ns;

	if (t->serial[0] == '\0' || !t->serial_unique)
		return conflict(t, RC_CONFLICT,
			"its serial number does not tell it from other drives", err);
	if (!is_listed(t->serial, start->confirm_destructive, start->confirm_count))
		return err_field(err, RC_FORBIDDEN, "/confirm_destructive",
			"serial %s is not confirmed for the loss of its data", t->serial);
	for (uint8_t i = 0; i < ns->use_count; i++)
		if (!use_rules[ns->uses[i].kind].overridable || !start->override_signature)
			return conflict(t, RC_CONFLICT, ns->uses[i].detail, err);
	return RC_OK;
}

static enum rc check_read(const struct priv_config *config, const struct priv_run_start *start,
	const struct consent_target *t, struct err *err) {
	const struct drive_namespace *ns = t->ns;

	for (uint8_t i = 0; i < ns->use_count; i++) {
		const struct use_rule *rule = &use_rules[ns->uses[i].kind];

		if (rule->always)
			return conflict(t, RC_CONFLICT, ns->uses[i].detail, err);
		if (!rule->stops_reads)
			continue;
		if (!config->allow_in_use)
			return conflict(t, RC_CONFLICT, ns->uses[i].detail, err);
		if (!is_listed(t->serial, start->confirm_in_use, start->confirm_in_use_count))
			return err_field(err, RC_FORBIDDEN, "/confirm_in_use",
				"serial %s is not confirmed for reads while it is in use",
				t->serial);
	}
	return RC_OK;
}

enum rc consent_target(const struct priv_config *config, const struct priv_run_start *start,
	const struct consent_target *target, struct err *err) {
	if (!workload_pattern_writes((enum workload_pattern)start->workload.pattern))
		return check_read(config, start, target, err);
	if (!config->allow_destructive)
		return conflict(target, RC_FORBIDDEN,
			"the server does not allow runs that write to real drives", err);
	return check_write(start, target, err);
}
