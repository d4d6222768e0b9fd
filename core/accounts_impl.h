/*
 * What the files of the accounts share. Cache and guard have locks of their own; version is atomic;
 * all else is fixed at construction.
 */
#ifndef DRIVEWATT_CORE_ACCOUNTS_IMPL_H
#define DRIVEWATT_CORE_ACCOUNTS_IMPL_H

#include <stdatomic.h>

#include "core/account_cache.h"
#include "core/account_guard.h"
#include "core/accounts.h"

struct accounts {
	struct accounts_config config;
	struct db *control;
	struct events *events;
	struct account_cache *cache;
	struct account_guard *guard;
	_Atomic uint64_t version;
};

/* That password is the actor's account's. Hashes. RC_FORBIDDEN when it is not, which counts against
 * the actor's address; RC_THROTTLED: too many of that address were wrong. */
enum rc must_check accounts_check_own(
	struct accounts *a, const struct actor *who, const char *password, struct err *err);

#endif
