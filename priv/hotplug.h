/*
 * Tells the network process at once what the kernel tells of drives: the kernel's messages are
 * gathered, so that a storm of them becomes a few hints. Where the socket cannot be opened, or
 * messages are lost, all drives are looked at. One thread.
 */
#ifndef DRIVEWATT_PRIV_HOTPLUG_H
#define DRIVEWATT_PRIV_HOTPLUG_H

#include "priv/uevent.h"

#define HOTPLUG_PAUSE_MS 100 /* between two tellings */
#define HOTPLUG_MAX_HINTS 32 /* in one; of more, all drives are looked at */

struct hotplug {
	const struct sysfs_root *root;
	int fd; /* -1 none */
	unsigned count;
	struct priv_hint hints[HOTPLUG_MAX_HINTS];
	int64_t told_ms; /* monotonic */
};

/* Without the socket a warning is logged. root is borrowed. */
void hotplug_init(struct hotplug *h, const struct sysfs_root *root);
void hotplug_release(struct hotplug *h);

/* Reads what has come by fd, a bounded part of it. */
void hotplug_read(struct hotplug *h);
/* Takes in what one message means. */
void hotplug_take(struct hotplug *h, const struct uevent *e);
/* Some messages were lost. */
void hotplug_take_loss(struct hotplug *h);
/* Hands over what was gathered when it is time. Returns milliseconds until it is, -1: nothing
 * waits. */
int64_t hotplug_tick(struct hotplug *h, int64_t now_mono_ms,
	void (*tell)(void *arg, const struct priv_hint *hint), void *arg);

#endif
