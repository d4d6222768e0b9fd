/* Any bytes as a message: what the check lets through can be used as it is. */
#include <stdint.h>
#include <string.h>

#include "priv/jobfile.h"
#include "priv/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A job file of any accepted request is within its bound, or refused. */
static void use_run(const struct priv_run_start *r) {
	static struct jobfile_target targets[RUN_MAX_DRIVES];
	struct buf out;

	if (r->workload.pattern == PATTERN_IDLE)
		return;
	for (uint16_t i = 0; i < r->target_count; i++) {
		targets[i].drive_id = r->targets[i].drive_id;
		targets[i].region_bytes = r->targets[i].size_bytes;
		targets[i].numa_node = r->targets[i].numa_node;
	}
	buf_init(&out, JOBFILE_MAX_BYTES);
	if (jobfile_write(&out, r, targets, NULL) == RC_OK && strlen(buf_str(&out)) != out.len)
		abort();
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static _Alignas(uint64_t) uint8_t message[PRIV_MESSAGE_MAX];
	const struct priv_header *h = (const struct priv_header *)message;
	struct err err;

	if (size > sizeof(message))
		return 0;
	memcpy(message, data, size);
	if (priv_message_check(message, size, &err) != RC_OK)
		return 0;
	if (h->type == PRIV_RUN_START)
		use_run((const struct priv_run_start *)(h + 1));
	return 0;
}
