/*
 * work.h -- what the clients do, and the model that every answer is held against.
 *
 * Client `who` writes rows log(who, 1), log(who, 2), ... in single statements and in transactions;
 * a trigger keeps t.n = the newest of them and h.n = how many there are.  So in every snapshot
 * the numbers of a client are 1..n without a hole, and transactions are whole.  The model knows
 * for each client the last number that was acknowledged or shown, and the last that was tried.
 */
#pragma once

#include "rt/lock.h"
#include "talk.h"

#define CLIENTS 6u

/* Lives in the operator's memory: it outlives every crash. */
typedef struct Model {
    u64 acked[CLIENTS], tried[CLIENTS]; /* Numbers. */
    u64 serial[CLIENTS];
    bool schema_ready;
    RtU32 is_over; /* Clients are to end. */
    RtU32 is_calm; /* No fault, no crash: number of the phase; every request must work. */
    u64 requests, writes, reads, connects; /* For the trace. */
} Model;

typedef struct Client {
    Model *model;
    u32 who;
} Client;

/* Connect and work, again and again, until the model says that it is over.  `arg`: a Client. */
void work_client(void *arg);
/* Look at everything once, with a connection of its own; false: it did not come to it. */
MUST_CHECK bool work_look(Model *model);
