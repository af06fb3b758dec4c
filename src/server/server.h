/*
 * server.h -- weftd as a library: listeners, connections, limits, draining.
 *
 * One server serves one database file, or a directory of them.  Everything a server owns hangs on
 * the Server, so several may exist in one program (tests, the simulator).
 *
 * Life: server_start() -> clients come and go -> server_stop() (drains) -> server_free().
 */
#pragma once

#include "base/base.h"
#include "rt/process.h"

#define SERVER_LISTENERS_MAX 8
#define SERVER_ORIGINS_MAX   16

/* Zero means the default that the comment gives; times in nanoseconds. */
typedef struct ServerOptions {
    const char *path; /* Database file... */
    const char *dir;  /* ...or a directory: NAME is served from DIR/NAME.weft. */
    bool create;      /* Make databases that are missing. */
    i32 sync;         /* StoreSync; zero is not the default of weftd but STORE_SYNC_OFF. */
    u64 pool_bytes;
    const char *listen[SERVER_LISTENERS_MAX]; /* Addresses as in rt/net.h; "unix:PATH" too. */
    u32 listen_count;
    const char *token;   /* NULL: none asked for, and only loopback addresses allowed. */
    const char *jwt_key; /* Ed25519 public key, PEM or base64: tokens signed with it are good. */
    bool insecure;       /* Serve addresses beyond loopback without a token. */
    bool no_greet;       /* Over TCP nobody is sent Quack's banner before he has spoken. */
    const char *origin[SERVER_ORIGINS_MAX]; /* Web pages that may use the server. */
    u32 origin_count;
    const char *tls_cert, *tls_key; /* PEM files; NULL: no TLS. */
    u32 connections_max;            /* 10,000 */
    u32 streams_max;                /* Hrana streams open at once: 4,000. */
    u32 handles_max;                /* Prepared statements a Quack connection: 256. */
    u64 line_bytes_max;             /* A Quack request: 16 MiB. */
    u64 body_bytes_max;             /* An HTTP body or WebSocket message: 64 MiB. */
    u64 response_bytes_max;         /* Rows held back for one answer: 64 MiB. */
    u64 held_bytes_max;             /* The same in all: a quarter of the memory. */
    u64 memory_bytes_max;           /* For all statements: 60 % of the memory. */
    u64 database_memory_bytes_max;  /* For those of one database, a session, one statement; 0: no */
    u64 session_memory_bytes_max;   /* cap of their own. */
    u64 statement_memory_bytes_max;
    u64 statement_timeout_ns;   /* 0: none */
    u64 idle_timeout_ns;        /* Without a request: 1 hour. */
    u64 keep_alive_timeout_ns;  /* The same for HTTP: 75 s. */
    u64 transaction_timeout_ns; /* Without a request inside a transaction: 5 minutes. */
    u64 stale_timeout_ns;       /* An idle transaction that somebody waits for: 5 s. */
    u64 stream_timeout_ns;      /* A Hrana stream over HTTP without a request: 10 s. */
    u64 request_timeout_ns;     /* For a head or body to arrive: 30 s. */
    u64 write_timeout_ns;       /* A client that does not read: 30 s. */
    u64 busy_timeout_ns;        /* Longest wait for a row: 5 s. */
    u64 database_timeout_ns;    /* In a directory: close one without clients: 5 minutes. */
    u64 slow_ns;                /* Statements that took longer are logged; 0: none. */
} ServerOptions;

typedef struct Server Server;

/*
 * Open the database (the directory) and the listeners, and begin to serve.  [parks]
 *
 * Ownership: on OK the caller owns *server_out; `options` and its strings are borrowed until
 * server_free().
 * Errors: those of the database and of rt_listen(); ERR_AUTH for an address beyond loopback without
 * a token; ERR_MISUSE for keys and certificates that cannot be read.
 */
MUST_CHECK Err server_start(RtProcess *process, const ServerOptions *options, Server **server_out,
                            ErrMsg *msg);
/* The address of listener `index`, with its real port. */
const char *server_address(const Server *server, u32 index);
/* Read certificate and key again; connections keep what they have.  On an error the old ones stay.
   [parks] */
MUST_CHECK Err server_reload(Server *server, ErrMsg *msg);
/*
 * Stop accepting, end idle connections, let running requests finish for `drain_ns`, interrupt the
 * rest, write checkpoints and close the databases.  [parks]  Errors: those of a checkpoint.
 */
MUST_CHECK Err server_stop(Server *server, u64 drain_ns, ErrMsg *msg);
/* After server_stop().  NULL allowed. */
void server_free(Server *server);
