/*
 * kv_weft.c -- the store by its own face.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kv.h"
#include "rt/process.h"
#include "store/store.h"

#define WAIT_NS ((u64)60 * 1000000000)

struct Kv {
    Store *store;
    TreeId tree;
    StoreSync sync;
};

struct KvSession {
    Kv *kv;
    StoreTxn *txn;
};

void
kv_die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static void
must(Err err, const char *what)
{
    if (err != OK) kv_die("weft: %s: %s", what, err_text(err));
}

static void
own_begin(KvSession *session, bool writes)
{
    (void)writes;
    StoreTxnOptions options = {STORE_SNAPSHOT, session->kv->sync, WAIT_NS};
    must(store_txn_begin(session->kv->store, &options, &session->txn), "begin");
}

static void
own_commit(KvSession *session)
{
    must(store_txn_commit(session->txn, NULL), "commit");
    session->txn = NULL;
}

static Kv *
own_open(const KvOptions *options)
{
    char path[4096];
    Kv *kv = (Kv *)calloc(1, sizeof(*kv));
    if (kv == NULL) kv_die("out of memory");
    StoreOptions store = {.create = true, .pool_bytes = options->memory_bytes};
    snprintf(path, sizeof(path), "%s/weft.db", options->directory);
    ErrMsg msg = {0};
    Err err = store_open(rt_process_default(), path, &store, &kv->store, &msg);
    if (err != OK) kv_die("weft: %s: %s", path, err_text(err));
    kv->sync = options->durable ? STORE_SYNC_FULL : STORE_SYNC_OFF;
    /* The first tree that anybody makes: a reopened database has it. */
    kv->tree = TREE_ROOT + 1;
    KvSession session = {kv, NULL};
    bool found;
    Slice value;
    own_begin(&session, true);
    must(store_get(session.txn, TREE_ROOT, SLICE_LITERAL("tree"), &found, &value), "root");
    if (!found) {
        StoreVerdict verdict;
        TreeId tree;
        must(store_tree_create(session.txn, STORE_TREE_INT, &tree), "tree");
        if (tree != kv->tree) kv_die("weft: the first tree has number %u", tree);
        must(store_put(session.txn, TREE_ROOT, SLICE_LITERAL("tree"), SLICE_LITERAL("made"),
                       STORE_PUT_INSERT, &verdict),
             "root");
    }
    own_commit(&session);
    return kv;
}

static void
own_close(Kv *kv)
{
    store_close(kv->store);
    free(kv);
}

Store *
kv_weft_store(Kv *kv)
{
    return kv->store;
}

static KvSession *
own_session(Kv *kv, KvWait wait)
{
    (void)wait;
    KvSession *session = (KvSession *)calloc(1, sizeof(*session));
    if (session == NULL) kv_die("out of memory");
    session->kv = kv;
    return session;
}

static void
own_session_end(KvSession *session)
{
    store_txn_rollback(session->txn);
    free(session);
}

static void
key_make(u64 key, u8 bytes[8])
{
    store_be64(bytes, key ^ ((u64)1 << 63));
}

static u8
own_get(KvSession *session, u64 key)
{
    u8 bytes[8];
    bool found;
    Slice value;
    key_make(key, bytes);
    must(store_get(session->txn, session->kv->tree, (Slice){bytes, 8}, &found, &value), "get");
    if (!found) kv_die("weft: no key %llu", (unsigned long long)key);
    return value.p[0];
}

static void
own_insert(KvSession *session, u64 key, Slice value)
{
    u8 bytes[8];
    StoreVerdict verdict;
    key_make(key, bytes);
    must(store_put(session->txn, session->kv->tree, (Slice){bytes, 8}, value, STORE_PUT_INSERT,
                   &verdict),
         "insert");
    if (verdict != STORE_DONE) kv_die("weft: key %llu is there", (unsigned long long)key);
}

/* Somebody else's commit between our snapshot and our write: the whole transaction again. */
static void
own_update_one(KvSession *session, u64 key, Slice value)
{
    u8 bytes[8];
    key_make(key, bytes);
    for (;;) {
        StoreVerdict verdict;
        own_begin(session, true);
        Err err = store_put(session->txn, session->kv->tree, (Slice){bytes, 8}, value,
                            STORE_PUT_UPDATE, &verdict);
        if (err == OK && verdict != STORE_DONE)
            kv_die("weft: no key %llu", (unsigned long long)key);
        if (err == OK) break;
        if (err != ERR_BUSY_SNAPSHOT) must(err, "update");
        store_txn_rollback(session->txn);
    }
    own_commit(session);
}

/* Reads the newest version, as an UPDATE does: whoever holds the row is waited for. */
u64
kv_weft_increment(KvSession *session, u64 key)
{
    u8 bytes[8], value[8];
    key_make(key, bytes);
    for (;;) {
        bool found, newer;
        Slice old;
        StoreVerdict verdict;
        own_begin(session, true);
        Err err = store_get_newest(session->txn, session->kv->tree, (Slice){bytes, 8}, &found,
                                   &newer, &old);
        if (err == OK && !found) kv_die("weft: no key %llu", (unsigned long long)key);
        if (err == OK && !newer) {
            u64 number = load_u64(old.p) + 1;
            store_u64(value, number);
            err = store_put(session->txn, session->kv->tree, (Slice){bytes, 8}, (Slice){value, 8},
                            STORE_PUT_UPDATE, &verdict);
            if (err == OK) {
                own_commit(session);
                return number;
            }
        }
        if (err != ERR_BUSY_SNAPSHOT) must(err, "increment");
        store_txn_rollback(session->txn);
    }
}

static u64
own_scan(KvSession *session, u64 *sum_out)
{
    StoreCursor *cursor;
    StoreRun run = {0};
    bool found;
    u64 rows = 0;
    must(store_cursor_open(session->txn, session->kv->tree, &cursor), "cursor");
    must(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), "seek");
    while (found && !run.end) {
        must(store_cursor_fetch(cursor, 2048, (size_t)256 << 10, false, &run), "fetch");
        for (u32 i = 0; i < run.rows; i++)
            *sum_out += run.value[i].p[0];
        rows += run.rows;
    }
    store_cursor_close(cursor);
    return rows;
}

const KvKind kv_weft = {.name = "weft",
                        .open = own_open,
                        .close = own_close,
                        .session = own_session,
                        .session_end = own_session_end,
                        .begin = own_begin,
                        .commit = own_commit,
                        .get = own_get,
                        .insert = own_insert,
                        .append = own_insert,
                        .update_one = own_update_one,
                        .scan = own_scan};
