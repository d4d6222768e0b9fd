/*
 * A source of made-up drives for tests: a thread of its own answers what they are asked, or keeps
 * the question while a drive hangs. All functions in any thread.
 */
#ifndef DRIVEWATT_TESTS_FAKE_DRIVES_H
#define DRIVEWATT_TESTS_FAKE_DRIVES_H

#include "core/drive.h"

#define FAKE_MAX_DRIVES 8
#define FAKE_STATES 5 /* 25, 18, 12 W operational; 3 and 4 not */

struct fake_drives;

struct fake_drives *fake_drives_new(void);
/* Questions that are still kept are dropped. */
void fake_drives_free(struct fake_drives *f);
struct drive_source fake_drives_source(struct fake_drives *f);

/* A live drive nvme<n>; serial and model make its identity. Returns n. */
int fake_drive_add(struct fake_drives *f, const char *serial);
void fake_drive_remove(struct fake_drives *f, int n);
void fake_drive_return(struct fake_drives *f, int n);
/* As sysfs shows it from the next scan on; a reset loses the power state. */
void fake_drive_set_state(struct fake_drives *f, int n, enum drive_state s);
void fake_drive_set_power(struct fake_drives *f, int n, int state);
int fake_drive_power(struct fake_drives *f, int n);
/* How it keeps a limit, from the next identification on; OCP: 12 W is state 2, 18 W state 1. */
void fake_drive_offer(struct fake_drives *f, int n, enum power_means means);
int64_t fake_drive_limit(struct fake_drives *f, int n);
void fake_drive_set_limit(struct fake_drives *f, int n, int64_t limit_mw);
/* It is one of several controllers of the subsystem. */
void fake_drive_set_subsystem(struct fake_drives *f, int n, const char *nqn);
/* While it hangs, questions are kept; afterwards they are answered in order. */
void fake_drive_hang(struct fake_drives *f, int n, bool hang);
/* The same for questions about power alone. */
void fake_drive_hang_power(struct fake_drives *f, int n, bool hang);
/* POWER_SET to this state is answered with rc and, when refused, status; -1 switches it off. */
void fake_drive_refuse(struct fake_drives *f, int n, int state, enum rc rc, uint16_t status);
void fake_drive_set_apst(struct fake_drives *f, int n, bool apst);
void fake_drive_set_temperature(struct fake_drives *f, int n, int64_t mc, int64_t power_mw);
/* Namespaces 1 … count, the first of them with a mount in use when asked for. */
void fake_drive_set_namespaces(struct fake_drives *f, int n, int count, bool mounted);
/* How many questions of this kind it has been asked. */
int fake_drive_asked(struct fake_drives *f, int n, enum drive_verb verb);
/* rc of the scans from now on. */
void fake_drives_fail_scans(struct fake_drives *f, enum rc rc, const char *reason);

/* The id that the registry made, once it has; fails the test when it never does. */
void fake_drive_id(struct drives *ds, const char *serial, char id[DRIVE_ID_SIZE]);

#endif
