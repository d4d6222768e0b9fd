/* fio's output file, whatever may stand in it. */
#include <stdint.h>

#include "core/bench/eta.h"
#include "core/bench/fio_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const char drives[][DRIVE_ID_SIZE] = {"w", "driveA"};
	struct fio_report r;
	struct buf text;
	struct eta eta;
	char reason[256];
	buf_init(&text, 1024 * 1024);
	buf_add(&text, data, size);
	eta_parse(buf_str(&text), text.len, &eta);
	if (fio_report_parse(&text, drives, array_len(drives), &r, NULL) == RC_OK) {
		const struct fio_exit x = {0, 0, false};
		struct run_latency l;
		fio_verdict(&r, &x, 2, reason, sizeof(reason));
		histogram_latency(&r.drives[0].sums[FIO_READ].latency, 1, &l);
	}
	fio_report_release(&r);
	buf_release(&text);
	return 0;
}
