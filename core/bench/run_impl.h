/* What the files of one run's life share. */
#ifndef DRIVEWATT_CORE_BENCH_RUN_IMPL_H
#define DRIVEWATT_CORE_BENCH_RUN_IMPL_H

#include "base/buf.h"
#include "core/bench/bench_impl.h"
#include "core/bench/fio_logs.h"

struct run_end {
	enum run_state state;
	char reason[256];
	struct buf result, series, fio; /* empty: none */
};

int64_t run_load_ms(const struct run_job *j);

/* identify.c: has all drives say anew who they are and what uses them. */
enum rc must_check run_identify_all(struct bench *b, struct run_job *j, struct err *err);
/* lease.c: returns when all drives have been read back in their state. */
enum rc must_check run_lease_all(struct bench *b, struct run_job *j, struct err *err);

/* conclude.c: the verdict and the documents. */
void run_conclude(struct bench *b, struct run_job *j, struct run_end *end);
enum rc must_check run_conclude_idle(struct bench *b, struct run_job *j,
	const struct fio_window *window, struct run_end *end, struct err *err);

#endif
