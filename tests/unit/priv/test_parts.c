/* Energy counters, power sensors and SMBIOS out of a made-up /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "priv/parts.h"
#include "tests/support/fake_tree.h"

#define CAP "sys/class/powercap/"
#define MON "sys/class/hwmon/"

static struct fake_tree tree;
static struct sysfs_root root;

static int make_tree(void **state unused_arg) {
	fake_tree_make(&tree);
	root = (struct sysfs_root){.sys = tree.sys, .proc = tree.proc, .dev = tree.dev};
	return 0;
}

static int remove_tree(void **state unused_arg) {
	fake_tree_remove(&tree);
	return 0;
}

static void add_zone(const char *zone, const char *name, const char *energy) {
	char path[128];
	snprintf(path, sizeof(path), CAP "%s/name", zone);
	fake_tree_file(&tree, path, "%s\n", name);
	snprintf(path, sizeof(path), CAP "%s/energy_uj", zone);
	fake_tree_file(&tree, path, "%s\n", energy);
	snprintf(path, sizeof(path), CAP "%s/max_energy_range_uj", zone);
	fake_tree_file(&tree, path, "262143328850\n");
}

static void nothing_is_fine(void **state unused_arg) {
	struct priv_parts p;
	parts_read(&root, &p);
	assert_int_equal(p.package_count, 0);
	assert_int_equal(p.sensor_count, 0);
	assert_false(p.packages_cut || p.sensors_cut);
}

static void packages_are_counted_once(void **state unused_arg) {
	struct priv_parts p;
	add_zone("intel-rapl:0", "package-0", "1000");
	add_zone("intel-rapl:10", "package-1-die-1", "3000");
	add_zone("intel-rapl:2", "package-1-die-0", "2000");
	add_zone("intel-rapl:0:0", "core", "500");
	add_zone("intel-rapl:0:1", "dram", "400");
	add_zone("intel-rapl:3", "psys", "9000");
	add_zone("intel-rapl:4", "package-4", "many");
	add_zone("intel-rapl-mmio:0", "package-0", "1000");
	parts_read(&root, &p);
	assert_int_equal(p.package_count, 3);
	assert_string_equal(p.packages[0].name, "package-0");
	assert_int_equal(p.packages[0].energy_uj, 1000);
	assert_int_equal(p.packages[0].range_uj, 262143328850);
	assert_string_equal(p.packages[1].name, "package-1-die-0");
	assert_int_equal(p.packages[2].energy_uj, 3000);
	assert_true(p.at_mono_ns > 0 && p.at_ms > 0);
}

static const struct priv_sensor *sensor(const struct priv_parts *p, const char *name) {
	for (unsigned i = 0; i < p->sensor_count; i++) {
		if (strcmp(p->sensors[i].name, name) == 0)
			return &p->sensors[i];
	}
	fail_msg("there is no %s", name);
	return NULL;
}

static void sensors_have_names_of_their_own(void **state unused_arg) {
	struct priv_parts p;
	fake_tree_file(&tree, MON "hwmon0/name", "coretemp\n");
	fake_tree_file(&tree, MON "hwmon0/temp1_input", "40000\n");
	fake_tree_file(&tree, MON "hwmon1/name", "AMD GPU\n");
	fake_tree_file(&tree, MON "hwmon1/power1_input", "35000000\n");
	fake_tree_file(&tree, MON "hwmon1/power1_average", "36000000\n");
	fake_tree_file(&tree, MON "hwmon1/power1_label", "PPT\n");
	fake_tree_file(&tree, MON "hwmon1/power1_cap", "99000000\n");
	fake_tree_link(&tree, MON "hwmon1/device", "../../../0000:03:00.0");
	fake_tree_file(&tree, MON "hwmon2/name", "power_meter\n");
	fake_tree_file(&tree, MON "hwmon2/power1_average", "212000000\n");
	fake_tree_file(&tree, MON "hwmon2/power1_accuracy", "1.5%%\n");
	fake_tree_file(&tree, MON "hwmon3/name", "ina\n");
	fake_tree_file(&tree, MON "hwmon3/power1_input", "no\n");
	parts_read(&root, &p);
	assert_int_equal(p.sensor_count, 2);
	const struct priv_sensor *s = sensor(&p, "amd_gpu-0000:03:00.0/ppt");
	assert_int_equal(s->power_uw, 35000000);
	assert_true(s->accuracy_mpct == UINT32_MAX);
	s = sensor(&p, "power_meter/power1");
	assert_int_equal(s->power_uw, 212000000);
	assert_int_equal(s->accuracy_mpct, 1500);
}

static void there_are_limits(void **state unused_arg) {
	struct priv_parts p;
	char path[128];
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "intel-rapl:%d", i);
		add_zone(path, "package-x", "1");
		snprintf(path, sizeof(path), MON "hwmon%d/name", i);
		fake_tree_file(&tree, path, "chip%d-of-a-name-that-is-rather-long-for-us\n", i);
		snprintf(path, sizeof(path), MON "hwmon%d/power1_input", i);
		fake_tree_file(&tree, path, "1\n");
	}
	parts_read(&root, &p);
	assert_int_equal(p.package_count, PRIV_MAX_PACKAGES);
	assert_int_equal(p.sensor_count, PRIV_MAX_SENSORS);
	assert_true(p.packages_cut && p.sensors_cut);
}

/* --- SMBIOS --- */

#define RECORD 98 /* header 4, kind, length 0, count 1, protocol 2 + 89, rest */

static size_t make_record(
	uint8_t *r, int format, const uint8_t *address, size_t len, unsigned port) {
	memset(r, 0, RECORD);
	r[0] = 42;
	r[1] = RECORD;
	r[4] = 0x40;
	r[5] = 2; /* two bytes about the interface */
	r[8] = 1;
	uint8_t *p = r + 9;
	p[0] = 4;
	p[1] = 87;
	p += 2;
	p[51] = (uint8_t)format;
	memcpy(p + 52, address, len);
	p[84] = (uint8_t)port;
	p[85] = (uint8_t)(port >> 8);
	return RECORD;
}

static void host_interfaces_are_found(void **state unused_arg) {
	static const uint8_t v4[4] = {169, 254, 1, 1}, v6[16] = {0xfe, 0x80, [15] = 1},
			     none[4] = {0};
	static const struct {
		int format;
		const uint8_t *address;
		size_t len;
		unsigned port;
		const char *url;
	} cases[] = {
		{1, v4, 4, 443, "https://169.254.1.1"},
		{1, v4, 4, 0, "https://169.254.1.1"},
		{1, v4, 4, 8443, "https://169.254.1.1:8443"},
		{2, v6, 16, 443, "https://[fe80::1]"},
		{1, none, 4, 443, NULL},
		{0, v4, 4, 443, NULL},
	};
	uint8_t record[RECORD];
	char url[64];
	for (size_t i = 0; i < array_len(cases); i++) {
		size_t len = make_record(
			record, cases[i].format, cases[i].address, cases[i].len, cases[i].port);
		assert_int_equal(machine_host_interface(record, len, url, sizeof(url)),
			cases[i].url != NULL);
		if (cases[i].url)
			assert_string_equal(url, cases[i].url);
		/* Cut anywhere, it is no record. */
		for (size_t cut = 0; cut < len - 1; cut++)
			(void)machine_host_interface(record, cut, url, sizeof(url));
	}
}

static void a_machine_knows_itself(void **state unused_arg) {
	static const uint8_t v4[4] = {169, 254, 0, 17};
	uint8_t table[RECORD + 64] = {1, 4, 0, 0, 'A', 0, 'B', 0, 0, 127, 3}; /* then cut short */
	struct priv_machine m;
	char path[128];
	machine_read(&root, &m);
	assert_string_equal(m.uuid, "");
	assert_string_equal(m.redfish_url, "");
	fake_tree_file(
		&tree, "sys/class/dmi/id/product_uuid", "4c4c4544-0034-4410-8038-b1c04f464633\n");
	size_t len = 9 + make_record(table + 9, 1, v4, 4, 443);
	fake_tree_dir(&tree, "sys/firmware/dmi/tables");
	snprintf(path, sizeof(path), "%s/firmware/dmi/tables/DMI", tree.sys);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(table, 1, len, f), len);
	fclose(f);
	machine_read(&root, &m);
	assert_string_equal(m.uuid, "4c4c4544-0034-4410-8038-b1c04f464633");
	assert_string_equal(m.redfish_url, "https://169.254.0.17");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_fine),
		TEST(packages_are_counted_once),
		TEST(sensors_have_names_of_their_own),
		TEST(there_are_limits),
		TEST(host_interfaces_are_found),
		TEST(a_machine_knows_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
