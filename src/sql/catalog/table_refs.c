/*
 * table_refs.c -- the tokens of a syntax tree that name one table, and their replacement.
 */
#include "sql/catalog/table_refs.h"

#include "sql/parse/parse.h"
#include "sql/parse/walk.h"

static void
add(TableRefs *refs, const AstName *name)
{
    if (!ast_name_present(name) || !slice_equal_nocase(name->text, refs->name)) return;
    if (refs->count == refs->capacity) {
        u32 capacity = refs->capacity * 2 + 16;
        Span *list = ARENA_NEW_ARRAY(refs->arena, Span, capacity);
        refs->out_of_memory = refs->out_of_memory || list == NULL;
        if (list == NULL) return;
        if (refs->count > 0) memcpy(list, refs->span, sizeof(*list) * refs->count);
        refs->span = list;
        refs->capacity = capacity;
    }
    refs->span[refs->count++] = name->span;
}

static void
visit_name(void *arg, AstRole role, const AstName *name)
{
    TableRefs *refs = arg;
    Slice schema = refs->seen_schema;
    if (role == AST_ROLE_SCHEMA) {
        refs->seen_schema = ast_name_present(name) ? name->text : SLICE_NONE;
        return;
    }
    refs->seen_schema = SLICE_NONE;
    if (role != AST_ROLE_TABLE && role != AST_ROLE_QUALIFIER) return;
    bool meant = schema.p == NULL ? refs->bare : slice_equal_nocase(schema, refs->schema);
    if (refs->schema.p == NULL || meant) add(refs, name);
}

/* True if a common table expression hides the table. */
static bool
hides(const TableRefs *refs, const AstWith *with)
{
    for (u32 i = 0; with != NULL && i < with->count; i++) {
        if (slice_equal_nocase(with->items[i].name.text, refs->name)) return true;
    }
    return false;
}

static bool
visit_select(void *arg, const AstSelect *select)
{
    return !hides(arg, select->with);
}

/* The WITH of a statement that changes data; NULL: none. */
static const AstWith *
with_of(const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_INSERT: return ast->u.insert->with;
    case AST_STMT_UPDATE: return ast->u.update->with;
    case AST_STMT_DELETE: return ast->u.delete_->with;
    default: return NULL;
    }
}

void
table_refs_collect(TableRefs *refs, const AstStatement *ast)
{
    const AstVisitor visitor = {.arg = refs, .name = visit_name, .select = visit_select};
    if (!hides(refs, with_of(ast))) ast_walk_statement(&visitor, ast);
}

char *
table_refs_replace(TableRefs *refs, Slice text, Slice new_name)
{
    /* The walk goes by meaning; the edit goes by position. */
    for (u32 i = 1; i < refs->count; i++) {
        Span at = refs->span[i];
        u32 k = i;
        for (; k > 0 && refs->span[k - 1].offset > at.offset; k--)
            refs->span[k] = refs->span[k - 1];
        refs->span[k] = at;
    }
    Buf out = {0};
    Err err = OK;
    size_t from = 0;
    for (u32 i = 0; err == OK && i < refs->count; i++) {
        Span span = refs->span[i];
        if (i > 0 && span.offset == refs->span[i - 1].offset) continue;
        err = buf_append(&out, text.p + from, span.offset - from);
        /* SQLite writes the new name in double quotes. */
        if (err == OK) err = sql_name_append(&out, new_name, true);
        from = span_end(span);
    }
    if (err == OK) err = buf_append(&out, text.p + from, text.bytes - from);
    char *copy = err == OK ? arena_strndup(refs->arena, out.p, out.bytes) : NULL;
    buf_free(&out);
    return copy;
}
