#include "core/core.h"
#include "db/db.h"

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

bool core_stores_open(struct core *core, bool *control, bool *samples) {
	*control = can_read(core->control);
	*samples = can_read(core->samples);
	return *control && *samples;
}
