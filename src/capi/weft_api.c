/*
 * weft_api.c -- weft.h over session.h: arguments checked, calls locked, codes translated.
 *
 * A weft_db exists even when opening failed, so that the caller can ask why; then `session` is NULL
 * and every other call answers WEFT_MISUSE.
 */
#include "capi/weft_impl.h"

#include "capi/carray.h"
#include "rt/process.h"

#define NS_PER_MS       ((u64)1000000)
#define BUSY_DEFAULT_MS ((u64)5000)

int
weft__result(weft_db *db, Err err)
{
    db->code = err_sqlite(err);
    return db->code;
}

static u64
busy_ns(int64_t milliseconds)
{
    return milliseconds < 0 ? 0 : (u64)milliseconds * NS_PER_MS;
}

static SessionOptions
session_options(const weft_options *options)
{
    static const StoreSync syncs[] = {STORE_SYNC_FULL, STORE_SYNC_NORMAL, STORE_SYNC_OFF};
    u64 timeout = options->busy_timeout_ms == 0 ? BUSY_DEFAULT_MS * NS_PER_MS
                                                : busy_ns(options->busy_timeout_ms);
    return (SessionOptions){
        .read_only = options->read_only,
        .create = !options->no_create && !options->read_only,
        .single_writer = options->writers == WEFT_SINGLE,
        .sync = syncs[options->sync],
        .level = STORE_SNAPSHOT,
        .busy_timeout_ns = timeout,
        .pool_bytes = options->pool_bytes,
        .page_bytes = options->page_bytes,
    };
}

int
weft_open(const char *path, const weft_options *options, weft_db **db_out)
{
    static const weft_options defaults;
    if (db_out == NULL) return WEFT_MISUSE;
    *db_out = NULL;
    if (options == NULL) options = &defaults;
    weft_db *db = MEM_NEW(weft_db);
    if (db == NULL) return WEFT_NOMEM;
    *db_out = db;
    db->open_error.sql_offset = -1;
    if (options->sync < 0 || options->sync > WEFT_SYNC_OFF || options->writers < 0 ||
        options->writers > WEFT_SINGLE) {
        return weft__result(db, err_set(&db->open_error, ERR_MISUSE, "an option is out of range"));
    }
    SessionOptions session = session_options(options);
    Err err = session_open(rt_process_default(), path, &session, &db->session, &db->open_error);
    if (err == OK) {
        SessionHooks hooks = *session_hooks(db->session);
        hooks.find_table_func = capi__find_table_func;
        session_set_hooks(db->session, &hooks);
    }
    return weft__result(db, err);
}

int
weft_close(weft_db *db)
{
    if (db == NULL) return WEFT_OK;
    session_destroy(db->session);
    err_clear(&db->open_error);
    mem_free(db);
    return WEFT_OK;
}

static const ErrMsg *
last_error(const weft_db *db)
{
    return db->session == NULL ? &db->open_error : session_error(db->session);
}

const char *
weft_errmsg(weft_db *db)
{
    return db == NULL ? err_text(ERR_NOMEM) : err_message(last_error(db));
}

int
weft_errcode(weft_db *db)
{
    return db == NULL ? WEFT_NOMEM : err_sqlite(last_error(db)->err);
}

const char *
weft_errname(int code)
{
    return err_sqlite_name(code);
}

int
weft_error_offset(weft_db *db)
{
    return db == NULL || last_error(db)->err == OK ? -1 : last_error(db)->sql_offset;
}

weft_error *
weft_error_take(weft_db *db)
{
    if (db == NULL) return NULL;
    if (db->session != NULL) session_lock(db->session);
    const ErrMsg *error = last_error(db);
    const char *text = err_message(error);
    size_t bytes = strlen(text) + 1;
    weft_error *made = error->err == OK ? NULL : mem_alloc(sizeof(*made) + bytes);
    if (made != NULL) {
        char *copy = (char *)(made + 1);
        memcpy(copy, text, bytes);
        int code = error->err == ERR_HOST ? error->host_code : err_sqlite(error->err);
        *made = (weft_error){
            .code = code,
            .offset = error->sql_offset,
            .retry = (code & 0xff) == WEFT_BUSY || (code & 0xff) == WEFT_LOCKED,
            .name = err_sqlite_name(code),
            .message = copy,
        };
    }
    if (db->session != NULL) session_unlock(db->session);
    return made;
}

void
weft_error_free(weft_error *error)
{
    mem_free(error);
}

const char *
weft_version(void)
{
    return WEFT_VERSION;
}

void
weft_interrupt(weft_db *db)
{
    if (db != NULL && db->session != NULL) session_interrupt(db->session);
}

void
weft_busy_timeout(weft_db *db, int64_t milliseconds)
{
    if (db != NULL && db->session != NULL) {
        session_set_busy_timeout(db->session, busy_ns(milliseconds));
    }
}

int
weft_limit(weft_db *db, int limit, int to)
{
    if (db == NULL || db->session == NULL) return -1;
    return session_limit(db->session, limit, to);
}

/* ---- statements ---- */

int
weft_prepare(weft_db *db, const char *sql, ptrdiff_t bytes, weft_stmt **stmt_out,
             const char **tail_out)
{
    if (stmt_out != NULL) *stmt_out = NULL;
    if (tail_out != NULL) *tail_out = sql;
    if (db == NULL || db->session == NULL || sql == NULL || stmt_out == NULL) return WEFT_MISUSE;
    size_t consumed = 0;
    Stmt *inner;
    weft_stmt *stmt = MEM_NEW(weft_stmt);
    if (stmt == NULL) return weft__result(db, ERR_NOMEM);
    Err err = bytes < 0 ? stmt_prepare_text(db->session, sql, SIZE_MAX, &inner, &consumed)
                        : stmt_prepare(db->session, SLICE(sql, (size_t)bytes), &inner, &consumed);
    if (tail_out != NULL) *tail_out = sql + consumed;
    if (err != OK || inner == NULL) {
        mem_free(stmt);
        return weft__result(db, err);
    }
    *stmt = (weft_stmt){.stmt = inner, .db = db};
    *stmt_out = stmt;
    return weft__result(db, OK);
}

int
weft_finalize(weft_stmt *stmt)
{
    if (stmt == NULL) return WEFT_OK;
    Err err = stmt_finalize(stmt->stmt);
    weft_db *db = stmt->db;
    weft__fetch_reset(stmt);
    weft__drop_arrays(stmt, 0);
    mem_free(stmt->chosen);
    mem_free(stmt);
    return weft__result(db, err);
}

int
weft_reset(weft_stmt *stmt)
{
    if (stmt == NULL) return WEFT_OK;
    weft__fetch_reset(stmt);
    return weft__result(stmt->db, stmt_reset(stmt->stmt));
}

int
weft_step(weft_stmt *stmt)
{
    if (stmt == NULL) return WEFT_MISUSE;
    bool row;
    Err err = stmt_step(stmt->stmt, &row);
    stmt->fetch_ended = false;
    if (UNLIKELY(stmt->type != NULL) && (err != OK || !row)) weft__fetch_reset(stmt);
    if (err != OK) return weft__result(stmt->db, err);
    stmt->db->code = WEFT_OK;
    return row ? WEFT_ROW : WEFT_DONE;
}

int
weft_exec(weft_db *db, const char *sql)
{
    if (db == NULL || db->session == NULL || sql == NULL) return WEFT_MISUSE;
    return weft__result(db, session_exec(db->session, SLICE(sql, strlen(sql))));
}

/* ---- binding ---- */

static int
bind(weft_stmt *stmt, int index, Cell cell)
{
    if (stmt == NULL) return WEFT_MISUSE;
    if (index < 1) return WEFT_RANGE;
    Err err = stmt_bind(stmt->stmt, (u32)index - 1, &cell);
    if (err == OK && UNLIKELY(stmt->arrays != NULL)) weft__drop_arrays(stmt, index);
    return weft__result(stmt->db, err);
}

int
weft_bind_null(weft_stmt *stmt, int index)
{
    return bind(stmt, index, cell_null());
}

int
weft_bind_int64(weft_stmt *stmt, int index, int64_t value)
{
    return bind(stmt, index, cell_int(value));
}

int
weft_bind_double(weft_stmt *stmt, int index, double value)
{
    return bind(stmt, index, cell_real(value));
}

int
weft_bind_text(weft_stmt *stmt, int index, const char *text, ptrdiff_t bytes)
{
    if (text == NULL) return bind(stmt, index, cell_null());
    size_t length = bytes < 0 ? strlen(text) : (size_t)bytes;
    if (length > U32_MAX) return WEFT_TOOBIG;
    return bind(stmt, index, cell_text(text, length));
}

int
weft_bind_blob(weft_stmt *stmt, int index, const void *bytes, size_t count)
{
    if (bytes == NULL && count > 0) return WEFT_MISUSE;
    if (count > U32_MAX) return WEFT_TOOBIG;
    return bind(stmt, index, cell_blob(bytes == NULL ? "" : bytes, count));
}

int
weft_bind_count(weft_stmt *stmt)
{
    return stmt == NULL ? 0 : (int)stmt_param_count(stmt->stmt);
}

int
weft_bind_index(weft_stmt *stmt, const char *name)
{
    return stmt == NULL || name == NULL ? 0 : (int)stmt_param_index(stmt->stmt, name);
}

const char *
weft_bind_name(weft_stmt *stmt, int index)
{
    return stmt == NULL || index < 1 ? NULL : stmt_param_name(stmt->stmt, (u32)index - 1);
}

int
weft_clear_bindings(weft_stmt *stmt)
{
    if (stmt == NULL) return WEFT_MISUSE;
    stmt_clear_bindings(stmt->stmt);
    weft__drop_arrays(stmt, 0);
    return WEFT_OK;
}

/* ---- columns ---- */

/* The cell of the current row; NULL where there is none. */
static const Cell *
column_cell(weft_stmt *stmt, int column)
{
    if (stmt == NULL || column < 0) return NULL;
    const Cell *row = stmt_row(stmt->stmt);
    if (row == NULL || (u32)column >= stmt_column_count(stmt->stmt)) return NULL;
    return &row[column];
}

int
weft_column_count(weft_stmt *stmt)
{
    return stmt == NULL ? 0 : (int)stmt_column_count(stmt->stmt);
}

const char *
weft_column_name(weft_stmt *stmt, int column)
{
    const PlanColumn *at = stmt == NULL || column < 0 ? NULL : stmt_column(stmt->stmt, (u32)column);
    return at == NULL ? NULL : at->name;
}

const char *
weft_column_decltype(weft_stmt *stmt, int column)
{
    const PlanColumn *at = stmt == NULL || column < 0 ? NULL : stmt_column(stmt->stmt, (u32)column);
    return at == NULL ? NULL : at->decl_type;
}

int
weft_column_type(weft_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    return cell == NULL || cell->type == CELL_NULL ? WEFT_NULL : cell->type;
}

int64_t
weft_column_int64(weft_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    return cell == NULL ? 0 : cell_to_int(cell);
}

double
weft_column_double(weft_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    return cell == NULL ? 0.0 : cell_to_real(cell);
}

const char *
weft_column_text(weft_stmt *stmt, int column)
{
    size_t bytes;
    if (column_cell(stmt, column) == NULL) return NULL;
    return stmt_row_text(stmt->stmt, (u32)column, &bytes);
}

const void *
weft_column_blob(weft_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (cell == NULL || cell->type == CELL_NULL) return NULL;
    if (cell->type == CELL_BLOB && (cell->flags & CELL_ZEROBLOB) == 0) return cell->u.p;
    return weft_column_text(stmt, column);
}

size_t
weft_column_bytes(weft_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    size_t bytes = 0;
    if (cell == NULL) return 0;
    if (cell->type == CELL_TEXT || cell->type == CELL_BLOB) return cell->bytes;
    (void)stmt_row_text(stmt->stmt, (u32)column, &bytes);
    return bytes;
}

/* ---- the rest ---- */

bool
weft_stmt_readonly(weft_stmt *stmt)
{
    return stmt == NULL || stmt_is_read_only(stmt->stmt);
}

const char *
weft_stmt_sql(weft_stmt *stmt)
{
    return stmt == NULL ? NULL : stmt_sql(stmt->stmt);
}

int64_t
weft_changes(weft_db *db)
{
    return db == NULL || db->session == NULL ? 0 : session_changes(db->session);
}

int64_t
weft_total_changes(weft_db *db)
{
    return db == NULL || db->session == NULL ? 0 : session_total_changes(db->session);
}

int64_t
weft_last_insert_rowid(weft_db *db)
{
    return db == NULL || db->session == NULL ? 0 : session_last_rowid(db->session);
}

bool
weft_autocommit(weft_db *db)
{
    return db == NULL || db->session == NULL || session_autocommit(db->session);
}

/* ---- transactions ---- */

int
weft_begin(weft_db *db, int level)
{
    static const char *const texts[] = {"BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED",
                                        "BEGIN ISOLATION LEVEL SNAPSHOT",
                                        "BEGIN ISOLATION LEVEL SERIALIZABLE"};
    if (level < WEFT_LEVEL_DEFAULT || level > WEFT_LEVEL_SERIALIZABLE) return WEFT_MISUSE;
    return weft_exec(db, texts[level]);
}

int
weft_commit(weft_db *db)
{
    return weft_exec(db, "COMMIT");
}

int
weft_rollback(weft_db *db)
{
    if (db == NULL || db->session == NULL) return WEFT_MISUSE;
    return weft_autocommit(db) ? WEFT_OK : weft_exec(db, "ROLLBACK");
}

int
weft_checkpoint(weft_db *db)
{
    if (db == NULL || db->session == NULL) return WEFT_MISUSE;
    return weft__result(db, session_checkpoint(db->session));
}

int
weft_backup(weft_db *db, const char *name, const char *path)
{
    if (db == NULL || db->session == NULL || name == NULL || path == NULL) return WEFT_MISUSE;
    return weft__result(db, session_backup(db->session, name, path));
}

int
weft_stats(weft_db *db, weft_statistics *statistics_out)
{
    if (db == NULL || db->session == NULL || statistics_out == NULL) return WEFT_MISUSE;
    StoreStats stats;
    store_stats(session_store(db->session), &stats);
    *statistics_out = (weft_statistics){
        .commits = stats.commits,
        .rollbacks = stats.rollbacks,
        .row_waits = stats.row_waits,
        .deadlocks = stats.deadlocks,
        .conflicts = stats.conflicts,
        .log_syncs = stats.log_syncs,
        .log_bytes = stats.log_bytes,
        .group_commits = stats.group_commits,
        .checkpoints = stats.checkpoints,
        .transactions_open = stats.transactions_open,
        .versions_live = stats.versions_live,
        .version_bytes = stats.version_bytes,
        .file_bytes = stats.file_bytes,
        .memory_bytes = stats.memory_bytes,
    };
    return WEFT_OK;
}
