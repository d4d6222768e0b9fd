#include "server/config.h"

#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

enum key_type { KEY_TEXT, KEY_LIST, KEY_BOOL, KEY_INT, KEY_MS };

struct key {
	const char *name; /* "data-dir": --data-dir, data-dir =, DRIVEWATT_DATA_DIR */
	enum key_type type;
	size_t offset;
	int64_t min, max;
	const char *fallback; /* as it would stand in the file */
	const char *metavar;
	const char *help;
};

#define AT(member) offsetof(struct config, member)
#define DAY_MS INT64_C(86400000)

/* clang-format off */
static const struct key keys[] = {
	{"config", KEY_TEXT, AT(config), 0, 0, "", "FILE", "configuration file; not read unless named"},
	{"listen", KEY_LIST, AT(listen), 0, 0, "127.0.0.1:8484", "ADDR:PORT", "address to serve on, repeatable; port 0 picks one"},
	{"data-dir", KEY_TEXT, AT(data_dir), 0, 0, "/var/lib/drivewatt", "DIR", "where the databases are kept"},
	{"user", KEY_TEXT, AT(user), 0, 0, "", "NAME", "account of the network process when started as root; empty: drivewatt where it exists, else nobody"},
	{"log-level", KEY_TEXT, AT(log_level), 0, 0, "info", "LEVEL", "error, warning, info or debug"},
	{"secret-key-file", KEY_TEXT, AT(secret_key_file), 0, 0, "", "FILE", "key that seals BMC passwords; empty: secret.key in the data directory"},
	{"admin-password-file", KEY_TEXT, AT(admin_password_file), 0, 0, "", "FILE", "password of the administrator, used at the first start"},

	{"tls-cert", KEY_TEXT, AT(tls_cert), 0, 0, "", "FILE", "certificate chain (PEM)"},
	{"tls-key", KEY_TEXT, AT(tls_key), 0, 0, "", "FILE", "private key (PEM)"},
	{"tls-self-signed", KEY_BOOL, AT(tls_self_signed), 0, 0, "false", "", "make a certificate in the data directory and use it"},
	{"allow-plaintext", KEY_BOOL, AT(allow_plaintext), 0, 0, "false", "", "serve plain HTTP beyond loopback"},

	{"observe-only", KEY_BOOL, AT(observe_only), 0, 0, "false", "", "change no drive and run no benchmark"},
	{"allow-destructive", KEY_BOOL, AT(allow_destructive), 0, 0, "false", "", "permit benchmarks that write, when confirmed by serial number"},
	{"allow-in-use", KEY_BOOL, AT(allow_in_use), 0, 0, "false", "", "permit reading benchmarks on drives in use, when confirmed"},
	{"target", KEY_LIST, AT(target), 0, 0, "", "PATH", "block device or file to benchmark besides NVMe drives, repeatable"},
	{"fio", KEY_TEXT, AT(fio), 0, 0, "/usr/bin/fio", "PATH", "the fio program"},

	{"simulate", KEY_TEXT, AT(simulate), 0, 0, "", "N[xMODEL]", "make up N drives instead of serving real ones"},
	{"simulate-model-file", KEY_TEXT, AT(simulate_model_file), 0, 0, "", "FILE", "a model of one's own (JSON)"},
	{"simulate-scale", KEY_INT, AT(simulate_scale), 0, 100000, "0", "N", "slow motion: simulated bytes for each real one; 0: the model's"},

	{"max-runs", KEY_INT, AT(max_runs), 1, 16, "2", "N", "benchmarks at once"},
	{"max-queued-runs", KEY_INT, AT(max_queued_runs), 1, 10000, "256", "N", "benchmarks waiting"},
	{"settle", KEY_MS, AT(settle_ms), 0, DAY_MS, "2s", "TIME", "wait between a power state change and the load"},
	{"rescan", KEY_MS, AT(rescan_ms), 0, DAY_MS, "30s", "TIME", "period of looking for drives"},
	{"reconcile", KEY_MS, AT(reconcile_ms), 0, DAY_MS, "10s", "TIME", "period of reading power states back"},
	{"health", KEY_MS, AT(health_ms), 0, DAY_MS, "60s", "TIME", "period of reading SMART data"},
	{"meter", KEY_MS, AT(meter_ms), 0, DAY_MS, "10s", "TIME", "period of reading BMCs"},
	{"drive-timeout", KEY_MS, AT(drive_timeout_ms), 0, DAY_MS, "5s", "TIME", "how long a request waits for a drive"},
	{"command-timeout", KEY_MS, AT(command_ms), 0, DAY_MS, "4s", "TIME", "how long the helper waits before it calls a drive unresponsive"},
	{"max-lanes", KEY_INT, AT(max_lanes), 1, 1024, "256", "N", "drives with a command under way at once"},

	{"loop-threads", KEY_INT, AT(loop_threads), 1, 16, "2", "N", "threads of the HTTP loop"},
	{"workers", KEY_INT, AT(workers), 1, 64, "8", "N", "threads that handle requests"},
	{"queue", KEY_INT, AT(queue), 1, 65536, "256", "N", "requests waiting for a worker"},
	{"max-connections", KEY_INT, AT(max_connections), 8, 65536, "1024", "N", "connections at once"},
	{"max-per-address", KEY_INT, AT(max_per_address), 0, 65536, "0", "N", "connections of one address; 0: no limit of its own"},
	{"max-streams", KEY_INT, AT(max_streams), 0, 65536, "128", "N", "event streams at once"},
	{"idle-timeout", KEY_INT, AT(idle_timeout_s), 1, 3600, "60", "SECONDS", "until an idle connection is closed"},
	{"cache-bytes", KEY_INT, AT(cache_bytes), 0, INT64_C(1) << 30, "8388608", "BYTES", "of cached bodies"},
	{"gzip", KEY_BOOL, AT(gzip), 0, 0, "true", "", "compress bodies for clients that accept it"},
	{"public-metrics", KEY_BOOL, AT(public_metrics), 0, 0, "false", "", "serve /metrics without credentials"},

	{"keep-events", KEY_INT, AT(event_days), 1, 36500, "90", "DAYS", "retention of events"},
	{"keep-audit", KEY_INT, AT(audit_days), 1, 36500, "365", "DAYS", "retention of the audit trail"},
	{"keep-benchmarks", KEY_INT, AT(run_days), 1, 36500, "3650", "DAYS", "retention of benchmark results"},
	{"keep-samples", KEY_INT, AT(sample_days), 1, 36500, "90", "DAYS", "retention of samples"},
};
/* clang-format on */

static const struct {
	const char *flag;
	enum config_action action;
	const char *help;
} actions[] = {
	{"help", CONFIG_HELP, "show this and end"},
	{"version", CONFIG_VERSION, "show the version and end"},
	{"check-config", CONFIG_CHECK, "check the configuration and end"},
	{"dump-config", CONFIG_DUMP, "show the whole configuration as a file and end"},
	{"dump-routes", CONFIG_DUMP_ROUTES, "show all routes and end"},
};

enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAGS };

static const struct key *key_find(const char *name, size_t len) {
	for (size_t i = 0; i < array_len(keys); i++)
		if (strncmp(keys[i].name, name, len) == 0 && keys[i].name[len] == '\0')
			return &keys[i];
	return NULL;
}

/* --- one value -------------------------------------------------------------------------------- */

static enum rc set_text(char *place, const struct key *k, const char *value, struct err *err) {
	if (!str_copy(place, CONFIG_TEXT_SIZE, value))
		return err_field(
			err, RC_INVALID, k->name, "is longer than %d bytes", CONFIG_TEXT_SIZE - 1);
	return RC_OK;
}

static enum rc add_item(struct config_list *list, const struct key *k, const char *value,
	enum source from, struct err *err) {
	if (list->source != from)
		list->count = 0;
	list->source = from;
	if (value[0] == '\0')
		return RC_OK;
	if (list->count == CONFIG_LIST_MAX)
		return err_field(
			err, RC_INVALID, k->name, "is given more than %d times", CONFIG_LIST_MAX);
	return set_text(list->items[list->count++], k, value, err);
}

static enum rc set_ms(int64_t *place, const struct key *k, const char *value, struct err *err) {
	if (strcmp(value, "0") == 0) {
		*place = 0;
		return RC_OK;
	}
	enum rc rc = parse_duration_ms(value, place, k->name, err);
	if (rc == RC_OK && *place > k->max)
		rc = err_field(err, RC_INVALID, k->name, "is longer than a day");
	return rc;
}

static enum rc set_value(struct config *c, const struct key *k, const char *value, enum source from,
	struct err *err) {
	void *place = (char *)c + k->offset;
	switch (k->type) {
	case KEY_TEXT:
		return set_text(place, k, value, err);
	case KEY_LIST:
		return add_item(place, k, value, from, err);
	case KEY_BOOL:
		return parse_bool(value, place, k->name, err);
	case KEY_INT:
		return parse_i64(value, k->min, k->max, place, k->name, err);
	case KEY_MS:
		return set_ms(place, k, value, err);
	}
	return err_set(err, RC_INTERNAL, "the key table has an unknown type");
}

/* --- sources ---------------------------------------------------------------------------------- */

static enum rc load_defaults(struct config *c, struct err *err) {
	for (size_t i = 0; i < array_len(keys); i++) {
		enum rc rc = set_value(c, &keys[i], keys[i].fallback, FROM_DEFAULT, err);
		if (rc != RC_OK)
			return rc;
	}
	return RC_OK;
}

struct file_ctx {
	struct config *c;
	struct err *err;
	enum rc rc;
};

/* inih's handler: 0 stops with the line's number. */
static int file_value(void *arg, const char *section, const char *name, const char *value) {
	struct file_ctx *f = arg;
	const struct key *k = section[0] ? NULL : key_find(name, strlen(name));
	if (!k || strcmp(name, "config") == 0)
		f->rc = err_field(f->err, RC_INVALID, name, "is not a key of the configuration");
	else
		f->rc = set_value(f->c, k, value ? value : "", FROM_FILE, f->err);
	return f->rc == RC_OK;
}

static enum rc load_file(struct config *c, struct err *err) {
	struct file_ctx f = {.c = c, .err = err};
	if (c->config[0] == '\0')
		return RC_OK;
	int line = ini_parse(c->config, file_value, &f);
	if (line < 0)
		return err_errno(err, errno, c->config);
	if (line > 0 && f.rc == RC_OK)
		return err_set(
			err, RC_INVALID, "%.160s, line %d: is not `key = value`", c->config, line);
	if (f.rc != RC_OK && err) {
		char told[sizeof(err->msg)];
		snprintf(told, sizeof(told), "%s", err->msg);
		snprintf(err->msg, sizeof(err->msg), "%.120s (%.100s, line %d)", told, c->config,
			line);
	}
	return f.rc;
}

/* "data-dir" → "DRIVEWATT_DATA_DIR" */
static void environment_name(const struct key *k, char out[64]) {
	snprintf(out, 64, "DRIVEWATT_%s", k->name);
	for (char *p = out; *p; p++)
		*p = (char)(*p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
}

/* A list in the environment is separated by commas. */
static enum rc set_environment(
	struct config *c, const struct key *k, const char *value, struct err *err) {
	if (k->type != KEY_LIST)
		return set_value(c, k, value, FROM_ENVIRONMENT, err);
	char item[CONFIG_TEXT_SIZE];
	enum rc rc = RC_OK;
	for (const char *p = value; rc == RC_OK && p; p = strchr(p, ',')) {
		p += p != value;
		int len = (int)strcspn(p, ",");
		if (snprintf(item, sizeof(item), "%.*s", len, p) >= (int)sizeof(item))
			return err_field(err, RC_INVALID, k->name, "is too long");
		rc = set_value(c, k, item, FROM_ENVIRONMENT, err);
	}
	return rc;
}

static enum rc load_environment(struct config *c, struct err *err) {
	char name[64];
	for (size_t i = 0; i < array_len(keys); i++) {
		environment_name(&keys[i], name);
		const char *value = getenv(name);
		enum rc rc = value ? set_environment(c, &keys[i], value, err) : RC_OK;
		if (rc != RC_OK)
			return rc;
	}
	return RC_OK;
}

static bool take_action(const char *flag, enum config_action *action) {
	for (size_t i = 0; i < array_len(actions); i++) {
		if (strcmp(actions[i].flag, flag) != 0)
			continue;
		*action = actions[i].action;
		return true;
	}
	return false;
}

/* --key VALUE, --key=VALUE; a boolean key alone means true. Returns how many words were used. */
static int take_flag(
	struct config *c, char **words, int left, enum config_action *action, struct err *err) {
	const char *flag = words[0];
	if (strncmp(flag, "--", 2) != 0) {
		err_set(err, RC_INVALID, "'%.100s' is not a flag; see --help", flag);
		return -1;
	}
	flag += 2;
	size_t len = strcspn(flag, "=");
	const struct key *k = key_find(flag, len);
	if (!k && take_action(flag, action))
		return 1;
	if (!k) {
		err_set(err, RC_INVALID, "--%.100s is not a flag; see --help", flag);
		return -1;
	}
	bool inside = flag[len] == '=';
	bool alone = !inside && k->type == KEY_BOOL;
	if (!inside && !alone && left < 2) {
		err_field(err, RC_INVALID, k->name, "needs a value");
		return -1;
	}
	const char *value = inside ? flag + len + 1 : alone ? "true" : words[1];
	if (set_value(c, k, value, FROM_FLAGS, err) != RC_OK)
		return -1;
	return inside || alone ? 1 : 2;
}

static enum rc load_flags(
	struct config *c, int argc, char **argv, enum config_action *action, struct err *err) {
	for (int i = 1, used; i < argc; i += used) {
		used = take_flag(c, argv + i, argc - i, action, err);
		if (used < 0)
			return RC_INVALID;
	}
	return RC_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* "24xd5-p5336" → 24 and "d5-p5336". */
static enum rc take_simulate_apart(struct config *c, struct err *err) {
	char count[8];
	const char *x = strchr(c->simulate, 'x');
	int64_t n;
	int len = x ? (int)(x - c->simulate) : (int)strlen(c->simulate);
	if (c->simulate[0] == '\0')
		return RC_OK;
	if (len >= (int)sizeof(count))
		return err_field(err, RC_INVALID, "simulate", "must read N or NxMODEL");
	snprintf(count, sizeof(count), "%.*s", len, c->simulate);
	enum rc rc = parse_i64(count, 1, 256, &n, "simulate", err);
	if (rc != RC_OK)
		return rc;
	c->simulate_count = (unsigned)n;
	if (x && !str_copy(c->simulate_model, sizeof(c->simulate_model), x + 1))
		return err_field(err, RC_INVALID, "simulate", "has too long a model name");
	return RC_OK;
}

static enum rc check_whole(struct config *c, struct err *err) {
	if (!c->tls_cert[0] != !c->tls_key[0])
		return err_field(err, RC_INVALID, c->tls_cert[0] ? "tls-key" : "tls-cert",
			"certificate and key belong together");
	if (c->tls_cert[0] && c->tls_self_signed)
		return err_field(err, RC_INVALID, "tls-self-signed", "a certificate is given too");
	if (c->listen.count == 0)
		return err_field(err, RC_INVALID, "listen", "is empty");
	if (c->listen.count > 8)
		return err_field(err, RC_INVALID, "listen", "is given more than 8 times");
	return take_simulate_apart(c, err);
}

enum rc config_load(
	struct config *c, int argc, char **argv, enum config_action *action, struct err *err) {
	*c = (struct config){0};
	*action = CONFIG_SERVE;
	/* The file's name may come from the environment or a flag, whose values must win over the
	 * file's: so those are read twice. */
	enum rc rc = load_defaults(c, err);
	if (rc == RC_OK)
		rc = load_environment(c, err);
	if (rc == RC_OK)
		rc = load_flags(c, argc, argv, action, err);
	char file[CONFIG_TEXT_SIZE];
	str_copy(file, sizeof(file), c->config);
	if (rc != RC_OK || *action == CONFIG_HELP || *action == CONFIG_VERSION)
		return rc;
	*c = (struct config){0};
	rc = load_defaults(c, err);
	str_copy(c->config, sizeof(c->config), file);
	if (rc == RC_OK)
		rc = load_file(c, err);
	if (rc == RC_OK)
		rc = load_environment(c, err);
	if (rc == RC_OK)
		rc = load_flags(c, argc, argv, action, err);
	return rc == RC_OK ? check_whole(c, err) : rc;
}

void config_help(struct buf *out) {
	buf_adds(out,
		"drivewattd: power states, benchmarks and energy of NVMe drives over HTTP\n\n"
		"usage: drivewattd [--key VALUE | --key=VALUE]...\n\n"
		"Each key may also stand in the configuration file as `key = value` and in the\n"
		"environment as DRIVEWATT_KEY; flags win over the environment, and that over the\n"
		"file. Times are written 250ms, 10s, 5m, 1h.\n\n");
	for (size_t i = 0; i < array_len(keys); i++) {
		char flag[64];
		snprintf(flag, sizeof(flag), "--%s %s", keys[i].name, keys[i].metavar);
		buf_printf(out, "  %-30s %s", flag, keys[i].help);
		if (keys[i].fallback[0])
			buf_printf(out, " [%s]", keys[i].fallback);
		buf_addc(out, '\n');
	}
	buf_addc(out, '\n');
	for (size_t i = 0; i < array_len(actions); i++)
		buf_printf(out, "  --%-28s %s\n", actions[i].flag, actions[i].help);
	buf_adds(out,
		"\nDRIVEWATT_ADMIN_PASSWORD sets the administrator's password at the first "
		"start.\n");
}

static void dump_list(const struct key *k, const struct config_list *list, struct buf *out) {
	for (unsigned i = 0; i < list->count; i++)
		buf_printf(out, "%s = %s\n", k->name, list->items[i]);
	if (list->count == 0)
		buf_printf(out, "%s =\n", k->name);
}

static void dump_value(const struct config *c, const struct key *k, struct buf *out) {
	const void *place = (const char *)c + k->offset;
	switch (k->type) {
	case KEY_TEXT:
		buf_printf(out, "%s = %s\n", k->name, (const char *)place);
		break;
	case KEY_LIST:
		dump_list(k, place, out);
		break;
	case KEY_BOOL:
		buf_printf(out, "%s = %s\n", k->name, *(const bool *)place ? "true" : "false");
		break;
	case KEY_INT:
		buf_printf(out, "%s = %lld\n", k->name, (long long)*(const int64_t *)place);
		break;
	case KEY_MS:
		buf_printf(out, "%s = %lld%s\n", k->name, (long long)*(const int64_t *)place,
			*(const int64_t *)place ? "ms" : "");
		break;
	}
}

void config_dump(const struct config *c, struct buf *out) {
	for (size_t i = 1; i < array_len(keys); i++) {
		buf_printf(out, "# %s\n", keys[i].help);
		dump_value(c, &keys[i], out);
	}
}
