/*
 * Preloaded into the daemon under test: ioctl() on /dev/nvmeX and /dev/nvmeXnY of the bed is
 * answered by the model; all else goes to the kernel. A drive that hangs answers when it is let
 * go, and nothing before, as a command does that the kernel has sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/bed/bed_state.h"

#define NVME_REQUESTS 'N'
#define HANG_LOOK_NS 10000000L
#define GET_LOG_PAGE 0x02
#define IDENTIFY 0x06

static struct bed_state *state;
static int state_fd = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* flock does not part threads */

static void map_state(void) {
	const char *path = getenv(BED_STATE_VARIABLE);
	void *p;

	state_fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (state_fd < 0)
		return;
	p = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, state_fd, 0);
	state = p == MAP_FAILED ? NULL : p;
}

/* The drive behind a descriptor, by the name it was opened under. */
static struct nvme_model *drive_of(int fd, bool *is_namespace) {
	char link[48], path[64];
	unsigned number, nsid;
	ssize_t n;
	int fields;

	pthread_once(&once, map_state);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = state ? readlink(link, path, sizeof(path) - 1) : -1;
	if (n < 0)
		return NULL;
	path[n] = '\0';
	fields = sscanf(path, "/dev/nvme%un%u", &number, &nsid);
	*is_namespace = fields == 2;
	return fields >= 1 && number < state->count ? &state->drives[number] : NULL;
}

static void wait_while_hung(const struct nvme_model *m, bool io, uint8_t opcode) {
	const struct timespec pause = {.tv_nsec = HANG_LOOK_NS};
	const bool look = !io && (opcode == GET_LOG_PAGE || opcode == IDENTIFY);

	while (__atomic_load_n(&m->hang, __ATOMIC_SEQ_CST) ||
		(look && __atomic_load_n(&m->hang_look, __ATOMIC_SEQ_CST)))
		nanosleep(&pause, NULL);
}

static int command(struct nvme_model *m, bool io, struct nvme_passthru_cmd *cmd) {
	struct nvme_model_command c = {
		.opcode = cmd->opcode,
		.nsid = cmd->nsid,
		.cdw10 = cmd->cdw10,
		.cdw11 = cmd->cdw11,
		.cdw12 = cmd->cdw12,
		.cdw13 = cmd->cdw13,
		.cdw14 = cmd->cdw14,
		.data = (void *)(uintptr_t)cmd->addr,
		.data_bytes = cmd->data_len,
	};
	int failure, status = -1;

	wait_while_hung(m, io, cmd->opcode);
	pthread_mutex_lock(&mutex);
	flock(state_fd, LOCK_EX);
	failure = m->fail_errno;
	if (!failure)
		status = io ? nvme_model_io(m, &c) : nvme_model_admin(m, &c);
	flock(state_fd, LOCK_UN);
	pthread_mutex_unlock(&mutex);
	cmd->result = c.result;
	if (failure)
		errno = failure;
	return status;
}

static int nvme_ioctl(struct nvme_model *m, bool is_namespace, unsigned long request, void *arg) {
	if (request == NVME_IOCTL_ADMIN_CMD)
		return command(m, false, arg);
	if (request == NVME_IOCTL_IO_CMD && is_namespace)
		return command(m, true, arg);
	if (request == (unsigned long)NVME_IOCTL_ID && is_namespace)
		return 1;
	errno = ENOTTY;
	return -1;
}

int ioctl(int fd, unsigned long request, ...) {
	struct nvme_model *m = NULL;
	bool is_namespace = false;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((request >> 8 & 0xff) == NVME_REQUESTS)
		m = drive_of(fd, &is_namespace);
	if (m)
		return nvme_ioctl(m, is_namespace, request, arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
