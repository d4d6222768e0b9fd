/*
 * The NBD protocol, newstyle fixed, as far as a simulated drive speaks it: pure functions over
 * bytes. Options EXPORT_NAME, ABORT, LIST, INFO and GO; simple replies only.
 */
#ifndef DRIVEWATT_CORE_SIM_PROTO_H
#define DRIVEWATT_CORE_SIM_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SIM_NBD_MAX_OPTION_BYTES 4096 /* data of one option */
#define SIM_NBD_MAX_OPTIONS 32        /* a client that negotiates longer is dropped */
#define SIM_NBD_MAX_PAYLOAD (32u << 20)
#define SIM_NBD_INPUT_BYTES (SIM_NBD_MAX_OPTION_BYTES + 16)
#define SIM_NBD_REPLY_BYTES 16

enum sim_nbd_phase { SIM_NBD_HELLO, SIM_NBD_OPTIONS, SIM_NBD_TRANSMISSION, SIM_NBD_CLOSED };

enum sim_nbd_command {
	SIM_NBD_READ,
	SIM_NBD_WRITE,
	SIM_NBD_DISC,
	SIM_NBD_FLUSH,
	SIM_NBD_TRIM,
	SIM_NBD_CACHE,
	SIM_NBD_WRITE_ZEROES,
};

/* The wire's error numbers. */
enum sim_nbd_error {
	SIM_NBD_OK = 0,
	SIM_NBD_EINVAL = 22,
	SIM_NBD_ENOSPC = 28,
	SIM_NBD_EOVERFLOW = 75,
	SIM_NBD_ENOTSUP = 95,
};

struct sim_nbd_session {
	const char *name; /* of the export, borrowed; "" means it too */
	uint64_t size_bytes;
	uint32_t block_bytes;
	enum sim_nbd_phase phase;
	bool no_zeroes;
	unsigned options; /* seen so far */
};

struct sim_nbd_request {
	enum sim_nbd_command command;
	uint64_t tag;
	uint64_t offset;
	uint32_t length;
	uint64_t payload;         /* bytes that follow it */
	enum sim_nbd_error error; /* to be answered at once; SIM_NBD_OK: carry it out */
};

void sim_nbd_session_init(
	struct sim_nbd_session *s, const char *name, uint64_t size_bytes, uint32_t block_bytes);
/* What the server says first. */
void sim_nbd_greet(struct buf *out);
/* Before SIM_NBD_TRANSMISSION: takes one message from the front of data and appends the answer.
 * Returns the bytes taken, 0 when more are needed. RC_CORRUPT: hang up. The phase CLOSED: send
 * the answer and hang up. */
enum rc must_check sim_nbd_negotiate(struct sim_nbd_session *s, const uint8_t *data, size_t len,
	size_t *taken, struct buf *out, struct err *err);
/* In SIM_NBD_TRANSMISSION: likewise one request. */
enum rc must_check sim_nbd_take_request(struct sim_nbd_session *s, const uint8_t *data, size_t len,
	size_t *taken, struct sim_nbd_request *out, struct err *err);
void sim_nbd_reply(uint64_t tag, enum sim_nbd_error error, uint8_t out[SIM_NBD_REPLY_BYTES]);

#endif
