/*
 * server.h -- weftd as a library: listeners, connections, limits, draining.
 *
 * One server serves one database file.  A connection is a small object; its requests run one after
 * the other on a task.  Everything a server owns hangs on the Server, so several may exist in one
 * program (tests, the simulator).
 *
 * Life: server_start() -> clients come and go -> server_stop() (drains) -> server_free().
 */
#pragma once

#include "base/base.h"
#include "rt/process.h"

#define SERVER_LISTENERS_MAX 8

/* Zero means the default that the comment gives; times in nanoseconds. */
typedef struct ServerOptions {
    const char *path; /* Database file. */
    bool create;      /* Make it if it is missing. */
    i32 sync;         /* weft.h: WEFT_SYNC_* */
    u64 pool_bytes;
    const char *listen[SERVER_LISTENERS_MAX]; /* Addresses as in rt/net.h; "unix:PATH" too. */
    u32 listen_count;
    const char *token;          /* NULL: none asked for, and only loopback addresses allowed. */
    u32 connections_max;        /* 2,000 */
    u32 handles_max;            /* Prepared statements a connection: 256. */
    u64 line_bytes_max;         /* A request line: 16 MiB. */
    u64 response_bytes_max;     /* Rows held back until a writing statement ended: 64 MiB. */
    u64 statement_timeout_ns;   /* 0: none */
    u64 idle_timeout_ns;        /* Without a request: 1 hour. */
    u64 transaction_timeout_ns; /* Without a request inside a transaction: 5 minutes. */
    u64 write_timeout_ns;       /* A client that does not read: 30 s. */
    u64 busy_timeout_ns;        /* Longest wait for a row: 5 s. */
} ServerOptions;

typedef struct Server Server;

/*
 * Open the database and the listeners, and begin to serve.  [parks]
 *
 * Ownership: on OK the caller owns *server_out; strings of `options` are copied.
 * Errors: those of the database and of rt_listen(); ERR_AUTH for an address beyond loopback without
 * a token.
 */
MUST_CHECK Err server_start(RtProcess *process, const ServerOptions *options, Server **server_out,
                            ErrMsg *msg);
/* The address of listener `index`, with its real port. */
const char *server_address(const Server *server, u32 index);
/*
 * Stop accepting, end idle connections, let running requests finish for `drain_ns`, interrupt the
 * rest, write a checkpoint and close the database.  [parks]  Errors: those of the checkpoint.
 */
MUST_CHECK Err server_stop(Server *server, u64 drain_ns, ErrMsg *msg);
/* After server_stop().  NULL allowed. */
void server_free(Server *server);

typedef struct ServerCounters {
    u64 connections, connections_now, refused, requests, errors, rows, bytes_in, bytes_out;
} ServerCounters;
void server_counters(Server *server, ServerCounters *counters_out);
