/*
 * session.c -- the life of a connection: open, lock, interrupt, errors, limits, close.
 */
#include "session/session.h"

#include <stdarg.h>
#include <stdio.h>

#include "rt/loop.h"
#include "rt/process.h"
#include "rt/random.h"
#include "rt/time.h"
#include "session/virtual__impl.h"

/* SQLite's defaults, in the order of SQLITE_LIMIT_*; they are also the upper bounds. */
static const int limit_defaults[SESSION_LIMITS] = {
    1000000000, /* LENGTH */
    1000000000, /* SQL_LENGTH */
    2000,       /* COLUMN */
    1000,       /* EXPR_DEPTH */
    500,        /* COMPOUND_SELECT */
    250000000,  /* VDBE_OP */
    1000,       /* FUNCTION_ARG */
    10,         /* ATTACHED */
    50000,      /* LIKE_PATTERN_LENGTH */
    32766,      /* VARIABLE_NUMBER */
    1000,       /* TRIGGER_DEPTH */
    0,          /* WORKER_THREADS */
    2500,       /* PARSER_DEPTH */
};

/* ---- what functions may ask ---- */

static i64
env_changes(void *arg)
{
    return ((Session *)arg)->changes;
}

static i64
env_total_changes(void *arg)
{
    return ((Session *)arg)->total_changes;
}

static i64
env_last_rowid(void *arg)
{
    return ((Session *)arg)->last_rowid;
}

static void
env_random(void *arg, void *bytes_out, size_t bytes)
{
    /* A call of the kernel for each random() of a scan would be most of its time. */
    Session *session = arg;
    if (bytes > sizeof(session->random)) {
        rt_random_bytes(bytes_out, bytes);
        return;
    }
    if (bytes > session->random_left) {
        rt_random_bytes(session->random, sizeof(session->random));
        session->random_left = sizeof(session->random);
    }
    session->random_left -= bytes;
    memcpy(bytes_out, session->random + session->random_left, bytes);
    memset(session->random + session->random_left, 0, bytes);
}

static i64
env_now_ms(void *arg)
{
    Session *session = arg;
    if (session->now_ms == 0) session->now_ms = (i64)(rt_wall_ns() / 1000000);
    return session->now_ms;
}

static bool
env_local_offset_s(void *arg, i64 unix_s, i32 *offset_s_out)
{
    (void)arg;
    return rt_local_offset_s(unix_s, offset_s_out) == OK;
}

static bool
env_stop(void *arg)
{
    (void)arg;
    return rt_check() != OK;
}

static void
hook_set_last_rowid(void *arg, i64 rowid)
{
    ((Session *)arg)->last_rowid = rowid;
}

static void
hook_set_changes(void *arg, i64 changes)
{
    ((Session *)arg)->changes = changes;
}

static void
hook_writes_tree(void *arg, Store *store, TreeId tree)
{
    Session *session = arg;
    session__trip(session, session->current == NULL ? NULL : session->current->exec, store, tree);
}

static void
hook_update(void *arg, ExecChange change, const TableDef *table, i64 rowid)
{
    static const int actions[] = {[EXEC_INSERT] = 18, [EXEC_UPDATE] = 23, [EXEC_DELETE] = 9};
    Session *session = arg;
    session->host.update(session->host.update_arg, actions[change], table->schema, table->name,
                         rowid);
}

static void
hook_preupdate(void *arg, const ExecPreupdate *change)
{
    static const int actions[] = {[EXEC_INSERT] = 18, [EXEC_UPDATE] = 23, [EXEC_DELETE] = 9};
    Session *session = arg;
    const SessionPreupdate news = {
        .action = actions[change->change],
        .database = change->table->schema,
        .table = change->table->name,
        .rowid_old = change->rowid_old,
        .rowid_new = change->rowid_new,
        .column_count = change->table->column_count,
        .row_old = change->row_old,
        .row_new = change->row_new,
        .depth = change->depth,
    };
    session->host.preupdate(session->host.preupdate_arg, &news);
}

static bool
hook_progress(void *arg)
{
    Session *session = arg;
    return session->host.progress(session->host.progress_arg);
}

const SessionHooks *
session_hooks(const Session *session)
{
    return &session->host;
}

void
session_set_hooks(Session *session, const SessionHooks *hooks)
{
    bool asks = hooks->authorize != session->host.authorize ||
                hooks->authorize_arg != session->host.authorize_arg;
    session->host = *hooks;
    session->hooks.preupdate = hooks->preupdate == NULL ? NULL : hook_preupdate;
    session->hooks.update = hooks->update == NULL ? NULL : hook_update;
    session->hooks.progress = hooks->progress == NULL ? NULL : hook_progress;
    session->hooks.progress_every = hooks->progress_every;
    if (asks) session->environment++; /* Plans are made anew, and ask again. */
}

static void
fill_environment(Session *session)
{
    session->func_env = (FuncEnv){
        .arg = session,
        .changes = env_changes,
        .total_changes = env_total_changes,
        .last_insert_rowid = env_last_rowid,
        .random = env_random,
        .now_ms = env_now_ms,
        .local_offset_s = env_local_offset_s,
        .length_max = (u64)session->limit[0],
        .like_pattern_max = (u32)session->limit[8],
        .case_sensitive_like = session->case_sensitive_like,
        .stop = env_stop,
    };
    session->hooks.arg = session;
    session->hooks.set_last_rowid = hook_set_last_rowid;
    session->hooks.set_changes = hook_set_changes;
    session->hooks.writes_tree = hook_writes_tree;
    session->hooks.begin_host = virtual__begin;
    session->exec_env = (ExecEnv){
        .func = &session->func_env,
        .hooks = &session->hooks,
        .account = &session->account,
        .statement_bytes_max = session->statement_bytes_max,
        .memory_budget_bytes = session->exec_env.memory_budget_bytes,
        .batch_rows = session->exec_env.batch_rows,
        .trip_every = session->exec_env.trip_every,
        .pool = &session->chunks,
        .length_max = (u64)session->limit[0],
        .trigger_depth_max = (u32)session->limit[10],
        .foreign_keys = session->foreign_keys,
        .recursive_triggers = session->recursive_triggers,
        .ignore_check = session->ignore_check,
        .multi_writers = !session__single(session),
        .write_no = &session->write_no,
    };
}

bool
session__single(const Session *session)
{
    return session->options.single_writer && !session->concurrent;
}

/* ---- open and close ---- */

static StoreOptions
store_options(const char *path, const SessionOptions *options)
{
    bool nameless = path == NULL || path[0] == 0 || strcmp(path, ":memory:") == 0;
    return (StoreOptions){
        .in_memory = options->in_memory || nameless,
        .read_only = options->read_only && !nameless,
        .create = options->create,
        .beneath = options->beneath,
        .page_bytes = options->page_bytes,
        .pool_bytes = options->pool_bytes,
    };
}

/* NULL: out of memory.  The session takes over the reference to its main database. */
static Session *
session_new(RtProcess *process, const SessionOptions *options, Database *database)
{
    const FuncTable *functions = session_builtin_functions();
    Session *session = functions == NULL ? NULL : MEM_NEW(Session);
    if (session == NULL) return NULL;
    session->process = process;
    session->options = *options;
    session->level = options->level;
    session->db_count = 2;
    session->cache_size = -2000; /* SQLite's default. */
    session->error.sql_offset = -1;
    session->account = (MemAccount){.name = "session", .cap_bytes = options->session_bytes_max};
    session->statement_bytes_max = options->statement_bytes_max;
    rt_task_init(&session->task, process, "session");
    memcpy(session->limit, limit_defaults, sizeof(limit_defaults));
    fill_environment(session);
    session->functions = functions;
    session->db[0] = (SessionDb){
        .name = "main",
        .database = database,
        .env = {.schema = "main", .database = 0, .store = database->store},
        .verified_at = U64_MAX,
    };
    session->db[1] = (SessionDb){.name = "temp", .verified_at = U64_MAX};
    session->account.parent = database->account;
    return session;
}

Err
session_open(RtProcess *process, const char *path, const SessionOptions *options,
             Session **session_out, ErrMsg *msg)
{
    *session_out = NULL;
    if (rt_process_is_foreign(process)) {
        return err_set(msg, ERR_FOREIGN, "%s", err_text(ERR_FOREIGN));
    }
    StoreOptions store = store_options(path, options);
    Database *database = NULL;
    bool nameless = store.in_memory && !options->in_memory;
    Err err = database__open(process, nameless ? NULL : path, &store, &database, msg);
    if (err != OK) return err;
    Session *session = session_new(process, options, database);
    if (session == NULL) {
        database__close(database);
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (options->database_bytes_max != 0)
        mem_account_cap(database->account, options->database_bytes_max);
    *session_out = session;
    return OK;
}

Err
session__open_beside(const Session *session, u32 at, Session **beside_out)
{
    const SessionDb *db = &session->db[at];
    ASSERT(db->database != NULL);
    database__share(db->database);
    Session *beside = session_new(session->process, &session->options, db->database);
    *beside_out = beside;
    if (beside == NULL) {
        database__close(db->database);
        return ERR_NOMEM;
    }
    beside->db[0].read_only = db->read_only;
    beside->level = beside->options.level = STORE_SNAPSHOT;
    beside->functions = session->functions;
    beside->find_collation = session->find_collation;
    beside->collation_arg = session->collation_arg;
    beside->query_only = session->query_only;
    if (at == 1) beside->options.sync = STORE_SYNC_OFF; /* Temporary tables live in memory. */
    return OK;
}

static void
free_session(Session *session)
{
    ASSERT(session->first_stmt == NULL);
    stmt_cache__clear(session);
    stmt__free_spare(session);
    session__rollback(session);
    virtual__close(session);
    for (u32 i = 0; i < session->db_count; i++) {
        catalog_release(session->db[i].catalog);
        database__close(session->db[i].database);
        mem_free(session->db[i].own_name);
    }
    for (u32 i = 0; i < session->savepoint_count; i++)
        mem_free(session->savepoint[i].name);
    mem_free(session->savepoint);
    mem_free(session->kept);
    err_clear(&session->error);
    arena_pool_free(&session->chunks);
    mem_free(session);
}

Err
session_close(Session *session)
{
    if (session == NULL) return OK;
    if (session->first_stmt != NULL) {
        return session_set_error(
            session, ERR_BUSY,
            "unable to close due to unfinalized statements or unfinished backups");
    }
    free_session(session);
    return OK;
}

void
session_close_zombie(Session *session)
{
    if (session == NULL) return;
    session->closing = true;
    if (session->first_stmt == NULL) free_session(session);
}

void
session_destroy(Session *session)
{
    if (session == NULL) return;
    while (session->first_stmt != NULL)
        stmt_finalize(session->first_stmt);
    free_session(session);
}

/* ---- locking, interrupts ---- */

void
session_lock(Session *session)
{
    RtTask *self = rt_self();
    /* A host function that calls back runs as the session's own task. */
    if (self == &session->task || rt_load_relaxed(&session->lock_owner) == self) {
        session->lock_depth++;
        return;
    }
    rt_mutex_lock_fast(&session->lock);
    rt_store_relaxed(&session->lock_owner, self);
    session->lock_depth = 1;
}

void
session_unlock(Session *session)
{
    ASSERT(session->lock_depth > 0);
    if (--session->lock_depth > 0) return;
    rt_store_relaxed(&session->lock_owner, NULL);
    rt_mutex_unlock_fast(&session->lock);
}

void
session__enter(Session *session, RtTask **previous_out)
{
    *previous_out = rt_task_enter(&session->task);
    /* Long statements take turns by database, not by connection.  The address is only a name. */
    rt_share_set((u64)(uintptr_t)session->db[0].database);
}

void
session__leave(Session *session, RtTask *previous)
{
    rt_task_leave(previous);
    session__forget_interrupt(session);
}

void
session__forget_interrupt(Session *session)
{
    if (session->running > 0) return;
    /* Looked at first: writing to the shared words costs more than the rest of a short call. */
    if (UNLIKELY(rt_task_is_cancelled(&session->task))) rt_task_clear_cancel(&session->task);
    if (UNLIKELY(session_is_interrupted(session))) rt_store_relaxed(&session->interrupted, 0);
}

void
session_interrupt(Session *session)
{
    rt_store_relaxed(&session->interrupted, 1);
    rt_task_cancel(&session->task);
}

bool
session_is_interrupted(const Session *session)
{
    return rt_load_relaxed(&session->interrupted) != 0;
}

/* ---- errors ---- */

const ErrMsg *
session_error(const Session *session)
{
    return &session->error;
}

Err
session_set_error(Session *session, Err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_vset_at(&session->error, err, -1, format, args);
    va_end(args);
    return err;
}

Err
session__fail(Session *session, Err err, ErrMsg *msg)
{
    ASSERT(err != OK);
    if (msg != NULL && msg->err != OK) {
        err_move(&session->error, msg);
    } else {
        err_set(&session->error, err, "%s", err_text(err));
    }
    if (UNLIKELY(err == ERR_NOMEM)) session__name_cap(session);
    return err;
}

void
session__name_cap(Session *session)
{
    u64 cap_bytes;
    const char *name = mem_account_refused(&session->account, &cap_bytes);
    /* What the store keeps for this database is charged beside us. */
    if (name == NULL && session->account.parent != NULL)
        name = mem_account_refused(session->account.parent, &cap_bytes);
    /* The process's cap is SQLite's hard heap limit, and that has SQLite's words. */
    if (name == NULL || strcmp(name, "process") == 0) return;
    err_set(&session->error, ERR_NOMEM, "out of memory: one %s may use %llu bytes", name,
            (unsigned long long)cap_bytes);
}

Err
session__unknown_database(Session *session, const AstName *name)
{
    static const char *const open[] = {[AST_QUOTE_DOUBLE] = "\"",
                                       [AST_QUOTE_STRING] = "'",
                                       [AST_QUOTE_BRACKET] = "[",
                                       [AST_QUOTE_BACKTICK] = "`"};
    const char *before = name->quote < COUNT_OF(open) ? open[name->quote] : NULL;
    if (before == NULL) before = "";
    return session_set_error(session, ERR_SQL, "unknown database %s%.*s%s", before,
                             (int)name->text.bytes, (const char *)name->text.p,
                             name->quote == AST_QUOTE_BRACKET ? "]" : before);
}

Err
session__store_error(Session *session, u32 database, Err err)
{
    StoreTxn *txn = session->db[database].txn;
    const ErrMsg *cause = txn == NULL ? NULL : store_txn_error(txn);
    bool says_it = cause != NULL && cause->err == err;
    return err_set(&session->error, err, "%s", says_it ? err_message(cause) : err_text(err));
}

/* ---- small questions ---- */

bool
session_autocommit(const Session *session)
{
    return !session->in_transaction;
}

bool
session_in_write_transaction(const Session *session)
{
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn != NULL && store_txn_has_written(session->db[i].txn)) return true;
    }
    return false;
}

i64
session_changes(const Session *session)
{
    return session->changes;
}

i64
session_total_changes(const Session *session)
{
    return session->total_changes;
}

i64
session_last_rowid(const Session *session)
{
    return session->last_rowid;
}

void
session_set_last_rowid(Session *session, i64 rowid)
{
    session->last_rowid = rowid;
}

void
session_set_busy_timeout(Session *session, u64 timeout_ns)
{
    session->options.busy_timeout_ns = timeout_ns;
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn != NULL) store_txn_set_wait(session->db[i].txn, timeout_ns);
    }
}

const char *
session_file(const Session *session, const char *database)
{
    for (u32 i = 0; i < session->db_count; i++) {
        if (text_compare_nocase(session->db[i].name, database) != 0) continue;
        return session->db[i].database == NULL ? "" : store_path(session->db[i].database->store);
    }
    return NULL;
}

Store *
session_store(Session *session)
{
    return session->db[0].database->store;
}

Err
session_checkpoint(Session *session)
{
    ErrMsg msg = {0};
    Err err = store_checkpoint(session_store(session), &msg);
    return err == OK ? OK : session__fail(session, err, &msg);
}

int
session_limit(Session *session, int limit, int value)
{
    if (limit < 0 || limit >= SESSION_LIMITS) return -1;
    int former = session->limit[limit];
    if (value >= 0) {
        session->limit[limit] = MIN_OF(value, limit_defaults[limit]);
        session->environment++; /* What was refused may pass, and the other way round. */
        if (limit == 0 && session->limit[0] < 30) session->limit[0] = 30;
        fill_environment(session);
    }
    return former;
}

void
session_set_functions(Session *session, const FuncTable *functions)
{
    session->functions = functions == NULL ? session_builtin_functions() : functions;
    session->environment++;
}

void
session_set_collations(Session *session, const Collation *(*find)(void *arg, Slice name), void *arg)
{
    session->find_collation = find;
    session->collation_arg = arg;
    session->environment++;
}

bool
session_is_running(const Session *session)
{
    return session->running > 0;
}

Err
session_exec(Session *session, Slice sql)
{
    while (sql.bytes > 0) {
        Stmt *stmt;
        size_t consumed = 0;
        Err err = stmt_prepare(session, sql, &stmt, &consumed);
        if (err != OK) return err;
        sql = SLICE(sql.p + consumed, sql.bytes - consumed);
        if (stmt == NULL) continue;
        bool row = true;
        while (err == OK && row)
            err = stmt_step(stmt, &row);
        Err final = stmt_finalize(stmt);
        if (err == OK) err = final;
        if (err != OK) return err;
    }
    return OK;
}
