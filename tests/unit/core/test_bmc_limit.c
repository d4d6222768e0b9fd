/* A change of a BMC's limit, exchange by exchange. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "core/bmc/limit.h"

#define ENV "/c/1/EnvironmentMetrics"
#define CTL "/c/1/Controls/PowerLimit"
#define POWER "/c/1/Power"
#define OWN "/m/Attributes"
#define MAX_STEPS 16

struct step {
	const char *ask;    /* "GET uri", "PATCH uri if-match body", "-" for none */
	int status;         /* 0: no answer */
	const char *header; /* ETag, or of a 202 Location; NULL none */
	const char *doc;
};

static void describe(const struct limit_change *l, char *out, size_t size) {
	if (l->write)
		snprintf(out, size, "PATCH %s %s %s", l->next, l->if_match[0] ? l->if_match : "-",
			l->body);
	else
		snprintf(out, size, "GET %s", l->next);
}

static void answer(struct limit_change *l, const struct step *s, int64_t *now_ms) {
	char asked[512];
	json_t *doc = s->doc ? json_loads(s->doc, 0, NULL) : NULL;
	assert_true(doc || !s->doc);
	describe(l, asked, sizeof(asked));
	assert_string_equal(asked, s->ask);
	*now_ms += l->wait_ms;
	const struct limit_answer a = {.rc = s->status ? RC_OK : RC_TIMEOUT,
		.status = s->status,
		.doc = doc,
		.etag = s->header && s->status != 202 ? s->header : "",
		.location = s->header && s->status == 202 ? s->header : "",
		.now_ms = *now_ms};
	limit_feed(l, &a);
	json_decref(doc);
}

static const struct bmc_limit_places all_places = {
	.uri = {ENV, "/c/1/Controls", POWER, OWN}, .control_is_list = true, .mode = "Automatic"};
static const struct bmc_limit_places environment = {.uri = {ENV}, .mode = "Automatic"};
static const struct bmc_limit_places control = {.uri = {"", CTL}, .mode = "Manual"};
static const struct bmc_limit_places power = {.uri = {"", "", POWER}, .mode = "Automatic"};
static const struct bmc_limit_places own = {.uri = {"", "", "", OWN}, .mode = "Automatic"};

#define AT(w) "{\"PowerLimitWatts\":{\"SetPoint\":" w "}}"
#define SET(w) "{\"PowerLimitWatts\":{\"SetPoint\":" w "}}"
#define MODE_AT(mode, w) \
	"{\"PowerLimitWatts\":{\"ControlMode\":\"" mode "\",\"SetPoint\":" w \
	",\"AllowableMin\":300,\"AllowableMax\":900}}"
#define LIMIT(w) "{\"PowerControl\":[{\"PowerLimit\":{\"LimitInWatts\":" w "}}]}"
#define COMPLAINT(severity) \
	"{\"@Message.ExtendedInfo\":[{\"MessageId\":\"Base.1.8.PropertyNotWritable\"," \
	"\"Message\":\"no\",\"Severity\":\"" severity "\"}]}"
#define ERROR \
	"{\"error\":{\"code\":\"x\",\"@Message.ExtendedInfo\":[{\"MessageId\":\"Base.1.8." \
	"PropertyValueTypeError\",\"Message\":\"wrong type\"}]}}"

static const struct {
	const char *name;
	const struct bmc_limit_places *places;
	int64_t limit_mw;
	enum rc rc;
	const char *msg; /* part of it */
	struct step steps[MAX_STEPS];
} cases[] = {
	{"it is read back", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "\"a\"", AT("600")},
			{"PATCH " ENV " \"a\" " SET("500"), 204, NULL, NULL},
			{"GET " ENV, 200, "\"b\"", AT("500")}}},
	{"what holds is not written", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "\"a\"", AT("500.4")}}},
	{"none is none, whatever the set point", &environment, NONE, RC_OK, "",
		{{"GET " ENV, 200, "\"a\"", MODE_AT("Disabled", "700")}}},
	{"a range is a range", &environment, 990000, RC_INVALID, "at most 900 W",
		{{"GET " ENV, 200, "\"a\"", MODE_AT("Automatic", "700")}}},
	{"and from below", &environment, 299000, RC_INVALID, "at least 300 W",
		{{"GET " ENV, 200, "\"a\"", MODE_AT("Automatic", "700")}}},
	{"a mode is switched on with it", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "\"a\"", MODE_AT("Disabled", "null")},
			{"PATCH " ENV " \"a\" {\"PowerLimitWatts\":{\"SetPoint\":500,"
			 "\"ControlMode\":\"Automatic\"}}",
				204, NULL, NULL},
			{"GET " ENV, 200, "\"b\"", MODE_AT("Automatic", "500")}}},
	{"or not, where it is not taken", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "\"a\"", MODE_AT("Disabled", "null")},
			{"PATCH " ENV " \"a\" {\"PowerLimitWatts\":{\"SetPoint\":500,"
			 "\"ControlMode\":\"Automatic\"}}",
				400, NULL, ERROR},
			{"PATCH " ENV " \"a\" " SET("500"), 200, NULL, NULL},
			{"GET " ENV, 200, "\"b\"", MODE_AT("Automatic", "500")}}},
	{"a mode is switched off", &environment, NONE, RC_OK, "",
		{{"GET " ENV, 200, "\"a\"", MODE_AT("Automatic", "500")},
			{"PATCH " ENV " \"a\" {\"PowerLimitWatts\":{\"ControlMode\":\"Disabled\"}}",
				204, NULL, NULL},
			{"GET " ENV, 200, "\"b\"", MODE_AT("Disabled", "500")}}},
	{"a control in the vendor's mode", &control, 500000, RC_OK, "",
		{{"GET " CTL, 200, NULL,
			 "{\"ControlMode\":\"Disabled\",\"SetPoint\":null,"
			 "\"@odata.etag\":\"\\\"7f\\\"\"}"},
			{"PATCH " CTL " \"7f\" {\"SetPoint\":500,\"ControlMode\":\"Manual\"}", 200,
				NULL, "{\"SetPoint\":500}"},
			{"GET " CTL, 200, NULL, "{\"ControlMode\":\"Manual\",\"SetPoint\":500}"}}},
	{"a mode that the control names", &control, 500000, RC_OK, "",
		{{"GET " CTL, 200, NULL,
			 "{\"ControlMode\":\"Disabled\",\"SetPoint\":null,\"ControlMode@Redfish."
			 "AllowableValues\":[\"Disabled\",\"Override\"]}"},
			{"PATCH " CTL " - {\"SetPoint\":500,\"ControlMode\":\"Override\"}", 200,
				NULL, NULL},
			{"GET " CTL, 200, NULL,
				"{\"ControlMode\":\"Override\",\"SetPoint\":500}"}}},
	{"PowerControl, at its member", &power, 500000, RC_OK, "",
		{{"GET " POWER, 200, "W/\"1\"",
			 "{\"PowerControl\":[{\"Name\":\"CPU Sub-system Power\"},{\"Name\":"
			 "\"System\",\"PowerConsumedWatts\":300,\"PowerLimit\":{\"LimitInWatts\":"
			 "null}}]}"},
			{"PATCH " POWER " W/\"1\" {\"PowerControl\":[{},{\"PowerLimit\":{"
			 "\"LimitInWatts\":500}}]}",
				200, NULL, NULL},
			{"GET " POWER, 200, NULL, LIMIT("500")}}},
	{"null, and where that is refused 0", &power, NONE, RC_OK, "",
		{{"GET " POWER, 200, "\"1\"", LIMIT("500")},
			{"PATCH " POWER " \"1\" " LIMIT("null"), 400, NULL, ERROR},
			{"PATCH " POWER " \"1\" " LIMIT("0"), 200, NULL, NULL},
			{"GET " POWER, 200, NULL, LIMIT("32767")}}},
	{"attributes", &own, 500000, RC_OK, "",
		{{"GET " OWN, 200, NULL,
			 "{\"Attributes\":{\"ServerPwr.1.PowerCapSetting\":\"Disabled\","
			 "\"ServerPwr.1.PowerCapValue\":800,\"ServerPwr.1.PowerCapMinThres\":300,"
			 "\"ServerPwr.1.PowerCapMaxThres\":900}}"},
			{"PATCH " OWN " - {\"Attributes\":{\"ServerPwr.1.PowerCapSetting\":"
			 "\"Enabled\",\"ServerPwr.1.PowerCapValue\":500}}",
				200, NULL, NULL},
			{"GET " OWN, 200, NULL,
				"{\"Attributes\":{\"ServerPwr.1.PowerCapSetting\":\"Enabled\","
				"\"ServerPwr.1.PowerCapValue\":500}}"}}},
	{"attributes have a range", &own, 950000, RC_INVALID, "at most 900 W",
		{{"GET " OWN, 200, NULL,
			"{\"Attributes\":{\"ServerPwr.1.PowerCapSetting\":\"Disabled\","
			"\"ServerPwr.1.PowerCapValue\":800,\"ServerPwr.1.PowerCapMinThres\":300,"
			"\"ServerPwr.1.PowerCapMaxThres\":900}}"}}},
	{"places in turn", &all_places, 500000, RC_OK, "",
		{{"GET " ENV, 404, NULL, NULL},
			{"GET /c/1/Controls", 200, NULL,
				"{\"Members\":[{\"@odata.id\":\"/c/1/Controls/CPU\"},"
				"{\"@odata.id\":\"" CTL "\"}]}"},
			{"GET " CTL, 200, NULL,
				"{\"SetPoint\":300,\"Implementation\":\"Monitored\"}"},
			{"GET " POWER, 200, NULL, LIMIT("null")},
			{"PATCH " POWER " - " LIMIT("500"), 405, NULL, NULL},
			{"GET " OWN, 200, NULL,
				"{\"Attributes\":{\"ServerPwr.1.PowerCapSetting\":\"Enabled\","
				"\"ServerPwr.1.PowerCapValue\":500}}"}}},
	{"no place at all", &all_places, 500000, RC_UNSUPPORTED, "no power limit",
		{{"GET " ENV, 200, NULL, "{\"PowerWatts\":{\"Reading\":400}}"},
			{"GET /c/1/Controls", 200, NULL, "{\"Members\":[]}"},
			{"GET " POWER, 200, NULL, "{\"PowerControl\":[{}]}"},
			{"GET " OWN, 403, NULL, ERROR}}},
	{"a weak tag that must be strong", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "W/\"gen-1\"", AT("600")},
			{"PATCH " ENV " W/\"gen-1\" " SET("500"), 412, NULL, ERROR},
			{"GET " ENV, 200, "W/\"gen-1\"", AT("600")},
			{"PATCH " ENV " \"gen-1\" " SET("500"), 200, NULL, NULL},
			{"GET " ENV, 200, "W/\"gen-2\"", AT("500")}}},
	{"a tag that is needed", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 428, NULL, ERROR},
			{"GET " ENV, 200, "\"3f0c\"", AT("600")},
			{"PATCH " ENV " \"3f0c\" " SET("500"), 204, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"a tag that went stale", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "\"1\"", AT("600")},
			{"PATCH " ENV " \"1\" " SET("500"), 412, NULL, ERROR},
			{"GET " ENV, 200, "\"2\"", AT("610")},
			{"PATCH " ENV " \"2\" " SET("500"), 204, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"all rungs", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "W/1",
			 "{\"@odata.etag\":\"b\",\"PowerLimitWatts\":{\"SetPoint\":6}}"},
			{"PATCH " ENV " W/1 " SET("500"), 412, NULL, NULL},
			{"GET " ENV, 200, "W/1",
				"{\"@odata.etag\":\"b\",\"PowerLimitWatts\":{\"SetPoint\":6}}"},
			{"PATCH " ENV " b " SET("500"), 412, NULL, NULL},
			{"GET " ENV, 200, "W/1",
				"{\"@odata.etag\":\"b\",\"PowerLimitWatts\":{\"SetPoint\":6}}"},
			{"PATCH " ENV " \"1\" " SET("500"), 412, NULL, NULL},
			{"PATCH " ENV " * " SET("500"), 204, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"and none left", &environment, 500000, RC_REFUSED, "If-Match",
		{{"GET " ENV, 200, "\"1\"", AT("600")},
			{"PATCH " ENV " \"1\" " SET("500"), 412, NULL, NULL},
			{"GET " ENV, 200, "\"1\"", AT("600")},
			{"PATCH " ENV " * " SET("500"), 412, NULL, NULL},
			{"GET " ENV, 200, "\"1\"", AT("600")}}},
	{"a tag that is no header's value", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, "\"a b\"", AT("600")},
			{"PATCH " ENV " - " SET("500"), 204, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"a monitor is followed", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 202, "https://bmc/t/Monitors/41", NULL},
			{"GET /t/Monitors/41", 202, NULL, NULL},
			{"GET /t/Monitors/41", 0, NULL, NULL},
			{"GET /t/Monitors/41", 204, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"and a task", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 202, NULL,
				"{\"@odata.id\":\"/t/41\",\"TaskMonitor\":\"/t/41/m\"}"},
			{"GET /t/41/m", 200, NULL, "{\"TaskState\":\"Running\"}"},
			{"GET /t/41/m", 200, NULL, "{\"TaskState\":\"Completed\"}"},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"one that fails", &environment, 500000, RC_REFUSED, "gave it up: no",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 202, "/t/41", NULL},
			{"GET /t/41", 200, NULL,
				"{\"TaskState\":\"Exception\",\"@Message.ExtendedInfo\":{"
				"\"Message\":\"no\",\"Severity\":\"Critical\"}}"}}},
	{"a limit that shows late", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 204, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("600")}, {"GET " ENV, 500, NULL, ERROR},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"a complaint for nothing", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 200, NULL, COMPLAINT("Warning")},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"a complaint in earnest", &environment, 500000, RC_REFUSED, "refused the limit: no",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 200, NULL, COMPLAINT("Critical")},
			{"GET " ENV, 200, NULL, AT("600")}, {"GET " ENV, 200, NULL, AT("600")},
			{"GET " ENV, 200, NULL, AT("600")}}},
	{"a refusal says why", &environment, 500000, RC_REFUSED, "refused the limit: wrong type",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 400, NULL, ERROR}}},
	{"an account that may not", &environment, 500000, RC_REFUSED, "may not set",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 403, NULL, NULL}}},
	{"a busy BMC", &environment, 500000, RC_UNAVAILABLE, "busy",
		{{"GET " ENV, 200, NULL, AT("600")},
			{"PATCH " ENV " - " SET("500"), 503, NULL, NULL}}},
	{"an answer that was lost", &environment, 500000, RC_OK, "",
		{{"GET " ENV, 200, NULL, AT("600")}, {"PATCH " ENV " - " SET("500"), 0, NULL, NULL},
			{"GET " ENV, 200, NULL, AT("500")}}},
	{"no answer at all", &environment, 500000, RC_UNAVAILABLE, "does not answer",
		{{"GET " ENV, 0, NULL, NULL}}},
};

static void exchanges_end_as_they_should(void **state unused_arg) {
	for (size_t i = 0; i < array_len(cases); i++) {
		struct limit_change l;
		int64_t now_ms = 1000;
		unsigned n = 0;
		limit_begin(&l, cases[i].places, cases[i].limit_mw, now_ms);
		for (; l.next[0]; n++) {
			if (n == MAX_STEPS || !cases[i].steps[n].ask)
				fail_msg("%s: asks for %s too", cases[i].name, l.next);
			answer(&l, &cases[i].steps[n], &now_ms);
		}
		if (n < MAX_STEPS && cases[i].steps[n].ask)
			fail_msg("%s: ends after %u, %s", cases[i].name, n, l.err.msg);
		if (l.err.rc != cases[i].rc || !strstr(l.err.msg, cases[i].msg))
			fail_msg("%s: %s, %s", cases[i].name, rc_name(l.err.rc), l.err.msg);
		if (!l.err.rc && cases[i].limit_mw == NONE)
			assert_int_equal(l.limit_mw, NONE);
		if (l.err.rc == RC_INVALID)
			assert_string_equal(l.err.field, "/limit_w");
	}
}

/* The same answer to whatever is asked from some moment on. */
static void repeat(struct limit_change *l, int status, const char *text, int64_t *now_ms) {
	json_t *doc = text ? json_loads(text, 0, NULL) : NULL;
	while (l->next[0]) {
		*now_ms += l->wait_ms ? l->wait_ms : 1;
		const struct limit_answer a = {.status = status,
			.doc = doc,
			.etag = "",
			.location = "",
			.now_ms = *now_ms};
		limit_feed(l, &a);
	}
	json_decref(doc);
}

static void start_writing(struct limit_change *l, const struct step *second, int64_t *now_ms) {
	static const struct step first = {"GET " ENV, 200, NULL, AT("600")};
	*now_ms = 5;
	limit_begin(l, &environment, 500000, *now_ms);
	answer(l, &first, now_ms);
	answer(l, second, now_ms);
}

static void a_liar_is_found_out(void **state unused_arg) {
	static const struct step taken = {"PATCH " ENV " - " SET("500"), 200, NULL, NULL};
	static const struct {
		const char *doc, *msg;
	} lies[] = {
		{AT("600"), "the BMC took the change, but its limit is 600 W"},
		{AT("400"), "the BMC took the change, but its limit is 400 W"},
		{AT("null"), "the BMC took the change, but there is no limit"},
	};
	for (size_t i = 0; i < array_len(lies); i++) {
		struct limit_change l;
		int64_t now_ms;
		start_writing(&l, &taken, &now_ms);
		repeat(&l, 200, lies[i].doc, &now_ms);
		assert_int_equal(l.err.rc, RC_REFUSED);
		assert_string_equal(l.err.msg, lies[i].msg);
		assert_in_range(now_ms, 10000, 12000);
		assert_true(l.known);
	}
}

static void what_never_ends_is_given_up(void **state unused_arg) {
	static const struct step begun = {"PATCH " ENV " - " SET("500"), 202, "/t/41", NULL};
	struct limit_change l;
	int64_t now_ms;
	start_writing(&l, &begun, &now_ms);
	repeat(&l, 202, NULL, &now_ms);
	assert_int_equal(l.err.rc, RC_TIMEOUT);
	assert_in_range(now_ms, 60000, 71000);
	assert_int_equal(l.limit_mw, 600000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchanges_end_as_they_should),
		cmocka_unit_test(a_liar_is_found_out),
		cmocka_unit_test(what_never_ends_is_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
