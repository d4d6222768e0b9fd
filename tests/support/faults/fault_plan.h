/*
 * What the preloaded shim and its test share in a mapped file: which calls of which process fail.
 * The test writes the plan and arms it last; the shim counts.
 */
#ifndef DRIVEWATT_TESTS_FAULT_PLAN_H
#define DRIVEWATT_TESTS_FAULT_PLAN_H

#include <stdatomic.h>
#include <stdint.h>

#define FAULT_PLAN_VARIABLE "FAULT_PLAN"

enum fault_kind { FAULT_NONE, FAULT_MEMORY, FAULT_STORE };

struct fault_plan {
	_Atomic int64_t kind;   /* enum fault_kind; 0 disarmed */
	_Atomic int64_t pid;    /* of the process whose calls count; 0 any */
	_Atomic int64_t first;  /* the first call that fails, from 1 */
	_Atomic int64_t count;  /* how many in a row */
	_Atomic int64_t seen;   /* calls since it was armed */
	_Atomic int64_t failed; /* of them */
};

#endif
