/* Whether two UUIDs are of one machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compiler.h"
#include "model/host.h"

static void uuids_are_compared(void **state unused_arg) {
	static const char one[] = "4c4c4544-0034-4410-8038-b1c04f464633";
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{one, one, true},
		{one, "4C4C4544-0034-4410-8038-B1C04F464633", true},
		{one, "44454c4c-3400-1044-8038-b1c04f464633", true},
		{"44454c4c-3400-1044-8038-b1c04f464633", one, true},
		{one, "4c4c4544003444108038b1c04f464633", true},
		{one, "4c4c4544-0034-4410-8038-b1c04f464634", false},
		{one, "44454c4c-0034-4410-8038-b1c04f464633", false},
		{one, "", false},
		{"", "", false},
		{one, "4c4c4544-0034-4410-8038-b1c04f46463", false},
		{one, "4c4c4544-0034-4410-8038-b1c04f4646333", false},
		{one, "4c4c4544-0034-4410-8038-b1c04f46463x", false},
		{"00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000",
			false},
		{"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "ffffffff-ffff-ffff-ffff-ffffffffffff",
			false},
		{"03000200-0400-0500-0006-000700080009", "03000200-0400-0500-0006-000700080009",
			false},
		{"00020003-0004-0005-0006-000700080009", "00020003-0004-0005-0006-000700080009",
			false},
	};
	for (size_t i = 0; i < array_len(cases); i++) {
		if (host_uuid_is_same(cases[i].a, cases[i].b) != cases[i].same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uuids_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
