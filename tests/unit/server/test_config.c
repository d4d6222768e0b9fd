/* The configuration: four sources and which wins, what is refused and how, what is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/config_impl.h"

#define WORDS_MAX 6

/* What one load is given: a file's text, one variable, a command line. */
struct given {
	const char *file;
	const char *env_name, *env_value;
	const char *words[WORDS_MAX];
};

/* --- loading ---------------------------------------------------------------------------------- */

static char path[64];
static int file_fd;

static int make_file(void **state) {
	(void)state;
	file_fd = memfd_create("config", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file_fd);
	return file_fd < 0;
}

static int drop_file(void **state) {
	(void)state;
	return close(file_fd);
}

static void write_file(const char *text, size_t len) {
	assert_int_equal(ftruncate(file_fd, 0), 0);
	assert_int_equal(pwrite(file_fd, text, len, 0), (ssize_t)len);
}

static enum rc load(
	const struct given *g, struct config *c, enum config_action *action, struct err *err) {
	char *argv[WORDS_MAX + 4] = {(char *)"drivewattd"};
	int argc = 1;
	if (g->file) {
		write_file(g->file, strlen(g->file));
		argv[argc++] = (char *)"--config";
		argv[argc++] = path;
	}
	for (size_t i = 0; i < WORDS_MAX && g->words[i]; i++)
		argv[argc++] = (char *)g->words[i];
	if (g->env_name)
		setenv(g->env_name, g->env_value, 1);
	*err = (struct err){0};
	enum rc rc = config_load(c, argc, argv, action, err);
	if (g->env_name)
		unsetenv(g->env_name);
	return rc;
}

static void must_load(const struct given *g, struct config *c) {
	enum config_action action;
	struct err err;
	if (load(g, c, &action, &err) != RC_OK)
		fail_msg("%s: %s", err.field, err.msg);
	assert_int_equal(action, CONFIG_SERVE);
}

/* The value of a key as the dump shows it; several lines of a list are joined by commas. */
static const char *shown(const struct config *c, const char *key) {
	static char value[512];
	char start[64];
	struct buf text;
	size_t len = 0;
	buf_init(&text, 1024 * 1024);
	config_dump(c, &text);
	snprintf(start, sizeof(start), "\n%s =", key);
	value[0] = '\0';
	for (const char *p = buf_str(&text); (p = strstr(p, start)) != NULL;) {
		p += strlen(start);
		p += *p == ' ';
		len += (size_t)snprintf(value + len, sizeof(value) - len, "%s%.*s", len ? "," : "",
			(int)strcspn(p, "\n"), p);
	}
	buf_release(&text);
	return value;
}

/* --- which source wins ------------------------------------------------------------------------ */

static const struct {
	struct given given;
	const char *key, *value;
} winners[] = {
	{{0}, "workers", "8"},
	{{0}, "listen", "127.0.0.1:8484"},
	{{0}, "data-dir", "/var/lib/drivewatt"},
	{{0}, "gzip", "true"},
	{{0}, "settle", "2000ms"},
	{{0}, "target", ""},
	{{.file = "workers = 3\n"}, "workers", "3"},
	{{.file = "workers = 3"}, "workers", "3"},
	{{.file = "workers=3\r\n"}, "workers", "3"},
	{{.file = "# x\n; y\n\n\t workers \t=  3 \n"}, "workers", "3"},
	{{.file = "workers = 3\nworkers = 4\n"}, "workers", "4"},
	{{.file = "data-dir = /a b;c # \"d\"\n"}, "data-dir", "/a b;c # \"d\""},
	{{.file = "data-dir = /a=b\n"}, "data-dir", "/a=b"},
	{{.file = "user =\n"}, "user", ""},
	{{.env_name = "DRIVEWATT_WORKERS", .env_value = "4"}, "workers", "4"},
	{{.words = {"--workers", "5"}}, "workers", "5"},
	{{.words = {"--workers=5"}}, "workers", "5"},
	{{.words = {"--workers=5", "--workers=6"}}, "workers", "6"},
	{{.words = {"--observe-only"}}, "observe-only", "true"},
	{{.words = {"--gzip=no"}}, "gzip", "false"},
	{{.words = {"--data-dir="}}, "data-dir", ""},
	{{.file = "workers = 3\n", .env_name = "DRIVEWATT_WORKERS", .env_value = "4"}, "workers",
		"4"},
	{{.file = "workers = 3\n", .words = {"--workers=5"}}, "workers", "5"},
	{{.file = "workers = 3\n",
		 .env_name = "DRIVEWATT_WORKERS",
		 .env_value = "4",
		 .words = {"--workers=5"}},
		"workers", "5"},
	{{.file = "observe-only = true\n",
		 .env_name = "DRIVEWATT_OBSERVE_ONLY",
		 .env_value = "false"},
		"observe-only", "false"},
	/* A later source replaces the whole list, its own items add up. */
	{{.file = "listen = a:1\nlisten = b:2\n"}, "listen", "a:1,b:2"},
	{{.env_name = "DRIVEWATT_LISTEN", .env_value = "a:1,b:2,c:3"}, "listen", "a:1,b:2,c:3"},
	{{.words = {"--listen", "a:1", "--listen=b:2"}}, "listen", "a:1,b:2"},
	{{.file = "listen = a:1\nlisten = b:2\n",
		 .env_name = "DRIVEWATT_LISTEN",
		 .env_value = "c:3"},
		"listen", "c:3"},
	{{.file = "listen = a:1\n",
		 .env_name = "DRIVEWATT_LISTEN",
		 .env_value = "c:3",
		 .words = {"--listen=d:4", "--listen=e:5"}},
		"listen", "d:4,e:5"},
	{{.file = "target = /dev/a\n", .words = {"--target="}}, "target", ""},
	{{.env_name = "DRIVEWATT_TARGET", .env_value = ""}, "target", ""},
	/* Times. */
	{{.words = {"--settle=0"}}, "settle", "0"},
	{{.words = {"--settle=0s"}}, "settle", "0"},
	{{.words = {"--settle=1m"}}, "settle", "60000ms"},
	{{.words = {"--rescan=24h"}}, "rescan", "86400000ms"},
};

static void test_later_sources_win(void **state) {
	(void)state;
	static struct config c;
	for (size_t i = 0; i < array_len(winners); i++) {
		must_load(&winners[i].given, &c);
		if (strcmp(shown(&c, winners[i].key), winners[i].value) != 0)
			fail_msg(
				"case %zu: %s is %s", i, winners[i].key, shown(&c, winners[i].key));
	}
}

static void test_environment_names_the_file(void **state) {
	(void)state;
	static struct config c;
	write_file("queue = 9\n", 10);
	must_load(&(struct given){.env_name = "DRIVEWATT_CONFIG", .env_value = path}, &c);
	assert_string_equal(shown(&c, "queue"), "9");
	assert_string_equal(c.config, path);
}

/* --- what is refused -------------------------------------------------------------------------- */

#define TEXT_50 "01234567890123456789012345678901234567890123456789"
#define TEXT_250 TEXT_50 TEXT_50 TEXT_50 TEXT_50 TEXT_50

static const struct {
	struct given given;
	const char *field, *says;
} refused[] = {
	{{.words = {"workers"}}, "", "'workers' is not a flag"},
	{{.words = {"-w"}}, "", "'-w' is not a flag"},
	{{.words = {"--"}}, "", "is not a flag"},
	{{.words = {"--worker", "3"}}, "", "--worker is not a flag"},
	{{.words = {"--workersx", "3"}}, "", "--workersx is not a flag"},
	{{.words = {"--help=yes"}}, "", "--help=yes is not a flag"},
	{{.words = {"--gzip", "false"}}, "", "'false' is not a flag"},
	{{.words = {"--workers"}}, "workers", "needs a value"},
	{{.words = {"--workers", "many"}}, "workers", "not an integer"},
	{{.words = {"--workers=0"}}, "workers", "between 1 and 64"},
	{{.words = {"--workers="}}, "workers", "not an integer"},
	{{.words = {"--gzip=maybe"}}, "gzip", "true or false"},
	{{.words = {"--settle=5"}}, "settle", "duration"},
	{{.words = {"--settle=25h"}}, "settle", "between 0ms and 86400000ms"},
	{{.words = {"--meter=0"}}, "meter", "between 100ms"},
	{{.words = {"--meter=0s"}}, "meter", "between 100ms"},
	{{.words = {"--drive-timeout=99ms"}}, "drive-timeout", "between 100ms"},
	{{.words = {"--log-level=loud"}}, "log-level", "error, warning, info or debug"},
	{{.words = {"--tls-cert=c"}}, "tls-key", "belong together"},
	{{.words = {"--tls-key=k"}}, "tls-cert", "belong together"},
	{{.words = {"--tls-cert=c", "--tls-key=k", "--tls-self-signed"}}, "tls-self-signed",
		"given too"},
	{{.words = {"--listen="}}, "listen", "is empty"},
	{{.words = {"--dcmi=ipmitool"}}, "dcmi", "absolute"},
	{{.words = {"--sysfs="}}, "sysfs", "absolute"},
	{{.words = {"--data-dir=" TEXT_250 "012345"}}, "data-dir", "longer than 255 bytes"},
	{{.words = {"--data-dir=a\nuser = root"}}, "data-dir", "control characters"},
	{{.words = {"--data-dir", " a"}}, "data-dir", "blanks"},
	{{.words = {"--simulate=0"}}, "simulate", "between 1 and 256"},
	{{.words = {"--simulate=257xm"}}, "simulate", "between 1 and 256"},
	{{.words = {"--simulate=xm"}}, "simulate", "not an integer"},
	{{.words = {"--simulate=-1"}}, "simulate", "between"},
	{{.words = {"--simulate=12345678"}}, "simulate", "N or NxMODEL"},
	{{.words = {"--simulate=4x" TEXT_50 TEXT_50}}, "simulate", "too long a model"},
	{{.env_name = "DRIVEWATT_LISTEN", .env_value = "1,2,3,4,5,6,7,8,9"}, "listen",
		"more than 8 times"},
	{{.env_name = "DRIVEWATT_LISTEN", .env_value = TEXT_250 "012345,x"}, "listen",
		"longer than 255 bytes"},
	{{.env_name = "DRIVEWATT_QUEUE", .env_value = "-1"}, "queue", "between 1 and 65536"},
	{{.words = {"--config", "/nonexistent/x"}}, "", "/nonexistent/x"},
	{{.words = {"--config", "/"}}, "", "/"},
	/* In files with the line. */
	{{.file = "\n\nnosuch = 1\nworkers = 3\n"}, "nosuch", "line 3)"},
	{{.file = "Workers = 3\n"}, "Workers", "line 1)"},
	{{.file = "config = x\n"}, "config", "line 1)"},
	{{.file = "help = 1\n"}, "help", "line 1)"},
	{{.file = "workers = 3\nqueue = x\n"}, "queue", "not an integer: x (/proc/self/fd/"},
	{{.file = "workers = 3\nqueue = x\n"}, "queue", "line 2)"},
	{{.file = "workers 3\n"}, "", "is not `key = value` (/proc/self/fd/"},
	{{.file = "[drivewatt]\nworkers = 3\n"}, "", "line 1)"},
	{{.file = "= 3\n"}, "", "line 1)"},
	/* An indented line is one of its own, not more of the one before. */
	{{.file = "data-dir = /a\n  /b\n"}, "", "line 2)"},
	{{.file = "data-dir = /a\001b\n"}, "data-dir", "line 1)"},
};

static void test_refusals_name_key_and_line(void **state) {
	(void)state;
	static struct config c;
	for (size_t i = 0; i < array_len(refused); i++) {
		enum config_action action;
		struct err err;
		if (load(&refused[i].given, &c, &action, &err) == RC_OK)
			fail_msg("case %zu (%s) passed", i, refused[i].says);
		if (strcmp(err.field, refused[i].field) != 0 || !strstr(err.msg, refused[i].says))
			fail_msg("case %zu: %s: %s", i, err.field, err.msg);
	}
}

static void test_lists_are_bounded(void **state) {
	(void)state;
	static struct config c;
	static char text[CONFIG_LIST_MAX * 12 + 32];
	struct err err;
	enum config_action action;
	size_t len = 0;
	for (int i = 0; i < CONFIG_LIST_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "target=/%d\n", i);
	must_load(&(struct given){.file = text}, &c);
	assert_int_equal(c.target.count, CONFIG_LIST_MAX);
	snprintf(text + len, sizeof(text) - len, "target=/x\n");
	assert_int_equal(load(&(struct given){.file = text}, &c, &action, &err), RC_INVALID);
	assert_string_equal(err.field, "target");
	assert_non_null(strstr(err.msg, "more than 64 times"));
	assert_non_null(strstr(err.msg, "line 65)"));
}

static enum rc load_bytes(const char *text, size_t len, struct err *err) {
	static struct config c;
	char *argv[] = {(char *)"drivewattd", (char *)"--config", path};
	enum config_action action;
	write_file(text, len);
	return config_load(&c, 3, argv, &action, err);
}

static void test_files_are_bounded_text(void **state) {
	(void)state;
	static char text[CONFIG_FILE_MAX_BYTES + 1];
	struct err err;
	assert_int_equal(load_bytes("workers = 3\0\nx", 14, &err), RC_INVALID);
	assert_non_null(strstr(err.msg, "not a text file"));
	memset(text, '\n', sizeof(text));
	assert_int_equal(load_bytes(text, sizeof(text) - 1, &err), RC_OK);
	assert_int_equal(load_bytes(text, sizeof(text), &err), RC_INVALID);
	assert_non_null(strstr(err.msg, "more than 262144 bytes"));
	assert_int_equal(load_bytes("", 0, &err), RC_OK);
}

/* --- taken apart ------------------------------------------------------------------------------ */

static void test_simulate_is_taken_apart(void **state) {
	(void)state;
	static const struct {
		const char *text;
		unsigned count;
		const char *model;
	} cases[] = {
		{"", 0, ""},
		{"1", 1, ""},
		{"256", 256, ""},
		{"24xd5-p5336-61.44tb", 24, "d5-p5336-61.44tb"},
		{"3xx", 3, "x"},
		{"3x", 3, ""},
	};
	static struct config c;
	for (size_t i = 0; i < array_len(cases); i++) {
		must_load(&(struct given){.words = {"--simulate", cases[i].text}}, &c);
		assert_int_equal(c.simulate_count, cases[i].count);
		assert_string_equal(c.simulate_model, cases[i].model);
	}
}

static void test_log_level(void **state) {
	(void)state;
	static struct config c;
	must_load(&(struct given){0}, &c);
	assert_int_equal(c.level, LOG_LEVEL_INFO);
	must_load(&(struct given){.words = {"--log-level=error"}}, &c);
	assert_int_equal(c.level, LOG_LEVEL_ERROR);
}

static void test_actions(void **state) {
	(void)state;
	static const struct {
		const char *flag;
		enum config_action action;
	} cases[] = {
		{"--help", CONFIG_HELP},
		{"--version", CONFIG_VERSION},
		{"--check-config", CONFIG_CHECK},
		{"--dump-config", CONFIG_DUMP},
		{"--dump-manual", CONFIG_DUMP_MANUAL},
		{"--dump-routes", CONFIG_DUMP_ROUTES},
	};
	static struct config c;
	struct err err;
	enum config_action action;
	assert_int_equal(config_action_count, array_len(cases));
	for (size_t i = 0; i < array_len(cases); i++) {
		assert_int_equal(load(&(struct given){.words = {cases[i].flag, "--queue=7"}}, &c,
					 &action, &err),
			RC_OK);
		assert_int_equal(action, cases[i].action);
	}
	/* Help is given also where the file is broken. */
	const struct given broken = {.file = "x", .words = {"--help"}};
	assert_int_equal(load(&broken, &c, &action, &err), RC_OK);
}

/* --- what is shown ---------------------------------------------------------------------------- */

static char *dump(const struct config *c) {
	struct buf text;
	buf_init(&text, 1024 * 1024);
	config_dump(c, &text);
	return buf_take(&text, NULL);
}

static void check_reads_back(const struct config *c) {
	static struct config again;
	char *first = dump(c);
	must_load(&(struct given){.file = first}, &again);
	char *second = dump(&again);
	assert_string_equal(first, second);
	free(first);
	free(second);
}

static void test_dump_reads_back(void **state) {
	(void)state;
	static struct config c;
	must_load(&(struct given){0}, &c);
	check_reads_back(&c);
	must_load(&(struct given){.file = "gzip = off\nsettle = 0\ndata-dir = " TEXT_250 "\n"
					  "rescan = 1h\ntarget = /a b\ntarget = /c;d\n",
			  .words = {"--listen=a:1", "--listen=b:2", "--queue=12"}},
		&c);
	check_reads_back(&c);
	assert_string_equal(shown(&c, "target"), "/a b,/c;d");
}

static void test_every_key_is_shown(void **state) {
	(void)state;
	static struct config c;
	struct buf help, manual;
	char flag[64];
	buf_init(&help, 1024 * 1024);
	buf_init(&manual, 1024 * 1024);
	config_help(&help);
	config_manual(&manual);
	must_load(&(struct given){0}, &c);
	char *text = dump(&c);
	for (size_t i = 0; i < config_key_count; i++) {
		snprintf(flag, sizeof(flag), "  --%s ", config_keys[i].name);
		assert_non_null(strstr(buf_str(&help), flag));
		snprintf(flag, sizeof(flag), "| `%s` | ", config_keys[i].name);
		assert_non_null(strstr(buf_str(&manual), flag));
		snprintf(flag, sizeof(flag), "\n%s =", config_keys[i].name);
		assert_true(!strstr(text, flag) == (strcmp(config_keys[i].name, "config") == 0));
	}
	buf_release(&help);
	buf_release(&manual);
	free(text);
}

/* docs/configuration.md is written by `drivewattd --dump-manual`. */
static void test_manual_is_up_to_date(void **state) {
	(void)state;
	static char kept[256 * 1024];
	struct buf manual;
	buf_init(&manual, sizeof(kept) - 1);
	config_manual(&manual);
	FILE *f = fopen("docs/configuration.md", "r");
	assert_non_null(f);
	kept[fread(kept, 1, sizeof(kept) - 1, f)] = '\0';
	fclose(f);
	if (strcmp(kept, buf_str(&manual)) != 0)
		fail_msg("docs/configuration.md is old: drivewattd --dump-manual writes it");
	buf_release(&manual);
}

int main(void) {
	for (size_t i = 0; i < config_key_count; i++) {
		char name[64];
		config_environment_name(&config_keys[i], name);
		unsetenv(name);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_sources_win),
		cmocka_unit_test(test_environment_names_the_file),
		cmocka_unit_test(test_refusals_name_key_and_line),
		cmocka_unit_test(test_lists_are_bounded),
		cmocka_unit_test(test_files_are_bounded_text),
		cmocka_unit_test(test_simulate_is_taken_apart),
		cmocka_unit_test(test_log_level),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_dump_reads_back),
		cmocka_unit_test(test_every_key_is_shown),
		cmocka_unit_test(test_manual_is_up_to_date),
	};
	return cmocka_run_group_tests(tests, make_file, drop_file);
}
