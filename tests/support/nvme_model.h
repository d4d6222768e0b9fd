/*
 * A made-up NVMe controller at the level of admin commands: three operational power states of 25,
 * 15 and 10 W and a non-operational one, Identify, Get and Set Features, SMART. Plain data without
 * pointers, so that it can lie in memory that processes share. Used by the unit tests of
 * priv/nvme.c and, behind a preloaded ioctl(), by the bed for the whole daemon.
 */
#ifndef DRIVEWATT_TESTS_NVME_MODEL_H
#define DRIVEWATT_TESTS_NVME_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* What a command is answered with, as the kernel gives it. */
enum nvme_model_status {
	NVME_MODEL_OK = 0,
	NVME_MODEL_INVALID_OPCODE = 0x4001,
	NVME_MODEL_INVALID_FIELD = 0x4002,
	NVME_MODEL_INVALID_NAMESPACE = 0x400b,
	NVME_MODEL_HOST_ID_FORMAT = 0x4018,
	NVME_MODEL_INVALID_LOG = 0x4109,
	NVME_MODEL_NOT_SAVEABLE = 0x410d,
	NVME_MODEL_NOT_CHANGEABLE = 0x410e,
	NVME_MODEL_LIMIT_TOO_LOW = 0x413e,
};

struct nvme_model {
	char serial[21], model[41], firmware[9], subsystem_nqn[224];
	uint16_t cntlid;
	uint64_t blocks;     /* of each namespace, 512 bytes each */
	uint32_t namespaces; /* 1 … so many */

	uint32_t power;     /* feature 02h as set: state and workload hint */
	bool power_fixed;   /* Set Features 02h is refused as not changeable */
	bool has_limit;     /* feature 23h: NVMe Power Limit */
	bool limit_forbids; /* … forbids states of a higher max power, instead of holding them down
			     */
	uint32_t limit;     /* as set: value and scale */
	bool has_ocp;       /* a UUID list with OCP's, its feature C7h and logs */
	uint8_t ocp_watts;  /* feature C7h as set */
	bool measures;      /* log 25h: NVMe Power Measurement */
	uint32_t average;   /* … value and scale; 0: it is not measuring now */
	uint64_t energy_wh;  /* SMART's lifetime energy */
	uint8_t nmic;        /* 1: several controllers may be attached to the namespace */
	bool reservable;     /* it knows reservations */
	bool long_host_ids;  /* they are registered with 16 bytes, not 8 */
	uint8_t reservation; /* type, 0 none */
	uint16_t registrants;
	uint16_t temperature_k;
	uint8_t critical_warning;
	uint64_t data_read, data_written; /* × 512,000 bytes */
	uint64_t power_on_h;

	/* Faults, set from outside. */
	int32_t fail_errno;  /* every command gives -1 and this */
	int32_t fail_status; /* every command gives this status */
	int32_t hang;        /* while not 0, no command is answered */
	int32_t hang_look;   /* the same for Identify and Get Log Page alone */

	uint32_t commands; /* answered so far */
};

/* A command, as struct nvme_passthru_cmd has it. */
struct nvme_model_command {
	uint8_t opcode;
	uint32_t nsid, cdw10, cdw11, cdw12, cdw13, cdw14;
	void *data;
	uint32_t data_bytes;
	uint32_t result; /* filled in */
};

void nvme_model_init(struct nvme_model *m, unsigned number);
/* 0, or a status; fail_errno and hang are the caller's business. */
int nvme_model_admin(struct nvme_model *m, struct nvme_model_command *c);
/* The same for a command to the namespace, of which only Reservation Report is known. */
int nvme_model_io(struct nvme_model *m, struct nvme_model_command *c);

#endif
