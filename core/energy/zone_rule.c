#include "core/energy/zone_rule.h"

#include <ctype.h>
#include <string.h>

#define DAY_S 86400

/* --- reading --- */

/* "CET" or "<+03>". */
static bool skip_name(const char **s) {
	const char *p = *s;
	if (*p == '<') {
		while (*p && *p != '>')
			p++;
		if (*p++ != '>')
			return false;
	} else {
		while (isalpha((unsigned char)*p))
			p++;
	}
	bool some = p - *s >= 3;
	*s = p;
	return some;
}

static bool take_number(const char **s, int min, int max, int *out) {
	int v = 0;
	const char *p = *s;
	for (; isdigit((unsigned char)*p) && p - *s < 4; p++)
		v = v * 10 + (*p - '0');
	if (p == *s || v < min || v > max)
		return false;
	*s = p;
	*out = v;
	return true;
}

/* "[+-]hh[:mm[:ss]]" in seconds. */
static bool take_time(const char **s, int64_t *out) {
	int sign = **s == '-' ? -1 : 1;
	if (**s == '-' || **s == '+')
		++*s;
	int hours = 0, minutes = 0, seconds = 0;
	if (!take_number(s, 0, 167, &hours))
		return false;
	if (**s == ':') {
		++*s;
		if (!take_number(s, 0, 59, &minutes))
			return false;
	}
	if (**s == ':') {
		++*s;
		if (!take_number(s, 0, 59, &seconds))
			return false;
	}
	*out = sign * (hours * INT64_C(3600) + minutes * 60 + seconds);
	return true;
}

static bool take_char(const char **s, char c) {
	if (**s != c)
		return false;
	++*s;
	return true;
}

/* ",M3.5.0/2", ",J60" or ",59". */
static bool take_date(const char **s, struct zone_date *d) {
	*d = (struct zone_date){.at_s = 2 * 3600};
	if (!take_char(s, ','))
		return false;
	bool ok;
	if (take_char(s, 'M')) {
		ok = take_number(s, 1, 12, &d->month) && take_char(s, '.') &&
			take_number(s, 1, 5, &d->week) && take_char(s, '.') &&
			take_number(s, 0, 6, &d->day);
	} else if (take_char(s, 'J')) {
		d->kind = ZONE_DATE_JULIAN;
		ok = take_number(s, 1, 365, &d->day);
	} else {
		d->kind = ZONE_DATE_DAY_OF_YEAR;
		ok = take_number(s, 0, 365, &d->day);
	}
	return ok && (!take_char(s, '/') || take_time(s, &d->at_s));
}

bool zone_rule_parse(const char *s, struct zone_rule *out) {
	*out = (struct zone_rule){0};
	int64_t west_s;
	if (!skip_name(&s) || !take_time(&s, &west_s))
		return false;
	out->standard_s = -west_s;
	if (!*s)
		return true;
	out->has_summer = true;
	out->summer_s = out->standard_s + 3600;
	if (!skip_name(&s))
		return false;
	if (*s != ',') {
		if (!take_time(&s, &west_s))
			return false;
		out->summer_s = -west_s;
	}
	return take_date(&s, &out->begin) && take_date(&s, &out->end) && !*s;
}

/* --- using --- */

static int64_t floor_div(int64_t a, int64_t b) {
	return a / b - (a % b < 0);
}

static bool is_leap(int64_t year) {
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1970-01-01 to the first of January. */
static int64_t year_begin_days(int64_t year) {
	int64_t y = year - 1;
	return 365 * (year - 1970) + floor_div(y, 4) - floor_div(y, 100) + floor_div(y, 400) - 477;
}

static int64_t year_of_day(int64_t days) {
	int64_t year = 1970 + floor_div(days, 366);
	while (year_begin_days(year + 1) <= days)
		year++;
	return year;
}

static int64_t month_begin(int64_t year, int month) {
	static const int16_t before[] = {
		0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
	return year_begin_days(year) + before[month - 1] + (month > 2 && is_leap(year));
}

/* Day number of "day d of week w of month m". */
static int64_t month_week_day(const struct zone_date *d, int64_t year) {
	int64_t first = month_begin(year, d->month);
	int64_t next_month =
		d->month == 12 ? year_begin_days(year + 1) : month_begin(year, d->month + 1);
	int64_t weekday = (first + 4) % 7; /* 1970-01-01 was a Thursday */
	int64_t day = first + (d->day - weekday + 7) % 7 + (d->week - 1) * 7;
	return day < next_month ? day : day - 7;
}

/* Local seconds since the epoch of the date in that year. */
static int64_t date_in_year(const struct zone_date *d, int64_t year) {
	int64_t day = 0;
	switch (d->kind) {
	case ZONE_DATE_MONTH_WEEK_DAY:
		day = month_week_day(d, year);
		break;
	case ZONE_DATE_JULIAN: /* never counts 29 February */
		day = year_begin_days(year) + d->day - 1 + (d->day >= 60 && is_leap(year));
		break;
	case ZONE_DATE_DAY_OF_YEAR:
		day = year_begin_days(year) + d->day;
		break;
	}
	return day * DAY_S + d->at_s;
}

int64_t zone_rule_offset_s(const struct zone_rule *r, int64_t epoch_s) {
	if (!r->has_summer)
		return r->standard_s;
	int64_t year = year_of_day(floor_div(epoch_s + r->standard_s, DAY_S));
	int64_t begin = date_in_year(&r->begin, year) - r->standard_s;
	int64_t end = date_in_year(&r->end, year) - r->summer_s;
	/* South of the equator summer spans the new year. */
	bool summer =
		begin < end ? epoch_s >= begin && epoch_s < end : epoch_s >= begin || epoch_s < end;
	return summer ? r->summer_s : r->standard_s;
}
