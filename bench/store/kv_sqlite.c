/*
 * kv_sqlite.c -- SQLite's B-tree through prepared statements, in WAL mode.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv.h"

struct Kv {
    const Engine *engine;
    char path[4096];
    u64 memory_bytes;
    bool durable;
    pthread_mutex_t mutex; /* KV_WAIT_MUTEX: around each write transaction. */
};

enum { SAY_BEGIN, SAY_BEGIN_WRITE, SAY_COMMIT, SAY_GET, SAY_INSERT, SAY_UPDATE, SAY_SCAN, SAID_ };

static const char *const texts[SAID_] = {
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SELECT v FROM t WHERE k = ?",
    "INSERT INTO t VALUES (?, ?)",
    "UPDATE t SET v = ?2 WHERE k = ?1",
    "SELECT v FROM t ORDER BY k",
};

struct KvSession {
    Kv *kv;
    const Engine *engine;
    sqlite3 *db;
    sqlite3_stmt *stmt[SAID_];
    bool has_mutex;
};

static void
must(const KvSession *session, bool is_good, const char *what)
{
    if (!is_good) kv_die("sqlite: %s: %s", what, session->engine->errmsg(session->db));
}

static void
run(KvSession *session, const char *text)
{
    must(session, session->engine->exec(session->db, text, NULL, NULL, NULL) == CODE_OK, text);
}

static KvSession *
sqlite_session(Kv *kv, KvWait wait)
{
    char text[128];
    KvSession *session = (KvSession *)calloc(1, sizeof(*session));
    if (session == NULL) kv_die("out of memory");
    const Engine *engine = kv->engine;
    session->kv = kv;
    session->engine = engine;
    session->has_mutex = wait == KV_WAIT_MUTEX;
    must(session, engine->open_v2(kv->path, &session->db, OPEN_FLAGS, NULL) == CODE_OK, "open");
    if (wait == KV_WAIT_POLL) {
        engine->busy_handler(session->db, engine_poll_busy, NULL);
    } else {
        engine->busy_timeout(session->db, 60000);
    }
    run(session, "PRAGMA journal_mode=WAL");
    run(session, kv->durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF");
    snprintf(text, sizeof(text), "PRAGMA cache_size=-%llu",
             (unsigned long long)(kv->memory_bytes >> 10));
    run(session, text);
    run(session, "CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v TEXT)");
    for (u32 i = 0; i < SAID_; i++) {
        int code = engine->prepare_v2(session->db, texts[i], -1, &session->stmt[i], NULL);
        must(session, code == CODE_OK, texts[i]);
    }
    return session;
}

static void
sqlite_session_end(KvSession *session)
{
    for (u32 i = 0; i < SAID_; i++)
        session->engine->finalize(session->stmt[i]);
    session->engine->close_v2(session->db);
    free(session);
}

static Kv *
sqlite_open(const KvOptions *options)
{
    Kv *kv = (Kv *)calloc(1, sizeof(*kv));
    if (kv == NULL) kv_die("out of memory");
    kv->engine = options->sqlite;
    kv->memory_bytes = options->memory_bytes;
    kv->durable = options->durable;
    snprintf(kv->path, sizeof(kv->path), "%s/sqlite.db", options->directory);
    pthread_mutex_init(&kv->mutex, NULL);
    sqlite_session_end(sqlite_session(kv, KV_WAIT_TIMEOUT)); /* Makes the table. */
    return kv;
}

static void
sqlite_close(Kv *kv)
{
    pthread_mutex_destroy(&kv->mutex);
    free(kv);
}

static void
step(KvSession *session, u32 which)
{
    int code = session->engine->step(session->stmt[which]);
    must(session, code == CODE_DONE, texts[which]);
    session->engine->reset(session->stmt[which]);
}

static void
sqlite_begin(KvSession *session, bool writes)
{
    step(session, writes ? SAY_BEGIN_WRITE : SAY_BEGIN);
}

static void
sqlite_commit(KvSession *session)
{
    step(session, SAY_COMMIT);
}

static u8
sqlite_get(KvSession *session, u64 key)
{
    const Engine *engine = session->engine;
    sqlite3_stmt *stmt = session->stmt[SAY_GET];
    engine->bind_int64(stmt, 1, (int64_t)key);
    must(session, engine->step(stmt) == CODE_ROW, "get");
    u8 first = engine->column_text(stmt, 0)[0];
    engine->reset(stmt);
    return first;
}

static void
write_row(KvSession *session, u32 which, u64 key, Slice value)
{
    sqlite3_stmt *stmt = session->stmt[which];
    session->engine->bind_int64(stmt, 1, (int64_t)key);
    session->engine->bind_text(stmt, 2, (const char *)value.p, (int)value.bytes, NULL);
    step(session, which);
}

static void
sqlite_insert(KvSession *session, u64 key, Slice value)
{
    write_row(session, SAY_INSERT, key, value);
}

static void
sqlite_update_one(KvSession *session, u64 key, Slice value)
{
    if (session->has_mutex) pthread_mutex_lock(&session->kv->mutex);
    write_row(session, SAY_UPDATE, key, value);
    if (session->engine->changes(session->db) != 1)
        kv_die("sqlite: no key %llu", (unsigned long long)key);
    if (session->has_mutex) pthread_mutex_unlock(&session->kv->mutex);
}

static u64
sqlite_scan(KvSession *session, u64 *sum_out)
{
    const Engine *engine = session->engine;
    sqlite3_stmt *stmt = session->stmt[SAY_SCAN];
    u64 rows = 0;
    int code = engine->step(stmt);
    for (; code == CODE_ROW; code = engine->step(stmt)) {
        *sum_out += engine->column_text(stmt, 0)[0];
        rows++;
    }
    must(session, code == CODE_DONE, "scan");
    engine->reset(stmt);
    return rows;
}

const KvKind kv_sqlite = {.name = "sqlite",
                          .open = sqlite_open,
                          .close = sqlite_close,
                          .session = sqlite_session,
                          .session_end = sqlite_session_end,
                          .begin = sqlite_begin,
                          .commit = sqlite_commit,
                          .get = sqlite_get,
                          .insert = sqlite_insert,
                          .append = sqlite_insert,
                          .update_one = sqlite_update_one,
                          .scan = sqlite_scan};
