/*
 * The rule at a zone file's end, for all times after its last listed change: a POSIX TZ text such
 * as "CET-1CEST,M3.5.0,M10.5.0/3". Pure.
 */
#ifndef DRIVEWATT_CORE_ENERGY_ZONE_RULE_H
#define DRIVEWATT_CORE_ENERGY_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum zone_date_kind { ZONE_DATE_MONTH_WEEK_DAY, ZONE_DATE_JULIAN, ZONE_DATE_DAY_OF_YEAR };

struct zone_date {
	enum zone_date_kind kind;
	int month, week, day; /* M: 1–12, 1–5 (5 = last), 0–6; else day alone */
	int64_t at_s;         /* local seconds after midnight; may be negative or over a day */
};

struct zone_rule {
	int64_t standard_s, summer_s; /* east of UTC */
	bool has_summer;
	struct zone_date begin, end; /* of summer time */
};

/* False when the text is no such rule. */
bool zone_rule_parse(const char *text, struct zone_rule *out);
int64_t zone_rule_offset_s(const struct zone_rule *r, int64_t epoch_s);

#endif
