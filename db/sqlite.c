#include "db/sqlite.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "model/quality.h"

#define STATEMENTS_MAX 48

struct stmt {
	struct db_conn *conn;
	const char *sql; /* NULL: the place is free */
	sqlite3_stmt *handle;
	bool busy;
	uint64_t used; /* when last, by the connection's count */
};

/* Of transactions. Made at the start, so that none is left open where memory is out. */
enum bound { BOUND_BEGIN, BOUND_COMMIT, BOUND_ROLLBACK, BOUND_COUNT_ };

struct db_conn {
	sqlite3 *handle;
	void *owner;
	struct conn_fault *fault;
	bool writer;
	bool in_service;          /* past opening and migrating */
	char name[64];            /* of the file, for messages */
	struct err failure;       /* what lost the running transaction */
	struct err prepare_error; /* of broken */
	struct stmt broken;       /* stands for a statement that could not be prepared */
	uint64_t clock;
	sqlite3_stmt *bounds[BOUND_COUNT_];
	struct stmt statements[STATEMENTS_MAX];
};

enum aftermath {
	GOES_ON, /* the statement is undone, its transaction goes on */
	LOST,    /* so is the transaction */
	BROKEN,  /* likewise, and the file is to blame: RC_STORE to who writes in service */
};

/* Extended codes first: the first match counts, and a plain code matches all of its kind. */
static const struct {
	int code;
	enum rc rc;
	enum aftermath then;
} codes[] = {
	{SQLITE_CONSTRAINT_UNIQUE, RC_EXISTS, GOES_ON},
	{SQLITE_CONSTRAINT_PRIMARYKEY, RC_EXISTS, GOES_ON},
	{SQLITE_CONSTRAINT_ROWID, RC_EXISTS, GOES_ON},
	{SQLITE_CONSTRAINT_FOREIGNKEY, RC_NOT_FOUND, GOES_ON},
	{SQLITE_CONSTRAINT, RC_INVALID, GOES_ON},
	{SQLITE_TOOBIG, RC_TOO_LARGE, GOES_ON},
	{SQLITE_BUSY_SNAPSHOT, RC_CONFLICT, LOST},
	{SQLITE_BUSY, RC_TIMEOUT, BROKEN},
	{SQLITE_LOCKED, RC_TIMEOUT, BROKEN},
	{SQLITE_FULL, RC_NO_SPACE, LOST},
	{SQLITE_CORRUPT, RC_CORRUPT, BROKEN},
	{SQLITE_NOTADB, RC_CORRUPT, BROKEN},
	{SQLITE_NOMEM, RC_NOMEM, LOST},
	{SQLITE_IOERR_NOMEM, RC_NOMEM, LOST},
	{SQLITE_IOERR, RC_IO, BROKEN},
	{SQLITE_CANTOPEN, RC_IO, BROKEN},
	{SQLITE_PERM, RC_FORBIDDEN, BROKEN},
	{SQLITE_READONLY, RC_FORBIDDEN, BROKEN},
	{SQLITE_INTERRUPT, RC_CANCELLED, LOST},
};

/* Fills err from the last error and remembers one that the transaction does not survive. */
static enum rc fail(struct db_conn *c, int code, struct err *err) {
	enum rc rc = RC_INTERNAL;
	enum aftermath then = LOST;
	for (size_t i = 0; i < array_len(codes); i++) {
		if (codes[i].code == code || codes[i].code == (code & 0xff)) {
			rc = codes[i].rc;
			then = codes[i].then;
			break;
		}
	}
	/* A full disk shows as an I/O error where the WAL's index had to grow. */
	if (rc == RC_IO && sqlite3_system_errno(c->handle) == ENOSPC)
		rc = RC_NO_SPACE;
	else if (then == BROKEN && c->writer && c->in_service)
		rc = RC_STORE;

	struct err e;
	err_set(&e, rc, "%s: %s", c->name, sqlite3_errmsg(c->handle));
	if (then != GOES_ON && c->failure.rc == RC_OK)
		c->failure = e;
	if (err)
		*err = e;
	return rc;
}

static enum rc fail_again(const struct err *earlier, struct err *err) {
	if (err)
		*err = *earlier;
	return earlier->rc;
}

/* A fault that a test ordered for this write. */
static enum rc injected(struct db_conn *c, struct err *err) {
	int n = atomic_load(&c->fault->countdown);
	if (n == 0)
		return RC_OK;
	if (n > 1) {
		atomic_store(&c->fault->countdown, n - 1);
		return RC_OK;
	}
	const enum rc rc = (enum rc)atomic_load(&c->fault->rc);
	err_set(&c->failure, rc, "%s: injected fault", c->name);
	return fail_again(&c->failure, err);
}

/* --- connections ------------------------------------------------------------------------------ */

enum rc conn_exec(struct db_conn *c, const char *sql, struct err *err) {
	const int code = sqlite3_exec(c->handle, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? RC_OK : fail(c, code, err);
}

static int copy_first(void *out, int n, char **values, unused_arg char **names) {
	if (n > 0 && values[0] && *(char *)out == '\0')
		str_copy(out, 128, values[0]);
	return 0;
}

/* The first column of the first row of a pragma. */
static enum rc ask(struct db_conn *c, const char *sql, char out[128], struct err *err) {
	out[0] = '\0';
	const int code = sqlite3_exec(c->handle, sql, copy_first, out, NULL);
	return code == SQLITE_OK ? RC_OK : fail(c, code, err);
}

/* Caches are small, since many connections are open at once and rows are few and short. The log may
 * grow to what changing some hundred drives at once takes: checkpoints are the timer's then, and no
 * change waits for one. */
static enum rc set_up(struct db_conn *c, const struct conn_options *o, struct err *err) {
	char sql[256], mode[128];
	snprintf(sql, sizeof(sql),
		"PRAGMA synchronous = %s; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"
		"PRAGMA cache_size = -%d; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
		"PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 16777216;"
		"PRAGMA query_only = %s;",
		o->full_sync ? "FULL" : "NORMAL", o->writer ? 1024 : 256, o->writer ? "OFF" : "ON");
	enum rc rc = conn_exec(c, sql, err);
	if (rc == RC_OK)
		rc = ask(c, o->writer ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode", mode,
			err);
	if (rc == RC_OK && strcmp(mode, "wal") != 0)
		rc = err_set(
			err, RC_UNSUPPORTED, "%s: no write-ahead log here (%s)", c->name, mode);
	return rc;
}

static enum rc prepare_bounds(struct db_conn *c, struct err *err) {
	const char *const sql[BOUND_COUNT_] = {
		[BOUND_BEGIN] = c->writer ? "BEGIN IMMEDIATE" : "BEGIN",
		[BOUND_COMMIT] = "COMMIT",
		[BOUND_ROLLBACK] = "ROLLBACK",
	};
	for (size_t i = 0; i < BOUND_COUNT_; i++) {
		const int code = sqlite3_prepare_v3(
			c->handle, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &c->bounds[i], NULL);
		if (code != SQLITE_OK)
			return fail(c, code, err);
	}
	return RC_OK;
}

static enum rc run_bound(struct db_conn *c, enum bound b, struct err *err) {
	sqlite3_step(c->bounds[b]);
	const int code = sqlite3_reset(c->bounds[b]);
	return code == SQLITE_OK ? RC_OK : fail(c, code, err);
}

enum rc conn_open(const struct conn_options *o, struct db_conn **out, struct err *err) {
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		(o->writer ? SQLITE_OPEN_CREATE : 0);
	struct db_conn *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, RC_NOMEM, "%s: out of memory", o->path);
	c->owner = o->owner;
	c->fault = o->fault;
	c->writer = o->writer;
	const char *slash = strrchr(o->path, '/');
	str_copy(c->name, sizeof(c->name), slash ? slash + 1 : o->path);

	const int code = sqlite3_open_v2(o->path, &c->handle, flags, NULL);
	enum rc rc = code == SQLITE_OK ? RC_OK : fail(c, code, err);
	if (rc == RC_OK) {
		sqlite3_busy_timeout(
			c->handle, o->busy_ms > INT32_MAX ? INT32_MAX : (int)o->busy_ms);
		rc = set_up(c, o, err);
	}
	if (rc == RC_OK)
		rc = prepare_bounds(c, err);
	if (rc != RC_OK) {
		conn_close(c);
		return rc;
	}
	*out = c;
	return RC_OK;
}

void conn_close(struct db_conn *c) {
	if (!c)
		return;
	for (size_t i = 0; i < STATEMENTS_MAX; i++)
		sqlite3_finalize(c->statements[i].handle);
	for (size_t i = 0; i < BOUND_COUNT_; i++)
		sqlite3_finalize(c->bounds[i]);
	sqlite3_close(c->handle);
	free(c);
}

void *conn_owner(const struct db_conn *c) {
	return c->owner;
}

void conn_serve(struct db_conn *c) {
	c->in_service = true;
}

bool conn_is_writer(const struct db_conn *c) {
	return c->writer;
}

enum rc conn_check(struct db_conn *c, struct err *err) {
	char verdict[128];
	enum rc rc = ask(c, "PRAGMA quick_check(1)", verdict, err);
	if (rc == RC_OK && strcmp(verdict, "ok") != 0)
		rc = err_set(err, RC_CORRUPT, "%s: %s", c->name, verdict);
	return rc;
}

enum rc conn_begin(struct db_conn *c, struct err *err) {
	conn_rollback(c);
	return run_bound(c, BOUND_BEGIN, err);
}

enum rc conn_commit(struct db_conn *c, struct err *err) {
	enum rc rc = c->failure.rc != RC_OK ? fail_again(&c->failure, err) : injected(c, err);
	if (rc == RC_OK)
		rc = run_bound(c, BOUND_COMMIT, err);
	if (rc != RC_OK)
		conn_rollback(c);
	return rc;
}

/* After some failures SQLite has rolled back by itself. */
void conn_rollback(struct db_conn *c) {
	if (!sqlite3_get_autocommit(c->handle))
		(void)run_bound(c, BOUND_ROLLBACK, NULL);
	c->failure.rc = RC_OK;
}

const struct err *conn_failure(const struct db_conn *c) {
	return &c->failure;
}

void conn_checkpoint(struct db_conn *c) {
	sqlite3_wal_checkpoint_v2(c->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* --- statements ------------------------------------------------------------------------------- */

/* A place for a new statement: a free one, else the one that was not used for the longest time. */
static struct stmt *find_place(struct db_conn *c) {
	struct stmt *best = NULL;
	for (size_t i = 0; i < STATEMENTS_MAX; i++) {
		struct stmt *st = &c->statements[i];
		if (!st->sql)
			return st;
		if (!st->busy && (!best || st->used < best->used))
			best = st;
	}
	return best;
}

static struct stmt *find_cached(struct db_conn *c, const char *sql) {
	for (size_t i = 0; i < STATEMENTS_MAX; i++) {
		if (c->statements[i].sql == sql && !c->statements[i].busy)
			return &c->statements[i];
	}
	return NULL;
}

static struct stmt *prepare(struct db_conn *c, const char *sql) {
	struct stmt *st = find_place(c);
	c->broken.conn = c;
	if (!st) {
		err_set(&c->prepare_error, RC_FULL, "%s: too many statements at once", c->name);
		return &c->broken;
	}
	sqlite3_finalize(st->handle);
	*st = (struct stmt){.conn = c};
	const int code = sqlite3_prepare_v3(
		c->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &st->handle, NULL);
	if (code != SQLITE_OK) {
		fail(c, code, &c->prepare_error);
		return &c->broken;
	}
	st->sql = sql;
	return st;
}

struct stmt *stmt_get(struct db_conn *c, const char *sql) {
	struct stmt *st = find_cached(c, sql);
	if (!st)
		st = prepare(c, sql);
	st->busy = true;
	st->used = ++c->clock;
	return st;
}

void stmt_put(struct stmt *st) {
	if (!st || !st->handle)
		return;
	sqlite3_reset(st->handle);
	/* What was bound by reference is gone after this. */
	sqlite3_clear_bindings(st->handle);
	st->busy = false;
}

/* A failed bind leaves a parameter NULL and is out of memory or a bug: the step must not run. */
static void check_bind(struct stmt *st, int code) {
	if (st->handle && code != SQLITE_OK)
		fail(st->conn, code, &st->conn->failure);
}

void stmt_int(struct stmt *st, int i, int64_t v) {
	check_bind(st, sqlite3_bind_int64(st->handle, i, v));
}

void stmt_opt(struct stmt *st, int i, int64_t v) {
	if (v != NONE)
		stmt_int(st, i, v);
}

void stmt_real(struct stmt *st, int i, double v) {
	check_bind(st, sqlite3_bind_double(st->handle, i, v));
}

void stmt_text(struct stmt *st, int i, const char *v) {
	check_bind(st, sqlite3_bind_text(st->handle, i, v, -1, SQLITE_STATIC));
}

void stmt_blob(struct stmt *st, int i, const void *v, size_t len) {
	check_bind(st, sqlite3_bind_blob64(st->handle, i, v, len, SQLITE_STATIC));
}

enum rc stmt_next(struct stmt *st, bool *row, struct err *err) {
	struct db_conn *c = st->conn;
	*row = false;
	if (!st->handle)
		return fail_again(&c->prepare_error, err);
	/* SQLite may have rolled back by itself: another write would stand alone. */
	if (c->failure.rc != RC_OK)
		return fail_again(&c->failure, err);
	if (!sqlite3_stmt_readonly(st->handle) && !sqlite3_stmt_busy(st->handle)) {
		const enum rc rc = injected(c, err);
		if (rc != RC_OK)
			return rc;
	}
	const int code = sqlite3_step(st->handle);
	*row = code == SQLITE_ROW;
	return code == SQLITE_ROW || code == SQLITE_DONE ? RC_OK : fail(c, code, err);
}

enum rc stmt_one(struct stmt *st, const char *what, struct err *err) {
	bool row;
	enum rc rc = stmt_next(st, &row, err);
	if (rc == RC_OK && !row)
		rc = err_set(err, RC_NOT_FOUND, "no such %s", what);
	return rc;
}

enum rc stmt_run(struct stmt *st, int *changed, struct err *err) {
	bool row = true;
	enum rc rc = RC_OK;
	while (rc == RC_OK && row)
		rc = stmt_next(st, &row, err);
	if (changed)
		*changed = rc == RC_OK ? sqlite3_changes(st->conn->handle) : 0;
	return rc;
}

enum rc stmt_change(struct stmt *st, const char *what, struct err *err) {
	int changed;
	enum rc rc = stmt_run(st, &changed, err);
	if (rc == RC_OK && changed == 0)
		rc = err_set(err, RC_NOT_FOUND, "no such %s", what);
	return rc;
}

enum rc stmt_damaged(struct stmt *st, struct err *err) {
	return err_set(err, RC_CORRUPT, "%s: a row makes no sense", st->conn->name);
}

int64_t col_int(struct stmt *st, int i) {
	return sqlite3_column_int64(st->handle, i);
}

int64_t col_opt(struct stmt *st, int i) {
	return sqlite3_column_type(st->handle, i) == SQLITE_NULL ? NONE : col_int(st, i);
}

double col_real(struct stmt *st, int i) {
	return sqlite3_column_double(st->handle, i);
}

const char *col_text(struct stmt *st, int i) {
	return (const char *)sqlite3_column_text(st->handle, i);
}

char *col_lend(struct stmt *st, int i) {
	return (char *)(uintptr_t)col_text(st, i);
}

void col_copy(struct stmt *st, int i, char *dst, size_t size) {
	const char *text = col_text(st, i);
	str_copy(dst, size, text ? text : "");
}

const void *col_blob(struct stmt *st, int i, size_t *len) {
	const void *blob = sqlite3_column_blob(st->handle, i);
	*len = (size_t)sqlite3_column_bytes(st->handle, i);
	return blob;
}
