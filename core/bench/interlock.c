/*
 * What speaks against a run before it is queued. The privileged helper looks at the devices
 * again when the run starts and asks the same rules; here the caller learns the reason at once.
 */
#include "core/bench/bench_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "core/bench/fio_json.h"
#include "model/consent.h"

static enum rc at_index(
	struct err *err, enum rc rc, const char *list, unsigned i, const char *msg) {
	char field[sizeof(err->field)];
	snprintf(field, sizeof(field), "%s/%u", list, i);
	return err_field(err, rc, field, "%s", msg);
}

/* --- the request alone ------------------------------------------------------------------------ */

static enum rc check_range(
	struct err *err, const char *field, uint64_t value, uint64_t min, uint64_t max) {
	if (value >= min && value <= max)
		return RC_OK;
	return err_field(err, RC_INVALID, field, "must be %llu to %llu", (unsigned long long)min,
		(unsigned long long)max);
}

enum rc interlock_check_spec(const struct run_spec *s, struct err *err) {
	if (s->drive_count < 1 || s->drive_count > RUN_MAX_DRIVES)
		return err_field(err, RC_INVALID, "/drives", "1 to %d drives", RUN_MAX_DRIVES);
	if (s->confirm_count > RUN_MAX_DRIVES || s->confirm_in_use_count > RUN_MAX_DRIVES)
		return err_set(err, RC_INVALID, "at most %d serial numbers", RUN_MAX_DRIVES);
	for (unsigned i = 0; i < s->drive_count; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(s->drives[i], s->drives[k]) == 0)
				return at_index(err, RC_INVALID, "/drives", i, "named twice");
		}
	}
	enum rc rc = workload_check(&s->workload, "/workload", err);
	if (!rc)
		rc = check_range(err, "/runtime_s", s->runtime_s, 1, 86400);
	if (!rc)
		rc = check_range(err, "/ramp_s", s->ramp_s, 0, 3600);
	if (!rc && s->workload.pattern != PATTERN_IDLE &&
		(unsigned)s->workload.jobs * s->drive_count > FIO_MAX_JOBS)
		rc = err_field(err, RC_INVALID, "/workload/jobs", "at most %d jobs over all drives",
			FIO_MAX_JOBS);
	if (!rc)
		rc = workload_check_buffers(&s->workload, s->drive_count, "/workload", err);
	return rc;
}

/* --- the drives ------------------------------------------------------------------------------- */

static void name_space(struct run_drive *d, const struct drive_detail *detail) {
	char nsid[16];
	snprintf(nsid, sizeof(nsid), "%u", d->nsid);
	const char *by_drive[] = {"drive", d->drive.id};
	const char *by_subsystem[] = {"nqn", detail->subsystem_nqn, d->drive.serial, nsid};
	if (d->drive.kind == DRIVE_NVME && detail->subsystem_nqn[0])
		id_hash(by_subsystem, array_len(by_subsystem), d->space);
	else
		id_hash(by_drive, array_len(by_drive), d->space);
}

static enum rc check_power_state(
	const struct run_spec *s, const struct power_table *t, struct err *err) {
	if (s->power_state < 0 || t->count == 0)
		return RC_OK;
	const struct power_wish wish = {.state = s->power_state, .limit_mw = NONE};
	struct err inner;
	if (power_wish_check(t, &wish, "", &inner) == RC_OK)
		return RC_OK;
	return err_field(err, RC_INVALID, "/power_state", "%s", inner.msg);
}

static struct drive_namespace *first_namespace(struct drive_detail *d) {
	struct drive_namespace *lowest = NULL;
	for (unsigned i = 0; i < d->namespace_count; i++) {
		if (!lowest || d->namespaces[i].nsid < lowest->nsid)
			lowest = &d->namespaces[i];
	}
	return lowest;
}

static enum rc take_drive(struct bench *b, const struct run_spec *s, unsigned i,
	struct drive_detail *detail, struct run_drive *out, struct err *err) {
	if (drives_get(b->drives, s->drives[i], &out->drive, NULL, detail, NULL))
		return at_index(err, RC_INVALID, "/drives", i, "there is no such drive");
	if (out->drive.state != DRIVE_LIVE)
		return at_index(err, RC_CONFLICT, "/drives", i,
			drive_state_name((enum drive_state)out->drive.state));
	const struct drive_namespace *ns = first_namespace(detail);
	if (!ns && s->workload.pattern != PATTERN_IDLE)
		return at_index(err, RC_INVALID, "/drives", i, "the drive has no namespace");
	if (ns && s->workload.size_bytes > ns->size_bytes)
		return err_field(err, RC_INVALID, "/workload/size_bytes", "drive %s has %llu bytes",
			out->drive.serial, (unsigned long long)ns->size_bytes);
	out->nsid = ns && out->drive.kind == DRIVE_NVME ? ns->nsid : 0;
	out->scale = detail->scale > 1 ? detail->scale : 1;
	out->has_states = detail->power.count > 0;
	str_copy(out->subsystem_nqn, sizeof(out->subsystem_nqn), detail->subsystem_nqn);
	name_space(out, detail);
	return check_power_state(s, &detail->power, err);
}

/* --- consent ---------------------------------------------------------------------------------- */

static enum rc check_listed(const struct run_job *j, const char *field, const char (*list)[21],
	unsigned count, struct err *err) {
	for (unsigned i = 0; i < count; i++) {
		bool found = false;
		for (unsigned k = 0; k < j->drive_count; k++)
			found |= strcmp(list[i], j->drives[k].drive.serial) == 0;
		if (!found)
			return at_index(err, RC_INVALID, field, i,
				"none of the drives has this serial number");
	}
	return RC_OK;
}

/* While a run of ours holds the namespace, the kernel refuses an exclusive open to all others; this
 * one waits in the queue. */
static void forget_own_use(struct bench *b, const struct run_job *j, const struct run_drive *d,
	struct drive_namespace *ns) {
	if (!bench_holds(b, d->space, j->id))
		return;
	uint8_t kept = 0;
	for (uint8_t k = 0; k < ns->use_count; k++) {
		if (ns->uses[k].kind != USE_OPEN)
			ns->uses[kept++] = ns->uses[k];
	}
	ns->use_count = kept;
}

static enum rc check_consent(struct bench *b, const struct run_job *j, unsigned i,
	struct drive_detail *detail, struct err *err) {
	const struct run_spec *s = &j->spec;
	const struct run_drive *d = &j->drives[i];
	if (d->drive.kind == DRIVE_SIMULATED || s->workload.pattern == PATTERN_IDLE)
		return RC_OK;
	struct drive_namespace *ns = first_namespace(detail);
	forget_own_use(b, j, d, ns);
	const struct consent c = {
		.allow_destructive = b->config.allow_destructive,
		.allow_in_use = b->config.allow_in_use,
		.writes = workload_pattern_writes((enum workload_pattern)s->workload.pattern),
		.override_signature = s->override_signature,
		.index = i,
		.serial = d->drive.serial,
		.serial_unique = d->drive.serial_unique,
		.confirmed_loss = consent_is_listed(
			d->drive.serial, s->confirm_destructive, s->confirm_count),
		.confirmed_in_use = consent_is_listed(
			d->drive.serial, s->confirm_in_use, s->confirm_in_use_count),
	};
	return consent_check(&c, ns, err);
}

/* --- all together ----------------------------------------------------------------------------- */

static enum rc check_as_a_set(const struct run_job *j, struct err *err) {
	bool some_state = false;
	for (unsigned i = 0; i < j->drive_count; i++) {
		some_state |= j->drives[i].has_states;
		if ((j->drives[i].drive.kind == DRIVE_SIMULATED) !=
			(j->drives[0].drive.kind == DRIVE_SIMULATED))
			return err_field(err, RC_INVALID, "/drives",
				"simulated and real drives do not run together");
		if (j->drives[i].scale != j->drives[0].scale)
			return err_field(err, RC_INVALID, "/drives",
				"simulated drives of different scales do not run together");
		for (unsigned k = 0; k < i; k++) {
			if (strcmp(j->drives[i].space, j->drives[k].space) == 0)
				return at_index(err, RC_INVALID, "/drives", i,
					"reaches the same namespace as another one");
		}
	}
	if (j->spec.power_state >= 0 && !some_state)
		return err_field(
			err, RC_INVALID, "/power_state", "none of the drives has power states");
	return RC_OK;
}

const char *bench_unable(struct bench *b) {
	if (!b->privc)
		return "there is no helper that could start fio";
	return privc_lost(b->privc) ? "the privileged helper is gone" : NULL;
}

enum rc interlock_check(struct bench *b, struct run_job *j, struct err *err) {
	const struct run_spec *s = &j->spec;
	if (b->config.observe_only)
		return err_set(err, RC_FORBIDDEN, "the server only observes");
	if (s->workload.pattern != PATTERN_IDLE && bench_unable(b))
		return err_set(err, RC_UNAVAILABLE, "%s", bench_unable(b));
	auto_free struct drive_detail *detail = calloc(1, sizeof(*detail));
	if (!detail)
		return err_set(err, RC_NOMEM, "out of memory");
	enum rc rc = RC_OK;
	for (unsigned i = 0; i < j->drive_count && !rc; i++) {
		rc = take_drive(b, s, i, detail, &j->drives[i], err);
		if (!rc)
			rc = check_consent(b, j, i, detail, err);
	}
	if (!rc)
		rc = check_listed(
			j, "/confirm_destructive", s->confirm_destructive, s->confirm_count, err);
	if (!rc)
		rc = check_listed(
			j, "/confirm_in_use", s->confirm_in_use, s->confirm_in_use_count, err);
	return rc ? rc : check_as_a_set(j, err);
}

enum rc interlock_check_again(struct bench *b, const struct run_job *j, struct err *err) {
	struct run_job *now = run_job_new(&j->spec, err);
	if (!now)
		return RC_NOMEM;
	str_copy(now->id, sizeof(now->id), j->id);
	const enum rc rc = interlock_check(b, now, err);
	run_job_unref(now);
	return rc;
}

bool run_jobs_collide(const struct run_job *a, const struct run_job *b) {
	for (unsigned i = 0; i < a->drive_count; i++) {
		for (unsigned k = 0; k < b->drive_count; k++) {
			if (strcmp(a->drives[i].space, b->drives[k].space) == 0)
				return true;
		}
	}
	return false;
}
