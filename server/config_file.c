#include "server/config_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t\r"

static enum rc read_all(int fd, const char *path, struct buf *out, struct err *err) {
	char part[4096];
	ssize_t n;
	while ((n = read(fd, part, sizeof(part))) > 0 && buf_status(out, NULL) == RC_OK)
		buf_add(out, part, (size_t)n);
	if (n < 0)
		return err_errno(err, errno, path);
	if (buf_status(out, err) != RC_OK)
		return err_set(err, RC_INVALID, "%.160s has more than %d bytes", path,
			CONFIG_FILE_MAX_BYTES);
	if (strlen(buf_str(out)) != out->len)
		return err_set(err, RC_INVALID, "%.160s is not a text file", path);
	return RC_OK;
}

static char *trim(char *s) {
	s += strspn(s, BLANKS);
	size_t len = strlen(s);
	while (len > 0 && strchr(BLANKS, s[len - 1]))
		len--;
	s[len] = '\0';
	return s;
}

static enum rc take_line(struct config *c, char *line, struct err *err) {
	line = trim(line);
	if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
		return RC_OK;
	char *equals = strchr(line, '=');
	if (!equals)
		return err_set(err, RC_INVALID, "is not `key = value`");
	*equals = '\0';
	const char *name = trim(line);
	const struct config_key *k = config_key_find(name, strlen(name));
	if (!k || strcmp(name, "config") == 0)
		return err_field(err, RC_INVALID, name, "is not a key of the configuration");
	return config_set(c, k, trim(equals + 1), FROM_FILE, err);
}

static void tell_line(const char *path, int line, struct err *err) {
	char told[sizeof(err->msg)];
	memcpy(told, err->msg, sizeof(told));
	snprintf(err->msg, sizeof(err->msg), "%.120s (%.100s, line %d)", told, path, line);
}

enum rc config_file_load(struct config *c, int fd, struct err *err) {
	struct buf text;
	int line = 0;
	auto_close int own = fd < 0 ? open(c->config, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 && own < 0)
		return err_errno(err, errno, c->config);
	buf_init(&text, CONFIG_FILE_MAX_BYTES);
	enum rc rc = read_all(fd < 0 ? own : fd, c->config, &text, err);
	char *rest = text.data;
	for (char *s; rc == RC_OK && (s = strsep(&rest, "\n")); line++)
		rc = take_line(c, s, err);
	if (rc != RC_OK && line > 0 && err)
		tell_line(c->config, line, err);
	buf_release(&text);
	return rc;
}
