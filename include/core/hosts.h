/*
 * Hosts, the readings of their BMCs, and their baselines. The local host is always there.
 *
 * Any thread. What changes something blocks on the store, the rest only on a lock that is held for
 * moments; nothing blocks on a BMC. What is given is copied.
 */
#ifndef DRIVEWATT_CORE_HOSTS_H
#define DRIVEWATT_CORE_HOSTS_H

#include "base/pool.h"
#include "base/secret.h"
#include "base/timer.h"
#include "core/energy.h"
#include "core/events.h"
#include "core/httpc.h"
#include "model/host.h"
#include "model/version.h"

struct hosts;

struct hosts_config {
	const char *local_id;
	const char *local_name;
	int64_t meter_ms;  /* period of BMC readings unless more is demanded; over 0 (10000) */
	bool observe_only; /* refuses to change a limit with RC_FORBIDDEN */
	uint8_t secret_key[SECRET_KEY_BYTES]; /* copied, wiped by hosts_free */
};

/* All pointers are borrowed until hosts_free. At most HOST_MAX hosts. */
struct hosts *hosts_new(const struct hosts_config *config, struct db *control,
	struct events *events, struct energy *energy, struct httpc *httpc, struct timers *timers,
	struct pool *jobs, struct err *err);
/* Before httpc_free and energy_free: what is asked of BMCs is given up. NULL is fine. */
void hosts_free(struct hosts *hs);
/* Begins to poll. */
enum rc must_check hosts_start(struct hosts *hs, struct err *err);

/* "local" → this host's id, which lives as long as hs; any other text unchanged. */
const char *hosts_resolve(struct hosts *hs, const char *id_or_alias);
/* Version of the whole list, readings included: never comes again, also over restarts. */
uint64_t hosts_version(struct hosts *hs);
/* By id after `after` (NULL: all), ascending, under the lock: visitors must not call back. They
 * return false to stop. password_sealed is never filled. */
void hosts_each(struct hosts *hs, const char *after,
	bool (*visit)(void *arg, const struct host *h, const struct host_power *p), void *arg);
/* RC_NOT_FOUND. power may be NULL. */
enum rc must_check hosts_get(struct hosts *hs, const char *id, struct host *out,
	struct host_power *power, struct err *err);

/* What a client may set. A NULL string is kept (patch) or empty (put). */
struct host_change {
	const char *name;
	const char *labels;       /* JSON object text */
	bool set_bmc;             /* bmc below replaces the settings; not present: removes them */
	struct bmc_settings bmc;  /* password_sealed is ignored */
	const char *bmc_password; /* NULL: keep the one there is (when the url did not change) */
	uint32_t if_version;      /* model/version.h; of an update */
};
/* id NULL: makes one. Keeps the actor's once. RC_INVALID (field), RC_EXISTS, RC_FULL. */
enum rc must_check hosts_create(struct hosts *hs, const struct actor *who, const char *id,
	const struct host_change *c, struct host *out, struct err *err);
/* RC_PRECONDITION: if_version does not hold; so for the next two. */
enum rc must_check hosts_update(struct hosts *hs, const struct actor *who, const char *id,
	const struct host_change *c, bool replace, struct host *out, struct err *err);
/* RC_CONFLICT: the local host stays. */
enum rc must_check hosts_delete(struct hosts *hs, const struct actor *who, const char *id,
	uint32_t if_version, struct err *err);

/* How a change of a host's limit ended. */
struct host_limit_outcome {
	struct err err; /* RC_OK: it holds, read back; RC_INVALID (/limit_w): out of the BMC's
			   range; RC_UNSUPPORTED: the BMC has none; RC_REFUSED: it said no, or does
			   not do as it says; RC_TIMEOUT: not done yet; RC_UNAVAILABLE: it does not
			   answer; RC_CANCELLED: it was changed or taken away */
	bool recorded;  /* false: the store failed */
};
/* In a jobs thread, or in whichever has the answer when the jobs' queue is full; o lives for the
 * call. */
typedef void hosts_limit_fn(void *arg, const struct host_limit_outcome *o);
/* Sets the power limit that the host's BMC holds it to, NONE none; checked against what the BMC
 * states, written, read back. Recorded before and after; the store's failing stops nothing. On
 * RC_OK fn is called exactly once, within two minutes. RC_INVALID (/limit_w), RC_NOT_FOUND,
 * RC_FORBIDDEN, RC_PRECONDITION, RC_UNSUPPORTED (no BMC), RC_FULL (a change is under way). */
enum rc must_check hosts_set_limit(struct hosts *hs, const struct actor *who, const char *host_id,
	int64_t limit_mw, uint32_t if_version, hosts_limit_fn *fn, void *arg, struct err *err);

/* A reading of a meter, from the poller or the simulator: keeps it, feeds the history (what has no
 * value adds no sample), learns the resolution, notices when the BMC's energy counter begins anew
 * (p's energy_reset_ms is not looked at). One of the same at_mono_ns as the last brings more about
 * it and no sample of power. Does not block. */
void hosts_reading(struct hosts *hs, const char *host_id, const struct host_power *p);

/* The local host's, beside its BMC. */

/* The system's watts by another way than its BMC's network. They count while the BMC tells none. As
 * hosts_reading else. */
void hosts_local_reading(struct hosts *hs, const struct host_power *p);
/* Replaces what is known of its parts; at most HOST_COMPONENT_MAX. Does not block. */
void hosts_local_components(struct hosts *hs, const struct host_component *c, unsigned count);
/* Its SMBIOS UUID and its BMC's host interface, "" unknown. Does not block. */
void hosts_local_machine(struct hosts *hs, const char *uuid, const char *redfish_url);
/* How many were copied out; 0 of other hosts. */
unsigned hosts_components(
	struct hosts *hs, const char *id, struct host_component out[HOST_COMPONENT_MAX]);

/* Baselines declared by a person, measured by a run of idleness, or simulated; all that are given
 * in one transaction. A NULL is kept, one that is not known is removed. out may be NULL. RC_INVALID
 * (field "/<kind>/w"). */
enum rc must_check hosts_set_baselines(struct hosts *hs, const struct actor *who,
	const char *host_id, const struct baseline *const wishes[BASELINE_KIND_COUNT_],
	uint32_t if_version, struct host *out, struct err *err);
/* One of them, whatever the version. */
enum rc must_check hosts_set_baseline(struct hosts *hs, const struct actor *who,
	const char *host_id, enum baseline_kind kind, const struct baseline *b, struct err *err);

#endif
