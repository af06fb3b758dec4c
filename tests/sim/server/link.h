/*
 * link.h -- clients of weftd inside the simulator: bytes to a server, answers from it.
 *
 * A Link is one connection that speaks Quack, Hrana over HTTP, or Hrana over a WebSocket.  It
 * knows the three protocols as strictly as a careful client does: what is not exactly an answer is
 * a failure of the run, the end of a connection is not.  Everything lives in the simulated process
 * that uses it; memory may be refused at any time.
 */
#pragma once

#include "rt/net.h"
#include "value/json.h"

#define SERVER_ADDRESS "127.0.0.1:7432"
#define BATON_MAX      128

typedef enum LinkKind { LINK_QUACK, LINK_HTTP, LINK_WS, LINK_KINDS } LinkKind;

typedef struct Link {
    LinkKind kind;
    RtSocket *socket; /* NULL: not connected. */
    Buf in;
    size_t at;             /* Of the first byte not yet used. */
    Arena arena;           /* Holds the last answer. */
    bool timed_out, ended; /* By the other side, or the network. */
    u64 patience_ns;       /* For one exchange. */
    char baton[BATON_MAX]; /* Of the open stream over HTTP; "": none. */
    u32 version;           /* Of Hrana: 1 to 3. */
} Link;

/* Connect and greet.  False: there is no connection now.  [parks] */
MUST_CHECK bool link_open(Link *link, LinkKind kind, u64 patience_ns);
void link_close(Link *link);

/* Send bytes as they are.  [parks] */
MUST_CHECK bool link_send(Link *link, Slice bytes);
/* Quack: the next line.  The tree lives until the next answer is read.  [parks] */
MUST_CHECK bool link_line(Link *link, const JsonNode **root_out);
/* HTTP: a POST and its whole answer; *body_out lives as above.  [parks] */
MUST_CHECK bool
link_post(Link *link, const char *path, Slice body, u32 *status_out, Slice *body_out);
/* WebSocket: a text message out; the next one in.  [parks] */
MUST_CHECK bool link_message_send(Link *link, Slice text);
MUST_CHECK bool link_message(Link *link, const JsonNode **root_out);
/* Parse an answer's text; what is not JSON fails the run. */
MUST_CHECK bool link_parse(Link *link, Slice text, const JsonNode **root_out);
