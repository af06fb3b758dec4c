/*
 * kv.h -- one table of 8-byte keys and values, on the store and on its peers.
 *
 * Each peer is driven as its own manual would have it: LMDB with integer keys in native order,
 * SQLite's B-tree through prepared statements on a table with a rowid, its cache as large as the
 * store's pool.  Whatever fails ends the program: a figure of a run with errors is none.
 */
#pragma once

#include "base/base.h"
#include "engine.h"

typedef struct KvOptions {
    const char *directory; /* Files are made in it; it is empty. */
    u64 memory_bytes;      /* Pool or cache; LMDB has the file mapped. */
    bool durable;          /* Each commit is synced before it returns; else none is. */
    const Engine *sqlite;  /* Its library. */
} KvOptions;

typedef struct Kv Kv;               /* An open database. */
typedef struct KvSession KvSession; /* Used by one thread. */

/* How several writers wait for each other in SQLite; the others know one way. */
typedef enum KvWait { KV_WAIT_TIMEOUT, KV_WAIT_POLL, KV_WAIT_MUTEX, KV_WAIT_COUNT_ } KvWait;

typedef struct KvKind {
    const char *name;
    Kv *(*open)(const KvOptions *options);
    void (*close)(Kv *kv);
    KvSession *(*session)(Kv *kv, KvWait wait);
    void (*session_end)(KvSession *session);
    void (*begin)(KvSession *session, bool writes);
    void (*commit)(KvSession *session);
    /* The value's first byte, and that the key is there; valid inside a transaction. */
    u8 (*get)(KvSession *session, u64 key);
    void (*insert)(KvSession *session, u64 key, Slice value);
    /* The next insert is behind all others, and the engine may be told (LMDB: MDB_APPEND). */
    void (*append)(KvSession *session, u64 key, Slice value);
    /* A transaction of its own. */
    void (*update_one)(KvSession *session, u64 key, Slice value);
    /* All rows in order: how many; the first bytes of their values are added up in *sum_out. */
    u64 (*scan)(KvSession *session, u64 *sum_out);
} KvKind;

extern const KvKind kv_weft, kv_sqlite;
/* NULL where the program was built without LMDB. */
const KvKind *kv_lmdb(void);

/* For rows that ask more of the store itself. */
struct Store;
struct Store *kv_weft_store(Kv *kv);
/* Add 1 to the number at the start of a value, in a transaction of its own; what it is now. */
u64 kv_weft_increment(KvSession *session, u64 key);

/* Print what went wrong and end the program. */
__attribute__((format(printf, 1, 2), noreturn)) void kv_die(const char *format, ...);
