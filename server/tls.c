#include "server/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secret.h"

#define PEM_MAX (256 * 1024)
#define VALID_S (3650L * 24 * 3600)

static enum rc read_pem(int fd, const char *path, char **out, struct err *err) {
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_errno(err, errno, path);
	if (!S_ISREG(st.st_mode) || st.st_size > PEM_MAX)
		return err_set(err, RC_INVALID, "%.200s is not a PEM file", path);
	char *text = calloc(1, (size_t)st.st_size + 1);
	if (!text)
		return err_set(err, RC_NOMEM, "memory is out");
	if (read(fd, text, (size_t)st.st_size) != st.st_size) {
		free(text);
		return err_set(err, RC_IO, "%.200s cannot be read whole", path);
	}
	*out = text;
	return RC_OK;
}

static enum rc read_file(const struct source *from, enum priv_file file, const char *path,
	char **out, struct err *err) {
	auto_close int fd = -1;
	enum rc rc = source_open(from, file, path, &fd, err);
	return rc == RC_OK ? read_pem(fd, path, out, err) : rc;
}

enum rc tls_files_read(const struct source *from, const char *cert_path, const char *key_path,
	struct tls_files *out, struct err *err) {
	*out = (struct tls_files){0};
	enum rc rc = read_file(from, PRIV_FILE_TLS_CERT, cert_path, &out->cert_pem, err);
	if (rc == RC_OK)
		rc = read_file(from, PRIV_FILE_TLS_KEY, key_path, &out->key_pem, err);
	if (rc != RC_OK)
		tls_files_release(out);
	return rc;
}

static int add_extension(X509 *cert, int nid, const char *value) {
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	int ok = e && X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
	return ok;
}

static int set_random_serial(X509 *cert) {
	BIGNUM *n = BN_new();
	int ok = n && BN_rand(n, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
		BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static int fill_certificate(X509 *cert, EVP_PKEY *key) {
	char host[HOST_NAME_MAX + 1] = "localhost", names[HOST_NAME_MAX + 80];
	gethostname(host, sizeof(host) - 1);
	snprintf(names, sizeof(names), "DNS:%s,DNS:localhost,IP:127.0.0.1,IP:::1", host);
	X509_NAME *name = X509_get_subject_name(cert);
	return X509_set_version(cert, X509_VERSION_3) && set_random_serial(cert) &&
		X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
		X509_gmtime_adj(X509_getm_notAfter(cert), VALID_S) && X509_set_pubkey(cert, key) &&
		X509_NAME_add_entry_by_txt(
			name, "CN", MBSTRING_UTF8, (unsigned char *)"drivewatt", -1, -1, 0) &&
		X509_set_issuer_name(cert, name) &&
		add_extension(cert, NID_subject_alt_name, names) &&
		add_extension(cert, NID_basic_constraints, "critical,CA:TRUE") &&
		add_extension(cert, NID_ext_key_usage, "serverAuth") &&
		X509_sign(cert, key, EVP_sha256());
}

static enum rc write_pem(
	const char *path, mode_t mode, X509 *cert, EVP_PKEY *key, struct err *err) {
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f)
		return err_errno(err, errno, path);
	int ok = cert ? PEM_write_X509(f, cert)
		      : PEM_write_PKCS8PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	if (fclose(f) != 0 || !ok)
		return err_set(err, RC_IO, "%.200s cannot be written", path);
	return RC_OK;
}

static enum rc make_files(const char *cert_path, const char *key_path, struct err *err) {
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	enum rc rc = RC_OK;
	if (!key || !cert || !fill_certificate(cert, key))
		rc = err_set(err, RC_INTERNAL, "a certificate cannot be made");
	if (rc == RC_OK)
		rc = write_pem(key_path, 0600, NULL, key, err);
	if (rc == RC_OK)
		rc = write_pem(cert_path, 0644, cert, NULL, err);
	X509_free(cert);
	EVP_PKEY_free(key);
	return rc;
}

enum rc tls_files_self_signed(const char *dir, struct tls_files *out, struct err *err) {
	char cert[PATH_MAX], key[PATH_MAX];
	snprintf(cert, sizeof(cert), "%s/tls-cert.pem", dir);
	snprintf(key, sizeof(key), "%s/tls-key.pem", dir);
	if (access(cert, R_OK) != 0 || access(key, R_OK) != 0) {
		enum rc rc = make_files(cert, key, err);
		if (rc != RC_OK)
			return rc;
	}
	return tls_files_read(&(struct source){NULL}, cert, key, out, err);
}

void tls_files_release(struct tls_files *t) {
	if (t->key_pem)
		secret_wipe(t->key_pem, strlen(t->key_pem));
	free(t->key_pem);
	free(t->cert_pem);
	*t = (struct tls_files){0};
}
