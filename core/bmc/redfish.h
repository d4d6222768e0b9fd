/*
 * Single facts out of Redfish resources, as tolerant as BMCs are sloppy: numbers may be numeric
 * text, an object may stand for an array of one, sentinels are no values. Pure; documents are
 * borrowed.
 */
#ifndef DRIVEWATT_CORE_BMC_REDFISH_H
#define DRIVEWATT_CORE_BMC_REDFISH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/bmc/adaptor.h"

/* Watts to milliwatts. NONE for null, what is no number, negative or absurd values and the
 * sentinels 32767, 65535, 2^31-1 and 2^32-1; 0 is a value. */
int64_t redfish_watts(const json_t *v);
/* A cap in watts: as above, but 0 is "no cap". */
int64_t redfish_cap(const json_t *v);

/* The text at key's "@odata.id" without its fragment. False when there is none or it is too
 * long. */
bool redfish_link(const json_t *doc, const char *key, char out[BMC_URI_SIZE]);

/* The members' links of a collection, BMC_MAX_MEMBERS at most. */
void redfish_members(const json_t *collection, struct bmc_uris *out);

/* EnvironmentMetrics: watts, cap, energy counter. */
void redfish_environment(const json_t *doc, struct bmc_reading *out);
/* EnvironmentMetrics: the sensor behind its watts. False when it names none. */
bool redfish_data_source(const json_t *doc, char out[BMC_URI_SIZE]);
/* Power: the PowerControl member that stands for the whole system. */
void redfish_power(const json_t *doc, struct bmc_reading *out);
/* Power: the sum over its supplies, input if all tell it, else output; derived. */
void redfish_power_supplies(const json_t *doc, struct bmc_reading *out);
/* Sensor with ReadingType Power. */
void redfish_sensor(const json_t *doc, struct bmc_reading *out);
/* PowerSupplyMetrics: NONE when it tells no input power. */
int64_t redfish_supply_input(const json_t *doc);
/* The URI of the sensor in a Sensors collection that measures the system's input. */
bool redfish_choose_sensor(const json_t *collection, char out[BMC_URI_SIZE]);
/* Chassis: its links, and how likely it is the host's own; score 0: it measures nothing. */
void redfish_chassis(const json_t *doc, struct bmc_chassis *out);
/* "Off" for sure. */
bool redfish_is_off(const json_t *chassis);

#endif
