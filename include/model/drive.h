/*
 * A drive: an NVMe controller with the namespaces it reaches, a simulated one, or a plain block
 * device or file that is benchmarked without power states.
 */
#ifndef DRIVEWATT_MODEL_DRIVE_H
#define DRIVEWATT_MODEL_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/power.h"

#define DRIVE_ID_SIZE 23
#define DRIVE_MAX_NAMESPACES 16
#define DRIVE_MAX_USES 16
#define DRIVE_MAX_SENSORS 8
#define DRIVE_ADDRESS_SIZE \
	208 /* "traddr=…,trsvcid=…,host_traddr=…,host_iface=…,src_addr=…", IPv6 */

enum drive_kind { DRIVE_NVME, DRIVE_SIMULATED, DRIVE_BLOCK, DRIVE_FILE };
const char *drive_kind_name(enum drive_kind k);

enum drive_state {
	DRIVE_LIVE,         /* answers */
	DRIVE_RESETTING,    /* the kernel says resetting or connecting */
	DRIVE_UNRESPONSIVE, /* a command is overdue */
	DRIVE_FAILED,       /* answers with errors, or cannot be opened */
	DRIVE_GONE,         /* was here, is not now */
	DRIVE_ARRIVING      /* came, and is not yet as it shall be: not announced */
};
const char *drive_state_name(enum drive_state s);

/* What SMART figures mean, in one word. */
enum drive_health_level {
	DRIVE_HEALTH_UNKNOWN,
	DRIVE_HEALTH_OK,
	DRIVE_HEALTH_WARNING, /* worn out, or the spare is at its threshold */
	DRIVE_HEALTH_CRITICAL /* the drive warns */
};
const char *drive_health_name(enum drive_health_level l);

/* The small, plain summary: at most 512 bytes, since a hub holds 240,000 of them. */
struct drive {
	char id[DRIVE_ID_SIZE];
	char name[24]; /* the kernel's name now ("nvme3", "sim07"); never an identity */
	char model[41];
	char serial[21];
	char firmware[9];
	char transport[9];                /* "pcie", "tcp", "sim", "block", "file" */
	char address[DRIVE_ADDRESS_SIZE]; /* PCI address or transport address, "" unknown */
	char slot[24];                    /* physical slot as the chassis names it, "" unknown */
	uint8_t kind;                     /* enum drive_kind */
	uint8_t state;                    /* enum drive_state */
	int8_t power_state;               /* last read; -1 unknown or none */
	int8_t effective_state;           /* what shall hold; -1 nothing */
	uint8_t power_state_count;
	bool serial_unique;
	bool in_sync;             /* observed equals effective, or nothing is wished */
	bool in_use;              /* some namespace is in use */
	int16_t numa_node;        /* -1 unknown */
	int32_t temperature_mc;   /* milli-degrees Celsius; INT32_MIN unknown */
	int32_t measured_mw;      /* the drive's own meter; INT32_MIN without */
	uint8_t measured_quality; /* enum quality, when measured_mw is known */
	uint8_t health;           /* enum drive_health_level of the last SMART reading */
	uint64_t capacity_bytes;
	int64_t seen_ms;           /* wall time of the last answer */
	uint32_t config_version;   /* labels */
	uint64_t observed_version; /* anything read; never comes again: clock_first_version() */
};
_Static_assert(sizeof(struct drive) <= 512, "a drive's summary stays small");

/* Why a namespace must not be written to: first what speaks against reads as well, last what may be
 * overridden, so that of too many the weakest are left out. */
enum use_kind {
	USE_MOUNT,  /* it or a partition is mounted */
	USE_HOLDER, /* dm, md, bcache, loop or the like sits on it */
	USE_SWAP,
	USE_EXPORT,    /* offered to other machines by the kernel */
	USE_PROCESS,   /* another process has it open */
	USE_OPEN,      /* the kernel refuses an exclusive open, somebody has locked it */
	USE_RESERVED,  /* other machines have registered for it, or hold a reservation */
	USE_UNKNOWN,   /* could not be looked at: treated as in use */
	USE_PARTITION, /* carries a partition table */
	USE_ZONED,     /* host-managed zones: ordinary writes do not apply */
	USE_SHARED,    /* more than one controller reaches it, or may */
	USE_UNSEEN,    /* not all that may use it can be seen from here */
	USE_SIGNATURE, /* carries a file system, RAID, LVM or other signature */
	USE_KIND_COUNT_
};
const char *use_kind_name(enum use_kind k);

struct drive_use {
	uint8_t kind;    /* enum use_kind */
	char detail[96]; /* "nvme0n1p2 mounted on /" */
};

struct drive_namespace {
	uint32_t nsid;
	char path[32]; /* "/dev/nvme0n1", or the file's or socket's short name */
	uint64_t size_bytes;
	uint32_t lba_bytes;
	uint32_t dev_major, dev_minor;
	bool zoned;
	uint8_t use_count;
	struct drive_use uses[DRIVE_MAX_USES];
};

/* Everything fetched on demand. About 30 KiB: never copied into lists. */
struct drive_detail {
	char subsystem_nqn[224];
	uint16_t cntlid;
	uint16_t vendor_id;
	bool volatile_write_cache;
	bool apst_supported;
	uint8_t logs; /* enum drive_logs that it has */
	/* Thresholds, in whole °C as the drive has them (readings are in _mc); NONE. */
	int64_t warning_c, critical_c; /* WCTEMP, CCTEMP */
	int64_t tmt_min_c, tmt_max_c;  /* range of thermal management temperatures */
	uint32_t scale;                /* simulator: real bytes served × scale = simulated bytes;
					  1 otherwise */
	struct power_table power;
	uint8_t namespace_count;
	bool namespaces_cut; /* there are more than DRIVE_MAX_NAMESPACES */
	struct drive_namespace namespaces[DRIVE_MAX_NAMESPACES];
};
/* Bytes up to the end of the last namespace that is there: all that a copy needs. */
size_t drive_detail_bytes(const struct drive_detail *d);

/* Logs beside SMART that a drive has, by its Identify Controller and UUID list. */
enum drive_logs {
	DRIVE_LOG_OCP = 1,         /* OCP's extension of SMART, C0h */
	DRIVE_LOG_MEASUREMENT = 2, /* NVMe 2.3: Power Measurement, 25h */
	DRIVE_LOGS_ALL_ = 3
};

/* OCP Datacenter NVMe SSD Specification 2.0, SMART / Health Information Extended, C0h. Counters
 * saturate at INT64_MAX. */
struct drive_ocp {
	uint16_t version; /* of the log */
	int64_t media_written_bytes, media_read_bytes;
	int64_t bad_user_blocks, bad_system_blocks;
	int64_t uncorrectable_reads, pcie_correctable_errors, incomplete_shutdowns;
	int64_t free_blocks_pct;
	int64_t throttling_events; /* up to 255 */
	uint8_t throttling;        /* by how much it throttles now: 0 not, 1 to 3 more and more */
	int64_t power_state_changes;
};

/* NVM Express Base Specification 2.3, Power Measurement, 25h: of the interval that it measures. */
struct drive_measurement {
	bool enabled;   /* it measures: the figures count */
	bool estimated; /* they are no measurement */
	int64_t minutes_left;
	int64_t average_mw, maximum_mw; /* NONE not reported */
	int64_t error_pct;              /* NONE not reported */
};

/* SMART / Health Information log, NVM Express Base 2.0, log identifier 02h. NONE where the drive
 * reports nothing. 128-bit counters saturate at INT64_MAX. */
struct drive_health {
	int64_t read_ms; /* wall time of the reading */
	uint8_t critical_warning;
	int64_t temperature_mc;
	int64_t sensors_mc[DRIVE_MAX_SENSORS];
	int64_t available_spare_pct, spare_threshold_pct, percentage_used;
	int64_t data_units_read, data_units_written; /* × 512,000 bytes */
	int64_t host_reads, host_writes;
	int64_t controller_busy_min, power_cycles, power_on_h, unsafe_shutdowns;
	int64_t media_errors, error_log_entries;
	int64_t warning_temperature_min, critical_temperature_min;
	int64_t tmt1_transitions, tmt2_transitions, tmt1_s, tmt2_s;
	int64_t lifetime_energy_wh; /* NVMe 2.3; 0 in the log is NONE */
	int64_t interval_power_mw;  /* NVMe 2.3 */
	uint8_t logs;               /* enum drive_logs: which of these were read */
	struct drive_ocp ocp;
	struct drive_measurement measurement;
};
/* What the drive says that it takes; NONE: it does not. Never anything but its own figures. */
int64_t drive_health_power_mw(const struct drive_health *h);

enum drive_health_level drive_health_judge(const struct drive_health *h);

#define NVME_SMART_BYTES 512
#define NVME_MEASUREMENT_BYTES 64 /* the header; bins of a histogram follow */
/* Pure decoders of raw logs. False: the log is something else. */
bool drive_ocp_decode(const uint8_t log[NVME_SMART_BYTES], struct drive_ocp *out);
void drive_measurement_decode(
	const uint8_t log[NVME_MEASUREMENT_BYTES], struct drive_measurement *out);
/* Pure. Bits 15:0 count in the unit that bits 17:16 name: 1 is 0.1 mW, 2 is 10 mW; else NONE. */
int64_t drive_scaled_power_mw(uint32_t field);

/* Pure decoder of the raw log. A temperature of 0 K is NONE, not -273 °C. */
void drive_health_decode(const uint8_t log[NVME_SMART_BYTES], struct drive_health *out);

#endif
