#include "server/reload.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/core.h"
#include "core/events.h"
#include "http/server.h"
#include "server/tls.h"

static void tell_change(void *arg unused_arg, const char *key, bool live) {
	if (live)
		log_info("server", "%s has changed", key);
	else
		log_warning("server", "%s has changed: it takes effect at the next start", key);
}

static void apply(struct config *was, const struct config *is) {
	was->level = is->level;
	memcpy(was->log_level, is->log_level, sizeof(was->log_level));
}

static enum rc load(const struct reload *r, struct config *is, struct err *err) {
	const struct source from = {r->core->privc};
	auto_close int fd = -1;
	enum rc rc = RC_OK;
	if (r->config->config[0])
		rc = source_open(&from, PRIV_FILE_CONFIG, r->config->config, &fd, err);
	return rc == RC_OK ? config_reload(r->config, is, fd, r->argc, r->argv, err) : rc;
}

static enum rc reload_config(const struct reload *r, struct err *err) {
	struct config *is = calloc(1, sizeof(*is));
	if (!is)
		return err_set(err, RC_NOMEM, "out of memory");
	enum rc rc = load(r, is, err);
	if (rc == RC_OK) {
		log_set_level(is->level);
		config_changes(r->config, is, tell_change, NULL);
		apply(r->config, is);
	}
	free(is);
	return rc;
}

/* By the names with which the service was started. */
static enum rc reload_certificate(const struct reload *r, struct err *err) {
	const struct config *c = r->config;
	const struct source from = {r->core->privc};
	struct tls_files files;
	if (!c->tls_cert[0] && !c->tls_self_signed)
		return RC_OK;
	enum rc rc = c->tls_self_signed
		? tls_files_self_signed(r->data_dir, &files, err)
		: tls_files_read(&from, c->tls_cert, c->tls_key, &files, err);
	if (rc != RC_OK)
		return rc;
	rc = http_server_certify(r->http, files.cert_pem, files.key_pem, err);
	tls_files_release(&files);
	return rc;
}

void reload(const struct reload *r) {
	static const struct {
		enum rc (*again)(const struct reload *r, struct err *err);
		const char *name;
	} parts[] = {
		{reload_config, "the configuration"},
		{reload_certificate, "the certificate"},
	};
	bool whole = true;
	for (size_t i = 0; i < array_len(parts); i++) {
		struct err err = {0};
		if (parts[i].again(r, &err) == RC_OK)
			continue;
		whole = false;
		log_err(LOG_LEVEL_ERROR, "server", parts[i].name, &err);
		log_error("server", "%s stays as it was", parts[i].name);
	}
	log_info(
		"server", whole ? "has read its files again" : "has read its files again, in part");
	events_record(r->core->events, EVENT_SERVICE, &actor_system, "/system",
		whole ? "{\"state\":\"reloaded\"}" : "{\"state\":\"reloaded_in_part\"}");
}
