#include <jansson.h>
#include <string.h>

#include "core/drive/registry.h"

static bool labels_fit(const char *wanted, const char *labels) {
	json_t *want = json_loads(wanted, 0, NULL), *have = json_loads(labels, 0, NULL);
	const char *name;
	json_t *value;
	bool all = want != NULL;
	json_object_foreach(want, name, value) {
		all = all && json_equal(value, json_object_get(have, name));
	}
	json_decref(want);
	json_decref(have);
	return all;
}

bool drives_selects(const struct drives *ds, const struct drive_selector *s, const struct drive *d,
	const char *labels) {
	return (!s->model[0] || strcmp(s->model, d->model) == 0) &&
		(!s->host[0] || strcmp(s->host, ds->host_id) == 0) &&
		(!s->slot[0] || strcmp(s->slot, d->address) == 0 ||
			strcmp(s->slot, d->slot) == 0) &&
		(!s->labels[0] || labels_fit(s->labels, labels));
}

struct selection {
	struct drives *ds;
	const struct drive_selector *selector;
	bool (*visit)(void *arg, const struct drive *d, const char *labels);
	void *arg;
};

static bool visit_selected(void *arg, const struct drive *d, const char *labels) {
	const struct selection *s = arg;
	if (d->state == DRIVE_GONE || !drives_selects(s->ds, s->selector, d, labels))
		return true;
	return s->visit(s->arg, d, labels);
}

void drives_select(struct drives *ds, const struct drive_selector *s,
	bool (*visit)(void *arg, const struct drive *d, const char *labels), void *arg) {
	struct selection all = {ds, s, visit, arg};
	drives_each(ds, "", visit_selected, &all);
}
