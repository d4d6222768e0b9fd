/*
 * Events and audit: rows written in the change's own transaction; one publisher thread reads
 * them back in id order and hands each to the subscribers.
 *
 * Any thread. All but events_publish and events_subscribe block on the store. What is given is
 * borrowed for the call alone, and so is what visitors and subscribers get.
 */
#ifndef DRIVEWATT_CORE_EVENTS_H
#define DRIVEWATT_CORE_EVENTS_H

#include "db/db.h"
#include "model/account.h"
#include "model/event.h"

#define EVENTS_MAX_SUBSCRIBERS 8

struct events;

/* control is borrowed until events_free. Starts the publisher. */
struct events *events_new(struct db *control, struct err *err);
/* Ends the publisher once the subscriber that runs is done; what was not handed out by then is not.
 * NULL is fine. */
void events_free(struct events *ev);

/* The actor of what the daemon does by itself. */
extern const struct actor actor_system;

/* Writes the row in c's transaction; data is JSON object text or NULL. Follow the commit by
 * events_publish(). */
enum rc must_check events_add(struct events *ev, struct db_conn *c, enum event_type type,
	const struct actor *actor, const char *object, const char *data, struct err *err);
/* Writes an audit row in c's transaction. outcome: "intent", or rc_name() of how it ended. */
enum rc must_check events_audit(struct db_conn *c, const struct actor *actor, const char *action,
	const char *object, const char *outcome, const char *detail, struct err *err);
/* Wakes the publisher; cheap. */
void events_publish(struct events *ev);
/* One event in a transaction of its own, then published; a failing store is logged once a
 * minute, since the caller could do nothing. */
void events_record(struct events *ev, enum event_type type, const struct actor *actor,
	const char *object, const char *data);

/* fn runs in the publisher thread, for each event after now in id order, and must be quick.
 * RC_FULL. There is no unsubscribing: subscribers live until events_free. */
enum rc must_check events_subscribe(struct events *ev, void (*fn)(void *arg, const struct event *e),
	void *arg, struct err *err);

/* Events with id > after, ascending, at most limit. Visitors return false to stop. */
enum rc must_check events_list(struct events *ev, int64_t after, int limit,
	bool (*visit)(void *arg, const struct event *e), void *arg, struct err *err);
/* Oldest and newest id kept, 0 and 0 without any. */
enum rc must_check events_range(struct events *ev, int64_t *first, int64_t *last, struct err *err);
/* Audit rows with id < before, descending, at most limit. */
enum rc must_check events_audit_list(struct events *ev, int64_t before, int limit,
	bool (*visit)(void *arg, const struct audit_entry *a), void *arg, struct err *err);

#endif
