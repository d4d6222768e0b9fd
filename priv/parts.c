#include "priv/parts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

#define ENTRIES_MAX 256 /* looked at in one directory */
#define SMBIOS_MAX (256u * 1024)
#define SMBIOS_HEADER 4
#define TYPE_HOST_INTERFACE 42
#define REDFISH_OVER_IP 4
/* Within the record of that protocol. */
#define AT_FORMAT 51
#define AT_ADDRESS 52
#define AT_PORT 84
#define RECORD_MIN 86
#define FORMAT_IPV4 1
#define FORMAT_IPV6 2

static bool read_number(uint64_t *out, const char *dir, const char *name, const char *file) {
	char text[32];
	int64_t v;
	if (!sysfs_read(text, sizeof(text), "%s/%s/%s", dir, name, file) ||
		parse_i64(text, 0, INT64_MAX, &v, "", NULL) != RC_OK)
		return false;
	*out = (uint64_t)v;
	return true;
}

/* --- the processors' packages --- */

/* "intel-rapl:0"; what is below has two colons, and intel-rapl-mmio counts the same energy again.
 */
static bool is_zone(const char *name) {
	static const char prefix[] = "intel-rapl:";
	size_t len = sizeof(prefix) - 1;
	return strncmp(name, prefix, len) == 0 && name[len] &&
		!name[len + strspn(name + len, "0123456789")];
}

static void add_package(const char *dir, const char *zone, struct priv_parts *out) {
	struct priv_package *p = &out->packages[out->package_count];
	char name[32];
	/* "psys" and others are no packages. */
	if (!sysfs_read(name, sizeof(name), "%s/%s/name", dir, zone) ||
		strncmp(name, "package-", sizeof("package-") - 1) != 0 ||
		!read_number(&p->energy_uj, dir, zone, "energy_uj") ||
		!read_number(&p->range_uj, dir, zone, "max_energy_range_uj"))
		return;
	str_copy(p->name, sizeof(p->name), name);
	out->package_count++;
}

static void read_packages(const struct sysfs_root *root, struct priv_parts *out) {
	char dir[128], names[ENTRIES_MAX][SYSFS_NAME_SIZE];
	bool cut = false;
	snprintf(dir, sizeof(dir), "%s/class/powercap", root->sys);
	size_t n = sysfs_list(dir, is_zone, names, ENTRIES_MAX, &cut);
	out->packages_cut = cut;
	for (size_t i = 0; i < n; i++) {
		if (out->package_count == PRIV_MAX_PACKAGES) {
			out->packages_cut = true;
			return;
		}
		add_package(dir, names[i], out);
	}
}

/* --- sensors --- */

static bool is_chip(const char *name) {
	return strncmp(name, "hwmon", 5) == 0;
}

static bool is_power(const char *name) {
	unsigned n;
	char kind[16];
	return sscanf(name, "power%3u_%15s", &n, kind) == 2 &&
		(strcmp(kind, "input") == 0 || strcmp(kind, "average") == 0);
}

/* Lower case, without white space: it becomes part of a name. */
static void append(char *out, size_t size, const char *text) {
	size_t len = strlen(out);
	for (; *text && len + 1 < size; text++) {
		bool plain = isalnum((unsigned char)*text) || strchr("-_.:", *text);
		out[len++] = plain ? (char)tolower((unsigned char)*text) : '_';
	}
	out[len] = '\0';
}

/* "amdgpu-0000:03:00.0/ppt": the chip, the device it sits on, the sensor. */
static void name_sensor(const char *dir, const char *chip, unsigned n, struct priv_sensor *out) {
	char text[64], path[256], device[256];
	if (sysfs_read(text, sizeof(text), "%s/%s/name", dir, chip))
		append(out->name, sizeof(out->name), text);
	snprintf(path, sizeof(path), "%s/%s/device", dir, chip);
	ssize_t len = readlink(path, device, sizeof(device) - 1);
	device[len > 0 ? len : 0] = '\0';
	const char *slash = strrchr(device, '/');
	if (slash) {
		append(out->name, sizeof(out->name), "-");
		append(out->name, sizeof(out->name), slash + 1);
	}
	if (!sysfs_read(text, sizeof(text), "%s/%s/power%u_label", dir, chip, n))
		snprintf(text, sizeof(text), "power%u", n);
	len = (ssize_t)strlen(out->name);
	if (len + 2 < (ssize_t)sizeof(out->name))
		memcpy(out->name + len, "/", 2);
	append(out->name, sizeof(out->name), text);
}

static bool is_named(const struct priv_parts *p, const char *name) {
	for (unsigned i = 0; i < p->sensor_count; i++) {
		if (strcmp(p->sensors[i].name, name) == 0)
			return true;
	}
	return false;
}

static void read_accuracy(const char *dir, const char *chip, unsigned n, struct priv_sensor *s) {
	char text[32];
	double percent;
	s->accuracy_mpct = UINT32_MAX;
	/* "0.5%" */
	if (sysfs_read(text, sizeof(text), "%s/%s/power%u_accuracy", dir, chip, n) &&
		sscanf(text, "%lf", &percent) == 1 && percent >= 0 && percent <= 100)
		s->accuracy_mpct = (uint32_t)(percent * 1000);
}

static void add_sensor(
	const char *dir, const char *chip, const char *file, struct priv_parts *out) {
	struct priv_sensor s = {0};
	unsigned n = 0;
	sscanf(file, "power%3u_", &n);
	name_sensor(dir, chip, n, &s);
	/* An average beside an input is about the same; the input is listed later. */
	if (is_named(out, s.name) || !read_number(&s.power_uw, dir, chip, file))
		return;
	read_accuracy(dir, chip, n, &s);
	out->sensors[out->sensor_count++] = s;
}

static void read_chip(const char *dir, const char *chip, struct priv_parts *out) {
	char path[192], files[ENTRIES_MAX][SYSFS_NAME_SIZE];
	bool cut = false;
	snprintf(path, sizeof(path), "%s/%s", dir, chip);
	size_t n = sysfs_list(path, is_power, files, ENTRIES_MAX, &cut);
	/* Inputs first. */
	for (int inputs = 1; inputs >= 0; inputs--) {
		for (size_t i = 0; i < n; i++) {
			if ((strstr(files[i], "_input") != NULL) != inputs)
				continue;
			if (out->sensor_count == PRIV_MAX_SENSORS)
				out->sensors_cut = true;
			else
				add_sensor(dir, chip, files[i], out);
		}
	}
}

static void read_sensors(const struct sysfs_root *root, struct priv_parts *out) {
	char dir[128], names[ENTRIES_MAX][SYSFS_NAME_SIZE];
	bool cut = false;
	snprintf(dir, sizeof(dir), "%s/class/hwmon", root->sys);
	size_t n = sysfs_list(dir, is_chip, names, ENTRIES_MAX, &cut);
	out->sensors_cut = cut;
	for (size_t i = 0; i < n; i++)
		read_chip(dir, names[i], out);
}

void parts_read(const struct sysfs_root *root, struct priv_parts *out) {
	*out = (struct priv_parts){0};
	read_packages(root, out);
	out->at_ms = clock_wall_ms();
	out->at_mono_ns = clock_mono_ns();
	read_sensors(root, out);
}

/* --- who this machine is --- */

static void print_url(const uint8_t *r, int family, char *url, size_t size) {
	char address[INET6_ADDRSTRLEN];
	unsigned port = (unsigned)(r[AT_PORT] | r[AT_PORT + 1] << 8);
	bool v6 = family == AF_INET6;
	url[0] = '\0';
	if (!inet_ntop(family, r + AT_ADDRESS, address, sizeof(address)))
		return;
	int len = snprintf(url, size, v6 ? "https://[%s]" : "https://%s", address);
	if (port && port != 443 && len > 0 && (size_t)len < size)
		snprintf(url + len, size - (size_t)len, ":%u", port);
}

static bool is_set(const uint8_t *address, size_t len) {
	for (size_t i = 0; i < len; i++) {
		if (address[i])
			return true;
	}
	return false;
}

static bool take_redfish(const uint8_t *r, size_t len, char *url, size_t size) {
	bool v4 = len >= RECORD_MIN && r[AT_FORMAT] == FORMAT_IPV4 && is_set(r + AT_ADDRESS, 4);
	bool v6 = len >= RECORD_MIN && r[AT_FORMAT] == FORMAT_IPV6 && is_set(r + AT_ADDRESS, 16);
	if (v4 || v6)
		print_url(r, v4 ? AF_INET : AF_INET6, url, size);
	return (v4 || v6) && *url;
}

bool machine_host_interface(const uint8_t *record, size_t len, char *url, size_t size) {
	/* Header, kind of interface, length of what is about that, then the protocols. */
	if (len < SMBIOS_HEADER + 2)
		return false;
	size_t at = SMBIOS_HEADER + 2 + (size_t)record[SMBIOS_HEADER + 1];
	unsigned count = at < len ? record[at++] : 0;
	while (count-- && at + 2 <= len) {
		size_t size_of = record[at + 1];
		if (at + 2 + size_of > len)
			return false;
		if (record[at] == REDFISH_OVER_IP &&
			take_redfish(record + at + 2, size_of, url, size))
			return true;
		at += 2 + size_of;
	}
	return false;
}

/* The next record behind this one's strings, which end with two zeros. */
static size_t skip_record(const uint8_t *table, size_t len, size_t at) {
	at += table[at + 1];
	while (at + 1 < len && (table[at] || table[at + 1]))
		at++;
	return at + 2;
}

static void find_host_interface(const uint8_t *table, size_t len, struct priv_machine *out) {
	size_t at = 0;
	while (at + SMBIOS_HEADER <= len) {
		size_t record_len = table[at + 1];
		if (record_len < SMBIOS_HEADER || at + record_len > len)
			return;
		if (table[at] == TYPE_HOST_INTERFACE &&
			machine_host_interface(
				table + at, record_len, out->redfish_url, sizeof(out->redfish_url)))
			return;
		at = skip_record(table, len, at);
	}
}

static size_t read_table(const char *path, uint8_t *out, size_t size) {
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;
	while (fd >= 0 && len < size && (n = read(fd, out + len, size - len)) > 0)
		len += (size_t)n;
	return len;
}

void machine_read(const struct sysfs_root *root, struct priv_machine *out) {
	char path[128];
	auto_free uint8_t *table = malloc(SMBIOS_MAX);
	*out = (struct priv_machine){0};
	sysfs_read(out->uuid, sizeof(out->uuid), "%s/class/dmi/id/product_uuid", root->sys);
	snprintf(path, sizeof(path), "%s/firmware/dmi/tables/DMI", root->sys);
	if (table)
		find_host_interface(table, read_table(path, table, SMBIOS_MAX), out);
}
