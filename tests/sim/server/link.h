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
/* How the database is named: by header, label of the host, or path; Quack has its `use`. */
typedef enum Naming { NAMED_BY_HEADER, NAMED_BY_HOST, NAMED_BY_PATH, NAMINGS } Naming;

/* What a connection is for; texts are borrowed. */
typedef struct Way {
    const char *db; /* NULL: the server has one only. */
    Naming naming;
    const char *token; /* "": none is shown. */
} Way;

typedef struct Link {
    LinkKind kind;
    RtSocket *socket; /* NULL: not connected. */
    Buf in;
    size_t at;             /* Of the first byte not yet used. */
    Arena arena;           /* Holds the last answer. */
    bool timed_out, ended; /* By the other side, or the network. */
    u64 patience_ns;       /* For one exchange. */
    Way way;
    bool is_pb;            /* Hrana goes as Protobuf. */
    u32 steps;             /* Of the batch whose answer comes next. */
    char refused[48];      /* Code with which the server turned us away; "": it did not. */
    char baton[BATON_MAX]; /* Of the open stream over HTTP; "": none. */
    u32 version;           /* Of Hrana: 1 to 3. */
} Link;

/* Connect and greet.  False: there is no connection now.  [parks] */
MUST_CHECK bool link_open(Link *link, LinkKind kind, const Way *way, u64 patience_ns);
/* Quack: go to another database.  False: over, or *refused_out. */
MUST_CHECK bool link_use(Link *link, const char *db, bool *refused_out);
void link_close(Link *link);

/* Send bytes as they are.  [parks] */
MUST_CHECK bool link_send(Link *link, Slice bytes);
/* Quack: the next line.  The tree lives until the next answer is read.  [parks] */
MUST_CHECK bool link_line(Link *link, const JsonNode **root_out);
/* HTTP: a POST and its whole answer; *body_out lives as above.  [parks] */
MUST_CHECK bool
link_post(Link *link, const char *path, Slice body, u32 *status_out, Slice *body_out);
/* WebSocket: a message out; the next one in; always as JSON here.  [parks] */
MUST_CHECK bool link_message_send(Link *link, Slice text);
MUST_CHECK bool link_message(Link *link, const JsonNode **root_out);
/* Parse an answer's text; what is not JSON fails the run. */
MUST_CHECK bool link_parse(Link *link, Slice text, const JsonNode **root_out);
