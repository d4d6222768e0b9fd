/* Watts from counters that begin anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "core/meters/packages.h"

#define SECOND INT64_C(1000000000)
#define RANGE UINT64_C(262143328850)

static struct priv_parts at(int64_t mono_ns, unsigned count, uint64_t first, uint64_t second) {
	struct priv_parts p = {.at_mono_ns = mono_ns, .package_count = (uint16_t)count};
	snprintf(p.packages[0].name, sizeof(p.packages[0].name), "package-0");
	snprintf(p.packages[1].name, sizeof(p.packages[1].name), "package-1");
	p.packages[0].energy_uj = first;
	p.packages[1].energy_uj = second;
	p.packages[0].range_uj = p.packages[1].range_uj = RANGE;
	return p;
}

static void sums_of_packages(void **state unused_arg) {
	static const struct {
		int64_t passed_ns;
		unsigned from_count, to_count;
		uint64_t from[2], to[2];
		int64_t power_mw;
	} cases[] = {
		{10 * SECOND, 1, 1, {1000, 0}, {500001000, 0}, 50000},
		{10 * SECOND, 2, 2, {0, 5}, {500000000, 700000005}, 120000},
		{SECOND, 1, 1, {RANGE - 10000000, 0}, {32000000, 0}, 42000},
		{SECOND, 1, 1, {RANGE, 0}, {0, 0}, 0},
		{10 * SECOND, 1, 2, {0, 0}, {500000000, 1}, NONE},
		{10 * SECOND, 0, 0, {0, 0}, {0, 0}, NONE},
		{SECOND / 100, 1, 1, {0, 0}, {500000, 0}, NONE},
		{200 * SECOND, 1, 1, {0, 0}, {500000000, 0}, NONE},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		struct priv_parts a =
			at(7 * SECOND, cases[i].from_count, cases[i].from[0], cases[i].from[1]);
		struct priv_parts b = at(7 * SECOND + cases[i].passed_ns, cases[i].to_count,
			cases[i].to[0], cases[i].to[1]);
		struct package_power p = packages_power(&a, &b);
		if (p.power_mw != cases[i].power_mw)
			fail_msg("case %zu: %lld mW", i, (long long)p.power_mw);
		assert_int_equal(p.uncertainty_mw == NONE, p.power_mw == NONE);
	}
}

static void what_is_not_the_same_is_not_compared(void **state unused_arg) {
	struct priv_parts a = at(SECOND, 1, 0, 0), b = at(3 * SECOND, 1, 100000000, 0);
	assert_int_equal(packages_power(&a, &b).power_mw, 50000);
	/* 1 ms of 2 s either side, twice. */
	assert_int_equal(packages_power(&a, &b).uncertainty_mw, 50);
	b.packages[0].range_uj++;
	assert_int_equal(packages_power(&a, &b).power_mw, NONE);
	b.packages[0].range_uj--;
	b.packages[0].name[8] = '7';
	assert_int_equal(packages_power(&a, &b).power_mw, NONE);
	b.packages[0].name[8] = '0';
	b.packages_cut = 1;
	assert_int_equal(packages_power(&a, &b).power_mw, NONE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_packages),
		cmocka_unit_test(what_is_not_the_same_is_not_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
