/*
 * load.h -- many connections at work on one database for some time, and what came of it.
 *
 * Each worker is a thread with a connection.  A transaction that is refused because of others is
 * tried again as a whole.  SQLite waits for its single writer in one of three ways, of which the
 * best counts.
 */
#pragma once

#include <pthread.h>

#include "db.h"
#include "harness.h"

#define LOAD_KINDS    6 /* Kinds of operations told apart. */
#define LOAD_SECONDS  600
#define LOAD_ROLLBACK (-1)

/* How a connection waits for the write lock; Weft always takes LOAD_TIMEOUT. */
typedef enum LoadStyle { LOAD_TIMEOUT, LOAD_POLL, LOAD_MUTEX, LOAD_STYLES } LoadStyle;

typedef struct Load Load;

typedef struct Worker {
    Db db;
    const Load *load;
    int number;
    uint64_t state; /* Seeded numbers. */
    void *own;      /* The load's: statements and the like. */
    int kind;       /* operate() sets it: what the operation was. */
    int64_t done[LOAD_KINDS], retries, acknowledged; /* `acknowledged` is the load's. */
    float *latency_ms[LOAD_KINDS];
    int64_t latency_capacity[LOAD_KINDS];
    int per_tenth[LOAD_SECONDS * 10];
} Worker;

struct Load {
    const Engine *engine;
    const char *path;
    DbMode mode;
    int connections;
    double seconds;
    LoadStyle style;
    uint64_t seed;
    void *arg;
    void (*start)(Worker *worker);   /* Prepare; makes `own`. */
    void (*operate)(Worker *worker); /* One operation. */
    void (*end)(Worker *worker);     /* Finalize. */
    pthread_mutex_t *mutex;          /* Of LOAD_MUTEX. */
    int64_t *acknowledged_total;     /* What workers acknowledged is added here, if not NULL. */
};

typedef struct LoadResult {
    double per_second;
    int64_t done, retries, acknowledged, syncs;
    int64_t done_of[LOAD_KINDS];
    double p50_ms[LOAD_KINDS], p95_ms[LOAD_KINDS], p99_ms[LOAD_KINDS], longest_ms[LOAD_KINDS];
    double slowest_second; /* The slowest second as a part of the median one; 1 if too short. */
} LoadResult;

LoadResult load_run(const Load *load);

/* The best of SQLite's three styles at this load, each tried once; Weft has one. */
LoadStyle load_best_style(const Load *load);

/*
 * Run `body` in a transaction, again from the start as long as others are in the way.  `body`
 * returns CODE_OK or what went wrong.  `writes` takes the write lock at once where there is one for
 * all.
 */
bool load_transact(Worker *worker, bool writes, int (*body)(Worker *worker, void *arg), void *arg);

/* One statement as a transaction of its own, again as long as others are in the way. */
void load_autocommit(Worker *worker, bool writes, sqlite3_stmt *stmt);

/* Step to the end and reset: CODE_OK, or the error. */
int load_step(Worker *worker, sqlite3_stmt *stmt);
/* The first row's integer in `column` 0, then the end: CODE_OK with *found_out, or the error. */
int load_step_int(Worker *worker, sqlite3_stmt *stmt, int64_t *value_out, bool *found_out);

/* Syncs so far, as the preloaded shim counts them; -1 without it. */
int64_t load_sync_count(void);
