/*
 * http.h -- HTTP/1.1 as a protocol of conn.c: heads by llhttp, bodies by us, one request at a time.
 *
 * A request is complete before it is handled; its parts are slices of the connection's input (a
 * chunked body: of `body`).  Http exists only while a request is coming in or running.
 */
#pragma once

#include <llhttp.h>

#include "server/auth.h"
#include "server/server__conn.h"

#define HTTP_HEAD_BYTES_MAX ((size_t)32 << 10)
#define HTTP_HEADERS_MAX    100u
#define HTTP_DECODE_FACTOR  4u /* Memory for a message's tree, as a multiple of its bytes. */

typedef enum HttpHeader {
    HEADER_HOST,
    HEADER_ORIGIN,
    HEADER_AUTHORIZATION,
    HEADER_TRANSFER_ENCODING,
    HEADER_EXPECT,
    HEADER_NAMESPACE,
    HEADER_CONNECTION,
    HEADER_UPGRADE,
    HEADER_WS_KEY,
    HEADER_WS_VERSION,
    HEADER_WS_PROTOCOL,
    HEADER_REQUEST_METHOD,
    HEADER_REQUEST_HEADERS,
    HEADERS,
    HEADER_OTHER = HEADERS
} HttpHeader;

typedef struct HttpSpan {
    u32 at, bytes; /* From the request's first byte on. */
    u32 count;     /* How often the header stood there; its last value counts. */
} HttpSpan;

typedef enum HttpState { HTTP_IN_HEAD, HTTP_IN_BODY, HTTP_IN_CHUNKS, HTTP_COMPLETE } HttpState;

struct Http {
    llhttp_t parser;
    u8 state; /* HttpState */
    u8 name_bytes;
    char name[32]; /* Of the header at hand; longer ones are none of ours. */
    bool in_value; /* The last span was a value. */
    u8 header;     /* HttpHeader of `name`. */
    u32 header_count;
    HttpSpan url, value[HEADERS];
    const u8 *base;  /* First byte of the request during llhttp_execute(). */
    u32 head_bytes;  /* Known when the head is complete. */
    u64 body_bytes;  /* Content-Length */
    size_t chunk_at; /* Next byte of a chunked body, from the request's first. */
    u64 chunk_left;  /* Of the present chunk. */
    u8 chunk_state;
    bool continued; /* 100 Continue was sent. */
    Buf body;       /* A chunked body, put together. */

    /* Complete requests: */
    u8 method; /* llhttp_method_t */
    bool keep_alive;
    bool is_http_10;
    Slice path, query;
    Slice body_slice;
    bool cors; /* The origin is one of those that may read answers. */
    bool chunked_reply;
};

/* A header's value; an empty slice if it is not there. */
Slice http__header(const Conn *conn, HttpHeader header, bool *given_out);
/* Answer.  `type` NULL: no body.  `extra`: more header lines, each with CRLF. */
void http__reply(Conn *conn, int status, const char *type, Slice body, const char *extra);
void http__reply_text(Conn *conn, int status, const char *text);
/* {"message": ..., "code": ...} */
void http__reply_error(Conn *conn, int status, const char *code, const char *text);
/* An answer whose length is not known.  Chunks are sent at once; empty ones are skipped. */
void http__stream_begin(Conn *conn, const char *type);
bool http__stream(Conn *conn, Slice bytes);
void http__stream_end(Conn *conn);

/* Parse what is there of the request.  OK: state says how far; ERR_SQL: *status_out is the answer.
   Works on conn->in from in_at on; for the fuzzer too. */
MUST_CHECK Err http__parse(Conn *conn, int *status_out);
/* Forget the request: its bytes are used. */
void http__reset(Conn *conn);

/* route.c: a complete request to whom it concerns. */
void http__route(Conn *conn);
/* The name of the database that a request is for. */
Slice route__database(Conn *conn);
