/*
 * The privileged helper's life, for the one place that forks it. It owns the devices and fio;
 * it believes nothing that it is told and checks interlock and consent itself.
 */
#ifndef DRIVEWATT_PRIV_HELPER_H
#define DRIVEWATT_PRIV_HELPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "priv/protocol.h"

#define PRIV_MAX_TARGETS 64

struct priv_config {
	enum log_level log_level;
	bool allow_destructive;     /* the server's permission for runs that write */
	bool allow_in_use;          /* … and for read-only runs on devices in use */
	bool observe_only;          /* no POWER_SET, no runs */
	bool no_devices;            /* --simulate: enumerate nothing, touch no device */
	const char *const *targets; /* plain block devices and files, absolute canonical paths */
	unsigned target_count;      /* at most PRIV_MAX_TARGETS */
	const char *sim_dir;        /* where the simulator's sockets are, absolute; NULL none */
	const char *fio_path;       /* absolute */
	const char *dcmi_path;      /* ipmitool or ipmi-dcmi, absolute; NULL: not to be asked */
	const char *sysfs;          /* where /sys is, absolute */
	unsigned max_lanes;         /* threads at once, one a busy controller: 1 … (256) */
	const char *files[PRIV_FILE_COUNT_]; /* absolute; NULL none */
	int64_t command_ms; /* a lane's deadline, over 0 (4000); the command itself goes on */
};

/*
 * Runs the helper on its end of the socket pair until the peer is gone; returns the exit status.
 * To be called in a freshly forked, single-threaded process. Enters a network namespace of its
 * own when it may, keeps only the capabilities it needs, ends every fio before it returns. Takes
 * sock over; what config points to must live as long as that.
 */
int priv_helper_main(int sock, const struct priv_config *config);

#endif
