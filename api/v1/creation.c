/* POSTs that make something, at most once for each Idempotency-Key. */
#include <string.h>

#include "api/v1/v1.h"

enum rc creation_begin(
	struct creation *c, const struct http_request *q, struct core *core, struct err *err) {
	size_t len;
	const char *body = http_body(q, &len);
	*c = (struct creation){.who = *http_actor(q)};
	c->request = (struct once_request){.method = http_method(q),
		.path = http_path(q),
		.key = http_header(q, "Idempotency-Key")};
	if (!c->request.key)
		return RC_OK;
	enum rc rc = once_find(core->once, &c->who, &c->request, body, len, c->location, err);
	if (rc == RC_OK)
		c->made = strrchr(c->location, '/') + 1;
	else if (rc == RC_NOT_FOUND)
		c->who.once = &c->request;
	else if (rc == RC_UNSUPPORTED)
		return err_field(err, rc, "Idempotency-Key", "was used with another body");
	return rc == RC_NOT_FOUND ? RC_OK : rc;
}
