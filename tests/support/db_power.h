/*
 * Power loss. A process that calls db_power_watch() keeps, beside each file of SQLite's that it
 * syncs, what the file held at that time (NAME.durable). After it was killed, db_power_cut() makes
 * of its files what a disk that loses power may have kept: all that was synced, and of what was
 * written since any sectors in any order.
 */
#ifndef DRIVEWATT_TESTS_DB_POWER_H
#define DRIVEWATT_TESTS_DB_POWER_H

/* Before the first database is opened; in processes of one thread. */
void db_power_watch(void);
/* What these files hold now is durable; the processes that used them have ended. */
void db_power_settle(const char *db_path);
void db_power_cut(const char *db_path);

#endif
