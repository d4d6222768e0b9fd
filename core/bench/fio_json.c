#include "core/bench/fio_json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "model/quality.h"

#define READ_CHUNK 65536
/* Lines that begin with a brace and are no document make a scan of the rest each. */
#define MAX_CANDIDATES 64

/* --- reading --------------------------------------------------------------------------------- */

/* fio indents each bin by 14 bytes and more: most of a large document is blanks. One blank is
 * kept, since a brace at the very start of a line means a document. */
static void add_squeezed(struct buf *out, const char *chunk, size_t len, bool *indent, char *last) {
	for (size_t i = 0; i < len; i++) {
		char c = chunk[i];
		bool blank = c == ' ' || c == '\t';
		if (*indent && blank && *last == ' ')
			continue;
		*indent = c == '\n' || (*indent && blank);
		*last = blank ? ' ' : c;
		buf_addc(out, (unsigned char)c < 0x80 && c ? *last : '?');
	}
}

enum rc fio_read(int dir_fd, const char *name, struct buf *out, struct err *err) {
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(err, errno, name);
	auto_free char *chunk = malloc(READ_CHUNK);
	if (!chunk)
		return err_set(err, RC_NOMEM, "out of memory");
	bool indent = true;
	char last = '\n';
	ssize_t n;
	while ((n = read(fd, chunk, READ_CHUNK)) > 0 && !out->failed)
		add_squeezed(out, chunk, (size_t)n, &indent, &last);
	if (n < 0)
		return err_errno(err, errno, name);
	return buf_status(out, err);
}

/* --- repair ---------------------------------------------------------------------------------- */

static size_t not_a_number_length(const char *s) {
	static const char *const words[] = {"-nan", "-inf", "nan", "inf"};
	for (size_t i = 0; i < array_len(words); i++) {
		size_t n = strlen(words[i]);
		if (strncmp(s, words[i], n) == 0 && !isalnum((unsigned char)s[n]))
			return n;
	}
	return 0;
}

/* fio prints the mean of nothing as -nan, which no parser takes. An empty string fits in its
 * place and is no number to the reader either. */
static void repair_numbers(char *s) {
	bool quoted = false;
	for (; *s; s++) {
		if (*s == '\n')
			quoted = false; /* a message may hold a lone quote, a JSON string no line
					   end */
		else if (*s == '\\' && quoted && s[1])
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted) {
			size_t n = not_a_number_length(s);
			if (n == 0)
				continue;
			memset(s, ' ', n);
			s[0] = s[1] = '"';
			s += n - 1;
		}
	}
}

/* --- the document ---------------------------------------------------------------------------- */

static json_t *parse_document(const char *text, size_t len, size_t *used) {
	json_error_t at;
	/* 2^64-1 stands in real documents and would lose the whole of it as an integer. */
	json_t *doc = json_loadb(text, len, JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL, &at);
	*used = (size_t)at.position;
	if (doc && json_is_array(json_object_get(doc, "jobs")))
		return doc;
	json_decref(doc);
	return NULL;
}

/* From the end, since the last document wins. */
static json_t *find_document(const struct buf *text, struct fio_report *r) {
	unsigned candidates = 0;
	for (size_t at = text->len; at-- > 0 && candidates < MAX_CANDIDATES;) {
		if (text->data[at] != '{' || (at > 0 && text->data[at - 1] != '\n'))
			continue;
		candidates++;
		json_t *doc = parse_document(text->data + at, text->len - at, &r->document_len);
		r->document_at = at;
		if (doc)
			return doc;
	}
	return NULL;
}

static double number(const json_t *object, const char *key) {
	double v = json_number_value(json_object_get(object, key));
	/* No figure of fio that is read here is negative, and those of all jobs must add up. */
	return v > 0 && v < 1e16 ? v : 0;
}

static bool add_bins(struct histogram *h, json_t *bins) {
	bool whole = true;
	const char *key;
	json_t *value;
	json_object_foreach(bins, key, value) {
		char *end;
		unsigned long long ns = strtoull(key, &end, 10);
		double count = json_number_value(value);
		if (end == key || *end || !(count > 0) || count > 9e18)
			continue;
		whole &= histogram_add(h, ns, (uint64_t)count);
	}
	return whole;
}

static bool add_direction(struct fio_sum *sum, const json_t *dir) {
	const json_t *latency = json_object_get(dir, "clat_ns");
	sum->iops += number(dir, "iops");
	sum->bytes_per_s += number(dir, "bw_bytes");
	sum->bytes += (int64_t)number(dir, "io_bytes");
	sum->ios += (int64_t)number(dir, "total_ios");
	if (number(latency, "N") > 0)
		histogram_add_summary(&sum->latency, number(latency, "mean"), number(latency, "N"),
			number(latency, "max"));
	return add_bins(&sum->latency, json_object_get(latency, "bins"));
}

static const char *const direction_names[FIO_DIRECTIONS] = {
	[FIO_READ] = "read", [FIO_WRITE] = "write"};

static void add_job(struct fio_report *r, struct fio_drive *drive, const json_t *job) {
	double ios = 0, bytes = 0, runtime = number(job, "job_runtime");
	for (int d = 0; d < FIO_DIRECTIONS; d++) {
		const json_t *dir = json_object_get(job, direction_names[d]);
		ios += number(dir, "total_ios");
		bytes += number(dir, "io_bytes");
		if (runtime < number(dir, "runtime"))
			runtime = number(dir, "runtime");
		if (!add_direction(&drive->sums[d], dir))
			r->histograms_cut = true;
	}
	drive->lost |= ios > 0 && bytes <= 0;
	if (!drive->error)
		drive->error = (int)fmin(number(job, "error"), INT_MAX);
	if (drive->jobs++ == 0 || (int64_t)runtime < drive->runtime_ms)
		drive->runtime_ms = (int64_t)runtime;
}

static struct fio_drive *find_drive(struct fio_report *r, const char *name) {
	for (unsigned i = 0; name && i < r->drive_count; i++) {
		if (strcmp(r->drives[i].id, name) == 0)
			return &r->drives[i];
	}
	return NULL;
}

static void take_document(struct fio_report *r, const json_t *doc) {
	const char *version = json_string_value(json_object_get(doc, "fio version"));
	double at_ms = number(doc, "timestamp_ms");
	r->has_document = true;
	snprintf(r->version, sizeof(r->version), "%.31s", version ? version : "");
	r->at_ms = at_ms > 0 ? (int64_t)at_ms : NONE;

	size_t i;
	json_t *job;
	json_array_foreach(json_object_get(doc, "jobs"), i, job) {
		const char *name = json_string_value(json_object_get(job, "jobname"));
		struct fio_drive *drive = find_drive(r, name);
		r->jobs++;
		if (drive)
			add_job(r, drive, job);
	}
}

/* --- messages -------------------------------------------------------------------------------- */

static int number_after(const char *line, const char *words) {
	const char *at = strstr(line, words);
	long n = at ? strtol(at + strlen(words), NULL, 10) : 0;
	return n > 0 && n < 128 ? (int)n : 0;
}

/* What an engine says of itself when all is well. */
static bool is_chatter(const char *line) {
	return strcmp(line, "fio: connected to NBD server") == 0;
}

static void take_message(struct fio_report *r, const char *line) {
	if (is_chatter(line))
		return;
	if (!r->got_signal)
		r->got_signal = number_after(line, "got signal=");
	if (!r->ended_by)
		r->ended_by = number_after(line, "terminating on signal ");
	r->has_error_line |= strncmp(line, "fio: ", 5) == 0 && strstr(line, "err=");
	if (r->message_count < RUN_MAX_WARNINGS)
		snprintf(r->messages[r->message_count], FIO_MESSAGE_SIZE, "%s", line);
	r->message_count++;
}

void fio_report_add_messages(struct fio_report *r, const char *text) {
	while (*text) {
		size_t n = strcspn(text, "\r\n");
		char line[FIO_MESSAGE_SIZE];
		snprintf(line, sizeof(line), "%.*s", n < sizeof(line) ? (int)n : (int)sizeof(line),
			text);
		/* The document's own lines begin with a brace or a blank. */
		if (n > 0 && !strchr(" \t{}", line[0]))
			take_message(r, line);
		text += n;
		text += strspn(text, "\r\n");
	}
}

enum rc fio_report_parse(struct buf *text, const char (*drives)[DRIVE_ID_SIZE],
	unsigned drive_count, struct fio_report *out, struct err *err) {
	*out = (struct fio_report){.at_ms = NONE, .drive_count = drive_count};
	out->drives = calloc(drive_count ? drive_count : 1, sizeof(out->drives[0]));
	if (!out->drives)
		return err_set(err, RC_NOMEM, "out of memory");
	for (unsigned i = 0; i < drive_count; i++)
		str_copy(out->drives[i].id, sizeof(out->drives[i].id), drives[i]);
	fio_report_add_messages(out, buf_str(text));
	if (text->len == 0)
		return RC_OK;
	repair_numbers(text->data);
	json_t *doc = find_document(text, out);
	if (doc)
		take_document(out, doc);
	json_decref(doc);
	return RC_OK;
}

void fio_report_release(struct fio_report *r) {
	free(r->drives);
	r->drives = NULL;
	r->drive_count = 0;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static enum run_state failed(char *reason, size_t size, const char *fmt, ...) printf_like(3, 4);
static enum run_state failed(char *reason, size_t size, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, size, fmt, ap);
	va_end(ap);
	return RUN_FAILED;
}

static const struct fio_drive *first_with_error(const struct fio_report *r) {
	for (unsigned i = 0; i < r->drive_count; i++) {
		if (r->drives[i].error)
			return &r->drives[i];
	}
	return NULL;
}

static bool some_job_lost(const struct fio_report *r) {
	for (unsigned i = 0; i < r->drive_count; i++) {
		if (r->drives[i].lost)
			return true;
	}
	return false;
}

static bool some_job_missing(const struct fio_report *r, unsigned jobs_per_drive) {
	for (unsigned i = 0; i < r->drive_count; i++) {
		if (r->drives[i].jobs != jobs_per_drive)
			return true;
	}
	return r->jobs != r->drive_count * jobs_per_drive;
}

enum run_state fio_verdict(const struct fio_report *r, const struct fio_exit *x,
	unsigned jobs_per_drive, char *reason, size_t size) {
	const struct fio_drive *bad = first_with_error(r);
	const char *message = r->message_count ? r->messages[0] : "it said nothing";

	snprintf(reason, size, "%s", "");
	if (x->asked)
		return RUN_CANCELLED;
	if (x->signal)
		return failed(reason, size, "fio was ended by signal %d", x->signal);
	if (r->got_signal)
		return failed(reason, size, "a job of fio was ended by signal %d", r->got_signal);
	if (r->ended_by)
		return failed(reason, size, "fio was ended by signal %d", r->ended_by);
	if (bad)
		return failed(reason, size, "drive %s: %s (error %d): %s", bad->id,
			strerror(bad->error), bad->error, message);
	if (!r->has_document)
		return failed(
			reason, size, "fio gave no result (exit code %d): %s", x->code, message);
	if (x->code)
		return failed(reason, size, "fio ended with exit code %d: %s", x->code, message);
	if (r->has_error_line)
		return failed(reason, size, "fio told an error: %s", message);
	if (some_job_missing(r, jobs_per_drive))
		return failed(reason, size, "fio reports %u jobs, %u were asked for", r->jobs,
			r->drive_count * jobs_per_drive);
	if (some_job_lost(r))
		return failed(reason, size, "a job of fio ended without a result");
	return RUN_COMPLETED;
}
