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

#endif
