/* Certificates: read, or made. */
#ifndef DRIVEWATT_SERVER_TLS_H
#define DRIVEWATT_SERVER_TLS_H

#include "base/rc.h"
#include "server/source.h"

struct tls_files {
	char *cert_pem; /* owned */
	char *key_pem;  /* owned, wiped by tls_files_release */
};

enum rc must_check tls_files_read(const struct source *from, const char *cert_path,
	const char *key_path, struct tls_files *out, struct err *err);
/* Uses tls-cert.pem and tls-key.pem of dir, making them (ECDSA P-256, ten years, this host's name
 * and loopback) where they are missing. */
enum rc must_check tls_files_self_signed(const char *dir, struct tls_files *out, struct err *err);
void tls_files_release(struct tls_files *t);

#endif
