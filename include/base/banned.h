/*
 * Calls that this project does without, since each has a safer form here:
 * bounded formatting in buf.h, strict numbers and times in parse.h, children in child.h.
 * The build includes this header in front of every source file (-include), after the
 * system headers that declare the names.
 */
#ifndef DRIVEWATT_BASE_BANNED_H
#define DRIVEWATT_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Where fortified, these are macros, which clang does not poison. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol atoll atof localtime gmtime ctime asctime mktemp tmpnam system popen

#endif
