#include "http/route.h"

static const int statuses[RC_COUNT_] = {
	[RC_OK] = 200,
	[RC_INVALID] = 400,
	[RC_UNAUTHENTICATED] = 401,
	[RC_FORBIDDEN] = 403,
	[RC_NOT_FOUND] = 404,
	[RC_EXISTS] = 409,
	[RC_CONFLICT] = 409,
	[RC_PRECONDITION] = 412,
	[RC_PRECONDITION_REQUIRED] = 428,
	[RC_TOO_LARGE] = 413,
	[RC_THROTTLED] = 429,
	[RC_FULL] = 503,
	[RC_TIMEOUT] = 504,
	[RC_UNAVAILABLE] = 503,
	[RC_REFUSED] = 502,     /* the device, to which this daemon is a gateway, said no */
	[RC_UNSUPPORTED] = 422, /* well-formed, but not for this object */
	[RC_CANCELLED] = 409,
	[RC_NO_SPACE] = 507,
	[RC_STORE] = 507,
	[RC_CORRUPT] = 500,
	[RC_IO] = 500,
	[RC_NOMEM] = 500,
	[RC_INTERNAL] = 500,
};

int http_status_of(enum rc rc) {
	return (unsigned)rc < RC_COUNT_ ? statuses[rc] : 500;
}
