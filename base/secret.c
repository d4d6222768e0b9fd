#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEALED_PLAIN_MAX 65536
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

/* Made at start and never kept: fingerprints mean something within this process alone. */
static unsigned char fingerprint_key[crypto_shorthash_siphashx24_KEYBYTES];

enum rc secret_init(struct err *err) {
	int done = sodium_init();
	if (done < 0)
		return err_set(err, RC_INTERNAL, "libsodium cannot start");
	/* 1 says that it was ready already. */
	if (done == 0)
		randombytes_buf(fingerprint_key, sizeof(fingerprint_key));
	return RC_OK;
}

/* --- passwords --- */

_Static_assert(SECRET_PASSWORD_HASH_SIZE >= crypto_pwhash_STRBYTES, "room for the hash");

enum rc secret_password_hash(
	const char *password, char out[SECRET_PASSWORD_HASH_SIZE], struct err *err) {
	if (crypto_pwhash_str(out, password, strlen(password), crypto_pwhash_OPSLIMIT_INTERACTIVE,
		    crypto_pwhash_MEMLIMIT_INTERACTIVE) != 0)
		return err_set(err, RC_NOMEM, "no memory to hash a password");
	return RC_OK;
}

bool secret_password_matches(const char *password, const char *hash) {
	char spent[SECRET_PASSWORD_HASH_SIZE];
	if (!hash) {
		(void)!secret_password_hash(password, spent, NULL);
		return false;
	}
	return crypto_pwhash_str_verify(hash, password, strlen(password)) == 0;
}

static char random_of(const char *letters) {
	return letters[randombytes_uniform((uint32_t)strlen(letters))];
}

void secret_password_make(char out[32]) {
	/* Five groups of 18 bits and two digits: 97 bits. */
	static const char pattern[] = "cvcvc-cvcvc-cvcvc-cvcvc-cvcvc99";
	_Static_assert(sizeof(pattern) == 32, "fills out");
	static const char consonants[] = "bcdfghjkmnpqrstvwxyz", vowels[] = "aeiouy";
	for (size_t i = 0; i < sizeof(pattern); i++) {
		switch (pattern[i]) {
		case 'c':
			out[i] = random_of(consonants);
			break;
		case 'v':
			out[i] = random_of(vowels);
			break;
		case '9':
			out[i] = random_of("0123456789");
			break;
		default:
			out[i] = pattern[i];
		}
	}
}

/* --- tokens and fingerprints --- */

void secret_token_make(char out[SECRET_TOKEN_SIZE]) {
	static const char prefix[] = "dwt_";
	unsigned char raw[32];
	size_t at = sizeof(prefix) - 1;
	randombytes_buf(raw, sizeof(raw));
	memcpy(out, prefix, at);
	sodium_bin2base64(out + at, SECRET_TOKEN_SIZE - at, raw, sizeof(raw), BASE64);
	sodium_memzero(raw, sizeof(raw));
}

void secret_token_hash(const char *token, char out[SECRET_TOKEN_HASH_SIZE]) {
	unsigned char digest[32];
	crypto_generichash(
		digest, sizeof(digest), (const unsigned char *)token, strlen(token), NULL, 0);
	sodium_bin2hex(out, SECRET_TOKEN_HASH_SIZE, digest, sizeof(digest));
}

_Static_assert(SECRET_FINGERPRINT_BYTES == crypto_shorthash_siphashx24_BYTES, "fills out");

/* Of every request: SipHash with 128 bits is made for short texts, a fifth of BLAKE2b's time. */
void secret_fingerprint(const void *data, size_t len, uint8_t out[SECRET_FINGERPRINT_BYTES]) {
	crypto_shorthash_siphashx24(out, data, len, fingerprint_key);
}

void secret_digest(const uint8_t key[SECRET_KEY_BYTES], const void *data, size_t len,
	char hex[SECRET_DIGEST_SIZE]) {
	unsigned char digest[32];
	crypto_generichash(digest, sizeof(digest), data, len, key, SECRET_KEY_BYTES);
	sodium_bin2hex(hex, SECRET_DIGEST_SIZE, digest, sizeof(digest));
}

/* --- sealed values: base64(nonce, box) --- */

#define NONCE_BYTES crypto_secretbox_NONCEBYTES
#define OVERHEAD (NONCE_BYTES + crypto_secretbox_MACBYTES)
#define SEALED_TEXT_MAX sodium_base64_ENCODED_LEN(SEALED_PLAIN_MAX + OVERHEAD, BASE64)

_Static_assert(SECRET_KEY_BYTES == crypto_secretbox_KEYBYTES, "one key size");

enum rc secret_seal(
	const uint8_t key[SECRET_KEY_BYTES], const char *plain, char **out, struct err *err) {
	size_t len = strlen(plain);
	if (len > SEALED_PLAIN_MAX)
		return err_set(err, RC_TOO_LARGE, "secret of more than %d bytes", SEALED_PLAIN_MAX);
	size_t text_size = sodium_base64_encoded_len(len + OVERHEAD, BASE64);
	auto_free unsigned char *box = malloc(len + OVERHEAD);
	char *text = malloc(text_size);
	if (!box || !text) {
		free(text);
		return err_set(err, RC_NOMEM, "out of memory");
	}
	randombytes_buf(box, NONCE_BYTES);
	crypto_secretbox_easy(box + NONCE_BYTES, (const unsigned char *)plain, len, box, key);
	sodium_bin2base64(text, text_size, box, len + OVERHEAD, BASE64);
	*out = text;
	return RC_OK;
}

enum rc secret_unseal(
	const uint8_t key[SECRET_KEY_BYTES], const char *sealed, char **out, struct err *err) {
	size_t text_len = strlen(sealed), len = 0;
	if (text_len > SEALED_TEXT_MAX)
		return err_set(err, RC_CORRUPT, "sealed value is too long");
	auto_free unsigned char *box = malloc(text_len + 1);
	/* One byte more than the longest plain text, and calloc: always terminated. */
	char *plain = calloc(1, text_len + 1);
	if (!box || !plain) {
		free(plain);
		return err_set(err, RC_NOMEM, "out of memory");
	}
	if (sodium_base642bin(box, text_len, sealed, text_len, NULL, &len, NULL, BASE64) != 0 ||
		len < OVERHEAD ||
		crypto_secretbox_open_easy((unsigned char *)plain, box + NONCE_BYTES,
			len - NONCE_BYTES, box, key) != 0) {
		free(plain);
		return err_set(err, RC_CORRUPT, "sealed value does not open with this key");
	}
	*out = plain;
	return RC_OK;
}

/* --- the key file --- */

/* Beside path and then linked to it, so that path never exists half written and a key that is
 * there already is never replaced. */
static enum rc key_make(const char *path, struct err *err) {
	uint8_t key[SECRET_KEY_BYTES];
	char temporary[4096];
	int len = snprintf(temporary, sizeof(temporary), "%s.new", path);
	if (len < 0 || (size_t)len >= sizeof(temporary))
		return err_set(err, RC_INVALID, "path of the key file is too long");
	unlink(temporary);
	auto_close int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, errno, temporary);
	randombytes_buf(key, sizeof(key));
	errno = ENOSPC; /* what a short write means */
	bool written = write(fd, key, sizeof(key)) == (ssize_t)sizeof(key) && fsync(fd) == 0;
	sodium_memzero(key, sizeof(key));
	bool linked = written && (link(temporary, path) == 0 || errno == EEXIST);
	int saved_errno = errno;
	unlink(temporary);
	return linked ? RC_OK : err_errno(err, saved_errno, path);
}

static enum rc key_read(const char *path, int fd, uint8_t key[SECRET_KEY_BYTES], struct err *err) {
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, path);
	if (st.st_mode & S_IRWXO)
		return err_set(err, RC_FORBIDDEN, "%.200s is open to everybody: chmod 600", path);
	if (st.st_size != SECRET_KEY_BYTES || read(fd, key, SECRET_KEY_BYTES) != SECRET_KEY_BYTES)
		return err_set(
			err, RC_CORRUPT, "%.200s is not a key of %d bytes", path, SECRET_KEY_BYTES);
	return RC_OK;
}

enum rc secret_key_load(const char *path, uint8_t key[SECRET_KEY_BYTES], struct err *err) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		enum rc rc = key_make(path, err);
		if (rc)
			return rc;
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return err_errno(err, errno, path);
	return key_read(path, fd, key, err);
}

void secret_wipe(void *p, size_t len) {
	sodium_memzero(p, len);
}
