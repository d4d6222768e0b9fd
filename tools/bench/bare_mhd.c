/*
 * The ceiling that drivewatt's answers from its cache are measured against: libmicrohttpd alone,
 * which answers every request with the same bytes.
 *
 *   bare_mhd FILE PORT THREADS [poll|select|epoll]
 *
 * Listens on 127.0.0.1, prints its URL and runs until its standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES (16 * 1024 * 1024)

static const struct {
	const char *name;
	unsigned flags;
} modes[] = {
	{"poll", MHD_USE_POLL_INTERNAL_THREAD},
	{"select", MHD_USE_INTERNAL_POLLING_THREAD},
	{"epoll", MHD_USE_EPOLL_INTERNAL_THREAD},
};

/* The first call of a request only says that it is wanted: an answer in it would close the
 * connection. */
static enum MHD_Result answer(void *cls, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context) {
	static int seen;
	(void)url;
	(void)method;
	(void)version;
	(void)data;
	*size = 0;
	if (!*context) {
		*context = &seen;
		return MHD_YES;
	}
	return MHD_queue_response(c, MHD_HTTP_OK, cls);
}

static struct MHD_Response *response_of(const char *path) {
	FILE *f = fopen(path, "rb");
	char *data = f ? malloc(FILE_MAX_BYTES) : NULL;
	if (!data) {
		perror(path);
		return NULL;
	}
	size_t len = fread(data, 1, FILE_MAX_BYTES, f);
	fclose(f);
	struct MHD_Response *r = MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
	if (r)
		MHD_add_response_header(r, "Content-Type", "application/json");
	return r;
}

static int flags_of(const char *name, unsigned *flags) {
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(modes[i].name, name)) {
			*flags = modes[i].flags;
			return 0;
		}
	}
	return -1;
}

int main(int argc, char **argv) {
	unsigned flags = 0;
	if (argc < 4 || flags_of(argc > 4 ? argv[4] : "poll", &flags)) {
		fprintf(stderr, "usage: bare_mhd FILE PORT THREADS [poll|select|epoll]\n");
		return 2;
	}
	unsigned long port = strtoul(argv[2], NULL, 10);
	unsigned long threads = strtoul(argv[3], NULL, 10);
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	struct MHD_Response *response = response_of(argv[1]);
	if (!response)
		return 1;
	struct MHD_Daemon *d = MHD_start_daemon(flags, 0, NULL, NULL, answer, response,
		MHD_OPTION_SOCK_ADDR, &addr, MHD_OPTION_CONNECTION_LIMIT, 2048U,
		MHD_OPTION_CONNECTION_TIMEOUT, 60U, MHD_OPTION_THREAD_POOL_SIZE,
		threads > 1 ? (unsigned)threads : 0U, MHD_OPTION_END);
	const union MHD_DaemonInfo *info =
		d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info) {
		fprintf(stderr, "bare_mhd: did not start\n");
		return 1;
	}
	printf("http://127.0.0.1:%u/\n", info->port);
	fflush(stdout);
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
	MHD_stop_daemon(d);
	MHD_destroy_response(response);
	return 0;
}
