/*
 * The configuration: one table of keys, from which the file, the environment, the flags, --help
 * and the manual are made. Later sources win: defaults, file, environment, flags.
 */
#ifndef DRIVEWATT_SERVER_CONFIG_H
#define DRIVEWATT_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/rc.h"
#include "core/remote.h"

#define CONFIG_TEXT_SIZE 256
#define CONFIG_LIST_MAX 64

struct config_list {
	unsigned count;
	unsigned source; /* the source that filled it: a later one replaces the whole list */
	char items[CONFIG_LIST_MAX][CONFIG_TEXT_SIZE];
};

struct config {
	char config[CONFIG_TEXT_SIZE];
	struct config_list listen;
	char data_dir[CONFIG_TEXT_SIZE];
	char user[CONFIG_TEXT_SIZE];
	char log_level[CONFIG_TEXT_SIZE];
	char secret_key_file[CONFIG_TEXT_SIZE];
	char admin_password_file[CONFIG_TEXT_SIZE];

	char tls_cert[CONFIG_TEXT_SIZE];
	char tls_key[CONFIG_TEXT_SIZE];
	bool tls_self_signed;
	bool allow_plaintext;

	bool observe_only;
	bool allow_destructive;
	bool allow_in_use;
	struct config_list target;
	char fio[CONFIG_TEXT_SIZE];
	char dcmi[CONFIG_TEXT_SIZE];
	char sysfs[CONFIG_TEXT_SIZE];

	char simulate[CONFIG_TEXT_SIZE];
	char simulate_model_file[CONFIG_TEXT_SIZE];
	int64_t simulate_scale;

	int64_t max_runs, max_queued_runs, settle_ms;
	int64_t rescan_ms, reconcile_ms, health_ms, meter_ms;
	int64_t drive_timeout_ms, command_ms, max_lanes;

	int64_t history_workers, history_queue;
	int64_t hashers, hash_queue, login_failures;
	int64_t loop_threads, workers, queue, max_connections, max_per_address, max_streams;
	struct config_list trusted_proxy;
	int64_t stranger_timeout_s;
	int64_t heartbeat_ms, idle_timeout_s, drain_ms, cache_bytes;
	bool gzip, public_metrics, require_if_match;

	char remote_url[CONFIG_TEXT_SIZE];
	bool remote_plaintext;
	char remote_username[CONFIG_TEXT_SIZE];
	char remote_password_file[CONFIG_TEXT_SIZE];
	char remote_token_file[CONFIG_TEXT_SIZE];
	char remote_ca_file[CONFIG_TEXT_SIZE];
	struct config_list remote_label;
	int64_t remote_interval_ms, remote_keep_ms, remote_spool_bytes;

	int64_t event_days, audit_days, run_days, task_days;
	int64_t sample_days, quarter_days, hour_days, other_days;

	/* Of `log-level` and `simulate`, taken apart. */
	enum log_level level;
	unsigned simulate_count;
	char simulate_model[64];
};

/* What the command line asked for besides serving. */
enum config_action {
	CONFIG_SERVE,
	CONFIG_HELP,
	CONFIG_VERSION,
	CONFIG_CHECK,
	CONFIG_DUMP,
	CONFIG_DUMP_MANUAL,
	CONFIG_DUMP_ROUTES,
};

/* Reads all sources. err.field is the key at fault; the text names file and line where there is
 * one. With CONFIG_HELP and CONFIG_VERSION the file is not read. */
enum rc must_check config_load(
	struct config *c, int argc, char **argv, enum config_action *action, struct err *err);
/* The same sources once more, the file from file_fd (-1: by its name). */
enum rc must_check config_reload(const struct config *was, struct config *is, int file_fd, int argc,
	char **argv, struct err *err);
/* Each key whose value is another one; live: it can take effect without a new start. */
void config_changes(const struct config *was, const struct config *is,
	void (*visit)(void *arg, const char *key, bool live), void *arg);
/* Borrows from c; labels is filled and borrowed as well. */
struct remote_config config_remote(const struct config *c, const char *labels[CONFIG_LIST_MAX]);
void config_help(struct buf *out);
/* docs/configuration.md. */
void config_manual(struct buf *out);
/* As a file that config_load reads back to the same configuration. */
void config_dump(const struct config *c, struct buf *out);

#endif
