/* What the files of the host registry share. */
#ifndef DRIVEWATT_CORE_BMC_REGISTRY_H
#define DRIVEWATT_CORE_BMC_REGISTRY_H

#include <pthread.h>

#include "core/bmc/poller.h"
#include "core/bmc/resolution.h"
#include "core/hosts.h"

struct host_entry {
	struct host host; /* bmc.password_sealed owned */
	struct host_power power;
	struct resolution resolution;
	int64_t counter_mj, counter_since_ms; /* of energy, as it was last told; NONE */
	int64_t counter_fed_ns;               /* when it last went into its series; NONE */
	int64_t inlet_fed_ns;                 /* and the inlet's temperature */
	int64_t series[QUANTITY_COUNT_][QUALITY_COUNT_]; /* 0: not made yet */
};

/* Lock order: changing, then lock. */
struct hosts {
	char local_id[HOST_ID_SIZE];
	uint8_t secret_key[SECRET_KEY_BYTES];
	struct db *db; /* borrowed, like the next three */
	struct events *events;
	struct energy *energy;
	struct pool *jobs;
	struct poller *poller;
	bool observe_only;
	int64_t meter_ms;
	bool started;             /* set before other threads come */
	pthread_mutex_t changing; /* one change at a time, store and memory together */
	uint32_t deleted_version; /* the highest of a host that was; under changing */
	pthread_mutex_t lock;     /* guards what follows; held for moments */
	pthread_cond_t jobs_done;
	bool by_dcmi; /* what is shown of the local host came by hosts_local_reading */
	char uuid[37], host_interface[64]; /* the local host's */
	unsigned component_count;
	struct host_component components[HOST_COMPONENT_MAX];
	unsigned jobs_open; /* pool jobs that hold this registry */
	uint64_t version;
	size_t count;
	struct host_entry *entries[HOST_MAX]; /* by id */
};

/* Under the lock. */
struct host_entry *hosts_find(struct hosts *hs, const char *id);
/* Takes h over, its sealed password too; an entry of the same id keeps its readings. */
enum rc must_check registry_put(struct hosts *hs, const struct host *h, struct err *err);
void registry_remove(struct hosts *hs, const char *id);
/* A copy that owns its sealed password; RC_NOT_FOUND, RC_NOMEM. */
enum rc must_check registry_copy(
	struct hosts *hs, const char *id, struct host *out, struct err *err);
/* Under the lock. Which machine it is: the last reading may not say, but one before. */
void registry_know(const struct hosts *hs, struct host_entry *e, const char *known_uuid);
/* What holds the registry while a change or a pool job runs; hosts_free waits for it. */
void registry_job_begins(struct hosts *hs);
void registry_job_ends(struct hosts *hs);

#endif
