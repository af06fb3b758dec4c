/*
 * route.h -- answers of the server itself; the rest of http/ needs only http.h.
 */
#pragma once

#include "server/http/http.h"

/* metrics.c: the text of /metrics. */
MUST_CHECK Err metrics__write(Server *server, Buf *out);
