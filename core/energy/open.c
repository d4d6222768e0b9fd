#include "core/energy/open.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)
#define TIME_MAX_MS (INT64_C(1) << 49)
#define MONO_MAX_NS (INT64_C(3500000000000) * NS_PER_MS)

/* --- series by id --- */

static size_t slot_of(const struct open_set *set, int64_t id) {
	return ((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (set->slot_count - 1);
}

bool open_set_init(struct open_set *set, size_t max_series) {
	*set = (struct open_set){.slot_count = 16, .max = max_series};
	set->newest_ms = INT64_MIN / 2;
	set->horizon_ms = set->closed_ms = INT64_MIN;
	while (set->slot_count < 2 * max_series)
		set->slot_count *= 2;
	set->slots = calloc(set->slot_count, sizeof(set->slots[0]));
	set->all = calloc(max_series, sizeof(set->all[0]));
	return set->slots && set->all;
}

static void free_series(struct open_set *set, struct open_series *s) {
	while (s && s->hours)
		open_drop(set, s, s->hours);
	free(s);
}

void open_set_release(struct open_set *set) {
	for (size_t i = 0; i < set->count; i++)
		free_series(set, set->all[i]);
	free(set->slots);
	free(set->all);
	*set = (struct open_set){0};
}

/* The place of the series, or the free one where it would be. */
static size_t find_slot(const struct open_set *set, int64_t id) {
	size_t i = slot_of(set, id);
	while (set->slots[i] && set->slots[i]->id != id)
		i = (i + 1) & (set->slot_count - 1);
	return i;
}

struct open_series *open_find(const struct open_set *set, int64_t id) {
	return set->slots[find_slot(set, id)];
}

size_t open_after(const struct open_set *set, int64_t after) {
	size_t low = 0, high = set->count;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (set->all[mid]->id <= after)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool open_register(struct open_set *set, int64_t id, const struct joining *how) {
	size_t i = find_slot(set, id);
	if (set->slots[i])
		return true;
	struct open_series *s = set->count < set->max ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return false;
	*s = (struct open_series){.id = id, .how = *how, .first_ms = NONE, .last_ms = NONE};
	set->slots[i] = s;
	size_t at = open_after(set, id);
	memmove(set->all + at + 1, set->all + at, (set->count - at) * sizeof(set->all[0]));
	set->all[at] = s;
	set->count++;
	return true;
}

void open_forget(struct open_set *set, int64_t id) {
	size_t i = find_slot(set, id);
	if (!set->slots[i])
		return;
	size_t at = open_after(set, id - 1);
	set->count--;
	memmove(set->all + at, set->all + at + 1, (set->count - at) * sizeof(set->all[0]));
	free_series(set, set->slots[i]);
	set->slots[i] = NULL;
	/* Those behind may have been put there because this place was taken. */
	for (i = (i + 1) & (set->slot_count - 1); set->slots[i];
		i = (i + 1) & (set->slot_count - 1)) {
		struct open_series *s = set->slots[i];
		set->slots[i] = NULL;
		set->slots[find_slot(set, s->id)] = s;
	}
}

/* --- hours --- */

static void put_first(struct open_series *s, struct open_hour **place) {
	struct open_hour *h = *place;
	*place = h->next;
	h->next = s->hours;
	s->hours = h;
}

static struct open_hour *find_hour(struct open_series *s, int64_t begin_ms) {
	for (struct open_hour **p = &s->hours; *p; p = &(*p)->next) {
		if ((*p)->begin_ms == begin_ms) {
			put_first(s, p);
			return s->hours;
		}
	}
	return NULL;
}

static struct open_hour *make_hour(struct open_set *set, struct open_series *s, int64_t begin_ms) {
	struct open_hour *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->begin_ms = begin_ms;
	h->opened_ms = set->newest_ms;
	h->first_tick = set->next_tick;
	h->newest = -1;
	h->in_order = true;
	buf_init(&h->bytes, CHUNK_MAX_BYTES);
	for (int i = 0; i < QUARTERS_OF_HOUR; i++)
		h->quarters[i].at_ms = begin_ms + i * QUARTER_MS;
	integrator_init(&h->in, &s->how, h->quarters, QUARTERS_OF_HOUR, begin_ms + HOUR_MS);
	h->next = s->hours;
	s->hours = h;
	return h;
}

void open_spill(struct open_set *set, struct open_hour *h) {
	set->bytes -= h->bytes.cap;
	buf_release(&h->bytes);
	h->spilt = h->count;
	h->tail_step_ms = 0;
}

void open_drop(struct open_set *set, struct open_series *s, struct open_hour *h) {
	struct open_hour **p = &s->hours;
	while (*p != h)
		p = &(*p)->next;
	*p = h->next;
	open_spill(set, h);
	free(h);
}

/* --- samples --- */

static bool is_earlier(const struct reading *a, const struct reading *b) {
	return a->boot != b->boot ? a->boot < b->boot : a->at_mono_ns < b->at_mono_ns;
}

static int64_t ahead_ms(const struct reading *r) {
	return r->at_mono_ns / NS_PER_MS - r->at_ms;
}

/* By how much the step from sample to sample changed, with three bits: the link, and that the clock
 * is another one, which follows; and by how much the value changed. */
static void pack(struct open_hour *h, const struct reading *r) {
	bool first = h->count == h->spilt;
	struct reading from = h->tail;
	if (first)
		from = (struct reading){.at_ms = h->begin_ms};
	int64_t step_ms = r->at_ms - from.at_ms;
	bool same_clock = !first && r->boot == from.boot && ahead_ms(r) == ahead_ms(&from);
	varint_put(&h->bytes, (step_ms - h->tail_step_ms) * 8 + (int)r->link * 2 + !same_clock);
	if (!same_clock) {
		varint_put(&h->bytes, r->boot);
		varint_put(&h->bytes, ahead_ms(r));
	}
	varint_put(&h->bytes, r->value_milli - from.value_milli);
	h->tail_step_ms = step_ms;
}

static bool append(struct open_set *set, struct open_hour *h, const struct reading *r) {
	size_t cap = h->bytes.cap, len = h->bytes.len;
	if (h->count >= CHUNK_MAX_SAMPLES)
		return false;
	int64_t tail_step_ms = h->tail_step_ms;
	pack(h, r);
	set->bytes += h->bytes.cap - cap;
	if (h->bytes.failed) {
		h->bytes.failed = RC_OK;
		h->bytes.len = len;
		h->tail_step_ms = tail_step_ms;
		return false;
	}
	if (h->count && is_earlier(r, &h->tail))
		h->in_order = false;
	integrator_add(&h->in, r);
	h->tail = *r;
	h->count++;
	return true;
}

static bool is_counter(const struct open_series *s) {
	return s->how.per_milli > 0;
}

/* One of a series on its way into hours. */
struct coming {
	struct reading r;
	int64_t number; /* in order; NONE: it came late */
	int64_t tick;   /* where it was or will be stored */
};

/* Whether it goes there already. Else what was put there before is the one before it, or not. */
static bool add_to(
	struct open_set *set, struct open_series *s, int64_t begin_ms, struct coming *c) {
	struct open_hour *h = find_hour(s, begin_ms);
	if (begin_ms < set->closed_ms || (h && c->number != NONE && h->newest == c->number))
		return true;
	if (!h)
		h = make_hour(set, s, begin_ms);
	if (!h)
		return false;
	if (c->number != NONE)
		c->r.link = h->newest == c->number - 1 ? LINK_NEXT : LINK_APART;
	if (!append(set, h, &c->r))
		return false;
	if (c->number != NONE)
		h->newest = c->number;
	if (c->tick < h->first_tick)
		h->first_tick = c->tick;
	return true;
}

/* Both ends go into all hours that what is between them lies in. */
static bool add_stretch(
	struct open_set *set, struct open_series *s, struct coming *a, struct coming *b) {
	struct reading next = b->r;
	int64_t from_ms, to_ms;
	next.link = LINK_NEXT;
	if (!joining_span(&s->how, &a->r, &next, &from_ms, &to_ms))
		return true;
	for (int64_t at_ms = floor_to(from_ms, HOUR_MS); at_ms < to_ms; at_ms += HOUR_MS) {
		if (!add_to(set, s, at_ms, a) || !add_to(set, s, at_ms, b))
			return false;
	}
	return true;
}

/* What comes late between two that the wall clock stepped between has a neighbour in a time of day
 * beyond its reach. */
static bool add_at_step(struct open_set *set, struct open_series *s, struct coming *c) {
	struct coming before = {s->before, NONE, set->next_tick};
	struct coming after = {s->after, NONE, set->next_tick};
	if (!s->stepped || is_earlier(&c->r, &s->before) || !is_earlier(&c->r, &s->after))
		return true;
	before.r.link = after.r.link = LINK_APART;
	if (!add_stretch(set, s, &before, c) || !add_stretch(set, s, c, &after))
		return false;
	if (readings_agree(&s->before, &c->r))
		s->before = c->r;
	else
		s->after = c->r;
	return true;
}

static bool add_in_order(struct open_set *set, struct open_series *s, struct coming *c) {
	struct coming last = {s->last, s->number, s->last_tick};
	bool agree = readings_agree(&s->last, &c->r);
	if (!agree) {
		s->stepped = true;
		s->before = s->last;
		s->after = c->r;
	}
	return (agree && !is_counter(s)) || add_stretch(set, s, &last, c);
}

/* How far from its hour a sample may matter. Of counters that is known only with the next one. */
static int64_t reach_ms(const struct open_series *s) {
	return is_counter(s) ? 0 : s->how.max_gap_ms + s->how.max_gap_ms / 100 + 20;
}

static bool is_acceptable(const struct open_set *set, const struct reading *r) {
	return r->at_ms >= set->horizon_ms && r->at_ms >= -TIME_MAX_MS && r->at_ms <= TIME_MAX_MS &&
		r->at_mono_ns >= -MONO_MAX_NS && r->at_mono_ns <= MONO_MAX_NS &&
		r->value_milli >= -CHUNK_VALUE_MAX && r->value_milli <= CHUNK_VALUE_MAX;
}

static void note_range(struct open_series *s, int64_t at_ms) {
	if (s->first_ms == NONE || at_ms < s->first_ms)
		s->first_ms = at_ms;
	if (s->last_ms == NONE || at_ms > s->last_ms)
		s->last_ms = at_ms;
}

bool open_add(struct open_set *set, struct open_series *s, const struct reading *r) {
	int64_t reach = reach_ms(s), own_ms = floor_to(r->at_ms, HOUR_MS);
	bool newer = !s->has_last || !is_earlier(r, &s->last);
	struct coming c = {*r, newer ? s->number + 1 : NONE, set->next_tick};
	/* Of a counter, what is between its neighbours is told already. */
	if (!is_acceptable(set, r) || (!newer && is_counter(s)))
		return false;
	c.r.link = newer ? LINK_NEXT : LINK_LATE;
	set->newest_ms = r->at_ms;
	if (s->has_last && !(newer ? add_in_order(set, s, &c) : add_at_step(set, s, &c)))
		return false;
	if (!add_to(set, s, own_ms, &c))
		return false;
	for (int64_t at_ms = floor_to(r->at_ms - reach, HOUR_MS); at_ms <= r->at_ms + reach;
		at_ms += HOUR_MS) {
		if (at_ms != own_ms && !add_to(set, s, at_ms, &c))
			return false;
	}
	if (newer) {
		s->last = *r;
		s->last_tick = set->next_tick;
		s->number++;
		s->has_last = true;
	}
	note_range(s, r->at_ms);
	return true;
}

bool open_read(const struct open_hour *h, struct readings *out) {
	struct column_reader in = column_reader(h->bytes.data, h->bytes.len);
	struct reading r = {.at_ms = h->begin_ms};
	int64_t step_ms = 0, change, boot = 0, ahead = 0, value;
	while (in.at < in.end) {
		if (!varint_get(&in, &change))
			return false;
		if (change & 1 && (!varint_get(&in, &boot) || !varint_get(&in, &ahead)))
			return false;
		if (!varint_get(&in, &value))
			return false;
		step_ms += change >> 3;
		r.link = change >> 1 & 3;
		r.boot = (int32_t)boot;
		r.at_ms += step_ms;
		r.at_mono_ns = (r.at_ms + ahead) * NS_PER_MS;
		r.value_milli += value;
		if (!readings_add(out, &r))
			return false;
	}
	return true;
}
