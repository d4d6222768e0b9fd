#include "server/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"

enum rc helper_fork(const struct priv_config *config, pid_t *pid, int *sock, struct err *err) {
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(err, errno, "socketpair");
	*pid = fork();
	if (*pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return err_errno(err, errno, "fork");
	}
	if (*pid == 0) {
		close(ends[0]);
		_exit(priv_helper_main(ends[1], config));
	}
	close(ends[1]);
	*sock = ends[0];
	return RC_OK;
}

void helper_reap(pid_t pid, int64_t deadline_ms) {
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool ended = fd >= 0 && poll(&p, 1, (int)deadline_ms) == 1;
	if (!ended)
		log_warning("server", "the helper (pid %d) is still busy and is left behind", pid);
	else
		waitpid(pid, NULL, 0);
	if (fd >= 0)
		close(fd);
}

/* Never a shared one such as nobody unasked: its other processes could read our secrets. */
static const struct passwd *account_of(const char *user, struct err *err) {
	const char *name = user[0] ? user : "drivewatt";
	const struct passwd *pw = getpwnam(name);
	if (!pw)
		err_field(err, RC_INVALID, "user",
			"there is no account '%.64s': make it (useradd --system %.64s) or name "
			"another",
			name, name);
	return pw;
}

/* The data directory can be passed through, not listed: fio reaches the simulator's sockets below
 * it. The files in it are their owner's alone. */
#define DATA_DIR_MODE 0711

static enum rc make_dirs(const char *path, struct err *err) {
	char part[PATH_MAX];
	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return err_field(err, RC_INVALID, "data-dir", "is too long");
	for (char *p = part + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		bool last = *p == '\0';
		*p = '\0';
		if (mkdir(part, last ? DATA_DIR_MODE : 0755) != 0 && errno != EEXIST)
			return err_errno(err, errno, part);
		if (last)
			return RC_OK;
		*p = '/';
	}
}

/* Regular files and directories of the data directory, one level, never through a link: what a
 * start under another account left behind. */
static enum rc give_files(int dir_fd, uid_t uid, gid_t gid, struct err *err) {
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return err_errno(err, errno, "data-dir");
	}
	for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		bool ours = S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink == 1);
		if (ours && st.st_uid != uid &&
			fchownat(dir_fd, e->d_name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
			log_warning("server", "cannot give %s to the daemon's account", e->d_name);
	}
	closedir(dir);
	return RC_OK;
}

/* An earlier start has given it away, and we may not look into what is another's: a root without
 * CAP_DAC_READ_SEARCH, as services and containers have it. */
static bool is_given(const char *path, const struct passwd *pw) {
	struct stat st;
	return errno == EACCES && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		st.st_uid == pw->pw_uid && (st.st_mode & 07777) == DATA_DIR_MODE;
}

static enum rc give_dir(const char *path, const char *user, struct err *err) {
	const struct passwd *pw = account_of(user, err);
	if (!pw)
		return RC_INVALID;
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return is_given(path, pw) ? RC_OK : err_errno(err, errno, path);
	/* In this order: afterwards it is another's, and its mode is no longer ours to change. */
	struct stat st;
	if (fstat(fd, &st) != 0 ||
		((st.st_mode & 07777) != DATA_DIR_MODE && fchmod(fd, DATA_DIR_MODE) != 0) ||
		fchown(fd, pw->pw_uid, pw->pw_gid) != 0)
		return err_errno(err, errno, path);
	return give_files(fd, pw->pw_uid, pw->pw_gid, err);
}

enum rc data_dir_prepare(
	const char *path, const char *user, char *out, size_t size, struct err *err) {
	enum rc rc = make_dirs(path, err);
	if (rc != RC_OK)
		return rc;
	auto_free char *real = realpath(path, NULL);
	if (!real)
		return err_errno(err, errno, path);
	if (snprintf(out, size, "%s", real) >= (int)size)
		return err_field(err, RC_INVALID, "data-dir", "is too long");
	return geteuid() == 0 ? give_dir(out, user, err) : RC_OK;
}

enum rc data_dir_lock(const char *path, int *fd, struct err *err) {
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(err, errno, path);
	if (flock(dir, LOCK_EX | LOCK_NB) != 0)
		return err_field(err, RC_CONFLICT, "data-dir", "%.200s is another process's", path);
	*fd = dir;
	dir = -1;
	return RC_OK;
}

enum rc privileges_drop(const char *user, struct err *err) {
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_errno(err, errno, "PR_SET_NO_NEW_PRIVS");
	if (geteuid() != 0)
		return RC_OK;
	const struct passwd *pw = account_of(user, err);
	if (!pw)
		return RC_INVALID;
	if (setgroups(0, NULL) != 0 || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) != 0 ||
		setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) != 0)
		return err_errno(err, errno, "giving up root");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* The leak checker looks at its own process as a debugger would. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#endif
	return RC_OK;
}
