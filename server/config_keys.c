/* All keys of the configuration and all other flags, in the order of --help and of the manual. */
#include "server/config_impl.h"

#include <stddef.h>

#define AT(member) offsetof(struct config, member)
#define HOUR_MS INT64_C(3600000)
#define DAY_MS INT64_C(86400000)

/* clang-format off */
const struct config_key config_keys[] = {
	{"config", KEY_TEXT, AT(config), 0, 0, "", "FILE", "configuration file; not read unless named"},
	{"listen", KEY_LIST, AT(listen), 0, 0, "127.0.0.1:8484", "ADDR:PORT", "address to serve on, repeatable; port 0 picks one"},
	{"data-dir", KEY_TEXT, AT(data_dir), 0, 0, "/var/lib/drivewatt", "DIR", "where the databases are kept"},
	{"user", KEY_TEXT, AT(user), 0, 0, "drivewatt", "NAME", "account of the network process when started as root: one of its own, which must exist"},
	{"log-level", KEY_TEXT, AT(log_level), 0, 0, "info", "LEVEL", "error, warning, info or debug; read again on SIGHUP"},
	{"secret-key-file", KEY_TEXT, AT(secret_key_file), 0, 0, "", "FILE", "key that seals BMC passwords; empty: secret.key in the data directory"},
	{"admin-password-file", KEY_TEXT, AT(admin_password_file), 0, 0, "", "FILE", "password of the administrator, used at the first start"},

	{"tls-cert", KEY_TEXT, AT(tls_cert), 0, 0, "", "FILE", "certificate chain (PEM); the file is read again on SIGHUP"},
	{"tls-key", KEY_TEXT, AT(tls_key), 0, 0, "", "FILE", "private key (PEM); likewise"},
	{"tls-self-signed", KEY_BOOL, AT(tls_self_signed), 0, 0, "false", "", "make a certificate in the data directory and use it"},
	{"allow-plaintext", KEY_BOOL, AT(allow_plaintext), 0, 0, "false", "", "serve plain HTTP beyond loopback"},

	{"observe-only", KEY_BOOL, AT(observe_only), 0, 0, "false", "", "change no drive and run no benchmark"},
	{"allow-destructive", KEY_BOOL, AT(allow_destructive), 0, 0, "false", "", "permit benchmarks that write, when confirmed by serial number"},
	{"allow-in-use", KEY_BOOL, AT(allow_in_use), 0, 0, "false", "", "permit reading benchmarks on drives in use, when confirmed"},
	{"target", KEY_LIST, AT(target), 0, 0, "", "PATH", "block device or file to benchmark besides NVMe drives, repeatable"},
	{"fio", KEY_TEXT, AT(fio), 0, 0, "/usr/bin/fio", "PATH", "the fio program"},
	{"dcmi", KEY_TEXT, AT(dcmi), 0, 0, "/usr/bin/ipmitool", "PATH", "ipmitool or FreeIPMI's ipmi-dcmi, which reads this machine's watts where its BMC tells none; empty: not to be done"},
	{"sysfs", KEY_TEXT, AT(sysfs), 0, 0, "/sys", "DIR", "where the kernel's /sys is to be found"},

	{"simulate", KEY_TEXT, AT(simulate), 0, 0, "", "N[xMODEL]", "make up N drives instead of serving real ones"},
	{"simulate-model-file", KEY_TEXT, AT(simulate_model_file), 0, 0, "", "FILE", "a model of one's own (JSON)"},
	{"simulate-scale", KEY_INT, AT(simulate_scale), 0, 100000, "0", "N", "slow motion: simulated bytes for each real one; 0: the model's"},

	{"max-runs", KEY_INT, AT(max_runs), 1, 16, "2", "N", "benchmarks at once"},
	{"max-queued-runs", KEY_INT, AT(max_queued_runs), 1, 10000, "256", "N", "benchmarks waiting"},
	{"settle", KEY_MS, AT(settle_ms), 0, DAY_MS, "2s", "TIME", "wait between a power state change and the load"},
	{"rescan", KEY_MS, AT(rescan_ms), 0, DAY_MS, "30s", "TIME", "period of looking for drives, besides when the kernel tells of them; 0: only then and at the start"},
	{"reconcile", KEY_MS, AT(reconcile_ms), 0, DAY_MS, "10s", "TIME", "period of reading power states back"},
	{"health", KEY_MS, AT(health_ms), 0, DAY_MS, "60s", "TIME", "period of reading SMART data and of looking at uses again; 0: never"},
	{"meter", KEY_MS, AT(meter_ms), 100, DAY_MS, "10s", "TIME", "period of reading BMCs"},
	{"drive-timeout", KEY_MS, AT(drive_timeout_ms), 100, HOUR_MS, "5s", "TIME", "how long a request waits for a drive"},
	{"command-timeout", KEY_MS, AT(command_ms), 100, HOUR_MS, "4s", "TIME", "how long the helper waits before it calls a drive unresponsive"},
	{"max-lanes", KEY_INT, AT(max_lanes), 1, 1024, "256", "N", "drives with a command under way at once"},

	{"loop-threads", KEY_INT, AT(loop_threads), 1, 16, "2", "N", "threads of the HTTP loop"},
	{"workers", KEY_INT, AT(workers), 1, 64, "8", "N", "threads that handle requests"},
	{"queue", KEY_INT, AT(queue), 1, 65536, "256", "N", "requests waiting for a worker"},
	{"history-workers", KEY_INT, AT(history_workers), 1, 16, "2", "N", "threads that read histories"},
	{"history-queue", KEY_INT, AT(history_queue), 1, 65536, "32", "N", "requests for histories waiting for one"},
	{"hashers", KEY_INT, AT(hashers), 1, 16, "2", "N", "threads that check passwords, each with 64 MiB while it does"},
	{"hash-queue", KEY_INT, AT(hash_queue), 1, 65536, "32", "N", "passwords waiting to be checked"},
	{"login-failures", KEY_INT, AT(login_failures), 0, 1000, "10", "N", "wrong passwords of one address before it must wait; 0: it never must"},
	{"max-connections", KEY_INT, AT(max_connections), 8, 65536, "1024", "N", "connections at once"},
	{"max-per-address", KEY_INT, AT(max_per_address), 0, 65536, "128", "N", "connections of one address, or one IPv6 /64; 0: any number"},
	{"trusted-proxy", KEY_LIST, AT(trusted_proxy), 0, 0, "", "ADDR", "address of a reverse proxy, repeatable: has no such limit, and the last address of its X-Forwarded-For is taken for the client's"},
	{"max-streams", KEY_INT, AT(max_streams), 0, 65536, "128", "N", "event streams at once, a quarter of them for one account"},
	{"heartbeat", KEY_MS, AT(heartbeat_ms), 100, HOUR_MS, "15s", "TIME", "period of comments on an event stream where nothing happens"},
	{"idle-timeout", KEY_INT, AT(idle_timeout_s), 1, 3600, "60", "SECONDS", "until an idle connection is closed"},
	{"stranger-timeout", KEY_INT, AT(stranger_timeout_s), 1, 3600, "10", "SECONDS", "the same until a connection has shown good credentials, for the next request to come whole"},
	{"drain", KEY_MS, AT(drain_ms), 0, HOUR_MS, "15s", "TIME", "how long requests under way have to end when the service stops"},
	{"cache-bytes", KEY_INT, AT(cache_bytes), 0, INT64_C(1) << 30, "8388608", "BYTES", "of cached bodies"},
	{"gzip", KEY_BOOL, AT(gzip), 0, 0, "true", "", "compress bodies for clients that accept it"},
	{"public-metrics", KEY_BOOL, AT(public_metrics), 0, 0, "false", "", "serve /metrics without credentials"},
	{"require-if-match", KEY_BOOL, AT(require_if_match), 0, 0, "false", "", "refuse PUT, PATCH and DELETE of what is there without If-Match (428)"},

	{"remote-write-url", KEY_TEXT, AT(remote_url), 0, 0, "", "URL", "receiver of all samples by Prometheus remote write; empty: none"},
	{"remote-write-plaintext", KEY_BOOL, AT(remote_plaintext), 0, 0, "false", "", "permit http:// for it"},
	{"remote-write-username", KEY_TEXT, AT(remote_username), 0, 0, "", "NAME", "for Basic authentication with it"},
	{"remote-write-password-file", KEY_TEXT, AT(remote_password_file), 0, 0, "", "FILE", "the password, read by the account of the network process for each request"},
	{"remote-write-token-file", KEY_TEXT, AT(remote_token_file), 0, 0, "", "FILE", "a Bearer token instead, read likewise"},
	{"remote-write-ca-file", KEY_TEXT, AT(remote_ca_file), 0, 0, "", "FILE", "authorities for its certificate (PEM); empty: the system's"},
	{"remote-write-label", KEY_LIST, AT(remote_label), 0, 0, "", "NAME=VALUE", "label of every series sent, repeatable; instance and job may be replaced"},
	{"remote-write-interval", KEY_MS, AT(remote_interval_ms), 100, HOUR_MS, "5s", "TIME", "how long samples wait to be sent together"},
	{"remote-write-keep", KEY_MS, AT(remote_keep_ms), 1000, 366 * DAY_MS, "2d", "TIME", "how long samples wait on disk while the receiver is away"},
	{"remote-write-spool-bytes", KEY_INT, AT(remote_spool_bytes), 32768, INT64_C(1) << 40, "268435456", "BYTES", "how many of them wait there; beyond it the oldest are dropped"},

	{"keep-events", KEY_INT, AT(event_days), 1, 36500, "90", "DAYS", "retention of events"},
	{"keep-audit", KEY_INT, AT(audit_days), 1, 36500, "365", "DAYS", "retention of the audit trail"},
	{"keep-benchmarks", KEY_INT, AT(run_days), 1, 36500, "3650", "DAYS", "retention of benchmark results"},
	{"keep-tasks", KEY_INT, AT(task_days), 1, 36500, "90", "DAYS", "retention of tasks, once they are over"},
	{"keep-samples", KEY_INT, AT(sample_days), 1, 36500, "90", "DAYS", "retention of samples, with a minute's figures"},
	{"keep-quarters", KEY_INT, AT(quarter_days), 1, 36500, "730", "DAYS", "retention of figures by a quarter of an hour"},
	{"keep-hours", KEY_INT, AT(hour_days), 1, 36500, "3650", "DAYS", "retention of figures by the hour"},
	{"keep-others", KEY_INT, AT(other_days), 1, 36500, "90", "DAYS", "at most so long the same of what is neither power nor energy"},
};
/* clang-format on */
const size_t config_key_count = array_len(config_keys);

bool config_key_is_live(const struct config_key *k) {
	return k->offset == AT(log_level);
}

const struct config_flag config_actions[] = {
	{"help", CONFIG_HELP, "show this and end"},
	{"version", CONFIG_VERSION, "show the version and end"},
	{"check-config", CONFIG_CHECK, "check the configuration and end"},
	{"dump-config", CONFIG_DUMP, "show the whole configuration as a file and end"},
	{"dump-manual", CONFIG_DUMP_MANUAL,
		"show the manual of the configuration (Markdown) and end"},
	{"dump-routes", CONFIG_DUMP_ROUTES, "show all routes and end"},
};
const size_t config_action_count = array_len(config_actions);
