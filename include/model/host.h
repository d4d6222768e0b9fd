/* A server, its BMC and the watts to subtract from it. */
#ifndef DRIVEWATT_MODEL_HOST_H
#define DRIVEWATT_MODEL_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "model/quality.h"

#define HOST_ID_SIZE 37
#define HOST_MAX 10240

enum bmc_tls { BMC_TLS_CA, BMC_TLS_PIN, BMC_TLS_NONE };
const char *bmc_tls_name(enum bmc_tls t);
bool bmc_tls_from_name(const char *name, enum bmc_tls *out);

struct bmc_settings {
	bool present;
	char url[256]; /* https://… without a path */
	char username[64];
	char *password_sealed; /* owned by the struct's holder; NULL none. Never shown */
	char vendor[16];       /* "auto" */
	uint8_t tls;           /* enum bmc_tls */
	bool allow_plaintext;
	char ca_file[256];
	char fingerprint_sha256[65]; /* lower-case hex */
	char ciphers[128];           /* an OpenSSL list for TLS 1.2; "" the library's own */
};

enum baseline_kind { BASELINE_IDLE_WITH_DRIVES, BASELINE_NO_DRIVES, BASELINE_KIND_COUNT_ };
const char *baseline_kind_name(enum baseline_kind k);
bool baseline_kind_from_name(const char *name, enum baseline_kind *out);

enum baseline_source { BASELINE_MEASURED, BASELINE_DECLARED, BASELINE_SIMULATED };
const char *baseline_source_name(enum baseline_source s);
bool baseline_source_from_name(const char *name, enum baseline_source *out);

struct baseline {
	bool known;
	uint8_t source; /* enum baseline_source */
	int64_t power_mw;
	int64_t uncertainty_mw; /* k = 2; NONE unknown (declared without one) */
	int64_t at_ms;
};

struct host {
	char id[HOST_ID_SIZE];
	char name[65];
	char labels[512]; /* a JSON object of strings, "" none */
	bool local;
	uint32_t config_version; /* model/version.h; a new one begins at the time */
	struct bmc_settings bmc;
	struct baseline baselines[BASELINE_KIND_COUNT_];
};

#define HOST_SUPPLY_MAX 12

/* A power supply as the BMC describes it; text is printable ASCII. */
struct host_supply {
	char name[40];
	char state[24];              /* "Enabled", "Absent", …; "" unknown */
	char redundancy[16];         /* "redundant", "not_redundant"; "" unknown */
	int64_t input_mw, output_mw; /* NONE */
	int64_t capacity_mw;         /* NONE */
	int64_t efficiency_mpct;     /* thousandths of a percent; NONE */
};

#define HOST_COMPONENT_MAX 33

/* What a part of the local host takes, by a meter of its own. Parts never add up to the host. */
struct host_component {
	char object[37]; /* as in its series: "cpu", or a sensor's name */
	char source[16]; /* "rapl", "hwmon" */
	uint8_t quality; /* enum quality */
	int64_t power_mw;
	int64_t uncertainty_mw; /* k = 2; NONE unknown */
	int64_t at_ms, at_mono_ns;
};

/* Are these the same SMBIOS UUID? Some write its first half byte by byte the other way round. One
 * that many machines share, all zeros for instance, is nobody's. */
bool host_uuid_is_same(const char *a, const char *b);

/* A meter's answer about a host, normalised. What stands below the line may be up to a minute older
 * than the watts. */
struct host_power {
	int64_t power_mw; /* NONE when unknown */
	char reason[96];  /* why unknown */
	char source[48];  /* "EnvironmentMetrics", "PowerControl", "simulated", … */
	uint8_t quality;  /* enum quality */
	int64_t at_ms;    /* wall time of the reading; NONE never read */
	int64_t at_mono_ns;
	/* The smallest step of the meter: learnt once 8 distinct readings were seen, until then as
	 * the meter declares it of itself, else NONE. */
	int64_t resolution_mw;
	bool resolution_declared; /* not learnt yet */
	int64_t step_mw; /* the resolution, or no less than it; NONE while all are the same */
	int64_t lag_ms;  /* time constant with which it follows; NONE when unknown */
	uint64_t observed_version; /* never comes again: clock_first_version() */
	/* --- */
	int64_t limit_mw;                   /* NONE: no cap */
	int64_t limit_min_mw, limit_max_mw; /* what it may be set to; NONE unknown */
	int64_t energy_counter_mj;          /* the BMC's own; NONE */
	int64_t energy_since_ms;            /* when it began to count; NONE unknown */
	int64_t energy_reset_ms;            /* when it was last seen to begin anew; NONE never */
	int64_t inlet_mc;                   /* air, thousandths of a degree; NONE */
	char system_uuid[37];               /* of SMBIOS, lower case; "" unknown */
	bool is_local;                      /* by that, it is the local host's machine */
	char host_interface[64]; /* of the local host: where its BMC serves it by itself; "" */
	unsigned supply_count;
	struct host_supply supplies[HOST_SUPPLY_MAX];
};
/* Never read, all unknown. */
void host_power_init(struct host_power *p);

#endif
