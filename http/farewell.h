/*
 * Connections that were answered before their request had come whole: the kernel would reset them
 * when they are closed, and the answer would be lost. They are kept a while, and what still comes
 * is thrown away. Bounded in number, bytes and time; one too many is not kept. Any thread.
 */
#ifndef DRIVEWATT_HTTP_FAREWELL_H
#define DRIVEWATT_HTTP_FAREWELL_H

#include "base/rc.h"

struct farewell;
struct timers;

/* Takes one place of timers, which are borrowed. */
struct farewell *farewell_new(struct timers *timers, struct err *err);
/* Before the socket behind fd is closed by its owner. */
void farewell_keep(struct farewell *l, int fd);
/* Lets go of all and keeps no more; before the timers are freed. */
void farewell_close(struct farewell *l);
void farewell_free(struct farewell *l); /* NULL is fine */

#endif
