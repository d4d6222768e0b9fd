#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "priv/privileges.h"

/* In force all the time, and in reserve: see privileges_raise. */
static const int used_caps[] = {CAP_SYS_ADMIN};
static const int reserve_caps[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};

static void leave_network(void) {
	if (unshare(CLONE_NEWNET) != 0)
		log_warning("priv", "keeps the network: %s", strerror(errno));
}

static uint64_t mask_of(const int *caps, size_t count) {
	uint64_t mask = 0;

	for (size_t i = 0; i < count; i++)
		mask |= UINT64_C(1) << caps[i];
	return mask;
}

static uint64_t used_mask(void) {
	return mask_of(used_caps, array_len(used_caps));
}

static uint64_t reserve_mask(void) {
	return mask_of(reserve_caps, array_len(reserve_caps));
}

/* The bounding set too, so that a program started with root's rights finds nothing there. */
static void drop_bounding_set(void) {
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!((used_mask() | reserve_mask()) >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* Of this thread: what stays permitted, and what of that comes into force and goes. */
static bool change_capabilities(uint64_t permitted, uint64_t add, uint64_t take) {
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, caps) != 0)
		return false;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		caps[i].permitted &= (uint32_t)(permitted >> 32 * i);
		caps[i].effective |= (uint32_t)(add >> 32 * i);
		caps[i].effective &= caps[i].permitted & ~(uint32_t)(take >> 32 * i);
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, caps) == 0;
}

void privileges_raise(void) {
	if (!change_capabilities(UINT64_MAX, reserve_mask(), 0))
		log_warning("priv", "cannot look into other processes: %s", strerror(errno));
}

void privileges_lower(void) {
	if (!change_capabilities(UINT64_MAX, 0, reserve_mask()))
		log_warning("priv", "keeps capabilities in force: %s", strerror(errno));
}

void privileges_reduce(void) {
	leave_network();
	drop_bounding_set();
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (!change_capabilities(used_mask() | reserve_mask(), 0, reserve_mask()))
		log_warning("priv", "keeps its capabilities: %s", strerror(errno));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		log_warning("priv", "can gain privileges: %s", strerror(errno));
}
