/*
 * The ceiling that drivewatt's answers from its cache are measured against: libmicrohttpd alone,
 * which answers every request with the same headers and bytes.
 *
 *   bare_mhd FILE THREADS [poll|select|epoll]
 *
 * FILE holds an answer as it was received: header lines, an empty line, the body. Listens on
 * 127.0.0.1, prints its URL and runs until its standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_MAX_BYTES (16 * 1024 * 1024)
/* As drivewatt's listeners have them. */
#define CONNECTIONS_MAX 2048U
#define CONNECTION_BYTES ((size_t)16 * 1024)

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

static char *read_file(const char *path, size_t *len) {
	FILE *f = fopen(path, "rb");
	char *data = f ? malloc(FILE_MAX_BYTES + 1) : NULL;
	if (!data) {
		perror(path);
		return NULL;
	}
	*len = fread(data, 1, FILE_MAX_BYTES, f);
	data[*len] = '\0';
	fclose(f);
	return data;
}

/* What the library adds by itself. */
static int is_own(const char *line) {
	return !strncasecmp(line, "Date:", 5) || !strncasecmp(line, "Content-Length:", 15) ||
		!strncasecmp(line, "Connection:", 11);
}

static void add_header(struct MHD_Response *r, char *line) {
	char *value = strchr(line, ':');
	if (!value || is_own(line))
		return;
	*value++ = '\0';
	MHD_add_response_header(r, line, value + strspn(value, " "));
}

static struct MHD_Response *response_of(const char *path) {
	size_t len;
	char *text = read_file(path, &len);
	char *body = text ? strstr(text, "\r\n\r\n") : NULL;
	if (!body) {
		fprintf(stderr, "%s is no answer\n", path);
		return NULL;
	}
	body += 4;
	struct MHD_Response *r = MHD_create_response_from_buffer(
		len - (size_t)(body - text), body, MHD_RESPMEM_MUST_COPY);
	body[-2] = '\0';
	for (char *line = strtok(text, "\r\n"); r && line; line = strtok(NULL, "\r\n"))
		add_header(r, line);
	free(text);
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

static struct MHD_Daemon *start(unsigned flags, unsigned threads, struct MHD_Response *response) {
	struct sockaddr_in addr = {.sin_family = AF_INET};
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return MHD_start_daemon(flags, 0, NULL, NULL, answer, response, MHD_OPTION_SOCK_ADDR, &addr,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, 60U, MHD_OPTION_THREAD_POOL_SIZE,
		threads > 1 ? threads : 0U, MHD_OPTION_END);
}

int main(int argc, char **argv) {
	unsigned flags = 0;
	if (argc < 3 || flags_of(argc > 3 ? argv[3] : "poll", &flags)) {
		fprintf(stderr, "usage: bare_mhd FILE THREADS [poll|select|epoll]\n");
		return 2;
	}
	struct MHD_Response *response = response_of(argv[1]);
	if (!response)
		return 1;
	struct MHD_Daemon *d = start(flags, (unsigned)strtoul(argv[2], NULL, 10), response);
	const union MHD_DaemonInfo *info =
		d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (!info) {
		fprintf(stderr, "bare_mhd: did not start\n");
		return 1;
	}
	printf("http://127.0.0.1:%u\n", info->port);
	fflush(stdout);
	char byte;
	while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
	MHD_stop_daemon(d);
	MHD_destroy_response(response);
	return 0;
}
