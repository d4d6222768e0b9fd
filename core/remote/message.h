/*
 * The message of Prometheus remote write 1.0: WriteRequest of prompb/remote.proto, written by hand,
 * and the block format of Snappy around it. Pure.
 */
#ifndef DRIVEWATT_CORE_REMOTE_MESSAGE_H
#define DRIVEWATT_CORE_REMOTE_MESSAGE_H

#include "base/buf.h"
#include "model/sample.h"

#define MESSAGE_MAX_LABELS 24

struct message_label {
	const char *name, *value;
};

/* By name, ascending, each name once: as receivers want them. */
struct message_labels {
	unsigned count;
	struct message_label all[MESSAGE_MAX_LABELS];
};

/* Replaces the label of that name. Texts are borrowed; false when there is no room. */
bool message_label(struct message_labels *l, const char *name, const char *value);
/* May a client's label have that name? Not where it would hide one of ours. */
bool message_label_is_free(const char *name);
/* The labels of a series, its metric's name among them, as /metrics has them. name holds its
 * metric's name. */
void message_series_labels(struct message_labels *l, const struct series *s, char name[64]);

/* One TimeSeries; samples by time. */
void message_add(struct buf *out, const struct message_labels *l, enum quantity q,
	const struct sample *samples, size_t n);
enum rc must_check message_compress(const struct buf *message, struct buf *out, struct err *err);

#endif
