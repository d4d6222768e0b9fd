#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "priv/prepare.h"
#include "priv/rundir.h"
#include "priv/runs.h"

enum run_phase {
	RUN_PHASE_FREE,
	RUN_PHASE_PREPARING, /* a lane has targets, dir, prepared and err */
	RUN_PHASE_PREPARED,  /* the lane is done with them */
	RUN_PHASE_RUNNING,
	RUN_PHASE_ABANDONED, /* likewise, but reported as over */
	RUN_PHASE_ENDED      /* its directory remains */
};

struct run_slot {
	struct lane_op op; /* first: what a lane is given */
	struct runs *runs;
	_Atomic int phase; /* enum run_phase */
	uint64_t seq;
	struct priv_run_start start;
	struct run_targets targets;
	struct rundir dir;
	struct child child;
	enum rc prepared; /* of the preparation, with its err */
	struct err err;
	bool refused;         /* PRIV_RUN_STARTED has told it */
	bool stop_wanted;     /* before it was started */
	bool forgotten;       /* while it was abandoned */
	int sent;             /* the last signal; 0 none */
	int64_t step_mono_ms; /* when the next step of its end is due; 0 never */
	int64_t look_mono_ms; /* when its devices are looked at next */
	int64_t seen_ms;      /* wall time at which they were all there */
	uint64_t gone;        /* bits of targets, then they were not */
};

struct runs {
	const struct drives *drives;
	struct lanes *lanes;
	int sock;
	int wake_fd; /* eventfd: a preparation is done */
	struct run_locks *locks;
	struct run_slot slots[RUNS_MAX];
};

/* --- answers --------------------------------------------------------------------------------- */

/* That the peer is gone shows on the socket itself. */
static void send(
	const struct runs *r, enum priv_type type, uint64_t seq, const void *body, int fd) {
	struct err err;

	if (priv_send(r->sock, type, seq, body, fd, &err) != RC_OK)
		log_err(LOG_LEVEL_WARNING, "runs", "answer not sent", &err);
}

static void refuse(const struct runs *r, uint64_t seq, const struct err *err) {
	struct priv_run_started body = {.rc = (int32_t)err->rc};

	str_copy(body.field, sizeof(body.field), err->field);
	str_copy(body.msg, sizeof(body.msg), err->msg);
	send(r, PRIV_RUN_STARTED, seq, &body, -1);
}

static void answer_started(const struct run_slot *s) {
	struct priv_run_started body = {
		.rc = RC_OK, .pid = s->child.pid, .start_ticks = s->child.start_ticks};

	send(s->runs, PRIV_RUN_STARTED, s->seq, &body, s->dir.fd);
}

/* --- preparation, in a lane ------------------------------------------------------------------ */

static enum rc make_dir(struct run_slot *s, struct err *err) {
	struct jobfile_target jobs[RUN_MAX_DRIVES];
	struct buf text;
	enum rc rc;

	for (unsigned i = 0; i < s->targets.count; i++)
		jobs[i] = s->targets.targets[i].job;
	buf_init(&text, JOBFILE_MAX_BYTES);
	rc = jobfile_write(&text, &s->start, jobs, err);
	if (rc == RC_OK)
		rc = rundir_make(&s->dir, &text, err);
	buf_release(&text);
	return rc;
}

static void prepare_run(struct lane_op *op) {
	struct run_slot *s = (struct run_slot *)op;

	s->prepared = run_targets_prepare(
		&s->targets, s->runs->locks, s->runs->drives, &s->start, &s->err);
	if (s->prepared == RC_OK)
		s->prepared = make_dir(s, &s->err);
}

static void prepare_finish(unused_arg struct lane_op *op, unused_arg bool late) {
}

static void prepare_overdue(struct lane_op *op, unused_arg bool begun) {
	struct run_slot *s = (struct run_slot *)op;
	struct err err = {0};

	err_set(&err, RC_TIMEOUT, "a drive did not answer while it was looked at");
	refuse(s->runs, s->seq, &err);
	s->refused = true;
}

/* The lane's last touch: from here on the slot is the main thread's. */
static void prepare_release(struct lane_op *op) {
	struct run_slot *s = (struct run_slot *)op;
	struct runs *r = s->runs;

	s->phase = RUN_PHASE_PREPARED;
	eventfd_write(r->wake_fd, 1);
}

static const struct lane_op_kind prepare_kind = {
	.run = prepare_run,
	.finish = prepare_finish,
	.overdue = prepare_overdue,
	.release = prepare_release,
};

/* --- slots ----------------------------------------------------------------------------------- */

static struct run_slot *slot_find(struct runs *r, const char *run_id) {
	for (size_t i = 0; i < RUNS_MAX; i++)
		if (r->slots[i].phase != RUN_PHASE_FREE &&
			strcmp(r->slots[i].start.run_id, run_id) == 0)
			return &r->slots[i];
	return NULL;
}

static struct run_slot *slot_free(struct runs *r) {
	for (size_t i = 0; i < RUNS_MAX; i++)
		if (r->slots[i].phase == RUN_PHASE_FREE)
			return &r->slots[i];
	return NULL;
}

static void slot_init(
	struct run_slot *s, struct runs *r, uint64_t seq, const struct priv_run_start *start) {
	*s = (struct run_slot){
		.op.kind = &prepare_kind,
		.runs = r,
		.phase = RUN_PHASE_PREPARING,
		.seq = seq,
		.start = *start,
		.dir.fd = -1,
		.child.pidfd = -1,
		.prepared = RC_CANCELLED,
	};
	err_set(&s->err, RC_CANCELLED, "stopped before it began");
}

static void slot_release(struct run_slot *s) {
	run_targets_release(&s->targets);
	rundir_remove(&s->dir);
	child_release(&s->child);
	s->phase = RUN_PHASE_FREE;
}

/* --- fio ------------------------------------------------------------------------------------- */

static enum rc spawn(struct run_slot *s, struct err *err) {
	const char *fio = s->runs->drives->config->fio_path;
	const char *const argv[] = {fio, "--output=" PRIV_RUN_OUTPUT, "--output-format=json+",
		"--eta=always", "--eta-newline=1", RUNDIR_JOB, NULL};
	static const char *const envp[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	auto_close int eta = rundir_create(&s->dir, PRIV_RUN_ETA);
	auto_close int messages = rundir_create(&s->dir, PRIV_RUN_STDERR);
	int keep[RUN_MAX_DRIVES];
	struct child_spec spec = {
		.path = fio,
		.argv = argv,
		.envp = envp,
		.cwd_fd = s->dir.fd,
		.stdin_fd = -1,
		.stdout_fd = eta,
		.stderr_fd = messages,
		.keep_fds = keep,
		.drop_capabilities = true,
	};

	if (eta < 0 || messages < 0)
		return err_errno(err, errno, "files of the run");
	for (unsigned i = 0; i < s->targets.count; i++)
		if (s->targets.targets[i].fd >= 0)
			keep[spec.keep_fd_count++] = s->targets.targets[i].fd;
	return child_start(&spec, &s->child, err);
}

static enum rc start_fio(struct run_slot *s) {
	if (s->prepared != RC_OK)
		return s->prepared;
	if (s->stop_wanted)
		return err_set(&s->err, RC_CANCELLED, "stopped before it began");
	return spawn(s, &s->err);
}

static void start_prepared(struct run_slot *s) {
	if (s->refused) {
		slot_release(s);
	} else if (start_fio(s) != RC_OK) {
		refuse(s->runs, s->seq, &s->err);
		slot_release(s);
	} else {
		log_info("runs", "fio %d runs for %s", (int)s->child.pid, s->start.run_id);
		s->phase = RUN_PHASE_RUNNING;
		s->seen_ms = clock_wall_ms();
		answer_started(s);
	}
}

static bool has_fio(const struct run_slot *s) {
	return s->phase == RUN_PHASE_RUNNING || s->phase == RUN_PHASE_ABANDONED;
}

static void tell_exited(const struct run_slot *s, struct priv_run_exited body) {
	str_copy(body.run_id, sizeof(body.run_id), s->start.run_id);
	body.asked = s->sent != 0;
	body.gone = s->gone;
	body.gone_ms = s->gone ? s->seen_ms : 0;
	send(s->runs, PRIV_RUN_EXITED, s->seq, &body, -1);
}

static void report_exit(struct run_slot *s, int exit_code, int sig) {
	log_info(
		"runs", "fio %d ended: exit code %d, signal %d", (int)s->child.pid, exit_code, sig);
	run_targets_release(&s->targets);
	child_release(&s->child);
	s->phase = RUN_PHASE_ENDED;
	tell_exited(s, (struct priv_run_exited){.exit_code = exit_code, .signal = sig});
	if (s->forgotten)
		slot_release(s);
}

/* Its targets stay held until it has died. */
static void abandon(struct run_slot *s) {
	log_warning("runs", "fio %d of %s cannot be killed: it waits in the kernel for a drive",
		(int)s->child.pid, s->start.run_id);
	s->phase = RUN_PHASE_ABANDONED;
	s->step_mono_ms = 0;
	tell_exited(s, (struct priv_run_exited){.abandoned = true});
}

/* Nothing is put off by being asked for again. */
static void signal_run(struct run_slot *s, int sig) {
	if (s->sent == sig || s->sent == SIGKILL)
		return;
	s->sent = sig;
	s->step_mono_ms =
		clock_mono_ms() + (sig == SIGKILL ? RUNS_ABANDON_AFTER_MS : RUNS_KILL_AFTER_MS);
	child_signal(&s->child, sig);
}

static void take_step(struct run_slot *s) {
	if (s->sent == SIGKILL)
		abandon(s);
	else
		signal_run(s, s->sent == SIGTERM ? SIGKILL : SIGTERM);
}

/* fio may take the empty reads of a device that is gone for good ones, and not end by itself. */
static void look_at_devices(struct run_slot *s) {
	uint64_t gone = s->gone | run_targets_gone(&s->targets);

	if (gone == 0)
		s->seen_ms = clock_wall_ms();
	if (gone != s->gone)
		log_warning("runs", "a drive of %s went away", s->start.run_id);
	if (gone != 0 && s->step_mono_ms == 0 && s->sent == 0)
		s->step_mono_ms = clock_mono_ms() + RUNS_GONE_MS;
	s->gone = gone;
	s->look_mono_ms = clock_mono_ms() + RUNS_LOOK_MS;
}

static int64_t tick_running(struct run_slot *s) {
	int64_t now = clock_mono_ms(), next;

	if (now >= s->look_mono_ms)
		look_at_devices(s);
	if (s->step_mono_ms != 0 && now >= s->step_mono_ms)
		take_step(s);
	next = s->look_mono_ms;
	if (s->step_mono_ms != 0 && s->step_mono_ms < next)
		next = s->step_mono_ms;
	return next > now ? next - now : 0;
}

/* Milliseconds until its next deadline, -1: none. */
static int64_t tick_slot(struct run_slot *s) {
	int exit_code, sig;

	if (s->phase == RUN_PHASE_PREPARED)
		start_prepared(s);
	if (!has_fio(s))
		return -1;
	if (child_wait(&s->child, 0, &exit_code, &sig)) {
		look_at_devices(s);
		report_exit(s, exit_code, sig);
		return -1;
	}
	return s->phase == RUN_PHASE_RUNNING ? tick_running(s) : -1;
}

/* --- the interface --------------------------------------------------------------------------- */

struct runs *runs_new(const struct drives *drives, struct lanes *lanes, int sock, struct err *err) {
	struct runs *r = calloc(1, sizeof(*r));

	if (!r)
		goto no_memory;
	r->drives = drives;
	r->lanes = lanes;
	r->sock = sock;
	r->locks = run_locks_new();
	if (!r->locks)
		goto no_memory;
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd >= 0)
		return r;
	err_errno(err, errno, "eventfd");
	run_locks_free(r->locks);
	free(r);
	return NULL;
no_memory:
	free(r);
	err_set(err, RC_NOMEM, "no memory for runs");
	return NULL;
}

void runs_start(struct runs *r, uint64_t seq, const struct priv_run_start *start) {
	struct run_slot *s = slot_free(r);
	struct err err = {0};
	char lane[LANE_NAME_SIZE];

	if (slot_find(r, start->run_id)) {
		err_set(&err, RC_EXISTS, "the run has been started before");
		refuse(r, seq, &err);
		return;
	}
	if (!s) {
		err_set(&err, RC_FULL, "%d runs are kept already", RUNS_MAX);
		refuse(r, seq, &err);
		return;
	}
	slot_init(s, r, seq, start);
	snprintf(lane, sizeof(lane), "run %s", start->run_id);
	if (lanes_submit(r->lanes, lane, &s->op, &err) != RC_OK) {
		refuse(r, seq, &err);
		s->phase = RUN_PHASE_FREE;
	}
}

void runs_stop(struct runs *r, const struct priv_run_stop *stop) {
	struct run_slot *s = slot_find(r, stop->run_id);

	if (!s)
		return;
	if (s->phase == RUN_PHASE_RUNNING)
		signal_run(s, stop->kill ? SIGKILL : SIGTERM);
	else
		s->stop_wanted = true;
}

void runs_forget(struct runs *r, const struct priv_run_forget *forget) {
	struct run_slot *s = slot_find(r, forget->run_id);

	if (s && s->phase == RUN_PHASE_ENDED)
		slot_release(s);
	else if (s && s->phase == RUN_PHASE_ABANDONED)
		s->forgotten = true;
	else if (s)
		log_warning("runs", "%s cannot be forgotten, it runs", forget->run_id);
}

unsigned runs_poll(const struct runs *r, struct pollfd *out) {
	unsigned n = 0;

	out[n++] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
	for (size_t i = 0; i < RUNS_MAX; i++)
		if (has_fio(&r->slots[i]))
			out[n++] = (struct pollfd){.fd = r->slots[i].child.pidfd, .events = POLLIN};
	return n;
}

int64_t runs_tick(struct runs *r) {
	int64_t next = -1, slot_next;
	eventfd_t ignored;

	eventfd_read(r->wake_fd, &ignored);
	for (size_t i = 0; i < RUNS_MAX; i++) {
		slot_next = tick_slot(&r->slots[i]);
		if (slot_next >= 0 && (next < 0 || slot_next < next))
			next = slot_next;
	}
	return next;
}

static void signal_all(struct runs *r, int sig) {
	for (size_t i = 0; i < RUNS_MAX; i++)
		if (r->slots[i].phase == RUN_PHASE_RUNNING)
			signal_run(&r->slots[i], sig);
}

static void await_all(struct runs *r, int64_t until_mono_ms) {
	int exit_code, sig;

	for (size_t i = 0; i < RUNS_MAX; i++) {
		int64_t left = until_mono_ms - clock_mono_ms();

		if (r->slots[i].phase == RUN_PHASE_RUNNING &&
			child_wait(&r->slots[i].child, left > 0 ? left : 0, &exit_code, &sig))
			r->slots[i].phase = RUN_PHASE_ENDED;
	}
}

void runs_free(struct runs *r, int64_t wait_ms) {
	int64_t now = clock_mono_ms();
	bool stuck = false;

	if (!r)
		return;
	signal_all(r, SIGTERM);
	await_all(r, now + wait_ms / 2);
	signal_all(r, SIGKILL);
	await_all(r, now + wait_ms);
	for (size_t i = 0; i < RUNS_MAX; i++) {
		if (r->slots[i].phase == RUN_PHASE_PREPARING)
			stuck = true; /* a lane's thread still has it */
		else if (r->slots[i].phase != RUN_PHASE_FREE)
			slot_release(&r->slots[i]);
	}
	if (stuck)
		return;
	close(r->wake_fd);
	run_locks_free(r->locks);
	free(r);
}

/* --- leftovers ------------------------------------------------------------------------------- */

static bool is_fio(pid_t pid) {
	char path[32], name[32] = "";
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strcmp(name, "fio\n") == 0;
}

bool runs_reap(const struct priv_reap *reap) {
	auto_close int pidfd = pidfd_open(reap->pid, 0);

	/* The descriptor first: what is checked then is what it stands for. */
	if (pidfd < 0 || !child_is_alive(reap->pid, reap->start_ticks) || !is_fio(reap->pid))
		return false;
	log_info("runs", "ends fio %d of an earlier life", (int)reap->pid);
	return pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0;
}
