/* How a database fares. */
#ifndef DRIVEWATT_MODEL_STORE_H
#define DRIVEWATT_MODEL_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct db_status {
	bool healthy; /* the last write worked */
	int schema_version;
	int64_t file_bytes, wal_bytes;
	int64_t commits, failures;
	char last_error[160]; /* "" none */
};

#endif
