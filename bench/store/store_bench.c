/*
 * store_bench.c -- the bare work of the store's face, for bench/count.py.
 *
 *   store_bench --count NAME TIMES
 *
 * Each name prepares a tree of 100,000 rows and then, in measured(), does its operation TIMES
 * times: only that, and only by this thread, is counted.  Names: see `works`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/process.h"
#include "store/store.h"

#define ROWS 100000u

typedef struct Bench {
    char dir[64], path[96];
    Store *store;
    StoreTxn *txn;
    TreeId tree;
    u32 value_bytes;
    StoreCursor *cursor;
    StoreRun run;
    u64 run_end; /* Rows fetched. */
    u64 random;
    u64 found; /* What was read; printed, so that it is not left out. */
} Bench;

static void
must(Err err, const char *what)
{
    if (err == OK) return;
    fprintf(stderr, "store_bench: %s: %s\n", what, err_text(err));
    exit(1);
}

static u64
next_random(Bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random;
}

static void
begin(Bench *b)
{
    StoreTxnOptions options = {.level = STORE_SNAPSHOT, .sync = STORE_SYNC_OFF};
    must(store_txn_begin(b->store, &options, &b->txn), "begin");
}

static void
commit(Bench *b)
{
    must(store_txn_commit(b->txn, NULL), "commit");
}

static void
open_store(Bench *b)
{
    StoreOptions options = {.create = true, .pool_bytes = (u64)256 << 20};
    snprintf(b->dir, sizeof(b->dir), "/dev/shm/weft-bench-XXXXXX");
    if (mkdtemp(b->dir) == NULL) exit(1);
    snprintf(b->path, sizeof(b->path), "%s/t.db", b->dir);
    must(store_open(rt_process_default(), b->path, &options, &b->store, NULL), "open");
    begin(b);
    must(store_tree_create(b->txn, STORE_TREE_INT, &b->tree), "tree");
    commit(b);
}

/* What a close would do is not part of any of the works: leave without it. */
static void
leave_store(Bench *b)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r '%s'", b->dir);
    int code = system(command);
    printf("%llu\n", (unsigned long long)b->found);
    fflush(stdout);
    _exit(code == 0 ? 0 : 1);
}

static void
put(Bench *b, u64 number, u32 value_bytes, StorePut mode)
{
    u8 key[8], value[512];
    store_be64(key, number ^ ((u64)1 << 63));
    memset(value, (int)(number & 127), value_bytes);
    StoreVerdict verdict;
    store_txn_mark(b->txn); /* As each statement does. */
    must(store_put(b->txn, b->tree, (Slice){key, 8}, (Slice){value, value_bytes}, mode, &verdict),
         "put");
    if (verdict != STORE_DONE) must(ERR_CORRUPT, "verdict");
}

static void
fill(Bench *b)
{
    begin(b);
    for (u64 i = 0; i < ROWS; i++) {
        put(b, i * 2, b->value_bytes, STORE_PUT_INSERT);
        if (i % 10000 != 9999) continue;
        commit(b); /* Not so much at once that its undo is spilled. */
        begin(b);
    }
    commit(b);
}

/* ---- one operation each ---- */

static void
get_random(Bench *b, u64 i)
{
    (void)i;
    u8 key[8];
    bool found;
    Slice value;
    store_be64(key, (next_random(b) % ROWS * 2) ^ ((u64)1 << 63));
    must(store_get(b->txn, b->tree, (Slice){key, 8}, &found, &value), "get");
    if (!found) must(ERR_CORRUPT, "value");
    b->found += value.p[0];
}

static void
insert_rising(Bench *b, u64 i)
{
    put(b, (ROWS + i) * 2, b->value_bytes, STORE_PUT_INSERT);
}

/* Each key once, in no order. */
static u64
scattered(u64 i)
{
    return i * 15485863 % ROWS * 2;
}

static void
insert_random(Bench *b, u64 i)
{
    put(b, scattered(i) + 1, b->value_bytes, STORE_PUT_INSERT);
}

static void
update(Bench *b, u64 i)
{
    put(b, scattered(i), b->value_bytes, STORE_PUT_UPDATE);
}

static void
update_grows(Bench *b, u64 i)
{
    put(b, scattered(i), b->value_bytes + 1, STORE_PUT_UPDATE);
}

/* A transaction with one update. */
static void
update_commit(Bench *b, u64 i)
{
    commit(b);
    begin(b);
    update(b, i);
}

/* A row of a scan: a batch when the last one is used up. */
static void
scan(Bench *b, u64 i)
{
    StoreRun *run = &b->run;
    bool found = true;
    if (b->cursor == NULL) {
        must(store_cursor_open(b->txn, b->tree, &b->cursor), "cursor");
        must(store_cursor_seek(b->cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), "seek");
    }
    if (!found || run->end) must(ERR_CORRUPT, "scan");
    if (i < b->run_end) return;
    must(store_cursor_fetch(b->cursor, 2048, (size_t)256 << 10, false, run), "fetch");
    b->run_end += run->rows;
    b->found += run->value[0].bytes;
}

static void
count(Bench *b, u64 i)
{
    (void)i;
    u64 rows;
    must(store_count(b->txn, b->tree, &rows), "count");
    if (rows != ROWS) must(ERR_CORRUPT, "count");
}

static const struct {
    const char *name;
    void (*work)(Bench *b, u64 i);
    u32 value_bytes;
} works[] = {
    {"get", get_random, 100},
    {"insert_rising", insert_rising, 100},
    {"insert_random", insert_random, 100},
    {"update", update, 300},
    {"update_grows", update_grows, 300},
    {"update_commit", update_commit, 300},
    {"scan", scan, 40},
    {"count", count, 100},
};

/* What the counter looks at. */
NOINLINE void measured(Bench *b, void (*work)(Bench *b, u64 i), u64 times);

void
measured(Bench *b, void (*work)(Bench *b, u64 i), u64 times)
{
    for (u64 i = 0; i < times; i++) {
        work(b, i);
    }
}

int
main(int argc, char **argv)
{
    if (argc != 4 || strcmp(argv[1], "--count") != 0) {
        fprintf(stderr, "usage: store_bench --count NAME TIMES\n");
        return 2;
    }
    Bench bench = {.random = 88172645463325252u};
    for (u32 i = 0; i < COUNT_OF(works); i++) {
        if (strcmp(argv[2], works[i].name) != 0) continue;
        open_store(&bench);
        bench.value_bytes = works[i].value_bytes;
        fill(&bench);
        must(store_checkpoint(bench.store, NULL), "checkpoint"); /* None runs beside the work. */
        begin(&bench);
        measured(&bench, works[i].work, strtoull(argv[3], NULL, 10));
        leave_store(&bench);
    }
    fprintf(stderr, "store_bench: no work of that name: %s\n", argv[2]);
    return 2;
}
