/*
 * server__conn.h -- one connection, and what the server keeps about it.
 *
 * A connection speaks one of the protocols below, chosen by its first bytes.  A protocol is a table
 * of functions; conn.c brings bytes and takes replies.  A connection has a task only while it
 * has something to do: `lock` protects `busy` and the life of `seat` against the drain; everything
 * else belongs to that task, except `out` of a WebSocket, which its streams share under
 * `write_lock`. Lock order: Server.lock, then Conn.lock.
 */
#pragma once

#include "server/seat.h"
#include "value/func.h"

#define CONN_KEY_BYTES   16
#define CONN_FLUSH_BYTES ((size_t)64 << 10) /* Output is sent when this much has gathered. */
#define CONN_KEEP_BYTES  ((size_t)64 << 10) /* Buffers larger than this are freed when idle. */

typedef struct Conn Conn;
typedef struct QuackState QuackState;
typedef struct Http Http;
typedef struct Ws Ws;
typedef struct Tls Tls;
typedef struct TlsContext TlsContext;
typedef struct Stream Stream;

typedef struct Protocol {
    const char *name;
    /* Use the input from in_at on, as far as it goes; append replies. */
    void (*run)(Conn *conn);
    /* How long to wait for more now. */
    u64 (*wait_ns)(const Conn *conn);
    /* It did not come.  True: go on all the same (the time starts again). */
    bool (*late)(Conn *conn);
    /* The connection ends: roll back, free the protocol's state. */
    void (*end)(Conn *conn);
} Protocol;
extern const Protocol protocol_sniff, protocol_quack, protocol_http, protocol_ws;

struct Conn {
    Conn *next, *prev; /* In Server.conns, under Server.lock. */
    Server *server;
    RtSocket *socket;
    RtThread *thread;       /* NULL on loops. */
    u64 number;             /* Names the connection to people and in cancel requests. */
    u8 key[CONN_KEY_BYTES]; /* Secret half of a cancel request. */

    RtMutex lock;
    u32 busy;   /* Requests that run: the drain lets them finish. */
    Seat *seat; /* Of a Quack connection; changed under lock. */

    const Protocol *protocol;
    Tls *tls;             /* NULL: not encrypted. */
    Buf in;               /* Bytes read and not yet used: [in_at, in.bytes). */
    size_t in_at;         /* Start of the current line or message. */
    size_t in_seen;       /* Bytes of it already looked at. */
    bool in_ended;        /* The peer sends no more. */
    bool full;            /* There is no memory for more input. */
    u64 in_held;          /* Of the server's budget, for `in`. */
    Buf out;              /* Replies not yet sent. */
    bool closing;         /* No more requests; what `out` holds is still sent. */
    bool broken;          /* The socket failed: nothing can be sent. */
    bool trusted;         /* Quack: the token was given, or none is asked for. */
    SeatRights rights;    /* Quack: by that token. */
    u64 wait_deadline_ns; /* While parked. */
    u64 wait_since_ns;    /* When the present wait began: first byte of a head, end of a request. */

    QuackState *quack;
    Http *http;
    Ws *ws;
};

typedef struct ServerListener {
    Server *server;
    RtListener *listener;
    RtThread *acceptor;
} ServerListener;

#define HISTOGRAM_BUCKETS 28 /* Two an octave from 1 us on: up to 11 s. */
typedef struct Histogram {
    RtU64 bucket[HISTOGRAM_BUCKETS];
    RtU64 sum_ns;
} Histogram;

typedef enum Counter {
    COUNT_CONNECTIONS,
    COUNT_REFUSED,
    COUNT_REQUESTS,
    COUNT_ERRORS,
    COUNT_ROWS,
    COUNT_BYTES_IN,
    COUNT_BYTES_OUT,
    COUNT_AUTH_FAILED,
    COUNT_SLOW,
    COUNT_TIMEOUTS,
    COUNT_STALE,
    COUNT_STREAMS_EXPIRED,
    COUNT_QUACK,
    COUNT_HTTP,
    COUNT_WEBSOCKET,
    COUNT_TLS,
    COUNTERS
} Counter;

struct Server {
    ServerOptions options; /* Complete. */
    RtProcess *process;
    ServerListener listener[SERVER_LISTENERS_MAX];
    u32 listener_count;
    RtThread *housekeeper;
    struct Auth *auth;
    TlsContext *tls; /* Changed by a reload, under `lock`. */
    u64 started_ns;

    RtMutex lock; /* Protects what follows. */
    RtCond changed;
    Conn *conns; /* Live ones. */
    Conn *dead;  /* Ended; their threads are to be joined. */
    u32 conn_count;
    u64 next_number;
    bool stopping;
    Seat *seats;
    u32 seat_count;
    ServedDb *databases;

    struct StreamTable *streams;
    FuncTable functions; /* Built-in ones and show.c's. */
    RtU32 draining;      /* No request after the present one. */
    RtU64 held_bytes;    /* Of answers not yet sent. */
    RtU64 count[COUNTERS];
    Histogram statements[STMT_KIND_COUNT_];
};

/* Serve the connection: until it ends, or on a loop until it waits.  Runs on a task of its own;
   `arg` is the Conn, which ends with server__conn_ended(). */
void conn__serve(void *arg);
/* Change the protocol; run of the new one comes next, on the same input. */
void conn__switch(Conn *conn, const Protocol *protocol);
/* Send what `out` holds.  False: the socket is broken.  [parks] */
MUST_CHECK bool conn__flush(Conn *conn);
/* Send bytes, past `out`; touches nothing of the connection but its socket: for tasks that share
   it. [parks] */
MUST_CHECK bool conn__send(const Conn *conn, const void *bytes, size_t count);
/* Send bytes after what `out` holds.  [parks] */
MUST_CHECK bool conn__write(Conn *conn, const void *bytes, size_t count);
/* A request begins (+1) or ends (-1). */
void conn__busy(Conn *conn, i32 change);
Slice conn__input(const Conn *conn);

/* The connection is over: it leaves the server's list and is freed, now or after its thread. */
void server__conn_ended(Conn *conn);
/* Find the Quack connection `number` with this key and interrupt it.  False: no such connection or
   wrong key. */
bool server__cancel(Server *server, u64 number, const u8 key[CONN_KEY_BYTES]);
static inline void
server__count(Server *server, Counter counter, u64 n)
{
    rt_fetch_add(&server->count[counter], n);
}
/* Take or give back room for an answer that is held in memory; false: there is none. */
bool server__hold(Server *server, u64 bytes);
void server__release(Server *server, u64 bytes);
