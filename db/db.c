#include "db/db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "db/migrate.h"
#include "db/sqlite.h"

#define READERS_MAX 16
#define CHECK_MAX_BYTES (64 * 1024 * 1024)

/* What differs between the two files. */
static const struct {
	const struct schema *schema;
	bool full_sync;
	enum metric wal_gauge;
} kinds[] = {
	[DB_CONTROL] = {&schema_control, true, METRIC_DB_CONTROL_WAL},
	[DB_SAMPLES] = {&schema_samples, false, METRIC_DB_SAMPLES_WAL},
};

struct db {
	char *path;
	enum db_file file;
	int64_t busy_ms;
	struct conn_fault fault;
	struct db_conn *writer;
	bool dry; /* the transaction that runs is never to be kept: its thread's own */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t reader_back;
	pthread_cond_t turn_over;
	struct db_conn *idle[READERS_MAX]; /* a stack, so that few caches grow warm */
	unsigned idle_count, readers;
	uint64_t next_ticket, serving; /* writers wait in order of arrival */
	bool healthy;
	enum rc last_rc;
	int64_t commits, failures;
	char last_error[160];
};

/* --- opening ---------------------------------------------------------------------------------- */

/* Makes the file with its mode, as it holds password hashes. An existing one is not even opened:
 * closing a descriptor of it would drop the locks of this process. */
static enum rc make_file(const char *path, struct err *err) {
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	else if (errno != EEXIST)
		return err_errno(err, errno, path);
	return RC_OK;
}

static int64_t file_size(const char *path, const char *suffix) {
	char name[4096];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return stat(name, &st) == 0 ? (int64_t)st.st_size : 0;
}

static enum rc open_conn(struct db *db, bool writer, struct db_conn **out, struct err *err) {
	const struct conn_options o = {
		.path = db->path,
		.writer = writer,
		.full_sync = kinds[db->file].full_sync,
		.busy_ms = db->busy_ms,
		.fault = &db->fault,
		.owner = db,
	};
	return conn_open(&o, out, err);
}

static enum rc open_all(struct db *db, unsigned readers, struct err *err) {
	enum rc rc = make_file(db->path, err);
	if (rc == RC_OK)
		rc = open_conn(db, true, &db->writer, err);
	if (rc == RC_OK && file_size(db->path, "") <= CHECK_MAX_BYTES)
		rc = conn_check(db->writer, err);
	if (rc == RC_OK)
		rc = migrate(db->writer, kinds[db->file].schema, err);
	if (rc == RC_OK)
		conn_serve(db->writer);
	while (rc == RC_OK && db->readers < readers) {
		rc = open_conn(db, false, &db->idle[db->readers], err);
		if (rc == RC_OK)
			db->idle_count = ++db->readers;
	}
	return rc;
}

/* One sentence that says which file, what is wrong and, where one can, what to do. */
static void explain(const struct db *db, enum rc rc, struct err *err) {
	if (!err)
		return;
	const struct err cause = *err;
	if (rc == RC_CORRUPT)
		err_set(err, rc, "%.120s is damaged: restore a backup or move it away (%.80s)",
			db->path, cause.msg);
	else if (rc == RC_UNSUPPORTED)
		err_set(err, rc, "%.100s: %.140s", db->path, cause.msg);
}

struct db *db_open(const struct db_config *config, struct err *err) {
	if (config->readers < 1 || config->readers > READERS_MAX) {
		err_set(err, RC_INVALID, "a database has 1 to %d readers", READERS_MAX);
		return NULL;
	}
	struct db *db = calloc(1, sizeof(*db));
	char *path = strdup(config->path);
	if (!db || !path) {
		err_set(err, RC_NOMEM, "%s: out of memory", config->path);
		free(db);
		free(path);
		return NULL;
	}
	db->path = path;
	db->file = config->file;
	db->busy_ms = config->busy_ms;
	db->healthy = true;
	pthread_mutex_init(&db->lock, NULL);
	cond_init(&db->reader_back);
	cond_init(&db->turn_over);
	const enum rc rc = open_all(db, config->readers, err);
	if (rc != RC_OK) {
		explain(db, rc, err);
		db_close(db);
		return NULL;
	}
	return db;
}

/* The last connection to close moves the WAL into the file. */
void db_close(struct db *db) {
	if (!db)
		return;
	assert(db->idle_count == db->readers && db->next_ticket == db->serving);
	for (unsigned i = 0; i < db->idle_count; i++)
		conn_close(db->idle[i]);
	conn_close(db->writer);
	pthread_cond_destroy(&db->turn_over);
	pthread_cond_destroy(&db->reader_back);
	pthread_mutex_destroy(&db->lock);
	free(db->path);
	free(db);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* NULL when none came back in time. */
static struct db_conn *take_reader(struct db *db) {
	const struct timespec deadline = thread_deadline(db->busy_ms);
	struct db_conn *c = NULL;
	pthread_mutex_lock(&db->lock);
	while (db->idle_count == 0 && cond_wait_until(&db->reader_back, &db->lock, &deadline))
		;
	if (db->idle_count > 0)
		c = db->idle[--db->idle_count];
	pthread_mutex_unlock(&db->lock);
	return c;
}

static void give_reader(struct db *db, struct db_conn *c) {
	pthread_mutex_lock(&db->lock);
	db->idle[db->idle_count++] = c;
	pthread_cond_signal(&db->reader_back);
	pthread_mutex_unlock(&db->lock);
}

enum rc db_read_begin(struct db *db, struct db_conn **out, struct err *err) {
	struct db_conn *c = take_reader(db);
	*out = NULL;
	if (!c)
		return err_set(err, RC_FULL, "all %u readers of the store are busy", db->readers);
	const enum rc rc = conn_begin(c, err);
	if (rc != RC_OK) {
		give_reader(db, c);
		return rc;
	}
	*out = c;
	return RC_OK;
}

void db_read_end(struct db_conn *c) {
	if (!c)
		return;
	conn_rollback(c);
	give_reader(conn_owner(c), c);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void wait_turn(struct db *db) {
	pthread_mutex_lock(&db->lock);
	const uint64_t ticket = db->next_ticket++;
	while (db->serving != ticket)
		pthread_cond_wait(&db->turn_over, &db->lock);
	pthread_mutex_unlock(&db->lock);
}

/* Passes the writer on. failure: of the transaction that ends, NULL none was asked of it. */
static void end_turn(struct db *db, bool committed, const struct err *failure) {
	pthread_mutex_lock(&db->lock);
	db->serving++;
	pthread_cond_broadcast(&db->turn_over);
	if (committed) {
		db->commits++;
		db->healthy = true;
		db->last_rc = RC_OK;
		db->last_error[0] = '\0';
	} else if (failure) {
		db->failures++;
		db->healthy = false;
		db->last_rc = failure->rc;
		str_copy(db->last_error, sizeof(db->last_error), failure->msg);
	}
	pthread_mutex_unlock(&db->lock);
	if (committed)
		metric_add(METRIC_DB_COMMITS, 1);
	else if (failure)
		metric_add(METRIC_DB_FAILURES, 1);
}

enum rc db_write_begin(struct db *db, struct db_conn **out, struct err *err) {
	struct err e;
	*out = NULL;
	wait_turn(db);
	const enum rc rc = conn_begin(db->writer, &e);
	if (rc != RC_OK) {
		end_turn(db, false, &e);
		if (err)
			*err = e;
		return rc;
	}
	db->dry = false;
	*out = db->writer;
	return RC_OK;
}

enum rc db_write_begin_for(
	struct db *db, const struct actor *who, struct db_conn **out, struct err *err) {
	const enum rc rc = db_write_begin(db, out, err);
	if (rc == RC_OK)
		db->dry = who && who->dry_run;
	return rc;
}

static bool is_dry(struct db_conn *c) {
	const struct db *db = conn_owner(c);
	return db->dry;
}

enum rc db_write_commit(struct db_conn *c, struct err *err) {
	struct err e;
	if (is_dry(c) && conn_failure(c)->rc == RC_OK) {
		db_write_abort(c);
		return RC_OK;
	}
	const enum rc rc = conn_commit(c, &e);
	if (rc != RC_OK && err)
		*err = e;
	end_turn(conn_owner(c), rc == RC_OK, &e);
	return rc;
}

void db_write_abort(struct db_conn *c) {
	if (!c)
		return;
	const struct err failure = *conn_failure(c);
	conn_rollback(c);
	end_turn(conn_owner(c), false, failure.rc != RC_OK ? &failure : NULL);
}

/* --- keeping an eye on it --------------------------------------------------------------------- */

void db_status_get(struct db *db, struct db_status *out) {
	pthread_mutex_lock(&db->lock);
	*out = (struct db_status){
		.healthy = db->healthy,
		.last_rc = db->last_rc,
		.schema_version = kinds[db->file].schema->count,
		.commits = db->commits,
		.failures = db->failures,
	};
	str_copy(out->last_error, sizeof(out->last_error), db->last_error);
	pthread_mutex_unlock(&db->lock);
	out->file_bytes = file_size(db->path, "");
	out->wal_bytes = file_size(db->path, "-wal");
}

/* By a reader's connection, so that no change waits behind the copying. */
void db_checkpoint(struct db *db) {
	struct db_conn *c = take_reader(db);
	if (c) {
		conn_checkpoint(c);
		give_reader(db, c);
	}
	metric_set(kinds[db->file].wal_gauge, file_size(db->path, "-wal"));
}

void db_fail_nth(struct db *db, int n, enum rc rc) {
	atomic_store(&db->fault.rc, (int)rc);
	atomic_store(&db->fault.countdown, n);
}
