/* Numbers, times and sizes from text: what is taken is in range and reads back when written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX 256
#define NOW_MS INT64_C(1796064000000)

static void must(bool holds) {
	if (!holds)
		abort();
}

static void try_integer(const char *s) {
	char text[32];
	int64_t v = 1, again = 0;
	bool b = false;
	if (parse_i64(s, INT64_MIN, INT64_MAX, &v, "f", NULL) == RC_OK) {
		snprintf(text, sizeof(text), "%lld", (long long)v);
		must(parse_i64(text, v, v, &again, "f", NULL) == RC_OK && again == v);
	}
	if (parse_i64(s, -5, 5, &v, "f", NULL) == RC_OK)
		must(v >= -5 && v <= 5);
	(void)!parse_bool(s, &b, "f", NULL);
}

static void try_time(const char *s, int64_t now_ms) {
	char text[32];
	int64_t v = 0, again = 0;
	if (parse_time_ms(s, now_ms, &v, "f", NULL) != RC_OK)
		return;
	format_time(v, text);
	must(strlen(text) == 24);
	must(parse_time_ms(text, now_ms, &again, "f", NULL) == RC_OK && again == v);
}

static void try_units(const char *s) {
	int64_t v = 0;
	if (parse_duration_ms(s, &v, "f", NULL) == RC_OK)
		must(v >= 0);
	if (parse_bytes(s, 512, INT64_C(1) << 40, &v, "f", NULL) == RC_OK)
		must(v >= 512 && v <= INT64_C(1) << 40);
}

static void try_copies(const char *s, const uint8_t *data, size_t size) {
	char small[8], padded[21];
	bool fits = str_copy(small, sizeof(small), s);
	must(fits == (strlen(s) < sizeof(small)) && strlen(small) < sizeof(small));
	str_copy_padded(padded, sizeof(padded), (const char *)data, size);
	for (const char *p = padded; *p; p++)
		must(*p >= ' ' && *p <= '~');
}

static void try_any_time(const uint8_t *data, size_t size) {
	char text[32];
	int64_t ms;
	if (size < sizeof(ms))
		return;
	memcpy(&ms, data, sizeof(ms));
	format_time(ms, text);
	must(strlen(text) == 24);
	try_time((const char *)"now", ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char text[TEXT_MAX + 1];
	struct err err = {0};
	int64_t v;
	if (size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	try_integer(text);
	try_time(text, NOW_MS);
	try_time(text, INT64_MIN);
	try_units(text);
	try_copies(text, data, size);
	try_any_time(data, size);
	if (parse_time_ms(text, NOW_MS, &v, "field", &err) != RC_OK)
		must(err.rc == RC_INVALID && err.msg[0] && strcmp(err.field, "field") == 0);
	return 0;
}
