/*
 * peers.h -- the store beside LMDB and SQLite's B-tree: what the groups of rows share.
 */
#pragma once

#include "harness.h"
#include "kv.h"

#define PEERS_MAX 3

typedef struct Peers {
    Bench bench;
    const KvKind *kind[PEERS_MAX]; /* The store first. */
    u32 kinds;
    u64 rows;         /* Of the tables. */
    u64 data_mib;     /* Of the larger database that is restarted. */
    u64 pool_mib;     /* Where all is to be in memory. */
    const char *self; /* This program: some rows are children of it. */
} Peers;

/* A folder for files of one database, and its end. */
typedef struct PeerPlace {
    char path[4096];
} PeerPlace;
PeerPlace peers_place(const Peers *peers);
void peers_place_end(const PeerPlace *place);

/* A database of that kind in a place, with rows 0 to `rows` - 1 if not 0, committed by 1,000. */
Kv *
peers_open(const Peers *peers, u32 kind, const PeerPlace *place, u64 memory_bytes, bool durable);
void peers_fill(const KvKind *kind, Kv *kv, u64 rows, u32 value_bytes);

/* A row of the store beside peer `kind` (0: none). */
Row peers_row(const Peers *peers, const char *name, u32 kind, const char *unit, bool is_rate,
              double goal);
/* A row without a peer whose figure must be at most (`is_rate`: at least) `limit`. */
void peers_show_limit(Peers *peers, Row *row, double limit);
/* Some row of those is asked for. */
bool peers_wants(const Peers *peers, const char *name);

/* Of a closed store: how full its leaves are (0 to 1, the last left out), and rows in each. */
void peers_leaves(const PeerPlace *place, double *fill_out, double *rows_each_out);

/* Sixteen letters from a number at the start of a value, so that no two writes are the same. */
void peers_mark(char *value, u64 number);

/* Processor time of this thread: a busy neighbour does not show in it. */
double thread_s(void);

void peers_memory_group(Peers *peers);
void peers_pool_group(Peers *peers);
void peers_durable_group(Peers *peers);
void peers_life_group(Peers *peers);
/* A child of peers_life_group(): fill, write some log, say so, wait for the end. */
int peers_life_child(const char *directory, u64 rows, u64 log_bytes);
