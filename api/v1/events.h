/* The events' way from the publisher into the stream. */
#ifndef DRIVEWATT_API_V1_EVENTS_H
#define DRIVEWATT_API_V1_EVENTS_H

#include "api/v1/v1.h"
#include "model/event.h"

/* A subscriber of core/events: renders once for all readers. arg is the struct api. */
void events_to_channel(void *arg, const struct event *e);

#endif
