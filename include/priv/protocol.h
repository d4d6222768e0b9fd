/*
 * The messages between the network process (client) and the privileged helper, both ends' typed
 * truth. One SOCK_SEQPACKET datagram is one message: a header and exactly the body that its type
 * has, as the same binary lays it out. What arrives is checked by priv_message_check() before a
 * field is read: length, ranges, terminated strings. Nothing here has a path that the network
 * process made up: devices go by kernel name *and* serial, run directories are the helper's own.
 * Any thread; priv_receive by one at a time for a socket.
 */
#ifndef DRIVEWATT_PRIV_PROTOCOL_H
#define DRIVEWATT_PRIV_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"
#include "model/drive.h"
#include "model/run.h"

#define PRIV_PROTOCOL_MAGIC 0x31505744u /* "DWP1" */
#define PRIV_MESSAGE_MAX 65536
#define PRIV_NAME_SIZE 24

enum priv_type {
	/* requests */
	PRIV_ENUMERATE = 1, /* → PRIV_FOUND … PRIV_ENUMERATED */
	PRIV_DRIVE_OP,      /* → PRIV_DRIVE_REPLY, see there for a second one */
	PRIV_RUN_START,     /* → PRIV_RUN_STARTED, later PRIV_RUN_EXITED */
	PRIV_RUN_STOP,      /* no answer of its own: PRIV_RUN_EXITED comes */
	PRIV_RUN_FORGET,    /* removes the run's directory; no answer */
	PRIV_REAP,          /* ends a fio of an earlier life → PRIV_REAPED */
	PRIV_METER,         /* what this machine measures of itself → PRIV_METER_REPLY */
	PRIV_OPEN,          /* a file of the configuration, once more → PRIV_OPENED */
	/* answers; seq as in the request */
	PRIV_FOUND = 64,
	PRIV_ENUMERATED,
	PRIV_DRIVE_REPLY,
	PRIV_RUN_STARTED, /* carries one descriptor: the run's directory, read-only */
	PRIV_RUN_EXITED,
	PRIV_REAPED,
	PRIV_METER_REPLY,
	PRIV_OPENED, /* carries one descriptor: the file, read-only */
	PRIV_HINT,   /* unasked, with seq 0: the kernel has told something of the drives */
};

struct priv_header {
	uint32_t magic;
	uint32_t type;   /* enum priv_type */
	uint64_t seq;    /* chosen by the client, ascending; RUN_EXITED repeats RUN_START's */
	uint32_t length; /* of the body */
	uint32_t reserved;
};

/* Which device: what the client believes stands there. The helper reads sysfs again and answers
 * RC_NOT_FOUND when another drive has taken the name. */
struct priv_drive_ref {
	uint8_t kind;              /* enum drive_kind: DRIVE_NVME, DRIVE_BLOCK or DRIVE_FILE, and
				      DRIVE_SIMULATED for runs only */
	char name[PRIV_NAME_SIZE]; /* "nvme3"; "t0" for the n-th configured target; "sim07", whose
				      socket is "<sim_dir>/sim07.sock" */
	char serial[21];
};

enum priv_verb {
	PRIV_VERB_IDENTIFY,  /* controller and namespaces with their uses */
	PRIV_VERB_POWER_GET, /* the power state and the limit by these means, current */
	PRIV_VERB_POWER_SET, /* sets both, then reads them back */
	PRIV_VERB_SMART,     /* log page 02h, and the other logs asked for */
	PRIV_VERB_COUNT_
};

struct priv_drive_op {
	struct priv_drive_ref drive;
	uint32_t verb;         /* enum priv_verb */
	uint8_t means;         /* POWER_GET, POWER_SET: enum power_means, as the drive has said */
	uint8_t uuid_index;    /* of OCP's features and logs; 0–127 */
	uint8_t logs;          /* SMART: enum drive_logs */
	uint32_t asleep;       /* IDENTIFY, SMART: not in these power states, a bit each */
	int8_t fallback_state; /* POWER_SET: where the limit forbids power_state; -1 none */
	int32_t power_state;   /* POWER_SET: 0–31 */
	int64_t limit_mw;      /* POWER_SET: NONE, or a value that the means can take */
};

/* One drive that sysfs, or the list of targets, shows. No command has been sent to it yet. */
struct priv_found {
	struct priv_drive_ref drive;
	char model[41], firmware[9], transport[9], slot[24], subsystem_nqn[224];
	char address[DRIVE_ADDRESS_SIZE];
	char sysfs_state[16]; /* "live", "resetting", "connecting", "dead" … */
	int16_t numa_node;
	uint16_t cntlid;
	uint16_t subsystem_controllers; /* how many controllers the subsystem shows */
	uint64_t capacity_bytes;
};

/* Something has changed: drives are to be looked for again, and this one to be identified. */
struct priv_hint {
	char name[PRIV_NAME_SIZE]; /* a controller; "": none in particular, with reset all */
	uint8_t reset;             /* it may have forgotten what was set */
	uint8_t lost;              /* the kernel told more than could be read */
};

struct priv_enumerated {
	uint32_t count;
	char reason[128]; /* why nothing, or not all, could be looked at; "" fine */
};

struct priv_drive_reply {
	int32_t rc; /* enum rc: RC_OK; RC_REFUSED with nvme_status; RC_TIMEOUT; RC_FORBIDDEN
		       (capability missing); RC_NOT_FOUND (gone); RC_IO … */
	uint32_t verb;
	uint16_t nvme_status; /* as ret & 0x7fff of the ioctl */
	uint8_t asleep; /* with RC_OK: it is in one of those power states and was not asked; the
			   state is told */
	uint8_t more;   /* with RC_TIMEOUT: the command goes on, and a second reply of the same seq
			   comes should the drive still answer */
	char msg[160];
	int32_t power_state; /* POWER_GET, POWER_SET: what was read back */
	int64_t limit_mw;    /* … by the means asked for; NONE none */
	union {
		struct drive_detail detail; /* IDENTIFY */
		struct drive_health health; /* SMART */
	} u;
};

struct priv_run_target {
	struct priv_drive_ref drive;
	char drive_id[DRIVE_ID_SIZE]; /* becomes the fio job's name */
	uint32_t nsid;                /* NVMe namespace; 0 otherwise */
	uint64_t size_bytes;          /* region; 0 all */
	int16_t numa_node;
};

struct priv_run_start {
	char run_id[RUN_ID_SIZE];
	struct workload workload;
	uint32_t runtime_s, ramp_s;
	uint64_t max_write_bytes; /* per drive, ramp included; mixed patterns end when reads and
				     writes together reach it; 0 no limit */
	uint8_t override_signature;
	uint16_t target_count;
	struct priv_run_target targets[RUN_MAX_DRIVES];
	uint16_t confirm_count;
	char confirm_destructive[RUN_MAX_DRIVES][21];
	uint16_t confirm_in_use_count;
	char confirm_in_use[RUN_MAX_DRIVES][21];
};

struct priv_run_started {
	int32_t rc;
	char field[96], msg[256];
	int32_t pid;
	uint64_t start_ticks;
};

struct priv_run_stop {
	char run_id[RUN_ID_SIZE];
	uint8_t kill; /* 0: SIGTERM, and SIGKILL 10 s later; 1: SIGKILL at once */
};

struct priv_run_exited {
	char run_id[RUN_ID_SIZE];
	int32_t exit_code; /* 128 + signal when killed */
	int32_t signal;    /* 0 none */
	uint8_t asked;     /* we had sent a signal */
	uint8_t abandoned; /* it does not die, and has no exit code yet: it waits in the kernel, and
			      holds its targets. A second message follows when it has died */
	uint64_t gone;     /* bit n: the device of target n went away meanwhile */
	int64_t gone_ms;   /* wall time at which all were still there; 0 without `gone` */
};

struct priv_run_forget {
	char run_id[RUN_ID_SIZE];
};

struct priv_reap {
	int32_t pid;
	uint64_t start_ticks;
};

struct priv_reaped {
	uint8_t was_alive;
};

enum priv_meter {
	PRIV_METER_DCMI,    /* the system's watts, by IPMI */
	PRIV_METER_PARTS,   /* energy counters of processors, power sensors */
	PRIV_METER_MACHINE, /* no meter: who it is */
	PRIV_METER_COUNT_
};

struct priv_meter_ask {
	uint32_t meter; /* enum priv_meter */
};

#define PRIV_MAX_PACKAGES 16
#define PRIV_MAX_SENSORS 32
#define PRIV_PART_NAME_SIZE 37

struct priv_package {
	char name[24];                /* "package-0" */
	uint64_t energy_uj, range_uj; /* the counter, and where it begins anew */
};

struct priv_sensor {
	char name[PRIV_PART_NAME_SIZE];
	uint32_t accuracy_mpct; /* thousandths of a percent; UINT32_MAX unknown */
	uint64_t power_uw;
};

struct priv_parts {
	int64_t at_ms, at_mono_ns;
	uint8_t packages_cut, sensors_cut; /* there are more */
	uint16_t package_count, sensor_count;
	struct priv_package packages[PRIV_MAX_PACKAGES];
	struct priv_sensor sensors[PRIV_MAX_SENSORS];
};

struct priv_machine {
	char uuid[37];         /* of SMBIOS; "" unknown */
	char redfish_url[128]; /* of the BMC's host interface, by SMBIOS; "" none */
};

struct priv_meter_reply {
	int32_t rc; /* enum rc: RC_OK; RC_UNSUPPORTED (nothing of that kind here); RC_REFUSED;
		       RC_TIMEOUT; RC_CORRUPT … */
	uint32_t meter;
	char msg[160];
	int64_t at_ms, at_mono_ns; /* when it answered; both ends have the same clocks */
	int64_t power_mw;          /* DCMI */
	union {
		struct priv_parts parts;
		struct priv_machine machine;
	} u;
};

/* The paths are those that the helper was started with. */
enum priv_file { PRIV_FILE_CONFIG, PRIV_FILE_TLS_CERT, PRIV_FILE_TLS_KEY, PRIV_FILE_COUNT_ };

struct priv_open {
	uint32_t file; /* enum priv_file */
};

struct priv_opened {
	int32_t rc;
	char msg[256];
};

/* Files in a run's directory (PRIV_RUN_STARTED's descriptor). */
#define PRIV_RUN_OUTPUT "fio.json" /* --output, json+; messages of fio may stand around it */
#define PRIV_RUN_ETA "eta.txt"     /* fio's standard output: one ETA line a second */
#define PRIV_RUN_STDERR "stderr.txt"
/* fio's per-second logs, one each job n from 1: "bw_bw.n.log" and "iops_iops.n.log", with
 * epoch milliseconds, as by --write_bw_log=bw --write_iops_log=iops --log_unix_epoch=1. Jobs are
 * numbered through: those of target 0 first, workload.jobs each. Written at the end, without the
 * ramp and the last, incomplete second. A run of more than 2,000,000 job-seconds has a value
 * every few seconds. */

/* Size of the body that a type has, SIZE_MAX for an unknown type. */
size_t priv_body_size(uint32_t type);
/* Checks a received datagram: header, exact length, every enum, count and string in range.
 * RC_CORRUPT says what is wrong. Pure. */
enum rc must_check priv_message_check(const void *message, size_t length, struct err *err);

/* Sends one message, with fd as SCM_RIGHTS unless -1. Never blocks longer than the peer's socket
 * buffer is full; any thread (a datagram is atomic). RC_UNAVAILABLE when the peer is gone. */
enum rc must_check priv_send(
	int sock, enum priv_type type, uint64_t seq, const void *body, int fd, struct err *err);
/* Receives one checked message into buffer (PRIV_MESSAGE_MAX bytes, aligned for uint64_t).
 * *fd is the descriptor that came with it, the caller's, or -1. Blocks. RC_UNAVAILABLE at end of
 * file, RC_CORRUPT for a bad message, which the caller treats as a broken peer. */
enum rc must_check priv_receive(int sock, void *buffer, struct priv_header **header,
	const void **body, int *fd, struct err *err);

#endif
