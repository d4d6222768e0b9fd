#include "base/parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MS_PER_DAY INT64_C(86400000)

/* --- numbers --- */

/* Digits at *s as a number times sign, 1 or -1; false when there is none or it overflows. */
static bool take_digits(const char **s, int sign, int64_t *out) {
	const char *p = *s;
	int64_t v = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, sign * (*p - '0'), &v))
			return false;
	}
	if (p == *s)
		return false;
	*s = p;
	*out = v;
	return true;
}

enum rc parse_i64(
	const char *s, int64_t min, int64_t max, int64_t *out, const char *field, struct err *err) {
	bool negative = *s == '-';
	const char *p = s + negative;
	int64_t v = 0;
	if (!take_digits(&p, negative ? -1 : 1, &v) || *p)
		return err_field(err, RC_INVALID, field, "not an integer: %.40s", s);
	if (v < min || v > max)
		return err_field(err, RC_INVALID, field, "must be between %lld and %lld, is %lld",
			(long long)min, (long long)max, (long long)v);
	*out = v;
	return RC_OK;
}

enum rc parse_bool(const char *s, bool *out, const char *field, struct err *err) {
	static const char *const words[][2] = {
		{"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
	for (size_t i = 0; i < array_len(words); i++) {
		for (int v = 0; v < 2; v++) {
			if (strcmp(s, words[i][v]) == 0) {
				*out = v;
				return RC_OK;
			}
		}
	}
	return err_field(err, RC_INVALID, field, "must be true or false, is %.40s", s);
}

struct unit {
	const char *suffix;
	int64_t factor;
};

static const struct unit *unit_find(const struct unit *units, size_t n, const char *suffix) {
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(units[i].suffix, suffix) == 0)
			return &units[i];
	}
	return NULL;
}

/* "<digits><unit>" → their product; false when it is something else or overflows. */
static bool scan_with_unit(const char *s, const struct unit *units, size_t n, int64_t *out) {
	int64_t v;
	if (!take_digits(&s, 1, &v))
		return false;
	const struct unit *u = unit_find(units, n, s);
	return u && !__builtin_mul_overflow(v, u->factor, out);
}

static bool scan_duration(const char *s, int64_t *out) {
	static const struct unit units[] = {
		{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", MS_PER_DAY}};
	return scan_with_unit(s, units, array_len(units), out);
}

enum rc parse_duration_ms(const char *s, int64_t *out, const char *field, struct err *err) {
	int64_t v;
	if (!scan_duration(s, &v))
		return err_field(
			err, RC_INVALID, field, "must be a duration such as 10s, 5m or 24h");
	*out = v;
	return RC_OK;
}

enum rc parse_bytes(
	const char *s, int64_t min, int64_t max, int64_t *out, const char *field, struct err *err) {
	static const struct unit units[] = {
		{"", 1},
		{"k", INT64_C(1) << 10},
		{"kb", INT64_C(1) << 10},
		{"kib", INT64_C(1) << 10},
		{"m", INT64_C(1) << 20},
		{"mb", INT64_C(1) << 20},
		{"mib", INT64_C(1) << 20},
		{"g", INT64_C(1) << 30},
		{"gb", INT64_C(1) << 30},
		{"gib", INT64_C(1) << 30},
		{"t", INT64_C(1) << 40},
		{"tb", INT64_C(1) << 40},
		{"tib", INT64_C(1) << 40},
	};
	int64_t v;
	if (!scan_with_unit(s, units, array_len(units), &v))
		return err_field(err, RC_INVALID, field, "must be a size such as 4k, 128KiB or 1M");
	if (v < min || v > max)
		return err_field(err, RC_INVALID, field, "must be between %lld and %lld bytes",
			(long long)min, (long long)max);
	*out = v;
	return RC_OK;
}

/* --- time --- */

/* Years 0000–9999 are all that RFC 3339 can say; what lies beyond is shown as the edge. */
#define TIME_FIRST_MS (-719528 * MS_PER_DAY)
#define TIME_LAST_MS (2932897 * MS_PER_DAY - 1)

struct date {
	int64_t year;
	unsigned month; /* 1–12 */
	unsigned day;   /* 1–31 */
};

/* Days since 1970-01-01 in the proleptic Gregorian calendar, and back. Years begin in March here,
 * so that the leap day is the last one; an era is 400 years, 146097 days. */
static int64_t date_to_days(struct date d) {
	int64_t year = d.year - (d.month <= 2);
	int64_t era = (year >= 0 ? year : year - 399) / 400;
	int64_t year_of_era = year - era * 400;
	int64_t month = d.month > 2 ? d.month - 3 : d.month + 9;
	int64_t day_of_year = (153 * month + 2) / 5 + d.day - 1;
	int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
	return era * 146097 + day_of_era - 719468;
}

static struct date date_from_days(int64_t days) {
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t day_of_era = days - era * 146097;
	int64_t year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month = (5 * day_of_year + 2) / 153;
	return (struct date){
		.year = year_of_era + era * 400 + (month >= 10),
		.month = (unsigned)(month < 10 ? month + 3 : month - 9),
		.day = (unsigned)(day_of_year - (153 * month + 2) / 5 + 1),
	};
}

/* Exactly width digits within [min, max], then the character after, if any is asked for. */
static bool take_field(
	const char **s, int width, int64_t min, int64_t max, char after, int64_t *out) {
	int64_t v = 0;
	for (int i = 0; i < width; i++, ++*s) {
		if (**s < '0' || **s > '9')
			return false;
		v = v * 10 + (**s - '0');
	}
	if (after && *(*s)++ != after)
		return false;
	*out = v;
	return v >= min && v <= max;
}

/* ".123456" → 123; nothing there is 0. */
static bool take_fraction_ms(const char **s, int64_t *out) {
	*out = 0;
	if (**s != '.')
		return true;
	++*s;
	int digits = 0;
	for (; isdigit((unsigned char)**s); ++*s, ++digits) {
		if (digits < 3)
			*out = *out * 10 + (**s - '0');
	}
	for (int i = digits; i < 3; i++)
		*out *= 10;
	return digits > 0;
}

static bool take_offset_ms(const char **s, int64_t *out) {
	*out = 0;
	char sign = *(*s)++;
	if (sign == 'Z' || sign == 'z')
		return true;
	int64_t hours, minutes;
	if ((sign != '+' && sign != '-') || !take_field(s, 2, 0, 23, ':', &hours) ||
		!take_field(s, 2, 0, 59, '\0', &minutes))
		return false;
	*out = (hours * 60 + minutes) * 60000 * (sign == '-' ? -1 : 1);
	return true;
}

static bool date_is_real(int64_t year, int64_t month, int64_t day) {
	static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return day <= days[month - 1] + (month == 2 && leap);
}

static bool scan_rfc3339(const char *s, int64_t *out) {
	int64_t year, month, day, hour, minute, second, fraction_ms, offset_ms;
	if (!take_field(&s, 4, 0, 9999, '-', &year) || !take_field(&s, 2, 1, 12, '-', &month) ||
		!take_field(&s, 2, 1, 31, '\0', &day) || !date_is_real(year, month, day))
		return false;
	if (*s != 'T' && *s != 't')
		return false;
	s++;
	/* A leap second counts as the first of the next minute. */
	if (!take_field(&s, 2, 0, 23, ':', &hour) || !take_field(&s, 2, 0, 59, ':', &minute) ||
		!take_field(&s, 2, 0, 60, '\0', &second) || !take_fraction_ms(&s, &fraction_ms) ||
		!take_offset_ms(&s, &offset_ms) || *s)
		return false;
	int64_t days = date_to_days((struct date){year, (unsigned)month, (unsigned)day});
	*out = days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + fraction_ms -
		offset_ms;
	return true;
}

enum rc parse_time_ms(
	const char *s, int64_t now_ms, int64_t *out, const char *field, struct err *err) {
	int64_t v = now_ms, ago;
	bool good = strcmp(s, "now") == 0;
	if (!good && s[0] == '-')
		good = scan_duration(s + 1, &ago) && !__builtin_sub_overflow(now_ms, ago, &v);
	else if (!good)
		good = scan_rfc3339(s, &v);
	if (!good || v < TIME_FIRST_MS || v > TIME_LAST_MS)
		return err_field(err, RC_INVALID, field,
			"must be a time such as 2026-11-30T18:58:00Z, or -24h, or now");
	*out = v;
	return RC_OK;
}

static char *put2(char *p, unsigned v, char after) {
	p[0] = (char)('0' + v / 10 % 10);
	p[1] = (char)('0' + v % 10);
	p[2] = after;
	return p + 3;
}

void format_time(int64_t epoch_ms, char out[32]) {
	if (epoch_ms < TIME_FIRST_MS)
		epoch_ms = TIME_FIRST_MS;
	if (epoch_ms > TIME_LAST_MS)
		epoch_ms = TIME_LAST_MS;
	int64_t days = (epoch_ms - (epoch_ms < 0) * (MS_PER_DAY - 1)) / MS_PER_DAY;
	unsigned ms = (unsigned)(epoch_ms - days * MS_PER_DAY);
	struct date d = date_from_days(days);
	char *p = out;
	p = put2(p, (unsigned)d.year / 100, '0') - 1;
	p = put2(p, (unsigned)d.year % 100, '-');
	p = put2(p, d.month, '-');
	p = put2(p, d.day, 'T');
	p = put2(p, ms / 3600000, ':');
	p = put2(p, ms / 60000 % 60, ':');
	p = put2(p, ms / 1000 % 60, '.');
	*p++ = (char)('0' + ms / 100 % 10);
	p = put2(p, ms % 100, 'Z');
	*p = '\0';
}

/* --- text --- */

bool str_copy(char *dst, size_t size, const char *src) {
	size_t len = strnlen(src, size);
	bool fits = len < size;
	if (!size)
		return false;
	if (!fits)
		len = size - 1;
	memcpy(dst, src, len);
	dst[len] = '\0';
	return fits;
}

void str_copy_padded(char *dst, size_t size, const char *src, size_t width) {
	const char *end = src + strnlen(src, width);
	while (src < end && *src == ' ')
		src++;
	while (end > src && end[-1] == ' ')
		end--;
	size_t len = 0;
	for (; src < end && len + 1 < size; src++)
		dst[len++] = *src >= ' ' && *src <= '~' ? *src : '?';
	if (size)
		dst[len] = '\0';
}
