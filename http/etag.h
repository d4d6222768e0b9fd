/* Entity tags. An answer in gzip has the tag of the plain one with "-gz" at its end, since a strong
 * tag stands for exact bytes; conditions do not look at that ending. */
#ifndef DRIVEWATT_HTTP_ETAG_H
#define DRIVEWATT_HTTP_ETAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* If-None-Match: whether the list names etag (with quotes) or is "*". Weak comparison. */
bool etag_list_has(const char *list, const char *etag);
/* Conditions of changes: whether the list has a tag of this configuration version, or is "*". Weak
 * tags count for If-None-Match alone (RFC 9110 section 13.1). */
bool etag_list_has_config(const char *list, uint64_t config_version, bool weak);
bool etag_list_is_any(const char *list);
/* Makes etag, in a buffer of size bytes, that of the gzip form; "" when it does not fit. */
void etag_mark_gzip(char *etag, size_t size);

#endif
