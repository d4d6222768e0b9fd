/* Files of the configuration that only root may read, for the process that no longer may. */
#ifndef DRIVEWATT_PRIV_FILES_H
#define DRIVEWATT_PRIV_FILES_H

#include "priv/helper.h"
#include "priv/protocol.h"

/* Opens one of config's files for reading; -1, and out says why. Blocks on the file system. */
int files_open(const struct priv_config *config, uint32_t file, struct priv_opened *out);

#endif
