/*
 * kv_lmdb.c -- LMDB (liblmdb-dev), if it was there when the program was built.
 */
#include "kv.h"

#ifdef BENCH_LMDB

#include <lmdb.h>
#include <stdlib.h>

struct Kv {
    MDB_env *env;
    MDB_dbi dbi;
};

struct KvSession {
    Kv *kv;
    MDB_txn *txn;
};

static void
must(int code, const char *what)
{
    if (code != 0) kv_die("lmdb: %s: %s", what, mdb_strerror(code));
}

static Kv *
lmdb_open(const KvOptions *options)
{
    Kv *kv = (Kv *)calloc(1, sizeof(*kv));
    if (kv == NULL) kv_die("out of memory");
    MDB_txn *txn;
    must(mdb_env_create(&kv->env), "env");
    must(mdb_env_set_mapsize(kv->env, (size_t)16 << 30), "map");
    must(mdb_env_open(kv->env, options->directory, options->durable ? 0 : MDB_NOSYNC, 0600),
         "open");
    must(mdb_txn_begin(kv->env, NULL, 0, &txn), "begin");
    must(mdb_dbi_open(txn, NULL, MDB_CREATE | MDB_INTEGERKEY, &kv->dbi), "dbi");
    must(mdb_txn_commit(txn), "commit");
    return kv;
}

static void
lmdb_close(Kv *kv)
{
    mdb_env_close(kv->env);
    free(kv);
}

static KvSession *
lmdb_session(Kv *kv, KvWait wait)
{
    (void)wait;
    KvSession *session = (KvSession *)calloc(1, sizeof(*session));
    if (session == NULL) kv_die("out of memory");
    session->kv = kv;
    return session;
}

static void
lmdb_session_end(KvSession *session)
{
    if (session->txn != NULL) mdb_txn_abort(session->txn);
    free(session);
}

static void
lmdb_begin(KvSession *session, bool writes)
{
    must(mdb_txn_begin(session->kv->env, NULL, writes ? 0 : MDB_RDONLY, &session->txn), "begin");
}

static void
lmdb_commit(KvSession *session)
{
    must(mdb_txn_commit(session->txn), "commit");
    session->txn = NULL;
}

static u8
lmdb_get(KvSession *session, u64 key)
{
    MDB_val name = {sizeof(key), &key}, value;
    must(mdb_get(session->txn, session->kv->dbi, &name, &value), "get");
    return *(const u8 *)value.mv_data;
}

static void
put(KvSession *session, u64 key, Slice value, unsigned flags)
{
    MDB_val name = {sizeof(key), &key}, data = {value.bytes, (void *)(uintptr_t)value.p};
    must(mdb_put(session->txn, session->kv->dbi, &name, &data, flags), "put");
}

static void
lmdb_insert(KvSession *session, u64 key, Slice value)
{
    put(session, key, value, MDB_NOOVERWRITE);
}

static void
lmdb_append(KvSession *session, u64 key, Slice value)
{
    put(session, key, value, MDB_APPEND);
}

static void
lmdb_update_one(KvSession *session, u64 key, Slice value)
{
    lmdb_begin(session, true);
    put(session, key, value, 0);
    lmdb_commit(session);
}

static u64
lmdb_scan(KvSession *session, u64 *sum_out)
{
    MDB_cursor *cursor;
    MDB_val name, value;
    u64 rows = 0;
    must(mdb_cursor_open(session->txn, session->kv->dbi, &cursor), "cursor");
    while (mdb_cursor_get(cursor, &name, &value, MDB_NEXT) == 0) {
        *sum_out += *(const u8 *)value.mv_data;
        rows++;
    }
    mdb_cursor_close(cursor);
    return rows;
}

static const KvKind kind = {.name = "lmdb",
                            .open = lmdb_open,
                            .close = lmdb_close,
                            .session = lmdb_session,
                            .session_end = lmdb_session_end,
                            .begin = lmdb_begin,
                            .commit = lmdb_commit,
                            .get = lmdb_get,
                            .insert = lmdb_insert,
                            .append = lmdb_append,
                            .update_one = lmdb_update_one,
                            .scan = lmdb_scan};

const KvKind *
kv_lmdb(void)
{
    return &kind;
}

#else

const KvKind *
kv_lmdb(void)
{
    return NULL;
}

#endif
