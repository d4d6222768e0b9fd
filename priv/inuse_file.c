/* The uses of a regular file. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "priv/inuse.h"
#include "priv/kernel_uses.h"
#include "priv/procfs.h"

struct file_check {
	struct inode_ref file;
	struct drive_namespace *ns;
};

static bool is_file(const struct inode_ref *file, const struct inode_ref *what) {
	return file->type == what->type && file->dev == what->dev && file->ino == what->ino;
}

static const char *match_file(const void *file, const struct inode_ref *what) {
	return is_file(file, what) ? "it" : NULL;
}

/* --- swap ------------------------------------------------------------------------------------- */

/* "/swap\040file file 8388604 0 -3": by what it is, since a file may have several names. */
static void check_swap(void *check, char *line) {
	const struct file_check *c = check;
	char *kind = strpbrk(line, " \t");
	struct inode_ref what;
	struct stat st;

	if (!kind || strncmp(kind + strspn(kind, " \t"), "file", 4) != 0)
		return;
	*kind = '\0';
	procfs_unescape(line);
	if (stat(line, &st) != 0) {
		use_add(c->ns, USE_UNSEEN, "the swap file %s could not be looked at", line);
		return;
	}
	what = (struct inode_ref){.type = S_IFREG, .dev = st.st_dev, .ino = st.st_ino};
	if (is_file(&c->file, &what))
		use_add(c->ns, USE_SWAP, "it is a swap file");
}

/* --- locks ------------------------------------------------------------------------------------ */

/* As virtual machines lock their images. */
static bool is_locked(int fd) {
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* The kernel gives no lease of a file that anybody in any namespace, or the kernel itself, has open
 * for writing. Where there are none, /proc alone has to do. The signal of a lease that is
 * contested must be one that harms nobody. */
static bool is_written_to(int fd) {
	if (fcntl(fd, F_SETSIG, SIGURG) != 0)
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* --- all together ----------------------------------------------------------------------------- */

void inuse_file(const struct sysfs_root *root, struct openers *openers, int fd,
	struct drive_namespace *ns) {
	struct file_check c = {.ns = ns};
	struct stat st;

	if (fstat(fd, &st) != 0) {
		use_add(ns, USE_UNKNOWN, "the file could not be looked at");
		return;
	}
	ns->size_bytes = (uint64_t)st.st_size;
	c.file = (struct inode_ref){.type = S_IFREG, .dev = st.st_dev, .ino = st.st_ino};
	if (!procfs_each_line(root, "swaps", check_swap, &c) && errno != ENOENT)
		use_add(ns, USE_UNSEEN, "the swap areas could not be read");
	if (is_locked(fd))
		use_add(ns, USE_OPEN, "somebody has locked it");
	if (is_written_to(fd))
		use_add(ns, USE_OPEN, "somebody has it open for writing");
	kernel_uses_add(root, match_file, &c.file, ns);
	if (openers)
		openers_add_uses_of_file(openers, st.st_dev, st.st_ino, ns);
}
