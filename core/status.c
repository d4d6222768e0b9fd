#include "core/core.h"

#include <sys/statvfs.h>

#include "db/db.h"
#include "model/quality.h"

void core_store_status(struct core *core, struct db_status *control, struct db_status *samples) {
	db_status_get(core->control, control);
	db_status_get(core->samples, samples);
}

static bool can_read(struct db *db) {
	struct db_conn *c = NULL;
	bool can = db_read_begin(db, &c, NULL) == RC_OK;
	db_read_end(c);
	return can;
}

static enum store_state state_of(struct db *db) {
	struct db_status s;
	if (!can_read(db))
		return STORE_FAILING;
	db_status_get(db, &s);
	if (s.healthy)
		return STORE_OK;
	return s.last_rc == RC_NO_SPACE ? STORE_FULL : STORE_READ_ONLY;
}

void core_store_states(struct core *core, enum store_state *control, enum store_state *samples) {
	*control = state_of(core->control);
	*samples = state_of(core->samples);
}

int64_t core_free_bytes(const struct core *core) {
	struct statvfs s;
	if (statvfs(core->config.data_dir, &s) != 0)
		return NONE;
	return (int64_t)(s.f_bavail * s.f_frsize);
}
