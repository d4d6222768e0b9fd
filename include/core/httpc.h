/*
 * The HTTP client: one thread, one libcurl multi handle, bounded answers, TLS by CA or pin.
 */
#ifndef DRIVEWATT_CORE_HTTPC_H
#define DRIVEWATT_CORE_HTTPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"
#include "model/host.h"

#define HTTPC_TOKEN_SIZE 512
#define HTTPC_ETAG_SIZE 128
#define HTTPC_MAX_HEADERS 8

struct httpc;

struct httpc_request {
	const char *method;              /* "GET", "POST", "PATCH", "DELETE" */
	const char *url;                 /* copied, as all strings here */
	const char *username, *password; /* Basic; NULL none */
	const char *token;               /* of a session, instead; NULL none */
	const char *if_match;            /* as a BMC gave it; NULL none */
	const char *body;                /* or NULL */
	size_t body_len;                 /* 0: the body is text */
	/* "Name: value" each, NULL at the end, at most HTTPC_MAX_HEADERS; NULL: those of Redfish */
	const char *const *headers;
	enum bmc_tls tls;
	bool allow_plaintext;           /* http:// allowed */
	const char *ca_file;            /* read by httpc_send; NULL: the system's */
	const char *fingerprint_sha256; /* BMC_TLS_PIN: of the certificate (DER), hex */
	const char *ciphers;            /* for TLS 1.2, as OpenSSL lists them; NULL its own */
	int64_t connect_ms, total_ms;   /* each over 0, else RC_INVALID */
	size_t max_bytes;               /* of the answer's body, over 0; more is RC_TOO_LARGE */
};

struct httpc_response {
	enum rc rc; /* RC_OK whenever an HTTP answer came, whatever its status; RC_TIMEOUT,
		       RC_UNAVAILABLE (connect, DNS), RC_FORBIDDEN (TLS verification),
		       RC_TOO_LARGE, RC_CORRUPT (no whole HTTP answer), RC_CANCELLED
		       (httpc_free), RC_INVALID, RC_NOMEM, RC_IO */
	struct err err;
	int status;
	const char *body; /* NUL-terminated, valid during the callback */
	size_t length;
	char content_type[64];
	char location[256];
	char etag[HTTPC_ETAG_SIZE];   /* "" too when it is longer */
	char token[HTTPC_TOKEN_SIZE]; /* of a session that was just opened */
	int retry_after_s;            /* 0: none was given */
	int64_t done_mono_ns, done_wall_ms;
};
/* Runs in the client's thread: be quick, hand work on. r lives for the call. */
typedef void httpc_fn(void *arg, const struct httpc_response *r);

/* key names the peer (a BMC): its handle and connection are kept, and requests with the same
 * key run one at a time, in order. At most max_peers keys, queue_per_peer waiting each. */
struct httpc *httpc_new(unsigned max_peers, unsigned queue_per_peer, struct err *err);
/* Cancels what runs: their callbacks see RC_CANCELLED before it returns. NULL is fine. */
void httpc_free(struct httpc *h);
/* RC_FULL. On RC_OK fn is called exactly once. Redirects are not followed. Any thread; never
 * blocks. */
enum rc must_check httpc_send(struct httpc *h, const char *key, const struct httpc_request *r,
	httpc_fn *fn, void *arg, struct err *err);
/* Is there a cipher in the list that OpenSSL knows? Any thread. */
/* RC_FORBIDDEN unless it is a regular file of 1 byte to 1 MiB that can be read. Never waits for a
 * FIFO or device. */
enum rc must_check httpc_check_ca(const char *path, struct err *err);
bool httpc_knows_ciphers(const char *list);
/* Drops the peer's handle when it is idle (settings changed, peer deleted). Any thread. */
void httpc_forget(struct httpc *h, const char *key);

#endif
