/* The split into two processes, and who the network process is afterwards. */
#ifndef DRIVEWATT_SERVER_PRIVILEGES_H
#define DRIVEWATT_SERVER_PRIVILEGES_H

#include <sys/types.h>

#include "base/rc.h"
#include "priv/helper.h"

/* Forks the helper, which serves its end of a socket pair until ours is closed; *sock is our end.
 * Call before any thread is made. */
enum rc must_check helper_fork(
	const struct priv_config *config, pid_t *pid, int *sock, struct err *err);
/* Waits up to deadline_ms for the helper to end. */
void helper_reap(pid_t pid, int64_t deadline_ms);

/* Makes the data directory (absolute path into out[size]) and, as root, gives it to `user`
 * ("": drivewatt), RC_INVALID when there is no such account. Already existing files of ours
 * change hands with it. */
enum rc must_check data_dir_prepare(
	const char *path, const char *user, char *out, size_t size, struct err *err);
/* Takes the directory for this process alone, until *fd is closed; RC_CONFLICT when another has
 * it. After the split, so that the helper does not hold it. */
enum rc must_check data_dir_lock(const char *path, int *fd, struct err *err);
/* As root: becomes `user` for good, with no capability and no way to gain one. */
enum rc must_check privileges_drop(const char *user, struct err *err);

#endif
