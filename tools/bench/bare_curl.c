/*
 * The ceiling that drivewatt's polling is measured against: libcurl alone, one handle a BMC, each
 * asked again as soon as it answered, every answer parsed.
 *
 *   bare_curl PORT BMCS SECONDS
 *
 * Asks the BMCs of bmc_fleet.c. Prints polls a second and microseconds of processor time a poll,
 * counted once all connections stand.
 */
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ANSWER_MAX 16384

struct bmc {
	CURL *easy;
	size_t used, polls;
	char answer[ANSWER_MAX];
};

static double seconds(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg) {
	struct bmc *b = arg;
	if (b->used + size * n > ANSWER_MAX)
		return 0;
	memcpy(b->answer + b->used, data, size * n);
	b->used += size * n;
	return size * n;
}

static void make(struct bmc *b, unsigned i, const char *port, struct curl_slist *headers) {
	char url[128];
	snprintf(url, sizeof(url), "https://127.1.%u.%u:%s/redfish/v1/Chassis/1/EnvironmentMetrics",
		i / 250, i % 250 + 1, port);
	b->easy = curl_easy_init();
	curl_easy_setopt(b->easy, CURLOPT_URL, url);
	curl_easy_setopt(b->easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(b->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(b->easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(b->easy, CURLOPT_SSL_VERIFYHOST, 0L);
	curl_easy_setopt(b->easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
	curl_easy_setopt(b->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(b->easy, CURLOPT_WRITEDATA, b);
	curl_easy_setopt(b->easy, CURLOPT_PRIVATE, b);
}

/* How many answers were good; all are asked again. */
static size_t finish(CURLM *multi) {
	CURLMsg *msg;
	int left;
	size_t good = 0;
	while ((msg = curl_multi_info_read(multi, &left))) {
		struct bmc *b = NULL;
		CURL *easy = msg->easy_handle;
		CURLcode code = msg->data.result;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, &b);
		curl_multi_remove_handle(multi, easy);
		json_t *doc = json_loadb(b->answer, b->used, 0, NULL);
		json_t *watts = json_object_get(json_object_get(doc, "PowerWatts"), "Reading");
		good += !code && json_is_number(watts);
		b->polls += !code;
		json_decref(doc);
		b->used = 0;
		curl_multi_add_handle(multi, easy);
	}
	return good;
}

static size_t poll_until(CURLM *multi, double end_s) {
	size_t good = 0;
	int running;
	while (seconds(CLOCK_MONOTONIC) < end_s) {
		curl_multi_perform(multi, &running);
		good += finish(multi);
		curl_multi_poll(multi, NULL, 0, 100, NULL);
	}
	return good;
}

int main(int argc, char **argv) {
	size_t count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	double span_s = argc == 4 ? strtod(argv[3], NULL) : 0;
	struct bmc *all = calloc(count, sizeof(*all));
	CURLM *multi = curl_multi_init();
	struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");
	headers = curl_slist_append(headers, "X-Auth-Token: 0123456789abcdef");
	if (!count || !all || !multi || !headers)
		return 2;
	for (size_t i = 0; i < count; i++) {
		make(&all[i], (unsigned)i, argv[1], headers);
		curl_multi_add_handle(multi, all[i].easy);
	}
	for (size_t i = 0; i < count; i++) {
		while (!all[i].polls)
			poll_until(multi, seconds(CLOCK_MONOTONIC) + 0.1);
	}
	double begin_s = seconds(CLOCK_MONOTONIC), cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
	size_t good = poll_until(multi, begin_s + span_s);
	double per_s = (double)good / (seconds(CLOCK_MONOTONIC) - begin_s);
	printf("%.0f %.1f\n", per_s, (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s) * 1e6 / (double)good);
	return 0;
}
