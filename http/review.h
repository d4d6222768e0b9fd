#ifndef DRIVEWATT_HTTP_REVIEW_H
#define DRIVEWATT_HTTP_REVIEW_H

#define REVIEW_PERIOD_MS 1000

/* For a timer: where accounts changed or a token expired, has a worker end the streams of those
 * whose credentials do not hold any more. server: struct http_server. */
void review_streams(void *server);

#endif
