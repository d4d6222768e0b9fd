/*
 * Secrets: password hashes (argon2id), token hashes, sealed values (secretbox), constant-time
 * comparison, all by libsodium. Any thread after secret_init.
 */
#ifndef DRIVEWATT_BASE_SECRET_H
#define DRIVEWATT_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

#define SECRET_PASSWORD_HASH_SIZE 128
#define SECRET_TOKEN_SIZE 52      /* "dwt_" and 43 characters of base64url, and NUL */
#define SECRET_TOKEN_HASH_SIZE 65 /* hex of BLAKE2b-256, and NUL */
#define SECRET_KEY_BYTES 32
#define SECRET_DIGEST_SIZE 65 /* hex of BLAKE2b-256, and NUL */
#define SECRET_FINGERPRINT_BYTES 16

enum rc must_check secret_init(struct err *err);

/* argon2id at libsodium's INTERACTIVE limits (64 MiB, about 100 ms): bound the concurrency. */
enum rc must_check secret_password_hash(
	const char *password, char out[SECRET_PASSWORD_HASH_SIZE], struct err *err);
/* hash NULL matches nothing and takes as long. */
bool secret_password_matches(const char *password, const char *hash);
/* A pronounceable-enough random password of about 100 bits; out holds 32 bytes. */
void secret_password_make(char out[32]);

void secret_token_make(char out[SECRET_TOKEN_SIZE]);
void secret_token_hash(const char *token, char out[SECRET_TOKEN_HASH_SIZE]);

/* A keyed digest of any text under a key made at start: for caches of verified credentials, so
 * that the credentials themselves need not be kept. */
void secret_fingerprint(const void *data, size_t len, uint8_t out[SECRET_FINGERPRINT_BYTES]);

/* The same under a key of the caller's: for what is kept over restarts. */
void secret_digest(const uint8_t key[SECRET_KEY_BYTES], const void *data, size_t len,
	char hex[SECRET_DIGEST_SIZE]);

/* Seals under key with a random nonce; *out (base64 text) is the caller's to free. */
enum rc must_check secret_seal(
	const uint8_t key[SECRET_KEY_BYTES], const char *plain, char **out, struct err *err);
/* *out is the caller's to wipe and free. RC_CORRUPT when the key does not fit. */
enum rc must_check secret_unseal(
	const uint8_t key[SECRET_KEY_BYTES], const char *sealed, char **out, struct err *err);
/* Reads SECRET_KEY_BYTES from path, or makes the file (mode 0600) with a random key. */
enum rc must_check secret_key_load(
	const char *path, uint8_t key[SECRET_KEY_BYTES], struct err *err);

void secret_wipe(void *p, size_t len);

#endif
