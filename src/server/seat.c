/*
 * seat.c -- seats: statements by text, interrupts, what is known of what runs.
 */
#include "server/seat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rt/task.h"
#include "rt/time.h"
#include "server/server__conn.h"

#define FAULT_TEXT_MAX  512
#define STALE_IDLE_PART 5 /* Of its time limit a transaction must have been idle last. */

void
fault__set(Fault *fault, int code, const char *name, const char *format, ...)
{
    char text[FAULT_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fault->code = code;
    fault->name = name;
    fault->offset = -1;
    fault->is_input = false;
    buf_clear(&fault->text);
    Err err = buf_append_text(&fault->text, text);
    (void)err; /* Then the name speaks for itself. */
}

void
fault__free(Fault *fault)
{
    buf_free(&fault->text);
    *fault = (Fault){0};
}

Slice
fault__text(const Fault *fault)
{
    if (fault->text.bytes > 0) return buf_slice(&fault->text);
    return SLICE(fault->name, fault->name == NULL ? 0 : strlen(fault->name));
}

/* ---- life ---- */

Seat *
seat__open(ServedDb *db, const char *protocol, const char *peer)
{
    Server *server = db->server;
    Seat *seat = MEM_NEW(Seat);
    if (seat == NULL) return NULL;
    seat->server = server;
    seat->db = db;
    seat->protocol = protocol;
    seat->since_ns = rt_now_ns();
    snprintf(seat->peer, sizeof(seat->peer), "%s", peer);
    rt_mutex_lock(&server->lock);
    seat->number = ++server->next_number;
    seat->next = server->seats;
    if (seat->next != NULL) seat->next->prev = seat;
    server->seats = seat;
    server->seat_count++;
    db->seats++;
    rt_mutex_unlock(&server->lock);
    return seat;
}

/* With the lock held. */
static void
wait_while_held(Seat *seat)
{
    while (seat->state == SEAT_HELD)
        rt_cond_wait(&seat->changed, &seat->lock);
}

void
seat__close(Seat *seat)
{
    if (seat == NULL) return;
    Server *server = seat->server;
    rt_mutex_lock(&seat->lock);
    wait_while_held(seat);
    Engine *engine = seat->engine;
    seat->engine = NULL;
    seat->state = SEAT_IDLE;
    seat->socket = NULL;
    rt_mutex_unlock(&seat->lock);
    if (engine != NULL && !db__give(seat->db, engine)) db__drop(engine);

    rt_mutex_lock(&server->lock);
    if (seat->prev != NULL)
        seat->prev->next = seat->next;
    else
        server->seats = seat->next;
    if (seat->next != NULL) seat->next->prev = seat->prev;
    server->seat_count--;
    seat->db->seats--;
    seat->db->used_ns = rt_now_ns();
    rt_mutex_unlock(&server->lock);
    mem_free(seat);
}

bool
seat__ready(Seat *seat, Fault *fault)
{
    if (seat->engine != NULL) return true;
    Engine *engine = db__take(seat->db, fault);
    if (engine == NULL) return false;
    engine->seat = seat;
    session_set_read_only(engine->session, seat->rights.read_only && !PLANT(221));
    session_set_last_rowid(engine->session, seat->last_rowid);
    session_set_changes(engine->session, seat->changes, seat->total_changes);
    rt_mutex_lock(&seat->lock);
    seat->engine = engine;
    rt_mutex_unlock(&seat->lock);
    return true;
}

void
seat__rest(Seat *seat)
{
    if (seat__in_transaction(seat)) return;
    Engine *engine = seat->engine;
    if (engine == NULL || !session_autocommit(engine->session)) return;
    for (u32 i = 0; i < ENGINE_CACHE; i++)
        if (engine->cache[i].in_use) return;
    seat->changes = session_changes(engine->session);
    seat->total_changes = session_total_changes(engine->session);
    seat->last_rowid = session_last_rowid(engine->session);
    rt_mutex_lock(&seat->lock);
    seat->engine = NULL;
    rt_mutex_unlock(&seat->lock);
    if (db__give(seat->db, engine)) return;
    rt_mutex_lock(&seat->lock); /* It holds something of the client. */
    seat->engine = engine;
    rt_mutex_unlock(&seat->lock);
}

bool
seat__is_killed(Seat *seat)
{
    rt_mutex_lock(&seat->lock);
    bool killed = seat->killed;
    rt_mutex_unlock(&seat->lock);
    return killed;
}

void
seat__set_read_only_txn(Seat *seat)
{
    if (session_autocommit(seat__session(seat))) return;
    seat->read_only_txn = true;
    session_set_read_only(seat__session(seat), true);
}

/* ---- requests ---- */

void
seat__begin(Seat *seat, RtSocket *socket)
{
    rt_mutex_lock(&seat->lock);
    wait_while_held(seat);
    ASSERT(seat->state == SEAT_IDLE);
    seat->state = SEAT_BUSY;
    seat->ended_by = END_NONE;
    seat->socket = socket;
    seat->since_ns = rt_now_ns();
    rt_store_relaxed(&seat->stop, 0u);
    rt_mutex_unlock(&seat->lock);
}

void
seat__end(Seat *seat)
{
    rt_mutex_lock(&seat->lock);
    seat->state = SEAT_IDLE;
    seat->ended_by = END_NONE;
    seat->deadline_ns = 0;
    seat->socket = NULL;
    seat->since_ns = rt_now_ns();
    bool open = seat->engine != NULL && !session_autocommit(seat->engine->session);
    if (!open)
        seat->txn_since_ns = 0;
    else if (seat->txn_since_ns == 0)
        seat->txn_since_ns = seat->since_ns;
    rt_store_relaxed(&seat->stop, 0u);
    rt_mutex_unlock(&seat->lock);
}

/* ---- transactions that nobody goes on with ---- */

bool
seat__in_transaction(Seat *seat)
{
    rt_mutex_lock(&seat->lock);
    bool is = seat->txn_since_ns != 0;
    rt_mutex_unlock(&seat->lock);
    return is;
}

bool
seat__hold_if_stale(Seat *seat, u64 now_ns, u64 limit_ns)
{
    rt_mutex_lock(&seat->lock);
    /* Its client may be between two requests. */
    bool stale = seat->state == SEAT_IDLE && seat->txn_since_ns != 0 && seat->engine != NULL &&
                 now_ns >= seat->txn_since_ns + limit_ns &&
                 now_ns >= seat->since_ns + limit_ns / STALE_IDLE_PART &&
                 session_is_waited_for(seat->engine->session);
    if (stale) seat->state = SEAT_HELD;
    rt_mutex_unlock(&seat->lock);
    return stale;
}

void
seat__take_transaction(Seat *seat)
{
    session_rollback(seat__session(seat));
    rt_mutex_lock(&seat->lock);
    ASSERT(seat->state == SEAT_HELD);
    seat->state = SEAT_IDLE;
    seat->txn_since_ns = 0;
    seat->txn_lost = true;
    seat->lost_told = false;
    if (seat->read_only_txn) session_set_read_only(seat__session(seat), seat->rights.read_only);
    seat->read_only_txn = false;
    rt_cond_broadcast(&seat->changed, &seat->lock);
    rt_mutex_unlock(&seat->lock);
}

bool
seat__has_lost_transaction(Seat *seat, const Stmt *stmt, Fault *fault)
{
    if (LIKELY(!seat->txn_lost) || PLANT(209)) return false;
    StmtKind kind = stmt_kind(stmt);
    if (kind == STMT_KIND_BEGIN && seat->lost_told) {
        seat->txn_lost = false;
        return false;
    }
    fault__set(fault, 5, "TRANSACTION_TIMEOUT", "Transaction timed out");
    seat->lost_told = true;
    if (kind == STMT_KIND_END) seat->txn_lost = false;
    return true;
}

void
seat__lost_told(Seat *seat)
{
    if (seat->lost_told) seat->txn_lost = false;
}

bool
seat__interrupt(Seat *seat, SeatEnd why)
{
    rt_mutex_lock(&seat->lock);
    bool busy = seat->state == SEAT_BUSY;
    if (busy) {
        if (seat->ended_by == END_NONE) seat->ended_by = (u8)why;
        rt_store(&seat->stop, 1u);
        if (seat->engine != NULL) session_interrupt(seat->engine->session);
    }
    rt_mutex_unlock(&seat->lock);
    return busy;
}

void
seat__statement(Seat *seat, Slice sql)
{
    u64 limit_ns = seat->server->options.statement_timeout_ns;
    rt_mutex_lock(&seat->lock);
    if (seat->ended_by == END_TIMEOUT) { /* It was another statement's time. */
        seat->ended_by = END_NONE;
        rt_store_relaxed(&seat->stop, 0u);
    }
    seat->sql_bytes = (u32)MIN_OF(sql.bytes, (size_t)SEAT_SQL_BYTES);
    if (seat->sql_bytes > 0) memcpy(seat->sql, sql.p, seat->sql_bytes);
    if (limit_ns > 0) seat->deadline_ns = rt_deadline_after(limit_ns);
    rt_mutex_unlock(&seat->lock);
}

static u32
histogram_bucket(u64 ns)
{
    u64 us = ns / 1000;
    if (us < 1) return 0;
    u32 octave = 63 - (u32)__builtin_clzll(us);
    u32 half = octave > 0 ? (u32)(us >> (octave - 1)) & 1u : 0;
    return MIN_OF(2 * octave + half + 1, (u32)HISTOGRAM_BUCKETS - 1);
}

void
seat__count(Seat *seat, StmtKind kind, u64 started_ns, u64 rows, const Fault *fault)
{
    Server *server = seat->server;
    u64 took_ns = rt_now_ns() - started_ns;
    Histogram *histogram = &server->statements[kind];
    rt_fetch_add(&histogram->bucket[histogram_bucket(took_ns)], 1);
    rt_fetch_add(&histogram->sum_ns, took_ns);
    if (rows > 0) {
        rt_fetch_add(&seat->rows, rows);
        server__count(server, COUNT_ROWS, rows);
    }
    if (fault != NULL && fault->name != NULL) server__count(server, COUNT_ERRORS, 1);
    if (server->options.slow_ns == 0 || took_ns < server->options.slow_ns) return;
    server__count(server, COUNT_SLOW, 1);
    log_line(LOG_WARN, "slow statement: %llu ms, %llu rows, session %llu, %s: %.*s",
             (unsigned long long)(took_ns / RT_NS_PER_MS), (unsigned long long)rows,
             (unsigned long long)seat->number,
             fault != NULL && fault->name != NULL ? fault->name : "ok", (int)seat->sql_bytes,
             seat->sql);
}

/* ---- errors ---- */

static const char *
end_text(Seat *seat)
{
    rt_mutex_lock(&seat->lock);
    u8 why = seat->ended_by;
    rt_mutex_unlock(&seat->lock);
    switch ((SeatEnd)why) {
    case END_TIMEOUT: return "statement time limit passed";
    case END_DRAIN: return "the server is shutting down";
    case END_KILLED: return "ended by another session";
    case END_CANCEL:
    case END_PEER:
    case END_NONE: break;
    }
    return "interrupted";
}

void
seat__fault(Seat *seat, Err err, Fault *fault)
{
    const ErrMsg *cause = session_error(seat__session(seat));
    int code = err == ERR_HOST ? cause->host_code : err_sqlite(err);
    const char *text = (code & 0xff) == 9  ? end_text(seat)
                       : cause->err == err ? err_message(cause)
                                           : err_text(err);
    fault->code = code;
    fault->name = err_sqlite_name(code);
    fault->is_input = false;
    fault->offset = cause->err == err ? cause->sql_offset : -1;
    buf_clear(&fault->text);
    Err kept = buf_append_text(&fault->text, text);
    (void)kept;
}

/* ---- statements ---- */

static Cached *
cache_find(Engine *engine, Slice sql, u64 hash)
{
    for (u32 i = 0; i < ENGINE_CACHE; i++) {
        Cached *cached = &engine->cache[i];
        if (cached->stmt != NULL && cached->hash == hash && cached->bytes == sql.bytes &&
            !cached->in_use && memcmp(cached->text, sql.p, sql.bytes) == 0)
            return cached;
    }
    return NULL;
}

static void
cached_drop(Cached *cached)
{
    Err err = stmt_finalize(cached->stmt);
    (void)err; /* Of its last run, told already. */
    mem_free(cached->text);
    *cached = (Cached){0};
}

/* Keep a prepared statement for later; without room or memory it just is not kept. */
static void
cache_keep(Engine *engine, Slice sql, u64 hash, Stmt *stmt)
{
    Cached *slot = NULL;
    if (sql.bytes > CACHED_TEXT_MAX) return;
    for (u32 i = 0; i < ENGINE_CACHE; i++) {
        Cached *cached = &engine->cache[i];
        if (cached->in_use) continue;
        if (slot == NULL || cached->last_use < slot->last_use) slot = cached;
    }
    if (slot == NULL) return;
    char *text = mem_strndup(sql.p, sql.bytes);
    if (text == NULL) return;
    if (slot->stmt != NULL) cached_drop(slot);
    *slot = (Cached){stmt, text, sql.bytes, hash, ++engine->uses, true};
}

/* Is there another statement behind the first?  Only blanks, comments and semicolons are none. */
static bool
rest_is_blank(Session *session, Slice rest, Err *err_out)
{
    Stmt *second = NULL;
    size_t used = 0;
    *err_out = OK;
    while (rest.bytes > 0) {
        Err err = stmt_prepare(session, rest, &second, &used);
        if (err != OK) {
            *err_out = err;
            return false;
        }
        if (second != NULL) {
            err = stmt_finalize(second);
            (void)err;
            return false;
        }
        if (used == 0) break;
        rest = SLICE(rest.p + used, rest.bytes - used);
    }
    return true;
}

bool
seat__prepare(Seat *seat, Slice sql, Stmt **stmt_out, size_t *rest_out, Fault *fault)
{
    *stmt_out = NULL;
    if (rest_out != NULL) *rest_out = 0;
    if (!seat__ready(seat, fault)) return false;
    Engine *engine = seat->engine;
    u64 hash = hash_bytes(sql.p, sql.bytes, 0);
    Cached *cached = cache_find(engine, sql, hash);
    if (cached != NULL) {
        cached->in_use = true;
        cached->last_use = ++engine->uses;
        *stmt_out = cached->stmt;
        return true;
    }
    size_t used = 0;
    Err err = stmt_prepare(engine->session, sql, stmt_out, &used);
    if (err != OK) {
        seat__fault(seat, err, fault);
        fault->is_input = true;
        return false;
    }
    if (*stmt_out == NULL) return true;
    if (rest_out != NULL && used < sql.bytes) {
        Slice rest = SLICE(sql.p + used, sql.bytes - used);
        if (!rest_is_blank(engine->session, rest, &err)) {
            *rest_out = used;
            return true;
        }
    }
    cache_keep(engine, sql, hash, *stmt_out);
    return true;
}

void
seat__release(Seat *seat, Stmt *stmt)
{
    Err err = OK;
    if (stmt == NULL) return;
    for (u32 i = 0; i < ENGINE_CACHE; i++) {
        Cached *cached = &seat->engine->cache[i];
        if (cached->stmt != stmt) continue;
        err = stmt_reset(stmt);
        stmt_clear_bindings(stmt);
        cached->in_use = false;
        return;
    }
    err = stmt_finalize(stmt);
    (void)err; /* The error of its run, told already. */
}

bool
seat__step(Seat *seat, Stmt *stmt, bool *row_out, Fault *fault)
{
    *row_out = false;
    if (rt_load_relaxed(&seat->stop) != 0) {
        fault__set(fault, 9, "SQLITE_INTERRUPT", "%s", end_text(seat));
    } else {
        Session *session = seat__session(seat);
        Err err = stmt_step(stmt, row_out);
        if (seat->read_only_txn && session_autocommit(session)) {
            seat->read_only_txn = false;
            session_set_read_only(session, seat->rights.read_only);
        }
        if (err == OK) return true;
        seat__fault(seat, err, fault);
    }
    Err ignored = stmt_reset(stmt);
    (void)ignored;
    return false;
}

static bool
word_take(Slice *text, const char *word)
{
    size_t at = 0, bytes = strlen(word);
    while (at < text->bytes && (text->p[at] == ' ' || (text->p[at] >= 9 && text->p[at] <= 13)))
        at++;
    if (at + bytes > text->bytes) return false;
    if (!slice_equal_nocase(SLICE(text->p + at, bytes), SLICE(word, bytes))) return false;
    if (at + bytes < text->bytes) {
        u8 next = text->p[at + bytes];
        bool is_word = next == '_' || next >= 0x80 || (next >= '0' && next <= '9') ||
                       (next >= 'A' && next <= 'Z') || (next >= 'a' && next <= 'z');
        if (is_word) return false;
    }
    *text = SLICE(text->p + at + bytes, text->bytes - at - bytes);
    return true;
}

Slice
seat__begin_text(Slice sql, bool *read_only_out)
{
    Slice rest = sql;
    *read_only_out = false;
    if (!word_take(&rest, "begin")) return sql;
    (void)word_take(&rest, "deferred");
    (void)word_take(&rest, "transaction");
    if (!word_take(&rest, "readonly")) return sql;
    while (rest.bytes > 0 &&
           (rest.p[0] == ' ' || rest.p[0] == ';' || (rest.p[0] >= 9 && rest.p[0] <= 13)))
        rest = SLICE(rest.p + 1, rest.bytes - 1);
    if (rest.bytes > 0) return sql;
    *read_only_out = true;
    return SLICE_LITERAL("BEGIN");
}
