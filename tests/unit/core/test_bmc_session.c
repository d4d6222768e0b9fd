/* What answers to a login mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "core/bmc/session.h"

#define FIRST "/redfish/v1/SessionService/Sessions"
#define SECOND "/redfish/v1/Sessions"

static void learn(struct bmc_session *s, const char *text) {
	json_t *root = json_loads(text, 0, NULL);
	assert_non_null(root);
	session_learn(s, root);
	json_decref(root);
}

static enum rc take(struct bmc_session *s, int status, const char *token, const char *location,
	const char *body) {
	const struct session_answer a = {
		.status = status, .token = token, .location = location, .body = body};
	return session_take_login(s, &a, 1000);
}

static void collections_are_tried_in_turn(void **state unused_arg) {
	struct bmc_session s = {0};
	assert_string_equal(session_collection(&s), FIRST);
	learn(&s, "{\"Links\":{\"Sessions\":{\"@odata.id\":\"/own/Sessions\"}}}");
	assert_true(session_wants_login(&s, 0));
	assert_string_equal(session_collection(&s), "/own/Sessions");
	assert_int_equal(take(&s, 405, "", "", ""), RC_OK);
	assert_true(session_wants_login(&s, 0));
	assert_string_equal(session_collection(&s), FIRST);
	assert_int_equal(take(&s, 404, "", "", ""), RC_OK);
	assert_string_equal(session_collection(&s), SECOND);
	assert_int_equal(take(&s, 400, "", "", ""), RC_OK);
	/* None serves: user and password from now on. */
	assert_int_equal(s.state, SESSION_BASIC);
	assert_false(session_wants_login(&s, INT64_MAX - 1));
	/* That holds while the service says the same of itself. */
	learn(&s, "{\"Links\":{\"Sessions\":{\"@odata.id\":\"/own/Sessions\"}}}");
	assert_int_equal(s.state, SESSION_BASIC);
	learn(&s, "{\"links\":{\"Sessions\":{\"href\":\"/redfish/v1/Sessions/\"}}}");
	assert_true(session_wants_login(&s, 0));
	assert_string_equal(session_collection(&s), "/redfish/v1/Sessions/");
}

static void none_is_tried_twice(void **state unused_arg) {
	struct bmc_session s = {0};
	learn(&s, "{\"Links\":{\"Sessions\":{\"@odata.id\":\"" SECOND "\"}}}");
	assert_string_equal(session_collection(&s), SECOND);
	assert_int_equal(take(&s, 405, "", "", ""), RC_OK);
	assert_string_equal(session_collection(&s), FIRST);
	assert_int_equal(take(&s, 405, "", "", ""), RC_OK);
	assert_int_equal(s.state, SESSION_BASIC);
}

static void sessions_open_and_close(void **state unused_arg) {
	static const struct {
		const char *location, *body, *uri;
	} answers[] = {
		{FIRST "/9", "", FIRST "/9"},
		{"https://idrac-x.example:443" FIRST "/9", "", FIRST "/9"},
		{"", "{\"@odata.id\":\"" FIRST "/9\"}", FIRST "/9"},
		{"", "{}", ""},
		{"https://elsewhere", "not json", ""},
	};
	for (size_t i = 0; i < array_len(answers); i++) {
		struct bmc_session s = {0};
		assert_int_equal(take(&s, 201, "t1", answers[i].location, answers[i].body), RC_OK);
		assert_int_equal(s.state, SESSION_OPEN);
		assert_false(session_wants_login(&s, 0));
		assert_string_equal(s.token, "t1");
		assert_string_equal(s.uri, answers[i].uri);
		session_close(&s);
		assert_int_equal(s.token[0], 0);
		assert_true(session_wants_login(&s, 0));
	}
}

static void a_full_table_is_left_alone_for_a_while(void **state unused_arg) {
	static const char *const full = "{\"error\":{\"@Message.ExtendedInfo\":[{\"MessageId\":"
					"\"IDRAC.2.8.RAC0218\"}]}}";
	static const struct {
		int status, retry_after_s;
		const char *body;
		int64_t pause_ms;
	} answers[] = {
		{503, 30, "", 30000},
		{503, 0, "", 300000},
		{503, 1, "", 30000},
		{503, 2000000000, "", 3600000},
		{400, 0, "\"SessionLimitExceeded\"", 300000},
		{403, 120, "IDRAC.2.8.RAC0218", 120000},
	};
	for (size_t i = 0; i < array_len(answers); i++) {
		struct bmc_session s = {0};
		const struct session_answer a = {.status = answers[i].status,
			.retry_after_s = answers[i].retry_after_s,
			.token = "",
			.location = "",
			.body = *answers[i].body ? answers[i].body : full};
		assert_int_equal(session_take_login(&s, &a, 1000), RC_OK);
		assert_int_equal(s.state, SESSION_BASIC);
		assert_false(session_wants_login(&s, 1000 + answers[i].pause_ms - 1));
		assert_true(session_wants_login(&s, 1000 + answers[i].pause_ms));
		/* It is the same collection that is tried again. */
		assert_int_equal(s.tried, 0);
	}
}

static void refusals_are_no_reason_to_try_elsewhere(void **state unused_arg) {
	struct bmc_session s = {0};
	assert_int_equal(take(&s, 401, "", "", ""), RC_FORBIDDEN);
	assert_int_equal(take(&s, 403, "", "", "{}"), RC_FORBIDDEN);
	assert_int_equal(take(&s, 500, "", "", ""), RC_IO);
	assert_int_equal(take(&s, 201, "", FIRST "/9", "{}"), RC_IO);
	assert_int_equal(s.state, SESSION_CLOSED);
	assert_int_equal(s.tried, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collections_are_tried_in_turn),
		cmocka_unit_test(none_is_tried_twice),
		cmocka_unit_test(sessions_open_and_close),
		cmocka_unit_test(a_full_table_is_left_alone_for_a_while),
		cmocka_unit_test(refusals_are_no_reason_to_try_elsewhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
