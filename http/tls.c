#include "http/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metrics.h"

#define CHAIN_MAX 16
#define KEY_ID_MAX 64

/* A certificate with its chain and key. Never changed once made. */
struct identity {
	_Atomic unsigned refs;
	unsigned count;
	gnutls_pcert_st chain[CHAIN_MAX];
	gnutls_privkey_t key;
};

struct tls {
	pthread_mutex_t lock; /* guards now */
	struct identity *now;
};

struct tls_use {
	struct identity *identity;
};

/* --- identities --- */

static struct identity *identity_ref(struct identity *i) {
	atomic_fetch_add(&i->refs, 1);
	return i;
}

static void identity_unref(struct identity *i) {
	if (!i || atomic_fetch_sub(&i->refs, 1) > 1)
		return;
	for (unsigned n = 0; n < i->count; n++)
		gnutls_pcert_deinit(&i->chain[n]);
	if (i->key)
		gnutls_privkey_deinit(i->key);
	free(i);
}

static enum rc failed(struct err *err, const char *what, int code) {
	return err_set(err, code == GNUTLS_E_MEMORY_ERROR ? RC_NOMEM : RC_INVALID, "%s: %s", what,
		gnutls_strerror(code));
}

static gnutls_datum_t datum_of(const char *text) {
	return (gnutls_datum_t){
		.data = (unsigned char *)(uintptr_t)text, .size = (unsigned)strlen(text)};
}

static enum rc read_chain(struct identity *i, const char *pem, struct err *err) {
	const gnutls_datum_t text = datum_of(pem);
	unsigned count = CHAIN_MAX;
	int code =
		gnutls_pcert_list_import_x509_raw(i->chain, &count, &text, GNUTLS_X509_FMT_PEM, 0);
	if (code < 0)
		return failed(err, "the certificate cannot be used", code);
	i->count = count;
	return RC_OK;
}

static enum rc read_key(struct identity *i, const char *pem, struct err *err) {
	const gnutls_datum_t text = datum_of(pem);
	int code = gnutls_privkey_init(&i->key);
	if (code >= 0)
		code = gnutls_privkey_import_x509_raw(i->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
	return code < 0 ? failed(err, "the private key cannot be used", code) : RC_OK;
}

static int id_of_key(gnutls_privkey_t key, unsigned char *id, size_t *size) {
	gnutls_pubkey_t pub;
	int code = gnutls_pubkey_init(&pub);
	if (code < 0)
		return code;
	code = gnutls_pubkey_import_privkey(pub, key, 0, 0);
	if (code >= 0)
		code = gnutls_pubkey_get_key_id(pub, GNUTLS_KEYID_USE_SHA256, id, size);
	gnutls_pubkey_deinit(pub);
	return code;
}

static enum rc check_pair(const struct identity *i, struct err *err) {
	unsigned char of_cert[KEY_ID_MAX], of_key[KEY_ID_MAX];
	size_t cert_size = sizeof(of_cert), key_size = sizeof(of_key);
	int code = gnutls_pubkey_get_key_id(
		i->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert, &cert_size);
	if (code >= 0)
		code = id_of_key(i->key, of_key, &key_size);
	if (code < 0)
		return failed(err, "certificate and key cannot be compared", code);
	if (cert_size != key_size || memcmp(of_cert, of_key, key_size) != 0)
		return err_set(err, RC_INVALID, "the private key is not the certificate's");
	return RC_OK;
}

/* For whoever watches over expiry; 0 when it cannot be told. */
static void tell_expiry(const struct identity *i) {
	gnutls_x509_crt_t cert;
	if (gnutls_x509_crt_init(&cert) < 0)
		return;
	int code = gnutls_x509_crt_import(cert, &i->chain[0].cert, GNUTLS_X509_FMT_DER);
	metric_set(METRIC_TLS_NOT_AFTER, code < 0 ? 0 : gnutls_x509_crt_get_expiration_time(cert));
	gnutls_x509_crt_deinit(cert);
}

static struct identity *identity_new(const char *cert_pem, const char *key_pem, struct err *err) {
	struct identity *i = calloc(1, sizeof(*i));
	if (!i) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	i->refs = 1;
	enum rc rc = read_chain(i, cert_pem, err);
	if (!rc)
		rc = read_key(i, key_pem, err);
	if (!rc)
		rc = check_pair(i, err);
	if (!rc)
		return i;
	identity_unref(i);
	return NULL;
}

/* --- the server's --- */

struct tls *tls_new(const char *cert_pem, const char *key_pem, struct err *err) {
	struct tls *t = calloc(1, sizeof(*t));
	if (!t) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->now = identity_new(cert_pem, key_pem, err);
	if (!t->now) {
		tls_free(t);
		return NULL;
	}
	tell_expiry(t->now);
	return t;
}

void tls_free(struct tls *t) {
	if (!t)
		return;
	identity_unref(t->now);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

enum rc tls_replace(struct tls *t, const char *cert_pem, const char *key_pem, struct err *err) {
	struct identity *i = identity_new(cert_pem, key_pem, err);
	if (!i)
		return err->rc;
	tell_expiry(i);
	pthread_mutex_lock(&t->lock);
	struct identity *old = t->now;
	t->now = i;
	pthread_mutex_unlock(&t->lock);
	identity_unref(old);
	return RC_OK;
}

/* --- a connection's --- */

struct tls_use *tls_begin(struct tls *t, void *session) {
	struct tls_use *use = t ? calloc(1, sizeof(*use)) : NULL;
	if (use) {
		pthread_mutex_lock(&t->lock);
		use->identity = identity_ref(t->now);
		pthread_mutex_unlock(&t->lock);
	}
	gnutls_session_set_ptr(session, use);
	return use;
}

void tls_end(struct tls_use *use) {
	if (!use)
		return;
	identity_unref(use->identity);
	free(use);
}

/* What is given belongs to us, and is there while the connection is. */
static int retrieve(gnutls_session_t session, unused_arg const gnutls_datum_t *ca,
	unused_arg int cas, unused_arg const gnutls_pk_algorithm_t *algorithms,
	unused_arg int algorithm_count, gnutls_pcert_st **chain, unsigned *count,
	gnutls_privkey_t *key) {
	struct tls_use *use = gnutls_session_get_ptr(session);
	if (!use)
		return -1;
	*chain = use->identity->chain;
	*count = use->identity->count;
	*key = use->identity->key;
	return 0;
}

void *tls_callback(void) {
	return (void *)(uintptr_t)retrieve;
}
