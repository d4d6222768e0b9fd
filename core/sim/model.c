#include "core/sim/model.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/asset.h"
#include "base/parse.h"
#include "core/sim.h"

/* The first is the default. */
static const char *const builtin_names[] = {"d5-p5336-61.44tb", "d7-ps1010-1.92tb"};

/* --- fields --- */

enum kind { NUMBER, NUMBER_OR_NULL, WHOLE, BOOL, TEXT, OBJECT, STATES };

struct field {
	const char *key;
	enum kind kind;
	size_t offset;              /* in the struct that the table is about */
	double min, max;            /* of numbers */
	size_t size;                /* of texts, NUL included */
	const struct field *fields; /* of objects; tables end with an empty key */
};

#define AT(type, member) .offset = offsetof(struct type, member)
#define RANGE(low, high) .min = (low), .max = (high)
#define TEXT_AT(type, member) AT(type, member), .size = sizeof(((struct type *)0)->member)

static const struct field identity_fields[] = {
	{"model", TEXT, TEXT_AT(sim_identity, model)},
	{"firmware", TEXT, TEXT_AT(sim_identity, firmware)},
	{"vendor_id", WHOLE, AT(sim_identity, vendor_id), RANGE(0, 65535)},
	{0},
};

static const struct field service_fields[] = {
	{"bytes_per_s", NUMBER, AT(sim_service, bytes_per_s), RANGE(1e6, 1e12)},
	{"iops", NUMBER, AT(sim_service, iops), RANGE(1, 1e9)},
	{"latency_us", NUMBER, AT(sim_service, latency_us), RANGE(0, 1e6)},
	{"j_per_gb", NUMBER, AT(sim_service, j_per_gb), RANGE(0, 1e4)},
	{0},
};

static const struct field state_fields[] = {
	{"max_w", NUMBER, AT(sim_state, max_w), RANGE(0.01, 600)},
	{"idle_w", NUMBER, AT(sim_state, idle_w), RANGE(0, 600)},
	{"active_w", NUMBER_OR_NULL, AT(sim_state, active_w), RANGE(0, 600)},
	{"entry_latency_us", WHOLE, AT(sim_state, entry_latency_us), RANGE(0, 10e6)},
	{"exit_latency_us", WHOLE, AT(sim_state, exit_latency_us), RANGE(0, 10e6)},
	{"read", OBJECT, AT(sim_state, service[SIM_READ]), .fields = service_fields},
	{"write", OBJECT, AT(sim_state, service[SIM_WRITE]), .fields = service_fields},
	{0},
};

static const struct field thermal_fields[] = {
	{"ambient_c", NUMBER, AT(sim_thermal, ambient_c), RANGE(-40, 80)},
	{"c_per_w", NUMBER, AT(sim_thermal, c_per_w), RANGE(0, 20)},
	{"time_constant_s", NUMBER, AT(sim_thermal, time_constant_s), RANGE(0.001, 86400)},
	{"warning_c", WHOLE, AT(sim_thermal, warning_c), RANGE(1, 200)},
	{"critical_c", WHOLE, AT(sim_thermal, critical_c), RANGE(1, 200)},
	{0},
};

static const struct field meter_fields[] = {
	{"quantum_w", NUMBER, AT(sim_meter_model, quantum_w), RANGE(0, 1000)},
	{"lag_s", NUMBER, AT(sim_meter_model, lag_s), RANGE(0, 600)},
	{"noise_w", NUMBER, AT(sim_meter_model, noise_w), RANGE(0, 1000)},
	{"period_ms", WHOLE, AT(sim_meter_model, period_ms), RANGE(100, 60000)},
	{0},
};

static const struct field host_fields[] = {
	{"base_w", NUMBER, AT(sim_host_model, base_w), RANGE(0, 1e5)},
	{"switch_bytes_per_s", NUMBER_OR_NULL, AT(sim_host_model, switch_bytes_per_s),
		RANGE(1e6, 1e13)},
	{"meter", OBJECT, AT(sim_host_model, meter), .fields = meter_fields},
	{0},
};

static const struct field model_fields[] = {
	{"name", TEXT, TEXT_AT(sim_model, name)},
	{"source", TEXT, TEXT_AT(sim_model, source)},
	{"identity", OBJECT, AT(sim_model, identity), .fields = identity_fields},
	{"capacity_bytes", WHOLE, AT(sim_model, capacity_bytes), RANGE(1e6, 1e15)},
	{"lba_bytes", WHOLE, AT(sim_model, lba_bytes), RANGE(512, 4096)},
	{"scale", WHOLE, AT(sim_model, scale), RANGE(1, 1e6)},
	{"drive_meter", BOOL, AT(sim_model, drive_meter)},
	{"states", STATES, AT(sim_model, states), .fields = state_fields},
	{"thermal", OBJECT, AT(sim_model, thermal), .fields = thermal_fields},
	{"host", OBJECT, AT(sim_model, host), .fields = host_fields},
	{0},
};

/* --- reading --- */

/* Where in the document we are, for errors. */
struct reader {
	char at[96];
	struct err *err;
};

/* Goes down to a member; returns what leave() needs. */
static size_t enter(struct reader *r, const char *key) {
	const size_t before = strlen(r->at);
	str_copy(r->at + before, sizeof(r->at) - before, "/");
	str_copy(r->at + strlen(r->at), sizeof(r->at) - strlen(r->at), key);
	return before;
}

static void leave(struct reader *r, size_t before) {
	r->at[before] = '\0';
}

static enum rc read_object(
	struct reader *r, const json_t *json, const struct field *fields, void *into);

static enum rc read_text(struct reader *r, const json_t *v, const struct field *f, void *at) {
	if (!json_is_string(v) || !str_copy(at, f->size, json_string_value(v)))
		return err_field(r->err, RC_INVALID, r->at, "must be a text of at most %zu bytes",
			f->size - 1);
	return RC_OK;
}

static enum rc read_number(struct reader *r, const json_t *v, const struct field *f, double *at) {
	if (f->kind == NUMBER_OR_NULL && json_is_null(v)) {
		*at = NAN;
		return RC_OK;
	}
	const double d = json_number_value(v);
	if (!json_is_number(v) || d < f->min || d > f->max)
		return err_field(r->err, RC_INVALID, r->at, "must be a number from %g to %g",
			f->min, f->max);
	if (f->kind == WHOLE && d != floor(d))
		return err_field(r->err, RC_INVALID, r->at, "must be a whole number");
	*at = d;
	return RC_OK;
}

static enum rc read_bool(struct reader *r, const json_t *v, bool *at) {
	if (!json_is_boolean(v))
		return err_field(r->err, RC_INVALID, r->at, "must be true or false");
	*at = json_is_true(v);
	return RC_OK;
}

static enum rc read_states(struct reader *r, const json_t *v, struct sim_state *states) {
	const size_t n = json_array_size(v);
	if (n < 1 || n > SIM_MODEL_MAX_STATES)
		return err_field(r->err, RC_INVALID, r->at,
			"must be a list of 1 to %d power states", SIM_MODEL_MAX_STATES);
	enum rc rc = RC_OK;
	for (size_t i = 0; i < n && !rc; i++) {
		const char number[] = {(char)('0' + i), '\0'};
		const size_t before = enter(r, number);
		rc = read_object(r, json_array_get(v, i), state_fields, &states[i]);
		leave(r, before);
	}
	return rc;
}

static enum rc read_field(struct reader *r, const json_t *v, const struct field *f, void *at) {
	if (!v)
		return err_field(r->err, RC_INVALID, r->at, "is missing");
	switch (f->kind) {
	case TEXT:
		return read_text(r, v, f, at);
	case BOOL:
		return read_bool(r, v, at);
	case OBJECT:
		return read_object(r, v, f->fields, at);
	case STATES:
		return read_states(r, v, at);
	default:
		return read_number(r, v, f, at);
	}
}

static bool is_known(const struct field *fields, const char *key) {
	for (const struct field *f = fields; f->key; f++)
		if (strcmp(f->key, key) == 0)
			return true;
	return false;
}

static enum rc refuse_unknown(struct reader *r, const json_t *json, const struct field *fields) {
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)json, key, v) {
		if (is_known(fields, key))
			continue;
		enter(r, key);
		return err_field(r->err, RC_INVALID, r->at, "no such field in a drive model");
	}
	return RC_OK;
}

static enum rc read_object(
	struct reader *r, const json_t *json, const struct field *fields, void *into) {
	if (!json_is_object(json))
		return err_field(r->err, RC_INVALID, r->at, "must be an object");
	enum rc rc = RC_OK;
	for (const struct field *f = fields; f->key && !rc; f++) {
		const size_t before = enter(r, f->key);
		rc = read_field(r, json_object_get(json, f->key), f, (char *)into + f->offset);
		leave(r, before);
	}
	return rc ? rc : refuse_unknown(r, json, fields);
}

/* --- whole models --- */

static enum rc check(const struct sim_model *m, struct err *err) {
	if (fmod(m->lba_bytes, 512) != 0)
		return err_field(err, RC_INVALID, "/lba_bytes", "must be a multiple of 512");
	if (fmod(m->capacity_bytes, m->lba_bytes) != 0)
		return err_field(
			err, RC_INVALID, "/capacity_bytes", "must be a multiple of lba_bytes");
	for (unsigned i = 1; i < m->state_count; i++) {
		if (m->states[i].max_w > m->states[i - 1].max_w)
			return err_field(err, RC_INVALID, "/states",
				"max_w of state %u exceeds that of the state before", i);
	}
	return RC_OK;
}

enum rc sim_model_parse(const char *json, size_t len, struct sim_model *out, struct err *err) {
	json_error_t wrong;
	json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &wrong);
	if (!root)
		return err_set(err, RC_INVALID, "not JSON: line %d: %s", wrong.line, wrong.text);
	memset(out, 0, sizeof(*out));
	struct reader r = {.err = err};
	enum rc rc = read_object(&r, root, model_fields, out);
	out->state_count = (unsigned)json_array_size(json_object_get(root, "states"));
	json_decref(root);
	return rc ? rc : check(out, err);
}

const char *sim_model_name(unsigned index) {
	return index < array_len(builtin_names) ? builtin_names[index] : NULL;
}

static const struct asset *find_asset(const char *name) {
	char path[128];
	snprintf(path, sizeof(path), "core/sim/models/%s.json", name);
	for (const struct asset *a = asset_table; a->path; a++)
		if (strcmp(a->path, path) == 0)
			return a;
	return NULL;
}

enum rc sim_model_builtin(const char *name, struct sim_model *out, struct err *err) {
	const struct asset *a = find_asset(*name ? name : builtin_names[0]);
	if (!a)
		return err_set(err, RC_NOT_FOUND, "no drive model %s; there are %s and %s", name,
			builtin_names[0], builtin_names[1]);
	return sim_model_parse((const char *)a->data, *a->len, out, err);
}

enum rc sim_model_file(const char *path, struct sim_model *out, struct err *err) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, path);
	auto_free char *text = malloc(SIM_MODEL_MAX_BYTES + 1);
	if (!text)
		return err_set(err, RC_NOMEM, "no memory for a drive model");
	size_t len = 0;
	ssize_t n;
	while ((n = read(fd, text + len, SIM_MODEL_MAX_BYTES + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return err_errno(err, errno, path);
	if (len > SIM_MODEL_MAX_BYTES)
		return err_set(
			err, RC_TOO_LARGE, "%s is larger than %d bytes", path, SIM_MODEL_MAX_BYTES);
	return sim_model_parse(text, len, out, err);
}

/* --- views --- */

/* How many states are better, that is, larger by value. */
static int8_t rank(const struct sim_model *m, unsigned state,
	double (*value)(const struct sim_state *s, enum sim_direction d), enum sim_direction d) {
	int8_t better = 0;
	for (unsigned i = 0; i < m->state_count; i++)
		better = (int8_t)(better + (value(&m->states[i], d) > value(&m->states[state], d)));
	return better;
}

static double throughput(const struct sim_state *s, enum sim_direction d) {
	return s->service[d].bytes_per_s;
}

static double promptness(const struct sim_state *s, enum sim_direction d) {
	return -s->service[d].latency_us;
}

static int64_t micro(double w) {
	return isnan(w) ? NONE : llround(w * 1e6);
}

static int64_t latency(double us) {
	return us > 0 ? llround(us) : NONE;
}

void sim_model_power_table(const struct sim_model *m, struct power_table *out) {
	memset(out, 0, sizeof(*out));
	out->count = (uint8_t)m->state_count;
	for (unsigned i = 0; i < m->state_count; i++) {
		const struct sim_state *s = &m->states[i];
		out->states[i] = (struct power_state){
			.state = (uint8_t)i,
			.operational = true,
			.active_workload = (uint8_t)!isnan(s->active_w),
			.relative_read_throughput = rank(m, i, throughput, SIM_READ),
			.relative_read_latency = rank(m, i, promptness, SIM_READ),
			.relative_write_throughput = rank(m, i, throughput, SIM_WRITE),
			.relative_write_latency = rank(m, i, promptness, SIM_WRITE),
			.max_uw = micro(s->max_w),
			.idle_uw = micro(s->idle_w),
			.active_uw = micro(s->active_w),
			.entry_latency_us = latency(s->entry_latency_us),
			.exit_latency_us = latency(s->exit_latency_us),
		};
	}
}

double sim_model_system_w(const struct sim_model *m, unsigned drives, unsigned state,
	double read_bytes_per_s, double write_bytes_per_s) {
	const struct sim_state *s = &m->states[state];
	return m->host.base_w + drives * s->idle_w +
		read_bytes_per_s / 1e9 * s->service[SIM_READ].j_per_gb +
		write_bytes_per_s / 1e9 * s->service[SIM_WRITE].j_per_gb;
}
