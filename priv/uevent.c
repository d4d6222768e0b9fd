#include "priv/uevent.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"

#define KERNEL_GROUP 1 /* udev's own messages are in another */
#define RECEIVE_BYTES (1 << 20)

/* --- the text --------------------------------------------------------------------------------- */

/* The value of a key, NULL without. The message ends with NUL. */
static const char *find_value(const char *message, size_t length, const char *key) {
	const char *end = message + length;
	size_t n = strlen(key);

	for (const char *p = message; p < end; p += strlen(p) + 1)
		if (strncmp(p, key, n) == 0 && p[n] == '=')
			return p + n + 1;
	return NULL;
}

static bool is_owner(const char *name) {
	return sysfs_is_controller_name(name) || sysfs_is_subsystem_name(name);
}

/* The last part of the path that is a controller or a subsystem of controllers; "" without. */
static void find_owner(const char *devpath, char name[SYSFS_NAME_SIZE]) {
	char part[SYSFS_NAME_SIZE];
	const char *p = devpath;

	name[0] = '\0';
	while (*p) {
		size_t n = strcspn(p, "/");

		if (n < sizeof(part)) {
			memcpy(part, p, n);
			part[n] = '\0';
			if (is_owner(part))
				memcpy(name, part, n + 1);
		}
		p += n + (p[n] == '/');
	}
}

static enum uevent_meaning of_controller(const char *message, size_t length, const char *action) {
	const char *event = find_value(message, length, "NVME_EVENT");

	if (strcmp(action, "change") != 0)
		return UEVENT_LOOK;
	return event && strcmp(event, "connected") == 0 ? UEVENT_RESET : UEVENT_CHANGED;
}

struct uevent uevent_read(const char *message, size_t length) {
	struct uevent e = {.meaning = UEVENT_NOTHING};
	const char *action, *devpath, *subsystem;

	if (length == 0 || message[length - 1] != '\0')
		return e;
	action = find_value(message, length, "ACTION");
	devpath = find_value(message, length, "DEVPATH");
	subsystem = find_value(message, length, "SUBSYSTEM");
	if (!action || !devpath || !subsystem)
		return e;
	find_owner(devpath, e.name);
	if (!e.name[0])
		return e;
	if (strcmp(subsystem, "nvme") == 0)
		e.meaning = of_controller(message, length, action);
	else if (strcmp(subsystem, "block") == 0)
		e.meaning = UEVENT_CHANGED;
	return e;
}

/* --- the socket ------------------------------------------------------------------------------- */

static bool listen_to_kernel(int fd) {
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
	const int yes = 1, bytes = RECEIVE_BYTES;

	/* As much as the system allows. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) == 0 &&
		bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

enum rc uevent_open(int *fd, struct err *err) {
	enum rc rc;

	*fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (*fd >= 0 && listen_to_kernel(*fd))
		return RC_OK;
	rc = err_errno(err, errno, "the kernel's socket");
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return rc;
}

union credentials {
	char bytes[CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

/* The kernel has port 0 and no process. */
static bool is_from_kernel(struct msghdr *msg) {
	const struct sockaddr_nl *from = msg->msg_name;
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct ucred who;

	if (msg->msg_namelen != sizeof(*from) || from->nl_pid != 0 || !c ||
		c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
		c->cmsg_len != CMSG_LEN(sizeof(who)))
		return false;
	memcpy(&who, CMSG_DATA(c), sizeof(who));
	return who.pid == 0 && who.uid == 0;
}

static ssize_t receive(int fd, char message[UEVENT_MAX_BYTES], bool *believed) {
	struct sockaddr_nl from = {0};
	struct iovec iov = {.iov_base = message, .iov_len = UEVENT_MAX_BYTES};
	union credentials control = {0};
	struct msghdr msg = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	do
		n = recvmsg(fd, &msg, 0);
	while (n < 0 && errno == EINTR);
	*believed = n >= 0 && !(msg.msg_flags & MSG_TRUNC) && is_from_kernel(&msg);
	return n;
}

enum rc uevent_receive(int fd, char message[UEVENT_MAX_BYTES], size_t *length, struct err *err) {
	bool believed;
	ssize_t n = receive(fd, message, &believed);

	*length = believed ? (size_t)n : 0;
	if (n >= 0)
		return RC_OK;
	if (errno == EAGAIN)
		return err_set(err, RC_NOT_FOUND, "the kernel has told all");
	if (errno == ENOBUFS)
		return err_set(err, RC_FULL, "some of what the kernel told was lost");
	return err_errno(err, errno, "the kernel's socket");
}
