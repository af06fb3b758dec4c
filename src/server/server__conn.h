/*
 * server__conn.h -- one connection, and what the server keeps about it.
 *
 * A connection is IDLE (waiting for a request) or BUSY (running one).  `lock` protects state,
 * ended_by, the times and the life of `db` against the housekeeper and against cancel requests of
 * other connections; everything else belongs to the task that serves the connection.
 * Lock order: Server.lock, then Conn.lock.
 */
#pragma once

#include "rt/lock.h"
#include "rt/net.h"
#include "rt/task.h"
#include "server/server.h"
#include "weft.h"

#define CONN_KEY_BYTES   16
#define CONN_FLUSH_BYTES ((size_t)64 << 10) /* Output is sent when this much has gathered. */
#define CONN_KEEP_BYTES  ((size_t)64 << 10) /* Buffers larger than this are freed when idle. */

typedef enum ConnState { CONN_IDLE, CONN_BUSY, CONN_DONE } ConnState;
/* Why a running request was interrupted. */
typedef enum ConnEnd { END_NONE, END_CANCEL, END_TIMEOUT, END_DRAIN, END_PEER } ConnEnd;

typedef struct QuackState QuackState;

typedef struct Conn {
    struct Conn *next, *prev; /* In Server.conns, under Server.lock. */
    Server *server;
    RtSocket *socket;
    RtThread *thread;       /* NULL on loops. */
    u64 number;             /* Names the connection to people and in cancel requests. */
    u8 key[CONN_KEY_BYTES]; /* Secret half of a cancel request. */

    RtMutex lock;
    u8 state;        /* ConnState */
    u8 ended_by;     /* ConnEnd */
    u64 deadline_ns; /* BUSY: statement time limit; 0: none. */
    RtU32 stop;      /* Set with ended_by: the row loop looks at it. */
    weft_db *db;     /* Opened by the first request that needs it. */

    Buf in;               /* Bytes read and not yet used: [in_at, in.bytes). */
    size_t in_at;         /* Start of the current line. */
    size_t in_seen;       /* Bytes of the current line already searched for its end. */
    bool in_ended;        /* The peer sends no more. */
    Buf out;              /* Replies not yet sent. */
    bool closing;         /* No more requests; what `out` holds is still sent. */
    bool broken;          /* The socket failed: nothing can be sent. */
    u64 idle_deadline_ns; /* While parked. */
    bool trusted;         /* The token was given, or none is asked for. */
    QuackState *quack;
} Conn;

typedef struct ServerListener {
    Server *server;
    RtListener *listener;
    RtThread *acceptor;
} ServerListener;

struct Server {
    ServerOptions options; /* Complete; its strings are those below. */
    RtProcess *process;
    char *path, *token;
    weft_db *db; /* Keeps the store open while connections come and go. */
    ServerListener listener[SERVER_LISTENERS_MAX];
    u32 listener_count;
    RtThread *housekeeper;

    RtMutex lock; /* Protects what follows. */
    RtCond changed;
    Conn *conns; /* Live ones. */
    Conn *dead;  /* Ended; their threads are to be joined. */
    u32 conn_count;
    u64 next_number;
    bool stopping;

    RtU64 requests, errors, rows, bytes_in, bytes_out, accepted, refused;
};

/* Serve the connection: until it ends, or on a loop until it waits.  Runs on a task of its own;
   `arg` is the Conn, which ends with server__conn_ended(). */
void conn__serve(void *arg);
/* Send what `out` holds.  False: the socket is broken.  [parks] */
MUST_CHECK bool conn__flush(Conn *conn);
/* Open the session if it is not yet.  WEFT_OK or an error of weft_open (db may be set then). */
int conn__open(Conn *conn);
/* Interrupt the running request, if there is one; false when idle.  Any task. */
bool conn__interrupt(Conn *conn, ConnEnd why);

/* The connection is over: it leaves the server's list and is freed, now or after its thread. */
void server__conn_ended(Conn *conn);
/* Find connection `number` with this key and interrupt it.  False: no such connection or wrong
   key. */
bool server__cancel(Server *server, u64 number, const u8 key[CONN_KEY_BYTES]);
/* Equal, in a time that does not depend on where they differ. */
bool server__same_secret(Slice a, Slice b);
