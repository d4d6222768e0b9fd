#include "db/migrate.h"

/*
 * Enums are kept by name, so that a new one may stand anywhere. Times are epoch milliseconds.
 * Documents of runs have a table of their own: a row of progress is rewritten every second.
 */

#define WORKLOAD_FIELDS \
	"pattern TEXT NOT NULL, block_bytes INTEGER NOT NULL, iodepth INTEGER NOT NULL," \
	"jobs INTEGER NOT NULL, read_pct INTEGER NOT NULL, size_bytes INTEGER NOT NULL," \
	"rate_bytes_per_s INTEGER NOT NULL, direct INTEGER NOT NULL,"

static const char *const migrations[] = {
	/* 1 */
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"

	"CREATE TABLE account (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL,"
	"enabled INTEGER NOT NULL, password_hash TEXT NOT NULL, created_ms INTEGER NOT NULL,"
	"config_version INTEGER NOT NULL) STRICT;"

	"CREATE TABLE token (id TEXT PRIMARY KEY,"
	"account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE, name TEXT NOT NULL,"
	"role TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, created_ms INTEGER NOT NULL,"
	"expires_ms INTEGER) STRICT;"
	"CREATE INDEX token_account ON token (account_id, id);"

	"CREATE TABLE drive (id TEXT PRIMARY KEY, model TEXT NOT NULL, serial TEXT NOT NULL,"
	"labels TEXT NOT NULL, config_version INTEGER NOT NULL, first_seen_ms INTEGER NOT NULL,"
	"last_seen_ms INTEGER NOT NULL) STRICT;"

	/* A wish may come before its drive was ever recorded: no reference. */
	"CREATE TABLE claim (id TEXT PRIMARY KEY, drive_id TEXT NOT NULL, kind TEXT NOT NULL,"
	"owner TEXT NOT NULL, state INTEGER NOT NULL, allow_non_operational INTEGER NOT NULL,"
	"limit_mw INTEGER, created_ms INTEGER NOT NULL, expires_ms INTEGER,"
	"UNIQUE (drive_id, kind, owner)) STRICT;"

	"CREATE TABLE workload (name TEXT PRIMARY KEY," WORKLOAD_FIELDS
	"config_version INTEGER NOT NULL, CHECK (name <> '')) STRICT;"

	"CREATE TABLE run (id TEXT PRIMARY KEY, state TEXT NOT NULL, owner TEXT NOT NULL,"
	"created_ms INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER, progress REAL NOT NULL,"
	"reason TEXT NOT NULL, workload TEXT NOT NULL, builtin INTEGER NOT NULL," WORKLOAD_FIELDS
	"power_state INTEGER NOT NULL, runtime_s INTEGER NOT NULL, ramp_s INTEGER NOT NULL,"
	"max_write_bytes INTEGER NOT NULL, override_signature INTEGER NOT NULL,"
	"labels TEXT NOT NULL, pid INTEGER NOT NULL DEFAULT 0,"
	"start_ticks INTEGER NOT NULL DEFAULT 0) STRICT;"
	"CREATE INDEX run_state ON run (state, id);"

	"CREATE TABLE run_drive (run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,"
	"position INTEGER NOT NULL, drive_id TEXT NOT NULL, PRIMARY KEY (run_id, position)) STRICT;"
	"CREATE INDEX run_drive_drive ON run_drive (drive_id, run_id);"

	"CREATE TABLE run_confirmation (run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,"
	"kind TEXT NOT NULL, position INTEGER NOT NULL, serial TEXT NOT NULL,"
	"PRIMARY KEY (run_id, kind, position)) STRICT;"

	"CREATE TABLE run_document (run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,"
	"kind TEXT NOT NULL, text_bytes INTEGER NOT NULL, body BLOB NOT NULL,"
	"PRIMARY KEY (run_id, kind)) STRICT;"

	"CREATE TABLE host (id TEXT PRIMARY KEY, name TEXT NOT NULL, labels TEXT NOT NULL,"
	"local INTEGER NOT NULL, config_version INTEGER NOT NULL, bmc INTEGER NOT NULL,"
	"url TEXT NOT NULL, username TEXT NOT NULL, password_sealed TEXT, vendor TEXT NOT NULL,"
	"tls TEXT NOT NULL, allow_plaintext INTEGER NOT NULL, ca_file TEXT NOT NULL,"
	"fingerprint_sha256 TEXT NOT NULL) STRICT;"

	"CREATE TABLE baseline (host_id TEXT NOT NULL REFERENCES host (id) ON DELETE CASCADE,"
	"kind TEXT NOT NULL, source TEXT NOT NULL, power_mw INTEGER NOT NULL, uncertainty_mw "
	"INTEGER,"
	"at_ms INTEGER NOT NULL, PRIMARY KEY (host_id, kind)) STRICT;"

	"CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL,"
	"type TEXT NOT NULL, object TEXT NOT NULL, actor TEXT NOT NULL, data TEXT) STRICT;"
	"CREATE INDEX event_at ON event (at_ms);"

	"CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL,"
	"actor TEXT NOT NULL, address TEXT NOT NULL, request_id TEXT NOT NULL,"
	"action TEXT NOT NULL, object TEXT NOT NULL, outcome TEXT NOT NULL, detail TEXT) STRICT;"
	"CREATE INDEX audit_at ON audit (at_ms);"

	"CREATE TABLE idempotency (account_id TEXT NOT NULL, method TEXT NOT NULL,"
	"path TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL,"
	"location TEXT NOT NULL, created_ms INTEGER NOT NULL,"
	"PRIMARY KEY (account_id, method, path, key)) STRICT;"
	"CREATE INDEX idempotency_created ON idempotency (created_ms);",

	/* policies */
	"CREATE TABLE policy (name TEXT PRIMARY KEY, priority INTEGER NOT NULL,"
	"model TEXT NOT NULL, host TEXT NOT NULL, slot TEXT NOT NULL, labels TEXT NOT NULL,"
	"created_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL, config_version INTEGER NOT NULL,"
	"state INTEGER NOT NULL, allow_non_operational INTEGER NOT NULL, limit_mw INTEGER,"
	"CHECK (name <> '')) STRICT;",

	/* ciphers of a BMC */
	"ALTER TABLE host ADD COLUMN ciphers TEXT NOT NULL DEFAULT '';",

	/* tasks */
	"CREATE TABLE task (id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL,"
	"cancelling INTEGER NOT NULL, account_id TEXT NOT NULL, actor TEXT NOT NULL,"
	"role TEXT NOT NULL, address TEXT NOT NULL, request_id TEXT NOT NULL,"
	"created_ms INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER) STRICT;"
	"CREATE INDEX task_state ON task (state, id);"
	"CREATE INDEX task_ended ON task (ended_ms);"

	"CREATE TABLE task_target (task_id TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,"
	"position INTEGER NOT NULL, object TEXT NOT NULL, state TEXT NOT NULL,"
	"outcome TEXT NOT NULL, nvme_status INTEGER NOT NULL, reason TEXT NOT NULL,"
	"result TEXT NOT NULL, started_ms INTEGER, ended_ms INTEGER,"
	"PRIMARY KEY (task_id, position)) STRICT;"

	"CREATE TABLE power_change (task_id TEXT PRIMARY KEY REFERENCES task (id)"
	" ON DELETE CASCADE, clear INTEGER NOT NULL, state INTEGER NOT NULL,"
	"allow_non_operational INTEGER NOT NULL, limit_mw INTEGER) STRICT;",
	/* when a change's wish ends */
	"ALTER TABLE power_change ADD COLUMN expires_ms INTEGER;",
};

const struct schema schema_control = {
	.application_id = 0x44570001,
	.name = "control",
	.migrations = migrations,
	.count = array_len(migrations),
};
