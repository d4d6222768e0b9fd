/* What the nouns of /api/v1 share: pages, queries, small renderings. */
#ifndef DRIVEWATT_API_V1_V1_H
#define DRIVEWATT_API_V1_V1_H

#include "api/api_private.h"
#include "api/json_in.h"
#include "base/jsonw.h"
#include "core/once.h"
#include "model/drive.h"
#include "model/host.h"
#include "model/policy.h"
#include "model/run.h"
#include "model/task.h"

/* A page of a list: `{"items": [ …`, then page_end. Parameters: limit and cursor. What a client
 * gets as cursor is the place of the last item and a check, so that one of another list, or made
 * up, is refused; one whose item is gone meanwhile is not. */
#define PAGE_LIMIT_DEFAULT 250
#define PAGE_LIMIT_MAX 1000
#define PAGE_PLACE_SIZE 65

struct page {
	struct jsonw w;
	const char *path; /* the list's */
	int limit;
	char cursor[PAGE_PLACE_SIZE]; /* place after which the page begins, "" from the start */
	int count;
	char last[PAGE_PLACE_SIZE]; /* of the last item rendered */
	bool more;
	bool numbered;
};

/* Reads limit and cursor and refuses query parameters other than those and allowed[]. */
enum rc must_check page_begin(struct page *p, const struct http_request *q, struct http_response *r,
	const char *const *allowed, struct err *err);
/* The same where places are numbers that clients know from elsewhere: cursors are these, without a
 * check. *place is kept without one. */
enum rc must_check page_begin_numbered(struct page *p, const struct http_request *q,
	struct http_response *r, int64_t *place, struct err *err);
/* True when another item fits; else notes that there is more. Call before rendering an item. */
bool page_room(struct page *p);
/* After an item was rendered. */
void page_item_done(struct page *p, const char *place);
/* The member "next", for a list with members of its own behind the items. */
void page_items_end(struct page *p);
void page_end(struct page *p);

/* Refuses query parameters that are not in allowed[] (NULL-terminated; NULL: none at all). */
enum rc must_check query_check(
	const struct http_request *q, const char *const *allowed, struct err *err);
/* The JSON body of a request that takes no query parameters. */
enum rc must_check v1_body(const struct http_request *q, json_t **out, struct err *err);
/* An optional whole number; *out keeps its value when absent. */
enum rc must_check query_int(const struct http_request *q, const char *name, int64_t min,
	int64_t max, int64_t *out, struct err *err);
enum rc must_check query_bool(
	const struct http_request *q, const char *name, bool *out, bool *present, struct err *err);
/* host, by id or alias; NULL when absent. RC_INVALID: there is no such host. */
enum rc must_check query_host(
	const struct http_request *q, struct core *core, const char **id, struct err *err);
/* from and to, default the last 24 hours. */
enum rc must_check query_span(
	const struct http_request *q, int64_t *from_ms, int64_t *to_ms, struct err *err);

/* A request that makes something. */
struct creation {
	struct actor who; /* to hand to the call that makes it */
	const char *made; /* id of what an earlier request of the same key made; NULL nothing */
	struct once_request request;
	char location[ONCE_LOCATION_SIZE];
};
/* c must not move afterwards. */
enum rc must_check creation_begin(
	struct creation *c, const struct http_request *q, struct core *core, struct err *err);

/* INT64_MIN and INT32_MIN as null. */
void render_uw(struct jsonw *w, const char *key, int64_t uw);
void render_int_or_null(struct jsonw *w, const char *key, int64_t v);
void render_labels(struct jsonw *w, const char *labels);
void render_text_or_null(struct jsonw *w, const char *key, const char *text);

/* The host that the path names: hosts.c. */
const char *host_of(struct core *core, const struct http_request *q);
/* Shared by drives.c and power.c. */
void render_power_table(struct jsonw *w, const char *key, const struct power_table *t);

/* Wishes and selectors; base is the pointer of object. */
void wish_render(struct jsonw *w, const struct power_wish *wish);
/* expires_ms NULL: the wish cannot end by itself. */
enum rc must_check wish_decode(const json_t *object, const char *base, struct power_wish *wish,
	int64_t *expires_ms, struct err *err);
void selector_render(struct jsonw *w, const char *key, const struct drive_selector *s);
enum rc must_check selector_decode(const struct core *core, const json_t *object, const char *base,
	struct drive_selector *out, struct err *err);

/* Shared by tasks.c and whatever is a task: members of an object that is begun and ended outside.
 */
void task_render(struct jsonw *w, const struct task *t);
void target_render(struct jsonw *w, const struct task_target *t);
void task_set_etag(struct http_response *r, const struct task *t);
/* The parameter state; -1 absent. */
enum rc must_check task_read_state(const struct http_request *q, int *state, struct err *err);

/* Handlers, one file a noun; names are the operations of openapi.yaml. */
#define V1_HANDLER(name) \
	enum http_next name(struct http_request *q, struct http_response *r, void *ctx)

V1_HANDLER(system_get);

V1_HANDLER(drives_list);
V1_HANDLER(drive_get);
V1_HANDLER(drive_patch);
V1_HANDLER(drive_health_get);
V1_HANDLER(drive_thermal_get);
V1_HANDLER(drive_power_get);
V1_HANDLER(drive_desired_get);
V1_HANDLER(drive_desired_put);
V1_HANDLER(drive_desired_delete);

V1_HANDLER(power_changes_list);
V1_HANDLER(power_change_create);
V1_HANDLER(power_change_show);
V1_HANDLER(tasks_list_get);
V1_HANDLER(task_get);
V1_HANDLER(task_cancel);
V1_HANDLER(task_targets_get);

V1_HANDLER(policies_list);
V1_HANDLER(policy_get);
V1_HANDLER(policy_put);
V1_HANDLER(policy_delete);

V1_HANDLER(accounts_list);
V1_HANDLER(account_create);
V1_HANDLER(account_get);
V1_HANDLER(account_patch);
V1_HANDLER(account_delete);
V1_HANDLER(tokens_list);
V1_HANDLER(token_create);
V1_HANDLER(token_get);
V1_HANDLER(token_delete);

V1_HANDLER(hosts_list);
V1_HANDLER(host_create);
V1_HANDLER(host_get);
V1_HANDLER(host_put);
V1_HANDLER(host_patch);
V1_HANDLER(host_delete);
V1_HANDLER(host_power_get);
V1_HANDLER(host_power_patch);
V1_HANDLER(host_baseline_get);
V1_HANDLER(host_baseline_put);

V1_HANDLER(host_energy_get);
V1_HANDLER(drive_energy_get);
V1_HANDLER(series_list);
V1_HANDLER(series_get);
V1_HANDLER(series_samples_get);

V1_HANDLER(workloads_list);
V1_HANDLER(workload_get);
V1_HANDLER(workload_put);
V1_HANDLER(workload_delete);
V1_HANDLER(benchmarks_list);
V1_HANDLER(benchmark_create);
V1_HANDLER(benchmark_get);
V1_HANDLER(benchmark_delete);
V1_HANDLER(benchmark_cancel);
V1_HANDLER(benchmark_series_get);
V1_HANDLER(benchmark_fio_get);

V1_HANDLER(events_get);
V1_HANDLER(audit_list);

/* Versions for the cache of bodies. */
uint64_t v1_drives_version(void *ctx, const struct http_request *q);
uint64_t v1_drive_version(void *ctx, const struct http_request *q);
uint64_t v1_hosts_version(void *ctx, const struct http_request *q);
uint64_t v1_accounts_version(void *ctx, const struct http_request *q);

#endif
