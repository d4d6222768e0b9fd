#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/parse.h"
#include "priv/consent.h"
#include "priv/file.h"
#include "priv/inuse.h"
#include "priv/prepare.h"

#define LOCKS_MAX 1024
#define LOCK_WAIT_MS 2000
#define LOCK_STEP_MS 100

/* --- locks ----------------------------------------------------------------------------------- */

struct run_locks {
	pthread_mutex_t mutex;
	char keys[LOCKS_MAX][TARGET_KEY_SIZE]; /* "" free; guarded by mutex */
};

struct run_locks *run_locks_new(void) {
	struct run_locks *l = calloc(1, sizeof(*l));

	if (l)
		pthread_mutex_init(&l->mutex, NULL);
	return l;
}

void run_locks_free(struct run_locks *l) {
	if (l)
		pthread_mutex_destroy(&l->mutex);
	free(l);
}

static char *lock_place(struct run_locks *l, const char *key) {
	char *place = NULL;

	for (size_t i = 0; i < LOCKS_MAX; i++) {
		if (strcmp(l->keys[i], key) == 0)
			return NULL;
		if (!place && l->keys[i][0] == '\0')
			place = l->keys[i];
	}
	return place;
}

static enum rc hold(
	struct run_locks *l, struct run_target *target, const char *key, struct err *err) {
	char *place;

	pthread_mutex_lock(&l->mutex);
	place = lock_place(l, key);
	if (place)
		str_copy(place, TARGET_KEY_SIZE, key);
	pthread_mutex_unlock(&l->mutex);
	if (!place)
		return err_set(err, RC_CONFLICT, "another benchmark runs on it");
	str_copy(target->key, sizeof(target->key), key);
	return RC_OK;
}

static void let_go(struct run_locks *l, struct run_target *target) {
	if (target->key[0] == '\0')
		return;
	pthread_mutex_lock(&l->mutex);
	for (size_t i = 0; i < LOCKS_MAX; i++)
		if (strcmp(l->keys[i], target->key) == 0)
			l->keys[i][0] = '\0';
	pthread_mutex_unlock(&l->mutex);
	target->key[0] = '\0';
}

/* --- devices and files ----------------------------------------------------------------------- */

struct request {
	const struct drives *drives;
	const struct priv_run_start *start;
	struct run_locks *locks;
	unsigned index;
};

/*
 * The last gate: an exclusive open, kept until the run ends; the kernel then lets nobody mount or
 * claim the device or a part of it. *busy: someone has claimed it already.
 */
static enum rc open_block(const char *path, int *fd, bool *busy, struct err *err) {
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

	*fd = open(path, flags | O_EXCL);
	*busy = *fd < 0 && errno == EBUSY;
	if (*busy)
		*fd = open(path, flags);
	return *fd < 0 ? err_errno(err, errno, path) : RC_OK;
}

static enum rc open_target(const struct request *r, const struct priv_found *found, int *fd,
	bool *busy, struct err *err) {
	uint32_t nsid = r->start->targets[r->index].nsid;
	char path[PATH_MAX];
	enum rc rc = drives_path(r->drives, found, nsid, path, sizeof(path), err);

	if (rc != RC_OK)
		return rc;
	return found->drive.kind == DRIVE_FILE ? file_open(path, found->drive.serial, fd, err)
					       : open_block(path, fd, busy, err);
}

/* By what was opened: a name may mean something else by now. */
static enum rc hold_opened(const struct request *r, struct run_target *t, struct err *err) {
	char key[TARGET_KEY_SIZE];
	struct stat st;

	if (fstat(t->fd, &st) != 0)
		return err_errno(err, errno, "fstat");
	t->is_block = S_ISBLK(st.st_mode);
	if (t->is_block)
		snprintf(key, sizeof(key), "block %u:%u", major(st.st_rdev), minor(st.st_rdev));
	else
		snprintf(key, sizeof(key), "file %lx:%lx", (unsigned long)st.st_dev,
			(unsigned long)st.st_ino);
	return hold(r->locks, t, key, err);
}

/* udev has a device locked while it looks at it, which it does after every write, and lets alone
 * what others have locked. */
static bool lock_target(int fd) {
	const struct timespec pause = {.tv_nsec = LOCK_STEP_MS * 1000000L};

	for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited_ms += LOCK_STEP_MS) {
		if (errno != EWOULDBLOCK)
			return true;
		if (waited_ms >= LOCK_WAIT_MS)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* What was looked at by its name is what was opened; a file has no device number. */
static enum rc check_opened(int fd, const struct drive_namespace *ns, struct err *err) {
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno(err, errno, "fstat");
	if (S_ISCHR(st.st_mode) || st.st_rdev != makedev(ns->dev_major, ns->dev_minor))
		return err_set(err, RC_NOT_FOUND, "another device has taken its place");
	return RC_OK;
}

static uint64_t region_of(const struct priv_run_start *start, unsigned index) {
	uint64_t own = start->targets[index].size_bytes;

	return own ? own : start->workload.size_bytes;
}

static enum rc fill_job(const struct request *r, const struct drive_namespace *ns,
	struct run_target *t, struct err *err) {
	uint64_t region = region_of(r->start, r->index);

	if (ns->size_bytes == 0 || region > ns->size_bytes)
		return err_set(err, RC_INVALID, "it has %llu bytes, fewer than wanted",
			(unsigned long long)ns->size_bytes);
	t->job.region_bytes = region ? region : ns->size_bytes;
	/* By the descriptor that fio inherits: what was checked is what fio opens. */
	snprintf(t->job.file, sizeof(t->job.file), "/proc/self/fd/%d", t->fd);
	return RC_OK;
}

static void drop_page_cache(int fd, bool file) {
	if (file)
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	else
		ioctl(fd, BLKFLSBUF, 0);
}

/* Finds out what is on the target after it was opened, when nobody can claim it any more. */
static enum rc look_at_opened(const struct request *r, struct priv_found *found,
	const struct run_target *t, struct drive_namespace *ns, struct err *err) {
	const struct priv_run_target *wanted = &r->start->targets[r->index];
	bool locked = lock_target(t->fd);
	enum rc rc = drives_find(r->drives, &wanted->drive, found, err);

	openers_forget(r->drives->openers);
	if (rc == RC_OK)
		rc = drives_namespace(r->drives, found, wanted->nsid, ns, err);
	if (rc == RC_OK)
		rc = check_opened(t->fd, ns, err);
	if (rc != RC_OK)
		return rc;
	if (!locked)
		use_add(ns, USE_OPEN, "somebody has locked it");
	inuse_signature(t->fd, ns);
	if (found->drive.kind == DRIVE_NVME)
		drives_add_sharing(found, wanted->nsid, t->fd, ns);
	return RC_OK;
}

static enum rc open_and_look(const struct request *r, struct priv_found *found,
	struct run_target *t, struct drive_namespace *ns, struct err *err) {
	bool busy = false;
	enum rc rc = drives_find(r->drives, &r->start->targets[r->index].drive, found, err);

	if (rc == RC_OK)
		rc = open_target(r, found, &t->fd, &busy, err);
	if (rc == RC_OK)
		rc = hold_opened(r, t, err);
	if (rc == RC_OK)
		rc = look_at_opened(r, found, t, ns, err);
	if (rc == RC_OK && busy)
		use_add(ns, USE_OPEN, "the kernel refuses an exclusive open");
	return rc;
}

static enum rc prepare_real(const struct request *r, struct run_target *t, struct err *err) {
	struct drive_namespace ns;
	struct priv_found found;
	struct consent_target consent = {.index = r->index, .ns = &ns};
	enum rc rc = open_and_look(r, &found, t, &ns, err);

	if (rc != RC_OK)
		return rc;
	consent.serial = found.drive.serial;
	consent.serial_unique = drives_serial_is_unique(r->drives, &found);
	rc = consent_target(r->drives->config, r->start, &consent, err);
	if (rc != RC_OK)
		return rc;
	drop_page_cache(t->fd, found.drive.kind == DRIVE_FILE);
	return fill_job(r, &ns, t, err);
}

/* --- simulated drives ------------------------------------------------------------------------ */

/* It goes into a URI in fio's job file. */
static bool is_plain_path(const char *path) {
	static const char plain[] = "/._-abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	return path && path[0] == '/' && path[strspn(path, plain)] == '\0';
}

static enum rc prepare_simulated(const struct request *r, struct run_target *t, struct err *err) {
	const char *name = r->start->targets[r->index].drive.name;
	const char *dir = r->drives->config->sim_dir;
	char key[TARGET_KEY_SIZE];
	int n;

	if (!is_plain_path(dir) || strncmp(name, "sim", 3) != 0)
		return err_set(err, RC_NOT_FOUND, "no simulated drive %s", name);
	n = snprintf(t->job.file, sizeof(t->job.file), "%s/%s.sock", dir, name);
	if (n < 0 || (size_t)n >= sizeof(t->job.file))
		return err_set(err, RC_TOO_LARGE, "the simulator's directory has too long a name");
	t->job.simulated = true;
	t->job.region_bytes = region_of(r->start, r->index);
	snprintf(key, sizeof(key), "%s", name);
	return hold(r->locks, t, key, err);
}

/* --- all of a run ---------------------------------------------------------------------------- */

static bool is_node_name(const char *name) {
	return strncmp(name, "node", 4) == 0;
}

/* fio stops at a node that is not there, and there is no choice with a single one. */
static int usable_node(const struct sysfs_root *root, int node) {
	char names[64][SYSFS_NAME_SIZE], dir[PATH_MAX];
	bool cut;

	snprintf(dir, sizeof(dir), "%s/devices/system/node", root->sys);
	if (sysfs_list(dir, is_node_name, names, array_len(names), &cut) < 2)
		return -1;
	snprintf(dir, sizeof(dir), "%s/devices/system/node/node%d", root->sys, node);
	return node >= 0 && access(dir, F_OK) == 0 ? node : -1;
}

static enum rc prepare_one(const struct request *r, struct run_target *t, struct err *err) {
	const struct priv_run_target *wanted = &r->start->targets[r->index];
	enum rc rc;

	*t = (struct run_target){.fd = -1};
	t->job.drive_id = wanted->drive_id;
	t->job.numa_node = usable_node(r->drives->root, wanted->numa_node);
	if (wanted->drive.kind == DRIVE_SIMULATED)
		rc = prepare_simulated(r, t, err);
	else
		rc = prepare_real(r, t, err);
	if (rc != RC_OK && err && err->field[0] == '\0')
		snprintf(err->field, sizeof(err->field), "/drives/%u", r->index);
	return rc;
}

enum rc run_targets_prepare(struct run_targets *t, struct run_locks *locks,
	const struct drives *drives, const struct priv_run_start *start, struct err *err) {
	struct request r = {.drives = drives, .start = start, .locks = locks};
	enum rc rc = consent_run(drives->config, start, err);

	t->locks = locks;
	t->count = 0;
	while (rc == RC_OK && t->count < start->target_count) {
		r.index = t->count;
		rc = prepare_one(&r, &t->targets[t->count++], err);
	}
	if (rc != RC_OK)
		run_targets_release(t);
	return rc;
}

void run_targets_release(struct run_targets *t) {
	for (unsigned i = 0; i < t->count; i++) {
		let_go(t->locks, &t->targets[i]);
		if (t->targets[i].fd >= 0)
			close(t->targets[i].fd);
	}
	t->count = 0;
}

/* Files are not looked at: what serves them may block. */
uint64_t run_targets_gone(const struct run_targets *t) {
	uint64_t gone = 0, bytes;

	for (unsigned i = 0; i < t->count; i++) {
		const struct run_target *one = &t->targets[i];

		if (one->is_block && (ioctl(one->fd, BLKGETSIZE64, &bytes) != 0 || bytes == 0))
			gone |= UINT64_C(1) << i;
	}
	return gone;
}
