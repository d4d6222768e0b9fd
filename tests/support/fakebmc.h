/* tests/support/fakebmc.py as a child of a test. What should work and does not fails the test. */
#ifndef DRIVEWATT_TESTS_FAKEBMC_H
#define DRIVEWATT_TESTS_FAKEBMC_H

#include <stdio.h>
#include <sys/types.h>

struct fakebmc {
	pid_t pid;
	FILE *to, *from;
	char url[64];
	char ca_file[128];
	char fingerprint_sha256[65];
};

/* args: further arguments of the program, NULL-terminated. */
struct fakebmc *fakebmc_new(const char *const *args);
/* "mode 503"; waits until it is obeyed. */
void fakebmc_tell(struct fakebmc *f, const char *line);
struct fakebmc_stats {
	int requests, connections, most_at_once;
};
struct fakebmc_stats fakebmc_ask_stats(struct fakebmc *f);
struct fakebmc_sessions {
	int opened, closed, refused;
};
struct fakebmc_sessions fakebmc_ask_sessions(struct fakebmc *f);
void fakebmc_free(struct fakebmc *f);

#endif
