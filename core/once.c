#include "core/once.h"

#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "db/events.h"

struct once {
	struct db *control;
	uint8_t key[SECRET_KEY_BYTES];
};

struct once *once_new(const uint8_t key[SECRET_KEY_BYTES], struct db *control, struct err *err) {
	struct once *o = calloc(1, sizeof(*o));
	if (!o) {
		err_set(err, RC_NOMEM, "out of memory");
		return NULL;
	}
	o->control = control;
	memcpy(o->key, key, sizeof(o->key));
	return o;
}

void once_free(struct once *o) {
	if (!o)
		return;
	secret_wipe(o->key, sizeof(o->key));
	free(o);
}

bool once_key_is_valid(const char *key) {
	const size_t len = strnlen(key, ONCE_KEY_MAX + 1);
	if (len == 0 || len > ONCE_KEY_MAX || key[0] == ' ' || key[len - 1] == ' ')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (key[i] < ' ' || key[i] > '~')
			return false;
	}
	return true;
}

/* False when a text does not fit, which nothing that was kept could have had. */
static bool name(struct idempotency *i, const struct actor *who, const struct once_request *r) {
	*i = (struct idempotency){.created_ms = clock_wall_ms()};
	return str_copy(i->account_id, sizeof(i->account_id), who->account_id) &&
		str_copy(i->method, sizeof(i->method), r->method) &&
		str_copy(i->path, sizeof(i->path), r->path) &&
		str_copy(i->key, sizeof(i->key), r->key);
}

static enum rc read_kept(struct once *o, struct idempotency *i, struct err *err) {
	struct db_conn *c;
	enum rc rc = db_read_begin(o->control, &c, err);
	if (rc)
		return rc;
	rc = db_idempotency_get(c, i, err);
	db_read_end(c);
	return rc;
}

enum rc once_find(struct once *o, const struct actor *who, struct once_request *r, const char *body,
	size_t len, char location[ONCE_LOCATION_SIZE], struct err *err) {
	struct idempotency i;
	secret_digest(o->key, body, len, r->fingerprint);
	if (!name(&i, who, r))
		return err_set(err, RC_INVALID, "the path or the key is too long to be kept");
	enum rc rc = read_kept(o, &i, err);
	if (rc)
		return rc;
	if (strcmp(i.fingerprint, r->fingerprint) != 0)
		return err_set(err, RC_UNSUPPORTED, "the key was used with another body");
	str_copy(location, ONCE_LOCATION_SIZE, i.location);
	return RC_OK;
}

enum rc once_keep(
	struct db_conn *c, const struct actor *who, const char *location, struct err *err) {
	struct idempotency i;
	if (!who->once)
		return RC_OK;
	if (!name(&i, who, who->once) || !str_copy(i.location, sizeof(i.location), location))
		return err_set(err, RC_INTERNAL, "an idempotency key was not checked");
	str_copy(i.fingerprint, sizeof(i.fingerprint), who->once->fingerprint);
	const enum rc rc = db_idempotency_insert(c, &i, err);
	if (rc == RC_EXISTS)
		return err_set(err, RC_CONFLICT, "a request of the same key is under way");
	return rc;
}
