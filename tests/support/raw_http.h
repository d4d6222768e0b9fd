/* A small HTTP client on raw sockets that shows all that comes over the wire. */
#ifndef TESTS_SUPPORT_RAW_HTTP_H
#define TESTS_SUPPORT_RAW_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define RAW_TIMEOUT_MS 20000

struct raw_conn {
	int fd;
	char *data; /* received and not yet taken */
	size_t len;
};

struct raw_answer {
	int status; /* 0: the connection ended before an answer */
	char *head; /* status line and headers */
	char *body; /* chunks joined; NUL-terminated */
	size_t body_len;
};

/* url: "http://127.0.0.1:PORT" or "http://[::1]:PORT". False when refused. */
bool raw_open(struct raw_conn *c, const char *url);
void raw_close(struct raw_conn *c);
/* False when the peer is gone. */
bool raw_send(struct raw_conn *c, const char *text, size_t len);
bool raw_sends(struct raw_conn *c, const char *text);
/* Waits for bytes; false at the end of the connection or after timeout_ms. */
bool raw_fill(struct raw_conn *c, int timeout_ms);
/* Waits until text was received. */
bool raw_wait_for(struct raw_conn *c, const char *text, int timeout_ms);
/* True when the peer closes within timeout_ms. */
bool raw_ends(struct raw_conn *c, int timeout_ms);

/* The next answer; no_body: it answers HEAD. */
struct raw_answer raw_read(struct raw_conn *c, bool no_body);
void raw_answer_free(struct raw_answer *a);
/* A header's value, cut out of head into out; NULL when it is not there. */
const char *raw_header(const struct raw_answer *a, const char *name, char out[512]);

/* Sends "METHOD target" with a Host header, headers ("Name: value\r\n…" or "") and body (NULL:
 * none) on c and reads the answer. */
struct raw_answer raw_request(struct raw_conn *c, const char *method, const char *target,
	const char *headers, const char *body);
/* The same on a connection of its own. */
struct raw_answer raw_once(const char *url, const char *method, const char *target,
	const char *headers, const char *body);

#endif
