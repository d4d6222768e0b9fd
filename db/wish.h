/* A wish's columns, which several tables have, always in this order. */
#ifndef DRIVEWATT_DB_WISH_H
#define DRIVEWATT_DB_WISH_H

#include "db/sqlite.h"
#include "model/power.h"

#define WISH_COLUMNS "state, allow_non_operational, limit_mw"
#define WISH_EXCLUDED \
	"state = excluded.state, allow_non_operational = excluded.allow_non_operational," \
	" limit_mw = excluded.limit_mw"
#define WISH_COUNT 3

static inline void wish_bind(struct stmt *st, int first, const struct power_wish *w) {
	stmt_int(st, first, w->state);
	stmt_int(st, first + 1, w->allow_non_operational);
	stmt_opt(st, first + 2, w->limit_mw);
}

static inline struct power_wish wish_read(struct stmt *st, int first) {
	return (struct power_wish){
		.state = (int8_t)col_int(st, first),
		.allow_non_operational = col_int(st, first + 1) != 0,
		.limit_mw = col_opt(st, first + 2),
	};
}

#endif
