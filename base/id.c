#include "base/id.h"

#include <sodium.h>
#include <stdatomic.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/clock.h"

void id_uuid(char out[ID_UUID_SIZE]) {
	uuid_t u;
	uuid_generate_random(u);
	uuid_unparse_lower(u, out);
}

/* Milliseconds << 12 | a count within them, each greater than all before in this process, also
 * when the wall clock is set back. */
static uint64_t next_stamp(void) {
	static _Atomic uint64_t last;
	uint64_t now = (uint64_t)clock_wall_ms() << 12;
	uint64_t seen = atomic_load(&last);
	uint64_t stamp;
	do {
		stamp = now > seen ? now : seen + 1;
	} while (!atomic_compare_exchange_weak(&last, &seen, stamp));
	return stamp;
}

void id_uuid_ordered(char out[ID_UUID_SIZE]) {
	uuid_t u;
	randombytes_buf(u, sizeof(u));
	uint64_t stamp = next_stamp();
	for (int i = 0; i < 6; i++)
		u[i] = (unsigned char)(stamp >> (52 - 8 * i));
	u[6] = (unsigned char)(0x70 | ((stamp >> 8) & 0x0f));
	u[7] = (unsigned char)stamp;
	u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
	uuid_unparse_lower(u, out);
}

bool id_is_uuid(const char *s) {
	uuid_t u;
	return strnlen(s, ID_UUID_SIZE) == ID_UUID_SIZE - 1 && uuid_parse(s, u) == 0;
}

static void hash_part(crypto_generichash_state *h, const char *part) {
	size_t len = strlen(part);
	unsigned char prefix[8];
	for (int i = 0; i < 8; i++)
		prefix[i] = (unsigned char)((uint64_t)len >> (8 * i));
	crypto_generichash_update(h, prefix, sizeof(prefix));
	crypto_generichash_update(h, (const unsigned char *)part, len);
}

void id_hash(const char *const *parts, size_t n, char out[ID_HASH_SIZE]) {
	unsigned char digest[16];
	crypto_generichash_state h;
	crypto_generichash_init(&h, NULL, 0, sizeof(digest));
	for (size_t i = 0; i < n; i++)
		hash_part(&h, parts[i]);
	crypto_generichash_final(&h, digest, sizeof(digest));
	sodium_bin2base64(out, ID_HASH_SIZE, digest, sizeof(digest),
		sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void id_random_hex(size_t bytes, char *out) {
	unsigned char chunk[32];
	out[0] = '\0';
	while (bytes) {
		size_t n = bytes < sizeof(chunk) ? bytes : sizeof(chunk);
		randombytes_buf(chunk, n);
		sodium_bin2hex(out, n * 2 + 1, chunk, n);
		out += n * 2;
		bytes -= n;
	}
}

bool id_is_name(const char *s) {
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strnlen(s, 65);
	return len >= 1 && len <= 64 && s[0] != '.' && strspn(s, allowed) == len;
}
