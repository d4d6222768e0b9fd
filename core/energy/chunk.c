#include "core/energy/chunk.h"

#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define MINUTES_FROM 20 /* samples a minute; with fewer, reading them costs the same */
#define NS_PER_MS INT64_C(1000000)
#define TIME_MAX_MS (INT64_C(1) << 50)
#define MONO_MAX_MS INT64_C(4000000000000) /* so that differences in ns fit */
#define GAP_MAX_MS (INT64_C(1) << 40)

/* --- readings --- */

static bool make_room(struct readings *rs, size_t count) {
	if (count > READINGS_MAX)
		return false;
	if (count <= rs->room)
		return true;
	size_t room = rs->room ? rs->room * 2 : 64;
	while (room < count)
		room *= 2;
	struct reading *all = realloc(rs->all, room * sizeof(*all));
	if (!all)
		return false;
	rs->all = all;
	rs->room = room;
	return true;
}

bool readings_add(struct readings *rs, const struct reading *r) {
	if (!make_room(rs, rs->count + 1))
		return false;
	rs->all[rs->count++] = *r;
	return true;
}

void readings_release(struct readings *rs) {
	free(rs->all);
	*rs = (struct readings){0};
}

/* Before the other, by when they were taken. */
static bool is_earlier(const struct reading *a, const struct reading *b) {
	return a->boot != b->boot ? a->boot < b->boot : a->at_mono_ns < b->at_mono_ns;
}

static bool is_same(const struct reading *a, const struct reading *b) {
	return a->at_ms == b->at_ms && a->at_mono_ns == b->at_mono_ns &&
		a->value_milli == b->value_milli && a->boot == b->boot;
}

static bool in_order(const struct reading *r, size_t n) {
	for (size_t i = 1; i < n; i++) {
		if (is_earlier(&r[i], &r[i - 1]))
			return false;
	}
	return true;
}

/* Stable, so that doubles of one instant keep their order; spare has room for n. */
static void sort(struct reading *r, size_t n, struct reading *spare) {
	if (in_order(r, n))
		return;
	size_t half = n / 2, a = 0, b = half;
	sort(r, half, spare);
	sort(r + half, n - half, spare);
	memcpy(spare, r, n * sizeof(*r));
	for (size_t i = 0; i < n; i++)
		r[i] = b == n || (a < half && !is_earlier(&spare[b], &spare[a])) ? spare[a++]
										 : spare[b++];
}

/* Whether it is among the readings of the same instant before it. The one that knows more of what
 * was before it is right. */
static bool is_double(struct readings *rs, const struct reading *r) {
	for (size_t i = rs->count; i-- > 0 && !is_earlier(&rs->all[i], r);) {
		if (!is_same(&rs->all[i], r))
			continue;
		if (r->link == LINK_NEXT || rs->all[i].link == LINK_APART)
			rs->all[i].link = r->link;
		return true;
	}
	return false;
}

static void drop_doubles(struct readings *rs) {
	size_t n = rs->count;
	rs->count = 0;
	for (size_t i = 0; i < n; i++) {
		struct reading r = rs->all[i];
		if (!is_double(rs, &r))
			rs->all[rs->count++] = r;
	}
}

/* What stands apart from the one before it does not when one came late between them. */
static void link_late(struct readings *rs) {
	bool late = false;
	for (size_t i = 0; i < rs->count; i++) {
		struct reading *r = &rs->all[i];
		bool itself = r->link == LINK_LATE;
		if (itself || (late && r->link == LINK_APART))
			r->link = LINK_NEXT;
		late = itself;
	}
}

static bool reaches(const struct joining *how, const struct reading *a, const struct reading *b,
	int64_t begin_ms) {
	int64_t from_ms, to_ms;
	return joining_span(how, a, b, &from_ms, &to_ms) && from_ms < begin_ms + HOUR_MS &&
		to_ms > begin_ms;
}

static bool is_within(const struct reading *r, int64_t begin_ms) {
	return r->at_ms >= begin_ms && r->at_ms < begin_ms + HOUR_MS;
}

static void drop_others(struct readings *rs, int64_t begin_ms, const struct joining *how) {
	size_t n = rs->count;
	bool reached = false; /* by the stretch before this one */
	bool apart = false;   /* others were dropped before this one */
	rs->count = 0;
	for (size_t i = 0; i < n; i++) {
		struct reading r = rs->all[i];
		const struct reading *next = i + 1 < n ? &rs->all[i + 1] : NULL;
		bool within = is_within(&r, begin_ms), reaching = false;
		/* Those within stay in any case. */
		if (next && !(within && is_within(next, begin_ms)))
			reaching = reaches(how, &r, next, begin_ms);
		bool wanted = within || reached || reaching;
		if (apart)
			r.link = LINK_APART;
		if (wanted)
			rs->all[rs->count++] = r;
		apart = !wanted;
		reached = reaching;
	}
}

bool chunk_settle(struct readings *rs, int64_t begin_ms, const struct joining *how) {
	if (!in_order(rs->all, rs->count)) {
		auto_free struct reading *spare = malloc(rs->count * sizeof(*spare));
		if (!spare)
			return false;
		sort(rs->all, rs->count, spare);
	}
	drop_doubles(rs);
	link_late(rs);
	drop_others(rs, begin_ms, how);
	return true;
}

/* --- minutes --- */

void chunk_minutes(const struct readings *rs, int64_t begin_ms, const struct joining *how,
	struct aggregates *out) {
	struct integral steps[MINUTES_OF_HOUR];
	struct integrator in;
	for (int i = 0; i < MINUTES_OF_HOUR; i++)
		steps[i].at_ms = begin_ms + i * MINUTE_MS;
	integrator_init(&in, how, steps, MINUTES_OF_HOUR, begin_ms + HOUR_MS);
	for (size_t i = 0; i < rs->count; i++)
		integrator_add(&in, &rs->all[i]);
	out->count = 0;
	for (int i = 0; i < MINUTES_OF_HOUR; i++) {
		struct aggregate a = aggregate_of(&steps[i]);
		a.key = i;
		if (!aggregate_is_empty(&a))
			aggregates_add(out, &a);
	}
}

static void put_minutes(struct buf *out, const struct readings *rs, const struct aggregates *m) {
	struct buf b;
	buf_init(&b, CHUNK_MAX_BYTES);
	if (m->count && rs->count >= m->count * MINUTES_FROM)
		aggregates_put(&b, m);
	varint_put(out, (int64_t)b.len);
	buf_add(out, b.data, b.len);
	if (b.failed)
		out->failed = b.failed;
	buf_release(&b);
}

/* --- samples --- */

static int64_t mono_ms(const struct reading *r) {
	return r->at_mono_ns / NS_PER_MS;
}

static bool same_clock(const struct reading *a, const struct reading *b) {
	return a->boot == b->boot && mono_ms(a) - a->at_ms == mono_ms(b) - b->at_ms;
}

/* The sample's index, its boot and how far the clocks are apart. */
static void put_clock(struct buf *out, size_t i, const struct reading *r) {
	varint_put(out, (int64_t)i);
	varint_put(out, r->boot);
	varint_put(out, mono_ms(r) - r->at_ms);
}

static void put_clocks(struct buf *out, const struct readings *rs) {
	int64_t changes = rs->count > 0;
	for (size_t i = 1; i < rs->count; i++)
		changes += !same_clock(&rs->all[i], &rs->all[i - 1]);
	varint_put(out, changes);
	for (size_t i = 0; i < rs->count; i++) {
		if (!i || !same_clock(&rs->all[i], &rs->all[i - 1]))
			put_clock(out, i, &rs->all[i]);
	}
}

/* But for the first one, of which it goes without saying. */
static void put_apart(struct buf *out, const struct readings *rs) {
	int64_t count = 0;
	for (size_t i = 1; i < rs->count; i++)
		count += rs->all[i].link == LINK_APART;
	varint_put(out, count);
	for (size_t i = 1; i < rs->count; i++) {
		if (rs->all[i].link == LINK_APART)
			varint_put(out, (int64_t)i);
	}
}

static void put_samples(struct buf *out, int64_t begin_ms, const struct readings *rs) {
	auto_free int64_t *column = malloc((rs->count + 1) * sizeof(*column));
	if (!column) {
		out->failed = RC_NOMEM;
		return;
	}
	for (size_t i = 0; i < rs->count; i++)
		column[i] = rs->all[i].at_ms - begin_ms;
	column_put(out, column, rs->count);
	for (size_t i = 0; i < rs->count; i++)
		column[i] = rs->all[i].value_milli;
	column_put(out, column, rs->count);
}

void chunk_put(struct buf *out, int64_t begin_ms, const struct joining *how,
	const struct readings *rs, const struct aggregates *minutes) {
	buf_addc(out, VERSION);
	varint_put(out, how->max_gap_ms);
	varint_put(out, (int64_t)rs->count);
	put_clocks(out, rs);
	put_apart(out, rs);
	put_minutes(out, rs, minutes);
	put_samples(out, begin_ms, rs);
}

/* --- reading --- */

/* Of the samples from index `from` on. */
struct clock {
	int64_t from, boot, ahead_ms;
};

static bool get_clock(struct column_reader *in, struct clock *c) {
	return varint_get(in, &c->from) && varint_get(in, &c->boot) && varint_get(in, &c->ahead_ms);
}

static bool skip_clocks(struct column_reader *in, struct column_reader *clocks) {
	int64_t changes;
	struct clock c;
	clocks->at = in->at;
	if (!varint_get(in, &changes) || changes < 0)
		return false;
	for (; changes > 0; changes--) {
		if (!get_clock(in, &c))
			return false;
	}
	clocks->end = in->at;
	return true;
}

static bool skip_apart(struct column_reader *in, struct column_reader *apart) {
	int64_t count, i;
	apart->at = in->at;
	if (!varint_get(in, &count) || count < 0)
		return false;
	for (; count > 0; count--) {
		if (!varint_get(in, &i))
			return false;
	}
	apart->end = in->at;
	return true;
}

static bool skip_minutes(struct column_reader *in, struct column_reader *minutes) {
	int64_t len;
	if (!varint_get(in, &len) || len < 0 || len > in->end - in->at)
		return false;
	*minutes = column_reader(in->at, (size_t)len);
	in->at += len;
	return true;
}

bool chunk_open(struct chunk *c, const void *bytes, size_t len, int64_t begin_ms,
	const struct joining *how) {
	struct column_reader in = column_reader(bytes, len);
	int64_t count;
	*c = (struct chunk){.begin_ms = begin_ms, .how = *how};
	if (!len || *in.at++ != VERSION || !varint_get(&in, &c->how.max_gap_ms) ||
		c->how.max_gap_ms < 0 || c->how.max_gap_ms > GAP_MAX_MS ||
		!varint_get(&in, &count) || count < 0 || count > CHUNK_MAX_SAMPLES ||
		!skip_clocks(&in, &c->clocks) || !skip_apart(&in, &c->apart) ||
		!skip_minutes(&in, &c->minutes))
		return false;
	c->count = (size_t)count;
	c->samples = in;
	return true;
}

bool chunk_read_minutes(const struct chunk *c, struct aggregates *out) {
	struct column_reader in = c->minutes;
	return aggregates_read(&in, AGGREGATE_ALL, MINUTES_OF_HOUR, MINUTES_OF_HOUR, out);
}

static bool is_plausible(const struct reading *r, int64_t ahead_ms) {
	return r->at_ms >= -TIME_MAX_MS && r->at_ms <= TIME_MAX_MS &&
		r->at_ms + ahead_ms >= -MONO_MAX_MS && r->at_ms + ahead_ms <= MONO_MAX_MS &&
		r->value_milli >= -CHUNK_VALUE_MAX && r->value_milli <= CHUNK_VALUE_MAX;
}

static bool place(struct reading *r, size_t n, const struct clock *c) {
	if (c->boot < 0 || c->boot > INT32_MAX || c->ahead_ms < -2 * TIME_MAX_MS ||
		c->ahead_ms > 2 * TIME_MAX_MS)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_plausible(&r[i], c->ahead_ms))
			return false;
		r[i].boot = (int32_t)c->boot;
		r[i].at_mono_ns = (r[i].at_ms + c->ahead_ms) * NS_PER_MS;
	}
	return true;
}

/* Each clock up to the next one. */
static bool place_all(const struct chunk *c, struct reading *r) {
	struct column_reader in = c->clocks;
	struct clock now = {0}, next;
	int64_t changes;
	size_t placed = 0;
	if (!varint_get(&in, &changes) || !get_clock(&in, &now) || now.from)
		return false;
	while (--changes >= 0) {
		next = (struct clock){.from = (int64_t)c->count};
		if (changes && !get_clock(&in, &next))
			return false;
		if (next.from <= now.from || next.from > (int64_t)c->count ||
			!place(r + placed, (size_t)(next.from - now.from), &now))
			return false;
		placed = (size_t)next.from;
		now = next;
	}
	return placed == c->count;
}

static bool set_apart(const struct chunk *c, struct reading *r) {
	struct column_reader in = c->apart;
	int64_t count, i;
	for (size_t k = 0; k < c->count; k++)
		r[k].link = k ? LINK_NEXT : LINK_APART;
	if (!varint_get(&in, &count))
		return false;
	for (; count > 0; count--) {
		if (!varint_get(&in, &i) || i < 0 || (uint64_t)i >= c->count)
			return false;
		r[i].link = LINK_APART;
	}
	return true;
}

static bool read_columns(const struct chunk *c, struct reading *r, int64_t *column) {
	struct column_reader in = c->samples;
	if (!column_get(&in, column, c->count))
		return false;
	for (size_t i = 0; i < c->count; i++)
		r[i].at_ms = (int64_t)((uint64_t)c->begin_ms + (uint64_t)column[i]);
	if (!column_get(&in, column, c->count))
		return false;
	for (size_t i = 0; i < c->count; i++)
		r[i].value_milli = column[i];
	return true;
}

bool chunk_read(const struct chunk *c, struct readings *out) {
	if (!c->count)
		return true;
	auto_free int64_t *column = malloc(c->count * sizeof(*column));
	if (!column || !make_room(out, out->count + c->count))
		return false;
	struct reading *r = out->all + out->count;
	if (!read_columns(c, r, column) || !place_all(c, r) || !set_apart(c, r))
		return false;
	out->count += c->count;
	return true;
}
