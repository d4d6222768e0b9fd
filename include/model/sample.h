/* Measured values over time. */
#ifndef DRIVEWATT_MODEL_SAMPLE_H
#define DRIVEWATT_MODEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/quality.h"

/* X(enum suffix, wire name, unit): value × 1000 is stored, so W becomes mW and kWh Wh. */
#define QUANTITIES(X) \
	X(POWER, "power", "W") \
	X(ENERGY_COUNTER, "energy_counter", "kWh") \
	X(TEMPERATURE, "temperature", "Cel") \
	X(POWER_STATE, "power_state", "1") \
	X(READ_RATE, "read_rate", "By/s") \
	X(WRITE_RATE, "write_rate", "By/s")

enum quantity {
#define QUANTITY_ENUM_(id, name, unit) QUANTITY_##id,
	QUANTITIES(QUANTITY_ENUM_)
#undef QUANTITY_ENUM_
		QUANTITY_COUNT_
};
const char *quantity_name(enum quantity q);
const char *quantity_unit(enum quantity q);
int quantity_from_name(const char *name, enum quantity *out); /* 1 found, 0 not */
/* Whether it is kept for its energy: power, and counters of energy. */
static inline bool quantity_is_energy(enum quantity q) {
	return q == QUANTITY_POWER || q == QUANTITY_ENERGY_COUNTER;
}

/* A series is samples of (host, object, quantity); object is "host" or a drive id. */
struct series_key {
	char host_id[37];
	char object[37];
	uint8_t quantity; /* enum quantity */
	uint8_t quality;  /* enum quality: part of the identity, so that kinds never mix */
};

struct series {
	int64_t id;
	struct series_key key;
	char source[48];
	int64_t first_ms, last_ms; /* NONE while empty */
	int64_t used_ms;           /* wall; it had samples or a producer about then, or later */
};

struct sample {
	int64_t series_id;
	int64_t at_ms;      /* wall, epoch */
	int64_t at_mono_ns; /* monotonic, of the boot that took it; energy is computed on this */
	int64_t value_milli;
};

#endif
