/* Power over made-up drives, for tests: life, asking, waiting. */
#ifndef DRIVEWATT_TESTS_POWER_FIXTURE_H
#define DRIVEWATT_TESTS_POWER_FIXTURE_H

#include "base/latch.h"
#include "core/power.h"
#include "tests/support/fake_drives.h"
#include "tests/support/temp_db.h"

#define PF_LONG_MS 60000
#define PF_SHORT_MS 50

struct power_options {
	int64_t timeout_ms, reconcile_ms, backoff_ms;
	bool observe_only;
};

struct power_fixture {
	struct temp_db *control;
	struct events *events;
	struct timers *timers;
	struct pool *jobs;
	struct fake_drives *fake;
	struct drives *drives;
	struct power *power;
	int n;
	char id[DRIVE_ID_SIZE];
};

struct pf_wish {
	struct power_fixture *f;
	int value;
	enum event_type type;
	enum drive_verb verb;
	int count;
};

extern const struct actor pf_admin;

void pf_start(struct power_fixture *f, const struct power_options *o);
int pf_setup(void **state);
void pf_stop(struct power_fixture *f);
void pf_restart(struct power_fixture *f, const struct power_options *o);
int pf_teardown(void **state);
void pf_on_outcome(void *arg, const struct power_outcome *o);
struct latch *pf_latch_for_outcome(void);
struct power_outcome pf_outcome_of(struct latch *l);
struct power_wish pf_state_wish(int state);
struct latch *pf_begin_set(struct power_fixture *f, const struct power_wish *w);
struct power_outcome pf_set(struct power_fixture *f, int state);
enum rc pf_try_set(
	struct power_fixture *f, const struct power_wish *w, uint32_t if_version, struct err *err);
struct latch *pf_begin_clear(struct power_fixture *f, bool leave);
struct power_outcome pf_clear(struct power_fixture *f, bool leave);
struct power_outcome pf_take_lease(struct power_fixture *f, const char *run, int state);
struct power_view pf_view(struct power_fixture *f);
void pf_wait_for_power(struct power_fixture *f, int state);
void pf_wait_for_asked(struct power_fixture *f, enum drive_verb verb, int more);
/* Conditions for eventually(); arg is a struct pf_wish. */
bool pf_is_observed(void *arg);
bool pf_was_asked(void *arg);
bool pf_has_state(void *arg);
bool pf_has_claims_now(void *arg); /* in memory */

void pf_wait_for_observed(struct power_fixture *f, int state);
int pf_count_events(struct power_fixture *f, enum event_type type);
void pf_wait_for_events(struct power_fixture *f, enum event_type type, int count);
void pf_wait_for_claims(struct power_fixture *f, int count);
int pf_count_audits(struct power_fixture *f, const char *outcome);

#endif
