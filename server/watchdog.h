/* The service manager's watchdog (WatchdogSec=): it restarts a daemon that no longer answers. */
#ifndef DRIVEWATT_SERVER_WATCHDOG_H
#define DRIVEWATT_SERVER_WATCHDOG_H

#include <signal.h>

/* Waits for a signal of the set, which is blocked, and returns it. Where the service manager wants
 * to hear from us, tells it meanwhile that we live, as long as the listener at url answers. */
int watchdog_wait(const sigset_t *set, const char *url);

#endif
