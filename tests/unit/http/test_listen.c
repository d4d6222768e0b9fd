#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "http/listen.h"

static void addresses(void **state) {
	(void)state;
	static const struct {
		const char *text;
		bool valid, loopback;
		const char *peer;
	} cases[] = {
		{"127.0.0.1:8484", true, true, "127.0.0.1"},
		{"127.9.9.9:0", true, true, "127.9.9.9"},
		{"0.0.0.0:80", true, false, "0.0.0.0"},
		{"10.0.0.7:65535", true, false, "10.0.0.7"},
		{"[::1]:0", true, true, "::1"},
		{"[::]:443", true, false, "::"},
		{"[::ffff:127.0.0.1]:1", true, true, "127.0.0.1"},
		{"[::ffff:10.0.0.1]:1", true, false, "10.0.0.1"},
		{"[fe80::1]:1", true, false, "fe80::1"},
		{"127.0.0.1", false, false, NULL},
		{"127.0.0.1:", false, false, NULL},
		{"127.0.0.1:65536", false, false, NULL},
		{"127.0.0.1:-1", false, false, NULL},
		{"127.0.0.1:80x", false, false, NULL},
		{"127.1:80", false, false, NULL},
		{"localhost:80", false, false, NULL},
		{":80", false, false, NULL},
		{"::1:80", false, false, NULL},
		{"[::1:80", false, false, NULL},
		{"[]:80", false, false, NULL},
		{"[127.0.0.1]:80", false, false, NULL},
		{"", false, false, NULL},
		{"1111111111111111111111111111111111111111111111111111111111:1", false, false,
			NULL},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct listen_addr a;
		struct err err;
		char peer[48];
		enum rc rc = listen_parse(cases[i].text, &a, &err);
		assert_int_equal(rc, cases[i].valid ? RC_OK : RC_INVALID);
		if (rc) {
			assert_string_equal(err.field, "listen");
			continue;
		}
		assert_int_equal(listen_is_loopback(&a), cases[i].loopback);
		listen_peer((const struct sockaddr *)&a.addr, peer, sizeof(peer));
		assert_string_equal(peer, cases[i].peer);
	}
	char none[48] = "x";
	listen_peer(NULL, none, sizeof(none));
	assert_string_equal(none, "");
}

static void port_is_read_back(void **state) {
	(void)state;
	struct listen_addr a;
	struct err err;
	char url[80], again[80];
	int fd, second;
	assert_int_equal(listen_parse("127.0.0.1:0", &a, &err), RC_OK);
	assert_int_equal(listen_open(&a, "127.0.0.1:0", &fd, &err), RC_OK);
	assert_int_equal(listen_url(fd, false, url, sizeof(url), &err), RC_OK);
	assert_memory_equal(url, "http://127.0.0.1:", 17);
	assert_true(strtoul(url + 17, NULL, 10) > 0);
	assert_int_equal(listen_url(fd, true, again, sizeof(again), &err), RC_OK);
	assert_memory_equal(again, "https://", 8);
	/* the same port again is a clear error */
	assert_int_equal(listen_parse(url + 7, &a, &err), RC_OK);
	assert_int_equal(listen_open(&a, url + 7, &second, &err), RC_CONFLICT);
	assert_non_null(strstr(err.msg, "in use"));
	close(fd);
	assert_int_equal(listen_parse("[::1]:0", &a, &err), RC_OK);
	assert_int_equal(listen_open(&a, "[::1]:0", &fd, &err), RC_OK);
	assert_int_equal(listen_url(fd, false, url, sizeof(url), &err), RC_OK);
	assert_memory_equal(url, "http://[::1]:", 13);
	close(fd);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(port_is_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
