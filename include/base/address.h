/* Internet addresses as text. Any thread. */
#ifndef DRIVEWATT_BASE_ADDRESS_H
#define DRIVEWATT_BASE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_NETWORK_BYTES 16

/* "192.0.2.1" or "2001:db8::1" */
bool address_is(const char *text);

/* What counts as one client: an IPv4 address, the /64 network of an IPv6 one, which one machine may
 * have to itself. What is no address, as the "" of a UNIX socket's peer, counts as one too. */
void address_network(const char *text, uint8_t out[ADDRESS_NETWORK_BYTES]);

#endif
