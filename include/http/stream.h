/*
 * Event streams (text/event-stream). A channel renders every message once into a bounded ring;
 * each reader is a cursor on it. A reader that falls off the ring's end is dropped and counted; the
 * last that it gets is an event `dropped`.
 * Any thread; nothing blocks for longer than a lock that is held for moments.
 */
#ifndef DRIVEWATT_HTTP_STREAM_H
#define DRIVEWATT_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/request.h"

#define HTTP_REPLAY_MAX_BYTES (4u * 1024 * 1024)

struct http_channel;

/* ring: messages kept for slow readers, over 0, each of at most 64 KiB. max_readers: more are
 * RC_FULL. heartbeat_ms, over 0: a comment line when nothing else came for that long. */
struct http_channel *http_channel_new(
	unsigned ring, unsigned max_readers, int64_t heartbeat_ms, struct err *err);
/* After the server that sends its streams has stopped. NULL is fine. */
void http_channel_free(struct http_channel *c);
/* How many read it now; cheap. */
unsigned http_channel_readers(struct http_channel *c);
/* Copies the message (a whole SSE block ending in an empty line) and wakes the readers. */
void http_channel_publish(struct http_channel *c, const char *text, size_t len);
/* A reader that first gets `first` (replay, copied) and then what is published from now on.
 * To make replay seamless: subscribe with http_stream_new before reading the replayed rows, then
 * http_stream_replay; `skip_to_id` lets the channel drop published ids up to it. RC_FULL; a replay
 * of more than HTTP_REPLAY_MAX_BYTES is RC_TOO_LARGE, never cut. */
struct http_stream *http_stream_new(struct http_channel *c, struct err *err);
enum rc must_check http_stream_replay(
	struct http_stream *s, const char *text, size_t len, int64_t skip_to_id, struct err *err);
/* For one that no response has taken over. NULL is fine. */
void http_stream_free(struct http_stream *s);
/* As http_channel_publish with the event's id, compared with skip_to_id. */
void http_channel_publish_id(struct http_channel *c, int64_t id, const char *text, size_t len);

#endif
