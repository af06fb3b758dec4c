/*
 * stream.h -- Hrana streams over HTTP: found again by the baton that the last answer carried.
 *
 * A stream is IDLE between requests and BUSY during one.  A baton is the stream's number and a
 * random secret that changes with every answer, so it cannot be guessed or used twice.  Nobody
 * comes back in time: the stream is closed, its number remembered a while for a better answer.
 */
#pragma once

#include "server/hrana/hrana.h"

#define BATON_BYTES 48

typedef struct Stream Stream;
struct Stream {
    Stream *next; /* In its bucket. */
    u64 id;
    u8 secret[16];
    u8 state;
    u64 expires_ns;
    Seat *seat; /* NULL: it has expired. */
    HranaStore store;
};

typedef enum BatonResult { BATON_OK, BATON_INVALID, BATON_USED, BATON_EXPIRED } BatonResult;

MUST_CHECK Err stream__init(Server *server);
void stream__free(Server *server);
/* A new BUSY stream.  NULL: *fault; name "LIMIT" when there are too many. */
Stream *stream__open(ServedDb *db, SeatRights rights, const char *peer, Fault *fault);
/* The stream of a baton, BUSY from now on. */
BatonResult stream__find(Server *server, Slice baton, const ServedDb *db, SeatRights rights,
                         Stream **stream_out);
/* A new baton for the next request. */
void stream__baton(Stream *stream, char baton_out[BATON_BYTES]);
/* IDLE: whoever has the baton may come. */
void stream__rest(Server *server, Stream *stream);
/* Roll back and forget. */
void stream__close(Server *server, Stream *stream);
/* Close the streams that nobody came back for; `all`: every idle one. */
void stream__expire(Server *server, u64 now_ns, bool all);
u32 stream__count(Server *server);
