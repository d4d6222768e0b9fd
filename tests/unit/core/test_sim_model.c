/* Drive models as data: the built-in ones, and what is wrong with a user's own. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/sim.h"
#include "core/sim/model.h"

static void every_builtin_is_valid(void **state) {
	(void)state;
	unsigned count = 0;
	for (; sim_model_name(count); count++) {
		struct sim_model m;
		struct err err = {0};
		assert_int_equal(sim_model_builtin(sim_model_name(count), &m, &err), RC_OK);
		assert_string_equal(m.name, sim_model_name(count));
		assert_true(strlen(m.source) > 100);
	}
	assert_true(count >= 2);
}

static void the_first_is_the_default(void **state) {
	(void)state;
	struct sim_model m;
	struct err err;
	assert_int_equal(sim_model_builtin("", &m, &err), RC_OK);
	assert_string_equal(m.name, "d5-p5336-61.44tb");
	assert_int_equal(m.state_count, 3);
	assert_true(m.states[0].max_w == 25 && m.states[1].max_w == 15 && m.states[2].max_w == 10);
}

static void an_unknown_name_is_told_the_known_ones(void **state) {
	(void)state;
	struct sim_model m;
	struct err err;
	assert_int_equal(sim_model_builtin("d9", &m, &err), RC_NOT_FOUND);
	assert_non_null(strstr(err.msg, "d5-p5336-61.44tb"));
	assert_non_null(strstr(err.msg, "d7-ps1010-1.92tb"));
}

/* --- broken models --- */

static json_t *builtin_json(void) {
	json_t *root = json_load_file("core/sim/models/d5-p5336-61.44tb.json", 0, NULL);
	assert_non_null(root);
	return root;
}

/* "/states/1/read/iops" → the parent's value and the last key. */
static json_t *walk(json_t *root, const char *pointer, char *last, size_t size) {
	json_t *at = root;
	const char *p = pointer + 1;
	for (const char *slash; (slash = strchr(p, '/')); p = slash + 1) {
		snprintf(last, size, "%.*s", (int)(slash - p), p);
		at = json_is_array(at) ? json_array_get(at, (size_t)(last[0] - '0'))
				       : json_object_get(at, last);
		assert_non_null(at);
	}
	snprintf(last, size, "%s", p);
	return at;
}

static enum rc parse_changed(
	const char *pointer, const char *value, struct sim_model *m, struct err *err) {
	char key[64];
	json_t *root = builtin_json();
	json_t *parent = walk(root, pointer, key, sizeof(key));
	if (value)
		json_object_set_new(parent, key, json_loads(value, JSON_DECODE_ANY, NULL));
	else
		assert_int_equal(json_object_del(parent, key), 0);
	char *text = json_dumps(root, 0);
	enum rc rc = sim_model_parse(text, strlen(text), m, err);
	free(text);
	json_decref(root);
	return rc;
}

struct broken {
	const char *pointer;
	const char *value; /* JSON; NULL: the field is taken out */
	const char *says;
};

static const struct broken broken[] = {
	{"/name", NULL, "is missing"},
	{"/name", "5", "must be a text"},
	{"/identity/firmware", "\"123456789\"", "at most 8 bytes"},
	{"/identity/vendor_id", "70000", "from 0 to 65535"},
	{"/identity/vendor_id", "1.5", "whole number"},
	{"/capacity_bytes", "\"big\"", "must be a number"},
	{"/capacity_bytes", "61440000000001", "multiple of lba_bytes"},
	{"/lba_bytes", "520", "multiple of 512"},
	{"/scale", "0", "from 1"},
	{"/drive_meter", "1", "true or false"},
	{"/states", "[]", "list of 1 to 8"},
	{"/states", "{}", "list of 1 to 8"},
	{"/states/1/max_w", "-1", "must be a number"},
	{"/states/1/max_w", NULL, "is missing"},
	{"/states/2/read/iops", "0", "must be a number"},
	{"/states/2/write", "7", "must be an object"},
	{"/states/0/write/j_per_gb", "null", "must be a number"},
	{"/thermal/time_constant_s", "0", "must be a number"},
	{"/host/switch_bytes_per_s", "\"none\"", "must be a number"},
	{"/host/meter/period_ms", "10", "from 100"},
	{"/host/meter/colour", "1", "no such field"},
	{"/surprise", "1", "no such field"},
};

static void errors_name_the_field(void **state) {
	(void)state;
	for (size_t i = 0; i < array_len(broken); i++) {
		struct sim_model m;
		struct err err = {0};
		print_message("%s = %s\n", broken[i].pointer,
			broken[i].value ? broken[i].value : "(out)");
		assert_int_equal(
			parse_changed(broken[i].pointer, broken[i].value, &m, &err), RC_INVALID);
		assert_string_equal(err.field, broken[i].pointer);
		assert_non_null(strstr(err.msg, broken[i].says));
	}
}

static void states_descend(void **state) {
	(void)state;
	struct sim_model m;
	struct err err;
	assert_int_equal(parse_changed("/states/1/max_w", "26", &m, &err), RC_INVALID);
	assert_string_equal(err.field, "/states");
}

static void optional_figures_may_be_null(void **state) {
	(void)state;
	struct sim_model m;
	struct power_table t;
	struct err err;
	assert_int_equal(parse_changed("/host/switch_bytes_per_s", "null", &m, &err), RC_OK);
	assert_true(isnan(m.host.switch_bytes_per_s));
	assert_int_equal(parse_changed("/states/0/active_w", "null", &m, &err), RC_OK);
	sim_model_power_table(&m, &t);
	assert_true(t.states[0].active_uw == NONE);
	assert_int_equal(t.states[0].active_workload, 0);
	assert_int_equal(t.states[1].active_workload, 1);
}

static void what_is_not_json_is_refused(void **state) {
	(void)state;
	static const char *const texts[] = {"", "{", "[]", "{\"name\": \"a\", \"name\": \"b\"}"};
	for (size_t i = 0; i < array_len(texts); i++) {
		struct sim_model m;
		struct err err;
		assert_int_equal(sim_model_parse(texts[i], strlen(texts[i]), &m, &err), RC_INVALID);
	}
}

static void files_have_the_same_format(void **state) {
	(void)state;
	struct sim_model m;
	struct err err;
	assert_int_equal(sim_model_file("core/sim/models/d7-ps1010-1.92tb.json", &m, &err), RC_OK);
	assert_string_equal(m.name, "d7-ps1010-1.92tb");
	assert_int_equal(sim_model_file("/nonexistent.json", &m, &err), RC_NOT_FOUND);
}

static void a_huge_file_is_refused(void **state) {
	(void)state;
	char path[] = "/tmp/sim-model-XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIM_MODEL_MAX_BYTES + 1), 0);
	close(fd);
	struct sim_model m;
	struct err err;
	assert_int_equal(sim_model_file(path, &m, &err), RC_TOO_LARGE);
	unlink(path);
}

/* --- views --- */

static void the_power_table_is_as_identify_shows_it(void **state) {
	(void)state;
	struct sim_model m;
	struct power_table t;
	struct err err;
	assert_int_equal(sim_model_builtin("", &m, &err), RC_OK);
	sim_model_power_table(&m, &t);
	assert_int_equal(t.count, 3);
	assert_int_equal(t.states[1].state, 1);
	assert_int_equal(t.states[1].max_uw, 15000000);
	assert_int_equal(t.states[2].idle_uw, 5500000);
	assert_true(t.states[0].operational);
	for (int8_t i = 0; i < 3; i++) {
		assert_int_equal(t.states[i].relative_read_throughput, i);
		assert_int_equal(t.states[i].relative_write_throughput, i);
		assert_int_equal(t.states[i].relative_read_latency, i);
	}
}

struct published {
	unsigned state;
	double read_gb_per_s, write_gb_per_s, w;
};

static const struct published published[] = {
	{0, 109, 0, 858},
	{1, 105, 0, 858},
	{2, 79.8, 0, 759},
	{0, 0, 82.5, 1089},
	{1, 0, 34.4, 825},
	{2, 0, 17.3, 726},
	{0, 0, 0, 594},
};

static void coefficients_give_the_published_watts(void **state) {
	(void)state;
	struct sim_model m;
	struct err err;
	assert_int_equal(sim_model_builtin("", &m, &err), RC_OK);
	for (size_t i = 0; i < array_len(published); i++) {
		const struct published *p = &published[i];
		const double w = sim_model_system_w(
			&m, 24, p->state, p->read_gb_per_s * 1e9, p->write_gb_per_s * 1e9);
		assert_float_equal(w, p->w, 0.001);
	}
	assert_float_equal(sim_model_system_w(&m, 0, 0, 0, 0), 462, 0.001);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_builtin_is_valid),
		cmocka_unit_test(the_first_is_the_default),
		cmocka_unit_test(an_unknown_name_is_told_the_known_ones),
		cmocka_unit_test(errors_name_the_field),
		cmocka_unit_test(states_descend),
		cmocka_unit_test(optional_figures_may_be_null),
		cmocka_unit_test(what_is_not_json_is_refused),
		cmocka_unit_test(files_have_the_same_format),
		cmocka_unit_test(a_huge_file_is_refused),
		cmocka_unit_test(the_power_table_is_as_identify_shows_it),
		cmocka_unit_test(coefficients_give_the_published_watts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
