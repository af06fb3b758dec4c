/*
 * pragma.c -- PRAGMA: a table of names, their result columns and what they do.
 *
 * A pragma that SQLite does not know returns nothing and is no error; so do those that have no
 * meaning here but do no harm (an answer that programs expect is given where they read one).
 */
#include "session/pragma__impl.h"

Err
pragma__one_number(PragmaCall *call, i64 number)
{
    Cell cell = cell_int(number);
    return rows__add(call->stmt, &cell);
}

Err
pragma__one_text(PragmaCall *call, const char *text)
{
    Cell cell = text_cell(text);
    return rows__add(call->stmt, &cell);
}

static Err
run_checkpoint(PragmaCall *call)
{
    Err err = session_checkpoint(call->session);
    if (err != OK) return err;
    const Cell cells[3] = {cell_int(0), cell_int(0), cell_int(0)};
    return rows__add(call->stmt, cells);
}

/* ---- fixed answers ---- */

static Err
fixed_number(PragmaCall *call)
{
    return pragma__one_number(call, call->def->number);
}

static Err
fixed_text(PragmaCall *call)
{
    return pragma__one_text(call, call->def->text);
}

static Err
nothing(PragmaCall *call)
{
    (void)call;
    return OK;
}

/* ---- header numbers ---- */

u32
pragma__database(const PragmaCall *call)
{
    CatalogView view;
    session__catalog_view(call->session, &view);
    i32 at = ast_name_present(&call->ast->schema)
                 ? catalog_view_database(&view, call->ast->schema.text)
                 : 0;
    return at < 0 ? 0 : (u32)at;
}

static Err
header_number(PragmaCall *call)
{
    Session *session = call->session;
    u32 at = pragma__database(call);
    StoreTxn *txn = session->db[at].txn;
    if (txn == NULL) return pragma__one_number(call, 0);
    i64 number = 0;
    if (!call->has_value) {
        Err err = catalog_get_number(txn, call->def->text, &number);
        return err == OK ? pragma__one_number(call, number)
                         : session__store_error(session, at, err);
    }
    Err err = session__ensure_token(session, (i32)at);
    if (err != OK) return err;
    err = catalog_set_number(txn, call->def->text, (i32)pragma__value_number(call->value));
    return err == OK ? OK : session__store_error(session, at, err);
}

static Err
run_data_version(PragmaCall *call)
{
    return pragma__one_number(call, (i64)store_change_number(session_store(call->session)) + 1);
}

static Err
run_page_count(PragmaCall *call)
{
    StoreStats stats;
    store_stats(session_store(call->session), &stats);
    return pragma__one_number(call, (i64)(stats.file_bytes / 16384));
}

static Err
run_integrity_check(PragmaCall *call)
{
    i64 most = call->has_value ? pragma__value_number(call->value) : 100;
    Slice name = call->value;
    bool is_name = call->has_value && most == 0 && name.bytes > 0 &&
                   (name.p[0] < '0' || name.p[0] > '9');
    CatalogView view;
    session__catalog_view(call->session, &view);
    const char *schema = view.db[pragma__database(call)].name;
    if (is_name && catalog_view_table(&view, SLICE(schema, strlen(schema)), name, NULL) == NULL) {
        return session_set_error(call->session, ERR_SQL, "no such table: %.*s", (int)name.bytes,
                                 (const char *)name.p);
    }
    return maintain__integrity_check(call->stmt, pragma__database(call), most <= 0 ? 100 : most);
}

/* ---- the table ---- */

#define READS   PRAGMA_READS_SCHEMA
#define QUIET   PRAGMA_QUIET_ON_SET
#define ARG     PRAGMA_ARG
#define SCHEMA  PRAGMA_SCHEMA
#define NO_FUNC PRAGMA_NO_FUNC
#define WRITES  PRAGMA_WRITES
#define SETS    PRAGMA_SET_WRITES

static const PragmaDef pragmas[] = {
    {"analysis_limit", pragma__kept_number, 0, .columns = 1, .column = {"analysis_limit"}},
    {"application_id", header_number, READS | QUIET | SETS, .text = "application_id", .columns = 1,
     .column = {"application_id"}},
    {"auto_vacuum", fixed_number, QUIET | SCHEMA, .columns = 1, .column = {"auto_vacuum"}},
    {"automatic_index", pragma__kept_flag, QUIET, .number = 1, .columns = 1,
     .column = {"automatic_index"}},
    {"busy_timeout", pragma__busy_timeout, 0, .columns = 1, .column = {"timeout"}},
    {"cache_size", pragma__cache_size, QUIET | SCHEMA, .columns = 1, .column = {"cache_size"}},
    {"cache_spill", pragma__cache_spill, QUIET | SCHEMA, .number = 483, .columns = 1,
     .column = {"cache_spill"}},
    {"case_sensitive_like", pragma__case_sensitive_like, QUIET | NO_FUNC},
    {"cell_size_check", pragma__kept_flag, QUIET, .columns = 1, .column = {"cell_size_check"}},
    {"checkpoint_fullfsync", pragma__kept_flag, QUIET, .columns = 1,
     .column = {"checkpoint_fullfsync"}},
    {"collation_list", pragma__collation_list, 0, .columns = 2, .column = {"seq", "name"}},
    {"compile_options", pragma__compile_options, 0, .columns = 1, .column = {"compile_options"}},
    {"count_changes", pragma__count_changes, QUIET, .columns = 1, .column = {"count_changes"}},
    {"data_version", run_data_version, 0, .columns = 1, .column = {"data_version"}},
    {"database_list", pragma__database_list, 0, .columns = 3, .column = {"seq", "name", "file"}},
    {"default_cache_size", pragma__default_cache_size, QUIET | SCHEMA | SETS, .number = -2000,
     .columns = 1, .column = {"cache_size"}},
    {"defer_foreign_keys", pragma__defer_foreign_keys, QUIET, .columns = 1,
     .column = {"defer_foreign_keys"}},
    {"empty_result_callbacks", pragma__kept_flag, QUIET, .columns = 1,
     .column = {"empty_result_callbacks"}},
    {"encoding", fixed_text, QUIET, .text = "UTF-8", .columns = 1, .column = {"encoding"}},
    {"foreign_key_check", pragma__foreign_key_check, READS | ARG | SCHEMA, .columns = 4,
     .column = {"table", "rowid", "parent", "fkid"}},
    {"foreign_key_list", pragma__foreign_key_list, READS | ARG | SCHEMA, .columns = 8,
     .column = {"id", "seq", "table", "from", "to", "on_update", "on_delete", "match"}},
    {"foreign_keys", pragma__foreign_keys, QUIET, .columns = 1, .column = {"foreign_keys"}},
    {"freelist_count", fixed_number, 0, .columns = 1, .column = {"freelist_count"}},
    {"full_column_names", pragma__full_column_names, QUIET, .columns = 1,
     .column = {"full_column_names"}},
    {"fullfsync", pragma__kept_flag, QUIET, .columns = 1, .column = {"fullfsync"}},
    {"function_list", pragma__function_list, 0, .columns = 6,
     .column = {"name", "builtin", "type", "enc", "narg", "flags"}},
    {"hard_heap_limit", pragma__hard_heap_limit, 0, .columns = 1, .column = {"hard_heap_limit"}},
    {"ignore_check_constraints", pragma__ignore_check, QUIET, .columns = 1,
     .column = {"ignore_check_constraints"}},
    {"incremental_vacuum", nothing, NO_FUNC | WRITES},
    {"index_info", pragma__index_info, READS | ARG | SCHEMA, .columns = 3,
     .column = {"seqno", "cid", "name"}},
    {"index_list", pragma__index_list, READS | ARG | SCHEMA, .columns = 5,
     .column = {"seq", "name", "unique", "origin", "partial"}},
    {"index_xinfo", pragma__index_info, READS | ARG | SCHEMA, .columns = 6,
     .column = {"seqno", "cid", "name", "desc", "coll", "key"}},
    {"integrity_check", run_integrity_check, READS | ARG | SCHEMA, .columns = 1,
     .column = {"integrity_check"}},
    {"journal_mode", pragma__journal_mode, SCHEMA | WRITES, .columns = 1,
     .column = {"journal_mode"}},
    {"journal_size_limit", pragma__journal_size_limit, SCHEMA, .number = -1, .columns = 1,
     .column = {"journal_size_limit"}},
    {"legacy_alter_table", pragma__kept_flag, QUIET, .columns = 1,
     .column = {"legacy_alter_table"}},
    {"locking_mode", pragma__locking_mode, SCHEMA, .columns = 1, .column = {"locking_mode"}},
    {"max_page_count", fixed_number, SCHEMA, .number = 4294967294, .columns = 1,
     .column = {"max_page_count"}},
    {"mmap_size", fixed_number, NO_FUNC, .columns = 1, .column = {"mmap_size"}},
    {"module_list", pragma__module_list, 0, .columns = 1, .column = {"name"}},
    {"optimize", nothing, ARG, .columns = 1, .column = {"optimize"}},
    {"page_count", run_page_count, SCHEMA, .columns = 1, .column = {"page_count"}},
    {"page_size", fixed_number, QUIET | SCHEMA, .number = 16384, .columns = 1,
     .column = {"page_size"}},
    {"pragma_list", pragma__pragma_list, 0, .columns = 1, .column = {"name"}},
    {"query_only", pragma__query_only, QUIET, .columns = 1, .column = {"query_only"}},
    {"quick_check", run_integrity_check, READS | ARG | SCHEMA, .columns = 1,
     .column = {"quick_check"}},
    {"read_uncommitted", pragma__kept_flag, QUIET, .columns = 1, .column = {"read_uncommitted"}},
    {"recursive_triggers", pragma__recursive_triggers, QUIET, .columns = 1,
     .column = {"recursive_triggers"}},
    {"reverse_unordered_selects", pragma__reverse, QUIET, .columns = 1,
     .column = {"reverse_unordered_selects"}},
    {"schema_version", header_number, READS | QUIET | SETS, .text = "schema_version", .columns = 1,
     .column = {"schema_version"}},
    {"secure_delete", pragma__secure_delete, 0, .columns = 1, .column = {"secure_delete"}},
    {"short_column_names", pragma__short_column_names, QUIET, .columns = 1,
     .column = {"short_column_names"}},
    {"shrink_memory", nothing, NO_FUNC},
    {"soft_heap_limit", pragma__kept_number, 0, .columns = 1, .column = {"soft_heap_limit"}},
    {"synchronous", pragma__synchronous, QUIET | SCHEMA, .number = 2, .columns = 1,
     .column = {"synchronous"}},
    {"table_info", pragma__table_info, READS | ARG | SCHEMA, .columns = 6,
     .column = {"cid", "name", "type", "notnull", "dflt_value", "pk"}},
    {"table_list", pragma__table_list, READS | ARG, .columns = 6,
     .column = {"schema", "name", "type", "ncol", "wr", "strict"}},
    {"table_xinfo", pragma__table_info, READS | ARG | SCHEMA, .columns = 7,
     .column = {"cid", "name", "type", "notnull", "dflt_value", "pk", "hidden"}},
    {"temp_store", pragma__temp_store, QUIET, .columns = 1, .column = {"temp_store"}},
    {"threads", pragma__kept_number, 0, .columns = 1, .column = {"threads"}},
    {"trusted_schema", pragma__kept_flag, QUIET, .number = 1, .columns = 1,
     .column = {"trusted_schema"}},
    {"user_version", header_number, READS | QUIET | SETS, .text = "user_version", .columns = 1,
     .column = {"user_version"}},
    {"wal_autocheckpoint", pragma__kept_limit, NO_FUNC, .number = 1000, .columns = 1,
     .column = {"wal_autocheckpoint"}},
    {"wal_checkpoint", run_checkpoint, NO_FUNC | WRITES, .columns = 3,
     .column = {"busy", "log", "checkpointed"}},
    {"weft_batch_rows", pragma__batch_rows, QUIET, .columns = 1, .column = {"weft_batch_rows"}},
    {"weft_memory_budget", pragma__memory_budget, QUIET, .columns = 1,
     .column = {"weft_memory_budget"}},
    {"weft_plans", pragma__plans, QUIET, .columns = 1, .column = {"weft_plans"}},
    {"weft_session_memory", pragma__session_memory, QUIET, .columns = 1,
     .column = {"weft_session_memory"}},
    {"weft_statement_memory", pragma__statement_memory, QUIET, .columns = 1,
     .column = {"weft_statement_memory"}},
    {"weft_trip_every", pragma__trip_every, QUIET, .columns = 1, .column = {"weft_trip_every"}},
    {"weft_writers", pragma__writers, 0, .columns = 1, .column = {"weft_writers"}},
    {"writable_schema", pragma__writable_schema, QUIET, .columns = 1,
     .column = {"writable_schema"}},
};

u32
pragma__number(const PragmaDef *def)
{
    return (u32)(def - pragmas);
}

i64 *
pragma__defaults(void)
{
    i64 *kept = MEM_NEW_ARRAY(i64, COUNT_OF(pragmas));
    for (u32 i = 0; kept != NULL && i < COUNT_OF(pragmas); i++)
        kept[i] = pragmas[i].number;
    return kept;
}

u32
pragma__count(void)
{
    return COUNT_OF(pragmas);
}

const char *
pragma__describe_at(u32 at, u32 *columns_out, const char *const **column_out, bool *takes_arg_out,
                    bool *takes_schema_out)
{
    const PragmaDef *def = &pragmas[at];
    *columns_out = (def->flags & PRAGMA_NO_FUNC) != 0 ? 0 : def->columns;
    *column_out = def->column;
    /* Those that are settings have no argument as functions: a query must not change anything. */
    *takes_arg_out = (def->flags & PRAGMA_ARG) != 0;
    *takes_schema_out = (def->flags & PRAGMA_SCHEMA) != 0;
    return def->name;
}

Err
pragma__pragma_list(PragmaCall *call)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < COUNT_OF(pragmas); i++)
        err = pragma__one_text(call, pragmas[i].name);
    return err;
}

static const PragmaDef *
find_pragma(Slice name)
{
    for (u32 i = 0; i < COUNT_OF(pragmas); i++) {
        if (slice_equal_nocase(name, SLICE(pragmas[i].name, strlen(pragmas[i].name)))) {
            return &pragmas[i];
        }
    }
    return NULL;
}

bool
pragma__writes(const AstPragma *ast)
{
    const PragmaDef *def = find_pragma(ast->name.text);
    u32 flags = def == NULL ? 0 : def->flags;
    return (flags & PRAGMA_WRITES) != 0 ||
           ((flags & PRAGMA_SET_WRITES) != 0 && ast->form != AST_PRAGMA_NO_VALUE);
}

Err
pragma__describe(Stmt *stmt)
{
    const AstPragma *ast = stmt->ast->u.pragma;
    const PragmaDef *def = find_pragma(ast->name.text);
    if (ast_name_present(&ast->schema)) {
        CatalogView view;
        session__catalog_view(stmt->session, &view);
        if (catalog_view_database(&view, ast->schema.text) < 0) {
            return session__unknown_database(stmt->session, &ast->schema);
        }
    }
    if (def == NULL) return OK;
    if ((def->flags & PRAGMA_QUIET_ON_SET) != 0 && ast->form != AST_PRAGMA_NO_VALUE) return OK;
    PlanColumn *column = ARENA_NEW_ARRAY(&stmt->arena, PlanColumn, def->columns + 1u);
    if (column == NULL) return session__fail(stmt->session, ERR_NOMEM, NULL);
    for (u32 i = 0; i < def->columns; i++)
        column[i].name = def->column[i];
    stmt->column = column;
    stmt->column_count = def->columns;
    return OK;
}

Err
pragma__run(Stmt *stmt)
{
    Session *session = stmt->session;
    const AstPragma *ast = stmt->ast->u.pragma;
    const PragmaDef *def = find_pragma(ast->name.text);
    if (def == NULL) return OK;
    PragmaCall call = {
        .stmt = stmt,
        .session = session,
        .ast = ast,
        .has_value = ast->form != AST_PRAGMA_NO_VALUE,
        .value = ast->value,
        .def = def,
    };
    if ((def->flags & PRAGMA_READS_SCHEMA) == 0) {
        Err err = def->fn(&call);
        if ((def->flags & PRAGMA_QUIET_ON_SET) != 0 && call.has_value) stmt->rows.rows = 0;
        return err;
    }
    session->running++;
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err == OK) err = def->fn(&call);
    session->running--;
    session->has_read = true;
    if (err == OK) err = session__wait_shown(session);
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) err_move(&kept, &session->error);
    Err end = session__autocommit_end(session, err == OK);
    return err != OK ? session__fail(session, err, &kept) : end;
}
