/* Samples on the stream of events, for readers that ask for them. */
#ifndef DRIVEWATT_API_V1_LIVE_H
#define DRIVEWATT_API_V1_LIVE_H

#include "api/v1/v1.h"
#include "http/stream.h"

struct live;

/* core is borrowed. */
struct live *live_new(
	struct core *core, unsigned max_readers, int64_t heartbeat_ms, struct err *err);
/* Hears of every sample from now on, until core ends; nothing is rendered while nobody reads. */
enum rc must_check live_start(struct live *l, struct err *err);
/* After core has ended, once it was started. NULL is fine. */
void live_free(struct live *l);
/* Where events go besides, so that its readers get both. */
struct http_channel *live_channel(struct live *l);

#endif
