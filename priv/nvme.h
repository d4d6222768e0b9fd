/*
 * Admin commands to one controller, by libnvme. Every function may block for as long as the
 * kernel's admin time-out (60 s and more): call from a lane. Errors of libnvme, errno or NVMe
 * status alike, become enum rc in one place; err.nvme_status keeps the status with DNR.
 */
#ifndef DRIVEWATT_PRIV_NVME_H
#define DRIVEWATT_PRIV_NVME_H

#include <stdint.h>

#include "model/drive.h"

/* name: the bare "nvme3". The descriptor is the caller's to close. */
enum rc must_check nvme_drive_open(const char *name, int *fd, struct err *err);

/* A zeroed page for what a drive answers, the caller's to free: whole pages, since drivers were
 * seen to write one whatever the length said. NULL without memory. */
void *nvme_page_new(void);

/* One command each; what: for the words of an error. */
enum rc must_check nvme_identify_read(
	int fd, uint8_t cns, uint8_t page[NVME_IDENTIFY_BYTES], struct err *err);
enum rc must_check nvme_feature_get(int fd, uint8_t fid, uint8_t uuid_index, uint32_t *value,
	const char *what, struct err *err);
enum rc must_check nvme_feature_set(
	int fd, uint8_t fid, uint8_t uuid_index, uint32_t value, const char *what, struct err *err);
enum rc must_check nvme_log_read(int fd, uint8_t lid, uint8_t uuid_index, void *page,
	uint32_t bytes, const char *what, struct err *err);

/* Identify Controller into all of out but the namespaces, and what else it takes to know how the
 * drive keeps a limit. */
enum rc must_check nvme_drive_identify(int fd, struct drive_detail *out, struct err *err);
/* Get Features 02h, current: the state alone, without the workload hint. */
enum rc must_check nvme_drive_power_get(int fd, int *state, struct err *err);
/* Set Features 02h, not saved. A drive whose state is fixed refuses even the one that it is in:
 * that is RC_OK all the same. */
enum rc must_check nvme_drive_power_set(int fd, int state, struct err *err);
/* Log page 02h of the whole controller, and of the others (enum drive_logs) what can be read. */
enum rc must_check nvme_drive_smart(
	int fd, uint8_t logs, uint8_t uuid_index, struct drive_health *out, struct err *err);

/* What other controllers and hosts may do with a namespace, as the drive says. */
struct nvme_sharing {
	bool attachable;      /* NMIC: to several controllers at once */
	bool reservable;      /* ONCS: the controller knows reservations; the rest is 0 else */
	uint8_t reservation;  /* RTYPE; 0 none is held */
	uint16_t registrants; /* controllers of hosts that have registered */
};

/* Identify Controller, Identify Namespace and, of a controller that knows it, Reservation Report;
 * namespace_fd is its block device, open for reading. */
enum rc must_check nvme_namespace_sharing(
	int fd, int namespace_fd, uint32_t nsid, struct nvme_sharing *out, struct err *err);
/* "write exclusive" …; "unknown" for a type that no table has. */
const char *nvme_reservation_name(uint8_t type);

/* Pure: what nvme_drive_identify makes of the 4096 bytes. */
enum rc must_check nvme_identify_decode(
	const uint8_t identify[NVME_IDENTIFY_BYTES], struct drive_detail *out, struct err *err);

#endif
