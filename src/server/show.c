/*
 * show.c -- the sessions of a database as a table, and a function that ends one.
 *
 *     SELECT id, state, seconds, sql FROM weft_sessions;
 *     SELECT weft_end_session(17);
 *
 * A client sees the sessions of its own database.  The rows are copied when the scan starts.
 */
#include "server/show.h"

#include <string.h>

#include "rt/time.h"
#include "server/server__conn.h"

enum {
    COLUMN_ID,
    COLUMN_PROTOCOL,
    COLUMN_PEER,
    COLUMN_STATE,
    COLUMN_SECONDS,
    COLUMN_TRANSACTION_SECONDS,
    COLUMN_ROWS,
    COLUMN_MEMORY,
    COLUMN_SQL,
    COLUMNS
};

static const char *const columns[COLUMNS] = {
    "id",   "protocol",     "peer", "state", "seconds", "transaction_seconds",
    "rows", "memory_bytes", "sql",
};

typedef struct SessionRow {
    u64 number, since_ns, txn_since_ns, rows, memory_bytes;
    const char *protocol;
    char peer[SEAT_PEER_BYTES];
    char sql[SEAT_SQL_BYTES];
    u32 sql_bytes;
    bool busy;
} SessionRow;

typedef struct SessionRows {
    Buf rows;  /* SessionRow */
    size_t at; /* Index + 1 of the present row. */
    u64 now_ns;
} SessionRows;

static Engine *
engine_of(const FuncEnv *env)
{
    const SessionHooks *hooks = session_hooks(env->arg);
    return hooks->map_file_arg;
}

static Err
rows_copy(Server *server, const ServedDb *db, Buf *rows)
{
    Err err = OK;
    rt_mutex_lock(&server->lock);
    for (Seat *seat = server->seats; seat != NULL && err == OK; seat = seat->next) {
        if (seat->db != db) continue;
        SessionRow row = {.number = seat->number, .protocol = seat->protocol};
        rt_mutex_lock(&seat->lock);
        row.since_ns = seat->since_ns;
        row.txn_since_ns = seat->txn_since_ns;
        row.rows = rt_load_relaxed(&seat->rows);
        row.memory_bytes = seat->engine == NULL ? 0 : session_memory_bytes(seat->engine->session);
        row.busy = seat->state == SEAT_BUSY;
        row.sql_bytes = seat->sql_bytes;
        memcpy(row.sql, seat->sql, seat->sql_bytes);
        memcpy(row.peer, seat->peer, sizeof(row.peer));
        rt_mutex_unlock(&seat->lock);
        err = buf_append(rows, &row, sizeof(row));
    }
    rt_mutex_unlock(&server->lock);
    return err;
}

static Err
sessions_start(TableCall *call, const Cell *const *arg)
{
    SessionRows *state = call->state;
    Engine *engine = engine_of(call->env);
    (void)arg;
    buf_clear(&state->rows);
    state->at = 0;
    state->now_ns = rt_now_ns();
    if (engine == NULL || engine->seat == NULL) return OK;
    return rows_copy(engine->seat->server, engine->seat->db, &state->rows);
}

static Err
sessions_next(TableCall *call, bool *row_out)
{
    SessionRows *state = call->state;
    *row_out = state->at < state->rows.bytes / sizeof(SessionRow);
    state->at += *row_out;
    return OK;
}

static f64
seconds_since(u64 now_ns, u64 then_ns)
{
    return now_ns <= then_ns ? 0.0 : (f64)((now_ns - then_ns) / RT_NS_PER_MS) / 1000.0;
}

static Err
sessions_value(TableCall *call, u32 column, Cell *out)
{
    const SessionRows *state = call->state;
    SessionRow row;
    memcpy(&row, state->rows.p + (state->at - 1) * sizeof(row), sizeof(row));
    const char *text = NULL;
    size_t bytes = 0;
    switch (column) {
    case COLUMN_ID: *out = cell_int((i64)row.number); return OK;
    case COLUMN_PROTOCOL: text = row.protocol; break;
    case COLUMN_PEER: text = row.peer; break;
    case COLUMN_STATE:
        text = row.busy ? "running" : row.txn_since_ns != 0 ? "in transaction" : "idle";
        break;
    case COLUMN_SECONDS: *out = cell_real(seconds_since(state->now_ns, row.since_ns)); return OK;
    case COLUMN_TRANSACTION_SECONDS:
        if (row.txn_since_ns != 0) *out = cell_real(seconds_since(state->now_ns, row.txn_since_ns));
        return OK;
    case COLUMN_ROWS: *out = cell_int((i64)row.rows); return OK;
    case COLUMN_MEMORY: *out = cell_int((i64)row.memory_bytes); return OK;
    default:
        text = row.sql;
        bytes = row.sql_bytes;
        while (bytes > 0 && !utf8_valid((const u8 *)text, bytes))
            bytes--; /* Cut inside a character. */
        break;
    }
    if (column != COLUMN_SQL) bytes = strlen(text);
    char *copy = arena_strndup(call->arena, text, bytes);
    if (copy == NULL) return ERR_NOMEM;
    *out = cell_text(copy, bytes);
    return OK;
}

static i64
sessions_rowid(const TableCall *call)
{
    return (i64)((const SessionRows *)call->state)->at;
}

static void
sessions_end(TableCall *call)
{
    SessionRows *state = call->state;
    buf_free(&state->rows);
    state->at = 0;
}

static const TableFunc sessions_func = {
    .name = "weft_sessions",
    .column = columns,
    .column_count = COLUMNS,
    .hidden_from = COLUMNS,
    .state_bytes = sizeof(SessionRows),
    .start = sessions_start,
    .next = sessions_next,
    .value = sessions_value,
    .rowid = sessions_rowid,
    .end = sessions_end,
};

const TableFunc *
show__table_func(void *arg, Slice name)
{
    (void)arg;
    return slice_equal_nocase(name, SLICE_LITERAL("weft_sessions")) ? &sessions_func : NULL;
}

/* ---- weft_end_session(id) ---- */

/* 1: it will end, 0: there is no such session here. */
static Err
end_session(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    Engine *engine = engine_of(call->env);
    bool found = false;
    (void)argc;
    *result_out = cell_int(0);
    if (engine == NULL || engine->seat == NULL || argv[0].type != CELL_INT) return OK;
    Server *server = engine->seat->server;
    if (engine->seat->rights.read_only)
        return err_set(call->msg, ERR_READONLY, "%s", err_text(ERR_READONLY));
    rt_mutex_lock(&server->lock);
    for (Seat *seat = server->seats; seat != NULL; seat = seat->next) {
        if (seat->db != engine->seat->db || seat->number != (u64)argv[0].u.i) continue;
        found = true;
        rt_mutex_lock(&seat->lock);
        seat->killed = true;
        if (seat->state == SEAT_IDLE && seat->home != NULL) rt_socket_shutdown(seat->home);
        rt_mutex_unlock(&seat->lock);
        (void)seat__interrupt(seat, END_KILLED);
    }
    rt_mutex_unlock(&server->lock);
    *result_out = cell_int(found);
    return OK;
}

static const FuncDef end_session_def = {
    .name = "weft_end_session",
    .argc_min = 1,
    .argc_max = 1,
    .kind = FUNC_SCALAR,
    .flags = FUNC_FALLIBLE | FUNC_VOLATILE | FUNC_DIRECT_ONLY,
    .scalar = end_session,
};

static const FuncDef *const defs[] = {&end_session_def};

Err
show__init(Server *server)
{
    const FuncTable *builtin = session_builtin_functions();
    if (builtin == NULL) return ERR_NOMEM;
    return func_table_init(&server->functions, builtin, defs, COUNT_OF(defs));
}

void
show__free(Server *server)
{
    func_table_free(&server->functions);
}

const FuncTable *
show__functions(Server *server)
{
    return &server->functions;
}
