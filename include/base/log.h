/*
 * Logging to standard error, one line a message: "<level> <subsystem>: text". One of the two
 * mutable globals of the program. Safe in any thread; never blocks on anything but the write.
 * Secrets never come here.
 */
#ifndef DRIVEWATT_BASE_LOG_H
#define DRIVEWATT_BASE_LOG_H

#include "base/rc.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Once at start-up. process is put in front ("drivewattd", "priv"); a pointer to static text. */
void log_init(const char *process, enum log_level level);
void log_set_level(enum log_level level);

void log_write(enum log_level level, const char *subsystem, const char *fmt, ...) printf_like(3, 4);
#define log_error(sub, ...) log_write(LOG_LEVEL_ERROR, sub, __VA_ARGS__)
#define log_warning(sub, ...) log_write(LOG_LEVEL_WARNING, sub, __VA_ARGS__)
#define log_info(sub, ...) log_write(LOG_LEVEL_INFO, sub, __VA_ARGS__)
#define log_debug(sub, ...) log_write(LOG_LEVEL_DEBUG, sub, __VA_ARGS__)
/* "what: field: msg (rc)" from a filled err. */
void log_err(enum log_level level, const char *subsystem, const char *what, const struct err *err);

#endif
