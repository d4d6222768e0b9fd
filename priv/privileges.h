/* Giving away what the helper does not need. */
#ifndef DRIVEWATT_PRIV_PRIVILEGES_H
#define DRIVEWATT_PRIV_PRIVILEGES_H

/*
 * A network namespace of its own where the kernel lets it, no capability but CAP_SYS_ADMIN (admin
 * commands to drives need it), and no way to get more. What is refused is logged as a warning:
 * the helper works without.
 */
void privileges_reduce(void);

#endif
