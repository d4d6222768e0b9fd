#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "core/bmc/redfish.h"

/* The plain one stands last. A new vendor without quirks needs a name here at most. */
static const struct bmc_adaptor adaptors[] = {
	{.name = "dell",
		.marks = "dell",
		.own_uri = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/"
			   "System.Embedded.1",
		.own_extras = dell_extras,
		.limit_in_own = true},
	{.name = "hpe", .marks = "hpe hp", .oem_supplies = hpe_supplies},
	{.name = "lenovo", .marks = "lenovo", .limit_mode = "Manual"},
	{.name = "supermicro", .marks = "supermicro"},
	{.name = "cisco", .marks = "cisco"},
	{.name = "fujitsu",
		.marks = "fujitsu fsas",
		.oem_power = fujitsu_power,
		.oem_supplies = fujitsu_supplies},
	{.name = "huawei", .marks = "huawei xfusion kunlun"},
	{.name = "inspur", .marks = "inspur ieit public h3c", .oem_power = inspur_power},
	{.name = "openubmc", .marks = "openubmc"},
	{.name = "nvidia", .marks = "nvidia"},
	{.name = "ami", .marks = "ami megarac"},
	{.name = "openbmc", .marks = "openbmc"},
	{.name = "redfish"},
};
#define PLAIN (&adaptors[array_len(adaptors) - 1])

static const struct bmc_adaptor *by_name(const char *name) {
	for (size_t i = 0; i < array_len(adaptors); i++) {
		if (strcmp(name, adaptors[i].name) == 0)
			return &adaptors[i];
	}
	return NULL;
}

bool bmc_vendor_is_known(const char *vendor) {
	return strcmp(vendor, BMC_VENDOR_AUTO) == 0 || by_name(vendor);
}

/* --- by the service root --- */

static bool has_word(const char *text, const char *word, size_t len) {
	for (const char *p = text; (p = strcasestr(p, word)); p++) {
		bool begins = p == text || !isalnum((unsigned char)p[-1]);
		if (begins && !isalnum((unsigned char)p[len]))
			return true;
	}
	return false;
}

static bool has_any(const char *text, const char *words) {
	char word[32];
	for (size_t len; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		snprintf(word, sizeof(word), "%.*s", (int)len, words);
		if (has_word(text, word, len))
			return true;
	}
	return false;
}

static bool is_of(const json_t *root, const char *marks) {
	static const char *const keys[] = {"Vendor", "Product", "Name"};
	for (size_t i = 0; i < array_len(keys); i++) {
		if (has_any(redfish_text(root, keys[i]), marks))
			return true;
	}
	const char *key;
	json_t *value;
	json_object_foreach(json_object_get(root, "Oem"), key, value) {
		if (has_any(key, marks))
			return true;
	}
	return false;
}

const struct bmc_adaptor *bmc_adaptor_choose(const char *vendor, const json_t *service_root) {
	const struct bmc_adaptor *named = by_name(vendor);
	if (named)
		return named;
	for (size_t i = 0; i < array_len(adaptors); i++) {
		if (adaptors[i].marks && is_of(service_root, adaptors[i].marks))
			return &adaptors[i];
	}
	return PLAIN;
}
