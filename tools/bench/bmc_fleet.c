/*
 * Thousands of small BMCs in one process: each address 127.1.x.y is one, over TLS 1.3 or 1.2 with
 * connections kept, sessions and a reading that changes. Listens on loopback alone, prints
 * "PORT FINGERPRINT" and runs until its standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256
#define REQUEST_MAX 4096
#define ANSWER_MAX 4096
#define CHASSIS "/redfish/v1/Chassis/1"
#define SESSIONS "/redfish/v1/SessionService/Sessions"
/* What BMCs tell beside the watts: an answer of 1.3 KiB. */
#define REST \
	"\"@odata.type\":\"#EnvironmentMetrics.v1_3_0.EnvironmentMetrics\"," \
	"\"TemperatureCelsius\":{\"Reading\":24.5},\"FanSpeedsPercent\":[" \
	"{\"DeviceName\":\"Fan 1\",\"Reading\":41,\"SpeedRPM\":6120}," \
	"{\"DeviceName\":\"Fan 2\",\"Reading\":41,\"SpeedRPM\":6120}," \
	"{\"DeviceName\":\"Fan 3\",\"Reading\":41,\"SpeedRPM\":6120}," \
	"{\"DeviceName\":\"Fan 4\",\"Reading\":41,\"SpeedRPM\":6120}]"

struct client {
	int fd;
	SSL *ssl;
	size_t used;
	char request[REQUEST_MAX];
};

static const struct {
	const char *path, *body;
} documents[] = {
	{"/redfish/v1/ ",
		"{\"Id\":\"RootService\",\"Chassis\":{\"@odata.id\":\"/redfish/v1/Chassis\"},"
		"\"Links\":{\"Sessions\":{\"@odata.id\":\"" SESSIONS "\"}}}"},
	{"/redfish/v1/Chassis ", "{\"Members\":[{\"@odata.id\":\"" CHASSIS "\"}]}"},
	{CHASSIS " ",
		"{\"Id\":\"1\",\"ChassisType\":\"RackMount\",\"PowerState\":\"On\","
		"\"EnvironmentMetrics\":{\"@odata.id\":\"" CHASSIS "/EnvironmentMetrics\"}}"},
};

static void die(const char *what) {
	perror(what);
	exit(1);
}

/* --- the certificate --- */

static SSL_CTX *make_context(char fingerprint[2 * EVP_MAX_MD_SIZE + 1]) {
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_set_pubkey(cert, key);
	X509_NAME *name = X509_get_subject_name(cert);
	X509_NAME_add_entry_by_txt(
		name, "CN", MBSTRING_ASC, (const unsigned char *)"bmc", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	if (!X509_sign(cert, key, EVP_sha256()) || !X509_digest(cert, EVP_sha256(), digest, &len) ||
		!SSL_CTX_use_certificate(context, cert) || !SSL_CTX_use_PrivateKey(context, key))
		die("certificate");
	for (unsigned i = 0; i < len; i++)
		sprintf(fingerprint + (size_t)2 * i, "%02x", digest[i]);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	return context;
}

/* --- answers --- */

static void say(struct client *c, const char *status, const char *headers, const char *body) {
	char answer[ANSWER_MAX];
	int n = snprintf(answer, sizeof(answer),
		"HTTP/1.1 %s\r\nContent-Type: application/json\r\nOData-Version: 4.0\r\n"
		"%sContent-Length: %zu\r\n\r\n%s",
		status, headers, strlen(body), body);
	SSL_write(c->ssl, answer, n);
}

static void say_watts(struct client *c) {
	static unsigned n;
	char body[2048], padding[1200];
	n = n * 1664525 + 1013904223;
	memset(padding, 'x', sizeof(padding));
	int used = snprintf(body, sizeof(body),
		"{\"PowerWatts\":{\"Reading\":%u.5},\"Id\":\"EnvironmentMetrics\"," REST, 300 + n % 256);
	snprintf(body + used, sizeof(body) - (size_t)used, ",\"Description\":\"%.*s\"}",
		1330 - used - 18, padding);
	say(c, "200 OK", "", body);
}

static void answer(struct client *c, const char *request) {
	const char *path = strchr(request, ' ') + 1;
	if (strncmp(request, "POST ", 5) == 0) {
		say(c, "201 Created", "X-Auth-Token: 0123456789abcdef\r\nLocation: " SESSIONS "/1\r\n",
			"{\"@odata.id\":\"" SESSIONS "/1\"}");
		return;
	}
	if (strncmp(path, CHASSIS "/EnvironmentMetrics ", sizeof(CHASSIS "/EnvironmentMetrics")) == 0) {
		say_watts(c);
		return;
	}
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		if (strncmp(path, documents[i].path, strlen(documents[i].path)) == 0) {
			say(c, "200 OK", "", documents[i].body);
			return;
		}
	}
	say(c, strncmp(request, "DELETE ", 7) == 0 ? "200 OK" : "404 Not Found", "", "{}");
}

/* Answers what has come whole. */
static bool serve(struct client *c) {
	c->request[c->used] = '\0';
	char *end = strstr(c->request, "\r\n\r\n");
	if (!end)
		return c->used < REQUEST_MAX - 1;
	const char *length = strcasestr(c->request, "\r\nContent-Length:");
	size_t whole = (size_t)(end - c->request) + 4 + (length ? strtoul(length + 17, NULL, 10) : 0);
	if (c->used < whole)
		return whole < REQUEST_MAX - 1;
	answer(c, c->request);
	c->used = 0; /* one request at a time is all that comes */
	return true;
}

/* --- connections --- */

static void drop(struct client *c) {
	SSL_free(c->ssl);
	close(c->fd);
	free(c);
}

static bool again(struct client *c, int rc) {
	int why = SSL_get_error(c->ssl, rc);
	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* False: it is over. */
static bool go_on(struct client *c) {
	int n;
	if (!SSL_is_init_finished(c->ssl)) {
		n = SSL_accept(c->ssl);
		if (n <= 0)
			return again(c, n);
	}
	while ((n = SSL_read(c->ssl, c->request + c->used, (int)(REQUEST_MAX - 1 - c->used))) > 0) {
		c->used += (size_t)n;
		if (!serve(c))
			return false;
	}
	return again(c, n);
}

static void take(int listener, int epoll, SSL_CTX *context) {
	int fd, on = 1;
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		struct client *c = calloc(1, sizeof(*c));
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		c->fd = fd;
		c->ssl = SSL_new(context);
		SSL_set_fd(c->ssl, fd);
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
	}
}

static int listen_on_loopback(unsigned short *port) {
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) ||
		bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 4096) ||
		getsockname(fd, (struct sockaddr *)&at, &len))
		die("listen");
	*port = ntohs(at.sin_port);
	return fd;
}

int main(void) {
	char fingerprint[2 * EVP_MAX_MD_SIZE + 1];
	unsigned short port;
	struct epoll_event events[EVENTS];
	static int standard_input, listening;
	signal(SIGPIPE, SIG_IGN);
	SSL_CTX *context = make_context(fingerprint);
	int listener = listen_on_loopback(&port), epoll = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = &listening};
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
	e.data.ptr = &standard_input;
	epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &e);
	printf("%u %s\n", port, fingerprint);
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			void *who = events[i].data.ptr;
			if (who == &standard_input)
				return 0;
			if (who == &listening)
				take(listener, epoll, context);
			else if (!go_on(who))
				drop(who);
		}
	}
}
