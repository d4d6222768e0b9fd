/*
 * Included in front of every file that clang-tidy looks at: the analyzer sees one file at a time
 * and would follow paths on which err_set() and its kin return RC_OK.
 */
#include "base/rc.h"

#define err_set(err, rc, ...) (err_set(err, rc, __VA_ARGS__), (rc))
#define err_field(err, rc, ...) (err_field(err, rc, __VA_ARGS__), (rc))
#define err_errno(...) (err_errno(__VA_ARGS__), RC_IO)
