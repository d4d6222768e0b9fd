/*
 * Single facts out of Redfish resources, as tolerant as BMCs are sloppy: numbers may be numeric
 * text, an object may stand for an array of one, sentinels are no values. Pure; documents are
 * borrowed. Readers fill in what a document tells and leave alone what it does not.
 */
#ifndef DRIVEWATT_CORE_BMC_REDFISH_H
#define DRIVEWATT_CORE_BMC_REDFISH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/bmc/adaptor.h"
#include "core/bmc/redfish_limit.h"

/* --- values --- */

/* A number or decimal text; NaN when it is neither. */
double redfish_number(const json_t *v);
/* Watts to milliwatts. NONE for null, what is no number, negative or absurd values and the
 * sentinels 32767, 65535, 2^31-1 and 2^32-1; 0 is a value. */
int64_t redfish_watts(const json_t *v);
/* A cap or capacity in watts: as above, but 0 is none. */
int64_t redfish_cap(const json_t *v);
/* Text, "" when there is none. */
const char *redfish_text(const json_t *doc, const char *key);
/* Copies what is printable ASCII, the rest as '?'. */
void redfish_copy_text(char *out, size_t size, const char *text);
/* doc[key]["Reading"], or doc[key] itself where it is no object. */
const json_t *redfish_excerpt(const json_t *doc, const char *key);
/* The i-th of an array; an object counts as an array of one. */
const json_t *redfish_member(const json_t *list, size_t i);
/* Does the text have one of the words in it, whatever the case? */
bool redfish_mentions(const char *text, const char *const *words, size_t n);
/* Status.State says that nothing is measured there. */
bool redfish_is_unavailable(const json_t *doc);
/* "2021-07-02T20:29:00Z" or seconds since the epoch; NONE. */
int64_t redfish_time_ms(const json_t *v);

/* --- links --- */

/* The text at key's "@odata.id" without its fragment; key NULL: of doc itself. False when there is
 * none, it leads to another host or it is too long. */
bool redfish_link(const json_t *doc, const char *key, char out[BMC_URI_SIZE]);
/* A path on the same BMC, without a fragment. */
bool redfish_take_uri(const char *uri, char out[BMC_URI_SIZE]);
/* Of "https://bmc/redfish/…" the path: BMCs know themselves by other names. */
const char *redfish_path_of(const char *location);
/* The members' links of a collection, each once. */
void redfish_members(const json_t *collection, struct bmc_uris *out);
void bmc_uris_clear(struct bmc_uris *u);
/* False when it is full. */
bool bmc_uris_add(struct bmc_uris *u, const char *uri);
bool bmc_uris_has(const struct bmc_uris *u, const char *uri);
const char *bmc_uris_get(const struct bmc_uris *u, unsigned i);

/* --- watts --- */

/* EnvironmentMetrics: watts, cap, energy counter. */
void redfish_environment(const json_t *doc, struct bmc_reading *out);
/* EnvironmentMetrics: the sensor behind its watts. False when it names none. */
bool redfish_data_source(const json_t *doc, char out[BMC_URI_SIZE]);
/* Power: the PowerControl member that stands for the whole system. */
void redfish_power(const json_t *doc, struct bmc_reading *out);
/* Sensor with ReadingType Power. */
void redfish_sensor(const json_t *doc, struct bmc_reading *out);
/* Of a PowerControl, the member for the whole system: the first that is no part and has a reading,
 * else the first that is no part; NULL. */
const json_t *redfish_whole_system(const json_t *controls);
/* The cap that is told at that place, and what it may be set to; NONE what is not. */
void redfish_cap_of(enum limit_place place, const json_t *doc, struct bmc_extras *out);

/* --- supplies --- */

/* Power: its supplies, in its order. */
void redfish_power_supplies(const json_t *power, struct bmc_extras *out);
/* The sum over Power's supplies, of input if all tell it, else of output; derived. NONE when it is
 * more than they or the system can have. */
void redfish_supply_sum(const json_t *power, const struct bmc_extras *e, struct bmc_reading *out);
/* The sum of input if all supplies tell it; derived. */
void redfish_input_sum(const struct bmc_extras *e, struct bmc_reading *out);
/* PowerSupply of a PowerSubsystem; NULL when there is no room. */
struct host_supply *redfish_supply(const json_t *doc, struct bmc_extras *out);
/* PowerSupplyMetrics. */
void redfish_supply_metrics(const json_t *doc, struct host_supply *out);
/* PowerSubsystem: whether its supplies stand in for each other. */
void redfish_subsystem_redundancy(const json_t *doc, char out[16]);
/* Takes input figures away that cannot be, given the host's watts: some BMCs tell name plates. */
void redfish_doubt_inputs(struct bmc_extras *e, int64_t power_mw);

/* --- the rest --- */

/* The URI of the sensor in a Sensors collection that measures the system's input. */
bool redfish_choose_sensor(const json_t *collection, char out[BMC_URI_SIZE]);
/* The URI of the control in a Controls collection that caps the system. */
bool redfish_choose_control(const json_t *collection, char out[BMC_URI_SIZE]);
/* Chassis: its links, and how likely it is the host's own; score 0: it measures nothing. */
void redfish_chassis(const json_t *doc, struct bmc_chassis *out);
/* Members' links of the Chassis collection, each once. Of many, those that are parts by their names
 * are left out, if others remain. */
void redfish_chassis_members(const json_t *collection, struct bmc_uris *out);
/* ThermalMetrics or Thermal: the air that flows in, thousandths of a degree; NONE. */
int64_t redfish_inlet(const json_t *doc);

#endif
