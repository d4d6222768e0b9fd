/*
 * The test's hand in the bed:
 *   bedctl init COUNT          makes $BED_STATE, prints "serial nqn cntlid firmware model" a drive
 *   bedctl get DRIVE FIELD
 *   bedctl set DRIVE FIELD VALUE
 *   bedctl twin DRIVE OTHER    makes it a second controller of the other's subsystem
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/bed/bed_state.h"

#define FIELD(name) \
	{ #name, offsetof(struct nvme_model, name), sizeof(((struct nvme_model *)0)->name) }

static const struct {
	const char *name;
	size_t offset, size;
} fields[] = {
	FIELD(power),
	FIELD(power_fixed),
	FIELD(namespaces),
	FIELD(has_limit),
	FIELD(limit_forbids),
	FIELD(limit),
	FIELD(has_ocp),
	FIELD(ocp_watts),
	FIELD(measures),
	FIELD(average),
	FIELD(energy_wh),
	FIELD(nmic),
	FIELD(reservable),
	FIELD(long_host_ids),
	FIELD(reservation),
	FIELD(registrants),
	FIELD(temperature_k),
	FIELD(critical_warning),
	FIELD(data_read),
	FIELD(data_written),
	FIELD(power_on_h),
	FIELD(fail_errno),
	FIELD(fail_status),
	FIELD(hang),
	FIELD(hang_look),
	FIELD(commands),
};

static void die(const char *what) {
	fprintf(stderr, "bedctl: %s\n", what);
	exit(1);
}

static struct bed_state *map_state(int flags, int *fd) {
	const char *path = getenv(BED_STATE_VARIABLE);
	void *p;

	*fd = path ? open(path, O_RDWR | O_CLOEXEC | flags, 0666) : -1;
	if (*fd < 0 || flock(*fd, LOCK_EX) != 0 || ftruncate(*fd, sizeof(struct bed_state)) != 0)
		die("no state, see " BED_STATE_VARIABLE);
	p = mmap(NULL, sizeof(struct bed_state), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static unsigned long number(const char *text, unsigned long max) {
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno || end == text || *end || v > max)
		die("not a number in range");
	return v;
}

static void init(unsigned count) {
	int fd;
	struct bed_state *s = map_state(O_CREAT, &fd);

	s->magic = BED_MAGIC;
	s->count = count;
	for (unsigned i = 0; i < count; i++) {
		const struct nvme_model *m = &s->drives[i];

		nvme_model_init(&s->drives[i], i);
		printf("%s %s %u %s %s\n", m->serial, m->subsystem_nqn, m->cntlid, m->firmware,
			m->model);
	}
}

static void *field_of(struct bed_state *s, const char *drive, const char *name, size_t *size) {
	unsigned long i;

	if (s->magic != BED_MAGIC)
		die("not a bed's state");
	i = number(drive, s->count - 1);
	for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
		if (strcmp(fields[f].name, name) == 0) {
			*size = fields[f].size;
			return (char *)&s->drives[i] + fields[f].offset;
		}
	die("no such field");
	return NULL;
}

/* Little-endian machines only, as the bed itself. */
static void get(const char *drive, const char *name) {
	int fd;
	size_t size;
	uint64_t v = 0;
	const void *field = field_of(map_state(0, &fd), drive, name, &size);

	memcpy(&v, field, size);
	printf("%" PRIu64 "\n", v);
}

static void set(const char *drive, const char *name, const char *value) {
	int fd;
	size_t size;
	uint64_t v = number(value, UINT32_MAX);
	void *field = field_of(map_state(0, &fd), drive, name, &size);

	memcpy(field, &v, size);
}

static void twin(const char *drive, const char *other) {
	int fd;
	struct bed_state *s = map_state(0, &fd);
	struct nvme_model *m = &s->drives[number(drive, s->count - 1)];
	const struct nvme_model *o = &s->drives[number(other, s->count - 1)];

	memcpy(m->serial, o->serial, sizeof(m->serial));
	memcpy(m->subsystem_nqn, o->subsystem_nqn, sizeof(m->subsystem_nqn));
	printf("%s %s\n", m->serial, m->subsystem_nqn);
}

int main(int argc, char **argv) {
	if (argc == 3 && strcmp(argv[1], "init") == 0)
		init((unsigned)number(argv[2], BED_MAX_DRIVES));
	else if (argc == 4 && strcmp(argv[1], "get") == 0)
		get(argv[2], argv[3]);
	else if (argc == 5 && strcmp(argv[1], "set") == 0)
		set(argv[2], argv[3], argv[4]);
	else if (argc == 4 && strcmp(argv[1], "twin") == 0)
		twin(argv[2], argv[3]);
	else
		die("init COUNT | get DRIVE FIELD | set DRIVE FIELD VALUE | twin DRIVE OTHER");
	return 0;
}
