#include "core/bench/eta.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "model/quality.h"

#define LINE_MAX_BYTES 512

static const struct {
	const char *name;
	double factor;
} units[] = {
	{"B/s", 1},
	{"KiB/s", 1024.0},
	{"MiB/s", 1024.0 * 1024},
	{"GiB/s", 1024.0 * 1024 * 1024},
	{"TiB/s", 1024.0 * 1024 * 1024 * 1024},
	{"kB/s", 1e3},
	{"MB/s", 1e6},
	{"GB/s", 1e9},
	{"TB/s", 1e12},
};

/* "31.2MiB/s" → bytes a second; IOPS and other words are no rate. */
static int64_t parse_rate(const char *s) {
	char *unit;
	double v = strtod(s, &unit);
	if (unit == s || !(v >= 0) || v > 1e9)
		return NONE;
	for (size_t i = 0; i < array_len(units); i++) {
		if (strncmp(unit, units[i].name, strlen(units[i].name)) == 0)
			return (int64_t)(v * units[i].factor);
	}
	return NONE;
}

/* One bracket "r=1.5MiB/s,w=3KiB/s"; a later bracket without rates changes nothing. */
static void take_rates(const char *bracket, struct eta *out) {
	const struct {
		const char *key;
		int64_t *rate;
	} fields[] = {{"r=", &out->read_bytes_per_s}, {"w=", &out->write_bytes_per_s}};
	for (size_t i = 0; i < array_len(fields); i++) {
		const char *at = strstr(bracket, fields[i].key);
		if (at && *fields[i].rate == NONE)
			*fields[i].rate = parse_rate(at + 2);
	}
}

static void take_percent(const char *bracket, struct eta *out) {
	char *end;
	double percent = strtod(bracket, &end);
	if (end != bracket && strcmp(end, "%") == 0 && percent >= 0 && percent <= 100)
		out->progress = percent / 100;
}

static bool parse_line(char *line, struct eta *out) {
	*out = (struct eta){NAN, NONE, NONE};
	if (strncmp(line, "Jobs:", 5) != 0)
		return false;
	char *open = line;
	while ((open = strchr(open, '['))) {
		char *close = strchr(open, ']');
		if (!close)
			break;
		*close = '\0';
		take_percent(open + 1, out);
		take_rates(open + 1, out);
		open = close + 1;
	}
	return isfinite(out->progress) || out->read_bytes_per_s != NONE ||
		out->write_bytes_per_s != NONE;
}

static bool ends_line(char c) {
	return c == '\r' || c == '\n';
}

bool eta_parse(const char *text, size_t len, struct eta *out) {
	while (len > 0) {
		size_t start = len;
		while (start > 0 && !ends_line(text[start - 1]))
			start--;
		char line[LINE_MAX_BYTES];
		size_t n = len - start;
		if (n > 0 && n < sizeof(line)) {
			memcpy(line, text + start, n);
			line[n] = '\0';
			if (parse_line(line, out))
				return true;
		}
		len = start > 0 ? start - 1 : 0;
	}
	return false;
}
