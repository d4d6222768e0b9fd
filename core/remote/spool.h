/*
 * Messages that wait on disk, a file each, from the oldest to the newest. What was put survives a
 * kill at any moment. One thread.
 */
#ifndef DRIVEWATT_CORE_REMOTE_SPOOL_H
#define DRIVEWATT_CORE_REMOTE_SPOOL_H

#include "base/buf.h"

/* Disks count in blocks of this size, and so do we. */
#define SPOOL_BLOCK_BYTES 4096

struct spool_entry {
	uint64_t number; /* ascending */
	int64_t at_ms;   /* wall; when it was put */
	unsigned samples;
	unsigned blocks;
};

struct spool {
	int dir; /* descriptor */
	int64_t max_bytes;
	struct spool_entry *all; /* owned; those from first on are there */
	size_t first, end, room;
	uint64_t next;
	int64_t blocks, samples; /* of all entries */
};

/* Makes dir if need be, takes in what an earlier life has left and removes what is no message. */
enum rc must_check spool_open(struct spool *s, const char *dir, int64_t max_bytes, struct err *err);
/* The files stay. */
void spool_close(struct spool *s);

/* Adds a message, and drops as many of the oldest as are beyond max_bytes: *dropped samples of
 * them. RC_NO_SPACE and the like leave all as it was. */
enum rc must_check spool_put(struct spool *s, int64_t at_ms, unsigned samples, const char *data,
	size_t len, int64_t *dropped, struct err *err);
/* NULL: there is none. Valid until the next call. */
const struct spool_entry *spool_oldest(const struct spool *s);
enum rc must_check spool_read(
	const struct spool *s, const struct spool_entry *e, struct buf *out, struct err *err);
/* Removes the oldest if it is still the one with that number. Returns its samples, else 0. */
unsigned spool_remove(struct spool *s, uint64_t number);
/* Removes all older than before_ms; returns their samples. */
int64_t spool_expire(struct spool *s, int64_t before_ms);

#endif
