#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "priv/privileges.h"

#define KEPT_CAPABILITY CAP_SYS_ADMIN

static void leave_network(void) {
	if (unshare(CLONE_NEWNET) != 0)
		log_warning("priv", "keeps the network: %s", strerror(errno));
}

/* The bounding set too, so that a program started with root's rights finds nothing there. */
static void drop_bounding_set(void) {
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (cap != KEPT_CAPABILITY)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static void keep_one_capability(void) {
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, caps) != 0)
		return;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		unsigned kept =
			i == CAP_TO_INDEX(KEPT_CAPABILITY) ? CAP_TO_MASK(KEPT_CAPABILITY) : 0;

		caps[i].permitted &= kept;
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, caps) != 0)
		log_warning("priv", "keeps its capabilities: %s", strerror(errno));
}

void privileges_reduce(void) {
	leave_network();
	drop_bounding_set();
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	keep_one_capability();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		log_warning("priv", "can gain privileges: %s", strerror(errno));
}
