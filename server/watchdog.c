#include "server/watchdog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "server/sd_notify.h"

#define ANSWER_MS 5000 /* for so long a stop may wait behind a probe */

/* A third of what the service manager allows, 0: it does not want to hear from us. */
static int64_t period_ms(void) {
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	return strtoll(usec, NULL, 10) / 3000;
}

/* The address in "https://[::1]:8484"; NULL when it cannot be. */
static struct addrinfo *address_of(const char *url) {
	const char *start = url + strcspn(url, "/") + strlen("//"), *port = strrchr(url, ':') + 1;
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char host[INET6_ADDRSTRLEN];
	bool v6 = *start == '[';
	start += v6;
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(start, v6 ? "]" : ":"), start);
	return getaddrinfo(host, port, &hints, &found) == 0 ? found : NULL;
}

static bool limit_waits(int fd, int64_t ms) {
	const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0;
}

/* Whatever the loop does with the connection shows that it goes round: it answers, it finds that
 * this is no TLS, it closes the connection since it has too many. */
static bool answers(const char *url, int64_t within_ms) {
	static const char request[] = "GET /healthz HTTP/1.0\r\n\r\n";
	char reply[16];
	struct addrinfo *to = address_of(url);
	auto_close int fd = to ? socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
	bool sent = fd >= 0 && limit_waits(fd, within_ms) &&
		connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
		send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0;
	if (to)
		freeaddrinfo(to);
	return sent && (recv(fd, reply, sizeof(reply), 0) >= 0 || errno == ECONNRESET);
}

int watchdog_wait(const sigset_t *set, const char *url) {
	int64_t ms = period_ms(), within_ms = ms < ANSWER_MS ? ms : ANSWER_MS;
	const struct timespec period = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	for (;;) {
		int sig = ms > 0 ? sigtimedwait(set, NULL, &period) : sigwaitinfo(set, NULL);
		if (sig > 0)
			return sig;
		if (errno != EAGAIN)
			continue;
		if (answers(url, within_ms))
			sd_notify_send("WATCHDOG=1");
		else
			log_warning(
				"server", "does not answer itself within %d ms", (int)within_ms);
	}
}
