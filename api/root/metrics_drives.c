/* The part of /metrics about drives. */
#include <stddef.h>
#include <stdlib.h>

#include "api/root/metrics.h"
#include "api/root/prom.h"
#include "core/drive.h"

/* A drive as all families of one answer show it. */
struct row {
	struct drive d;
	bool has_health;
	struct drive_health health;
	double max_w; /* of the state in which it is; 0 unknown */
};

struct rows {
	struct row *all; /* owned */
	size_t count, room;
};

struct family {
	const char *name, *type, *help;
	bool (*value)(const struct row *r, double *v); /* false: not known, no sample */
};

/* --- what is a state or configured, and no reading -------------------------------------------- */

static bool up(const struct row *r, double *v) {
	*v = r->d.state == DRIVE_LIVE;
	return true;
}

static bool power_state(const struct row *r, double *v) {
	*v = r->d.power_state;
	return r->d.power_state >= 0;
}

static bool effective_state(const struct row *r, double *v) {
	*v = r->d.effective_state;
	return r->d.effective_state >= 0;
}

static bool in_sync(const struct row *r, double *v) {
	*v = r->d.in_sync;
	return true;
}

static bool in_use(const struct row *r, double *v) {
	*v = r->d.in_use;
	return true;
}

static bool capacity(const struct row *r, double *v) {
	*v = (double)r->d.capacity_bytes;
	return r->d.capacity_bytes > 0;
}

static bool max_watts(const struct row *r, double *v) {
	*v = r->max_w;
	return r->max_w > 0;
}

static const struct family states[] = {
	{"drivewatt_drive_up", "gauge", "1 while the drive answers", up},
	{"drivewatt_drive_power_state", "gauge", "Power state last read", power_state},
	{"drivewatt_drive_effective_power_state", "gauge", "Power state that shall hold",
		effective_state},
	{"drivewatt_drive_power_state_max_watts", "gauge",
		"Most that the power state last read lets the drive take, as the drive declares",
		max_watts},
	{"drivewatt_drive_in_sync", "gauge", "1 while observed and effective agree", in_sync},
	{"drivewatt_drive_in_use", "gauge", "1 while something on the host uses the drive", in_use},
	{"drivewatt_drive_capacity_bytes", "gauge", "Size of the drive", capacity},
};

/* --- readings --------------------------------------------------------------------------------- */

static bool watts(const struct row *r, double *v) {
	*v = r->d.measured_mw / 1000.0;
	return r->d.measured_mw != INT32_MIN;
}

static bool temperature(const struct row *r, double *v) {
	*v = r->d.temperature_mc / 1000.0;
	return r->d.temperature_mc != INT32_MIN;
}

static const struct family meter = {
	"drivewatt_drive_power_watts", "gauge", "Power by the drive's own meter", watts};
static const struct family thermometer = {
	"drivewatt_drive_temperature_celsius", "gauge", "Composite temperature", temperature};

/* Of the last SMART reading. */
struct counter {
	const char *name, *type, *help;
	size_t offset; /* of an int64_t in struct drive_health, NONE unknown */
	double unit;
};

#define OF(member) offsetof(struct drive_health, member)
static const struct counter counters[] = {
	{"drivewatt_drive_energy_joules_total", "counter",
		"Energy in the drive's life by its own count", OF(lifetime_energy_wh), 3600},
	{"drivewatt_drive_read_bytes_total", "counter", "Bytes that hosts have read",
		OF(data_units_read), 512000},
	{"drivewatt_drive_written_bytes_total", "counter", "Bytes that hosts have written",
		OF(data_units_written), 512000},
	{"drivewatt_drive_reads_total", "counter", "Read commands of hosts", OF(host_reads), 1},
	{"drivewatt_drive_writes_total", "counter", "Write commands of hosts", OF(host_writes), 1},
	{"drivewatt_drive_busy_seconds_total", "counter", "Time with commands of hosts under way",
		OF(controller_busy_min), 60},
	{"drivewatt_drive_power_on_seconds_total", "counter", "Time with power", OF(power_on_h),
		3600},
	{"drivewatt_drive_power_cycles_total", "counter", "Times that power came", OF(power_cycles),
		1},
	{"drivewatt_drive_unsafe_shutdowns_total", "counter", "Times that power went unannounced",
		OF(unsafe_shutdowns), 1},
	{"drivewatt_drive_media_errors_total", "counter", "Errors of data integrity",
		OF(media_errors), 1},
	{"drivewatt_drive_error_log_entries_total", "counter", "Entries of the error log",
		OF(error_log_entries), 1},
	{"drivewatt_drive_light_throttle_seconds_total", "counter",
		"Time in the first thermal management state", OF(tmt1_s), 1},
	{"drivewatt_drive_heavy_throttle_seconds_total", "counter",
		"Time in the second thermal management state", OF(tmt2_s), 1},
	{"drivewatt_drive_warning_temperature_seconds_total", "counter",
		"Time over the warning temperature", OF(warning_temperature_min), 60},
	{"drivewatt_drive_critical_temperature_seconds_total", "counter",
		"Time over the critical temperature", OF(critical_temperature_min), 60},
	{"drivewatt_drive_wear_ratio", "gauge",
		"Endurance used as the vendor estimates; may pass 1", OF(percentage_used), 0.01},
	{"drivewatt_drive_spare_ratio", "gauge", "Spare capacity left", OF(available_spare_pct),
		0.01},
	{"drivewatt_drive_spare_threshold_ratio", "gauge", "Spare capacity below which it warns",
		OF(spare_threshold_pct), 0.01},
};

static bool counted(const struct row *r, const struct counter *c, double *v) {
	const int64_t n = *(const int64_t *)((const char *)&r->health + c->offset);
	*v = (double)n * c->unit;
	return r->has_health && n != NONE;
}

/* --- samples ---------------------------------------------------------------------------------- */

static enum quality drive_quality(const struct row *r) {
	return r->d.kind == DRIVE_SIMULATED ? QUALITY_SIMULATED : QUALITY_MEASURED;
}

static void add_state(struct buf *out, const char *name, const struct row *r, double v) {
	struct prom p = prom_begin(out, name);
	prom_label(&p, "drive", r->d.id);
	prom_label(&p, "simulated", r->d.kind == DRIVE_SIMULATED ? "1" : "0");
	prom_value(&p, v);
}

static void add_reading(
	struct buf *out, const char *name, const struct row *r, enum quality q, double v) {
	struct prom p = prom_begin(out, name);
	prom_label(&p, "drive", r->d.id);
	prom_label(&p, "quality", quality_name(q));
	prom_value(&p, v);
}

static void add_states(struct buf *out, const struct rows *rows) {
	double v;
	for (size_t f = 0; f < array_len(states); f++) {
		prom_family(out, states[f].name, states[f].type, states[f].help);
		for (size_t i = 0; i < rows->count; i++) {
			if (states[f].value(&rows->all[i], &v))
				add_state(out, states[f].name, &rows->all[i], v);
		}
	}
}

static void add_meter(struct buf *out, const struct rows *rows) {
	double v;
	prom_family(out, meter.name, meter.type, meter.help);
	for (size_t i = 0; i < rows->count; i++) {
		const struct row *r = &rows->all[i];
		if (meter.value(r, &v))
			add_reading(out, meter.name, r, r->d.measured_quality, v);
	}
	prom_family(out, thermometer.name, thermometer.type, thermometer.help);
	for (size_t i = 0; i < rows->count; i++) {
		const struct row *r = &rows->all[i];
		if (thermometer.value(r, &v))
			add_reading(out, thermometer.name, r, drive_quality(r), v);
	}
}

static void add_counters(struct buf *out, const struct rows *rows) {
	double v;
	for (size_t f = 0; f < array_len(counters); f++) {
		const struct counter *c = &counters[f];
		prom_family(out, c->name, c->type, c->help);
		for (size_t i = 0; i < rows->count; i++) {
			const struct row *r = &rows->all[i];
			if (counted(r, c, &v))
				add_reading(out, c->name, r, drive_quality(r), v);
		}
	}
}

/* One sample per warning, so that alerts can name it. */
static void add_warnings(struct buf *out, const struct rows *rows) {
	/* NVM Express Base 2.0, SMART / Health Information log, Critical Warning. */
	static const char *const warnings[] = {"spare_below_threshold", "temperature",
		"reliability", "read_only", "volatile_backup_failed",
		"persistent_memory_read_only"};
	const char *name = "drivewatt_drive_critical_warning";
	prom_family(out, name, "gauge", "1 while the drive warns");
	for (size_t i = 0; i < rows->count; i++) {
		const struct row *r = &rows->all[i];
		for (size_t bit = 0; r->has_health && bit < array_len(warnings); bit++) {
			struct prom p = prom_begin(out, name);
			prom_label(&p, "drive", r->d.id);
			prom_label(&p, "warning", warnings[bit]);
			prom_label(&p, "quality", quality_name(drive_quality(r)));
			prom_value(&p, r->health.critical_warning >> bit & 1);
		}
	}
}

static void add_infos(struct buf *out, const struct rows *rows, const char *host_id) {
	const char *name = "drivewatt_drive_info";
	prom_family(out, name, "gauge", "What the drive is");
	for (size_t i = 0; i < rows->count; i++) {
		const struct drive *d = &rows->all[i].d;
		struct prom p = prom_begin(out, name);
		prom_label(&p, "drive", d->id);
		prom_label(&p, "host", host_id);
		prom_label(&p, "name", d->name);
		prom_label(&p, "model", d->model);
		prom_label(&p, "serial", d->serial);
		prom_label(&p, "firmware", d->firmware);
		prom_label(&p, "transport", d->transport);
		prom_label(&p, "slot", d->slot);
		prom_label(&p, "simulated", d->kind == DRIVE_SIMULATED ? "1" : "0");
		prom_value(&p, 1);
	}
}

/* --- the drives ------------------------------------------------------------------------------- */

static bool take_drive(void *arg, const struct drive *d, const char *labels unused_arg) {
	struct rows *rows = arg;
	if (rows->count == rows->room)
		return false;
	rows->all[rows->count++].d = *d;
	return true;
}

static void complete(struct drives *drives, struct row *r) {
	struct power_table table;
	struct err ignored;
	r->has_health = !drives_health(drives, r->d.id, &r->health, &ignored);
	if (drives_table(drives, r->d.id, &table, &ignored))
		return;
	const struct power_state *s = power_table_find(&table, r->d.power_state);
	if (s && s->max_uw != NONE)
		r->max_w = (double)s->max_uw / 1e6;
}

void metrics_add_drives(struct buf *out, struct drives *drives, const char *host_id) {
	struct rows rows = {.room = drives_count(drives)};
	rows.all = calloc(rows.room + 1, sizeof(rows.all[0]));
	if (!rows.all)
		return;
	drives_each(drives, "", take_drive, &rows);
	for (size_t i = 0; i < rows.count; i++)
		complete(drives, &rows.all[i]);
	add_states(out, &rows);
	add_meter(out, &rows);
	add_counters(out, &rows);
	add_warnings(out, &rows);
	add_infos(out, &rows, host_id);
	free(rows.all);
}
