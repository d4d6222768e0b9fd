/* What the files of the configuration share. */
#ifndef DRIVEWATT_SERVER_CONFIG_IMPL_H
#define DRIVEWATT_SERVER_CONFIG_IMPL_H

#include "server/config.h"

enum config_type { KEY_TEXT, KEY_LIST, KEY_BOOL, KEY_INT, KEY_MS };

struct config_key {
	const char *name; /* "data-dir": --data-dir, data-dir =, DRIVEWATT_DATA_DIR */
	enum config_type type;
	size_t offset;
	int64_t min, max;
	const char *fallback; /* as it would stand in the file */
	const char *metavar;
	const char *help;
};

struct config_flag {
	const char *name;
	enum config_action action;
	const char *help;
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;
/* Whether a change takes effect on SIGHUP. */
bool config_key_is_live(const struct config_key *k);
extern const struct config_flag config_actions[];
extern const size_t config_action_count;

enum config_source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAGS };

/* The key whose name is the first len bytes of name, or NULL. */
const struct config_key *config_key_find(const char *name, size_t len);
/* "data-dir" → "DRIVEWATT_DATA_DIR" */
void config_environment_name(const struct config_key *k, char out[64]);
/* Reads value as the key's type and puts it into c. */
enum rc must_check config_set(struct config *c, const struct config_key *k, const char *value,
	enum config_source from, struct err *err);

/* "key = value" lines of the file. */
void config_dump_value(const struct config *c, const struct config_key *k, struct buf *out);

#define CONFIG_FILE_MAX_BYTES (256 * 1024)
/* Reads the file that c->config names, from fd unless that is -1. Its form: `key = value` lines,
 * empty ones, and ones that begin with # or ;. Nothing is quoted, continued or commented behind a
 * value. */
enum rc must_check config_file_load(struct config *c, int fd, struct err *err);

#endif
