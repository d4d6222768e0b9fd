#include "priv/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/parse.h"

static enum rc open_regular(const char *path, int *fd, struct err *err) {
	struct stat st;

	auto_close int own = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0 || fstat(own, &st) != 0)
		return err_errno(err, errno, path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, RC_INVALID, "%.100s is not a regular file", path);
	*fd = own;
	own = -1;
	return RC_OK;
}

int files_open(const struct priv_config *config, uint32_t file, struct priv_opened *out) {
	const char *path = config->files[file];
	struct err err = {.msg = ""};
	int fd = -1;

	out->rc = (int32_t)(path ? open_regular(path, &fd, &err)
				 : err_set(&err, RC_NOT_FOUND, "there is no such file"));
	str_copy(out->msg, sizeof(out->msg), err.msg);
	return fd;
}
