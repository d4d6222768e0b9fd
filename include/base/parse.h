/* Strict text to value: the whole text must be the value, or RC_INVALID. Any thread. */
#ifndef DRIVEWATT_BASE_PARSE_H
#define DRIVEWATT_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

/* Decimal integers within [min, max]. field goes into err. */
enum rc must_check parse_i64(
	const char *s, int64_t min, int64_t max, int64_t *out, const char *field, struct err *err);
/* true/false, yes/no, on/off, 1/0. */
enum rc must_check parse_bool(const char *s, bool *out, const char *field, struct err *err);
/* "10s", "5m", "24h", "7d", "250ms", "0s" → milliseconds. */
enum rc must_check parse_duration_ms(
	const char *s, int64_t *out, const char *field, struct err *err);
/* RFC 3339 with Z or an offset, or "-24h" before now_ms, or "now" → epoch milliseconds. */
enum rc must_check parse_time_ms(
	const char *s, int64_t now_ms, int64_t *out, const char *field, struct err *err);
/* "64k", "128KiB", "1M": bytes, powers of two, as fio reads block sizes. */
enum rc must_check parse_bytes(
	const char *s, int64_t min, int64_t max, int64_t *out, const char *field, struct err *err);

/* Epoch milliseconds as RFC 3339 UTC, "2026-11-30T18:58:00.000Z"; out holds at least 32 bytes. */
void format_time(int64_t epoch_ms, char out[32]);

/* Copies at most size - 1 bytes and terminates; false when the text was cut. */
bool str_copy(char *dst, size_t size, const char *src);
/* Copies a fixed-width, space-padded field (NVMe serial, model) trimmed and printable. */
void str_copy_padded(char *dst, size_t size, const char *src, size_t width);

#endif
