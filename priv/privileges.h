/* Giving away what the helper does not need. */
#ifndef DRIVEWATT_PRIV_PRIVILEGES_H
#define DRIVEWATT_PRIV_PRIVILEGES_H

/*
 * A network namespace of its own where the kernel lets it, no capability in force but
 * CAP_SYS_ADMIN (admin commands to drives need it), in reserve those of privileges_raise, and no
 * way to get more. What is refused is logged as a warning: the helper works without.
 */
void privileges_reduce(void);

/* Puts in force, for the calling thread, what looking into other processes needs: CAP_SYS_PTRACE
 * and CAP_DAC_READ_SEARCH, as far as they were there at the start. And takes it back. */
void privileges_raise(void);
void privileges_lower(void);

#endif
