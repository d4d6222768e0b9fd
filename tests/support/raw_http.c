#include "tests/support/raw_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool raw_open(struct raw_conn *c, const char *url) {
	*c = (struct raw_conn){.fd = -1};
	unsigned short port = htons((unsigned short)strtoul(strrchr(url, ':') + 1, NULL, 10));
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
	bool is_v6 = strchr(url, '[');
	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v6.sin6_addr = in6addr_loopback;
	c->fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr *addr = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	if (!connect(c->fd, addr, is_v6 ? sizeof(v6) : sizeof(v4)))
		return true;
	raw_close(c);
	return false;
}

void raw_close(struct raw_conn *c) {
	if (c->fd >= 0)
		close(c->fd);
	free(c->data);
	*c = (struct raw_conn){.fd = -1};
}

bool raw_send(struct raw_conn *c, const char *text, size_t len) {
	while (len) {
		ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

bool raw_sends(struct raw_conn *c, const char *text) {
	return raw_send(c, text, strlen(text));
}

bool raw_fill(struct raw_conn *c, int timeout_ms) {
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	char part[16384];
	if (poll(&p, 1, timeout_ms) <= 0)
		return false;
	ssize_t n = recv(c->fd, part, sizeof(part), 0);
	if (n <= 0)
		return false;
	c->data = realloc(c->data, c->len + (size_t)n + 1);
	memcpy(c->data + c->len, part, (size_t)n);
	c->len += (size_t)n;
	c->data[c->len] = '\0';
	return true;
}

bool raw_wait_for(struct raw_conn *c, const char *text, int timeout_ms) {
	long deadline = now_ms() + timeout_ms;
	while (!c->len || !memmem(c->data, c->len, text, strlen(text))) {
		long left = deadline - now_ms();
		if (left <= 0 || !raw_fill(c, (int)left))
			return false;
	}
	return true;
}

bool raw_ends(struct raw_conn *c, int timeout_ms) {
	long deadline = now_ms() + timeout_ms;
	for (;;) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		char part[4096];
		long left = deadline - now_ms();
		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		if (recv(c->fd, part, sizeof(part), 0) <= 0)
			return true;
	}
}

/* Cuts the first len bytes off what was received. */
static char *take(struct raw_conn *c, size_t len) {
	char *out = malloc(len + 1);
	memcpy(out, c->data, len);
	out[len] = '\0';
	memmove(c->data, c->data + len, c->len - len + 1);
	c->len -= len;
	return out;
}

static bool need(struct raw_conn *c, size_t len) {
	while (c->len < len) {
		if (!raw_fill(c, RAW_TIMEOUT_MS))
			return false;
	}
	return true;
}

/* A line with its CRLF, or NULL. */
static char *take_line(struct raw_conn *c) {
	if (!raw_wait_for(c, "\r\n", RAW_TIMEOUT_MS))
		return NULL;
	char *end = memmem(c->data, c->len, "\r\n", 2);
	return take(c, (size_t)(end - c->data) + 2);
}

static void read_chunks(struct raw_conn *c, struct raw_answer *a) {
	for (;;) {
		char *line = take_line(c);
		size_t len = line ? strtoul(line, NULL, 16) : 0;
		free(line);
		if (!need(c, len + 2))
			return;
		char *chunk = take(c, len + 2);
		a->body = realloc(a->body, a->body_len + len + 1);
		memcpy(a->body + a->body_len, chunk, len);
		a->body_len += len;
		a->body[a->body_len] = '\0';
		free(chunk);
		if (!len)
			return;
	}
}

const char *raw_header(const struct raw_answer *a, const char *name, char out[512]) {
	size_t len = strlen(name);
	for (const char *line = a->head; line; line = strstr(line, "\r\n")) {
		line += line == a->head ? 0 : 2;
		if (strncasecmp(line, name, len) || line[len] != ':')
			continue;
		line += len + 1 + strspn(line + len + 1, " ");
		snprintf(out, 512, "%.*s", (int)strcspn(line, "\r"), line);
		return out;
	}
	return NULL;
}

struct raw_answer raw_read(struct raw_conn *c, bool no_body) {
	struct raw_answer a = {.status = 0};
	char value[512];
	if (!raw_wait_for(c, "\r\n\r\n", RAW_TIMEOUT_MS))
		return a;
	char *end = memmem(c->data, c->len, "\r\n\r\n", 4);
	a.head = take(c, (size_t)(end - c->data) + 4);
	a.status = (int)strtol(a.head + 9, NULL, 10);
	a.body = calloc(1, 1);
	if (no_body || a.status == 204 || a.status == 304)
		return a;
	if (raw_header(&a, "Transfer-Encoding", value)) {
		read_chunks(c, &a);
	} else if (raw_header(&a, "Content-Length", value)) {
		size_t len = strtoul(value, NULL, 10);
		if (len && need(c, len)) {
			free(a.body);
			a.body = take(c, len);
			a.body_len = len;
		}
	}
	return a;
}

void raw_answer_free(struct raw_answer *a) {
	free(a->head);
	free(a->body);
	*a = (struct raw_answer){.status = 0};
}

struct raw_answer raw_request(struct raw_conn *c, const char *method, const char *target,
	const char *headers, const char *body) {
	char head[8192];
	char length[64] = "";
	if (body)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: test\r\n%s%s\r\n", method, target,
		headers, length);
	raw_sends(c, head);
	if (body)
		raw_sends(c, body);
	return raw_read(c, !strcmp(method, "HEAD"));
}

struct raw_answer raw_once(const char *url, const char *method, const char *target,
	const char *headers, const char *body) {
	struct raw_conn c;
	struct raw_answer a = {.status = 0};
	if (!raw_open(&c, url))
		return a;
	a = raw_request(&c, method, target, headers, body);
	raw_close(&c);
	return a;
}
