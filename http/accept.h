/* What a client accepts: Accept, Accept-Encoding, and what it sends: Content-Type. A header that
 * is absent is NULL. */
#ifndef DRIVEWATT_HTTP_ACCEPT_H
#define DRIVEWATT_HTTP_ACCEPT_H

#include <stdbool.h>

/* The index in types ("application/json,text/csv") of what the client likes best, the first of
 * equals; -1 when it takes none. JSON also answers for its relatives ("+json"). */
int accept_choose(const char *accept, const char *types);
/* Whether the client prefers media over "application/json". */
bool accept_prefers(const char *accept, const char *media);
bool accept_gzip(const char *accept_encoding);
/* "application/json" or "…+json", parameters allowed. */
bool media_is_json(const char *content_type);

#endif
