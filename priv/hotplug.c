#include "priv/hotplug.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"

#define READ_MAX 256 /* messages at once; the rest stays in the socket */

void hotplug_init(struct hotplug *h, const struct sysfs_root *root) {
	struct err err = {0};

	*h = (struct hotplug){.root = root, .fd = -1, .told_ms = INT64_MIN / 2};
	if (uevent_open(&h->fd, &err) != RC_OK)
		log_err(LOG_LEVEL_WARNING, "priv", "drives that come are seen late", &err);
}

void hotplug_release(struct hotplug *h) {
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
}

/* --- gathering -------------------------------------------------------------------------------- */

static bool is_all(const struct priv_hint *hint) {
	return hint->reset && !hint->name[0];
}

static void take_all(struct hotplug *h, bool lost) {
	lost = lost || (h->count && h->hints[0].lost);
	h->hints[0] = (struct priv_hint){.reset = true, .lost = lost};
	h->count = 1;
}

static void add(struct hotplug *h, const char *name, bool reset) {
	struct priv_hint hint = {.reset = reset};

	if (!str_copy(hint.name, sizeof(hint.name), name) || (h->count && is_all(&h->hints[0])))
		return;
	for (unsigned i = 0; i < h->count; i++)
		if (strcmp(h->hints[i].name, hint.name) == 0) {
			h->hints[i].reset = h->hints[i].reset || reset;
			return;
		}
	if (h->count == HOTPLUG_MAX_HINTS)
		take_all(h, false);
	else
		h->hints[h->count++] = hint;
}

static void add_members(struct hotplug *h, const struct uevent *e) {
	char members[HOTPLUG_MAX_HINTS][SYSFS_NAME_SIZE];
	size_t n = sysfs_subsystem_controllers(h->root, e->name, members, HOTPLUG_MAX_HINTS);

	for (size_t i = 0; i < n; i++)
		add(h, members[i], e->meaning == UEVENT_RESET);
}

void hotplug_take(struct hotplug *h, const struct uevent *e) {
	if (e->meaning == UEVENT_LOOK)
		add(h, "", false);
	else if (e->meaning != UEVENT_NOTHING && sysfs_is_subsystem_name(e->name))
		add_members(h, e);
	else if (e->meaning != UEVENT_NOTHING)
		add(h, e->name, e->meaning == UEVENT_RESET);
}

void hotplug_take_loss(struct hotplug *h) {
	take_all(h, true);
}

void hotplug_read(struct hotplug *h) {
	char message[UEVENT_MAX_BYTES];
	struct uevent e;
	size_t length;
	enum rc rc = RC_OK;

	for (int i = 0; i < READ_MAX && (rc == RC_OK || rc == RC_FULL); i++) {
		rc = uevent_receive(h->fd, message, &length, NULL);
		if (rc == RC_FULL)
			hotplug_take_loss(h);
		if (rc != RC_OK)
			continue;
		e = uevent_read(message, length);
		hotplug_take(h, &e);
	}
	if (rc != RC_OK && rc != RC_FULL && rc != RC_NOT_FOUND) {
		log_warning("priv", "the kernel's socket fails: drives that come are seen late");
		hotplug_release(h);
	}
}

/* --- telling ---------------------------------------------------------------------------------- */

int64_t hotplug_tick(struct hotplug *h, int64_t now_mono_ms,
	void (*tell)(void *arg, const struct priv_hint *hint), void *arg) {
	if (h->count == 0)
		return -1;
	if (now_mono_ms - h->told_ms < HOTPLUG_PAUSE_MS)
		return HOTPLUG_PAUSE_MS - (now_mono_ms - h->told_ms);
	for (unsigned i = 0; i < h->count; i++)
		tell(arg, &h->hints[i]);
	h->count = 0;
	h->told_ms = now_mono_ms;
	return -1;
}
