/* Handlers of the operations without a version. */
#ifndef DRIVEWATT_API_ROOT_ROOT_H
#define DRIVEWATT_API_ROOT_ROOT_H

#include "api/api_private.h"

#define ROOT_HANDLER(name) \
	enum http_next name(struct http_request *q, struct http_response *r, void *ctx)

ROOT_HANDLER(healthz);
ROOT_HANDLER(readyz);
ROOT_HANDLER(metrics);
ROOT_HANDLER(openapi_yaml);
ROOT_HANDLER(openapi_json);
ROOT_HANDLER(index_page);

#endif
