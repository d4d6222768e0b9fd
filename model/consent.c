#include "model/consent.h"

#include <stdio.h>
#include <string.h>

/* What stops writes is every use; of reads, and of who may insist, there is this to say. */
static const struct use_rule {
	bool stops_reads; /* unless reads of what is in use are permitted and confirmed */
	bool overridable; /* writes go on under override_signature */
} use_rules[] = {
	[USE_MOUNT] = {.stops_reads = true},
	[USE_HOLDER] = {.stops_reads = true},
	[USE_SWAP] = {.stops_reads = true},
	[USE_EXPORT] = {.stops_reads = true},
	[USE_PROCESS] = {.stops_reads = true},
	[USE_OPEN] = {.stops_reads = true},
	[USE_RESERVED] = {.stops_reads = true},
	[USE_UNKNOWN] = {.stops_reads = true},
	[USE_PARTITION] = {.stops_reads = false},
	[USE_ZONED] = {.stops_reads = false},
	[USE_SHARED] = {.stops_reads = false},
	[USE_UNSEEN] = {.stops_reads = false},
	[USE_SIGNATURE] = {.overridable = true},
};

bool consent_is_listed(const char *serial, const char (*list)[21], unsigned count) {
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(list[i], serial) == 0)
			return true;
	}
	return false;
}

static enum rc conflict(
	const struct consent *c, const char *what, const char *more, struct err *err) {
	char field[24];
	snprintf(field, sizeof(field), "/drives/%u", c->index);
	return err_field(err, RC_CONFLICT, field, "%s%s", what, more);
}

static enum rc check_write(
	const struct consent *c, const struct drive_namespace *ns, struct err *err) {
	if (!c->allow_destructive)
		return err_field(err, RC_FORBIDDEN, "/workload",
			"the server does not allow runs that write to real drives");
	if (!c->serial[0] || !c->serial_unique)
		return conflict(c, "its serial number does not tell it from other drives", "", err);
	if (!c->confirmed_loss)
		return err_field(err, RC_FORBIDDEN, "/confirm_destructive",
			"serial %s is not confirmed for the loss of its data", c->serial);
	for (unsigned i = 0; i < ns->use_count; i++) {
		if (!use_rules[ns->uses[i].kind].overridable || !c->override_signature)
			return conflict(c, ns->uses[i].detail, "", err);
	}
	return RC_OK;
}

static enum rc check_read(
	const struct consent *c, const struct drive_namespace *ns, struct err *err) {
	for (unsigned i = 0; i < ns->use_count; i++) {
		const char *use = ns->uses[i].detail;
		if (!use_rules[ns->uses[i].kind].stops_reads)
			continue;
		if (!c->allow_in_use)
			return conflict(
				c, use, "; the server does not allow reads of what is in use", err);
		if (!c->confirmed_in_use)
			return err_field(err, RC_FORBIDDEN, "/confirm_in_use",
				"%s; serial %s is not confirmed for reads while it is in use", use,
				c->serial);
	}
	return RC_OK;
}

enum rc consent_check(const struct consent *c, const struct drive_namespace *ns, struct err *err) {
	return c->writes ? check_write(c, ns, err) : check_read(c, ns, err);
}
