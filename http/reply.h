/* From what a handler left, or from the cache, to the answer that is sent. */
#ifndef DRIVEWATT_HTTP_REPLY_H
#define DRIVEWATT_HTTP_REPLY_H

#include <stdbool.h>

#include "base/rc.h"

struct http_request;

/* On the loop: fills q->answer when the cache has what the route shows now. */
bool reply_cached(struct http_request *q);
/* Turns q->r into q->answer, which is NULL only when memory is out. */
void reply_build(struct http_request *q);
/* Renders err with status into q->r in the way of the request's tree. */
void reply_render_error(struct http_request *q, int status, const struct err *err);
/* Both. */
void reply_error(struct http_request *q, int status, const struct err *err);

#endif
