#include "core/sim/nbd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/sim/proto.h"

#define SCRATCH_BYTES (256u * 1024)
#define MAX_ANSWER_BYTES 16384 /* of one turn of a negotiation */
#define MAX_EVENTS 64
#define MAX_REPLIES 64 /* of one send */
/* Shorter sleeps would cost a wake-up for every request of a fast drive; virtual time makes up
 * for the difference. */
#define MIN_SLEEP_NS 250000
/* An answer is late when it leaves this much, and a 20th of its time, after it should. */
#define LATE_NS 10000000
#define LATE_PART 20

/* What epoll hands back: the first member of everything that is watched. */
struct watch {
	int fd;
	void (*ready)(struct sim_nbd *n, struct watch *w, uint32_t events);
};

struct listener {
	struct watch watch;
	unsigned drive;
	unsigned connections;
	char name[16];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

struct request {
	struct sim_op op;
	enum sim_nbd_error error;
};

struct conn {
	struct watch watch; /* fd -1: hung up, kept until the pace gives back the last request */
	struct conn *prev, *next;
	struct conn *next_to_flush;
	struct listener *listener;
	struct sim_nbd_session session;
	bool stalled; /* all requests are in flight: input waits */
	bool blocked; /* the client does not take its answers */
	bool to_flush;
	uint32_t events;          /* what epoll watches */
	uint64_t discard;         /* payload still to come */
	struct request *incoming; /* waits for its payload */
	unsigned in_pace;
	struct sim_op *free;
	struct sim_op *out_first, *out_last; /* answers to send; the first is sent up to out_sent */
	size_t out_sent;
	size_t in_len;
	uint8_t in[SIM_NBD_INPUT_BYTES];
	struct request requests[SIM_NBD_DEPTH];
};

struct sim_nbd {
	struct sim_nbd_config config;
	struct sim_pace *pace;
	int epoll_fd;
	int spare_fd; /* given up to accept and close when descriptors run out */
	struct watch stop;
	bool stopping, started;
	pthread_t thread;
	struct listener *listeners;
	struct conn *conns;
	unsigned conn_count;
	struct conn *flush; /* have new answers */
	bool told_late, told_full, told_foreign;
	uint8_t *scratch; /* payload that nobody wants */
	uint8_t *zeros;
};

void sim_drive_name(unsigned drive, char *out, size_t size) {
	snprintf(out, size, "sim%02u", drive);
}

/* --- connections --- */

static bool watch_add(struct sim_nbd *n, struct watch *w) {
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = w};
	return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, w->fd, &e) == 0;
}

static void watch_update(struct sim_nbd *n, struct conn *c) {
	const uint32_t events =
		(c->stalled ? 0 : (uint32_t)EPOLLIN) | (c->blocked ? (uint32_t)EPOLLOUT : 0);
	if (events == c->events)
		return;
	struct epoll_event e = {.events = events, .data.ptr = &c->watch};
	epoll_ctl(n->epoll_fd, EPOLL_CTL_MOD, c->watch.fd, &e);
	c->events = events;
}

static void conn_unlink(struct sim_nbd *n, struct conn *c) {
	if (c->prev)
		c->prev->next = c->next;
	else
		n->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	n->conn_count--;
	free(c);
}

static void hang_up(struct sim_nbd *n, struct conn *c) {
	close(c->watch.fd);
	c->watch.fd = -1;
	c->listener->connections--;
	c->in_pace -= sim_pace_withdraw(n->pace, c->listener->drive, c);
	if (!c->in_pace)
		conn_unlink(n, c);
}

static void conn_ready(struct sim_nbd *n, struct watch *w, uint32_t events);

static struct conn *conn_new(struct sim_nbd *n, struct listener *l, int fd) {
	struct conn *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->watch = (struct watch){.fd = fd, .ready = conn_ready};
	c->events = EPOLLIN;
	c->listener = l;
	for (size_t i = 0; i < SIM_NBD_DEPTH; i++) {
		c->requests[i].op.owner = c;
		c->requests[i].op.next = c->free;
		c->free = &c->requests[i].op;
	}
	if (!watch_add(n, &c->watch)) {
		free(c);
		return NULL;
	}
	c->next = n->conns;
	if (c->next)
		c->next->prev = c;
	n->conns = c;
	n->conn_count++;
	l->connections++;
	return c;
}

/* --- answers --- */

static size_t answer_bytes(const struct sim_op *op) {
	const struct request *r = (const struct request *)op;
	const bool has_data = op->kind == SIM_OP_READ && r->error == SIM_NBD_OK;
	return SIM_NBD_REPLY_BYTES + (has_data ? op->bytes : 0);
}

static void add_answer(struct conn *c, struct sim_op *op) {
	op->next = NULL;
	if (c->out_first)
		c->out_last->next = op;
	else
		c->out_first = op;
	c->out_last = op;
}

static void note_late(struct sim_nbd *n, const struct sim_op *op, int64_t now_ns) {
	const int64_t allowed_ns = LATE_NS + (op->due_ns - op->arrived_ns) / LATE_PART;
	if (op->due_ns == 0 || now_ns - op->due_ns <= allowed_ns)
		return;
	metric_add(METRIC_SIM_LATE, 1);
	if (!n->told_late)
		log_warning("sim",
			"answers leave later than the simulated drives give them: "
			"this machine is too slow for the scale");
	n->told_late = true;
}

/* Takes what was sent off the list of answers. */
static void sent(struct sim_nbd *n, struct conn *c, size_t bytes) {
	const int64_t now_ns = clock_mono_ns();
	c->out_sent += bytes;
	while (c->out_first && c->out_sent >= answer_bytes(c->out_first)) {
		struct sim_op *op = c->out_first;
		c->out_sent -= answer_bytes(op);
		c->out_first = op->next;
		note_late(n, op, now_ns);
		op->next = c->free;
		c->free = op;
	}
}

/* Fills iov with the rest of the first answers; returns the number of entries. */
static size_t gather(const struct sim_nbd *n, const struct conn *c,
	uint8_t heads[MAX_REPLIES][SIM_NBD_REPLY_BYTES], struct iovec iov[2 * MAX_REPLIES]) {
	size_t used = 0;
	size_t skip = c->out_sent;
	const struct sim_op *op = c->out_first;
	for (size_t i = 0; op && i < MAX_REPLIES; i++, op = op->next) {
		size_t data = answer_bytes(op) - SIM_NBD_REPLY_BYTES;
		if (skip < SIM_NBD_REPLY_BYTES) {
			sim_nbd_reply(op->tag, ((const struct request *)op)->error, heads[i]);
			iov[used++] = (struct iovec){heads[i] + skip, SIM_NBD_REPLY_BYTES - skip};
		} else {
			data -= skip - SIM_NBD_REPLY_BYTES;
		}
		skip = 0;
		if (data)
			iov[used++] = (struct iovec){
				n->zeros, data < SCRATCH_BYTES ? data : SCRATCH_BYTES};
		/* The zeros end here; the next send goes on. */
		if (data > SCRATCH_BYTES)
			break;
	}
	return used;
}

/* False: the client is gone. */
static bool send_answers(struct sim_nbd *n, struct conn *c) {
	c->blocked = false;
	while (c->out_first) {
		uint8_t heads[MAX_REPLIES][SIM_NBD_REPLY_BYTES];
		struct iovec iov[2 * MAX_REPLIES];
		struct msghdr m = {.msg_iov = iov, .msg_iovlen = gather(n, c, heads, iov)};
		const ssize_t got = sendmsg(c->watch.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		c->blocked = got < 0 && errno == EAGAIN;
		if (got < 0)
			return c->blocked;
		sent(n, c, (size_t)got);
	}
	return true;
}

/* --- requests --- */

static const enum sim_op_kind op_kinds[] = {
	[SIM_NBD_READ] = SIM_OP_READ,
	[SIM_NBD_WRITE] = SIM_OP_WRITE,
	[SIM_NBD_FLUSH] = SIM_OP_FLUSH,
	[SIM_NBD_TRIM] = SIM_OP_TRIM,
	[SIM_NBD_WRITE_ZEROES] = SIM_OP_TRIM,
};

static void carry_out(struct sim_nbd *n, struct conn *c, struct request *r) {
	if (r->error) {
		add_answer(c, &r->op);
		return;
	}
	c->in_pace++;
	sim_pace_submit(n->pace, c->listener->drive, &r->op, clock_mono_ns());
}

static void accept_request(struct sim_nbd *n, struct conn *c, const struct sim_nbd_request *in) {
	struct request *r = (struct request *)c->free;
	c->free = r->op.next;
	r->op.tag = in->tag;
	r->op.bytes = in->length;
	r->op.kind = in->error ? SIM_OP_FLUSH : op_kinds[in->command];
	r->op.due_ns = 0;
	r->error = in->error;
	c->discard = in->payload;
	if (c->discard)
		c->incoming = r;
	else
		carry_out(n, c, r);
}

/* Drops len bytes of payload; the request it belongs to may go on when that was the last. */
static void drop_payload(struct sim_nbd *n, struct conn *c, size_t len) {
	c->discard -= len;
	if (!c->discard && c->incoming) {
		carry_out(n, c, c->incoming);
		c->incoming = NULL;
	}
}

static bool take_request(
	struct sim_nbd *n, struct conn *c, const uint8_t *data, size_t len, size_t *taken) {
	struct sim_nbd_request in;
	*taken = 0;
	c->stalled = !c->free;
	if (c->stalled)
		return true;
	if (sim_nbd_take_request(&c->session, data, len, taken, &in, NULL))
		return false;
	if (!*taken)
		return true;
	if (in.command == SIM_NBD_DISC)
		return false;
	accept_request(n, c, &in);
	return true;
}

/* A client that does not read what it asked for in the negotiation is not waited for. */
static bool send_all(int fd, const struct buf *b) {
	return b->failed == RC_OK &&
		(b->len == 0 ||
			send(fd, b->data, b->len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b->len);
}

static bool negotiate(struct conn *c, const uint8_t *data, size_t len, size_t *taken) {
	struct buf out;
	buf_init(&out, MAX_ANSWER_BYTES);
	bool good = !sim_nbd_negotiate(&c->session, data, len, taken, &out, NULL);
	good = good && send_all(c->watch.fd, &out) && c->session.phase != SIM_NBD_CLOSED;
	buf_release(&out);
	return good;
}

/* Works through what has been received. False: hang up. */
static bool take_input(struct sim_nbd *n, struct conn *c) {
	size_t at = 0;
	size_t taken;
	do {
		const size_t left = c->in_len - at;
		taken = c->discard < left ? (size_t)c->discard : left;
		if (c->discard)
			drop_payload(n, c, taken);
		else if (c->session.phase == SIM_NBD_TRANSMISSION) {
			if (!take_request(n, c, c->in + at, left, &taken))
				return false;
		} else if (!negotiate(c, c->in + at, left, &taken))
			return false;
		at += taken;
	} while (taken);
	c->in_len -= at;
	memmove(c->in, c->in + at, c->in_len);
	return true;
}

/* Payload goes past the input buffer. */
static bool receive(struct sim_nbd *n, struct conn *c) {
	struct iovec iov[] = {
		{n->scratch, c->discard < SCRATCH_BYTES ? (size_t)c->discard : SCRATCH_BYTES},
		{c->in + c->in_len, sizeof(c->in) - c->in_len},
	};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = c->discard > SCRATCH_BYTES ? 1 : 2};
	const ssize_t got = recvmsg(c->watch.fd, &m, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return false;
	const size_t payload = (size_t)got < iov[0].iov_len ? (size_t)got : iov[0].iov_len;
	if (payload)
		drop_payload(n, c, payload);
	c->in_len += (size_t)got - payload;
	return take_input(n, c);
}

/* Sends answers, and goes on with input that waited for a free request. False: hang up. */
static bool push_out(struct sim_nbd *n, struct conn *c) {
	do {
		if (!send_answers(n, c))
			return false;
		if (c->stalled && !take_input(n, c))
			return false;
	} while (c->out_first && !c->blocked);
	watch_update(n, c);
	return true;
}

static void conn_ready(struct sim_nbd *n, struct watch *w, uint32_t events) {
	struct conn *c = (struct conn *)w;
	bool good = !(events & (EPOLLHUP | EPOLLERR));
	if (good && events & EPOLLIN)
		good = receive(n, c);
	if (!good || !push_out(n, c))
		hang_up(n, c);
}

/* --- the pace's side --- */

static void give_back(struct sim_nbd *n, struct sim_op *op) {
	struct conn *c = op->owner;
	c->in_pace--;
	if (c->watch.fd < 0) {
		if (!c->in_pace)
			conn_unlink(n, c);
		return;
	}
	add_answer(c, op);
	if (c->to_flush)
		return;
	c->to_flush = true;
	c->next_to_flush = n->flush;
	n->flush = c;
}

static void answer_done(struct sim_nbd *n) {
	struct sim_op *op;
	const int64_t now_ns = clock_mono_ns();
	while ((op = sim_pace_done(n->pace, now_ns)))
		give_back(n, op);
	while (n->flush) {
		struct conn *c = n->flush;
		n->flush = c->next_to_flush;
		c->to_flush = false;
		if (!c->blocked && !push_out(n, c))
			hang_up(n, c);
	}
}

/* --- listening --- */

/* Without a descriptor to accept with, the listener would be ready for ever. */
static int accept_one(struct sim_nbd *n, int listen_fd) {
	const int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
		return fd;
	close(n->spare_fd);
	const int unwanted = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (unwanted >= 0)
		close(unwanted);
	n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return -1;
}

static bool is_full(struct sim_nbd *n, const struct listener *l) {
	const bool full =
		l->connections >= SIM_NBD_CONNECTIONS || n->conn_count >= SIM_NBD_ALL_CONNECTIONS;
	if (full && !n->told_full)
		log_warning("sim", "connection refused: a drive takes %d, all take %d",
			SIM_NBD_CONNECTIONS, SIM_NBD_ALL_CONNECTIONS);
	n->told_full |= full;
	return full;
}

/* fio is root's, without capabilities, or ours. Others would take connections away from it. */
static bool is_foreign(struct sim_nbd *n, int fd) {
	struct ucred peer;
	socklen_t size = sizeof(peer);
	const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
	if (known && (peer.uid == 0 || peer.uid == geteuid()))
		return false;
	if (!n->told_foreign)
		log_warning("sim", "connection refused: not of root or of this account");
	n->told_foreign = true;
	return true;
}

static void listener_ready(struct sim_nbd *n, struct watch *w, uint32_t events unused_arg) {
	struct listener *l = (struct listener *)w;
	const int fd = accept_one(n, w->fd);
	if (fd < 0)
		return;
	struct conn *c = is_foreign(n, fd) || is_full(n, l) ? NULL : conn_new(n, l, fd);
	if (!c) {
		close(fd);
		return;
	}
	struct buf greeting;
	sim_nbd_session_init(&c->session, l->name, n->config.size_bytes, n->config.block_bytes);
	buf_init(&greeting, MAX_ANSWER_BYTES);
	sim_nbd_greet(&greeting);
	if (!send_all(fd, &greeting))
		hang_up(n, c);
	buf_release(&greeting);
}

static enum rc listen_at(struct sim_nbd *n, struct listener *l, struct err *err) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	sim_drive_name(l->drive, l->name, sizeof(l->name));
	const int len = snprintf(
		a.sun_path, sizeof(a.sun_path), "%s/%s.sock", n->config.socket_dir, l->name);
	if (len < 0 || (size_t)len >= sizeof(a.sun_path))
		return err_set(
			err, RC_TOO_LARGE, "the path of the simulator's sockets is too long");
	str_copy(l->path, sizeof(l->path), a.sun_path);
	l->watch.ready = listener_ready;
	l->watch.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->watch.fd < 0)
		return err_errno(err, errno, "socket of a simulated drive");
	unlink(l->path);
	/* Root without capabilities, as fio is, is let in by the mode of others; see is_foreign. */
	if (bind(l->watch.fd, (struct sockaddr *)&a, sizeof(a)) || chmod(l->path, 0666) ||
		listen(l->watch.fd, SIM_NBD_CONNECTIONS) || !watch_add(n, &l->watch))
		return err_errno(err, errno, l->path);
	return RC_OK;
}

/* --- the thread --- */

static void stop_ready(struct sim_nbd *n, struct watch *w unused_arg, uint32_t events unused_arg) {
	n->stopping = true;
}

static int wait_events(struct sim_nbd *n, struct epoll_event events[MAX_EVENTS]) {
	const int64_t due_ns = sim_pace_next_ns(n->pace);
	if (due_ns == INT64_MAX)
		return epoll_wait(n->epoll_fd, events, MAX_EVENTS, -1);
	int64_t sleep_ns = due_ns - clock_mono_ns();
	if (sleep_ns < MIN_SLEEP_NS)
		sleep_ns = MIN_SLEEP_NS;
	const struct timespec t = {sleep_ns / 1000000000, sleep_ns % 1000000000};
	return epoll_pwait2(n->epoll_fd, events, MAX_EVENTS, &t, NULL);
}

static void *serve(void *arg) {
	struct sim_nbd *n = arg;
	while (!n->stopping) {
		struct epoll_event events[MAX_EVENTS];
		const int count = wait_events(n, events);
		for (int i = 0; i < count; i++) {
			struct watch *w = events[i].data.ptr;
			w->ready(n, w, events[i].events);
		}
		answer_done(n);
	}
	return NULL;
}

/* --- construction --- */

static enum rc open_all(struct sim_nbd *n, struct err *err) {
	n->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	n->stop = (struct watch){eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), stop_ready};
	if (n->epoll_fd < 0 || n->spare_fd < 0 || n->stop.fd < 0 || !watch_add(n, &n->stop))
		return err_errno(err, errno, "descriptors of the simulator");
	if ((mkdir(n->config.socket_dir, 0700) && errno != EEXIST) ||
		chmod(n->config.socket_dir, 0711))
		return err_errno(err, errno, n->config.socket_dir);
	for (unsigned i = 0; i < n->config.drives; i++) {
		enum rc rc = listen_at(n, &n->listeners[i], err);
		if (rc)
			return rc;
	}
	return RC_OK;
}

static bool allocate(struct sim_nbd *n) {
	n->scratch = malloc(SCRATCH_BYTES);
	n->zeros = calloc(1, SCRATCH_BYTES);
	n->listeners = calloc(n->config.drives, sizeof(n->listeners[0]));
	if (!n->scratch || !n->zeros || !n->listeners)
		return false;
	for (unsigned i = 0; i < n->config.drives; i++) {
		n->listeners[i].drive = i;
		n->listeners[i].watch.fd = -1;
	}
	return true;
}

struct sim_nbd *sim_nbd_new(
	const struct sim_nbd_config *config, struct sim_pace *pace, struct err *err) {
	struct sim_nbd *n = calloc(1, sizeof(*n));
	if (!n)
		goto nomem;
	n->config = *config;
	n->pace = pace;
	n->epoll_fd = n->spare_fd = n->stop.fd = -1;
	if (!allocate(n))
		goto nomem;
	if (open_all(n, err) || thread_start(&n->thread, "sim-nbd", serve, n, err))
		goto fail;
	n->started = true;
	return n;
nomem:
	err_set(err, RC_NOMEM, "no memory for the simulator's sockets");
fail:
	sim_nbd_free(n);
	return NULL;
}

static void close_fd(int fd) {
	if (fd >= 0)
		close(fd);
}

static void close_listeners(struct sim_nbd *n) {
	for (unsigned i = 0; n->listeners && i < n->config.drives; i++) {
		close_fd(n->listeners[i].watch.fd);
		if (n->listeners[i].path[0])
			unlink(n->listeners[i].path);
	}
}

void sim_nbd_free(struct sim_nbd *n) {
	if (!n)
		return;
	if (n->started) {
		eventfd_write(n->stop.fd, 1);
		pthread_join(n->thread, NULL);
	}
	while (n->conns) {
		close_fd(n->conns->watch.fd);
		conn_unlink(n, n->conns);
	}
	close_listeners(n);
	close_fd(n->stop.fd);
	close_fd(n->spare_fd);
	close_fd(n->epoll_fd);
	free(n->listeners);
	free(n->zeros);
	free(n->scratch);
	free(n);
}
