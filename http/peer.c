#include "http/peer.h"

#include <string.h>

#include "base/address.h"
#include "base/parse.h"
#include "http/mhd.h"
#include "http/request_impl.h"
#include "http/server_impl.h"

bool peer_is_trusted(const struct http_config *config, const char *address) {
	for (unsigned i = 0; i < config->trusted_proxy_count; i++) {
		if (strcmp(config->trusted_proxies[i], address) == 0)
			return true;
	}
	return false;
}

/* What follows the last comma, without the blanks around it; "" when it is no address. */
static void last_of(const char *list, char *out, size_t size) {
	const char *comma = strrchr(list, ',');
	const char *at = comma ? comma + 1 : list;
	at += strspn(at, " \t");
	const size_t len = strcspn(at, " \t");
	out[0] = '\0';
	if (len >= size)
		return;
	memcpy(out, at, len);
	out[len] = '\0';
	if (!address_is(out))
		out[0] = '\0';
}

void peer_take(struct http_request *q) {
	char *out = q->actor.address;
	char named[sizeof(q->actor.address)];
	mhd_peer(q->conn, out, sizeof(q->actor.address));
	if (!q->server->config.trusted_proxy_count || !peer_is_trusted(&q->server->config, out))
		return;
	const char *list = mhd_header_last(q->conn, "X-Forwarded-For");
	last_of(list ? list : "", named, sizeof(named));
	if (named[0])
		memcpy(out, named, sizeof(named));
}
