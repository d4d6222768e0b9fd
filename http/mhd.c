#include "http/mhd.h"

#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/timer.h"
#include "http/conns.h"
#include "http/dispatch.h"
#include "http/listen.h"
#include "http/request_impl.h"
#include "http/server_impl.h"
#include "http/tls.h"

/* Poll, not epoll: the library's epoll loop stalls when one thread holds a multiple of 128
 * connections, and select ends at 1,024 descriptors. */
#define DAEMON_FLAGS \
	(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG)

/* Forward secrecy and authenticated encryption only. */
#define TLS_PRIORITIES \
	"NONE:+VERS-TLS1.3:+VERS-TLS1.2:+ECDHE-ECDSA:+ECDHE-RSA:+AES-256-GCM:+AES-128-GCM:" \
	"+CHACHA20-POLY1305:+AEAD:+SIGN-ALL:-SIGN-RSA-SHA1:-SIGN-ECDSA-SHA1:+GROUP-X25519:" \
	"+GROUP-SECP256R1:+GROUP-SECP384R1:+CTYPE-X509:%SERVER_PRECEDENCE"

#define STREAM_BLOCK_BYTES 4096
#define PEER_SIZE 48
struct listener {
	struct MHD_Daemon *daemon;
	int fd;
};

struct mhd {
	struct http_server *server; /* borrowed */
	struct timers *timers;
	struct conns *conns;
	unsigned count;
	struct listener listeners[HTTP_MAX_LISTENERS];
	pthread_mutex_t lock; /* guards log_line */
	char log_line[160];   /* the library's last */
};

/* --- connections --- */

/* NULL when memory was out. */
static struct conn *conn_of(struct MHD_Connection *c) {
	return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* NULL on a plain connection. */
static void *session_of(struct MHD_Connection *c) {
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	return info ? info->tls_session : NULL;
}

static void begin_tls(struct mhd *m, struct conn *conn, void *session) {
	struct tls_use *use = tls_begin(conn ? m->server->tls : NULL, session);
	if (conn)
		*conn_tls(conn) = use;
}

static void opened(struct mhd *m, struct MHD_Connection *c, void **context) {
	char peer[PEER_SIZE];
	mhd_peer(c, peer, sizeof(peer));
	int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct conn *conn = conn_opened(m->conns, fd, peer);
	*context = conn;
	void *session = session_of(c);
	if (session)
		begin_tls(m, conn, session);
}

static void closed(struct mhd *m, struct conn *conn) {
	if (conn)
		tls_end(*conn_tls(conn));
	conn_closed(m->conns, conn);
}

/* The library closes the descriptor only after this. */
static void on_connection(void *cls, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode code) {
	struct mhd *m = cls;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		opened(m, c, context);
	else
		closed(m, *context);
}

static enum MHD_Result on_accept(void *cls, const struct sockaddr *addr, unused_arg socklen_t len) {
	struct mhd *m = cls;
	char peer[PEER_SIZE];
	listen_peer(addr, peer, sizeof(peer));
	return conns_admit(m->conns, peer) ? MHD_YES : MHD_NO;
}

void mhd_received(struct http_server *s, struct MHD_Connection *c) {
	conn_wait(s->mhd->conns, conn_of(c), CONN_NOTHING);
}

void mhd_known(struct http_server *s, struct MHD_Connection *c) {
	conn_known(s->mhd->conns, conn_of(c));
}

void mhd_suspend(struct MHD_Connection *c) {
	MHD_suspend_connection(c);
}

void mhd_resume(struct MHD_Connection *c) {
	MHD_resume_connection(c);
}

/* --- requests --- */

/* Arguments would fill the library's memory of the connection, and closing it is all that the
 * library does then. It is about to write over them anyway: the text is in its own buffer. */
static void cut_arguments(const char *target) {
	char *query = strchr((char *)(uintptr_t)target, '?');
	if (query)
		query[1] = '\0';
}

/* The library decodes paths and arguments as a whole; ours are decoded part by part from the raw
 * target, which is seen only here. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *c) {
	struct mhd *m = cls;
	server_enter(m->server);
	struct http_request *q = request_new(m->server, c, target);
	if (!q)
		server_leave(m->server);
	cut_arguments(target);
	return q;
}

static enum MHD_Result queue(struct mhd *m, struct MHD_Connection *c, struct http_request *q) {
	bool is_stream = q->answer->content_type && !q->answer->bytes;
	conn_wait(m->conns, conn_of(c), is_stream ? CONN_NOTHING : CONN_ANSWER_TAKEN);
	conn_early(conn_of(c), dispatch_is_early(q));
	metric_add(METRIC_HTTP_REQUESTS, 1);
	if (q->answer->status >= 500)
		metric_add(METRIC_HTTP_5XX, 1);
	return MHD_queue_response(c, (unsigned)q->answer->status, q->answer->response);
}

static enum step take_step(
	struct http_request *q, const char *method, const char *data, size_t *size) {
	if (!q->reading) {
		enum step step = dispatch_headers(q, method);
		q->reading = step == STEP_READ;
		return step;
	}
	if (!*size)
		return dispatch_complete(q);
	size_t len = *size;
	*size = 0;
	return dispatch_body(q, data, len);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, unused_arg const char *url,
	const char *method, unused_arg const char *version, const char *data, size_t *size,
	void **context) {
	struct http_request *q = *context;
	if (!q)
		return MHD_NO; /* memory is out */
	switch (take_step(q, method, data, size)) {
	case STEP_READ:
	case STEP_WAIT:
		return MHD_YES;
	case STEP_ANSWER:
		return queue(cls, c, q);
	case STEP_CLOSE:
		break;
	}
	return MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *c, void **context,
	unused_arg enum MHD_RequestTerminationCode code) {
	struct mhd *m = cls;
	struct http_request *q = *context;
	*context = NULL;
	if (!q)
		return;
	conn_wait(m->conns, conn_of(c), CONN_REQUEST);
	request_unref(q);
	server_leave(m->server);
}

const char *mhd_header(struct MHD_Connection *c, const char *name) {
	const char *value = NULL;
	if (!MHD_lookup_connection_value_n(c, MHD_HEADER_KIND, name, strlen(name), &value, NULL))
		return NULL;
	return value ? value : "";
}

struct named {
	const char *name;
	unsigned count;
	const char *last;
};

static enum MHD_Result take_named(
	void *cls, unused_arg enum MHD_ValueKind kind, const char *key, const char *value) {
	struct named *n = cls;
	if (strcasecmp(key, n->name) == 0) {
		n->count++;
		n->last = value;
	}
	return MHD_YES;
}

unsigned mhd_header_count(struct MHD_Connection *c, const char *name) {
	struct named n = {.name = name};
	MHD_get_connection_values(c, MHD_HEADER_KIND, take_named, &n);
	return n.count;
}

const char *mhd_header_last(struct MHD_Connection *c, const char *name) {
	struct named n = {.name = name};
	MHD_get_connection_values(c, MHD_HEADER_KIND, take_named, &n);
	return n.last;
}

void mhd_peer(struct MHD_Connection *c, char *out, size_t size) {
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	listen_peer(info ? info->client_addr : NULL, out, size);
}

/* --- responses --- */

static void release_bytes(void *cls) {
	bytes_unref(cls);
}

static void release_stream(void *cls) {
	http_stream_free(cls);
}

static ssize_t read_stream(void *cls, unused_arg uint64_t pos, char *out, size_t max) {
	ssize_t n = stream_read(cls, out, max);
	return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

struct MHD_Response *mhd_response(struct bytes *bytes) {
	static char nothing[1];
	if (!bytes)
		return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
	struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(
		bytes->len, (void *)(uintptr_t)bytes->data, release_bytes, bytes);
	if (r)
		bytes_ref(bytes);
	return r;
}

struct MHD_Response *mhd_response_stream(struct http_stream *s) {
	struct MHD_Response *r = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, s, release_stream);
	if (!r)
		http_stream_free(s);
	return r;
}

bool mhd_response_header(struct MHD_Response *r, const char *name, const char *value) {
	return MHD_add_response_header(r, name, value) == MHD_YES;
}

void mhd_response_unref(struct MHD_Response *r) {
	MHD_destroy_response(r);
}

/* --- daemons --- */

static printf_like(2, 0) void on_log(void *cls, const char *fmt, va_list ap) {
	struct mhd *m = cls;
	char line[sizeof(m->log_line)];
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("http", "%s", line);
	pthread_mutex_lock(&m->lock);
	memcpy(m->log_line, line, sizeof(line));
	pthread_mutex_unlock(&m->lock);
}

struct mhd *mhd_new(struct http_server *server, struct err *err) {
	struct mhd *m = calloc(1, sizeof(*m));
	if (!m) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	m->server = server;
	pthread_mutex_init(&m->lock, NULL);
	m->timers = timers_new(CONNS_TIMERS, err);
	m->conns = m->timers ? conns_new(&server->config, m->timers, err) : NULL;
	if (m->conns)
		return m;
	mhd_free(m);
	return NULL;
}

#define MAX_OPTIONS 20

struct options {
	unsigned count;
	struct MHD_OptionItem items[MAX_OPTIONS + 1]; /* ends with MHD_OPTION_END, which is 0 */
};

static void add(struct options *o, enum MHD_OPTION option, intptr_t value, void *ptr) {
	o->items[o->count++] = (struct MHD_OptionItem){option, value, ptr};
}

/* The library's form of passing functions. */
static intptr_t fn(void (*f)(void)) {
	return (intptr_t)f;
}

static void add_options(struct options *o, struct mhd *m, int fd) {
	const struct http_config *config = &m->server->config;
	unsigned threads = config->loop_threads;
	intptr_t limit = (intptr_t)config->max_connections + 16 * (intptr_t)threads;
	add(o, MHD_OPTION_LISTEN_SOCKET, fd, NULL);
	add(o, MHD_OPTION_NOTIFY_COMPLETED, fn((void (*)(void))on_completed), m);
	add(o, MHD_OPTION_NOTIFY_CONNECTION, fn((void (*)(void))on_connection), m);
	add(o, MHD_OPTION_URI_LOG_CALLBACK, fn((void (*)(void))on_target), m);
	/* conns.h keeps the limits of all listeners; a thread that has its share leaves further
	 * ones to the others. */
	add(o, MHD_OPTION_CONNECTION_LIMIT, limit, NULL);
	add(o, MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)config->idle_timeout_s, NULL);
	add(o, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)config->header_bytes, NULL);
	add(o, MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL);
	if (threads > 1)
		add(o, MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL);
}

static void add_tls(struct options *o, const struct http_config *config) {
	const char *priorities = config->tls_priorities ? config->tls_priorities : TLS_PRIORITIES;
	add(o, MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_callback());
	add(o, MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)priorities);
}

/* With all signals blocked, which the library's threads inherit. */
static struct MHD_Daemon *start(struct mhd *m, unsigned flags, struct options *o) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	struct MHD_Daemon *d = MHD_start_daemon(flags, 0, on_accept, m, on_request, m,
		MHD_OPTION_EXTERNAL_LOGGER, on_log, m, MHD_OPTION_ARRAY, o->items, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return d;
}

enum rc mhd_listen(struct mhd *m, int fd, struct err *err) {
	const struct http_config *config = &m->server->config;
	struct options options = {.count = 0};
	unsigned flags = DAEMON_FLAGS;
	add_options(&options, m, fd);
	if (m->server->tls) {
		flags |= MHD_USE_TLS;
		add_tls(&options, config);
	}
	struct MHD_Daemon *daemon = start(m, flags, &options);
	if (!daemon)
		return err_set(err, m->server->tls ? RC_INVALID : RC_INTERNAL,
			"the HTTP listener did not start: %s", m->log_line);
	m->listeners[m->count++] = (struct listener){daemon, fd};
	return RC_OK;
}

void mhd_quiesce(struct mhd *m) {
	for (unsigned i = 0; i < m->count; i++) {
		MHD_quiesce_daemon(m->listeners[i].daemon);
		/* Refused at once instead of left in the backlog. */
		shutdown(m->listeners[i].fd, SHUT_RDWR);
	}
	conns_hurry(m->conns);
}

void mhd_free(struct mhd *m) {
	if (!m)
		return;
	if (m->conns)
		conns_stop(m->conns);
	timers_free(m->timers);
	for (unsigned i = 0; i < m->count; i++) {
		MHD_stop_daemon(m->listeners[i].daemon);
		close(m->listeners[i].fd);
	}
	conns_free(m->conns);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
