#include "model/consent.h"
#include "priv/consent.h"

enum rc consent_run(
	const struct priv_config *config, const struct priv_run_start *start, struct err *err) {
	if (config->observe_only)
		return err_set(err, RC_FORBIDDEN, "the server only observes");
	if (start->workload.pattern == PATTERN_IDLE)
		return err_field(err, RC_INVALID, "/workload/pattern", "idle needs no fio");
	return RC_OK;
}

enum rc consent_target(const struct priv_config *config, const struct priv_run_start *start,
	const struct consent_target *target, struct err *err) {
	const struct consent c = {
		.allow_destructive = config->allow_destructive,
		.allow_in_use = config->allow_in_use,
		.writes = workload_pattern_writes((enum workload_pattern)start->workload.pattern),
		.override_signature = start->override_signature,
		.index = target->index,
		.serial = target->serial,
		.serial_unique = target->serial_unique,
		.confirmed_loss = consent_is_listed(
			target->serial, start->confirm_destructive, start->confirm_count),
		.confirmed_in_use = consent_is_listed(
			target->serial, start->confirm_in_use, start->confirm_in_use_count),
	};

	return consent_check(&c, target->ns, err);
}
