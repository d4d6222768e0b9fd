/*
 * The process: reads the configuration, splits off the privileged helper, gives up its rights,
 * composes the parts in one written order and waits for the signal to stop.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "core/accounts.h"
#include "core/core.h"
#include "core/remote.h"
#include "http/server.h"
#include "server/config.h"
#include "server/privileges.h"
#include "server/reload.h"
#include "server/sd_notify.h"
#include "server/tls.h"
#include "server/watchdog.h"
#include "version.h"

#define CREDENTIAL "drivewatt.admin-password"
#define CORE_STOP_MS 15000
#define HELPER_STOP_MS 12000

struct process {
	int argc;
	char **argv;
	struct config config;
	char data_dir[PATH_MAX];
	int data_dir_fd; /* holds the lock on it */
	char sim_dir[PATH_MAX + 4];
	char secret_key_file[PATH_MAX + 16];
	char *admin_password; /* owned; NULL none given */
	struct tls_files tls;
	pid_t helper;
	int helper_sock;
	struct core *core;
	struct api *api;
	struct http_server *http;
	atomic_bool has_admin; /* somebody can log in; set once, before it is said to be ready */
};

/* --- before the split ------------------------------------------------------------------------- */

/* What the service manager hands over, if anything (systemd.exec(5), CREDENTIALS). */
static bool find_credential(char *path, size_t size) {
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	if (!dir || snprintf(path, size, "%s/" CREDENTIAL, dir) >= (int)size)
		return false;
	return access(path, F_OK) == 0;
}

/* The environment's copy is overwritten: others may read it in /proc. */
static enum rc take_admin_password(struct process *p, struct err *err) {
	char *env = getenv("DRIVEWATT_ADMIN_PASSWORD");
	char path[PATH_MAX], text[256] = "";
	if (env) {
		p->admin_password = strdup(env);
		secret_wipe(env, strlen(env));
		unsetenv("DRIVEWATT_ADMIN_PASSWORD");
		return p->admin_password ? RC_OK : err_set(err, RC_NOMEM, "out of memory");
	}
	if (p->config.admin_password_file[0])
		snprintf(path, sizeof(path), "%s", p->config.admin_password_file);
	else if (!find_credential(path, sizeof(path)))
		return RC_OK;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n < 0)
		return err_errno(err, errno, path);
	text[strcspn(text, "\r\n")] = '\0';
	p->admin_password = strdup(text);
	secret_wipe(text, sizeof(text));
	return p->admin_password ? RC_OK : err_set(err, RC_NOMEM, "out of memory");
}

static enum rc prepare_files(struct process *p, struct err *err) {
	const struct config *c = &p->config;
	umask(022);
	enum rc rc = data_dir_prepare(c->data_dir, c->user, p->data_dir, sizeof(p->data_dir), err);
	umask(077);
	if (rc != RC_OK)
		return rc;
	snprintf(p->sim_dir, sizeof(p->sim_dir), "%s/sim", p->data_dir);
	if (c->secret_key_file[0])
		snprintf(p->secret_key_file, sizeof(p->secret_key_file), "%s", c->secret_key_file);
	else
		snprintf(p->secret_key_file, sizeof(p->secret_key_file), "%s/secret.key",
			p->data_dir);
	rc = take_admin_password(p, err);
	if (rc == RC_OK && c->tls_cert[0])
		rc = tls_files_read(&(struct source){NULL}, c->tls_cert, c->tls_key, &p->tls, err);
	return rc;
}

static const char *given(const char *path) {
	return path[0] ? path : NULL;
}

static enum rc split(struct process *p, enum log_level level, struct err *err) {
	const struct config *c = &p->config;
	const char *targets[PRIV_MAX_TARGETS];
	for (unsigned i = 0; i < c->target.count; i++)
		targets[i] = c->target.items[i];
	struct priv_config config = {
		.log_level = level,
		.allow_destructive = c->allow_destructive,
		.allow_in_use = c->allow_in_use,
		.observe_only = c->observe_only,
		.no_devices = c->simulate_count > 0,
		.targets = targets,
		.target_count = c->target.count,
		.sim_dir = c->simulate_count > 0 ? p->sim_dir : NULL,
		.fio_path = c->fio,
		.dcmi_path = c->dcmi[0] ? c->dcmi : NULL,
		.sysfs = c->sysfs,
		.files = {[PRIV_FILE_CONFIG] = given(c->config),
			[PRIV_FILE_TLS_CERT] = given(c->tls_cert),
			[PRIV_FILE_TLS_KEY] = given(c->tls_key)},
		.max_lanes = (unsigned)c->max_lanes,
		.command_ms = c->command_ms,
	};
	return helper_fork(&config, &p->helper, &p->helper_sock, err);
}

/* --- composing -------------------------------------------------------------------------------- */

static enum rc make_core(struct process *p, struct err *err) {
	const struct config *c = &p->config;
	const char *labels[CONFIG_LIST_MAX];
	const struct remote_config remote = config_remote(c, labels);
	struct core_config config = {
		.data_dir = p->data_dir,
		.observe_only = c->observe_only,
		.allow_destructive = c->allow_destructive,
		.allow_in_use = c->allow_in_use,
		.priv_socket = p->helper_sock,
		.simulate = c->simulate_count,
		.simulate_model = c->simulate_model,
		.simulate_model_file = c->simulate_model_file[0] ? c->simulate_model_file : NULL,
		.simulate_scale = (unsigned)c->simulate_scale,
		.secret_key_file = p->secret_key_file,
		.rescan_ms = c->rescan_ms,
		.reconcile_ms = c->reconcile_ms,
		.health_ms = c->health_ms,
		.meter_ms = c->meter_ms,
		.drive_timeout_ms = c->drive_timeout_ms,
		.max_runs = (unsigned)c->max_runs,
		.max_queued_runs = (unsigned)c->max_queued_runs,
		.settle_ms = c->settle_ms,
		.login_failures = (unsigned)c->login_failures,
		.remote = c->remote_url[0] ? &remote : NULL,
		.event_days = c->event_days,
		.audit_days = c->audit_days,
		.run_days = c->run_days,
		.sample_days = c->sample_days,
		.task_days = c->task_days,
		.quarter_days = c->quarter_days,
		.hour_days = c->hour_days,
		.other_days = c->other_days,
	};
	p->helper_sock = -1; /* taken over */
	p->core = core_new(&config, err);
	return p->core ? RC_OK : err->rc;
}

/* Last of all: a password that was made is shown once, by a start that serves. */
static enum rc make_admin(struct process *p, struct err *err) {
	char made[32] = "";
	enum rc rc = accounts_bootstrap(p->core->accounts, p->admin_password, made, err);
	if (p->admin_password)
		secret_wipe(p->admin_password, strlen(p->admin_password));
	if (rc == RC_OK && made[0])
		printf("drivewattd first start: user admin, password %s (shown only now)\n", made);
	secret_wipe(made, sizeof(made));
	atomic_store(&p->has_admin, rc == RC_OK);
	return rc;
}

static bool is_ready(void *arg) {
	const struct process *p = arg;
	return atomic_load(&p->has_admin) && http_server_ready(p->http);
}

static enum rc make_faces(struct process *p, struct err *err) {
	const struct config *c = &p->config;
	struct api_config api_config = {.public_metrics = c->public_metrics,
		.max_streams = (unsigned)c->max_streams,
		.heartbeat_ms = c->heartbeat_ms,
		.version = DRIVEWATT_VERSION,
		.ready = is_ready,
		.ready_arg = p};
	struct http_config config = {
		.listen_count = c->listen.count,
		.tls_cert_pem = p->tls.cert_pem,
		.tls_key_pem = p->tls.key_pem,
		.allow_plaintext_beyond_loopback = c->allow_plaintext,
		.loop_threads = (unsigned)c->loop_threads,
		.workers = (unsigned)c->workers,
		.queue = (unsigned)c->queue,
		.history_workers = (unsigned)c->history_workers,
		.history_queue = (unsigned)c->history_queue,
		.hashers = (unsigned)c->hashers,
		.hash_queue = (unsigned)c->hash_queue,
		.max_connections = (unsigned)c->max_connections,
		.max_per_address = (unsigned)c->max_per_address,
		.trusted_proxy_count = c->trusted_proxy.count,
		.idle_timeout_s = (unsigned)c->idle_timeout_s,
		.stranger_timeout_s = (unsigned)c->stranger_timeout_s,
		.header_bytes = 16384,
		.max_streams = (unsigned)c->max_streams,
		.cache_bytes_max = (unsigned)c->cache_bytes,
		.gzip = c->gzip,
		.public_metrics = c->public_metrics,
		.require_if_match = c->require_if_match,
	};
	for (unsigned i = 0; i < c->listen.count; i++)
		config.listen[i] = c->listen.items[i];
	for (unsigned i = 0; i < c->trusted_proxy.count; i++)
		config.trusted_proxies[i] = c->trusted_proxy.items[i];
	p->api = api_new(&api_config, p->core, err);
	if (!p->api)
		return err->rc;
	p->http = http_server_new(&config, p->core->accounts, err);
	if (!p->http)
		return err->rc;
	const struct http_tree trees[] = {api_v1_tree(p->api), api_root_tree(p->api)};
	for (size_t i = 0; i < array_len(trees); i++) {
		enum rc rc = http_server_add_tree(p->http, &trees[i], err);
		if (rc != RC_OK)
			return rc;
	}
	return RC_OK;
}

/* The one written order in which the parts come to life. */
static enum rc compose(struct process *p, struct err *err) {
	enum rc rc = secret_init(err);
	if (rc == RC_OK)
		rc = data_dir_lock(p->data_dir, &p->data_dir_fd, err);
	if (rc == RC_OK && p->config.tls_self_signed)
		rc = tls_files_self_signed(p->data_dir, &p->tls, err);
	if (rc == RC_OK)
		rc = make_core(p, err);
	if (rc == RC_OK)
		rc = make_faces(p, err);
	if (rc == RC_OK)
		rc = core_start(p->core, err);
	if (rc == RC_OK)
		rc = http_server_start(p->http, err);
	tls_files_release(&p->tls); /* the server has its own copy */
	if (rc == RC_OK)
		rc = make_admin(p, err);
	return rc;
}

/* --- living and stopping ---------------------------------------------------------------------- */

static void block_signals(sigset_t *set) {
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void read_again(struct process *p) {
	const struct reload r = {&p->config, p->argc, p->argv, p->data_dir, p->core, p->http};
	char state[64];
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
		(long long)clock_mono_ns() / 1000);
	sd_notify_send(state);
	reload(&r);
	sd_notify_send("READY=1");
}

static void serve(struct process *p, const sigset_t *set) {
	int sig;
	printf("drivewattd ready on %s\n", http_server_url(p->http, 0));
	fflush(stdout);
	sd_notify_send("READY=1");
	while ((sig = watchdog_wait(set, http_server_url(p->http, 0))) == SIGHUP)
		read_again(p);
	log_info("server", "stopping on signal %d", sig);
	sd_notify_send("STOPPING=1");
}

static void leave_at_once(int sig unused_arg) {
	_exit(1);
}

static void stop(struct process *p, const sigset_t *set) {
	signal(SIGTERM, leave_at_once);
	signal(SIGINT, leave_at_once);
	pthread_sigmask(SIG_UNBLOCK, set, NULL);
	if (p->http)
		http_server_stop(p->http, p->config.drain_ms);
	if (!core_free(p->core, CORE_STOP_MS)) {
		log_error("server", "did not stop in time: leaving what is stuck behind");
		_exit(1);
	}
	http_server_free(p->http);
	api_free(p->api);
	tls_files_release(&p->tls);
	free(p->admin_password);
	if (p->helper_sock >= 0)
		close(p->helper_sock); /* ends the helper */
	if (p->helper > 0)
		helper_reap(p->helper, HELPER_STOP_MS);
	if (p->data_dir_fd >= 0)
		close(p->data_dir_fd);
}

/* Connections, simulated drives and stores need more than the usual soft limit of 1,024. */
static void raise_descriptor_limit(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Some 25 threads would each keep in an arena of its own what a burst of long lists took. */
static void bound_arenas(void) {
	(void)mallopt(M_ARENA_MAX, 4);
}

static int run(struct process *p, struct err *err) {
	sigset_t set;
	log_init("drivewattd", p->config.level);
	enum rc rc = prepare_files(p, err);
	if (rc == RC_OK)
		rc = split(p, p->config.level, err);
	if (rc == RC_OK)
		rc = privileges_drop(p->config.user, err);
	raise_descriptor_limit();
	bound_arenas();
	block_signals(&set);
	if (rc == RC_OK)
		rc = compose(p, err);
	if (rc == RC_OK)
		serve(p, &set);
	else
		log_err(LOG_LEVEL_ERROR, "server", "cannot start", err);
	stop(p, &set);
	return rc == RC_OK ? 0 : 1;
}

static int print(void (*render)(struct buf *out)) {
	struct buf out;
	buf_init(&out, 256 * 1024);
	render(&out);
	fputs(buf_str(&out), stdout);
	buf_release(&out);
	return 0;
}

static void render_routes(struct buf *out) {
	const struct http_tree trees[] = {api_v1_tree(NULL), api_root_tree(NULL)};
	http_server_dump_routes(trees, array_len(trees), out);
}

static int dump_config(const struct config *c) {
	struct buf out;
	buf_init(&out, 256 * 1024);
	config_dump(c, &out);
	fputs(buf_str(&out), stdout);
	buf_release(&out);
	return 0;
}

int main(int argc, char **argv) {
	struct err err = {0};
	enum config_action action;
	struct process *p = calloc(1, sizeof(*p));
	int status = 1;
	if (!p) {
		fputs("drivewattd: out of memory\n", stderr);
		return 1;
	}
	p->argc = argc;
	p->argv = argv;
	p->helper_sock = p->data_dir_fd = -1;
	log_init("drivewattd", LOG_LEVEL_INFO);
	if (config_load(&p->config, argc, argv, &action, &err) != RC_OK) {
		log_err(LOG_LEVEL_ERROR, "server", "configuration", &err);
		status = 2;
	} else if (action == CONFIG_HELP)
		status = print(config_help);
	else if (action == CONFIG_VERSION)
		status = puts("drivewattd " DRIVEWATT_VERSION) < 0;
	else if (action == CONFIG_CHECK)
		status = puts("the configuration is good") < 0;
	else if (action == CONFIG_DUMP)
		status = dump_config(&p->config);
	else if (action == CONFIG_DUMP_MANUAL)
		status = print(config_manual);
	else if (action == CONFIG_DUMP_ROUTES)
		status = print(render_routes);
	else
		status = run(p, &err);
	free(p);
	return status;
}
