/*
 * The certificate that a server shows. It may be replaced while connections stand: each has the one
 * with which it began, and the last of these lets it go. Only tls.c knows GnuTLS, on which
 * libmicrohttpd stands; sessions are its gnutls_session_t. Any thread.
 */
#ifndef DRIVEWATT_HTTP_TLS_H
#define DRIVEWATT_HTTP_TLS_H

#include <stdint.h>

#include "base/rc.h"

struct tls;
struct tls_use;

/* RC_INVALID: no PEM, or the key is another certificate's. */
struct tls *tls_new(const char *cert_pem, const char *key_pem, struct err *err);
/* After all connections were closed. NULL is fine. */
void tls_free(struct tls *t);
/* New connections are shown this one. On a fault the old one stays. */
enum rc must_check tls_replace(
	struct tls *t, const char *cert_pem, const char *key_pem, struct err *err);

/* A connection begins. Its handshake fails when this is NULL: t is, or memory is out. */
struct tls_use *tls_begin(struct tls *t, void *session);
/* … and ends. NULL is fine. */
void tls_end(struct tls_use *use);
/* The function for MHD_OPTION_HTTPS_CERT_CALLBACK. */
void *tls_callback(void);

#endif
