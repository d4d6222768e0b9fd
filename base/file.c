#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"

enum rc file_read(const char *path, struct buf *out, struct err *err) {
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	char part[4096];
	ssize_t n;
	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, errno, path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, RC_INVALID, "%s is no regular file", path);
	while ((n = read(fd, part, sizeof(part))) > 0 && !out->failed)
		buf_add(out, part, (size_t)n);
	return n < 0 ? err_errno(err, errno, path) : buf_status(out, err);
}
