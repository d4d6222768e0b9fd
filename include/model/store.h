/* How a database fares. */
#ifndef DRIVEWATT_MODEL_STORE_H
#define DRIVEWATT_MODEL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rc.h"

struct db_status {
	bool healthy;    /* the last write worked */
	enum rc last_rc; /* of the last write */
	int schema_version;
	int64_t file_bytes, wal_bytes;
	int64_t commits, failures;
	char last_error[160]; /* "" none */
};

enum store_state {
	STORE_OK,
	STORE_FULL,      /* can be read; the last write met a full disk */
	STORE_READ_ONLY, /* can be read; the last write failed for another reason */
	STORE_FAILING,   /* cannot be read */
	STORE_STATE_COUNT_
};

#endif
