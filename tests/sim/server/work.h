/*
 * work.h -- what the clients do, and the model that every answer is held against.
 *
 * Client `who` writes rows log(who, 1), log(who, 2), ... in single statements and in transactions;
 * a trigger keeps t.n = the newest of them and h.n = how many there are.  So in every snapshot
 * the numbers of a client are 1..n without a hole, and transactions are whole.  The model knows
 * for each client and database the last number that was acknowledged or shown, and the last that
 * was tried.  Who may not write does so all the same, with a number that is not counted as tried,
 * so that it is a failure when it is ever seen.
 */
#pragma once

#include "keys.h"
#include "rt/lock.h"
#include "talk.h"

#define CLIENTS   6u
#define DATABASES 2u /* Where the server serves a directory. */
#define BATONS    8u

#define STREAM_TIMEOUT_NS (3 * RT_NS_PER_S)

/* A baton that somebody else may get hold of. */
typedef struct Baton {
    char text[BATON_MAX]; /* "": none. */
    u32 db;
    bool is_live; /* Its client may use it still; else nobody. */
} Baton;

/* One database. */
typedef struct Data {
    u64 acked[CLIENTS], tried[CLIENTS]; /* Numbers. */
    bool schema_ready;
} Data;

/* Lives in the operator's memory: it outlives every crash. */
typedef struct Model {
    bool has_many;   /* The server serves a directory. */
    bool is_guarded; /* It wants tokens. */
    bool creates;    /* It makes databases that are missing; changes between its lives. */
    Data data[DATABASES];
    u64 serial[CLIENTS];
    Baton baton[BATONS];
    u32 next_baton;
    RtU32 is_over; /* Clients are to end. */
    RtU32 is_calm; /* No fault, no crash: number of the phase; every request must work. */
    u64 requests, writes, reads, connects, refusals; /* For the trace. */
} Model;

typedef struct Client {
    Model *model;
    u32 who;
} Client;

/* Names of the databases of a directory. */
extern const char *const work_db_names[DATABASES];

/* Connect and work, again and again, until the model says that it is over.  `arg`: a Client. */
void work_client(void *arg);
/* Look at everything once, with connections of its own; false: it did not come to it. */
MUST_CHECK bool work_look(Model *model);
