#include "server/source.h"

#include <errno.h>
#include <fcntl.h>

#include "core/privc.h"

enum rc source_open(const struct source *from, enum priv_file file, const char *path, int *fd,
	struct err *err) {
	*fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd >= 0)
		return RC_OK;
	if (errno == EACCES && from->helper)
		return privc_open(from->helper, file, fd, err);
	return err_errno(err, errno, path);
}
