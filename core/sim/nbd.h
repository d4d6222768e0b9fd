/*
 * The simulated drives' NBD exports: a UNIX stream socket each, <socket_dir>/<drive name>.sock,
 * one thread for all. What is written is dropped, what is read is zeros; when a request is
 * answered is the pace's business. Only root and the daemon's own account get a connection.
 */
#ifndef DRIVEWATT_CORE_SIM_NBD_H
#define DRIVEWATT_CORE_SIM_NBD_H

#include "core/sim/pace.h"

#define SIM_NBD_DEPTH 256            /* requests in flight a connection; more wait in the socket */
#define SIM_NBD_CONNECTIONS 64       /* a drive; more are closed at once */
#define SIM_NBD_ALL_CONNECTIONS 2048 /* in all, likewise */

struct sim_nbd;

struct sim_nbd_config {
	const char *socket_dir; /* made if need be; passed through by all, listed by none */
	unsigned drives;
	uint64_t size_bytes;
	uint32_t block_bytes;
};

struct sim_nbd *sim_nbd_new(
	const struct sim_nbd_config *config, struct sim_pace *pace, struct err *err);
/* Hangs up on all clients and removes the sockets. NULL is fine. */
void sim_nbd_free(struct sim_nbd *n);

/* "sim07": the drive's name and its socket's. */
void sim_drive_name(unsigned drive, char *out, size_t size);

#endif
