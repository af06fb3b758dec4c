/*
 * seat.h -- a client's place at a database: its session, what runs on it, and who may end it.
 *
 * A Seat is what SHOW SESSIONS lists: a Quack connection has one, so has each Hrana stream.  It
 * borrows an Engine -- a session with prepared statements -- from the pool of its database with
 * the first statement and gives it back at the end, rolled back and as new; so statements
 * that many clients send are planned once an engine, not once a client.
 *
 * A seat is IDLE or BUSY (between seat__begin and seat__end).  `lock` protects state, ended_by, the
 * times, the text and the life of `engine` against the housekeeper and against those who end
 * what runs; everything else belongs to the task that uses the seat, one at a time.
 * Lock order: Server.lock, then Seat.lock.  ServedDb.lock is taken alone.
 */
#pragma once

#include "rt/lock.h"
#include "rt/net.h"
#include "server/server.h"
#include "session/session.h"

#define SEAT_SQL_BYTES   160
#define SEAT_PEER_BYTES  56
#define ENGINE_CACHE     24
#define DB_NAME_BYTES    64
#define CACHED_TEXT_MAX  ((size_t)8 << 10)
#define POOL_ENGINES_MAX 64

/* A prepared statement kept by its text. */
typedef struct Cached {
    Stmt *stmt; /* NULL: free. */
    char *text;
    size_t bytes;
    u64 hash, last_use;
    bool in_use;
} Cached;

typedef struct Engine {
    struct Engine *next; /* In the pool. */
    Session *session;
    struct Seat *seat; /* Whose it is now; for functions that ask. */
    Cached cache[ENGINE_CACHE];
    u64 uses;
} Engine;

/* One database that the server serves. */
typedef struct ServedDb {
    struct ServedDb
        *next; /* In Server.databases, under Server.lock; never removed before the end. */
    Server *server;
    char name[DB_NAME_BYTES]; /* "" where the server has one only. */
    char *path;
    RtMutex lock;    /* Protects what follows; held while the file is opened. */
    Session *keeper; /* Keeps the store open; NULL: not open yet. */
    Engine *idle;    /* Last used first. */
    u32 idle_count;
    u32 seats;
    u64 used_ns; /* When the last seat left. */
} ServedDb;

/* HELD: the housekeeper rolls its transaction back; whoever comes waits for that. */
typedef enum SeatState { SEAT_IDLE, SEAT_BUSY, SEAT_HELD } SeatState;
/* Why a running request was interrupted. */
typedef enum SeatEnd {
    END_NONE,
    END_CANCEL,  /* By a request of its own client. */
    END_TIMEOUT, /* Statement time limit. */
    END_DRAIN,   /* The server stops. */
    END_PEER,    /* The client has gone. */
    END_KILLED   /* weft_end_session() */
} SeatEnd;

/* What a client's token allows it. */
typedef struct SeatRights {
    bool read_only;
    bool one_database; /* No other than the seat's, neither by ATTACH nor by VACUUM INTO. */
} SeatRights;

typedef struct Seat {
    struct Seat *next, *prev; /* In Server.seats, under Server.lock. */
    Server *server;
    ServedDb *db;
    u64 number;
    const char *protocol; /* Static. */
    char peer[SEAT_PEER_BYTES];

    RtMutex lock;
    u8 state;                 /* SeatState */
    u8 ended_by;              /* SeatEnd */
    bool killed;              /* The seat's owner is to close it. */
    bool txn_lost, lost_told; /* Its transaction was taken away; the client was told so. */
    RtCond changed;           /* HELD is over. */
    u64 deadline_ns;          /* BUSY: statement time limit; 0: none. */
    u64 since_ns;             /* When the state began. */
    u64 txn_since_ns;         /* When the open transaction was first seen; 0: none. */
    RtSocket *socket;         /* BUSY: whose end ends the request; NULL: none. */
    RtSocket *home;           /* Of a connection that lives and dies with the seat; NULL: none. */
    char sql[SEAT_SQL_BYTES]; /* Of the running or last statement. */
    u32 sql_bytes;
    Engine *engine;

    RtU32 stop; /* Set with ended_by: row loops look at it. */
    RtU64 rows; /* Sent since the seat exists. */
    SeatRights rights;
    bool read_only_txn;
    i64 changes, total_changes, last_rowid; /* Of the client, while it has no engine. */
} Seat;

/* An error to tell a client.  Zero-initialised is none; fault__free() at the end. */
typedef struct Fault {
    int code;         /* Extended SQLITE_* code. */
    const char *name; /* "SQLITE_BUSY" or a protocol's own; static. */
    i32 offset;       /* Into the SQL text; -1: none. */
    bool is_input;    /* Found when the statement was prepared. */
    Buf text;
} Fault;
void
fault__set(Fault *fault, int code, const char *name, const char *format, ...) PRINTF_LIKE(4, 5);
void fault__free(Fault *fault);
Slice fault__text(const Fault *fault);

/* NULL: out of memory.  `peer` is for people. */
Seat *seat__open(ServedDb *db, const char *protocol, const char *peer);
/* Roll back, give the engine back.  NULL allowed.  [parks] */
void seat__close(Seat *seat);
/*
 * The transaction of an idle seat, older than limit_ns: if somebody waits for it, hold the seat,
 * for seat__take_transaction() to roll it back.  Under Server.lock.
 */
MUST_CHECK bool seat__hold_if_stale(Seat *seat, u64 now_ns, u64 limit_ns);
void seat__take_transaction(Seat *seat);
/*
 * Before a statement runs: true, with a fault, if its transaction was taken away.  So it is for
 * every statement up to the one that would have ended the transaction, or the client, who was told,
 * begins another one.
 */
bool seat__has_lost_transaction(Seat *seat, const Stmt *stmt, Fault *fault);
/* The client has had the answer that told it. */
void seat__lost_told(Seat *seat);
bool seat__in_transaction(Seat *seat); /* As the last request left it. */
/* Make sure of an engine.  [parks] */
MUST_CHECK bool seat__ready(Seat *seat, Fault *fault);
static inline Session *
seat__session(const Seat *seat)
{
    return seat->engine->session;
}

/* Outside a transaction, and with nothing prepared: give the engine back until the next request. */
void seat__rest(Seat *seat);
bool seat__is_killed(Seat *seat);
/* The transaction that was just begun may not write. */
void seat__set_read_only_txn(Seat *seat);

/* A request begins and ends.  While it runs, the loss of `socket` (may be NULL) interrupts it. */
void seat__begin(Seat *seat, RtSocket *socket);
void seat__end(Seat *seat);
/* Interrupt what runs; false when idle.  Any task. */
bool seat__interrupt(Seat *seat, SeatEnd why);
/* Statement time, counted from here: call before each statement of a request. */
void seat__statement(Seat *seat, Slice sql);
/* Count a statement that ended. */
void seat__count(Seat *seat, StmtKind kind, u64 started_ns, u64 rows, const Fault *fault);

/*
 * The one statement of `sql`, from the cache or prepared; *stmt_out NULL for blank text.  Release
 * it with seat__release().  More than one: *rest_out (may be NULL: then it is not looked for) says
 * where the second begins, else 0.  [parks]
 */
MUST_CHECK bool
seat__prepare(Seat *seat, Slice sql, Stmt **stmt_out, size_t *rest_out, Fault *fault);
/* Reset it; keep it for the next request with this text. */
void seat__release(Seat *seat, Stmt *stmt);
/* The session's last error as a fault. */
void seat__fault(Seat *seat, Err err, Fault *fault);
/* Step once.  False: the fault says why, and the statement is reset. */
MUST_CHECK bool seat__step(Seat *seat, Stmt *stmt, bool *row_out, Fault *fault);
/* BEGIN [DEFERRED] [TRANSACTION] READONLY: what to run instead, else `sql`. */
Slice seat__begin_text(Slice sql, bool *read_only_out);

/* ---- databases (database.c) ---- */
/* Find or, if the server may, make the database of that name.  NULL: *fault. */
ServedDb *db__find(Server *server, Slice name, Fault *fault);
/* In a directory: close those that nobody has used for a while, with checkpoints.  [parks] */
void db__close_idle(Server *server, u64 now_ns);
/* Close all of them, with checkpoints. */
MUST_CHECK Err db__close_all(Server *server, ErrMsg *msg);
bool db__name_ok(Slice name);
MUST_CHECK Err db__open(ServedDb *db, Fault *fault);
/* An engine from the pool, or a new one.  NULL: *fault. */
Engine *db__take(ServedDb *db, Fault *fault);
/* Back to the pool, if it can be as new; false: it cannot, and is still the caller's. */
bool db__give(ServedDb *db, Engine *engine);
void db__drop(Engine *engine);
