/*
 * catalog_unit.c -- from the schema rows of one table to its unit.
 *
 * Rows stand in rowid order, so the table comes before its indexes.  Automatic indexes are made by
 * the table's own text; their rows only say which tree is theirs.
 */
#include "sql/catalog/catalog_unit.h"

#include "sql/parse/parse.h"

static Err
malformed(const UnitContext *context, const SchemaRow *row, const char *why)
{
    if (context->after_what != NULL && context->msg != NULL && context->msg->err != OK) {
        static const char *const kinds[] = {"table", "index", "view", "trigger"};
        char *text = mem_strdup(err_message(context->msg));
        Err err = err_set(context->msg, ERR_SQL, "error in %s %s %s: %s", kinds[row->type],
                          row->name, context->after_what, text == NULL ? "" : text);
        mem_free(text);
        return err;
    }
    if (context->creating) return context->msg != NULL ? context->msg->err : ERR_SQL;
    if (why == NULL && context->msg != NULL && context->msg->err != OK) {
        char *text = mem_strdup(err_message(context->msg));
        Err err = err_set(context->msg, ERR_CORRUPT, "malformed database schema (%s) - %s",
                          row->name, text == NULL ? "" : text);
        mem_free(text);
        return err;
    }
    return err_set(context->msg, ERR_CORRUPT, "malformed database schema (%s)%s%s", row->name,
                   why == NULL ? "" : " - ", why == NULL ? "" : why);
}

static Err
parse_row(const UnitContext *context, CatalogUnit *unit, const SchemaRow *row,
          AstStatementKind kind, AstStatement **ast_out)
{
    size_t consumed;
    /* The text of a trigger does not say that it is a temporary one, which may do more. */
    bool stored = !context->creating || kind == AST_STMT_CREATE_TRIGGER;
    ParseOptions options = {.stored = stored, .no_params = true};
    if (row->sql == NULL) return malformed(context, row, "no text");
    Err err = sql_parse(&unit->arena, SLICE(row->sql, strlen(row->sql)), &options, ast_out,
                        &consumed, context->msg);
    if (err == ERR_NOMEM) return err;
    if (err != OK) return malformed(context, row, NULL);
    bool is_virtual = *ast_out != NULL && (*ast_out)->kind == AST_STMT_CREATE_VIRTUAL &&
                      kind == AST_STMT_CREATE_TABLE;
    if (*ast_out == NULL || ((*ast_out)->kind != kind && !is_virtual)) {
        return malformed(context, row, "text of another kind");
    }
    return OK;
}

static Err
add_table(const UnitContext *context, CatalogUnit *unit, const SchemaRow *row)
{
    if (unit->table != NULL) return malformed(context, row, "defined twice");
    TableDef *table = ARENA_NEW(&unit->arena, TableDef);
    if (table == NULL) return ERR_NOMEM;
    const CatalogEnv *env = context->env;
    *table = (TableDef){
        .name = row->name,
        .schema = arena_strndup(&unit->arena, env->schema, strlen(env->schema)),
        .database = env->database,
        .store = env->store,
        .tree = row->tree,
        .is_view = row->type == ROW_VIEW,
        .is_system = strncmp(row->name, "sqlite_", 7) == 0,
        .rowid_column = COLUMN_ROWID,
        .sql = row->sql,
        .schema_row = row->rowid,
        .schema_lock_no = row->tree,
        .version = context->version,
    };
    if (table->schema == NULL) return ERR_NOMEM;
    AstStatement *ast;
    Err err = parse_row(context, unit, row,
                        table->is_view ? AST_STMT_CREATE_VIEW : AST_STMT_CREATE_TABLE, &ast);
    if (err != OK) return err;
    unit->table = table;
    /* A view's columns come from its SELECT, which only the binder can read. */
    if (table->is_view) return OK;
    if (ast->kind == AST_STMT_CREATE_VIRTUAL)
        return catalog__virtual_build(&unit->arena, ast->text, ast->u.create_virtual, table);
    err = catalog__table_build(context, &unit->arena, ast->text, ast->u.create_table, table);
    if (err == OK && context->check_table != NULL)
        err = context->check_table(context->check_arg, table);
    if (err != OK && err != ERR_NOMEM) return malformed(context, row, NULL);
    return err;
}

/* The index of a constraint that the row is of.  Those of a WITHOUT ROWID table come in the order
   of their rows: files written before indexes were numbered as SQLite does give them other names.
 */
static IndexDef *
find_automatic(TableDef *table, const SchemaRow *row)
{
    for (u32 i = table->index_count; i-- > 0;) {
        IndexDef *index = table->index[i];
        if (index->origin == INDEX_CREATED) continue;
        if (!table->without_rowid && text_compare_nocase(index->name, row->name) == 0) return index;
        if (!table->without_rowid || index->tree != TREE_NONE) continue;
        IndexDef *key = table->primary_key;
        if (key != NULL && text_compare_nocase(key->name, row->name) == 0) key->name = index->name;
        return index;
    }
    return NULL;
}

static Err
add_index(const UnitContext *context, CatalogUnit *unit, const SchemaRow *row)
{
    if (unit->table == NULL || unit->table->is_view) return malformed(context, row, "orphan index");
    if (row->sql == NULL) {
        IndexDef *index = find_automatic(unit->table, row);
        if (index == NULL) return malformed(context, row, "orphan index");
        index->tree = row->tree;
        index->name = row->name;
        return OK;
    }
    IndexDef *index = ARENA_NEW(&unit->arena, IndexDef);
    if (index == NULL) return ERR_NOMEM;
    *index = (IndexDef){
        .name = row->name, .table = unit->table, .tree = row->tree, .sql = row->sql};
    AstStatement *ast;
    Err err = parse_row(context, unit, row, AST_STMT_CREATE_INDEX, &ast);
    if (err != OK) return err;
    err = catalog__index_build(context, &unit->arena, ast->text, ast->u.create_index, unit->table,
                               index);
    if (err == OK && context->check_index != NULL)
        err = context->check_index(context->check_arg, unit->table, index);
    if (err == OK) err = catalog__table_add_index(&unit->arena, unit->table, index);
    if (err != OK && err != ERR_NOMEM) return malformed(context, row, NULL);
    return err;
}

static Err
add_trigger(const UnitContext *context, CatalogUnit *unit, const SchemaRow *row)
{
    AstStatement *ast;
    Err err = parse_row(context, unit, row, AST_STMT_CREATE_TRIGGER, &ast);
    if (err != OK) return err;
    const AstCreateTrigger *source = ast->u.create_trigger;
    TriggerDef *trigger = ARENA_NEW(&unit->arena, TriggerDef);
    const TriggerDef **list = ARENA_NEW_ARRAY(&unit->arena, const TriggerDef *,
                                              unit->trigger_count + 1);
    if (trigger == NULL || list == NULL) return ERR_NOMEM;
    *trigger = (TriggerDef){
        .name = row->name,
        .table = row->table,
        .sql = row->sql,
        .time = (u8)source->time,
        .event = (u8)source->event,
        .of_count = (u16)source->columns.count,
        .schema_row = row->rowid,
    };
    if (ast_name_present(&source->table_schema)) {
        Slice schema = source->table_schema.text;
        trigger->table_schema = arena_strndup(&unit->arena, schema.p, schema.bytes);
        if (trigger->table_schema == NULL) return ERR_NOMEM;
    }
    trigger->of_column = ARENA_NEW_ARRAY(&unit->arena, const char *, trigger->of_count + 1u);
    if (trigger->of_column == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < trigger->of_count; i++) {
        Slice name = source->columns.items[i].text;
        trigger->of_column[i] = arena_strndup(&unit->arena, name.p, name.bytes);
        if (trigger->of_column[i] == NULL) return ERR_NOMEM;
    }
    list[0] = trigger;
    for (u32 i = 0; i < unit->trigger_count; i++)
        list[i + 1] = unit->trigger[i];
    unit->trigger = list;
    unit->trigger_count++;
    return OK;
}

static Err
copy_rows(CatalogUnit *unit, const SchemaRow *row, u32 row_count)
{
    Arena *arena = &unit->arena;
    unit->row = ARENA_NEW_ARRAY(arena, SchemaRow, row_count + 1);
    if (unit->row == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < row_count; i++) {
        SchemaRow *copy = &unit->row[i];
        *copy = row[i];
        copy->name = arena_strndup(arena, row[i].name, strlen(row[i].name));
        copy->table = arena_strndup(arena, row[i].table, strlen(row[i].table));
        if (copy->name == NULL || copy->table == NULL) return ERR_NOMEM;
        if (row[i].sql == NULL) continue;
        copy->sql = arena_strndup(arena, row[i].sql, strlen(row[i].sql));
        if (copy->sql == NULL) return ERR_NOMEM;
    }
    unit->row_count = row_count;
    unit->table_name = unit->row[0].table;
    return OK;
}

Err
catalog__unit_build(const UnitContext *context, const SchemaRow *row, u32 row_count,
                    CatalogUnit **unit_out)
{
    ASSERT(row_count > 0);
    *unit_out = NULL;
    CatalogUnit *unit = MEM_NEW(CatalogUnit);
    if (unit == NULL) return ERR_NOMEM;
    arena_init(&unit->arena, NULL);
    rt_word_init(&unit->references, 1);
    Err err = copy_rows(unit, row, row_count);
    for (u32 i = 0; err == OK && i < row_count; i++) {
        const SchemaRow *at = &unit->row[i];
        switch (at->type) {
        case ROW_TABLE:
        case ROW_VIEW: err = add_table(context, unit, at); break;
        case ROW_INDEX: err = add_index(context, unit, at); break;
        case ROW_TRIGGER: err = add_trigger(context, unit, at); break;
        }
    }
    if (err != OK) {
        catalog__unit_release(unit);
        return err;
    }
    *unit_out = unit;
    return OK;
}

void
catalog__unit_release(CatalogUnit *unit)
{
    if (unit == NULL || rt_fetch_sub(&unit->references, 1) > 1) return;
    arena_free(&unit->arena);
    mem_free(unit);
}
