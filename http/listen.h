/* Listening sockets of our own, so that port 0 can be read back and errors are clear. */
#ifndef DRIVEWATT_HTTP_LISTEN_H
#define DRIVEWATT_HTTP_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/rc.h"

struct listen_addr {
	struct sockaddr_storage addr;
	socklen_t len;
};

/* "127.0.0.1:8484", "[::1]:0": numbers only. */
enum rc must_check listen_parse(const char *text, struct listen_addr *out, struct err *err);
bool listen_is_loopback(const struct listen_addr *a);
/* *fd is the caller's: non-blocking, not inherited by programs. RC_CONFLICT: the port is taken. */
enum rc must_check listen_open(
	const struct listen_addr *a, const char *text, int *fd, struct err *err);
/* "http://127.0.0.1:8484" with the real port. */
enum rc must_check listen_url(int fd, bool tls, char *out, size_t size, struct err *err);
/* A peer's address in digits, "" for none; IPv4 inside IPv6 as IPv4. */
void listen_peer(const struct sockaddr *peer, char *out, size_t size);

#endif
