/*
 * stmt.c -- the life of a prepared statement: prepare, bind, step, reset, finalize.
 *
 * A statement is either planned (SELECT, INSERT, UPDATE, DELETE: a Plan and an Exec) or a command
 * (everything else: its syntax tree, run by command.c).  Starting a planned statement makes sure of
 * a transaction, of the catalog that its snapshot sees, of the plan for that catalog, and of the
 * right to write; then exec does the work.  A write that loses against a concurrent commit before
 * anything was shown is undone and run again on a fresh snapshot.
 */
#include "session/virtual__impl.h"

#define PREPARE_TRIES_MAX 50u
#define RESTARTS_MAX      200u

/* ---- making and freeing ---- */

static void
link_stmt(Session *session, Stmt *stmt)
{
    stmt->next = session->first_stmt;
    if (stmt->next != NULL) stmt->next->previous = stmt;
    session->first_stmt = stmt;
}

static void
unlink_stmt(Session *session, Stmt *stmt)
{
    if (stmt->previous != NULL) {
        stmt->previous->next = stmt->next;
    } else if (session->first_stmt == stmt) {
        session->first_stmt = stmt->next;
    }
    if (stmt->next != NULL) stmt->next->previous = stmt->previous;
}

static void
drop_plan(Stmt *stmt)
{
    stmt__gather_counts(stmt);
    exec_close(stmt->exec);
    plan_release(stmt->plan);
    for (u32 i = 0; i < CATALOG_DATABASES_MAX; i++) {
        if (stmt->catalog[i] == NULL) continue;
        catalog_release(stmt->catalog[i]);
        stmt->catalog[i] = NULL;
    }
    stmt->exec = NULL;
    stmt->plan = NULL;
}

/* Of a freed statement: longer texts and more parameters are not kept for the next. */
#define SPARE_TEXT_BYTES ((size_t)4096)
#define SPARE_PARAMS     64u

static void
free_memory(Stmt *stmt)
{
    mem_free(stmt->param_bytes);
    mem_free(stmt->param);
    mem_free(stmt->sql);
    mem_free(stmt);
}

void
stmt__free(Stmt *stmt)
{
    Session *session = stmt->session;
    drop_plan(stmt);
    for (u32 i = 0; stmt->param_bytes != NULL && i < stmt->param_count; i++)
        buf_free(&stmt->param_bytes[i]);
    arena_free(&stmt->arena);
    arena_free(&stmt->run);
    arena_free(&stmt->row_text);
    if (session->spare_stmt != NULL || stmt->sql_room > SPARE_TEXT_BYTES ||
        stmt->param_room > SPARE_PARAMS) {
        free_memory(stmt);
        return;
    }
    *stmt = (Stmt){.sql = stmt->sql,
                   .sql_room = stmt->sql_room,
                   .param = stmt->param,
                   .param_bytes = stmt->param_bytes,
                   .param_room = stmt->param_room};
    session->spare_stmt = stmt;
}

void
stmt__free_spare(Session *session)
{
    if (session->spare_stmt != NULL) free_memory(session->spare_stmt);
    session->spare_stmt = NULL;
}

/* An empty statement with its own copy of the text. */
static Stmt *
stmt_new(Session *session, const char *sql, size_t bytes)
{
    Stmt *stmt = session->spare_stmt;
    session->spare_stmt = NULL;
    if (stmt == NULL) stmt = MEM_NEW(Stmt);
    if (stmt == NULL) return NULL;
    stmt->session = session;
    stmt->no_virtual = session->without_virtual;
    if (stmt->sql_room <= bytes) {
        mem_free(stmt->sql);
        stmt->sql_room = MAX_OF(bytes + 1, (size_t)128);
        stmt->sql = (char *)mem_alloc(stmt->sql_room);
    }
    if (stmt->sql == NULL) {
        free_memory(stmt);
        return NULL;
    }
    memcpy(stmt->sql, sql, bytes);
    stmt->sql[bytes] = 0;
    stmt->sql_bytes = bytes;
    arena_init_pooled(&stmt->arena, &session->account, &session->chunks);
    arena_init_pooled(&stmt->run, &session->account, &session->chunks);
    arena_init_pooled(&stmt->row_text, &session->account, &session->chunks);
    return stmt;
}

static ParseOptions
parse_options(const Session *session)
{
    return (ParseOptions){
        .expr_depth_max = (u32)session->limit[3],
        .parser_depth_max = (u32)session->limit[12],
        .compound_max = (u32)session->limit[4],
        .function_args_max = (u32)session->limit[6],
        .param_number_max = (u32)session->limit[9],
        .columns_max = (u32)session->limit[2],
        .text_bytes_max = (size_t)session->limit[1],
    };
}

static bool
is_planned(const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_SELECT:
    case AST_STMT_INSERT:
    case AST_STMT_UPDATE:
    case AST_STMT_DELETE: return true;
    default: return false;
    }
}

/* EXPLAIN and EXPLAIN ANALYZE of what is planned: the rows are computed, then shown. */
static bool
is_listed(const Stmt *stmt)
{
    return stmt->ast == NULL &&
           (stmt->explain == AST_EXPLAIN_PROGRAM || stmt->explain == AST_EXPLAIN_ANALYZE);
}

/* A catalog must be known before names can be resolved.  One that was checked and that nobody has
   changed since needs no snapshot, if planning is all that is to be done. */
static Err
catalogs_for_prepare(Session *session, bool plans, bool *opened_out)
{
    *opened_out = false;
    if (plans && session__catalogs_stand(session)) return OK;
    *opened_out = session->db[0].txn == NULL;
    Err err = session__ensure_txn(session);
    return err == OK ? session__refresh_catalogs(session) : err;
}

static void
end_prepare(Session *session, bool opened)
{
    /* Preparing outside a transaction must not pin a snapshot. */
    if (!opened || session->running > 0) return;
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (db->txn == NULL) continue;
        store_txn_rollback(db->txn);
        session__forget_txn(session, i);
    }
}

static const TableDef *
no_virtual(void *arg, const TableDef *stored, Slice name, ErrMsg *msg)
{
    (void)arg;
    (void)stored;
    (void)name;
    (void)msg;
    return NULL;
}

/* Plan `ast` against the session's catalogs.  The run state is made when it first runs.  `scratch`:
   the arena of the tree, which goes with it. */
static Err
plan_stmt(Stmt *stmt, const AstStatement *ast, Arena *scratch)
{
    Session *session = stmt->session;
    CatalogView view;
    PlanContext context;
    ErrMsg msg = {.sql_offset = -1};
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    context.scratch = scratch;
    if (stmt->no_virtual) context.find_virtual = no_virtual;
    Plan *plan = plan_share__take(stmt, &context);
    if (plan == NULL) {
        Err err = plan_prepare(&context, ast, SLICE(stmt->sql, stmt->sql_bytes), &plan, &msg);
        if (err != OK) return session__fail(session, err, &msg);
        plan_share__give(stmt, &context, plan);
    }
    drop_plan(stmt);
    stmt->plan = plan;
    stmt->environment = session->environment;
    stmt->is_write = !plan->read_only && ast->explain != AST_EXPLAIN_PROGRAM;
    stmt->reads_nothing = exec_plan_reads_nothing(plan) && ast->explain == AST_EXPLAIN_NONE;
    for (u32 i = 0; i < session->db_count; i++) {
        Catalog *catalog = session->db[i].catalog;
        if (catalog != NULL) stmt->catalog[i] = catalog_retain(catalog);
    }
    return OK;
}

static bool
is_stale(const Stmt *stmt)
{
    const Session *session = stmt->session;
    if (stmt->environment != session->environment) return true;
    for (u32 i = 0; i < session->db_count; i++) {
        if (stmt->catalog[i] != session->db[i].catalog) return true;
    }
    return false;
}

static Err
prepare_again(Stmt *stmt)
{
    Session *session = stmt->session;
    AstStatement *ast;
    size_t consumed;
    ErrMsg msg = {.sql_offset = -1};
    ParseOptions options = parse_options(session);
    Arena arena;
    arena_init_pooled(&arena, &session->account, &session->chunks);
    Err err = sql_parse(&arena, SLICE(stmt->sql, stmt->sql_bytes), &options, &ast, &consumed, &msg);
    if (err != OK) {
        session__fail(session, err, &msg);
    } else {
        err = plan_stmt(stmt, ast, &arena);
    }
    arena_free(&arena);
    return err;
}

static Err
make_params(Stmt *stmt, const AstStatement *ast)
{
    u32 count = ast->param_count;
    if (count > stmt->param_room) {
        mem_free(stmt->param);
        mem_free(stmt->param_bytes);
        stmt->param_room = MAX_OF(count, 8u);
        stmt->param = MEM_NEW_ARRAY(Cell, stmt->param_room);
        stmt->param_bytes = MEM_NEW_ARRAY(Buf, stmt->param_room);
        if (stmt->param == NULL || stmt->param_bytes == NULL) {
            mem_free(stmt->param);
            mem_free(stmt->param_bytes);
            stmt->param = NULL;
            stmt->param_bytes = NULL;
            stmt->param_room = 0;
            return ERR_NOMEM;
        }
    }
    stmt->param_count = count;
    for (u32 i = 0; i < count; i++) {
        stmt->param[i] = cell_null();
        stmt->param_bytes[i] = (Buf){0};
    }
    return OK;
}

/* What is to be shown is no row; an error stays, unless the wait fails. */
static Err
wait_shown_keeping(Session *session)
{
    bool has_shown = session->has_shown;
    ErrMsg kept = {.sql_offset = -1};
    err_move(&kept, &session->error);
    Err shown = session__wait_shown(session);
    session->has_shown = has_shown;
    if (shown == OK) err_move(&session->error, &kept);
    err_clear(&kept);
    return shown;
}

static Err
prepare_parsed(Stmt *stmt, AstStatement *ast)
{
    Session *session = stmt->session;
    stmt->explain = (u8)ast->explain;
    stmt->kind = (u8)ast->kind;
    Err err = make_params(stmt, ast);
    if (err != OK) return session__fail(session, err, NULL);
    bool opened;
    err = catalogs_for_prepare(session, is_planned(ast), &opened);
    if (err == OK && is_planned(ast)) {
        err = plan_stmt(stmt, ast, &stmt->arena);
        if (err == OK && is_listed(stmt)) explain__describe(stmt);
    } else if (err == OK) {
        stmt->ast = ast;
        stmt->is_write = !command__is_read_only(ast);
        err = command__describe(stmt);
    }
    /* Column names and "no such table" may rest on somebody's schema change. */
    Err shown = session->open_txns > 0 ? wait_shown_keeping(session) : OK;
    end_prepare(session, opened);
    return shown != OK ? shown : err;
}

/*
 * Parse stmt->sql.  Of a text that goes on, only a statement that a semicolon ends before the end
 * of the piece is certain (the last one may stand in a comment): else *more_out, and nothing has
 * happened.
 */
static Err
parse_text(Stmt *stmt, bool goes_on, AstStatement **ast_out, size_t *consumed_out, bool *more_out)
{
    ErrMsg msg = {.sql_offset = -1};
    ParseOptions options = parse_options(stmt->session);
    *consumed_out = 0;
    Err err = sql_parse(&stmt->arena, SLICE(stmt->sql, stmt->sql_bytes), &options, ast_out,
                        consumed_out, &msg);
    size_t end = *consumed_out;
    bool is_certain = err == OK && *ast_out != NULL && end > 0 && end < stmt->sql_bytes &&
                      stmt->sql[end - 1] == ';';
    *more_out = goes_on && !is_certain;
    if (*more_out) {
        err_clear(&msg);
        return OK;
    }
    return err == OK ? OK : session__fail(stmt->session, err, &msg);
}

static Err
prepare_inside(Session *session, Slice sql, u64 hash, bool *goes_on_io, Stmt **stmt_out,
               size_t *consumed_out)
{
    AstStatement *ast = NULL;
    size_t consumed = 0;
    bool more = false, goes_on = *goes_on_io;
    *goes_on_io = false;
    /* The tree's slices point into the text, so the statement parses its own copy. */
    const u8 *nul = sql.bytes == 0 ? NULL : memchr(sql.p, 0, sql.bytes);
    size_t bytes = nul == NULL ? sql.bytes : (size_t)(nul - sql.p);
    Stmt *stmt = stmt_new(session, (const char *)sql.p, bytes);
    if (stmt == NULL) return session__fail(session, ERR_NOMEM, NULL);
    goes_on = goes_on && nul == NULL;
    Err err = parse_text(stmt, goes_on, &ast, &consumed, &more);
    if (more) {
        stmt__free(stmt);
        *goes_on_io = true;
        return OK;
    }
    if (err == OK && consumed == stmt->sql_bytes && nul != NULL) consumed = sql.bytes;
    if (consumed_out != NULL) *consumed_out = consumed;
    if (err == OK && ast != NULL) {
        stmt->is_whole_text = nul == NULL && consumed == sql.bytes && !goes_on;
        if (stmt->is_whole_text) stmt->text_hash = hash;
        stmt->sql_bytes = MIN_OF(consumed, stmt->sql_bytes);
        stmt->sql[stmt->sql_bytes] = 0;
        err = prepare_parsed(stmt, ast);
    }
    if (err != OK || ast == NULL) {
        stmt__free(stmt);
        return err;
    }
    if (stmt->ast == NULL) arena_free(&stmt->arena); /* Everything needed is in the plan. */
    link_stmt(session, stmt);
    *stmt_out = stmt;
    return OK;
}

/* Of a text whose beginning is `sql`.  *goes_on_io: in, there is more behind it; out, the statement
   may go on there too, and nothing was prepared. */
static Err
prepare_first(Session *session, Slice sql, bool *goes_on_io, Stmt **stmt_out, size_t *consumed_out)
{
    *stmt_out = NULL;
    if (consumed_out != NULL) *consumed_out = 0;
    RtTask *previous;
    session_lock(session);
    session__enter(session, &previous);
    err_clear(&session->error);
    Err err = OK;
    u64 hash = 0;
    Stmt *kept = *goes_on_io ? NULL : stmt_cache__take(session, sql, &hash);
    if (kept != NULL) {
        link_stmt(session, kept);
        *stmt_out = kept;
        if (consumed_out != NULL) *consumed_out = sql.bytes;
    } else {
        err = prepare_inside(session, sql, hash, goes_on_io, stmt_out, consumed_out);
    }
    session__leave(session, previous);
    session_unlock(session);
    return err;
}

/* The whole of a long script is not looked at for each of its statements. */
#define TEXT_FIRST ((size_t)4096)
#define TEXT_STEP  8u

Err
stmt_prepare(Session *session, Slice sql, Stmt **stmt_out, size_t *consumed_out)
{
    for (size_t bytes = TEXT_FIRST;; bytes *= TEXT_STEP) {
        bool goes_on = bytes < sql.bytes;
        Slice first = {sql.p, MIN_OF(bytes, sql.bytes)};
        Err err = prepare_first(session, first, &goes_on, stmt_out, consumed_out);
        if (!goes_on) return err;
    }
}

Err
stmt_prepare_text(Session *session, const char *sql, size_t bytes_max, Stmt **stmt_out,
                  size_t *consumed_out)
{
    for (size_t most = TEXT_FIRST;; most *= TEXT_STEP) {
        size_t bytes = strnlen(sql, MIN_OF(most, bytes_max));
        bool goes_on = bytes == most && bytes < bytes_max;
        Err err = prepare_first(session, SLICE(sql, bytes), &goes_on, stmt_out, consumed_out);
        if (!goes_on) return err;
    }
}

/* ---- running ---- */

static void
set_running(Stmt *stmt)
{
    stmt->state = STMT_RUNNING;
    stmt->marked = false;
    stmt->session->running++;
    stmt->session->running_writes += stmt->is_write;
}

static void
set_ended(Stmt *stmt, StmtState state)
{
    Session *session = stmt->session;
    if (stmt->state == STMT_RUNNING) {
        ASSERT(session->running > 0);
        session->running--;
        session->running_writes -= stmt->is_write;
    }
    stmt->state = state;
    stmt->shown = false;
    stmt->row.cell = NULL;
}

static Err
refuse_if_doomed(Session *session)
{
    if (!session->doomed) return OK;
    return session_set_error(session, ERR_BUSY_SNAPSHOT,
                             "transaction has failed: only ROLLBACK is possible");
}

/* A transaction for the statement that is about to start: it does not count as one that runs, so
   that READ COMMITTED gives it a fresh snapshot. */
static Err
ensure_txn_to_start(Stmt *stmt)
{
    Session *session = stmt->session;
    ASSERT(stmt->state == STMT_RUNNING && session->running > 0);
    session->running--;
    Err err = session__ensure_txn(session);
    session->running++;
    return err;
}

/* Transaction, right to write, catalog, plan: in this order, until they fit together. */
static Err
make_ready(Stmt *stmt)
{
    Session *session = stmt->session;
    Err err = refuse_if_doomed(session);
    for (u32 tries = 0; err == OK && tries < PREPARE_TRIES_MAX; tries++) {
        err = ensure_txn_to_start(stmt);
        /* In single mode the token comes first and the snapshot second. */
        if (err == OK && stmt->is_write && session__single(session)) {
            err = session__ensure_writer(session, stmt->plan);
        }
        if (err == OK) err = session__refresh_catalogs(session);
        if (err != OK) return err;
        if (is_stale(stmt)) {
            stmt->count[STMT_COUNT_PREPARED_AGAIN]++;
            u32 former = stmt->plan->column_count;
            err = prepare_again(stmt);
            if (err != OK || stmt->plan->column_count != former) continue;
            continue;
        }
        if (stmt->is_write) err = session__ensure_writer(session, stmt->plan);
        return err;
    }
    return err != OK ? err : session__fail(session, ERR_SCHEMA, NULL);
}

/*
 * What make_ready() does when all is as it was at the last run, which is nearly always:
 * transactions are open or can be begun, and no catalog has changed.  False: make_ready() must
 * look, or say why.
 */
static bool
is_ready(Stmt *stmt)
{
    Session *session = stmt->session;
    if (session->doomed || stmt->environment != session->environment) return false;
    /* READ COMMITTED takes a fresh snapshot for each statement. */
    if (session->level == STORE_READ_COMMITTED && !session__single(session)) return false;
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (stmt->catalog[i] != db->catalog) return false;
        if (db->database == NULL) continue;
        if (db->txn == NULL && (stmt->is_write || session__begin_on(session, i) != OK))
            return false;
        if (!db->verified && !session__verify_at_once(db)) return false;
    }
    return true;
}

/* An INSERT of one row changes it or not: there is nothing to undo. */
static bool
writes_one_row(const Plan *plan)
{
    const PlanWrite *write = plan->write;
    if (write == NULL || write->kind != WRITE_INSERT || write->trigger_count > 0) return false;
    const PlanNode *source = write->source;
    while (source != NULL && source->kind == PLAN_PROJECT)
        source = source->input;
    return source == NULL || source->kind == PLAN_ONE_ROW ||
           (source->kind == PLAN_VALUES && source->u.values.row_count == 1);
}

/* Virtual tables that take part in the transaction must be able to undo this statement alone. */
static Err
begin_host_savepoint(Stmt *stmt)
{
    Session *session = stmt->session;
    bool needed = stmt->is_write && session->in_transaction && session->tables != NULL &&
                  !writes_one_row(stmt->plan);
    if (!needed || stmt->host_savepoint) return OK;
    u32 number = session->savepoint_count + session->host_statements;
    session->host_statements++;
    stmt->host_savepoint = true;
    return virtual__savepoint(session, HOST_SAVEPOINT, number);
}

static void
end_host_savepoint(Stmt *stmt, bool undo)
{
    Session *session = stmt->session;
    if (!stmt->host_savepoint) return;
    stmt->host_savepoint = false;
    session->host_statements--;
    u32 number = session->savepoint_count + session->host_statements;
    if (undo) virtual__savepoint(session, HOST_ROLLBACK_TO, number);
    virtual__savepoint(session, HOST_RELEASE, number);
}

static Err
open_run(Stmt *stmt)
{
    ErrMsg msg = {.sql_offset = -1};
    Err err = exec_open(stmt->plan, &stmt->session->exec_env, &stmt->exec, &msg);
    return err == OK ? OK : session__fail(stmt->session, err, &msg);
}

static Err
start_planned(Stmt *stmt)
{
    Session *session = stmt->session;
    Err err = OK;
    const PlanWrite *write = stmt->plan->write;
    if (UNLIKELY(write != NULL && write->collect)) {
        err = crowd__enter(stmt);
        if (err != OK) return err;
    }
    if (stmt->reads_nothing && stmt->environment == session->environment) {
        err = refuse_if_doomed(session); /* No transaction: nothing of a database is looked at. */
    } else if (!is_ready(stmt)) {
        err = make_ready(stmt);
    } else if (stmt->is_write) {
        err = session__ensure_writer(session, stmt->plan);
    }
    for (u32 tries = 0; err == ERR_BUSY_SNAPSHOT && tries < RESTARTS_MAX; tries++) {
        /* A schema change between our snapshot and our lock. */
        if (!session__may_restart(session) || session->doomed) break;
        err = session__restart(session);
        if (err == OK) err = make_ready(stmt);
    }
    if (err == OK && UNLIKELY(stmt->exec == NULL)) err = open_run(stmt);
    if (err != OK) return err;
    if (stmt->is_write) {
        stmt->at_once = exec_writes_at_once(stmt->exec);
        if (stmt->at_once) {
            session__places(session, stmt->mark);
        } else {
            session__marks(session, stmt->mark);
        }
    }
    stmt->marked = true;
    err = begin_host_savepoint(stmt);
    if (err != OK) return err;
    session->exec_env.deferred_open = session->deferred_violations;
    u64 cap_bytes;
    (void)mem_account_refused(&session->account, &cap_bytes); /* Of statements before. */
    err = exec_start(stmt->exec, session->txn, stmt->param, stmt->param_count);
    if (err != OK) {
        ErrMsg copy = {.sql_offset = -1};
        err_set(&copy, err, "%s", err_message(exec_error(stmt->exec)));
        return session__fail(session, err, &copy);
    }
    session->has_read = true;
    return OK;
}

static void
copy_exec_error(Stmt *stmt, Err err)
{
    Session *session = stmt->session;
    if (stmt->exec == NULL) {
        err_set(&session->error, err, "%s", err_text(err));
        return;
    }
    const ErrMsg *cause = exec_error(stmt->exec);
    err_set_at(&session->error, err, cause->sql_offset, "%s",
               cause->err == err ? err_message(cause) : err_text(err));
    session->error.host_code = cause->host_code;
    if (UNLIKELY(err == ERR_NOMEM)) session__name_cap(session);
}

/* One exec_step, run again from a fresh snapshot when it lost before anything could be seen. */
static Err
step_with_restart(Stmt *stmt, bool *row_out)
{
    Session *session = stmt->session;
    i64 changes = session->changes, rowid = session->last_rowid;
    for (u32 tries = 0;; tries++) {
        Err err = exec_step(stmt->exec, row_out);
        if (LIKELY(err == OK) || err != ERR_BUSY_SNAPSHOT) return err;
        if (tries >= RESTARTS_MAX || stmt->shown) return err;
        if (!stmt->is_write || !session__may_restart(session)) return err;
        exec_reset(stmt->exec);
        session__undo_to(session, stmt->mark);
        session->changes = changes;
        session->last_rowid = rowid;
        err = crowd__leave_rows(stmt) ? OK : session__restart(session);
        if (err == OK) err = start_planned(stmt);
        if (err != OK) return err;
    }
}

/* A statement failed: undo what must be undone; in multi mode a lost transaction is let go. */
static bool
undo_failed(Stmt *stmt, Err err)
{
    Session *session = stmt->session;
    ExecUndo undo = stmt->exec == NULL ? EXEC_UNDO_STATEMENT : exec_error_undo(stmt->exec);
    bool is_lost = err == ERR_BUSY_DEADLOCK || err == ERR_SERIALIZE ||
                   (err == ERR_BUSY_SNAPSHOT && !session__single(session));
    /* One that failed before it could begin has nothing to undo. */
    bool began = stmt->is_write && stmt->marked;
    if (began && undo == EXEC_UNDO_STATEMENT) session__undo_to(session, stmt->mark);
    /* What was written without a mark, and must not be shown now, cannot be had back alone: the log
       has failed, and the transaction can come to nothing else. */
    if (began && exec_wrote_at_once(stmt->exec)) undo = EXEC_UNDO_TRANSACTION;
    if (undo == EXEC_UNDO_TRANSACTION && stmt->is_write) {
        session__rollback(session);
    } else if (is_lost && session->in_transaction) {
        session__rollback(session);
        session->in_transaction = true;
        session->doomed = true;
    }
    return undo == EXEC_UNDO_NOTHING;
}

/* A write in autocommit whose commit syncs: that sync covers what the statement rests on as well,
   and waiting before it would make every commit of a hot row wait for the one before. */
static bool
commit_covers(const Stmt *stmt, Err err)
{
    const Session *session = stmt->session;
    return err == OK && stmt->is_write && !session->in_transaction &&
           session->running_writes == 1 && session->options.sync == STORE_SYNC_FULL &&
           session_in_write_transaction(session);
}

static Err
finish_planned(Stmt *stmt, Err err)
{
    Session *session = stmt->session;
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK && session->error.err == OK) copy_exec_error(stmt, err);
    /* "No rows", a count and an error are shown too. */
    if (!commit_covers(stmt, err)) {
        Err shown = session__wait_shown(session);
        if (shown != OK) err = shown;
    }
    bool keeps = err == OK;
    if (err != OK) {
        err_move(&kept, &session->error);
        keeps = undo_failed(stmt, err);
    }
    end_host_savepoint(stmt, !keeps);
    if (stmt->is_write) {
        session->changes = keeps ? exec_rows_changed(stmt->exec) : 0;
        if (keeps) session->total_changes += exec_rows_changed_total(stmt->exec);
        if (keeps) session->deferred_violations += exec_deferred_violations(stmt->exec);
    }
    if (stmt->exec != NULL) exec_reset(stmt->exec);
    set_ended(stmt, err == OK ? STMT_DONE : STMT_FAILED);
    if (stmt->is_write && session->in_transaction) {
        session->has_written = session->has_written || session_in_write_transaction(session);
        if (!stmt->at_once && session->running_writes == 0) session__drop_marks(session);
    }
    Err end = session__autocommit_end(session, keeps);
    if (err != OK) {
        session__fail(session, err, &kept);
    } else if (end != OK) {
        err = end;
        stmt->state = STMT_FAILED;
    }
    err_clear(&kept);
    stmt->last_error = err;
    return err;
}

static Err
step_planned(Stmt *stmt, bool *row_out)
{
    bool is_first = stmt->state != STMT_RUNNING;
    Err err = OK;
    if (is_first) {
        set_running(stmt);
        err = start_planned(stmt);
    }
    bool counts = stmt->plan != NULL && stmt->plan->counts_changes;
    if (err == OK && !(counts && stmt->shown)) {
        err = step_with_restart(stmt, row_out);
        if (err == OK && counts) {
            stmt->changed = cell_int(exec_rows_changed(stmt->exec));
            *row_out = true;
        }
    }
    if (err == OK && *row_out) {
        err = session__wait_shown(stmt->session);
        if (err == OK) {
            stmt->row = (StmtRow){counts ? &stmt->changed : exec_row(stmt->exec),
                                  stmt->plan->column_count};
            stmt->shown = true;
            if (!stmt->session->in_transaction && exec_ends_for_good(stmt->exec)) {
                session__drop_snapshots(stmt->session);
            }
            return OK;
        }
    }
    *row_out = false;
    return finish_planned(stmt, err);
}

/* Rows that were computed before are shown one by one. */
static Err
show_row(Stmt *stmt, bool *row_out)
{
    if (stmt->rows_shown < stmt->rows.rows) {
        const Cell *cell = stmt->rows.cell + (size_t)stmt->rows_shown++ * stmt->rows.columns;
        stmt->row = (StmtRow){cell, stmt_column_count(stmt)};
        *row_out = true;
        return OK;
    }
    set_ended(stmt, STMT_DONE);
    return session__autocommit_end(stmt->session, true);
}

static void
begin_rows(Stmt *stmt)
{
    arena_reset(&stmt->run);
    stmt->rows = (RowList){.columns = stmt->column_count};
    stmt->rows_shown = 0;
}

static Err
step_command(Stmt *stmt, bool *row_out)
{
    if (stmt->state != STMT_RUNNING) {
        begin_rows(stmt);
        Err err = command__run(stmt);
        stmt->last_error = err;
        stmt->state = err == OK ? STMT_DONE : STMT_FAILED;
        if (err != OK || stmt->rows.rows == 0) return err;
        /* The rows are computed: no transaction stays open for them. */
        stmt->is_write = false;
        set_running(stmt);
    }
    return show_row(stmt, row_out);
}

/* EXPLAIN ANALYZE: run to the end; the rows go nowhere. */
static Err
run_watched(Stmt *stmt)
{
    Session *session = stmt->session;
    bool row = true;
    stmt->is_write = !stmt->plan->read_only;
    set_running(stmt);
    session->exec_env.watch = true;
    Err err = start_planned(stmt);
    while (err == OK && row)
        err = step_with_restart(stmt, &row);
    if (err == OK) err = explain__report(stmt);
    session->exec_env.watch = false;
    return finish_planned(stmt, err);
}

static Err
list_program(Stmt *stmt)
{
    Err err = stmt->exec == NULL ? open_run(stmt) : OK;
    return err == OK ? explain__list(stmt) : err;
}

static Err
step_listed(Stmt *stmt, bool *row_out)
{
    if (stmt->state != STMT_RUNNING) {
        begin_rows(stmt);
        Err err = stmt->explain == AST_EXPLAIN_ANALYZE ? run_watched(stmt) : list_program(stmt);
        stmt->last_error = err;
        if (err != OK) {
            stmt->state = STMT_FAILED;
            return err;
        }
        stmt->is_write = false;
        set_running(stmt);
    }
    return show_row(stmt, row_out);
}

/* A step counts as a few operations by itself, so that a handler is asked by statements that do no
   work in exec too. */
#define STEP_OPERATIONS 4u

static Err
ask_progress(Session *session)
{
    if (LIKELY(session->host.progress == NULL)) return OK;
    session->progress_count += STEP_OPERATIONS;
    if (session->progress_count < session->host.progress_every) return OK;
    session->progress_count = 0;
    if (!session->host.progress(session->host.progress_arg)) return OK;
    return session__fail(session, ERR_INTERRUPT, NULL);
}

/* What was made from the row shown goes with it. */
static void
drop_row_text(Stmt *stmt)
{
    if (LIKELY(stmt->text == NULL)) return;
    arena_reset(&stmt->row_text);
    stmt->text = NULL;
}

/*
 * A query that has shown a row may have its next one, or the knowledge that there is none, at hand:
 * then nothing is read, nothing can fail or park, and what it rests on was waited for with the row
 * before.  False: nothing happened.
 */
static bool
step_at_hand(Stmt *stmt, bool *row_out)
{
    Session *session = stmt->session;
    bool plain = stmt->shown && stmt->exec != NULL && !stmt->is_write && !is_listed(stmt) &&
                 session->host.progress == NULL && session->error.err == OK;
    if (!plain || rt_task_is_cancelled(&session->task)) return false;
    *row_out = exec_next_at_hand(stmt->exec);
    if (!*row_out) {
        if (!exec_ends_at_hand(stmt->exec) || session__has_work_at_end(session)) return false;
        exec_reset(stmt->exec);
        set_ended(stmt, STMT_DONE);
        stmt->last_error = OK;
    }
    drop_row_text(stmt);
    return true;
}

static Err
step_inside(Stmt *stmt, bool *row_out)
{
    Session *session = stmt->session;
    RtTask *previous;
    session__enter(session, &previous);
    err_clear(&session->error);
    Stmt *outer = session->current;
    session->current = stmt;
    session->now_ms = 0;
    drop_row_text(stmt);
    stmt->row.cell = NULL;
    Err err = ask_progress(session);
    if (err != OK && stmt->state == STMT_RUNNING && stmt->exec != NULL && !is_listed(stmt)) {
        err = finish_planned(stmt, err);
    } else if (err != OK) {
        stmt->state = STMT_FAILED;
        stmt->last_error = err;
    } else if (err == OK) {
        err = stmt->ast != NULL ? step_command(stmt, row_out)
              : is_listed(stmt) ? step_listed(stmt, row_out)
                                : step_planned(stmt, row_out);
    }
    session->current = outer;
    session__leave(session, previous);
    return err;
}

Err
stmt_step(Stmt *stmt, bool *row_out)
{
    Session *session = stmt->session;
    Err err = OK;
    session_lock(session);
    *row_out = false;
    if (!step_at_hand(stmt, row_out)) err = step_inside(stmt, row_out);
    session_unlock(session);
    return err;
}

static Err
reset_running(Stmt *stmt)
{
    Session *session = stmt->session;
    RtTask *previous;
    Err err;
    session__enter(session, &previous);
    if (stmt->exec != NULL && !is_listed(stmt)) {
        /* Changes of a write are all made by its first step: they stay. */
        err = finish_planned(stmt, OK);
    } else {
        set_ended(stmt, STMT_READY);
        err = session__autocommit_end(session, true);
    }
    session__leave(session, previous);
    return err;
}

static Err
reset_inside(Stmt *stmt)
{
    Err err = stmt->last_error;
    if (stmt->state == STMT_RUNNING) {
        err = reset_running(stmt);
    } else {
        session__forget_interrupt(stmt->session);
    }
    stmt->state = STMT_READY;
    stmt->last_error = OK;
    stmt->row.cell = NULL;
    return err;
}

Err
stmt_reset(Stmt *stmt)
{
    if (stmt == NULL) return OK;
    Session *session = stmt->session;
    session_lock(session);
    Err err = reset_inside(stmt);
    if (err == OK) err_clear(&session->error);
    session_unlock(session);
    return err;
}

Err
stmt_finalize(Stmt *stmt)
{
    if (stmt == NULL) return OK;
    Session *session = stmt->session;
    RtTask *previous;
    session_lock(session);
    bool failed = stmt->last_error != OK;
    Err err = reset_inside(stmt);
    session__enter(session, &previous);
    unlink_stmt(session, stmt);
    if (failed || err != OK || !stmt_cache__keep(stmt)) stmt__free(stmt);
    virtual__reap(session);
    bool is_last = session->closing && session->first_stmt == NULL;
    session__leave(session, previous);
    session_unlock(session);
    if (is_last) session_close_zombie(session);
    return err;
}

/* ---- parameters ---- */

Err
stmt_bind(Stmt *stmt, u32 index, const Cell *value)
{
    Session *session = stmt->session;
    if (index >= stmt->param_count) return session__fail(session, ERR_RANGE, NULL);
    if (stmt->state == STMT_RUNNING) return session__fail(session, ERR_MISUSE, NULL);
    Buf *bytes = &stmt->param_bytes[index];
    Cell *param = &stmt->param[index];
    *param = *value;
    if ((value->type != CELL_TEXT && value->type != CELL_BLOB) ||
        (value->flags & (CELL_POINTER | CELL_ZEROBLOB)) != 0) {
        return OK;
    }
    if (value->bytes > (u32)session->limit[0]) {
        *param = cell_null();
        return session__fail(session, ERR_TOOBIG, NULL);
    }
    buf_clear(bytes);
    Err err = buf_reserve(bytes, (size_t)value->bytes + 1);
    if (err != OK) {
        *param = cell_null();
        return session__fail(session, err, NULL);
    }
    if (value->bytes > 0) memcpy(bytes->p, value->u.p, value->bytes);
    bytes->p[value->bytes] = 0;
    bytes->bytes = (size_t)value->bytes + 1;
    param->u.p = bytes->p;
    param->flags |= CELL_TERMINATED;
    return OK;
}

void
stmt_clear_bindings(Stmt *stmt)
{
    for (u32 i = 0; i < stmt->param_count; i++)
        stmt->param[i] = cell_null();
}

u32
stmt_param_count(const Stmt *stmt)
{
    return stmt->param_count;
}

const char *
stmt_param_name(const Stmt *stmt, u32 index)
{
    if (index >= stmt->param_count || stmt->plan == NULL) return NULL;
    return stmt->plan->param_name == NULL ? NULL : stmt->plan->param_name[index];
}

u32
stmt_param_index(const Stmt *stmt, const char *name)
{
    for (u32 i = 0; i < stmt->param_count; i++) {
        const char *at = stmt_param_name(stmt, i);
        if (at != NULL && strcmp(at, name) == 0) return i + 1;
    }
    return 0;
}

const Cell *
stmt_param_value(const Stmt *stmt, u32 index)
{
    return index < stmt->param_count ? &stmt->param[index] : NULL;
}

/* ---- columns and rows ---- */

u32
stmt_column_count(const Stmt *stmt)
{
    return stmt->column != NULL || stmt->plan == NULL ? stmt->column_count
                                                      : stmt->plan->column_count;
}

const PlanColumn *
stmt_column(const Stmt *stmt, u32 column)
{
    if (column >= stmt_column_count(stmt)) return NULL;
    return stmt->column != NULL ? &stmt->column[column] : &stmt->plan->column[column];
}

const Cell *
stmt_row(const Stmt *stmt)
{
    return stmt->row.cell;
}

const StmtRow *
stmt_row_place(const Stmt *stmt)
{
    return &stmt->row;
}

const char *
stmt_row_text(Stmt *stmt, u32 column, size_t *bytes_out)
{
    *bytes_out = 0;
    u32 columns = stmt_column_count(stmt);
    if (stmt_row(stmt) == NULL || column >= columns) return NULL;
    const Cell *cell = &stmt->row.cell[column];
    if (cell->type == CELL_NULL) return NULL;
    if (stmt->text == NULL) {
        stmt->text = ARENA_NEW_ARRAY(&stmt->row_text, char *, columns);
        if (stmt->text == NULL) return NULL;
    }
    Slice text;
    if (cell_text_bytes(cell, &stmt->row_text, &text) != OK) return NULL;
    *bytes_out = text.bytes;
    if ((cell->flags & CELL_TERMINATED) != 0 && text.p == cell->u.p) return (const char *)text.p;
    if (stmt->text[column] == NULL) {
        stmt->text[column] = arena_strndup(&stmt->row_text, text.p, text.bytes);
    }
    return stmt->text[column];
}

bool
stmt_is_read_only(const Stmt *stmt)
{
    if (stmt->plan != NULL) return stmt->plan->read_only;
    if (stmt->kind == AST_STMT_PRAGMA) return !pragma__writes(stmt->ast->u.pragma);
    return command__is_read_only(stmt->ast);
}

bool
stmt_is_explain(const Stmt *stmt, bool *query_plan_out)
{
    *query_plan_out = stmt->explain == AST_EXPLAIN_QUERY_PLAN;
    return stmt->explain != AST_EXPLAIN_NONE;
}

bool
stmt_is_busy(const Stmt *stmt)
{
    return stmt->state == STMT_RUNNING;
}

const char *
stmt_sql(const Stmt *stmt)
{
    return stmt->sql;
}

Session *
stmt_session(const Stmt *stmt)
{
    return stmt->session;
}

Stmt *
session_next_stmt(Session *session, Stmt *after)
{
    return after == NULL ? session->first_stmt : after->next;
}
