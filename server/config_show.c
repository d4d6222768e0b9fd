#include "server/config_impl.h"

#include <stdio.h>
#include <string.h>

/* --- --help ----------------------------------------------------------------------------------- */

void config_help(struct buf *out) {
	buf_adds(out,
		"drivewattd: power states, benchmarks and energy of NVMe drives over HTTP\n\n"
		"Each flag is also a key of the file (key = value) and of the environment\n"
		"(--data-dir: DRIVEWATT_DATA_DIR). Times are written 250ms, 10s, 5m, 1h.\n\n");
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *k = &config_keys[i];
		char flag[64];
		snprintf(flag, sizeof(flag), "--%s %s", k->name, k->metavar);
		buf_printf(out, "  %-30s %s", flag, k->help);
		if (k->fallback[0])
			buf_printf(out, " [%s]", k->fallback);
		buf_addc(out, '\n');
	}
	buf_addc(out, '\n');
	for (size_t i = 0; i < config_action_count; i++)
		buf_printf(out, "  --%-28s %s\n", config_actions[i].name, config_actions[i].help);
	buf_adds(out,
		"\nDRIVEWATT_ADMIN_PASSWORD sets the administrator's password at the first "
		"start.\n");
}

/* --- the manual ------------------------------------------------------------------------------- */

static const char intro[] =
	"# Configuration\n\n"
	"This page is the output of `drivewattd --dump-manual`.\n\n"
	"Every setting can be given in four places. Later ones win:\n\n"
	"1. the default,\n"
	"2. the file named by `--config` or `DRIVEWATT_CONFIG`: `key = value`, one a line,\n"
	"3. the environment: `data-dir` is `DRIVEWATT_DATA_DIR`,\n"
	"4. the command line: `--data-dir DIR` or `--data-dir=DIR`; a yes-or-no flag alone means "
	"yes.\n\n"
	"Lines of the file that begin with `#` or `;` are comments. Nothing is quoted, continued "
	"or\n"
	"commented behind a value. A list has a line for each item, in the environment commas\n"
	"between them; a list in a later place replaces the whole list. Times are written "
	"`250ms`,\n"
	"`10s`, `5m`, `1h`, `1d`. An unknown key ends the start with an error that names file and\n"
	"line.\n\n"
	"`drivewattd --check-config` checks, `drivewattd --dump-config` shows what is in force.\n\n"
	"`DRIVEWATT_ADMIN_PASSWORD` sets the password of the administrator `admin` at the first\n"
	"start. It is no key, so that it stands in no file by mistake.\n\n";

static void manual_range(const struct config_key *k, struct buf *out) {
	switch (k->type) {
	case KEY_TEXT:
		buf_adds(out, k->metavar);
		break;
	case KEY_LIST:
		buf_printf(out, "list of %s", k->metavar);
		break;
	case KEY_BOOL:
		buf_adds(out, "true, false");
		break;
	case KEY_INT:
		buf_printf(out, "%lld to %lld", (long long)k->min, (long long)k->max);
		break;
	case KEY_MS:
		buf_printf(out, k->min ? "%lldms to %lldh" : "%lld to %lldh", (long long)k->min,
			(long long)k->max / 3600000);
		break;
	}
}

void config_manual(struct buf *out) {
	buf_adds(out, intro);
	buf_adds(out, "| key | default | values | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *k = &config_keys[i];
		const char *quote = k->fallback[0] ? "`" : "";
		buf_printf(out, "| `%s` | %s%s%s | ", k->name, quote, k->fallback, quote);
		manual_range(k, out);
		buf_printf(out, " | %s |\n", k->help);
	}
	buf_adds(out, "\nFlags that are no keys:\n\n| flag | meaning |\n|---|---|\n");
	for (size_t i = 0; i < config_action_count; i++)
		buf_printf(
			out, "| `--%s` | %s |\n", config_actions[i].name, config_actions[i].help);
}

/* --- a file ----------------------------------------------------------------------------------- */

static void dump_list(const struct config_key *k, const struct config_list *list, struct buf *out) {
	for (unsigned i = 0; i < list->count; i++)
		buf_printf(out, "%s = %s\n", k->name, list->items[i]);
	if (list->count == 0)
		buf_printf(out, "%s =\n", k->name);
}

void config_dump_value(const struct config *c, const struct config_key *k, struct buf *out) {
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
	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *k = &config_keys[i];
		if (strcmp(k->name, "config") == 0)
			continue;
		buf_printf(out, "# %s\n", k->help);
		config_dump_value(c, k, out);
	}
}
