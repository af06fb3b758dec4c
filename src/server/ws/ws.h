/*
 * ws.h -- Hrana over a WebSocket: many streams on one connection, each with its own task.
 *
 * The connection's task reads messages and does at once what concerns the whole connection: hello,
 * stored SQL, opening streams.  Everything else is queued on its stream; a stream with a queue has
 * a fiber of its own until the queue is empty, so that one that waits for a row holds up nobody.
 * Streams touch nothing of the Conn but its socket.
 *
 * `lock` protects streams, cursors, queues and counts.  `out_lock` protects `out` and is held
 * across the write, so that frames do not mix; it is taken alone.
 */
#pragma once

#include "rt/lock.h"
#include "server/hrana/hrana.h"
#include "server/http/http.h"
#include "server/ws/frame.h"

#define WS_PENDING_MAX 1000u
#define WS_STORED_MAX  150u
#define WS_STREAMS_MAX 1000u

/* One request, with all that it needs. */
typedef struct WsJob {
    struct WsJob *next;
    Server *server;
    u64 held; /* Of its budget, for a long message. */
    Arena arena;
    HranaMsg msg;
} WsJob;

typedef struct WsCursor {
    struct WsCursor *next;
    i32 id;
    bool open;
    HranaCursor cursor;
    WsJob *job; /* Holds the batch. */
} WsCursor;

typedef struct WsStream {
    struct WsStream *next;
    Conn *conn;
    i32 id;
    Seat *seat; /* NULL: it could not be opened, or is closed. */
    WsJob *first, *last;
    bool running;
    RtThread *thread;  /* Without loops: of its last task; joined before the next one. */
    WsCursor *cursors; /* At most one is open. */
} WsStream;

struct Ws {
    RtMutex lock;
    RtCond changed;
    WsStream *streams;
    u32 stream_count;
    u32 pending;    /* Requests without an answer. */
    u32 running;    /* Streams with a task. */
    bool ending;    /* What begins from now on is interrupted. */
    WsStream *gone; /* Closed ones whose thread is to be joined. */

    u8 version;
    bool is_pb;
    bool greeted; /* hello_ok was sent. */
    bool refused; /* hello_error was sent. */
    SeatRights rights;
    ServedDb *db;
    char database[DB_NAME_BYTES];
    HranaStore store;

    Buf message; /* Fragments so far. */
    u8 opcode;   /* Of their first. */
    bool in_message;

    RtMutex out_lock;
    Buf out;
    bool close_sent;
    bool failed; /* The socket is broken, or memory was short: nothing more is sent. */
};

/* Answer the upgrade of a complete request. */
void ws__accept(Conn *conn);

/* wire.c */
void ws__send(Conn *conn, u8 opcode, Slice payload);
void ws__flush(Conn *conn);
void ws__close(Conn *conn, u32 code, const char *reason);
/* A close frame was sent, or nothing can be: the connection is to end. */
bool ws__over(Ws *ws);
void ws__reply_ok(Conn *conn, const WsJob *job, Seat *seat, bool *good_out);
void ws__reply_error(Conn *conn, i32 request_id, const Fault *fault);
void ws__reply_hello(Conn *conn, const Fault *fault);
void ws__reply_entries(Conn *conn, const WsJob *job, const Buf *entries, u32 count, bool done);

/* stream.c */
/* Queue a job on its stream, or answer it; takes the job over.  ERR_SQL: the protocol is broken. */
MUST_CHECK Err ws__dispatch(Conn *conn, WsJob *job, HranaError *error);
/* Interrupt what runs, wait for it, close all streams.  [parks] */
void ws__streams_end(Conn *conn);
bool ws__in_transaction(const Ws *ws);
void ws__job_free(WsJob *job);
