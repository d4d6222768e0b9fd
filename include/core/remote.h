/*
 * Samples to a receiver elsewhere, by Prometheus remote write 1.0. What is to be sent lies on disk
 * until the receiver has it, or until there is too much of it or it is too old.
 */
#ifndef DRIVEWATT_CORE_REMOTE_H
#define DRIVEWATT_CORE_REMOTE_H

#include "core/energy.h"
#include "core/httpc.h"

#define REMOTE_MAX_LABELS 16

struct remote;

/* Texts are borrowed until remote_free, but for the labels, which are copied. */
struct remote_config {
	const char *url; /* https://…, or http:// where allow_plaintext is set */
	bool allow_plaintext;
	const char *username; /* NULL: no Basic authentication */
	const char *password_file;
	const char *token_file; /* of a Bearer token; NULL: none. Files are read for each request */
	const char *ca_file;    /* NULL: the system's authorities */
	const char *const *labels; /* "name=value", of every series */
	unsigned label_count;
	int64_t interval_ms;  /* how long samples wait to be sent together; over 0 */
	int64_t keep_ms;      /* what could not be sent for that long is dropped; over 0 */
	int64_t spool_bytes;  /* on disk; beyond it the oldest is dropped; over 0 */
	const char *dir;      /* of the spool, made if need be */
	const char *instance; /* label of every series, unless labels has another */
};

/* RC_INVALID with the configuration's key as field. */
enum rc must_check remote_check(const struct remote_config *c, struct err *err);
/* energy and httpc are borrowed; begins to send. Before samples come in. */
struct remote *remote_new(
	const struct remote_config *c, struct energy *energy, struct httpc *httpc, struct err *err);
/* Puts what waits onto the disk and sends no more. After the producers of samples have ended,
 * before httpc_free. NULL is fine, as for the next one. */
void remote_stop(struct remote *r);
/* After httpc_free. */
void remote_free(struct remote *r);

#endif
