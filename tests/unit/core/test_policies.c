/* Policies: which drive they hold, who wins, and that a drive is set before it is announced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/latch.h"
#include "db/events.h"
#include "tests/support/eventually.h"
#include "tests/support/power_fixture.h"

static const struct power_options defaults;

/* --- asking --- */

static struct policy policy_of(const char *name, int state) {
	struct policy p = {.wish = {.state = (int8_t)state, .limit_mw = NONE}};
	snprintf(p.name, sizeof(p.name), "%s", name);
	return p;
}

static bool put(struct power_fixture *f, struct policy *p) {
	struct err err;
	bool created;
	if (power_policy_put(f->power, &pf_admin, p, VERSION_ANY, &created, &err))
		fail_msg("%s", err.msg);
	return created;
}

static void put_simple(struct power_fixture *f, const char *name, int state) {
	struct policy p = policy_of(name, state);
	put(f, &p);
}

static void delete_policy(struct power_fixture *f, const char *name) {
	struct err err;
	assert_int_equal(power_policy_delete(f->power, &pf_admin, name, VERSION_ANY, &err), RC_OK);
}

static struct policy_view look(struct power_fixture *f, const char *name) {
	struct policy_view v;
	struct err err;
	assert_int_equal(power_policy_get(f->power, name, &v, &err), RC_OK);
	return v;
}

static void assert_held_by(struct power_fixture *f, const char *owner) {
	const struct power_view v = pf_view(f);
	assert_true(v.effective.holder >= 0);
	assert_string_equal(v.claims[v.effective.holder].owner, owner);
}

/* --- what they do --- */

static void a_policy_holds_the_drives_it_selects(void **state) {
	struct power_fixture *f = *state;
	const int second = fake_drive_add(f->fake, "S2");
	struct policy p = policy_of("slow", 2);
	pf_start(f, &defaults);
	pf_wait_for_observed(f, 0);
	snprintf(p.selector.slot, sizeof(p.selector.slot), "0000:00:00.0");
	assert_true(put(f, &p));
	pf_wait_for_power(f, 2);
	pf_wait_for_observed(f, 2);
	assert_held_by(f, "policy:slow");
	assert_int_equal(fake_drive_power(f->fake, second), 0);
	const struct policy_view v = look(f, "slow");
	assert_int_equal(v.selected, 1);
	assert_int_equal(v.holding, 1);
	assert_int_equal(v.in_sync, 1);
	assert_int_equal(v.unable, 0);
	assert_int_equal(pf_count_events(f, EVENT_POLICY_CHANGED), 1);
}

static void the_same_policy_again_is_no_change(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of("slow", 2), again = policy_of("slow", 2);
	pf_start(f, &defaults);
	assert_true(put(f, &p));
	assert_false(put(f, &again));
	assert_int_equal(again.config_version, p.config_version);
	assert_int_equal(again.changed_ms, p.changed_ms);
	assert_int_equal(pf_count_events(f, EVENT_POLICY_CHANGED), 1);
	again.priority = 1;
	assert_false(put(f, &again));
	assert_int_equal(again.config_version, p.config_version + 1);
	assert_int_equal(look(f, "slow").policy.priority, 1);
}

static void a_change_goes_to_all_its_drives(void **state) {
	struct power_fixture *f = *state;
	const int second = fake_drive_add(f->fake, "S2");
	struct power_fixture other = *f;
	other.n = second;
	pf_start(f, &defaults);
	other.drives = f->drives;
	put_simple(f, "all", 2);
	pf_wait_for_power(f, 2);
	pf_wait_for_power(&other, 2);
	put_simple(f, "all", 1);
	pf_wait_for_power(f, 1);
	pf_wait_for_power(&other, 1);
	assert_int_equal(look(f, "all").selected, 2);
}

static void a_deleted_policy_lets_go(void **state) {
	struct power_fixture *f = *state;
	struct err err;
	pf_start(f, &defaults);
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	delete_policy(f, "slow");
	assert_int_equal(pf_view(f).claim_count, 0);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
	assert_int_equal(
		power_policy_delete(f->power, &pf_admin, "slow", VERSION_ANY, &err), RC_NOT_FOUND);
	/* It may come again under its name, never under its version. */
	struct policy p = policy_of("slow", 2);
	put(f, &p);
	const uint32_t version = p.config_version;
	delete_policy(f, "slow");
	assert_true(put(f, &p));
	assert_true(p.config_version > version);
}

static void priority_decides_and_then_the_name(void **state) {
	struct power_fixture *f = *state;
	struct policy high = policy_of("z", 0);
	pf_start(f, &defaults);
	put_simple(f, "b", 2);
	pf_wait_for_power(f, 2);
	put_simple(f, "a", 1);
	pf_wait_for_power(f, 1);
	assert_held_by(f, "policy:a");
	assert_int_equal(look(f, "b").selected, 1);
	assert_int_equal(look(f, "b").holding, 0);
	high.priority = 5;
	put(f, &high);
	pf_wait_for_power(f, 0);
	assert_int_equal(pf_view(f).claim_count, 1);
	delete_policy(f, "z");
	pf_wait_for_power(f, 1);
	delete_policy(f, "a");
	pf_wait_for_power(f, 2);
}

static void desired_and_leases_win(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &defaults);
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	assert_int_equal(pf_set(f, 1).observed_state, 1);
	assert_held_by(f, "admin");
	assert_int_equal(pf_take_lease(f, "r1", 0).observed_state, 0);
	power_lease_end(f->power, "r1");
	pf_wait_for_power(f, 1);
	/* Back to what is then effective, not to the default. */
	assert_int_equal(pf_clear(f, false).observed_state, 2);
	assert_held_by(f, "policy:slow");
}

static void labels_select(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of("rack", 2);
	struct err err;
	pf_start(f, &defaults);
	snprintf(p.selector.labels, sizeof(p.selector.labels), "{\"rack\":\"r7\"}");
	put(f, &p);
	assert_int_equal(look(f, "rack").selected, 0);
	const char *labels = "{\"rack\":\"r7\",\"row\":\"3\"}";
	assert_int_equal(drives_set_labels(f->drives, &pf_admin, f->id, labels, 0, &err), RC_OK);
	pf_wait_for_power(f, 2);
	pf_restart(f, &defaults);
	assert_held_by(f, "policy:rack");
	assert_int_equal(drives_set_labels(f->drives, &pf_admin, f->id, "{}", 0, &err), RC_OK);
	struct pf_wish w = {.f = f, .value = 0};
	assert_true(eventually(pf_has_claims_now, &w));
}

static void a_drive_that_cannot_is_counted(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &defaults);
	pf_wait_for_observed(f, 0);
	put_simple(f, "deep", 7);
	const struct policy_view v = look(f, "deep");
	assert_int_equal(v.selected, 1);
	assert_int_equal(v.unable, 1);
	assert_int_equal(fake_drive_asked(f->fake, f->n, DRIVE_POWER_SET), 0);
}

static void policies_survive_a_restart(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of("slow", 2);
	pf_start(f, &defaults);
	snprintf(p.selector.model, sizeof(p.selector.model), "Fake");
	p.priority = -3;
	put(f, &p);
	pf_restart(f, &defaults);
	const struct policy_view v = look(f, "slow");
	assert_true(policy_is_same(&v.policy, &p));
	assert_int_equal(v.policy.config_version, p.config_version);
	assert_held_by(f, "policy:slow");
}

static void versions_guard_policies(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of("slow", 2);
	struct err err;
	bool created;
	pf_start(f, &defaults);
	assert_int_equal(
		power_policy_put(f->power, &pf_admin, &p, 7, &created, &err), RC_PRECONDITION);
	assert_int_equal(
		power_policy_put(f->power, &pf_admin, &p, VERSION_ABSENT, &created, &err), RC_OK);
	p.priority = 1;
	const uint32_t version = p.config_version;
	assert_int_equal(power_policy_put(f->power, &pf_admin, &p, VERSION_ABSENT, &created, &err),
		RC_PRECONDITION);
	assert_int_equal(power_policy_delete(f->power, &pf_admin, "slow", version + 1, &err),
		RC_PRECONDITION);
	assert_int_equal(power_policy_put(f->power, &pf_admin, &p, version, &created, &err), RC_OK);
	assert_false(created);
}

static void bad_policies_are_refused(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of(".hidden", 1), both = policy_of("both", 1);
	struct err err;
	bool created;
	pf_start(f, &defaults);
	assert_int_equal(power_policy_put(f->power, &pf_admin, &p, 0, &created, &err), RC_INVALID);
	assert_string_equal(err.field, "/name");
	both.wish.limit_mw = 1000;
	assert_int_equal(
		power_policy_put(f->power, &pf_admin, &both, 0, &created, &err), RC_INVALID);
	assert_string_equal(err.field, "/desired");
	for (int i = 0; i < POWER_MAX_POLICIES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "p%d", i);
		put_simple(f, name, 1);
	}
	p = policy_of("one-more", 1);
	assert_int_equal(power_policy_put(f->power, &pf_admin, &p, 0, &created, &err), RC_FULL);
}

static void what_the_store_refuses_is_not_in_force(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of("slow", 2);
	struct err err;
	bool created;
	pf_start(f, &defaults);
	pf_wait_for_observed(f, 0);
	db_fail_nth(f->control->db, 1, RC_NO_SPACE);
	assert_int_equal(power_policy_put(f->power, &pf_admin, &p, 0, &created, &err), RC_NO_SPACE);
	db_fail_nth(f->control->db, 0, RC_OK);
	assert_int_equal(
		power_policy_get(f->power, "slow", &(struct policy_view){0}, &err), RC_NOT_FOUND);
	assert_int_equal(fake_drive_asked(f->fake, f->n, DRIVE_POWER_SET), 0);
}

static void an_observer_takes_no_policy(void **state) {
	struct power_fixture *f = *state;
	struct policy p = policy_of("slow", 2);
	struct err err;
	bool created;
	pf_start(f, &defaults);
	put(f, &p);
	pf_wait_for_power(f, 2);
	pf_restart(f, &(struct power_options){.observe_only = true});
	assert_int_equal(
		power_policy_put(f->power, &pf_admin, &p, 0, &created, &err), RC_FORBIDDEN);
	assert_int_equal(power_policy_delete(f->power, &pf_admin, "slow", 0, &err), RC_FORBIDDEN);
	assert_int_equal(fake_drive_asked(f->fake, f->n, DRIVE_POWER_SET), 0);
}

static bool list_one(void *arg, const struct policy_view *v) {
	char *names = arg;
	const size_t len = strlen(names);
	names[len] = v->policy.name[0];
	names[len + 1] = '\0';
	return len < 2;
}

static void lists_go_by_name(void **state) {
	struct power_fixture *f = *state;
	char names[8] = "";
	struct policy p = policy_of("d", 1);
	pf_start(f, &defaults);
	put_simple(f, "c", 1);
	put_simple(f, "a", 1);
	put_simple(f, "b", 1);
	p.priority = 9;
	put(f, &p);
	power_policy_each(f->power, "", list_one, names);
	assert_string_equal(names, "abc");
	memset(names, 0, sizeof(names));
	power_policy_each(f->power, "b", list_one, names);
	assert_string_equal(names, "cd");
}

/* --- before it is announced --- */

struct order {
	const char *drive;
	int seen, applied_at, added_at;
};

static bool note_order(void *arg, const struct event *e) {
	struct order *o = arg;
	if (!strstr(e->object, o->drive))
		return true;
	o->seen++;
	if (e->type == EVENT_POWER_APPLIED)
		o->applied_at = o->seen;
	if (e->type == EVENT_DRIVE_ADDED)
		o->added_at = o->seen;
	return true;
}

static struct order order_of_events(struct power_fixture *f, const char *drive) {
	struct order o = {.drive = drive};
	struct err err;
	assert_int_equal(events_list(f->events, 0, 1000, note_order, &o, &err), RC_OK);
	return o;
}

static void a_new_drive_is_set_before_it_is_announced(void **state) {
	struct power_fixture *f = *state;
	struct power_fixture other;
	pf_start(f, &defaults);
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	other = *f;
	other.n = fake_drive_add(f->fake, "S2");
	drives_rescan(f->drives);
	fake_drive_id(f->drives, "S2", other.id);
	pf_wait_for_events(f, EVENT_DRIVE_ADDED, 2);
	assert_int_equal(fake_drive_power(f->fake, other.n), 2);
	assert_int_equal(pf_view(&other).observed_state, 2);
	const struct order o = order_of_events(f, other.id);
	assert_true(o.applied_at > 0);
	assert_true(o.applied_at < o.added_at);
}

static struct drive drive_now(struct power_fixture *f) {
	struct drive d;
	struct err err;
	assert_int_equal(drives_get(f->drives, f->id, &d, NULL, NULL, &err), RC_OK);
	return d;
}

static bool is_set_asked(void *arg) {
	struct power_fixture *f = arg;
	return fake_drive_asked(f->fake, f->n, DRIVE_POWER_GET) > 1;
}

static void a_drive_that_came_back_is_arriving_until_it_is_set(void **state) {
	struct power_fixture *f = *state;
	struct pf_wish gone = {.f = f, .value = -1};
	pf_start(f, &defaults);
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	pf_wait_for_observed(f, 2);
	fake_drive_remove(f->fake, f->n);
	drives_rescan(f->drives);
	assert_true(eventually(pf_is_observed, &gone));
	fake_drive_return(f->fake, f->n);
	fake_drive_hang_power(f->fake, f->n, true);
	drives_rescan(f->drives);
	assert_true(eventually(is_set_asked, f));
	assert_int_equal(drive_now(f).state, DRIVE_ARRIVING);
	assert_int_equal(pf_count_events(f, EVENT_DRIVE_ADDED), 1);
	fake_drive_hang_power(f->fake, f->n, false);
	pf_wait_for_events(f, EVENT_DRIVE_ADDED, 2);
	assert_int_equal(drive_now(f).state, DRIVE_LIVE);
	assert_int_equal(fake_drive_power(f->fake, f->n), 2);
}

static void one_that_refuses_is_announced_all_the_same(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &defaults);
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	const int n = fake_drive_add(f->fake, "S2");
	fake_drive_refuse(f->fake, n, 2, RC_REFUSED, 0x410e);
	drives_rescan(f->drives);
	pf_wait_for_events(f, EVENT_DRIVE_ADDED, 2);
	assert_int_equal(pf_count_events(f, EVENT_POWER_REFUSED), 1);
}

static void one_that_does_not_answer_is_announced_in_the_end(void **state) {
	struct power_fixture *f = *state;
	pf_start(f, &(struct power_options){.timeout_ms = PF_SHORT_MS});
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	const int n = fake_drive_add(f->fake, "S2");
	fake_drive_hang_power(f->fake, n, true);
	drives_rescan(f->drives);
	pf_wait_for_events(f, EVENT_DRIVE_ADDED, 2);
	fake_drive_hang_power(f->fake, n, false);
}

static void one_that_goes_before_it_was_announced_was_never_there(void **state) {
	struct power_fixture *f = *state;
	struct power_fixture other;
	pf_start(f, &defaults);
	put_simple(f, "slow", 2);
	pf_wait_for_power(f, 2);
	other = *f;
	other.n = fake_drive_add(f->fake, "S2");
	fake_drive_hang_power(f->fake, other.n, true);
	drives_rescan(f->drives);
	fake_drive_id(f->drives, "S2", other.id);
	pf_wait_for_asked(&other, DRIVE_POWER_GET, 0);
	struct pf_wish asked = {.f = &other, .verb = DRIVE_POWER_GET, .value = 1};
	assert_true(eventually(pf_was_asked, &asked));
	fake_drive_remove(f->fake, other.n);
	drives_rescan(f->drives);
	struct pf_wish gone = {.f = &other, .value = DRIVE_GONE};
	assert_true(eventually(pf_has_state, &gone));
	fake_drive_hang_power(f->fake, other.n, false);
	const struct order o = order_of_events(f, other.id);
	assert_int_equal(o.seen, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, pf_setup, pf_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(a_policy_holds_the_drives_it_selects),
		TEST(the_same_policy_again_is_no_change),
		TEST(a_change_goes_to_all_its_drives),
		TEST(a_deleted_policy_lets_go),
		TEST(priority_decides_and_then_the_name),
		TEST(desired_and_leases_win),
		TEST(labels_select),
		TEST(a_drive_that_cannot_is_counted),
		TEST(policies_survive_a_restart),
		TEST(versions_guard_policies),
		TEST(bad_policies_are_refused),
		TEST(what_the_store_refuses_is_not_in_force),
		TEST(an_observer_takes_no_policy),
		TEST(lists_go_by_name),
		TEST(a_new_drive_is_set_before_it_is_announced),
		TEST(a_drive_that_came_back_is_arriving_until_it_is_set),
		TEST(one_that_refuses_is_announced_all_the_same),
		TEST(one_that_does_not_answer_is_announced_in_the_end),
		TEST(one_that_goes_before_it_was_announced_was_never_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
