/* The machine that a run was made on, as far as it can be read without rights. */
#ifndef DRIVEWATT_CORE_BENCH_ENVIRONMENT_H
#define DRIVEWATT_CORE_BENCH_ENVIRONMENT_H

struct environment {
	char cpu[128], kernel[160], governor[32]; /* each "" when unknown */
};

void environment_read(struct environment *out);

#endif
