/*
 * A BMC that answers whatever is asked with what the input says, in turn: the documents stand in it
 * one after the other, each after a byte of what is done with it. However it answers, the walk
 * comes to an end, and what it says makes sense.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/bmc/foreign_json.h"
#include "base/compiler.h"
#include "core/bmc/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_REQUESTS 400 /* of one reading: far more than a walk may want */
#define READINGS 4
#define WATTS_MAX_MW INT64_C(20000000000)

struct answers {
	const uint8_t *p, *end;
};

/* The next document, or NULL; *kind is its byte. */
static json_t *next_answer(struct answers *a, uint8_t *kind) {
	struct foreign_json json = {0};
	*kind = 0;
	if (a->p == a->end)
		return NULL;
	*kind = *a->p++;
	const uint8_t *cut = memchr(a->p, '\n', (size_t)(a->end - a->p));
	size_t len = (size_t)((cut ? cut : a->end) - a->p);
	enum rc rc = foreign_json_parse((const char *)a->p, len, &json, NULL);
	a->p += len + (cut != NULL);
	if (!rc)
		return json.doc;
	json_decref(json.doc);
	return NULL;
}

static int status_of(uint8_t kind) {
	static const int statuses[] = {404, 403, 401, 500};
	return statuses[kind % 4];
}

static void check(bool holds) {
	if (!holds)
		abort();
}

static bool is_figure(int64_t mw) {
	return mw == NONE || (mw >= 0 && mw <= WATTS_MAX_MW);
}

static void check_reading(const struct bmc_walk *w) {
	struct bmc_extras e;
	bmc_walk_extras(w, &e);
	check(w->answered && is_figure(w->reading.power_mw));
	check(w->reading.reason && w->reading.source && w->reading.quality < QUALITY_COUNT_);
	check(e.limit_mw != 0 && is_figure(e.limit_mw) && is_figure(e.limit_max_mw));
	check(e.energy_counter_mj == NONE || e.energy_counter_mj > 0);
	check(e.supply_count <= HOST_SUPPLY_MAX);
	for (unsigned i = 0; i < e.supply_count; i++) {
		check(e.supplies[i].name[0] && is_figure(e.supplies[i].input_mw));
		check(memchr(e.supplies[i].state, 0, sizeof(e.supplies[i].state)) != NULL);
	}
}

static void read_once(struct bmc_walk *w, struct answers *a) {
	unsigned requests = 0;
	while (w->next[0]) {
		uint8_t kind;
		json_t *doc = next_answer(a, &kind);
		check(++requests < MAX_REQUESTS && w->next[0] == '/');
		bmc_walk_knows_next(w);
		bmc_walk_feed(w, doc ? 200 : status_of(kind), doc);
		json_decref(doc);
	}
	check_reading(w);
}

static void log_in(const json_t *root, const uint8_t *data, size_t size) {
	static struct bmc_session s;
	char body[256];
	size_t len = size < sizeof(body) - 1 ? size : sizeof(body) - 1;
	s = (struct bmc_session){0};
	memcpy(body, data, len);
	body[len] = '\0';
	session_learn(&s, root);
	for (unsigned i = 0; i < 5 && session_wants_login(&s, i); i++) {
		const struct session_answer a = {.status = 200 + (len ? data[0] : 0),
			.token = "t",
			.location = body,
			.body = body};
		check(session_collection(&s)[0] == '/');
		if (session_take_login(&s, &a, i))
			break;
	}
	session_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct bmc_walk w;
	struct answers a = {data, data + size};
	uint8_t kind;
	json_t *root = next_answer(&a, &kind);
	static const char *const vendors[] = {"auto", "dell", "hpe", "fujitsu", "inspur"};
	log_in(root, data, size);
	bmc_walk_discover(&w, vendors[kind % array_len(vendors)], root);
	json_decref(root);
	read_once(&w, &a);
	for (unsigned i = 0; i < READINGS && w.discovered; i++) {
		bmc_walk_begin(&w, (kind >> i) & 1);
		read_once(&w, &a);
	}
	return 0;
}
