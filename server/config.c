#include "server/config_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/parse.h"
#include "core/sim.h"
#include "http/server.h"

const struct config_key *config_key_find(const char *name, size_t len) {
	for (size_t i = 0; i < config_key_count; i++) {
		const char *have = config_keys[i].name;
		if (strlen(have) == len && memcmp(have, name, len) == 0)
			return &config_keys[i];
	}
	return NULL;
}

/* --- one value -------------------------------------------------------------------------------- */

/* What a line of a file can carry, so that a dump reads back. */
static bool fits_a_line(const char *value) {
	size_t len = strlen(value);
	for (const char *p = value; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	}
	return len == 0 || (value[0] != ' ' && value[len - 1] != ' ');
}

static enum rc set_text(
	char *place, const struct config_key *k, const char *value, struct err *err) {
	if (!fits_a_line(value))
		return err_field(
			err, RC_INVALID, k->name, "has control characters, or blanks at an end");
	if (!str_copy(place, CONFIG_TEXT_SIZE, value))
		return err_field(
			err, RC_INVALID, k->name, "is longer than %d bytes", CONFIG_TEXT_SIZE - 1);
	return RC_OK;
}

static enum rc add_item(struct config_list *list, const struct config_key *k, const char *value,
	enum config_source from, struct err *err) {
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

static enum rc set_ms(
	int64_t *place, const struct config_key *k, const char *value, struct err *err) {
	int64_t ms = 0;
	enum rc rc = RC_OK;
	if (strcmp(value, "0") != 0)
		rc = parse_duration_ms(value, &ms, k->name, err);
	if (rc == RC_OK && (ms < k->min || ms > k->max))
		rc = err_field(err, RC_INVALID, k->name, "must be between %lldms and %lldms",
			(long long)k->min, (long long)k->max);
	if (rc == RC_OK)
		*place = ms;
	return rc;
}

enum rc config_set(struct config *c, const struct config_key *k, const char *value,
	enum config_source from, struct err *err) {
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
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *k = &config_keys[i];
		enum rc rc = config_set(c, k, k->fallback, FROM_DEFAULT, err);
		if (rc != RC_OK)
			return rc;
	}
	return RC_OK;
}

void config_environment_name(const struct config_key *k, char out[64]) {
	snprintf(out, 64, "DRIVEWATT_%s", k->name);
	for (char *p = out; *p; p++)
		*p = (char)(*p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
}

/* A list in the environment is separated by commas. */
static enum rc set_environment(
	struct config *c, const struct config_key *k, const char *value, struct err *err) {
	if (k->type != KEY_LIST)
		return config_set(c, k, value, FROM_ENVIRONMENT, err);
	char item[CONFIG_TEXT_SIZE];
	enum rc rc = RC_OK;
	for (const char *p = value; rc == RC_OK && p; p = strchr(p, ',')) {
		p += p != value;
		size_t len = strcspn(p, ",");
		if (len >= sizeof(item))
			return err_field(err, RC_INVALID, k->name, "is longer than %d bytes",
				CONFIG_TEXT_SIZE - 1);
		memcpy(item, p, len);
		item[len] = '\0';
		rc = config_set(c, k, item, FROM_ENVIRONMENT, err);
	}
	return rc;
}

static enum rc load_environment(struct config *c, struct err *err) {
	char name[64];
	for (size_t i = 0; i < config_key_count; i++) {
		config_environment_name(&config_keys[i], name);
		const char *value = getenv(name);
		enum rc rc = value ? set_environment(c, &config_keys[i], value, err) : RC_OK;
		if (rc != RC_OK)
			return rc;
	}
	return RC_OK;
}

static bool take_action(const char *flag, enum config_action *action) {
	for (size_t i = 0; i < config_action_count; i++) {
		if (strcmp(config_actions[i].name, flag) != 0)
			continue;
		*action = config_actions[i].action;
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
	const struct config_key *k = config_key_find(flag, len);
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
	if (config_set(c, k, value, FROM_FLAGS, err) != RC_OK)
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
	int64_t n;
	size_t len = strcspn(c->simulate, "x");
	if (c->simulate[0] == '\0')
		return RC_OK;
	if (len >= sizeof(count))
		return err_field(err, RC_INVALID, "simulate", "must read N or NxMODEL");
	memcpy(count, c->simulate, len);
	count[len] = '\0';
	enum rc rc = parse_i64(count, 1, SIM_MAX_DRIVES, &n, "simulate", err);
	if (rc != RC_OK)
		return rc;
	c->simulate_count = (unsigned)n;
	const char *model = c->simulate[len] ? c->simulate + len + 1 : "";
	if (!str_copy(c->simulate_model, sizeof(c->simulate_model), model))
		return err_field(err, RC_INVALID, "simulate", "has too long a model name");
	return RC_OK;
}

static enum rc take_log_level(struct config *c, struct err *err) {
	static const char *const words[] = {[LOG_LEVEL_ERROR] = "error",
		[LOG_LEVEL_WARNING] = "warning",
		[LOG_LEVEL_INFO] = "info",
		[LOG_LEVEL_DEBUG] = "debug"};
	for (unsigned i = 0; i < array_len(words); i++) {
		if (strcmp(words[i], c->log_level) != 0)
			continue;
		c->level = (enum log_level)i;
		return RC_OK;
	}
	return err_field(err, RC_INVALID, "log-level", "must be error, warning, info or debug");
}

static enum rc check_proxies(const struct config *c, struct err *err) {
	const struct config_list *list = &c->trusted_proxy;
	if (list->count > HTTP_MAX_PROXIES)
		return err_field(err, RC_INVALID, "trusted-proxy", "is given more than %d times",
			HTTP_MAX_PROXIES);
	for (unsigned i = 0; i < list->count; i++) {
		if (!address_is(list->items[i]))
			return err_field(err, RC_INVALID, "trusted-proxy", "%.100s is no address",
				list->items[i]);
	}
	return RC_OK;
}

static const char *given(const char *text) {
	return text[0] ? text : NULL;
}

struct remote_config config_remote(const struct config *c, const char *labels[CONFIG_LIST_MAX]) {
	for (unsigned i = 0; i < c->remote_label.count; i++)
		labels[i] = c->remote_label.items[i];
	return (struct remote_config){
		.url = c->remote_url,
		.allow_plaintext = c->remote_plaintext,
		.username = given(c->remote_username),
		.password_file = given(c->remote_password_file),
		.token_file = given(c->remote_token_file),
		.ca_file = given(c->remote_ca_file),
		.labels = labels,
		.label_count = c->remote_label.count,
		.interval_ms = c->remote_interval_ms,
		.keep_ms = c->remote_keep_ms,
		.spool_bytes = c->remote_spool_bytes,
	};
}

static enum rc check_remote(const struct config *c, struct err *err) {
	const char *labels[CONFIG_LIST_MAX];
	const struct remote_config remote = config_remote(c, labels);
	return c->remote_url[0] ? remote_check(&remote, err) : RC_OK;
}

static enum rc check_whole(struct config *c, struct err *err) {
	if (!c->tls_cert[0] != !c->tls_key[0])
		return err_field(err, RC_INVALID, c->tls_cert[0] ? "tls-key" : "tls-cert",
			"certificate and key belong together");
	if (c->tls_cert[0] && c->tls_self_signed)
		return err_field(err, RC_INVALID, "tls-self-signed", "a certificate is given too");
	if (c->listen.count == 0)
		return err_field(err, RC_INVALID, "listen", "is empty");
	if (c->listen.count > HTTP_MAX_LISTENERS)
		return err_field(err, RC_INVALID, "listen", "is given more than %d times",
			HTTP_MAX_LISTENERS);
	if (c->dcmi[0] && c->dcmi[0] != '/')
		return err_field(err, RC_INVALID, "dcmi", "must be an absolute path");
	if (c->sysfs[0] != '/')
		return err_field(err, RC_INVALID, "sysfs", "must be an absolute path");
	enum rc rc = check_proxies(c, err);
	if (rc == RC_OK)
		rc = check_remote(c, err);
	if (rc == RC_OK)
		rc = take_log_level(c, err);
	return rc == RC_OK ? take_simulate_apart(c, err) : rc;
}

/* Each source over the ones before it; the file only where it is known. */
static enum rc load_sources(struct config *c, const char *file, int fd, int argc, char **argv,
	enum config_action *action, struct err *err) {
	*c = (struct config){0};
	enum rc rc = load_defaults(c, err);
	str_copy(c->config, sizeof(c->config), file);
	if (rc == RC_OK && file[0])
		rc = config_file_load(c, fd, err);
	if (rc == RC_OK)
		rc = load_environment(c, err);
	return rc == RC_OK ? load_flags(c, argc, argv, action, err) : rc;
}

enum rc config_load(
	struct config *c, int argc, char **argv, enum config_action *action, struct err *err) {
	char file[CONFIG_TEXT_SIZE];
	*action = CONFIG_SERVE;
	/* The file's name comes from sources that win over the file: they are read twice. */
	enum rc rc = load_sources(c, "", -1, argc, argv, action, err);
	if (rc != RC_OK || *action == CONFIG_HELP || *action == CONFIG_VERSION)
		return rc;
	memcpy(file, c->config, sizeof(file));
	if (file[0])
		rc = load_sources(c, file, -1, argc, argv, action, err);
	return rc == RC_OK ? check_whole(c, err) : rc;
}

enum rc config_reload(const struct config *was, struct config *is, int file_fd, int argc,
	char **argv, struct err *err) {
	enum config_action action;
	enum rc rc = load_sources(is, was->config, file_fd, argc, argv, &action, err);
	return rc == RC_OK ? check_whole(is, err) : rc;
}

void config_changes(const struct config *was, const struct config *is,
	void (*visit)(void *arg, const char *key, bool live), void *arg) {
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *k = &config_keys[i];
		struct buf a, b;
		buf_init(&a, CONFIG_FILE_MAX_BYTES);
		buf_init(&b, CONFIG_FILE_MAX_BYTES);
		config_dump_value(was, k, &a);
		config_dump_value(is, k, &b);
		if (strcmp(buf_str(&a), buf_str(&b)) != 0)
			visit(arg, k->name, config_key_is_live(k));
		buf_release(&a);
		buf_release(&b);
	}
}
