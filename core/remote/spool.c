#include "core/remote/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_NAME "new"
#define NAME_SIZE 64

/* --- names ------------------------------------------------------------------------------------ */

static void name_of(const struct spool_entry *e, char out[NAME_SIZE]) {
	snprintf(out, NAME_SIZE, "%020llu-%lld-%u.snappy", (unsigned long long)e->number,
		(long long)e->at_ms, e->samples);
}

static bool entry_of(const char *name, struct spool_entry *e) {
	unsigned long long number;
	long long at_ms;
	char again[NAME_SIZE];
	*e = (struct spool_entry){0};
	if (sscanf(name, "%20llu-%lld-%u.snappy", &number, &at_ms, &e->samples) != 3)
		return false;
	e->number = number;
	e->at_ms = at_ms;
	name_of(e, again);
	return strcmp(name, again) == 0;
}

/* --- the entries in memory -------------------------------------------------------------------- */

static unsigned blocks_of(size_t len) {
	return (unsigned)(len / SPOOL_BLOCK_BYTES + 1);
}

/* Moves what is there to the front once the rest is the larger part; grows only beyond that. */
static bool make_room(struct spool *s) {
	if (s->end < s->room)
		return true;
	if (s->first > s->room / 2) {
		s->end -= s->first;
		memmove(s->all, s->all + s->first, s->end * sizeof(s->all[0]));
		s->first = 0;
		return true;
	}
	size_t room = s->room ? 2 * s->room : 64;
	struct spool_entry *all = realloc(s->all, room * sizeof(all[0]));
	if (!all)
		return false;
	s->all = all;
	s->room = room;
	return true;
}

static bool take(struct spool *s, const struct spool_entry *e) {
	if (!make_room(s))
		return false;
	s->all[s->end++] = *e;
	s->blocks += e->blocks;
	s->samples += e->samples;
	if (e->number >= s->next)
		s->next = e->number + 1;
	return true;
}

static unsigned drop_oldest(struct spool *s) {
	const struct spool_entry e = s->all[s->first];
	char name[NAME_SIZE];
	name_of(&e, name);
	(void)unlinkat(s->dir, name, 0);
	s->first++;
	s->blocks -= e.blocks;
	s->samples -= e.samples;
	return e.samples;
}

static int64_t shrink(struct spool *s) {
	int64_t dropped = 0;
	while (s->first < s->end && s->blocks * SPOOL_BLOCK_BYTES > s->max_bytes)
		dropped += drop_oldest(s);
	return dropped;
}

const struct spool_entry *spool_oldest(const struct spool *s) {
	return s->first < s->end ? &s->all[s->first] : NULL;
}

unsigned spool_remove(struct spool *s, uint64_t number) {
	const struct spool_entry *e = spool_oldest(s);
	return e && e->number == number ? drop_oldest(s) : 0;
}

int64_t spool_expire(struct spool *s, int64_t before_ms) {
	int64_t dropped = 0;
	while (s->first < s->end && s->all[s->first].at_ms < before_ms)
		dropped += drop_oldest(s);
	return dropped;
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum rc take_file(struct spool *s, const char *name, struct err *err) {
	struct spool_entry e;
	struct stat st;
	if (name[0] == '.')
		return RC_OK;
	if (!entry_of(name, &e) || fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
		!S_ISREG(st.st_mode)) {
		(void)unlinkat(s->dir, name, 0);
		return RC_OK;
	}
	e.blocks = blocks_of((size_t)st.st_size);
	return take(s, &e) ? RC_OK : err_set(err, RC_NOMEM, "no memory for the spool");
}

static int by_number(const void *a, const void *b) {
	const struct spool_entry *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

static enum rc take_all(struct spool *s, const char *dir, struct err *err) {
	DIR *d = opendir(dir);
	enum rc rc = RC_OK;
	if (!d)
		return err_errno(err, errno, dir);
	for (const struct dirent *f; !rc && (f = readdir(d));)
		rc = take_file(s, f->d_name, err);
	closedir(d);
	if (s->end)
		qsort(s->all, s->end, sizeof(s->all[0]), by_number);
	return rc;
}

enum rc spool_open(struct spool *s, const char *dir, int64_t max_bytes, struct err *err) {
	*s = (struct spool){.dir = -1, .max_bytes = max_bytes};
	if (mkdir(dir, 0700) && errno != EEXIST)
		return err_errno(err, errno, dir);
	s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_errno(err, errno, dir);
	enum rc rc = take_all(s, dir, err);
	if (rc)
		spool_close(s);
	return rc;
}

void spool_close(struct spool *s) {
	if (s->dir >= 0)
		close(s->dir);
	free(s->all);
	*s = (struct spool){.dir = -1};
}

/* --- files ------------------------------------------------------------------------------------ */

static enum rc write_all(int fd, const char *data, size_t len, struct err *err) {
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "the spool of remote write");
		data += n;
		len -= (size_t)n;
	}
	return RC_OK;
}

/* Under its name only once it is whole. */
static enum rc write_file(
	struct spool *s, const char *name, const char *data, size_t len, struct err *err) {
	auto_close int fd =
		openat(s->dir, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum rc rc = fd >= 0 ? write_all(fd, data, len, err)
			     : err_errno(err, errno, "the spool of remote write");
	if (!rc && renameat(s->dir, NEW_NAME, s->dir, name))
		rc = err_errno(err, errno, "the spool of remote write");
	if (rc)
		(void)unlinkat(s->dir, NEW_NAME, 0);
	return rc;
}

enum rc spool_put(struct spool *s, int64_t at_ms, unsigned samples, const char *data, size_t len,
	int64_t *dropped, struct err *err) {
	const struct spool_entry e = {s->next, at_ms, samples, blocks_of(len)};
	char name[NAME_SIZE];
	*dropped = 0;
	name_of(&e, name);
	if (!make_room(s))
		return err_set(err, RC_NOMEM, "no memory for the spool");
	enum rc rc = write_file(s, name, data, len, err);
	if (rc)
		return rc;
	(void)take(s, &e);
	*dropped = shrink(s);
	return RC_OK;
}

enum rc spool_read(
	const struct spool *s, const struct spool_entry *e, struct buf *out, struct err *err) {
	char name[NAME_SIZE];
	name_of(e, name);
	auto_close int fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, name);
	const size_t most = (size_t)e->blocks * SPOOL_BLOCK_BYTES;
	char *room = buf_make_room(out, most);
	if (!room)
		return buf_status(out, err);
	ssize_t n = read(fd, room, most);
	if (n < 0)
		return err_errno(err, errno, name);
	buf_added(out, (size_t)n);
	return RC_OK;
}
