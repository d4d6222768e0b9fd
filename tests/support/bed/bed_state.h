/* The bed's drives, in a file that the daemon under test, nvme-cli and the test map. */
#ifndef DRIVEWATT_TESTS_BED_STATE_H
#define DRIVEWATT_TESTS_BED_STATE_H

#include "tests/support/nvme_model.h"

#define BED_MAGIC 0x42454431u
#define BED_MAX_DRIVES 64
#define BED_STATE_VARIABLE "BED_STATE" /* the file's path, in the environment */

/* Guarded by flock on the file; hang may be read without. */
struct bed_state {
	uint32_t magic;
	uint32_t count;
	struct nvme_model drives[BED_MAX_DRIVES];
};

#endif
