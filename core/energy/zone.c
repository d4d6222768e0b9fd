#include "core/energy/zone.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/energy/zone_rule.h"

#define FILE_MAX (64 * 1024)
#define HEADER_BYTES 44
#define DAY_S 86400

struct zone {
	size_t count;      /* of changes */
	int64_t first_s;   /* offset before the first change */
	int64_t *at_s;     /* when, ascending; owned */
	int64_t *offset_s; /* since then; owned */
	bool has_rule;     /* for what comes after the last change */
	struct zone_rule rule;
};

/* --- the file's format --- */

struct header {
	unsigned char version;
	size_t isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt;
};

static uint64_t be(const unsigned char *p, size_t bytes) {
	uint64_t v = 0;
	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static bool take_header(const unsigned char **p, const unsigned char *end, struct header *h) {
	if (end - *p < HEADER_BYTES || memcmp(*p, "TZif", 4) != 0)
		return false;
	const unsigned char *counts = *p + 20;
	*h = (struct header){
		.version = (*p)[4],
		.isutcnt = be(counts, 4),
		.isstdcnt = be(counts + 4, 4),
		.leapcnt = be(counts + 8, 4),
		.timecnt = be(counts + 12, 4),
		.typecnt = be(counts + 16, 4),
		.charcnt = be(counts + 20, 4),
	};
	*p += HEADER_BYTES;
	return h->typecnt > 0;
}

static size_t body_bytes(const struct header *h, size_t time_bytes) {
	return h->timecnt * (time_bytes + 1) + h->typecnt * 6 + h->charcnt +
		h->leapcnt * (time_bytes + 4) + h->isstdcnt + h->isutcnt;
}

static bool fill(struct zone *z, const unsigned char *times, const struct header *h) {
	const unsigned char *kinds = times + h->timecnt * 8, *types = kinds + h->timecnt;
	z->first_s = (int32_t)be(types, 4);
	for (size_t i = 0; i < h->timecnt; i++) {
		if (kinds[i] >= h->typecnt)
			return false;
		z->at_s[i] = (int64_t)be(times + i * 8, 8);
		z->offset_s[i] = (int32_t)be(types + kinds[i] * 6, 4);
		if (i && z->at_s[i] <= z->at_s[i - 1])
			return false;
	}
	z->count = h->timecnt;
	return true;
}

/* "\n<rule>\n" */
static void take_rule(struct zone *z, const unsigned char *p, const unsigned char *end) {
	char text[80];
	if (p == end || *p++ != '\n')
		return;
	const unsigned char *stop = memchr(p, '\n', (size_t)(end - p));
	if (!stop || (size_t)(stop - p) >= sizeof(text))
		return;
	memcpy(text, p, (size_t)(stop - p));
	text[stop - p] = '\0';
	z->has_rule = zone_rule_parse(text, &z->rule);
}

static bool parse(struct zone *z, const unsigned char *p, size_t len) {
	const unsigned char *end = p + len;
	struct header h;
	/* The first block has 32-bit times and is skipped; version 1 has no other. */
	if (!take_header(&p, end, &h) || h.version < '2' || body_bytes(&h, 4) > (size_t)(end - p))
		return false;
	p += body_bytes(&h, 4);
	if (!take_header(&p, end, &h) || body_bytes(&h, 8) > (size_t)(end - p))
		return false;
	z->at_s = calloc(h.timecnt + 1, sizeof(z->at_s[0]));
	z->offset_s = calloc(h.timecnt + 1, sizeof(z->offset_s[0]));
	if (!z->at_s || !z->offset_s || !fill(z, p, &h))
		return false;
	take_rule(z, p + body_bytes(&h, 8), end);
	return true;
}

struct zone *zone_parse(const unsigned char *data, size_t len, struct err *err) {
	struct zone *z = calloc(1, sizeof(*z));
	if (!z) {
		err_set(err, RC_NOMEM, "no memory for a time zone");
		return NULL;
	}
	if (!parse(z, data, len)) {
		err_set(err, RC_CORRUPT, "not a time zone file");
		zone_free(z);
		return NULL;
	}
	return z;
}

void zone_free(struct zone *z) {
	if (!z)
		return;
	free(z->at_s);
	free(z->offset_s);
	free(z);
}

/* --- loading --- */

/* Letters, digits and _ + - in parts between single slashes: no way out of the directory. */
static bool is_zone_name(const char *name) {
	if (!*name || strlen(name) >= ZONE_NAME_MAX)
		return false;
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_+-/";
	return name[strspn(name, allowed)] == '\0' && name[0] != '/' && !strstr(name, "//");
}

static ssize_t read_file(const char *path, unsigned char *data, size_t max) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	size_t len = 0;
	while (len < max) {
		ssize_t n = read(fd, data + len, max - len);
		if (n <= 0)
			return n < 0 ? -1 : (ssize_t)len;
		len += (size_t)n;
	}
	return -1;
}

struct zone *zone_load(const char *dir, const char *name, struct err *err) {
	if (!name || strcmp(name, "UTC") == 0) {
		struct zone *utc = calloc(1, sizeof(*utc));
		if (!utc)
			err_set(err, RC_NOMEM, "no memory for a time zone");
		return utc;
	}
	char path[256];
	auto_free unsigned char *data = malloc(FILE_MAX);
	if (!data) {
		err_set(err, RC_NOMEM, "no memory for a time zone");
		return NULL;
	}
	ssize_t len = -1;
	if (is_zone_name(name) &&
		snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		len = read_file(path, data, FILE_MAX);
	struct zone *z = len < 0 ? NULL : zone_parse(data, (size_t)len, err);
	if (!z)
		err_field(err, RC_INVALID, "tz",
			"must be the name of a time zone such as Europe/Berlin");
	return z;
}

/* --- using --- */

/* How many changes lie at or before the instant. */
static size_t changes_before(const struct zone *z, int64_t epoch_s) {
	size_t low = 0, high = z->count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (z->at_s[mid] <= epoch_s)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int64_t zone_offset_s(const struct zone *z, int64_t epoch_s) {
	size_t n = changes_before(z, epoch_s);
	if (n == z->count && z->has_rule)
		return zone_rule_offset_s(&z->rule, epoch_s);
	return n ? z->offset_s[n - 1] : z->first_s;
}

static int64_t floor_div(int64_t a, int64_t b) {
	return a / b - (a % b < 0);
}

static int64_t local_day(const struct zone *z, int64_t epoch_s) {
	return floor_div(epoch_s + zone_offset_s(z, epoch_s), DAY_S);
}

int64_t zone_next_day_ms(const struct zone *z, int64_t at_ms) {
	int64_t low = floor_div(at_ms, 1000), high = low + 2 * DAY_S;
	int64_t day = local_day(z, low);
	/* By search rather than from the offset: midnight itself may not exist on a day. */
	while (high - low > 1) {
		int64_t mid = low + (high - low) / 2;
		if (local_day(z, mid) > day)
			high = mid;
		else
			low = mid;
	}
	return high * 1000;
}
