/*
 * Power states of an NVMe controller and wishes about them.
 * NVM Express Base Specification 2.0, Identify Controller data structure and Power State
 * Descriptor: bytes 263 (NPSS), 2048–3071 (PSD0–PSD31).
 */
#ifndef DRIVEWATT_MODEL_POWER_H
#define DRIVEWATT_MODEL_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"
#include "model/quality.h"

#define POWER_STATES_MAX 32
#define NVME_PSD_BYTES 32
#define NVME_IDENTIFY_BYTES 4096

/* One power state. Microwatts, since a descriptor counts in 0.0001 W; NONE = not reported. */
struct power_state {
	uint8_t state;
	bool operational;
	uint8_t active_workload;                                  /* 1 or 2; 0 not reported */
	int8_t relative_read_throughput, relative_read_latency;   /* rank, lower is better; */
	int8_t relative_write_throughput, relative_write_latency; /* -1 = invalid or not reported */
	int64_t max_uw;
	int64_t idle_uw;
	int64_t active_uw;
	int64_t entry_latency_us; /* NONE when reported as 0 */
	int64_t exit_latency_us;
};

/* How a drive keeps a limit in watts: the best that it offers. */
enum power_means {
	POWER_MEANS_STATE, /* the fastest operational state whose max power fits */
	POWER_MEANS_OCP,   /* OCP Datacenter NVMe SSD: DSSD Power State, feature C7h, whole watts */
	POWER_MEANS_LIMIT, /* NVMe Base 2.3: Power Limit, feature 23h, to 10 mW and finer */
	POWER_MEANS_COUNT_
};
const char *power_means_name(
	enum power_means m); /* "power_state", "ocp_power_state", "power_limit" */

#define OCP_POWER_STATES 128
#define OCP_POWER_STATE_VALID 0x80u

struct power_limits {
	uint8_t means;          /* enum power_means */
	uint8_t ocp_uuid_index; /* where the drive's UUID list has OCP's; 0: it has not */
	uint8_t ocp_states[OCP_POWER_STATES]; /* MEANS_OCP, by watts: OCP_POWER_STATE_VALID and the
						 power state */
};

struct power_table {
	uint8_t count; /* NPSS + 1; 0 when the target has no power states */
	struct power_state states[POWER_STATES_MAX];
	struct power_limits limits;
};

/* What a drive is set to. */
struct power_setting {
	int8_t state;
	int8_t fallback_state; /* where the limit forbids that state; -1: there is none */
	int64_t limit_mw; /* by the drive's own means, a value that it can take; NONE without */
};

/* The limit as the drive's own means can take it, at most limit_mw; NONE: it has none, or none that
 * is so low. */
int64_t power_limits_value(const struct power_table *t, int64_t limit_mw);
/* What a drive is set to, to keep a limit: by its own means where it has them, else by state.
 * *missed: nothing is so low, the nearest was taken. state -1: it has no operational state. */
struct power_setting power_limits_setting(
	const struct power_table *t, int64_t limit_mw, bool *missed);
bool power_setting_is_same(const struct power_setting *a, const struct power_setting *b);
/* Is a drive that is in this state with this limit (NONE: none) as good as set? */
bool power_setting_is_kept(const struct power_table *t, const struct power_setting *s,
	int observed_state, int64_t observed_limit_mw);

/*
 * Decodes the raw 4096-byte Identify Controller structure: NPSS and descriptors. Ranks above
 * NPSS become -1; scale 0 and the reserved 3 of idle and active power, and a max power of 0, NONE.
 * RC_CORRUPT when NPSS is over 31.
 */
enum rc must_check power_table_decode(
	const uint8_t identify[NVME_IDENTIFY_BYTES], struct power_table *out, struct err *err);

/* The table's entry, or NULL. */
const struct power_state *power_table_find(const struct power_table *t, int state);

/* The fastest operational state whose max power is reported and at most limit_mw, or -1. Fastest:
 * the highest max power, then the lower number. */
int power_table_state_for_limit(const struct power_table *t, int64_t limit_mw);

enum claim_kind {
	CLAIM_DESIRED, /* the drive's own wish, set by a person or automation */
	CLAIM_LEASE,   /* a benchmark run's, while it runs */
	CLAIM_POLICY,
	CLAIM_BUDGET, /* caps from here on */
	CLAIM_EMERGENCY,
	CLAIM_KIND_COUNT_
};
const char *claim_kind_name(enum claim_kind k);
bool claim_kind_from_name(const char *name, enum claim_kind *out);
/* Caps bound what settings choose. */
static inline bool claim_kind_is_cap(enum claim_kind k) {
	return k >= CLAIM_BUDGET;
}

/* A wish for one drive's power: a state, or a limit in watts (then state is -1). */
struct power_wish {
	int8_t state;               /* -1: by limit */
	bool allow_non_operational; /* state may be a non-operational one */
	int64_t limit_mw;           /* NONE: by state */
};

bool power_wish_is_same(const struct power_wish *a, const struct power_wish *b);

#define CLAIM_OWNER_SIZE 80 /* "policy:" and a name of 64 */

struct claim {
	char id[37];
	char drive_id[23];
	enum claim_kind kind;
	char owner[CLAIM_OWNER_SIZE]; /* account name, "run:<id>", "policy:<name>", "budget:<id>" */
	struct power_wish wish;
	int64_t created_ms;
	int64_t expires_ms; /* NONE: never */
	int64_t ends_ms;    /* the same on the monotonic clock: not stored */
};

/* What shall be in force, and by whose wish. */
struct power_effective {
	int state;          /* -1: nobody wishes anything: leave the drive alone */
	int64_t limit_mw;   /* the most restrictive cap, or the winning limit; NONE */
	int8_t holder;      /* index of the winning setting among the claims given, -1 none */
	bool capped;        /* a cap changed what the setting chose */
	bool unsatisfiable; /* no operational state fits the cap: the lowest-power one is taken */
	struct power_setting setting; /* what the drive is set to; its state is state */
};

/*
 * One setting wins: lease before desired before policy, among equals the newest. Caps bound it,
 * the most restrictive first; a lease escapes no cap. A cap without a setting chooses by itself.
 * Expired claims (expires_ms <= now_ms) count as absent.
 * Pure; any thread.
 */
struct power_effective power_effective_compute(
	const struct power_table *t, const struct claim *claims, size_t n, int64_t now_ms);

/* In milliwatts, when watts chose: what the drive's own means are set to, else the max power of the
 * effective state, rounded up; NONE. */
int64_t power_limit_in_force(const struct power_table *t, const struct power_effective *e);

/* Is the wish meaningful for this table? field is prefixed with base ("" or "/desired"). */
enum rc must_check power_wish_check(
	const struct power_table *t, const struct power_wish *w, const char *base, struct err *err);

#endif
