#include "server/sd_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"
#include "base/parse.h"

void sd_notify_send(const char *state) {
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (!path || (path[0] != '/' && path[0] != '@') ||
		!str_copy(to.sun_path, sizeof(to.sun_path), path))
		return;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (to.sun_path[0] == '@')
		to.sun_path[0] = '\0';
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len);
}
