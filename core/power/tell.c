#include <stdio.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "core/power/power_impl.h"

static void put_state(struct jsonw *w, const char *key, int state) {
	if (state < 0)
		jsonw_null(w, key);
	else
		jsonw_int(w, key, state);
}

void tell_wish(struct buf *out, const char *drive_id, const struct power_wish *wish,
	int64_t expires_ms, const char *reason) {
	struct jsonw w;
	buf_init(out, 512);
	jsonw_init(&w, out);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "drive", drive_id);
	if (wish->state < 0 && wish->limit_mw != NONE)
		jsonw_milli(&w, "limit_w", wish->limit_mw);
	else
		put_state(&w, "state", wish->state);
	if (expires_ms != NONE)
		jsonw_time(&w, "expires_at", expires_ms);
	if (reason)
		jsonw_str(&w, "reason", reason);
	jsonw_object_end(&w);
}

static void put_facts(
	struct buf *out, const char *drive_id, int wanted, int observed, const struct err *why) {
	struct jsonw w;
	buf_init(out, 1024);
	jsonw_init(&w, out);
	jsonw_object(&w, NULL);
	jsonw_str(&w, "drive", drive_id);
	put_state(&w, "state", wanted);
	put_state(&w, "observed_state", observed);
	if (why && why->rc)
		jsonw_str(&w, "reason", why->msg);
	if (why && why->nvme_status)
		jsonw_int(&w, "nvme_status", why->nvme_status);
	jsonw_object_end(&w);
}

void tell_event(struct power *p, const char *drive_id, enum event_type type,
	const struct actor *who, int wanted, int observed, const struct err *why) {
	struct buf data;
	char object[64];
	snprintf(object, sizeof(object), "/drives/%s", drive_id);
	put_facts(&data, drive_id, wanted, observed, why);
	events_record(p->events, type, who, object, buf_str(&data));
	buf_release(&data);
}

static enum event_type event_of(const struct power_outcome *o) {
	if (o->rc == RC_REFUSED)
		return EVENT_POWER_REFUSED;
	return o->rc == RC_OK && o->in_sync ? EVENT_POWER_APPLIED : EVENT_TYPE_COUNT_;
}

void tell_outcome(struct power *p, struct control *ct, const struct wait *w) {
	static const char *const actions[] = {
		[WAIT_DESIRED] = "power.set_desired",
		[WAIT_CLEARED] = "power.clear_desired",
		[WAIT_LEASE] = "power.lease",
	};
	const struct power_outcome *o = &w->outcome;
	struct buf data;
	struct err err;
	put_facts(&data, ct->drive_id, ct->target.state, o->observed_state, &o->err);
	const struct claims_note n = {
		.who = &w->who,
		.action = actions[w->kind],
		.outcome = rc_name(o->rc),
		.event = event_of(o),
		.data = buf_str(&data),
	};
	if (claims_write_note(p, ct->drive_id, &n, &err))
		log_err(LOG_LEVEL_WARNING, "power", "recording an outcome", &err);
	buf_release(&data);
}
