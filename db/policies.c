#include "db/policies.h"

#include "db/wish.h"

#define POLICY_COLUMNS \
	"name, priority, model, host, slot, labels, created_ms, changed_ms, config_version," \
	" " WISH_COLUMNS

enum rc db_policy_put(struct db_conn *c, const struct policy *p, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c,
		"INSERT INTO policy (" POLICY_COLUMNS ")"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
		" ON CONFLICT (name) DO UPDATE SET priority = excluded.priority,"
		" model = excluded.model, host = excluded.host, slot = excluded.slot,"
		" labels = excluded.labels, changed_ms = excluded.changed_ms,"
		" config_version = excluded.config_version, " WISH_EXCLUDED);
	stmt_text(st, 1, p->name);
	stmt_int(st, 2, p->priority);
	stmt_text(st, 3, p->selector.model);
	stmt_text(st, 4, p->selector.host);
	stmt_text(st, 5, p->selector.slot);
	stmt_text(st, 6, p->selector.labels);
	stmt_int(st, 7, p->created_ms);
	stmt_int(st, 8, p->changed_ms);
	stmt_int(st, 9, p->config_version);
	wish_bind(st, 10, &p->wish);
	return stmt_run(st, NULL, err);
}

static void read_policy(struct stmt *st, struct policy *p) {
	*p = (struct policy){
		.priority = (int32_t)col_int(st, 1),
		.wish = wish_read(st, 9),
		.created_ms = col_int(st, 6),
		.changed_ms = col_int(st, 7),
		.config_version = (uint32_t)col_int(st, 8),
	};
	col_copy(st, 0, p->name, sizeof(p->name));
	col_copy(st, 2, p->selector.model, sizeof(p->selector.model));
	col_copy(st, 3, p->selector.host, sizeof(p->selector.host));
	col_copy(st, 4, p->selector.slot, sizeof(p->selector.slot));
	col_copy(st, 5, p->selector.labels, sizeof(p->selector.labels));
}

enum rc db_policy_get(struct db_conn *c, const char *name, struct policy *out, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " POLICY_COLUMNS " FROM policy WHERE name = $1");
	stmt_text(st, 1, name);
	const enum rc rc = stmt_one(st, "policy", err);
	if (rc == RC_OK)
		read_policy(st, out);
	return rc;
}

enum rc db_policy_delete(struct db_conn *c, const char *name, struct err *err) {
	auto_stmt struct stmt *st = stmt_get(c, "DELETE FROM policy WHERE name = $1");
	stmt_text(st, 1, name);
	return stmt_change(st, "policy", err);
}

enum rc db_policy_each(struct db_conn *c, bool (*visit)(void *arg, const struct policy *p),
	void *arg, struct err *err) {
	auto_stmt struct stmt *st =
		stmt_get(c, "SELECT " POLICY_COLUMNS " FROM policy ORDER BY name");
	enum rc rc;
	bool row;
	while ((rc = stmt_next(st, &row, err)) == RC_OK && row) {
		struct policy p;
		read_policy(st, &p);
		if (!visit(arg, &p))
			break;
	}
	return rc;
}
