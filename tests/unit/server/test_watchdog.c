/* The watchdog: the service manager hears from us while the listener answers, and only then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/watchdog.h"

#define HEARD_MS 10000
#define SILENT_MS 500 /* five periods */

static int manager, listener;
static char url[64];
static pthread_t waiter;

static int make_manager(void **state) {
	(void)state;
	char name[64];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	snprintf(name, sizeof(name), "@drivewatt-watchdog-%d", (int)getpid());
	memcpy(at.sun_path + 1, name + 1, strlen(name) - 1);
	manager = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	setenv("NOTIFY_SOCKET", name, 1);
	setenv("WATCHDOG_USEC", "300000", 1);
	return bind(manager, (struct sockaddr *)&at, len);
}

static void *wait_for_signal(void *arg) {
	static int sig;
	sig = watchdog_wait(arg, url);
	return &sig;
}

static void listen_and_wait(int family, sigset_t *set) {
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in at4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	bool v6 = family == AF_INET6;
	socklen_t len = v6 ? sizeof(at) : sizeof(at4);
	struct sockaddr *to = v6 ? (struct sockaddr *)&at : (struct sockaddr *)&at4;
	listener = socket(family, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, to, len), 0);
	assert_int_equal(listen(listener, 64), 0);
	assert_int_equal(getsockname(listener, to, &len), 0);
	snprintf(url, sizeof(url), v6 ? "https://[::1]:%u" : "http://127.0.0.1:%u",
		ntohs(v6 ? at.sin6_port : at4.sin_port));
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_signal, set), 0);
}

static void stop(void) {
	void *sig;
	kill(getpid(), SIGTERM);
	pthread_join(waiter, &sig);
	assert_int_equal(*(int *)sig, SIGTERM);
	close(listener);
}

static bool heard(int within_ms) {
	struct pollfd p = {.fd = manager, .events = POLLIN};
	char text[64] = "";
	if (poll(&p, 1, within_ms) != 1)
		return false;
	assert_true(recv(manager, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "WATCHDOG=1");
	return true;
}

static int accept_probe(void) {
	char text[64] = "";
	int fd = accept(listener, NULL, NULL);
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "GET /healthz HTTP/1.0\r\n\r\n");
	return fd;
}

static void test_an_answer_is_passed_on(void **state) {
	(void)state;
	sigset_t set;
	listen_and_wait(AF_INET, &set);
	for (int i = 0; i < 2; i++) {
		int fd = accept_probe();
		assert_int_equal(write(fd, "HTTP/1.1 200", 12), 12);
		close(fd);
		assert_true(heard(HEARD_MS));
	}
	stop();
}

static void test_a_closed_connection_is_an_answer(void **state) {
	(void)state;
	sigset_t set;
	listen_and_wait(AF_INET6, &set);
	close(accept_probe());
	assert_true(heard(HEARD_MS));
	stop();
}

static void test_silence_is_none(void **state) {
	(void)state;
	sigset_t set;
	listen_and_wait(AF_INET, &set);
	int fd = accept_probe();
	assert_false(heard(SILENT_MS));
	close(fd);
	stop();
}

static void test_nobody_is_told_unasked(void **state) {
	(void)state;
	sigset_t set;
	const char *const others[][2] = {{NULL, NULL}, {"300000", "1"}, {"0", NULL}, {"x", NULL}};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		unsetenv("WATCHDOG_USEC");
		unsetenv("WATCHDOG_PID");
		if (others[i][0])
			setenv("WATCHDOG_USEC", others[i][0], 1);
		if (others[i][1])
			setenv("WATCHDOG_PID", others[i][1], 1);
		listen_and_wait(AF_INET, &set);
		struct pollfd p = {.fd = listener, .events = POLLIN};
		assert_int_equal(poll(&p, 1, SILENT_MS), 0);
		stop();
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_passed_on),
		cmocka_unit_test(test_a_closed_connection_is_an_answer),
		cmocka_unit_test(test_silence_is_none),
		cmocka_unit_test(test_nobody_is_told_unasked),
	};
	return cmocka_run_group_tests(tests, make_manager, NULL);
}
