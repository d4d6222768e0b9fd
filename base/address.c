#include "base/address.h"

#include <arpa/inet.h>
#include <string.h>

#define NETWORK_BYTES 8 /* of an IPv6 address */

void address_network(const char *text, uint8_t out[ADDRESS_NETWORK_BYTES]) {
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	memset(out, 0, ADDRESS_NETWORK_BYTES);
	if (inet_pton(AF_INET, text, out + sizeof(mapped)) == 1)
		memcpy(out, mapped, sizeof(mapped));
	else if (inet_pton(AF_INET6, text, out) == 1)
		memset(out + NETWORK_BYTES, 0, ADDRESS_NETWORK_BYTES - NETWORK_BYTES);
}

bool address_is(const char *text) {
	uint8_t bytes[ADDRESS_NETWORK_BYTES];
	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}
