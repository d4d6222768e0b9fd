/*
 * Requests that make something at most once: what a client's Idempotency-Key made is kept for a
 * day under (account, method, path, key), with a digest of the body, in the transaction that made
 * it. The answer itself is not kept: asked again, the thing as it is now is shown. Any thread.
 */
#ifndef DRIVEWATT_CORE_ONCE_H
#define DRIVEWATT_CORE_ONCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/secret.h"
#include "db/db.h"
#include "model/account.h"

#define ONCE_KEY_MAX 128
#define ONCE_LOCATION_SIZE 256
#define ONCE_KEPT_DAYS 1

struct once;

/* What the client said. The texts are borrowed until the thing is made. */
struct once_request {
	const char *method, *path, *key;
	char fingerprint[SECRET_DIGEST_SIZE]; /* of the body, by once_find */
};

/* The digest is a keyed one, since bodies hold passwords: key must be the same in every life. */
struct once *once_new(const uint8_t key[SECRET_KEY_BYTES], struct db *control, struct err *err);
void once_free(struct once *o); /* NULL is fine */

/* 1 to ONCE_KEY_MAX printable ASCII characters, no blanks at an end. */
bool once_key_is_valid(const char *key);

/* Fills r's fingerprint. RC_OK: r made `location` before; RC_NOT_FOUND: it is new, and r may go as
 * the actor's once into the call that makes something; RC_UNSUPPORTED: the key came with another
 * body. Blocks on the store. */
enum rc must_check once_find(struct once *o, const struct actor *who, struct once_request *r,
	const char *body, size_t len, char location[ONCE_LOCATION_SIZE], struct err *err);

/* For those who make something, in its transaction: notes what who's request made, if it has a
 * key. RC_CONFLICT when the key was used meanwhile. location: below /api/v1, "/hosts/<id>". */
enum rc must_check once_keep(
	struct db_conn *c, const struct actor *who, const char *location, struct err *err);

#endif
