/*
 * Wrong passwords by where they come from. Each counts for a while; an address with too many must
 * wait until one is forgotten before another password of its is checked, be it right or wrong.
 * Other addresses are not held up. A fixed table of small sets: a full one gives up whose failures
 * are forgotten first. Its lock is a leaf and held for moments, since the HTTP loop asks. Any
 * thread.
 */
#ifndef DRIVEWATT_CORE_ACCOUNT_GUARD_H
#define DRIVEWATT_CORE_ACCOUNT_GUARD_H

#include <stddef.h>
#include <stdint.h>

struct account_guard;

/* max_failures: what an address may have at once; 0: any number. */
struct account_guard *account_guard_new(size_t addresses, unsigned max_failures);
void account_guard_free(struct account_guard *g);

/* Until address may try again; 0: now. */
int64_t account_guard_wait_ms(struct account_guard *g, const char *address);
void account_guard_failed(struct account_guard *g, const char *address);

#endif
