/* What an NBD client of a simulated drive may send: negotiation, then requests. */
#include <stdint.h>
#include <stdlib.h>

#include "core/sim/proto.h"

#define SIZE (UINT64_C(1) << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds) {
	if (!holds)
		abort();
}

/* Returns what one message took, 0 when it is over. */
static size_t negotiate(struct sim_nbd_session *s, const uint8_t *data, size_t size) {
	size_t taken = 0;
	struct buf out;
	struct err err;
	buf_init(&out, 16384);
	if (sim_nbd_negotiate(s, data, size, &taken, &out, &err))
		taken = 0;
	expect(taken <= size && out.failed == RC_OK);
	buf_release(&out);
	return taken;
}

static size_t request(struct sim_nbd_session *s, const uint8_t *data, size_t size) {
	struct sim_nbd_request r;
	struct err err;
	size_t taken = 0;
	if (sim_nbd_take_request(s, data, size, &taken, &r, &err) || !taken)
		return 0;
	expect(taken <= size);
	if (r.error == SIM_NBD_OK && r.command != SIM_NBD_FLUSH && r.command != SIM_NBD_DISC)
		expect(r.length > 0 && r.offset <= SIZE && r.length <= SIZE - r.offset);
	if (r.error == SIM_NBD_OK && r.payload)
		expect(r.payload <= SIM_NBD_MAX_PAYLOAD);
	return r.payload < size - taken ? taken + (size_t)r.payload : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct sim_nbd_session s;
	sim_nbd_session_init(&s, "sim00", SIZE, 512);
	for (size_t at = 0, taken; at < size && s.phase != SIM_NBD_CLOSED; at += taken) {
		taken = s.phase == SIM_NBD_TRANSMISSION ? request(&s, data + at, size - at)
							: negotiate(&s, data + at, size - at);
		if (!taken)
			break;
	}
	return 0;
}
