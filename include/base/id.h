/* Identifiers and cursors. Any thread. */
#ifndef DRIVEWATT_BASE_ID_H
#define DRIVEWATT_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_UUID_SIZE 37 /* 36 characters and NUL */
#define ID_HASH_SIZE 23 /* 22 characters of base64url (128 bits) and NUL */

/* A random (version 4) UUID in lower case. */
void id_uuid(char out[ID_UUID_SIZE]);
/* A time-ordered UUID (version 7): sorts by creation. For runs, tasks, claims. */
void id_uuid_ordered(char out[ID_UUID_SIZE]);
bool id_is_uuid(const char *s);
/* n parts, each hashed with its length, so that ("ab","c") differs from ("a","bc"):
 * the same parts give the same URL-safe id for ever (BLAKE2b-128). */
void id_hash(const char *const *parts, size_t n, char out[ID_HASH_SIZE]);
/* bytes of randomness as lower-case hex; out holds 2 × bytes + 1. */
void id_random_hex(size_t bytes, char *out);
/* A name that a client may choose: 1–64 of [A-Za-z0-9._-], not beginning with a dot. */
bool id_is_name(const char *s);

#endif
