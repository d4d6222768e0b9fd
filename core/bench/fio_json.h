/*
 * fio's output file: a JSON document (json+) with fio's messages before and after it. Only an
 * opening brace that begins a line and parses as an object with `jobs` counts, the last such
 * object is the result; the rest are messages, and some of them overrule a healthy-looking
 * document.
 */
#ifndef DRIVEWATT_CORE_BENCH_FIO_JSON_H
#define DRIVEWATT_CORE_BENCH_FIO_JSON_H

#include "base/buf.h"
#include "core/bench/histogram.h"
#include "model/run.h"

#define FIO_MAX_JOBS 512 /* drives × jobs: bounds the size of the document */
#define FIO_MESSAGE_SIZE 160

enum fio_direction { FIO_READ, FIO_WRITE, FIO_DIRECTIONS };

/* Sums over the jobs of one drive and one direction. */
struct fio_sum {
	double iops, bytes_per_s; /* as the jobs say, each over its own runtime */
	int64_t bytes, ios;
	struct histogram latency; /* completion latency */
};

struct fio_drive {
	char id[DRIVE_ID_SIZE];
	unsigned jobs;      /* found in the document */
	int error;          /* errno of the first job with one, 0 none */
	int64_t runtime_ms; /* the shortest of its jobs */
	bool lost;          /* a job counts I/Os but no bytes and no time: it was killed */
	struct fio_sum sums[FIO_DIRECTIONS];
};

struct fio_report {
	bool has_document;
	size_t document_at, document_len; /* where it stands in the text */
	char version[32];
	int64_t at_ms;          /* when fio wrote it; NONE */
	unsigned jobs;          /* in the document, of whatever name */
	int got_signal;         /* a job's end by a signal, from the messages; 0 none */
	int ended_by;           /* fio's own end by a signal, likewise */
	bool has_error_line;    /* some message tells an error */
	unsigned message_count; /* all; the first RUN_MAX_WARNINGS are kept */
	char messages[RUN_MAX_WARNINGS][FIO_MESSAGE_SIZE];
	bool histograms_cut;
	unsigned drive_count;
	struct fio_drive *drives; /* owned, in the order asked for */
};

/* Reads a file of the run's directory whole, with indentation shortened to one blank and bytes
 * that no JSON may have replaced. out's maximum bounds it (RC_TOO_LARGE). RC_NOT_FOUND. */
enum rc must_check fio_read(int dir_fd, const char *name, struct buf *out, struct err *err);

/* Parses the text, in which not-a-number words are overwritten. A missing document is not an
 * error here: the report says so. RC_NOMEM. */
enum rc must_check fio_report_parse(struct buf *text, const char (*drives)[DRIVE_ID_SIZE],
	unsigned drive_count, struct fio_report *out, struct err *err);
/* More messages, from fio's standard error. */
void fio_report_add_messages(struct fio_report *r, const char *text);
void fio_report_release(struct fio_report *r);

struct fio_exit {
	int code;   /* 128 + signal when killed */
	int signal; /* 0 none */
	bool asked; /* we sent a signal */
};

/* RUN_COMPLETED, RUN_CANCELLED (we asked) or RUN_FAILED with the reason. */
enum run_state fio_verdict(const struct fio_report *r, const struct fio_exit *x,
	unsigned jobs_per_drive, char *reason, size_t size);

#endif
