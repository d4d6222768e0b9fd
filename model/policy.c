#include "model/policy.h"

#include <string.h>

bool drive_selector_is_same(const struct drive_selector *a, const struct drive_selector *b) {
	return strcmp(a->model, b->model) == 0 && strcmp(a->host, b->host) == 0 &&
		strcmp(a->slot, b->slot) == 0 && strcmp(a->labels, b->labels) == 0;
}

bool policy_is_same(const struct policy *a, const struct policy *b) {
	return strcmp(a->name, b->name) == 0 && a->priority == b->priority &&
		drive_selector_is_same(&a->selector, &b->selector) &&
		power_wish_is_same(&a->wish, &b->wish);
}

int policy_compare(const struct policy *a, const struct policy *b) {
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return strcmp(a->name, b->name);
}
