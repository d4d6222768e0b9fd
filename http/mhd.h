/*
 * libmicrohttpd behind a few functions: one daemon a listener, each with its pool of loop threads.
 * Only mhd.c knows the library. What a connection brings goes to dispatch.h.
 */
#ifndef DRIVEWATT_HTTP_MHD_H
#define DRIVEWATT_HTTP_MHD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rc.h"

struct MHD_Connection;
struct MHD_Response;
struct bytes;
struct http_server;
struct http_stream;
struct mhd;

/* All listeners of a server and the watch over their connections. */
struct mhd *mhd_new(struct http_server *server, struct err *err);
/* Takes fd over when RC_OK. */
enum rc must_check mhd_listen(struct mhd *m, int fd, struct err *err);
/* New connections are refused from now on. */
void mhd_quiesce(struct mhd *m);
/* Closes all connections, of which none may be suspended. NULL is fine. */
void mhd_free(struct mhd *m);

/* NULL when absent, "" without a value. */
const char *mhd_header(struct MHD_Connection *c, const char *name);
unsigned mhd_header_count(struct MHD_Connection *c, const char *name);
/* Of several with this name; NULL when absent. */
const char *mhd_header_last(struct MHD_Connection *c, const char *name);
void mhd_peer(struct MHD_Connection *c, char *out, size_t size);

/* Only from within dispatch's steps or a stream's reader. */
void mhd_suspend(struct MHD_Connection *c);
/* Any thread; once for each mhd_suspend. */
void mhd_resume(struct MHD_Connection *c);
/* The request is here and in our hands: no deadline of the client's runs. */
void mhd_received(struct http_server *s, struct MHD_Connection *c);
/* The connection has shown good credentials. */
void mhd_known(struct http_server *s, struct MHD_Connection *c);

/* Holds a reference on bytes (NULL: no body) while it lives. NULL when memory is out. */
struct MHD_Response *mhd_response(struct bytes *bytes);
/* Takes s over, also when it fails. */
struct MHD_Response *mhd_response_stream(struct http_stream *s);
bool must_check mhd_response_header(struct MHD_Response *r, const char *name, const char *value);
void mhd_response_unref(struct MHD_Response *r);

#endif
