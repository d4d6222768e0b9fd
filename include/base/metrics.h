/*
 * Counters and gauges of the program itself (not of drives): one static table of names in
 * base/metrics.c, atomics behind it. The other mutable global. Any thread.
 */
#ifndef DRIVEWATT_BASE_METRICS_H
#define DRIVEWATT_BASE_METRICS_H

#include <stdint.h>

#include "base/buf.h"

/* X(enum suffix, metric name, type, help) – the table is the list. */
#define METRICS(X) \
	X(HTTP_REQUESTS, "drivewatt_http_requests_total", "counter", "HTTP requests answered") \
	X(HTTP_FAST, "drivewatt_http_cached_total", "counter", \
		"Requests answered from a cached body on the HTTP loop") \
	X(HTTP_5XX, "drivewatt_http_server_errors_total", "counter", "Answers of class 5xx") \
	X(HTTP_REFUSED, "drivewatt_http_refused_total", "counter", \
		"Requests refused because a queue or limit was full") \
	X(HTTP_CONNECTIONS, "drivewatt_http_connections", "gauge", "Open connections") \
	X(TLS_NOT_AFTER, "drivewatt_tls_certificate_not_after_seconds", "gauge", \
		"When the served certificate ends, as epoch; 0 without one") \
	X(HTTP_STREAMS, "drivewatt_http_streams", "gauge", "Open event streams") \
	X(HTTP_STREAMS_DROPPED, "drivewatt_http_streams_dropped_total", "counter", \
		"Event streams closed because the reader was too slow") \
	X(LIVE_DROPPED, "drivewatt_live_samples_dropped_total", "counter", \
		"Samples not shown on streams because too many came at once") \
	X(AUTH_FAILURES, "drivewatt_auth_failures_total", "counter", "Failed authentications") \
	X(AUTH_THROTTLED, "drivewatt_auth_throttled_total", "counter", \
		"Passwords not checked since their address had sent too many wrong ones") \
	X(AUTH_HASHES, "drivewatt_auth_hashes_total", "counter", "Password hashes computed") \
	X(DB_COMMITS, "drivewatt_db_commits_total", "counter", "Write transactions committed") \
	X(DB_FAILURES, "drivewatt_db_failures_total", "counter", "Write transactions that failed") \
	X(DB_CONTROL_WAL, "drivewatt_db_control_wal_bytes", "gauge", "Size of control.db's WAL") \
	X(DB_SAMPLES_WAL, "drivewatt_db_samples_wal_bytes", "gauge", "Size of samples.db's WAL") \
	X(SAMPLES_IN, "drivewatt_samples_ingested_total", "counter", "Samples taken in") \
	X(SAMPLES_DROPPED, "drivewatt_samples_dropped_total", "counter", \
		"Samples dropped: queue or disk full") \
	X(DRIVE_COMMANDS, "drivewatt_drive_commands_total", "counter", \
		"Admin commands sent to drives") \
	X(DRIVE_TIMEOUTS, "drivewatt_drive_timeouts_total", "counter", \
		"Drive commands without an answer in time") \
	X(DRIVE_DRIFT, "drivewatt_drive_drift_total", "counter", \
		"Times a drive was found out of its effective power state") \
	X(DRIVE_ASLEEP, "drivewatt_drive_asleep_total", "counter", \
		"Periodic readings left out since the drive was in a non-operational state") \
	X(DRIVE_WAKES, "drivewatt_drive_wakes_total", "counter", \
		"Commands that may have ended a drive's sleep, sent since somebody asked for " \
		"them") \
	X(DRIVE_HINTS, "drivewatt_drive_hints_total", "counter", \
		"Times the kernel told of drives that had come, gone or changed") \
	X(DRIVE_HINTS_LOST, "drivewatt_drive_hints_lost_total", "counter", \
		"Times it told more than could be read: all drives were looked at") \
	X(TASKS_OPEN, "drivewatt_tasks_open", "gauge", "Tasks that are not over, of at most 64") \
	X(POLICIES, "drivewatt_policies", "gauge", "Policies, of at most 256") \
	X(PRIV_RESTARTS, "drivewatt_helper_lost_total", "counter", \
		"Times the privileged helper was lost") \
	X(BMC_POLLS, "drivewatt_bmc_polls_total", "counter", "BMC readings taken") \
	X(BMC_FAILURES, "drivewatt_bmc_failures_total", "counter", "BMC readings that failed") \
	X(RUNS_STARTED, "drivewatt_benchmarks_started_total", "counter", "Benchmark runs started") \
	X(RUNS_FAILED, "drivewatt_benchmarks_failed_total", "counter", "Benchmark runs failed") \
	X(RUNS_UNRECORDED, "drivewatt_benchmarks_unrecorded", "gauge", \
		"Benchmark runs that are over and wait in memory for the store") \
	X(FIO_ABANDONED, "drivewatt_fio_abandoned", "gauge", \
		"Processes of fio whose run is over but that wait in the kernel for a drive") \
	X(SIM_LATE, "drivewatt_simulator_late_total", "counter", \
		"Answers of simulated drives that left later than their model says") \
	X(REMOTE_SENT, "drivewatt_remote_write_samples_sent_total", "counter", \
		"Samples that the receiver of remote write took") \
	X(REMOTE_REFUSED, "drivewatt_remote_write_samples_refused_total", "counter", \
		"Samples that the receiver of remote write refused for good") \
	X(REMOTE_DROPPED, "drivewatt_remote_write_samples_dropped_total", "counter", \
		"Samples not sent: queue or spool full, too old, or not kept on disk") \
	X(REMOTE_FAILURES, "drivewatt_remote_write_failures_total", "counter", \
		"Requests of remote write that failed and are sent again") \
	X(REMOTE_SPOOL_BYTES, "drivewatt_remote_write_spool_bytes", "gauge", \
		"What waits on disk for the receiver of remote write") \
	X(REMOTE_SPOOL_SAMPLES, "drivewatt_remote_write_spool_samples", "gauge", \
		"Samples that wait on disk for the receiver of remote write") \
	X(EVENTS, "drivewatt_events_total", "counter", "Events recorded")

enum metric {
#define METRIC_ENUM_(id, name, type, help) METRIC_##id,
	METRICS(METRIC_ENUM_)
#undef METRIC_ENUM_
		METRIC_COUNT_
};

void metric_add(enum metric m, int64_t n);
void metric_set(enum metric m, int64_t v);
int64_t metric_get(enum metric m);
/* Appends all in Prometheus text format 0.0.4, HELP and TYPE included. */
void metrics_render(struct buf *out);

#endif
