/* The service manager's protocol (sd_notify(3)): one datagram, nothing where no one listens. */
#ifndef DRIVEWATT_SERVER_SD_NOTIFY_H
#define DRIVEWATT_SERVER_SD_NOTIFY_H

void sd_notify_send(const char *state);

#endif
