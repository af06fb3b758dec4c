/*
 * pragma_rows.c -- pragmas that describe: tables, indexes, keys, databases, functions.
 */
#include "session/pragma__impl.h"

#include "func/func_builtin.h"

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

Err
pragma__table_info(PragmaCall *call)
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

Err
pragma__table_list(PragmaCall *call)
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

/* The number at the end of an automatic name; created indexes come before all of those. */
static i64
auto_number(const IndexDef *index)
{
    if (index->origin == INDEX_CREATED) return I64_MAX;
    const char *digits = strrchr(index->name, '_');
    return digits == NULL ? 0 : pragma__value_number(SLICE(digits + 1, strlen(digits + 1)));
}

Err
pragma__index_list(PragmaCall *call)
{
    const TableDef *table = named_table(call);
    if (table == NULL) return OK;
    Err err = OK;
    /* The key of a WITHOUT ROWID table stands where its constraint does: newest first. */
    const IndexDef *key = table->primary_key;
    u32 at = 0;
    for (u32 i = 0; err == OK && i < table->index_count; i++) {
        if (key != NULL && auto_number(table->index[i]) < auto_number(key)) {
            err = list_index(call, key, at++);
            key = NULL;
        }
        if (err == OK) err = list_index(call, table->index[i], at++);
    }
    return err == OK && key != NULL ? list_index(call, key, at) : err;
}

static Err
index_row(PragmaCall *call, const IndexDef *index, u32 at, const IndexColumn *column, bool is_key)
{
    i64 cid = column->column == COLUMN_ROWID  ? -1
              : column->column == COLUMN_EXPR ? -2
                                              : column->column;
    const char *name = cid < 0 ? NULL : index->table->column[column->column].name;
    const char *collation = column->collation == NULL ? "BINARY" : column->collation->name;
    if (column->host_collation != NULL) collation = column->host_collation;
    const Cell cells[6] = {
        cell_int(at),           cell_int(cid),        text_cell(name),
        cell_int(column->desc), text_cell(collation), cell_int(is_key),
    };
    return rows__add(call->stmt, cells);
}

/* The columns that a WITHOUT ROWID table keeps beside its key. */
static Err
key_rest(PragmaCall *call, const TableDef *table, u32 at)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < table->column_count; i++) {
        bool in_key = table->column[i].generated == 1;
        for (u32 k = 0; k < table->primary_key->key_columns; k++)
            in_key = in_key || table->primary_key->column[k].column == i;
        const IndexColumn column = {.column = (u16)i, .collation = &collation_binary};
        if (!in_key) err = index_row(call, table->primary_key, at++, &column, false);
    }
    return err;
}

Err
pragma__index_info(PragmaCall *call)
{
    CatalogView view;
    session__catalog_view(call->session, &view);
    if (!call->has_value) return OK;
    const IndexDef *index = catalog_view_index(&view, call->ast->schema.text, call->value, NULL);
    const TableDef *named = index == NULL ? named_table(call) : NULL;
    /* A WITHOUT ROWID table stands for its key. */
    if (named != NULL && named->without_rowid) index = named->primary_key;
    bool extended = call->stmt->column_count == 6;
    if (index == NULL) return OK;
    Err err = OK;
    u32 at = 0;
    for (u32 i = 0; err == OK && i < index->key_columns; i++)
        err = index_row(call, index, at++, &index->column[i], true);
    const TableDef *table = index->table;
    if (!extended || err != OK) return err;
    if (index == table->primary_key) return key_rest(call, table, at);
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

Err
pragma__foreign_key_list(PragmaCall *call)
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

Err
pragma__database_list(PragmaCall *call)
{
    Session *session = call->session;
    Err err = OK;
    /* Attached databases have no gaps in their numbers. */
    i64 attached = 2;
    for (u32 i = 0; err == OK && i < session->db_count; i++) {
        const SessionDb *db = &session->db[i];
        if (db->database == NULL) continue;
        const char *path = i == 1 ? "" : store_path(db->database->store);
        i64 number = i < 2 ? (i64)i : attached++;
        const Cell cells[3] = {cell_int(number), text_cell(db->name), text_cell(path)};
        err = rows__add(call->stmt, cells);
    }
    return err;
}

Err
pragma__collation_list(PragmaCall *call)
{
    static const char *const names[] = {"RTRIM", "NOCASE", "BINARY"};
    Err err = OK;
    for (u32 i = 0; err == OK && i < COUNT_OF(names); i++) {
        const Cell cells[2] = {cell_int(i), text_cell(names[i])};
        err = rows__add(call->stmt, cells);
    }
    return err;
}

Err
pragma__compile_options(PragmaCall *call)
{
    Err err = OK;
    const char *option;
    for (u32 i = 0; err == OK && (option = func_compile_option(i)) != NULL; i++)
        err = pragma__one_text(call, option);
    return err;
}

/* ---- what there is ---- */

static Err
list_function(PragmaCall *call, const FuncDef *def, bool builtin)
{
    /* SQLite's numbers for deterministic, direct only, subtype and innocuous. */
    i64 flags = (def->flags & (FUNC_VOLATILE | FUNC_SLOW_CHANGE)) == 0 ? 0x800 : 0;
    if ((def->flags & FUNC_DIRECT_ONLY) != 0) flags |= 0x80000;
    if ((def->flags & FUNC_SUBTYPE) != 0) flags |= 0x100000;
    if (builtin && (def->flags & FUNC_DIRECT_ONLY) == 0) flags |= 0x200000;
    const char *kind = def->kind == FUNC_SCALAR ? "s" : def->inverse != NULL ? "w" : "a";
    if (def->kind == FUNC_WINDOW) kind = "w";
    i32 last = def->argc_max < 0 ? -1 : def->argc_max;
    Err err = OK;
    for (i32 argc = def->argc_max < 0 ? -1 : def->argc_min; err == OK && argc <= last; argc++) {
        const Cell cells[6] = {
            text_cell(def->name), cell_int(builtin), text_cell(kind),
            text_cell("utf8"),    cell_int(argc),    cell_int(flags),
        };
        err = rows__add(call->stmt, cells);
    }
    return err;
}

Err
pragma__function_list(PragmaCall *call)
{
    Err err = OK;
    for (const FuncTable *t = call->session->functions; t != NULL; t = t->parent) {
        for (u32 i = 0; err == OK && i < t->count; i++)
            err = list_function(call, t->defs[i], t->parent == NULL);
    }
    return err;
}

static Err
list_name(void *arg, const char *name)
{
    return pragma__one_text(arg, name);
}

/* Those of the program and of the library; table-valued functions are made by the planner. */
Err
pragma__module_list(PragmaCall *call)
{
    static const char *const own[] = {"json_each", "json_tree", "generate_series"};
    Err err = virtual__module_names(call->session, list_name, call);
    for (u32 i = 0; err == OK && i < COUNT_OF(own); i++)
        err = pragma__one_text(call, own[i]);
    return err;
}
