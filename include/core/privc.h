/*
 * The client's end of the privileged helper: sends typed requests, matches answers by sequence
 * number. Callbacks run in its reader thread and must be quick (hand work to a pool); what they
 * get lives for the call.
 *
 * Any thread but privc_free, which ends the reader and must not run in a callback. Requests are
 * copied; they block at most while the socket's buffer is full. RC_FULL at PRIVC_MAX_PENDING,
 * RC_UNAVAILABLE when the helper is gone: then no callback comes.
 */
#ifndef DRIVEWATT_CORE_PRIVC_H
#define DRIVEWATT_CORE_PRIVC_H

#include "priv/protocol.h"

struct privc;

#define PRIVC_MAX_PENDING 4096

/* Takes the socket over. lost is called once, when the helper is gone; every pending request has
 * been answered with RC_UNAVAILABLE by then. */
struct privc *privc_new(int sock, void (*lost)(void *arg), void *arg, struct err *err);
/* Closes the socket, which ends the helper and all its fios; what is pending is answered with
 * RC_UNAVAILABLE before. NULL is fine. */
void privc_free(struct privc *p);

/* fn hears, in the reader's thread, what the helper tells unasked, from then until privc_free. */
void privc_watch(struct privc *p, void (*fn)(void *arg, const struct priv_hint *hint), void *arg);

/* Whether the helper is gone for good. */
bool privc_lost(struct privc *p);

/* found for each drive, then done exactly once. */
enum rc must_check privc_enumerate(struct privc *p,
	void (*found)(void *arg, const struct priv_found *f),
	void (*done)(void *arg, enum rc rc, const struct priv_enumerated *e), void *arg,
	struct err *err);
/* late: the answer of an operation that was answered with RC_TIMEOUT before; fn is then called a
 * second time, within a bounded while, or never. */
typedef void privc_reply_fn(void *arg, const struct priv_drive_reply *r, bool late);
enum rc must_check privc_drive_op(struct privc *p, const struct priv_drive_op *op,
	privc_reply_fn *fn, void *arg, struct err *err);
/* started once, with the directory's descriptor (the callee's to close) or -1; when it said
 * RC_OK, exited once. */
enum rc must_check privc_run_start(struct privc *p, const struct priv_run_start *r,
	void (*started)(void *arg, const struct priv_run_started *s, int dir_fd),
	void (*exited)(void *arg, const struct priv_run_exited *x), void *arg, struct err *err);
/* SIGTERM, with kill SIGKILL, to the run's fio; exited tells that it ended. */
enum rc must_check privc_run_stop(struct privc *p, const char *run_id, bool kill, struct err *err);
/* Has the run's directory removed. */
void privc_run_forget(struct privc *p, const char *run_id);
/* fn once. */
enum rc must_check privc_meter(struct privc *p, enum priv_meter meter,
	void (*fn)(void *arg, const struct priv_meter_reply *r), void *arg, struct err *err);
/* Opens a file of the configuration again with the helper's rights; *fd is the caller's. Waits for
 * the answer: not in a callback. */
enum rc must_check privc_open(struct privc *p, enum priv_file file, int *fd, struct err *err);
/* Ends a fio of an earlier life. Waits for the answer: at start-up only, not in a callback. */
enum rc must_check privc_reap(
	struct privc *p, int64_t pid, uint64_t start_ticks, bool *was_alive, struct err *err);

#endif
