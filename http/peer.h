/* Who is at the other end: the peer, or whom a trusted proxy names. */
#ifndef DRIVEWATT_HTTP_PEER_H
#define DRIVEWATT_HTTP_PEER_H

#include <stdbool.h>

struct http_config;
struct http_request;

bool peer_is_trusted(const struct http_config *config, const char *address);
/* Fills q->actor.address. Behind a trusted proxy it is the last address of X-Forwarded-For, which
 * is the one that the proxy itself has seen. */
void peer_take(struct http_request *q);

#endif
