#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"
#include "priv/inuse.h"
#include "priv/openers.h"
#include "priv/privileges.h"

#define OPENED_MAX 2048
#define DESCRIPTORS_MAX 1000000 /* looked at, of all processes */
#define FILES_MAX 64
#define TOLD_MAX 4 /* processes named in a drive's uses */
#define FRESH_MS 200
#define SETTLE_MS 1000
#define INIT_PID 1
#define KTHREADD_PID 2

struct entry {
	pid_t pid;
	struct inode_ref what;
	int64_t since_ms; /* when a look found it first, monotonic */
};

struct look {
	size_t count;
	bool cut; /* more than OPENED_MAX or DESCRIPTORS_MAX */
	size_t descriptors;
	bool whole;       /* it was the machine's own /proc, not a container's */
	unsigned unseen;  /* processes that could not be looked into … */
	pid_t unseen_pid; /* … one of them */
	struct entry entries[OPENED_MAX];
};

struct openers {
	const struct sysfs_root *root;
	pthread_mutex_t mutex; /* guards all below */
	int64_t looked_ms;     /* monotonic; 0 never */
	size_t file_count;     /* of all times; the last FILES_MAX are looked for */
	struct inode_ref files[FILES_MAX];
	unsigned generic_major; /* of NVMe namespaces as character devices; 0 none */
	struct look *now, *before;
};

struct openers *openers_new(const struct sysfs_root *root) {
	struct openers *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->root = root;
	pthread_mutex_init(&o->mutex, NULL);
	o->now = calloc(1, sizeof(*o->now));
	o->before = calloc(1, sizeof(*o->before));
	if (o->now && o->before)
		return o;
	openers_free(o);
	return NULL;
}

void openers_free(struct openers *o) {
	if (!o)
		return;
	pthread_mutex_destroy(&o->mutex);
	free(o->now);
	free(o->before);
	free(o);
}

void openers_forget(struct openers *o) {
	if (!o)
		return;
	pthread_mutex_lock(&o->mutex);
	o->looked_ms = 0;
	pthread_mutex_unlock(&o->mutex);
}

/* --- a look at all processes ------------------------------------------------------------------ */

static bool same(const struct inode_ref *a, const struct inode_ref *b) {
	return a->type == b->type && a->dev == b->dev && a->ino == b->ino;
}

static bool is_looked_for(const struct openers *o, const struct inode_ref *what) {
	if (what->type == S_IFBLK)
		return true;
	if (what->type == S_IFCHR)
		return o->generic_major && major(what->dev) == o->generic_major;
	for (size_t i = 0; what->type == S_IFREG && i < FILES_MAX && i < o->file_count; i++)
		if (same(what, &o->files[i]))
			return true;
	return false;
}

static int64_t first_seen(const struct look *before, const struct entry *e, int64_t now_ms) {
	for (size_t i = 0; i < before->count; i++)
		if (before->entries[i].pid == e->pid && same(&before->entries[i].what, &e->what))
			return before->entries[i].since_ms;
	return now_ms;
}

static void note(struct openers *o, pid_t pid, const struct inode_ref *what) {
	struct look *l = o->now;
	struct entry e = {.pid = pid, .what = *what};

	for (size_t i = l->count; i > 0 && l->entries[i - 1].pid == pid; i--)
		if (same(&l->entries[i - 1].what, what))
			return;
	if (l->count == OPENED_MAX) {
		l->cut = true;
		return;
	}
	e.since_ms = first_seen(o->before, &e, clock_mono_ms());
	l->entries[l->count++] = e;
}

/* Whatever the file system has cached will do: a server that does not answer must not hold us up.
 * False when we may not look. */
static bool note_descriptor(struct openers *o, pid_t pid, int dir, const char *name) {
	struct inode_ref what = {0};
	struct statx stx;

	if (statx(dir, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &stx) != 0)
		return errno != EACCES && errno != EPERM;
	what.type = stx.stx_mode & S_IFMT;
	if (what.type == S_IFREG) {
		what.dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
		what.ino = stx.stx_ino;
	} else {
		what.dev = makedev(stx.stx_rdev_major, stx.stx_rdev_minor);
	}
	if (is_looked_for(o, &what))
		note(o, pid, &what);
	return true;
}

static bool note_descriptors(struct openers *o, pid_t pid, DIR *dir) {
	const struct dirent *e;

	while ((e = readdir(dir)) != NULL && !o->now->cut) {
		if (e->d_name[0] != '.' && !note_descriptor(o, pid, dirfd(dir), e->d_name))
			return false;
		if (++o->now->descriptors > DESCRIPTORS_MAX)
			o->now->cut = true;
	}
	return true;
}

static bool note_process(struct openers *o, pid_t pid) {
	char path[PATH_MAX];
	DIR *dir;
	bool seen;

	snprintf(path, sizeof(path), "%s/%d/fd", o->root->proc, (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT || errno == ESRCH; /* it has ended */
	seen = note_descriptors(o, pid, dir);
	closedir(dir);
	return seen;
}

/* Ourselves, or a fio that we have started. */
static bool is_own(const struct openers *o, pid_t pid) {
	char stat[512], *after_name;
	int parent;

	if (pid == getpid())
		return true;
	sysfs_read(stat, sizeof(stat), "%s/%d/stat", o->root->proc, (int)pid);
	after_name = strrchr(stat, ')');
	return after_name && sscanf(after_name, ") %*c %d", &parent) == 1 && parent == getpid();
}

static void look_into(struct openers *o, pid_t pid) {
	size_t before = o->now->count;

	if (!note_process(o, pid) && pid != INIT_PID) {
		o->now->unseen++;
		o->now->unseen_pid = pid;
	}
	if (o->now->count > before && is_own(o, pid))
		o->now->count = before;
}

static unsigned find_generic_major(const struct openers *o) {
	char path[PATH_MAX], line[128], name[32];
	unsigned number, found = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/devices", o->root->proc);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "%u %31s", &number, name) == 2 &&
			strcmp(name, "nvme-generic") == 0)
			found = number;
	if (in)
		fclose(in);
	return found;
}

/* Kernel threads stand in the machine's own process namespace alone, and are hidden with all others
 * where /proc hides them. */
static bool sees_machine(const struct openers *o) {
	char comm[32];

	sysfs_read(comm, sizeof(comm), "%s/%d/comm", o->root->proc, KTHREADD_PID);
	return strcmp(comm, "kthreadd") == 0;
}

static void look(struct openers *o) {
	struct look *last = o->now;
	const struct dirent *e;
	DIR *proc;
	int64_t pid;

	o->now = o->before;
	o->before = last;
	memset(o->now, 0, offsetof(struct look, entries));
	o->generic_major = find_generic_major(o);
	privileges_raise();
	proc = opendir(o->root->proc);
	while (proc && (e = readdir(proc)) != NULL)
		if (parse_i64(e->d_name, 1, INT_MAX, &pid, "", NULL) == RC_OK)
			look_into(o, (pid_t)pid);
	o->now->whole = proc && sees_machine(o);
	if (proc)
		closedir(proc);
	privileges_lower();
	o->looked_ms = clock_mono_ms();
}

/* --- what it says of one thing ---------------------------------------------------------------- */

struct query {
	inode_match *match;
	const void *arg;
};

/* When the last of those that have it open was first seen; 0: nobody has. */
static int64_t last_since_ms(const struct openers *o, const struct query *q) {
	int64_t last_ms = 0;

	for (size_t i = 0; i < o->now->count; i++)
		if (o->now->entries[i].since_ms > last_ms &&
			q->match(q->arg, &o->now->entries[i].what))
			last_ms = o->now->entries[i].since_ms;
	return last_ms;
}

/* An earlier look will do where it found nobody. */
static void settle(struct openers *o, const struct query *q) {
	const struct timespec pause = {.tv_nsec = FRESH_MS * 1000000L};
	int64_t asked_ms = clock_mono_ms(), now_ms = asked_ms, since_ms;

	if (o->looked_ms == 0 || now_ms - o->looked_ms >= FRESH_MS)
		look(o);
	if (last_since_ms(o, q) && o->looked_ms < asked_ms)
		look(o);
	while ((since_ms = last_since_ms(o, q)) != 0 && now_ms - since_ms < SETTLE_MS &&
		now_ms - asked_ms < SETTLE_MS) {
		pthread_mutex_unlock(&o->mutex);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&o->mutex);
		now_ms = clock_mono_ms();
		if (now_ms - o->looked_ms >= FRESH_MS)
			look(o);
	}
}

/* A process calls itself what it likes. */
static void read_comm(const struct openers *o, pid_t pid, char comm[32]) {
	char text[32];

	sysfs_read(text, sizeof(text), "%s/%d/comm", o->root->proc, (int)pid);
	str_copy_padded(comm, 32, text, strlen(text));
}

static void tell_processes(
	const struct openers *o, const struct query *q, struct drive_namespace *ns) {
	unsigned told = 0, more = 0;
	char comm[32];

	for (size_t i = 0; i < o->now->count; i++) {
		const struct entry *e = &o->now->entries[i];
		const char *name = q->match(q->arg, &e->what);

		if (!name)
			continue;
		if (told == TOLD_MAX) {
			more++;
			continue;
		}
		read_comm(o, e->pid, comm);
		use_add(ns, USE_PROCESS, "%s (process %d) has %s open", comm, (int)e->pid, name);
		told++;
	}
	if (more)
		use_add(ns, USE_PROCESS, "%u more processes have it open", more);
}

static void tell_unseen(const struct openers *o, struct drive_namespace *ns) {
	const struct look *l = o->now;
	char comm[32];

	if (!l->whole)
		use_add(ns, USE_UNSEEN, "the machine's processes cannot be seen from here");
	if (l->cut)
		use_add(ns, USE_UNSEEN, "too much is open to look at all of it");
	if (l->unseen == 0)
		return;
	read_comm(o, l->unseen_pid, comm);
	use_add(ns, USE_UNSEEN, "%u process(es) could not be looked into, as %s (%d)", l->unseen,
		comm, (int)l->unseen_pid);
}

void openers_add_uses(
	struct openers *o, inode_match *match, const void *arg, struct drive_namespace *ns) {
	const struct query q = {.match = match, .arg = arg};

	pthread_mutex_lock(&o->mutex);
	settle(o, &q);
	tell_processes(o, &q, ns);
	tell_unseen(o, ns);
	pthread_mutex_unlock(&o->mutex);
}

static const char *match_file(const void *arg, const struct inode_ref *what) {
	return same(arg, what) ? "it" : NULL;
}

void openers_add_uses_of_file(struct openers *o, dev_t dev, ino_t ino, struct drive_namespace *ns) {
	const struct inode_ref file = {.type = S_IFREG, .dev = dev, .ino = ino};

	pthread_mutex_lock(&o->mutex);
	if (!is_looked_for(o, &file)) {
		o->files[o->file_count++ % FILES_MAX] = file;
		o->looked_ms = 0;
	}
	pthread_mutex_unlock(&o->mutex);
	openers_add_uses(o, match_file, &file, ns);
}
