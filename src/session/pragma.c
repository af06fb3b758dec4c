/*
 * pragma.c -- PRAGMA: a table of names, their result columns and what they do.
 *
 * A pragma that SQLite does not know returns nothing and is no error; so do those that have no
 * meaning here but do no harm (an answer that programs expect is given where they read one).
 */
#include "session/virtual__impl.h"

typedef struct PragmaCall {
    Stmt *stmt;
    Session *session;
    const AstPragma *ast;
    bool has_value;
    Slice value;
    const struct PragmaDef *def;
} PragmaCall;

typedef Err (*PragmaFn)(PragmaCall *call);

typedef struct PragmaDef {
    const char *name;
    PragmaFn fn;
    bool reads_schema; /* Needs a transaction and the catalogs. */
    bool quiet_on_set; /* With a value: no row. */
    i64 number;        /* For fixed answers. */
    const char *text;  /* The same, as text; and names of header numbers. */
    u8 columns;
    const char *column[8];
} PragmaDef;

static Cell
text_cell(const char *text)
{
    return text == NULL ? cell_null() : cell_text(text, strlen(text));
}

static Err
one_number(PragmaCall *call, i64 number)
{
    Cell cell = cell_int(number);
    return rows__add(call->stmt, &cell);
}

static Err
one_text(PragmaCall *call, const char *text)
{
    Cell cell = text_cell(text);
    return rows__add(call->stmt, &cell);
}

/* on, yes, true, 1, ... as SQLite reads them. */
static bool
value_is_true(Slice value)
{
    static const char *const yes[] = {"on", "yes", "true", "full", "extra"};
    for (u32 i = 0; i < COUNT_OF(yes); i++) {
        if (slice_equal_nocase(value, SLICE(yes[i], strlen(yes[i])))) return true;
    }
    Cell cell = cell_text(value.p, value.bytes);
    return cell_to_int(&cell) != 0;
}

static i64
value_number(Slice value)
{
    Cell cell = cell_text(value.p, value.bytes);
    return cell_to_int(&cell);
}

/* ---- settings ---- */

static Err
flag(PragmaCall *call, bool *setting, bool only_outside)
{
    if (!call->has_value) return one_number(call, *setting);
    if (only_outside && call->session->in_transaction) return OK;
    Session *session = call->session;
    bool value = value_is_true(call->value);
    bool at_run_time = setting == &session->query_only || setting == &session->defer_foreign_keys;
    if (*setting != value && !at_run_time) session->environment++; /* Plans are made anew. */
    *setting = value;
    session->exec_env.foreign_keys = session->foreign_keys;
    session->exec_env.recursive_triggers = session->recursive_triggers;
    session->exec_env.ignore_check = session->ignore_check;
    session->func_env.case_sensitive_like = session->case_sensitive_like;
    return OK;
}

static Err
run_foreign_keys(PragmaCall *call)
{
    return flag(call, &call->session->foreign_keys, true);
}

static Err
run_recursive_triggers(PragmaCall *call)
{
    return flag(call, &call->session->recursive_triggers, false);
}

static Err
run_defer_foreign_keys(PragmaCall *call)
{
    Session *session = call->session;
    Err err = flag(call, &session->defer_foreign_keys, false);
    session->exec_env.defer_foreign_keys = session->defer_foreign_keys;
    return err;
}

static Err
run_cache_size(PragmaCall *call)
{
    Session *session = call->session;
    if (!call->has_value) return one_number(call, session->cache_size);
    session->cache_size = value_number(call->value);
    return OK;
}

/* Bytes a statement may hold in sorts, hash tables and the like before it spills; 0: default. */
static Err
run_memory_budget(PragmaCall *call)
{
    u64 *budget = &call->session->exec_env.memory_budget_bytes;
    if (!call->has_value) return one_number(call, (i64)*budget);
    i64 bytes = value_number(call->value);
    *budget = bytes > 0 ? (u64)bytes : 0;
    return OK;
}

/* ---- for tests: results must not depend on these ---- */

/* Rows asked of a statement's root at once; 0: growing. */
static Err
run_batch_rows(PragmaCall *call)
{
    u32 *rows = &call->session->exec_env.batch_rows;
    if (!call->has_value) return one_number(call, *rows);
    i64 number = value_number(call->value);
    *rows = (u32)MIN_OF(MAX_OF(number, (i64)0), (i64)BATCH_ROWS_MAX);
    return OK;
}

/* Drop what was read ahead after so many rows; 0: never. */
static Err
run_trip_every(PragmaCall *call)
{
    u32 *rows = &call->session->exec_env.trip_every;
    if (!call->has_value) return one_number(call, *rows);
    i64 number = value_number(call->value);
    *rows = (u32)MIN_OF(MAX_OF(number, (i64)0), (i64)U32_MAX);
    return OK;
}

/* Which plans are made where there is a choice. */
static Err
run_plans(PragmaCall *call)
{
    static const char *const names[] = {"free", "hash", "loop", "as_written", "plain"};
    STATIC_ASSERT(COUNT_OF(names) == SESSION_PLANS);
    Session *session = call->session;
    for (u8 i = 0; call->has_value && i < COUNT_OF(names); i++) {
        if (!slice_equal_nocase(call->value, SLICE(names[i], strlen(names[i])))) continue;
        session->plans = i;
        session->environment++; /* Plans are made anew. */
        return OK;
    }
    return one_text(call, names[session->plans]);
}

/* ---- */

static Err
run_query_only(PragmaCall *call)
{
    return flag(call, &call->session->query_only, false);
}

static Err
run_ignore_check(PragmaCall *call)
{
    return flag(call, &call->session->ignore_check, false);
}

static Err
run_reverse(PragmaCall *call)
{
    return flag(call, &call->session->reverse_unordered, false);
}

static Err
run_case_sensitive_like(PragmaCall *call)
{
    if (!call->has_value) return OK;
    return flag(call, &call->session->case_sensitive_like, false);
}

static Err
run_synchronous(PragmaCall *call)
{
    Session *session = call->session;
    static const StoreSync levels[] = {STORE_SYNC_OFF, STORE_SYNC_NORMAL, STORE_SYNC_FULL};
    if (!call->has_value) {
        return one_number(call, session->options.sync == STORE_SYNC_FULL     ? 2
                                : session->options.sync == STORE_SYNC_NORMAL ? 1
                                                                             : 0);
    }
    if (session->in_transaction) {
        return session_set_error(session, ERR_SQL,
                                 "Safety level may not be changed inside a transaction");
    }
    i64 level = value_number(call->value);
    Slice value = call->value;
    if (slice_equal_nocase(value, SLICE_LITERAL("normal")) ||
        slice_equal_nocase(value, SLICE_LITERAL("on"))) {
        level = 1;
    } else if (slice_equal_nocase(value, SLICE_LITERAL("full")) ||
               slice_equal_nocase(value, SLICE_LITERAL("extra"))) {
        level = 2;
    }
    session->options.sync = levels[level < 0 ? 0 : level > 2 ? 2 : level];
    return OK;
}

static Err
run_busy_timeout(PragmaCall *call)
{
    Session *session = call->session;
    if (call->has_value) {
        i64 ms = value_number(call->value);
        session_set_busy_timeout(session, ms <= 0 ? 0 : (u64)ms * 1000000);
    }
    return one_number(call, (i64)(session->options.busy_timeout_ns / 1000000));
}

static Err
run_journal_mode(PragmaCall *call)
{
    /* Single-writer mode behaves as WAL does, whatever is asked for. */
    return one_text(call, store_path(session_store(call->session))[0] == 0 ? "memory" : "wal");
}

static Err
run_writers(PragmaCall *call)
{
    Session *session = call->session;
    if (call->has_value) {
        bool single = slice_equal_nocase(call->value, SLICE_LITERAL("single"));
        if (!single && !slice_equal_nocase(call->value, SLICE_LITERAL("multi"))) {
            return session_set_error(session, ERR_SQL,
                                     "weft_writers is either \"single\" or \"multi\"");
        }
        if (session->in_transaction || session->running > 0) {
            return session_set_error(session, ERR_SQL,
                                     "weft_writers may not be changed inside a transaction");
        }
        session->options.single_writer = single;
        session->exec_env.multi_writers = !single;
    }
    return one_text(call, session->options.single_writer ? "single" : "multi");
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
    return one_number(call, call->def->number);
}

static Err
fixed_text(PragmaCall *call)
{
    return one_text(call, call->def->text);
}

static Err
nothing(PragmaCall *call)
{
    (void)call;
    return OK;
}

/* ---- header numbers ---- */

static u32
named_database(const PragmaCall *call)
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
    u32 at = named_database(call);
    StoreTxn *txn = session->db[at].txn;
    if (txn == NULL) return one_number(call, 0);
    i64 number = 0;
    if (!call->has_value) {
        Err err = catalog_get_number(txn, call->def->text, &number);
        return err == OK ? one_number(call, number) : session__store_error(session, at, err);
    }
    Err err = session__ensure_token(session, (i32)at);
    if (err != OK) return err;
    err = catalog_set_number(txn, call->def->text, (i32)value_number(call->value));
    return err == OK ? OK : session__store_error(session, at, err);
}

static Err
run_data_version(PragmaCall *call)
{
    return one_number(call, (i64)store_change_number(session_store(call->session)) + 1);
}

static Err
run_page_count(PragmaCall *call)
{
    StoreStats stats;
    store_stats(session_store(call->session), &stats);
    return one_number(call, (i64)(stats.file_bytes / 16384));
}

static Err
run_integrity_check(PragmaCall *call)
{
    i64 most = call->has_value ? value_number(call->value) : 100;
    return maintain__integrity_check(call->stmt, named_database(call), most <= 0 ? 100 : most);
}

/* ---- the schema as rows ---- */

static const TableDef *
named_table(PragmaCall *call)
{
    CatalogView view;
    session__catalog_view(call->session, &view);
    if (!call->has_value) return NULL;
    const TableDef *table = catalog_view_table(&view, call->ast->schema.text, call->value, NULL);
    if (table != NULL && !table->is_virtual) return table;
    ErrMsg msg = {.sql_offset = -1};
    const TableDef *own = virtual__resolve(call->session, table, call->value, &msg);
    err_clear(&msg);
    return own;
}

/* Position of a column in the primary key, from 1; 0: not part of it. */
static i64
key_position(const TableDef *table, u32 column)
{
    if (table->rowid_column == column) return 1;
    const IndexDef *key = table->primary_key;
    for (u32 i = 0; key == NULL && i < table->index_count; i++) {
        if (table->index[i]->origin == INDEX_PRIMARY_KEY) key = table->index[i];
    }
    for (u32 i = 0; key != NULL && i < key->key_columns; i++) {
        if (key->column[i].column == column) return (i64)i + 1;
    }
    return 0;
}

static Err
table_columns(PragmaCall *call, const TableDef *table, bool extended)
{
    Err err = OK;
    for (u32 i = 0, shown = 0; err == OK && i < table->column_count; i++) {
        const ColumnDef *column = &table->column[i];
        i64 hidden = column->hidden ? 1 : column->generated == 0 ? 0 : column->generated + 1;
        if (hidden != 0 && !extended) continue;
        const Cell cells[7] = {
            cell_int(extended ? i : shown),
            text_cell(column->name),
            text_cell(column->type_text == NULL ? "" : column->type_text),
            cell_int(column->not_null),
            text_cell(column->default_sql),
            cell_int(key_position(table, i)),
            cell_int(hidden),
        };
        err = rows__add(call->stmt, cells);
        shown++;
    }
    return err;
}

/* A view's columns are those of its SELECT. */
static Err
view_columns(PragmaCall *call, const TableDef *table, bool extended)
{
    Session *session = call->session;
    CatalogView view;
    PlanContext context;
    Plan *plan = NULL;
    AstStatement *ast;
    size_t consumed;
    Arena arena;
    Buf sql = {0};
    ErrMsg msg = {.sql_offset = -1};
    arena_init(&arena, NULL);
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    Err err = buf_printf(&sql, "SELECT * FROM %s.", table->schema);
    if (err == OK) err = sql_name_append(&sql, SLICE(table->name, strlen(table->name)), true);
    if (err == OK) err = sql_parse(&arena, buf_slice(&sql), NULL, &ast, &consumed, &msg);
    if (err == OK) err = plan_prepare(&context, ast, buf_slice(&sql), &plan, &msg);
    if (err != OK) session__fail(session, err, &msg);
    for (u32 i = 0; err == OK && i < plan->column_count; i++) {
        const char *type = plan->column[i].decl_type;
        const Cell cells[7] = {
            cell_int(i),
            text_cell(plan->column[i].name),
            text_cell(type == NULL ? "" : type),
            cell_int(0),
            cell_null(),
            cell_int(0),
            cell_int(0),
        };
        err = rows__add(call->stmt, cells);
    }
    (void)extended;
    plan_release(plan);
    buf_free(&sql);
    arena_free(&arena);
    return err;
}

static Err
run_table_info(PragmaCall *call)
{
    const TableDef *table = named_table(call);
    bool extended = call->stmt->column_count == 7;
    if (table == NULL) return OK;
    return table->is_view ? view_columns(call, table, extended)
                          : table_columns(call, table, extended);
}

static Err
list_table(PragmaCall *call, const Catalog *catalog, const TableDef *table)
{
    const char *kind = table->is_view                                            ? "view"
                       : table->is_virtual                                       ? "virtual"
                       : virtual__is_shadow(call->session, catalog, table->name) ? "shadow"
                                                                                 : "table";
    if (table->is_virtual) {
        ErrMsg msg = {.sql_offset = -1};
        const TableDef *own = virtual__resolve(call->session, table, SLICE_NONE, &msg);
        err_clear(&msg);
        if (own != NULL) table = own;
    }
    const Cell cells[6] = {
        text_cell(table->schema),
        text_cell(strcmp(table->name, "sqlite_master") == 0 ? "sqlite_schema" : table->name),
        text_cell(kind),
        cell_int(table->column_count),
        cell_int(table->without_rowid),
        cell_int(table->strict),
    };
    return rows__add(call->stmt, cells);
}

static Err
run_table_list(PragmaCall *call)
{
    CatalogView view;
    session__catalog_view(call->session, &view);
    Err err = OK;
    for (u32 d = 0; d < view.count; d++) {
        const Catalog *catalog = view.db[d].catalog;
        if (catalog == NULL) continue;
        for (u32 i = catalog_table_count(catalog); err == OK && i-- > 0;) {
            const TableDef *table = catalog_table_at(catalog, i);
            Slice name = SLICE(table->name, strlen(table->name));
            if (call->has_value && !slice_equal_nocase(name, call->value)) continue;
            err = list_table(call, catalog, table);
        }
        const TableDef *own = catalog_find_table(catalog, SLICE_LITERAL("sqlite_schema"));
        if (err == OK && !call->has_value) err = list_table(call, catalog, own);
    }
    return err;
}

static Err
list_index(PragmaCall *call, const IndexDef *index, u32 at)
{
    static const char *const origins[] = {"c", "u", "pk"};
    const Cell cells[5] = {
        cell_int(at),
        text_cell(index->name),
        cell_int(index->unique),
        text_cell(origins[index->origin]),
        cell_int(index->where_sql != NULL),
    };
    return rows__add(call->stmt, cells);
}

static Err
run_index_list(PragmaCall *call)
{
    const TableDef *table = named_table(call);
    if (table == NULL) return OK;
    Err err = OK;
    u32 at = 0;
    for (u32 i = 0; err == OK && i < table->index_count; i++)
        err = list_index(call, table->index[i], at++);
    if (err == OK && table->primary_key != NULL) err = list_index(call, table->primary_key, at);
    return err;
}

static Err
index_row(PragmaCall *call, const IndexDef *index, u32 at, const IndexColumn *column, bool is_key)
{
    i64 cid = column->column == COLUMN_ROWID  ? -1
              : column->column == COLUMN_EXPR ? -2
                                              : column->column;
    const char *name = cid < 0 ? NULL : index->table->column[column->column].name;
    const char *collation = column->collation == NULL ? "BINARY" : column->collation->name;
    const Cell cells[6] = {
        cell_int(at),           cell_int(cid),        text_cell(name),
        cell_int(column->desc), text_cell(collation), cell_int(is_key),
    };
    return rows__add(call->stmt, cells);
}

static Err
run_index_info(PragmaCall *call)
{
    CatalogView view;
    session__catalog_view(call->session, &view);
    if (!call->has_value) return OK;
    const IndexDef *index = catalog_view_index(&view, call->ast->schema.text, call->value, NULL);
    bool extended = call->stmt->column_count == 6;
    if (index == NULL) return OK;
    Err err = OK;
    u32 at = 0;
    for (u32 i = 0; err == OK && i < index->key_columns; i++)
        err = index_row(call, index, at++, &index->column[i], true);
    const TableDef *table = index->table;
    if (!extended || err != OK || index == table->primary_key) return err;
    if (!table->without_rowid) {
        const IndexColumn rowid = {.column = COLUMN_ROWID, .collation = &collation_binary};
        return index_row(call, index, at, &rowid, false);
    }
    for (u32 i = 0; err == OK && i < table->primary_key->key_columns; i++) {
        const IndexColumn *column = &table->primary_key->column[i];
        bool is_present = false;
        for (u32 k = 0; k < index->key_columns; k++)
            is_present = is_present || index->column[k].column == column->column;
        if (!is_present) err = index_row(call, index, at++, column, false);
    }
    return err;
}

static Err
run_foreign_key_list(PragmaCall *call)
{
    static const char *const actions[] = {"NO ACTION", "RESTRICT", "SET NULL", "SET DEFAULT",
                                          "CASCADE"};
    const TableDef *table = named_table(call);
    Err err = OK;
    for (u32 i = 0; table != NULL && i < table->foreign_key_count; i++) {
        const ForeignKeyDef *key = &table->foreign_key[table->foreign_key_count - 1 - i];
        for (u32 k = 0; err == OK && k < key->column_count; k++) {
            const Cell cells[8] = {
                cell_int(i),
                cell_int(k),
                text_cell(key->parent_table),
                text_cell(table->column[key->column[k]].name),
                text_cell(key->parent_column[k]),
                text_cell(actions[key->on_update]),
                text_cell(actions[key->on_delete]),
                text_cell("NONE"),
            };
            err = rows__add(call->stmt, cells);
        }
    }
    return err;
}

static Err
run_database_list(PragmaCall *call)
{
    Session *session = call->session;
    Err err = OK;
    for (u32 i = 0; err == OK && i < session->db_count; i++) {
        const SessionDb *db = &session->db[i];
        if (db->database == NULL) continue;
        const char *path = i == 1 ? "" : store_path(db->database->store);
        const Cell cells[3] = {cell_int(i), text_cell(db->name), text_cell(path)};
        err = rows__add(call->stmt, cells);
    }
    return err;
}

static Err
run_collation_list(PragmaCall *call)
{
    static const char *const names[] = {"RTRIM", "NOCASE", "BINARY"};
    Err err = OK;
    for (u32 i = 0; err == OK && i < COUNT_OF(names); i++) {
        const Cell cells[2] = {cell_int(i), text_cell(names[i])};
        err = rows__add(call->stmt, cells);
    }
    return err;
}

static Err
run_compile_options(PragmaCall *call)
{
    Err err = one_text(call, "ENABLE_COLUMN_METADATA");
    return err == OK ? one_text(call, "THREADSAFE=1") : err;
}

/* ---- the table ---- */

static const PragmaDef pragmas[] = {
    {"analysis_limit", fixed_number, .number = 0, .columns = 1, .column = {"analysis_limit"}},
    {"application_id", header_number, true, true, .text = "application_id", .columns = 1,
     .column = {"application_id"}},
    {"auto_vacuum", fixed_number, false, true, .columns = 1, .column = {"auto_vacuum"}},
    {"automatic_index", fixed_number, false, true, .number = 1, .columns = 1,
     .column = {"automatic_index"}},
    {"busy_timeout", run_busy_timeout, .columns = 1, .column = {"timeout"}},
    {"cache_size", run_cache_size, false, true, .columns = 1, .column = {"cache_size"}},
    {"case_sensitive_like", run_case_sensitive_like, false, true},
    {"cell_size_check", fixed_number, false, true, .columns = 1, .column = {"cell_size_check"}},
    {"collation_list", run_collation_list, .columns = 2, .column = {"seq", "name"}},
    {"compile_options", run_compile_options, .columns = 1, .column = {"compile_options"}},
    {"data_version", run_data_version, .columns = 1, .column = {"data_version"}},
    {"database_list", run_database_list, .columns = 3, .column = {"seq", "name", "file"}},
    {"defer_foreign_keys", run_defer_foreign_keys, false, true, .columns = 1,
     .column = {"defer_foreign_keys"}},
    {"encoding", fixed_text, false, true, .text = "UTF-8", .columns = 1, .column = {"encoding"}},
    {"foreign_key_list", run_foreign_key_list, true, .columns = 8,
     .column = {"id", "seq", "table", "from", "to", "on_update", "on_delete", "match"}},
    {"foreign_keys", run_foreign_keys, false, true, .columns = 1, .column = {"foreign_keys"}},
    {"freelist_count", fixed_number, .columns = 1, .column = {"freelist_count"}},
    {"ignore_check_constraints", run_ignore_check, false, true, .columns = 1,
     .column = {"ignore_check_constraints"}},
    {"index_info", run_index_info, true, .columns = 3, .column = {"seqno", "cid", "name"}},
    {"index_list", run_index_list, true, .columns = 5,
     .column = {"seq", "name", "unique", "origin", "partial"}},
    {"index_xinfo", run_index_info, true, .columns = 6,
     .column = {"seqno", "cid", "name", "desc", "coll", "key"}},
    {"integrity_check", run_integrity_check, true, .columns = 1, .column = {"integrity_check"}},
    {"journal_mode", run_journal_mode, .columns = 1, .column = {"journal_mode"}},
    {"journal_size_limit", fixed_number, .number = -1, .columns = 1,
     .column = {"journal_size_limit"}},
    {"legacy_alter_table", fixed_number, false, true, .columns = 1,
     .column = {"legacy_alter_table"}},
    {"locking_mode", fixed_text, .text = "normal", .columns = 1, .column = {"locking_mode"}},
    {"max_page_count", fixed_number, .number = 4294967294, .columns = 1,
     .column = {"max_page_count"}},
    {"mmap_size", fixed_number, .columns = 1, .column = {"mmap_size"}},
    {"optimize", nothing},
    {"page_count", run_page_count, .columns = 1, .column = {"page_count"}},
    {"page_size", fixed_number, false, true, .number = 16384, .columns = 1,
     .column = {"page_size"}},
    {"query_only", run_query_only, false, true, .columns = 1, .column = {"query_only"}},
    {"quick_check", run_integrity_check, true, .columns = 1, .column = {"quick_check"}},
    {"read_uncommitted", fixed_number, false, true, .columns = 1, .column = {"read_uncommitted"}},
    {"recursive_triggers", run_recursive_triggers, false, true, .columns = 1,
     .column = {"recursive_triggers"}},
    {"reverse_unordered_selects", run_reverse, false, true, .columns = 1,
     .column = {"reverse_unordered_selects"}},
    {"schema_version", header_number, true, true, .text = "schema_version", .columns = 1,
     .column = {"schema_version"}},
    {"secure_delete", fixed_number, .columns = 1, .column = {"secure_delete"}},
    {"synchronous", run_synchronous, false, true, .columns = 1, .column = {"synchronous"}},
    {"table_info", run_table_info, true, .columns = 6,
     .column = {"cid", "name", "type", "notnull", "dflt_value", "pk"}},
    {"table_list", run_table_list, true, .columns = 6,
     .column = {"schema", "name", "type", "ncol", "wr", "strict"}},
    {"table_xinfo", run_table_info, true, .columns = 7,
     .column = {"cid", "name", "type", "notnull", "dflt_value", "pk", "hidden"}},
    {"temp_store", fixed_number, false, true, .columns = 1, .column = {"temp_store"}},
    {"threads", fixed_number, .columns = 1, .column = {"threads"}},
    {"trusted_schema", fixed_number, false, true, .number = 1, .columns = 1,
     .column = {"trusted_schema"}},
    {"user_version", header_number, true, true, .text = "user_version", .columns = 1,
     .column = {"user_version"}},
    {"wal_autocheckpoint", fixed_number, .number = 1000, .columns = 1,
     .column = {"wal_autocheckpoint"}},
    {"wal_checkpoint", run_checkpoint, .columns = 3, .column = {"busy", "log", "checkpointed"}},
    {"weft_batch_rows", run_batch_rows, false, true, .columns = 1, .column = {"weft_batch_rows"}},
    {"weft_memory_budget", run_memory_budget, false, true, .columns = 1,
     .column = {"weft_memory_budget"}},
    {"weft_plans", run_plans, false, true, .columns = 1, .column = {"weft_plans"}},
    {"weft_trip_every", run_trip_every, false, true, .columns = 1, .column = {"weft_trip_every"}},
    {"weft_writers", run_writers, .columns = 1, .column = {"weft_writers"}},
};

u32
pragma__count(void)
{
    return COUNT_OF(pragmas);
}

const char *
pragma__describe_at(u32 at, u32 *columns_out, const char *const **column_out, bool *takes_arg_out)
{
    const PragmaDef *def = &pragmas[at];
    *columns_out = def->columns;
    *column_out = def->column;
    /* Those that are settings have no argument as functions: a query must not change anything. */
    *takes_arg_out = def->reads_schema && !def->quiet_on_set;
    return def->name;
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

Err
pragma__describe(Stmt *stmt)
{
    const AstPragma *ast = stmt->ast->u.pragma;
    const PragmaDef *def = find_pragma(ast->name.text);
    if (ast_name_present(&ast->schema)) {
        CatalogView view;
        session__catalog_view(stmt->session, &view);
        if (catalog_view_database(&view, ast->schema.text) < 0) {
            return session_set_error(stmt->session, ERR_SQL, "unknown database %.*s",
                                     (int)ast->schema.text.bytes, (const char *)ast->schema.text.p);
        }
    }
    if (def == NULL) return OK;
    if (def->quiet_on_set && ast->form != AST_PRAGMA_NO_VALUE) return OK;
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
    if (!def->reads_schema) {
        Err err = def->fn(&call);
        if (def->quiet_on_set && call.has_value) stmt->rows.rows = 0;
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
