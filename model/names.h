/* Tables of enum names: what every *_name and *_from_name here is made of. */
#ifndef DRIVEWATT_MODEL_NAMES_H
#define DRIVEWATT_MODEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The value's name, or "unknown" when it is out of range. */
const char *names_get(const char *const *names, size_t count, unsigned value);
/* Fills *value when name is in the table. NULL is in none. */
bool names_find(const char *const *names, size_t count, const char *name, unsigned *value);

#endif
