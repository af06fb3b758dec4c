/*
 * rename.c -- ALTER TABLE RENAME TO and RENAME COLUMN: every stored text that uses the name
 * follows.
 *
 * The change goes unit by unit.  Each unit whose text is edited is replaced in a catalog version of
 * its own, which nobody sees but this transaction.
 */
#include "sql/catalog/catalog_unit.h"
#include "sql/catalog/table_refs.h"
#include "sql/parse/parse.h"
#include "sql/parse/walk.h"

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* ---- RENAME TO ---- */

/* Edit one row's text and names; `own` if it belongs to the renamed table. */
static Err
rename_row(DdlContext *ddl, Arena *arena, SchemaRow *row, const TableDef *table,
           const char *old_name, Slice new_name, bool own)
{
    char *name = arena_strndup(arena, new_name.p, new_name.bytes);
    if (name == NULL) return ERR_NOMEM;
    if (own) {
        if (row->type == ROW_TABLE) row->name = name;
        row->table = name;
        size_t head = strlen("sqlite_autoindex_"), length = strlen(old_name);
        if (row->type == ROW_INDEX && row->sql == NULL) {
            row->name = arena_printf(arena, "sqlite_autoindex_%s%s", name,
                                     row->name + head + length);
            if (row->name == NULL) return ERR_NOMEM;
        }
    }
    if (row->sql == NULL) return OK;
    AstStatement *ast;
    TableRefs refs = {.name = text_slice(old_name), .arena = arena};
    if (table->database != ddl->env->database) {
        refs.schema = text_slice(table->schema);
        refs.bare = catalog_find_table(ddl->old, refs.name) == NULL;
    }
    Err err = catalog__parse_stored(ddl, arena, row->sql, &ast);
    if (err != OK) return err;
    table_refs_collect(&refs, ast);
    if (refs.out_of_memory) return ERR_NOMEM;
    if (refs.count == 0) return OK;
    row->sql = table_refs_replace(&refs, ast->text, new_name);
    return row->sql == NULL ? ERR_NOMEM : OK;
}

/* Is it a loose trigger of the table? */
static bool
stands_on(const CatalogUnit *unit, const TableDef *table, const char *name)
{
    if (unit->table != NULL || text_compare_nocase(unit->table_name, name) != 0) return false;
    const char *schema = unit->trigger_count == 0 ? NULL : unit->trigger[0]->table_schema;
    return schema == NULL || text_compare_nocase(schema, table->schema) == 0;
}

/* One unit after the renaming; *unit_out NULL if its rows stay as they are. */
static Err
rename_unit(DdlContext *ddl, const CatalogUnit *before, const TableDef *table, const char *old_name,
            Slice new_name, CatalogUnit **unit_out)
{
    *unit_out = NULL;
    bool own = before->table != NULL && !before->table->is_view &&
               text_compare_nocase(before->table->name, old_name) == 0;
    if (table->database != ddl->env->database) own = stands_on(before, table, old_name);
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow *row = catalog__rows_copy(&arena, before);
    Err err = row == NULL ? ERR_NOMEM : OK;
    bool changed = own;
    for (u32 i = 0; err == OK && i < before->row_count; i++) {
        err = rename_row(ddl, &arena, &row[i], table, old_name, new_name, own);
        changed = changed || row[i].sql != before->row[i].sql;
    }
    if (err == OK && changed) {
        err = catalog__unit_rebuild(ddl, row, before->row_count, "after rename", unit_out);
    }
    arena_free(&arena);
    return err;
}

Err
ddl_rename_table(DdlContext *ddl, const TableDef *table, const AstAlter *alter, Catalog **new_out)
{
    *new_out = NULL;
    Slice new_name = alter->new_name.text;
    char *old_name = mem_strdup(table->name);
    if (old_name == NULL) return ERR_NOMEM;
    /* Derive step by step: each unit that names the table is replaced in a version of its own that
       nobody sees but this transaction. */
    Catalog *now = catalog_retain(ddl->old);
    u32 units = catalog__unit_count(ddl->old);
    Err err = OK;
    for (u32 i = 0; err == OK && i < units; i++) {
        const CatalogUnit *before = catalog__unit_at(now, i);
        DdlContext step = *ddl;
        CatalogUnit *unit;
        Catalog *next;
        step.old = now;
        err = rename_unit(&step, before, table, old_name, new_name, &unit);
        if (err != OK || unit == NULL) continue;
        err = catalog__finish(&step, before, unit, &next);
        if (err != OK) continue;
        catalog_release(now);
        now = next;
    }
    mem_free(old_name);
    if (err == OK) {
        *new_out = now;
    } else {
        catalog_release(now);
    }
    return err;
}

/* ---- RENAME COLUMN ---- */

/* A token to replace in one text. */
typedef struct Edit {
    Span span;
    bool is_string; /* Only its double quotes become single ones. */
} Edit;

typedef struct Edits {
    Arena *arena;
    Slice old_name; /* SLICE_NONE: only strings in double quotes are edited. */
    const TableDef *table;
    const AstCreateTable *ast; /* While its own text is walked. */
    Edit *item;
    u32 count, capacity;
    bool out_of_memory;
} Edits;

static void
add_edit(Edits *edits, Span span, bool is_string)
{
    if (edits->count == edits->capacity) {
        u32 capacity = edits->capacity * 2 + 16;
        Edit *list = ARENA_NEW_ARRAY(edits->arena, Edit, capacity);
        edits->out_of_memory = edits->out_of_memory || list == NULL;
        if (list == NULL) return;
        if (edits->count > 0) memcpy(list, edits->item, sizeof(*list) * edits->count);
        edits->item = list;
        edits->capacity = capacity;
    }
    /* In order of position; a token found twice counts once. */
    u32 at = edits->count;
    while (at > 0 && edits->item[at - 1].span.offset > span.offset)
        at--;
    if (at > 0 && edits->item[at - 1].span.offset == span.offset) return;
    memmove(&edits->item[at + 1], &edits->item[at], sizeof(Edit) * (edits->count - at));
    edits->item[at] = (Edit){span, is_string};
    edits->count++;
}

static void
add_names(Edits *edits, const AstNames *names)
{
    for (u32 i = 0; i < names->count; i++) {
        if (slice_equal_nocase(names->items[i].text, edits->old_name)) {
            add_edit(edits, names->items[i].span, false);
        }
    }
}

/* In the texts of a table and its indexes every column is the table's own. */
static void
visit_own(void *arg, AstRole role, const AstName *name)
{
    Edits *edits = arg;
    if (role != AST_ROLE_COLUMN || !slice_equal_nocase(name->text, edits->old_name)) return;
    add_edit(edits, name->span, false);
}

/* True for the parent columns of foreign keys to other tables. */
static bool
is_foreign(const Edits *edits, const AstConstraints *constraints, Span span)
{
    for (u32 i = 0; i < constraints->count; i++) {
        const AstForeignKey *key = constraints->items[i].foreign_key;
        if (key == NULL) continue;
        if (slice_equal_nocase(key->table.text, text_slice(edits->table->name))) continue;
        for (u32 k = 0; k < key->parent_columns.count; k++) {
            if (key->parent_columns.items[k].span.offset == span.offset) return true;
        }
    }
    return false;
}

static bool
is_foreign_name(const Edits *edits, const AstCreateTable *ast, Span span)
{
    if (is_foreign(edits, &ast->constraints, span)) return true;
    for (u32 i = 0; i < ast->columns.count; i++) {
        if (is_foreign(edits, &ast->columns.items[i].constraints, span)) return true;
    }
    return false;
}

static void
visit_table(void *arg, AstRole role, const AstName *name)
{
    const Edits *edits = arg;
    if (!is_foreign_name(edits, edits->ast, name->span)) visit_own(arg, role, name);
}

static void
add_parents(Edits *edits, const AstConstraints *constraints)
{
    for (u32 i = 0; i < constraints->count; i++) {
        const AstForeignKey *key = constraints->items[i].foreign_key;
        if (key == NULL) continue;
        if (!slice_equal_nocase(key->table.text, text_slice(edits->table->name))) continue;
        add_names(edits, &key->parent_columns);
    }
}

/*
 * "x" in an expression over the table is a string if no column is called so.  It is given single
 * quotes before the columns change, or it would be one of them then.
 */
static bool
visit_expr(void *arg, const AstExpr *expr)
{
    Edits *edits = arg;
    if (expr->kind != AST_EXPR_COLUMN || expr->u.column.qualifier != NULL) return true;
    const AstName *name = &expr->u.column.name;
    if (name->quote == AST_QUOTE_DOUBLE && !catalog__names_column(edits->table, name->text)) {
        add_edit(edits, name->span, true);
    }
    return true;
}

/* A term of an index may name a column as 'x'. */
static void
add_string_terms(Edits *edits, const AstOrderTerms *terms)
{
    for (u32 i = 0; i < terms->count; i++) {
        const AstExpr *expr = terms->items[i].expr;
        if (expr->kind == AST_EXPR_COLLATE) expr = expr->u.collate.operand;
        if (expr->kind != AST_EXPR_STRING) continue;
        if (slice_equal_nocase(expr->u.literal, edits->old_name)) {
            add_edit(edits, expr->span, false);
        }
    }
}

/* What the tree alone says, without knowing other tables. */
static void
collect_syntax(Edits *edits, const AstStatement *ast, bool own)
{
    AstVisitor visitor = {.arg = edits, .name = visit_own};
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE:
        edits->ast = ast->u.create_table;
        if (own) {
            visitor.name = visit_table;
            visitor.expr = visit_expr;
            ast_walk_statement(&visitor, ast);
            for (u32 i = 0; i < edits->ast->constraints.count; i++)
                add_string_terms(edits, &edits->ast->constraints.items[i].terms);
            return;
        }
        for (u32 i = 0; i < edits->ast->columns.count; i++)
            add_parents(edits, &edits->ast->columns.items[i].constraints);
        add_parents(edits, &edits->ast->constraints);
        return;
    case AST_STMT_CREATE_INDEX:
        if (!own) return;
        visitor.expr = visit_expr;
        ast_walk_statement(&visitor, ast);
        add_string_terms(edits, &ast->u.create_index->terms);
        return;
    case AST_STMT_CREATE_TRIGGER:
        if (own) add_names(edits, &ast->u.create_trigger->columns);
        return;
    default: return;
    }
}

/* What the binder found in views and triggers. */
static void
collect_uses(Edits *edits, const char *sql, const DdlNameUse *use, u32 use_count)
{
    for (u32 i = 0; i < use_count; i++) {
        if (use[i].sql == sql) add_edit(edits, use[i].span, use[i].is_string);
    }
}

static Err
append_edit(Buf *out, Slice token, const AstName *new_name, bool is_string)
{
    if (is_string) {
        /* A string in double quotes would become a column, were it to have the new name. */
        Slice inside = SLICE(token.p + 1, token.bytes - 2);
        Err err = buf_append_byte(out, '\'');
        for (size_t i = 0; err == OK && i < inside.bytes; i++) {
            if (inside.p[i] == '"' && i + 1 < inside.bytes && inside.p[i + 1] == '"') i++;
            err = buf_append_byte(out, inside.p[i]);
            if (err == OK && inside.p[i] == '\'') err = buf_append_byte(out, '\'');
        }
        return err == OK ? buf_append_byte(out, '\'') : err;
    }
    /* A token in quotes keeps them, and so does the new name. */
    u8 first = token.p[0];
    bool quoted = first == '"' || first == '[' || first == '`' || first == '\'';
    return sql_name_append(out, new_name->text, quoted || new_name->quote != AST_QUOTE_NONE);
}

static char *
apply_edits(const Edits *edits, Slice text, const AstName *new_name)
{
    Buf out = {0};
    Err err = OK;
    size_t from = 0;
    for (u32 i = 0; err == OK && i < edits->count; i++) {
        Span span = edits->item[i].span;
        err = buf_append(&out, text.p + from, span.offset - from);
        if (err == OK) {
            err = append_edit(&out, span_slice(text, span), new_name, edits->item[i].is_string);
        }
        from = span_end(span);
        /* "x""y" were one name. */
        bool joins = from < text.bytes && out.bytes > 0 && text.p[from] == out.p[out.bytes - 1];
        if (err == OK && joins && text.p[from] == '"') err = buf_append_byte(&out, ' ');
    }
    if (err == OK) err = buf_append(&out, text.p + from, text.bytes - from);
    char *copy = err == OK ? arena_strndup(edits->arena, out.p, out.bytes) : NULL;
    buf_free(&out);
    return copy;
}

Err
catalog__fix_strings(DdlContext *ddl, Arena *arena, const TableDef *table, SchemaRow *row)
{
    if (row->sql == NULL || (row->type != ROW_TABLE && row->type != ROW_INDEX)) return OK;
    AstStatement *ast;
    Err err = catalog__parse_stored(ddl, arena, row->sql, &ast);
    if (err != OK) return err;
    Edits edits = {.arena = arena, .old_name = SLICE_NONE, .table = table};
    const AstVisitor visitor = {.arg = &edits, .expr = visit_expr};
    ast_walk_statement(&visitor, ast);
    if (edits.out_of_memory) return ERR_NOMEM;
    if (edits.count == 0) return OK;
    row->sql = apply_edits(&edits, text_slice(row->sql), NULL);
    return row->sql == NULL ? ERR_NOMEM : OK;
}

typedef struct ColumnRename {
    const TableDef *table;
    const char *old_name;
    const AstName *new_name;
    const DdlNameUse *use;
    u32 use_count;
} ColumnRename;

static Err
rename_column_row(DdlContext *ddl, Arena *arena, const ColumnRename *rename, SchemaRow *row,
                  bool own)
{
    if (row->sql == NULL) return OK;
    AstStatement *ast;
    Err err = catalog__parse_stored(ddl, arena, row->sql, &ast);
    if (err != OK) return err;
    Edits edits = {
        .arena = arena, .old_name = text_slice(rename->old_name), .table = rename->table};
    collect_syntax(&edits, ast, own);
    collect_uses(&edits, row->sql, rename->use, rename->use_count);
    if (edits.out_of_memory) return ERR_NOMEM;
    if (edits.count == 0) return OK;
    row->sql = apply_edits(&edits, text_slice(row->sql), rename->new_name);
    return row->sql == NULL ? ERR_NOMEM : OK;
}

static Err
rename_column_unit(DdlContext *ddl, const CatalogUnit *before, const ColumnRename *rename,
                   CatalogUnit **unit_out)
{
    *unit_out = NULL;
    bool own = before->table == rename->table;
    if (rename->table->database != ddl->env->database)
        own = stands_on(before, rename->table, rename->table->name);
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow *row = catalog__rows_copy(&arena, before);
    Err err = row == NULL ? ERR_NOMEM : OK;
    bool changed = false;
    for (u32 i = 0; err == OK && i < before->row_count; i++) {
        err = rename_column_row(ddl, &arena, rename, &row[i], own);
        changed = changed || row[i].sql != before->row[i].sql;
    }
    if (err == OK && changed) {
        err = catalog__unit_rebuild(ddl, row, before->row_count, "after rename", unit_out);
    }
    arena_free(&arena);
    return err;
}

Err
ddl_rename_column(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                  const DdlNameUse *use, u32 use_count, Catalog **new_out)
{
    *new_out = NULL;
    i32 column = catalog__column_find(table, alter->column.text);
    ASSERT(column >= 0);
    const ColumnRename rename = {
        .table = table,
        .old_name = table->column[column].name,
        .new_name = &alter->new_name,
        .use = use,
        .use_count = use_count,
    };
    /* ddl->old keeps the table and the texts that `use` speaks of. */
    Catalog *now = catalog_retain(ddl->old);
    u32 units = catalog__unit_count(ddl->old);
    Err err = OK;
    for (u32 i = 0; err == OK && i < units; i++) {
        const CatalogUnit *before = catalog__unit_at(now, i);
        DdlContext step = *ddl;
        CatalogUnit *unit;
        Catalog *next;
        step.old = now;
        err = rename_column_unit(&step, before, &rename, &unit);
        if (err != OK || unit == NULL) continue;
        err = catalog__finish(&step, before, unit, &next);
        if (err != OK) continue;
        catalog_release(now);
        now = next;
    }
    if (err == OK) {
        *new_out = now;
    } else {
        catalog_release(now);
    }
    return err;
}
