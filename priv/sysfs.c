#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "priv/sysfs.h"

#define SYSFS_PATH_SIZE 512
#define SECTOR_BYTES 512 /* sysfs counts sizes in these whatever the device's block */
#define ENTRIES_MAX 64   /* namespaces and paths looked at a controller */
#define SLOTS_MAX 1024   /* physical slots of the machine */

const struct sysfs_root sysfs_live = {.sys = "/sys", .proc = "/proc", .dev = "/dev"};

/* --- files and directories ------------------------------------------------------------------- */

static void trim(char *s) {
	size_t n = strlen(s), lead = strspn(s, " \t");

	while (n > lead && isspace((unsigned char)s[n - 1]))
		n--;
	memmove(s, s + lead, n - lead);
	s[n - lead] = '\0';
}

/* Too long a path ends as "", which does not exist. */
static void printf_like(2, 3) path_format(char path[SYSFS_PATH_SIZE], const char *fmt, ...) {
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, SYSFS_PATH_SIZE, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= SYSFS_PATH_SIZE)
		path[0] = '\0';
}

bool sysfs_read(char *out, size_t size, const char *fmt, ...) {
	char path[SYSFS_PATH_SIZE];
	auto_close int fd = -1;
	ssize_t n;
	va_list ap;
	int len;

	out[0] = '\0';
	va_start(ap, fmt);
	len = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	trim(out);
	return n >= 0;
}

static int64_t read_number(
	int64_t min, int64_t max, int64_t otherwise, const char *dir, const char *attribute) {
	char text[32];
	int64_t v;

	if (!sysfs_read(text, sizeof(text), "%s/%s", dir, attribute) ||
		parse_i64(text, min, max, &v, attribute, NULL) != RC_OK)
		return otherwise;
	return v;
}

static void read_text(char *out, size_t size, const char *dir, const char *attribute) {
	char text[256];

	sysfs_read(text, sizeof(text), "%s/%s", dir, attribute);
	str_copy_padded(out, size, text, strlen(text));
}

static int natural_order(const void *a, const void *b) {
	return strverscmp(a, b);
}

size_t sysfs_list(const char *dir, bool (*accept)(const char *name), char (*names)[SYSFS_NAME_SIZE],
	size_t max, bool *cut) {
	const struct dirent *e;
	size_t count = 0;
	DIR *d = opendir(dir);

	*cut = false;
	if (!d)
		return 0;
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' || !accept(e->d_name))
			continue;
		if (count == max)
			*cut = true;
		else if (str_copy(names[count], sizeof(names[count]), e->d_name))
			count++;
	}
	closedir(d);
	qsort(names, count, sizeof(names[0]), natural_order);
	return count;
}

/* --- names ----------------------------------------------------------------------------------- */

/* Does name follow the pattern, where # stands for a number? */
static bool name_fits(const char *name, const char *pattern) {
	for (; *pattern; pattern++) {
		if (*pattern != '#') {
			if (*name++ != *pattern)
				return false;
			continue;
		}
		if (!isdigit((unsigned char)*name))
			return false;
		name += strspn(name, "0123456789");
	}
	return *name == '\0';
}

bool sysfs_is_controller_name(const char *name) {
	return name_fits(name, "nvme#");
}

static bool is_namespace_entry(const char *name) {
	return name_fits(name, "nvme#n#") || name_fits(name, "nvme#c#n#");
}

/* The node of a path "nvmeXcYnZ" is hidden; I/O goes to the head "nvmeXnZ". */
static void name_of_head(char out[SYSFS_NAME_SIZE], const char *entry) {
	size_t subsystem = strcspn(entry, "c");

	str_copy(out, SYSFS_NAME_SIZE, entry);
	if (entry[subsystem] == 'c')
		str_copy(out + subsystem, SYSFS_NAME_SIZE - subsystem, strrchr(entry, 'n'));
}

/* --- controllers ----------------------------------------------------------------------------- */

bool sysfs_is_subsystem_name(const char *name) {
	return name_fits(name, "nvme-subsys#");
}

size_t sysfs_subsystem_controllers(const struct sysfs_root *root, const char *subsystem,
	char (*names)[SYSFS_NAME_SIZE], size_t max) {
	char dir[SYSFS_PATH_SIZE];
	bool cut;

	path_format(dir, "%s/class/nvme-subsystem/%s", root->sys, subsystem);
	return sysfs_list(dir, sysfs_is_controller_name, names, max, &cut);
}

/* How many controllers the subsystem has that holds an entry named after this one. */
static uint16_t subsystem_controllers(const struct sysfs_root *root, const char *controller) {
	auto_free char(*subsystems)[SYSFS_NAME_SIZE] =
		calloc(SYSFS_MAX_CONTROLLERS, SYSFS_NAME_SIZE);
	char members[ENTRIES_MAX][SYSFS_NAME_SIZE], dir[SYSFS_PATH_SIZE], path[SYSFS_PATH_SIZE];
	size_t count;
	bool cut;

	if (!subsystems)
		return 1;
	path_format(dir, "%s/class/nvme-subsystem", root->sys);
	count = sysfs_list(dir, sysfs_is_subsystem_name, subsystems, SYSFS_MAX_CONTROLLERS, &cut);
	for (size_t i = 0; i < count; i++) {
		path_format(path, "%s/%s/%s", dir, subsystems[i], controller);
		if (access(path, F_OK) != 0)
			continue;
		return (uint16_t)sysfs_subsystem_controllers(
			root, subsystems[i], members, ENTRIES_MAX);
	}
	return 1;
}

static uint64_t namespaces_bytes(const struct sysfs_root *root, const char *controller) {
	struct sysfs_namespace ns[ENTRIES_MAX];
	struct sysfs_block block;
	uint64_t sum = 0;
	bool cut;
	size_t count = sysfs_namespaces(root, controller, ns, ENTRIES_MAX, &cut);

	for (size_t i = 0; i < count; i++)
		if (sysfs_block_read(root, ns[i].name, &block))
			sum += block.size_bytes;
	return sum;
}

enum rc sysfs_controller_read(
	const struct sysfs_root *root, const char *name, struct priv_found *out, struct err *err) {
	char dir[SYSFS_PATH_SIZE], type[16];

	memset(out, 0, sizeof(*out));
	path_format(dir, "%s/class/nvme/%s", root->sys, name);
	if (!sysfs_is_controller_name(name) ||
		!str_copy(out->drive.name, sizeof(out->drive.name), name) || access(dir, F_OK) != 0)
		return err_set(err, RC_NOT_FOUND, "no controller %s", name);
	if (sysfs_read(type, sizeof(type), "%s/cntrltype", dir) && strcmp(type, "discovery") == 0)
		return err_set(err, RC_NOT_FOUND, "%s is a discovery controller", name);
	out->drive.kind = DRIVE_NVME;
	read_text(out->drive.serial, sizeof(out->drive.serial), dir, "serial");
	read_text(out->model, sizeof(out->model), dir, "model");
	read_text(out->firmware, sizeof(out->firmware), dir, "firmware_rev");
	read_text(out->transport, sizeof(out->transport), dir, "transport");
	read_text(out->address, sizeof(out->address), dir, "address");
	read_text(out->subsystem_nqn, sizeof(out->subsystem_nqn), dir, "subsysnqn");
	read_text(out->sysfs_state, sizeof(out->sysfs_state), dir, "state");
	out->numa_node = (int16_t)read_number(-1, INT16_MAX, -1, dir, "numa_node");
	out->cntlid = (uint16_t)read_number(0, UINT16_MAX, 0, dir, "cntlid");
	out->subsystem_controllers = subsystem_controllers(root, name);
	out->capacity_bytes = namespaces_bytes(root, name);
	return RC_OK;
}

/* --- physical slots -------------------------------------------------------------------------- */

struct slot {
	char name[SYSFS_NAME_SIZE];
	char address[32]; /* "0000:03:00", without the function */
};

static bool is_slot_name(const char *name) {
	return name[0] != '.';
}

/* The slots that the chassis names; the caller's to free. NULL without any. */
static struct slot *read_slots(const struct sysfs_root *root, size_t *count) {
	auto_free char(*names)[SYSFS_NAME_SIZE] = calloc(SLOTS_MAX, SYSFS_NAME_SIZE);
	char dir[SYSFS_PATH_SIZE], path[SYSFS_PATH_SIZE];
	struct slot *slots;
	bool cut;

	*count = 0;
	path_format(dir, "%s/bus/pci/slots", root->sys);
	if (names)
		*count = sysfs_list(dir, is_slot_name, names, SLOTS_MAX, &cut);
	slots = *count ? calloc(*count, sizeof(*slots)) : NULL;
	if (!slots)
		*count = 0;
	for (size_t i = 0; i < *count; i++) {
		path_format(path, "%s/%s", dir, names[i]);
		str_copy(slots[i].name, sizeof(slots[i].name), names[i]);
		read_text(slots[i].address, sizeof(slots[i].address), path, "address");
	}
	return slots;
}

/* A slot has a device, a controller a function of one. */
static bool is_in_slot(const struct priv_found *f, const struct slot *s) {
	const size_t len = strlen(s->address);

	return len > 0 && strncmp(f->address, s->address, len) == 0 && f->address[len] == '.';
}

static void add_slots(const struct sysfs_root *root, struct priv_found *found, size_t n) {
	size_t count;
	auto_free struct slot *slots = read_slots(root, &count);

	for (size_t i = 0; i < n * count; i++)
		if (is_in_slot(&found[i / count], &slots[i % count]))
			str_copy(found[i / count].slot, sizeof(found[i / count].slot),
				slots[i % count].name);
}

enum rc sysfs_controllers(const struct sysfs_root *root, struct priv_found **out, size_t *count,
	bool *cut, struct err *err) {
	auto_free char(*names)[SYSFS_NAME_SIZE] = calloc(SYSFS_MAX_CONTROLLERS, SYSFS_NAME_SIZE);
	struct priv_found *found;
	char dir[SYSFS_PATH_SIZE];
	size_t n;

	if (!names)
		return err_set(err, RC_NOMEM, "no memory to list controllers");
	path_format(dir, "%s/class/nvme", root->sys);
	n = sysfs_list(dir, sysfs_is_controller_name, names, SYSFS_MAX_CONTROLLERS, cut);
	found = calloc(n + 1, sizeof(*found));
	if (!found)
		return err_set(err, RC_NOMEM, "no memory for %zu controllers", n);
	*count = 0;
	for (size_t i = 0; i < n; i++)
		if (sysfs_controller_read(root, names[i], &found[*count], NULL) == RC_OK)
			++*count;
	add_slots(root, found, *count);
	*out = found;
	return RC_OK;
}

size_t sysfs_namespaces(const struct sysfs_root *root, const char *controller,
	struct sysfs_namespace *out, size_t max, bool *cut) {
	char entries[ENTRIES_MAX][SYSFS_NAME_SIZE], dir[SYSFS_PATH_SIZE], entry[SYSFS_PATH_SIZE];
	size_t count, n;

	path_format(dir, "%s/class/nvme/%s", root->sys, controller);
	count = sysfs_list(dir, is_namespace_entry, entries, ENTRIES_MAX, cut);
	if (count > max)
		*cut = true;
	n = count < max ? count : max;
	for (size_t i = 0; i < n; i++) {
		path_format(entry, "%s/%s", dir, entries[i]);
		name_of_head(out[i].name, entries[i]);
		out[i].nsid = (uint32_t)read_number(1, UINT32_MAX, 0, entry, "nsid");
	}
	return n;
}

bool sysfs_block_read(const struct sysfs_root *root, const char *name, struct sysfs_block *out) {
	char dir[SYSFS_PATH_SIZE], text[32];

	memset(out, 0, sizeof(*out));
	path_format(dir, "%s/class/block/%s", root->sys, name);
	out->hidden = read_number(0, 1, 0, dir, "hidden") == 1;
	if (!out->hidden &&
		(!sysfs_read(text, sizeof(text), "%s/dev", dir) ||
			sscanf(text, "%u:%u", &out->dev_major, &out->dev_minor) != 2))
		return false;
	out->size_bytes =
		(uint64_t)read_number(0, INT64_MAX / SECTOR_BYTES, 0, dir, "size") * SECTOR_BYTES;
	out->lba_bytes = (uint32_t)read_number(0, UINT32_MAX, 0, dir, "queue/logical_block_size");
	/* A partition has no queue of its own, its disk above it has. */
	if (out->lba_bytes == 0)
		out->lba_bytes =
			(uint32_t)read_number(0, UINT32_MAX, 0, dir, "../queue/logical_block_size");
	out->zoned = (sysfs_read(text, sizeof(text), "%s/queue/zoned", dir) ||
			     sysfs_read(text, sizeof(text), "%s/../queue/zoned", dir)) &&
		strcmp(text, "host-managed") == 0;
	return true;
}
