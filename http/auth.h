/* Who asks, and whether they may. */
#ifndef DRIVEWATT_HTTP_AUTH_H
#define DRIVEWATT_HTTP_AUTH_H

#include "base/rc.h"

struct http_request;

/* On the loop, without blocking: 0 and q->verified says whether auth_verify() is still needed,
 * or the status of a refusal. */
int auth_check(struct http_request *q, struct err *err);
/* On a worker: 0 or the status of a refusal. */
int auth_verify(struct http_request *q, struct err *err);

#endif
