#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libnvme.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "priv/limits.h"
#include "priv/nvme.h"
#include "priv/sysfs.h"

#define STATUS_MASK 0x7ff /* code and type; DNR, more and retry delay stay out */
#define STATUS_KEPT_MASK 0x7fff
#define POWER_STATE_MASK 0x1fu /* the workload hint stands above */
#define KELVIN_OFFSET 273
#define LOG_MEASUREMENT 0x25
#define LOG_OCP_SMART 0xc0
#define ATTRIBUTE_MEASUREMENT 0x20u /* of the third byte of CTRATT: bit 21 */

/* --- errors ---------------------------------------------------------------------------------- */

static const struct {
	int status; /* type << 8 | code */
	enum rc rc;
	const char *words;
} status_rules[] = {
	{0x001, RC_UNSUPPORTED, "the drive does not know the command"},
	{0x002, RC_REFUSED, "the drive refuses a field of the command"},
	{0x01d, RC_REFUSED, "a sanitize operation is going on"},
	{0x084, RC_REFUSED, "a format operation is going on"},
	{0x109, RC_UNSUPPORTED, "the drive does not have the log page"},
	{0x10d, RC_REFUSED, "the drive cannot save the feature"},
	{0x10e, RC_REFUSED, "the drive does not let the feature be changed"},
	{0x13e, RC_REFUSED, "the limit is below what any operational power state takes"},
	{0x370, RC_UNAVAILABLE, "the controller is resetting or reconnecting"},
	{0x371, RC_TIMEOUT, "the kernel gave the command up"},
};

static const struct {
	int errnum;
	enum rc rc;
	const char *words;
} errno_rules[] = {
	{EACCES, RC_FORBIDDEN, "not permitted: needs root's files and CAP_SYS_ADMIN"},
	{EPERM, RC_FORBIDDEN, "not permitted: needs root's files and CAP_SYS_ADMIN"},
	{ENOENT, RC_NOT_FOUND, "the controller is gone"},
	{ENODEV, RC_NOT_FOUND, "the controller is gone"},
	{ENXIO, RC_NOT_FOUND, "the controller is gone"},
	{EAGAIN, RC_UNAVAILABLE, "the controller is resetting or reconnecting"},
	{EBUSY, RC_UNAVAILABLE, "the controller is busy"},
	/* Not a signal: so the kernel says that it gave a command up. */
	{EINTR, RC_TIMEOUT, "the kernel gave the command up"},
	{ETIME, RC_TIMEOUT, "the kernel gave the command up"},
	{ETIMEDOUT, RC_TIMEOUT, "the kernel gave the command up"},
	{ENOTTY, RC_UNSUPPORTED, "the kernel does not know the request"},
};

static enum rc refused(int status, const char *what, struct err *err) {
	enum rc rc = RC_REFUSED;
	const char *words = nvme_status_to_string(status & STATUS_MASK, false);

	for (size_t i = 0; i < array_len(status_rules); i++)
		if (status_rules[i].status == (status & STATUS_MASK)) {
			rc = status_rules[i].rc;
			words = status_rules[i].words;
		}
	err_set(err, rc, "%s: %s (status 0x%x)", what, words, (unsigned)status);
	if (err)
		err->nvme_status = (uint16_t)(status & STATUS_KEPT_MASK);
	return rc;
}

static enum rc failed(int errnum, const char *what, struct err *err) {
	for (size_t i = 0; i < array_len(errno_rules); i++)
		if (errno_rules[i].errnum == errnum)
			return err_set(
				err, errno_rules[i].rc, "%s: %s", what, errno_rules[i].words);
	return err_errno(err, errnum, what);
}

/* libnvme's convention: 0, an NVMe status above it, or -1 with errno. */
static enum rc outcome(int ret, const char *what, struct err *err) {
	if (ret == 0)
		return RC_OK;
	return ret > 0 ? refused(ret, what, err) : failed(errno, what, err);
}

/* --- commands -------------------------------------------------------------------------------- */

enum rc nvme_drive_open(const char *name, int *fd, struct err *err) {
	/* It would take namespaces and paths as well. */
	if (!sysfs_is_controller_name(name))
		return err_set(err, RC_INVALID, "%s is not a controller", name);
	*fd = nvme_open(name);
	if (*fd < 0)
		return failed(errno, name, err);
	fcntl(*fd, F_SETFD, FD_CLOEXEC);
	return RC_OK;
}

void *nvme_page_new(void) {
	void *page = aligned_alloc(NVME_IDENTIFY_BYTES, NVME_IDENTIFY_BYTES);

	if (page)
		memset(page, 0, NVME_IDENTIFY_BYTES);
	return page;
}

enum rc nvme_identify_read(
	int fd, uint8_t cns, uint8_t page[NVME_IDENTIFY_BYTES], struct err *err) {
	struct nvme_identify_args args = {
		.args_size = sizeof(args),
		.fd = fd,
		.timeout = NVME_DEFAULT_IOCTL_TIMEOUT,
		.cns = (enum nvme_identify_cns)cns,
		.data = page,
	};

	return outcome(nvme_identify(&args),
		cns == NVME_IDENTIFY_CNS_CTRL ? "Identify Controller" : "Identify", err);
}

enum rc nvme_feature_get(int fd, uint8_t fid, uint8_t uuid_index, uint32_t *value, const char *what,
	struct err *err) {
	struct nvme_get_features_args args = {
		.args_size = sizeof(args),
		.fd = fd,
		.timeout = NVME_DEFAULT_IOCTL_TIMEOUT,
		.sel = NVME_GET_FEATURES_SEL_CURRENT,
		.fid = fid,
		.uuidx = uuid_index,
		.result = value,
	};

	*value = 0;
	return outcome(nvme_get_features(&args), what, err);
}

enum rc nvme_feature_set(int fd, uint8_t fid, uint8_t uuid_index, uint32_t value, const char *what,
	struct err *err) {
	uint32_t result;
	struct nvme_set_features_args args = {
		.args_size = sizeof(args),
		.fd = fd,
		.timeout = NVME_DEFAULT_IOCTL_TIMEOUT,
		.cdw11 = value,
		.save = false,
		.fid = fid,
		.uuidx = uuid_index,
		.result = &result,
	};

	return outcome(nvme_set_features(&args), what, err);
}

enum rc nvme_log_read(int fd, uint8_t lid, uint8_t uuid_index, void *page, uint32_t bytes,
	const char *what, struct err *err) {
	struct nvme_get_log_args args = {
		.log = page,
		.args_size = sizeof(args),
		.fd = fd,
		.timeout = NVME_DEFAULT_IOCTL_TIMEOUT,
		.lid = (enum nvme_cmd_get_log_lid)lid,
		.len = bytes,
		.nsid = NVME_NSID_ALL,
		.uuidx = uuid_index,
	};

	return outcome(nvme_get_log_page(fd, NVME_LOG_PAGE_PDU_SIZE, &args), what, err);
}

enum rc nvme_drive_identify(int fd, struct drive_detail *out, struct err *err) {
	auto_free uint8_t *page = nvme_page_new();
	enum rc rc;

	if (!page)
		return err_set(err, RC_NOMEM, "no memory to identify a controller");
	rc = nvme_identify_read(fd, NVME_IDENTIFY_CNS_CTRL, page, err);
	if (rc == RC_OK)
		rc = nvme_identify_decode(page, out, err);
	if (rc != RC_OK)
		return rc;
	limits_read(fd, page, &out->power.limits);
	if (out->power.limits.ocp_uuid_index)
		out->logs |= DRIVE_LOG_OCP;
	return RC_OK;
}

#define POWER_MANAGEMENT "Get Features (power management)"

/* The power management calls of libnvme 1.3 mix the workload hint into the state. */
enum rc nvme_drive_power_get(int fd, int *state, struct err *err) {
	uint32_t value;
	enum rc rc =
		nvme_feature_get(fd, NVME_FEAT_FID_POWER_MGMT, 0, &value, POWER_MANAGEMENT, err);

	*state = (int)(value & POWER_STATE_MASK);
	return rc;
}

enum rc nvme_drive_power_set(int fd, int state, struct err *err) {
	enum rc rc = nvme_feature_set(fd, NVME_FEAT_FID_POWER_MGMT, 0,
		(uint32_t)state & POWER_STATE_MASK, "Set Features (power management)", err);
	int current;

	if (rc == RC_REFUSED && nvme_drive_power_get(fd, &current, NULL) == RC_OK &&
		current == state)
		return RC_OK;
	return rc;
}

/* A log that cannot be read, or is another one, was not read. */
static void read_more(
	int fd, uint8_t logs, uint8_t uuid_index, uint8_t *page, struct drive_health *out) {
	if (logs & DRIVE_LOG_OCP &&
		nvme_log_read(fd, LOG_OCP_SMART, uuid_index, page, NVME_SMART_BYTES,
			"OCP SMART log", NULL) == RC_OK &&
		drive_ocp_decode(page, &out->ocp))
		out->logs |= DRIVE_LOG_OCP;
	if (logs & DRIVE_LOG_MEASUREMENT &&
		nvme_log_read(fd, LOG_MEASUREMENT, 0, page, NVME_MEASUREMENT_BYTES,
			"Power Measurement log", NULL) == RC_OK) {
		drive_measurement_decode(page, &out->measurement);
		out->logs |= DRIVE_LOG_MEASUREMENT;
	}
}

enum rc nvme_drive_smart(
	int fd, uint8_t logs, uint8_t uuid_index, struct drive_health *out, struct err *err) {
	auto_free uint8_t *page = nvme_page_new();
	enum rc rc;

	if (!page)
		return err_set(err, RC_NOMEM, "no memory to read a log page");
	rc = nvme_log_read(
		fd, NVME_LOG_LID_SMART, 0, page, NVME_SMART_BYTES, "SMART / Health log", err);
	if (rc != RC_OK)
		return rc;
	drive_health_decode(page, out);
	read_more(fd, logs, uuid_index, page, out);
	out->read_ms = clock_wall_ms();
	return RC_OK;
}

/* --- sharing ---------------------------------------------------------------------------------- */

#define SC_HOST_ID_FORMAT 0x018 /* host identifiers are of the other size */

const char *nvme_reservation_name(uint8_t type) {
	static const char *const names[] = {"none", "write exclusive", "exclusive access",
		"write exclusive - registrants only", "exclusive access - registrants only",
		"write exclusive - all registrants", "exclusive access - all registrants"};

	return type < array_len(names) ? names[type] : "unknown";
}

static int report(int fd, uint32_t nsid, bool long_host_ids, void *page) {
	struct nvme_resv_report_args args = {
		.args_size = sizeof(args),
		.fd = fd,
		.timeout = NVME_DEFAULT_IOCTL_TIMEOUT,
		.nsid = nsid,
		.eds = long_host_ids,
		.len = NVME_IDENTIFY_BYTES,
		.report = page,
	};

	return nvme_resv_report(&args);
}

/* What is read of it stands at the same place with short and with long host identifiers. */
static enum rc read_reservation(
	int fd, uint32_t nsid, void *page, struct nvme_sharing *out, struct err *err) {
	const struct nvme_resv_status *status = page;
	int ret = report(fd, nsid, true, page);
	enum rc rc;

	if (ret > 0 && (ret & STATUS_MASK) == SC_HOST_ID_FORMAT)
		ret = report(fd, nsid, false, page);
	rc = outcome(ret, "Reservation Report", err);
	if (rc != RC_OK)
		return rc;
	out->reservation = status->rtype;
	out->registrants = (uint16_t)(status->regctl[0] | status->regctl[1] << 8);
	return RC_OK;
}

enum rc nvme_namespace_sharing(
	int fd, int namespace_fd, uint32_t nsid, struct nvme_sharing *out, struct err *err) {
	auto_free void *page = nvme_page_new();
	const struct nvme_id_ctrl *controller = page;
	const struct nvme_id_ns *namespace = page;
	enum rc rc;

	*out = (struct nvme_sharing){0};
	if (!page)
		return err_set(err, RC_NOMEM, "no memory to identify a namespace");
	rc = outcome(nvme_identify_ctrl(fd, page), "Identify Controller", err);
	if (rc != RC_OK)
		return rc;
	out->reservable = le16toh(controller->oncs) & NVME_CTRL_ONCS_RESERVATIONS;
	rc = outcome(nvme_identify_ns(fd, nsid, page), "Identify Namespace", err);
	if (rc != RC_OK)
		return rc;
	out->attachable = namespace->nmic & NVME_NS_NMIC_SHARED;
	return out->reservable ? read_reservation(namespace_fd, nsid, page, out, err) : RC_OK;
}

/* --- Identify Controller, NVM Express Base Specification 2.0 ------------------------------ */

static uint16_t le16(const uint8_t *p) {
	return (uint16_t)(p[0] | p[1] << 8);
}

static int64_t celsius(uint16_t kelvin) {
	return kelvin ? (int64_t)kelvin - KELVIN_OFFSET : NONE;
}

enum rc nvme_identify_decode(
	const uint8_t identify[NVME_IDENTIFY_BYTES], struct drive_detail *out, struct err *err) {
	bool thermal_management = identify[322] & 1;

	out->vendor_id = le16(identify);
	out->cntlid = le16(identify + 78);
	out->apst_supported = identify[265] & 1;
	out->warning_c = celsius(le16(identify + 266));
	out->critical_c = celsius(le16(identify + 268));
	out->tmt_min_c = thermal_management ? celsius(le16(identify + 324)) : NONE;
	out->tmt_max_c = thermal_management ? celsius(le16(identify + 326)) : NONE;
	out->volatile_write_cache = identify[525] & 1;
	out->scale = 1;
	out->logs = identify[98] & ATTRIBUTE_MEASUREMENT ? DRIVE_LOG_MEASUREMENT : 0;
	str_copy_padded(
		out->subsystem_nqn, sizeof(out->subsystem_nqn), (const char *)identify + 768, 256);
	return power_table_decode(identify, &out->power, err);
}
