#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"

#define BACKLOG 1024

union any_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static enum rc parse_port(const char *text, in_port_t *out, struct err *err) {
	int64_t port;
	enum rc rc = parse_i64(text, 0, 65535, &port, "listen", err);
	if (!rc)
		*out = htons((uint16_t)port);
	return rc;
}

static enum rc parse_v4(const char *host, in_port_t port, struct listen_addr *out) {
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = port};
	if (inet_pton(AF_INET, host, &v4.sin_addr) != 1)
		return RC_INVALID;
	memcpy(&out->addr, &v4, sizeof(v4));
	out->len = sizeof(v4);
	return RC_OK;
}

static enum rc parse_v6(const char *host, in_port_t port, struct listen_addr *out) {
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = port};
	if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
		return RC_INVALID;
	memcpy(&out->addr, &v6, sizeof(v6));
	out->len = sizeof(v6);
	return RC_OK;
}

enum rc listen_parse(const char *text, struct listen_addr *out, struct err *err) {
	*out = (struct listen_addr){.len = 0};
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	size_t len = colon ? (size_t)(colon - text) : 0;
	if (!len || len >= sizeof(host))
		return err_field(err, RC_INVALID, "listen", "%s is not ADDRESS:PORT", text);
	memcpy(host, text, len);
	host[len] = '\0';
	in_port_t port;
	enum rc rc = parse_port(colon + 1, &port, err);
	if (rc)
		return rc;
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		rc = parse_v6(host + 1, port, out);
	} else {
		rc = parse_v4(host, port, out);
	}
	if (rc)
		return err_field(err, rc, "listen", "%s is not ADDRESS:PORT in digits", text);
	return RC_OK;
}

static bool is_loopback_v4(const void *bytes) {
	return *(const unsigned char *)bytes == 127;
}

bool listen_is_loopback(const struct listen_addr *a) {
	union any_addr u;
	memcpy(&u, &a->addr, sizeof(u));
	if (u.any.sa_family == AF_INET)
		return is_loopback_v4(&u.v4.sin_addr);
	if (IN6_IS_ADDR_V4MAPPED(&u.v6.sin6_addr))
		return is_loopback_v4(&u.v6.sin6_addr.s6_addr[12]);
	return IN6_IS_ADDR_LOOPBACK(&u.v6.sin6_addr);
}

static enum rc failed(const char *text, struct err *err) {
	int errnum = errno;
	if (errnum == EADDRINUSE)
		return err_field(err, RC_CONFLICT, "listen", "%s is in use", text);
	char what[80];
	snprintf(what, sizeof(what), "listening on %s", text);
	return err_errno(err, errnum, what);
}

enum rc listen_open(const struct listen_addr *a, const char *text, int *fd, struct err *err) {
	auto_close int s = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s < 0)
		return failed(text, err);
	const int on = 1;
	if (setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return failed(text, err);
	if (a->addr.ss_family == AF_INET6 &&
		setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)))
		return failed(text, err);
	if (bind(s, (const struct sockaddr *)&a->addr, a->len) || listen(s, BACKLOG))
		return failed(text, err);
	*fd = s;
	s = -1;
	return RC_OK;
}

enum rc listen_url(int fd, bool tls, char *out, size_t size, struct err *err) {
	union any_addr u = {.v6 = {.sin6_family = AF_UNSPEC}};
	socklen_t len = sizeof(u);
	if (getsockname(fd, &u.any, &len))
		return err_errno(err, errno, "getsockname");
	char host[INET6_ADDRSTRLEN];
	bool v6 = u.any.sa_family == AF_INET6;
	const void *bytes = v6 ? (const void *)&u.v6.sin6_addr : (const void *)&u.v4.sin_addr;
	inet_ntop(u.any.sa_family, bytes, host, sizeof(host));
	snprintf(out, size, "%s://%s%s%s:%u", tls ? "https" : "http", v6 ? "[" : "", host,
		v6 ? "]" : "", ntohs(v6 ? u.v6.sin6_port : u.v4.sin_port));
	return RC_OK;
}

void listen_peer(const struct sockaddr *peer, char *out, size_t size) {
	union any_addr u;
	out[0] = '\0';
	if (!peer)
		return;
	if (peer->sa_family == AF_INET) {
		memcpy(&u.v4, peer, sizeof(u.v4));
		inet_ntop(AF_INET, &u.v4.sin_addr, out, (socklen_t)size);
	} else if (peer->sa_family == AF_INET6) {
		memcpy(&u.v6, peer, sizeof(u.v6));
		if (IN6_IS_ADDR_V4MAPPED(&u.v6.sin6_addr))
			inet_ntop(AF_INET, &u.v6.sin6_addr.s6_addr[12], out, (socklen_t)size);
		else
			inet_ntop(AF_INET6, &u.v6.sin6_addr, out, (socklen_t)size);
	}
}
