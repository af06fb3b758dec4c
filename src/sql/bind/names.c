/*
 * names.c -- what a name means: columns, rowids, aliases, OLD and NEW, strings in double quotes.
 *
 * The search goes scope by scope from the inside out; within one scope first the FROM sources,
 * then the rows known by name (NEW, OLD, excluded), then the rowid, then result aliases.
 */
#include "sql/bind/bind.h"
#include "value/host_table.h"

#include "value/collate.h"

bool
bind__is_rowid_name(Slice name)
{
    return slice_equal_nocase(name, SLICE_LITERAL("rowid")) ||
           slice_equal_nocase(name, SLICE_LITERAL("_rowid_")) ||
           slice_equal_nocase(name, SLICE_LITERAL("oid"));
}

const char *
bind__column_name(const Source *source, u32 column)
{
    if (source->table != NULL && source->column == NULL) return source->table->column[column].name;
    return source->column[column].name;
}

bool
bind__column_hidden(const Source *source, u32 column)
{
    if (source->table != NULL && source->column == NULL)
        return source->table->column[column].hidden;
    return source->column[column].hidden_in_star;
}

/* slice_equal_nocase() of a terminated name (NULL: of no byte), without asking for its length. */
static ALWAYS_INLINE bool
is_name(const char *column, Slice name)
{
    const u8 *p = (const u8 *)column;
    if (UNLIKELY(p == NULL)) return name.bytes == 0;
    for (size_t i = 0; i < name.bytes; i++) {
        u32 differs = p[i] ^ name.p[i], letter = (p[i] | 0x20u) - 'a';
        if (differs != 0 && (differs != 0x20 || letter >= 26)) return false;
        if (p[i] == 0) return false; /* A name has no zero byte. */
    }
    return p[name.bytes] == 0;
}

/* Wide sources get a hash of their names at the first search; narrow ones are walked. */
#define HASH_FROM_COLUMNS 12u

static bool
slots_build(Binder *b, Source *source)
{
    u32 slots = 32;
    while (slots < source->column_count * 2)
        slots *= 2;
    source->name_slots = BIND_ARRAY(b, u32, slots);
    if (source->name_slots == NULL) return false;
    source->name_mask = slots - 1;
    for (u32 i = 0; i < source->column_count; i++) {
        Slice name = bind__text(bind__column_name(source, i));
        u32 at = ast_name_hash(name) & source->name_mask;
        while (source->name_slots[at] != 0)
            at = (at + 1) & source->name_mask;
        source->name_slots[at] = i + 1;
    }
    return true;
}

/* First column of that name; -1: none. */
static i32
column_search(Binder *b, Source *source, Slice name)
{
    if (source->column_count < HASH_FROM_COLUMNS) {
        for (u32 i = 0; i < source->column_count; i++) {
            if (is_name(bind__column_name(source, i), name)) return (i32)i;
        }
        return -1;
    }
    if (source->name_slots == NULL && !slots_build(b, source)) return -1;
    for (u32 at = ast_name_hash(name) & source->name_mask; source->name_slots[at] != 0;
         at = (at + 1) & source->name_mask) {
        u32 i = source->name_slots[at] - 1;
        if (slice_equal_nocase(bind__text(bind__column_name(source, i)), name)) return (i32)i;
    }
    return -1;
}

i32
bind__find_column(Binder *b, Source *source, Slice name, bool rowid_names)
{
    i32 column = column_search(b, source, name);
    if (column >= 0 || !rowid_names || source->no_rowid) return column;
    return bind__is_rowid_name(name) ? (i32)COLUMN_ROWID : -1;
}

void
bind__note(Binder *b, const Source *source, const AstName *name, i32 column)
{
    PlanNotes *notes = b->ctx->notes;
    if (notes == NULL || column < 0 || (u32)column == COLUMN_ROWID) return;
    if (source->table == NULL || source->column != NULL) return;
    notes->name(notes->arg, b->sql, name, source->table, (u32)column);
}

static const char *
source_real_name(const Source *source)
{
    return source->table != NULL ? source->table->name : source->name;
}

/* Tell the authorizer of a column read; true with *ignore_out: it reads as NULL. */
static bool
authorize_read(Binder *b, const Source *source, u32 column, bool *ignore_out)
{
    *ignore_out = false;
    if (b->ctx->authorize == NULL || source->table == NULL) return true;
    if (source->kind == SOURCE_ROW && source->base_reg < 0 && source->core == NULL) return true;
    const char *name = "ROWID";
    if (column != COLUMN_ROWID) {
        name = bind__column_name(source, column);
    } else if (source->table->rowid_column != COLUMN_ROWID) {
        name = source->table->column[source->table->rowid_column].name;
    }
    return bind__authorize(b, PLAN_AUTH_READ, source_real_name(source), name, source->table->schema,
                           ignore_out);
}

/* In the row of NULLs of an outer join a virtual column is NULL, whatever its expression. */
static PlanExpr *
unless_null_row(Binder *b, Source *source, u32 column)
{
    PlanExpr *value = source->generated[column];
    if (value == NULL) return NULL;
    const TableDef *table = source->table;
    u32 key = table->without_rowid ? table->primary_key->column[0].column : COLUMN_ROWID;
    PlanExpr *there = bind__new(b, PX_NOT_NULL, 1, (Span){0, 0});
    PlanExpr *e = bind__new(b, PX_CASE, 2, (Span){0, 0});
    if (there == NULL || e == NULL) return NULL;
    there->arg[0] = bind__column(b, source, key, (Span){0, 0});
    if (there->arg[0] == NULL) return NULL;
    bind__finish(there);
    e->arg[0] = there;
    e->arg[1] = value;
    bind__finish(e);
    return e;
}

static bool
bind_virtual(Binder *b, Source *source, u32 column)
{
    if (source->generated == NULL) {
        source->generated = BIND_ARRAY(b, PlanExpr *, source->column_count);
        if (source->generated == NULL) return false;
    }
    if (source->generated[column] != NULL) return true;
    if (source->generating == NULL) {
        source->generating = BIND_ARRAY(b, u8, source->column_count);
        if (source->generating == NULL) return false;
    }
    if (source->generating[column] != 0) {
        bind__fail(b, ERR_SQL, "generated column loop on \"%s\"",
                   source->table->column[column].name);
        return false;
    }
    source->generating[column] = 1;
    source->generated[column] = bind__schema_expr(
        b, source, bind__text(source->table->column[column].generated_sql), "generated columns",
        false);
    source->generating[column] = 0;
    if (source->nullable) source->generated[column] = unless_null_row(b, source, column);
    return source->generated[column] != NULL;
}

/* What a column of a table brings to comparisons. */
static void
stamp_column(Binder *b, PlanExpr *e, const Source *source, const TableDef *table, u32 column)
{
    const ColumnDef *def = &table->column[column];
    e->affinity = def->affinity;
    /* Expressions over columns that are computed at each read carry their class. */
    e->collation = bind__collation_or_binary(def->collation);
    if (def->host_collation != NULL) e->collation = bind__host_collation(b, def->host_collation);
    if (source->bare == SOURCE_BARE_NOT) return;
    bool is_rowid = column == table->rowid_column;
    e->affinity = is_rowid && source->bare == SOURCE_BARE_AFFINITY ? AFFINITY_INTEGER
                                                                   : AFFINITY_NONE;
    if (source->bare == SOURCE_BARE_ALL) e->collation = NULL;
}

PlanExpr *
bind__column(Binder *b, Source *source, u32 column, Span span)
{
    PlanExpr *e = bind__new(b, PX_BOUND_COLUMN, 0, span);
    if (e == NULL) return NULL;
    /* The INTEGER PRIMARY KEY is the rowid: one name for both, so that equal things look equal. */
    const TableDef *table = source->column == NULL ? source->table : NULL;
    u32 named = column;
    if (column == COLUMN_ROWID && table != NULL && table->rowid_column != COLUMN_ROWID)
        column = table->rowid_column;
    e->u.bound.of = source;
    e->u.bound.column = column;
    e->flags |= PX_FLAG_READS_ROW;
    if (named == COLUMN_ROWID) e->flags |= PX_FLAG_ROWID_NAME;
    if (column == COLUMN_ROWID) {
        e->affinity = source->bare == SOURCE_BARE_ALL ? AFFINITY_NONE : AFFINITY_INTEGER;
        source->used[source->column_count] = 1;
        return e;
    }
    source->used[column] = 1;
    if (table != NULL && source->kind == SOURCE_TABLE && table->column[column].generated == 1 &&
        !bind_virtual(b, source, column))
        return NULL;
    if (table != NULL) {
        stamp_column(b, e, source, table, column);
    } else {
        e->affinity = source->column[column].affinity;
        e->collation = source->column[column].collation;
        /* A column of a query speaks like one of a table, whatever it stands for. */
        if (e->collation == NULL) e->collation = &collation_binary;
    }
    return e;
}

typedef struct Match {
    Source *source;
    u32 column;
    u32 count;       /* Columns that match. */
    u32 tables;      /* Sources that may be meant, for a rowid name. */
    Source *last;    /* The last of those. */
    ExprList merged; /* FULL JOIN ... USING: all of them. */
} Match;

static bool
source_is_named(const Source *source, const AstColumnRef *ref, bool any_schema)
{
    const AstQualifier *q = ref->qualifier;
    if (q == NULL) return true;
    if (!slice_equal_nocase(bind__text(source->name), q->table.text)) return false;
    if (!ast_name_present(&q->schema) || any_schema) return true;
    return source->schema != NULL && slice_equal_nocase(bind__text(source->schema), q->schema.text);
}

/* Is the column merged with one further left?  *join_out: by which kind of join. */
static bool
using_has(const Source *source, Slice name, u8 *join_out)
{
    for (u32 i = 0; i < source->using_names.count; i++) {
        if (!slice_equal_nocase(source->using_names.items[i].text, name)) continue;
        *join_out = source->using_names.items[i].keyword;
        return true;
    }
    return false;
}

static bool
match_sources(Binder *b, Scope *scope, const AstColumnRef *ref, Span span, Match *match)
{
    Slice name = ref->name.text;
    for (u32 i = 0; i < scope->source_count; i++) {
        Source *source = scope->source[i];
        if (!source_is_named(source, ref, (scope->flags & SCOPE_SCHEMA) != 0)) continue;
        if (!source->no_rowid) {
            match->tables++;
            match->last = source;
        }
        i32 column = bind__find_column(b, source, name, false);
        if (column < 0) continue;
        u8 join;
        if (match->count > 0 && ref->qualifier == NULL && using_has(source, name, &join)) {
            if ((join & AST_JOIN_RIGHT) == 0) continue;
            if ((join & AST_JOIN_LEFT) == 0) {
                match->source = source;
                match->column = (u32)column;
                match->merged.count = 0;
                continue;
            }
            if (match->merged.count == 0 &&
                !bind__push(b, &match->merged, bind__column(b, match->source, match->column, span)))
                return false;
            if (!bind__push(b, &match->merged, bind__column(b, source, (u32)column, span)))
                return false;
            continue;
        }
        match->count++;
        match->source = source;
        match->column = (u32)column;
    }
    return b->err == OK;
}

static void
match_rows(Binder *b, Scope *scope, const AstColumnRef *ref, Match *match)
{
    if (match->count > 0 || ref->qualifier == NULL) return;
    for (u32 i = 0; i < scope->row_count; i++) {
        Source *source = scope->row[i];
        if (!source_is_named(source, ref, false)) continue;
        match->tables++;
        match->last = source;
        i32 column = bind__find_column(b, source, ref->name.text, true);
        if (column < 0) continue;
        match->count++;
        match->source = source;
        match->column = (u32)column;
        return;
    }
}

void
bind__track_level(Binder *b, u32 level)
{
    for (AggTrack *track = b->track; track != NULL; track = track->outer) {
        if ((i64)level > track->deepest) track->deepest = (i64)level;
    }
}

bool
bind__mark_outer(Binder *b, const Scope *scope, PlanExpr *e)
{
    if (e == NULL) return false;
    for (Scope *s = b->scope; s != scope && s != NULL; s = s->outer) {
        if (s->core == NULL || s->core->query == NULL) continue;
        Query *query = s->core->query;
        if (scope->level < query->outer_level) query->outer_level = scope->level;
        if (!bind__push(b, &query->outer_refs, e)) return false;
    }
    return true;
}

static PlanExpr *
match_expr(Binder *b, Scope *scope, Match *match, const AstExpr *ast)
{
    if (match->count > 1) {
        return bind__fail_at(b, ast->span, "ambiguous column name: %.*s", (int)ast->span.bytes,
                             b->sql.p + ast->span.offset);
    }
    bind__note(b, match->source, &ast->u.column.name, (i32)match->column);
    bind__track_level(b, scope->level);
    if (match->merged.count > 0) {
        for (u32 i = 0; i < match->merged.count; i++) {
            if (!bind__mark_outer(b, scope, match->merged.items[i])) return NULL;
        }
        PlanExpr *e = bind__new(b, PX_COALESCE, match->merged.count, ast->span);
        if (e == NULL) return NULL;
        memcpy(e->arg, match->merged.items, match->merged.count * sizeof(PlanExpr *));
        bind__finish(e);
        e->affinity = e->arg[0]->affinity;
        e->collation = e->arg[0]->collation;
        return e;
    }
    bool ignore;
    if (!authorize_read(b, match->source, match->column, &ignore)) return NULL;
    if (ignore) return bind__const(b, cell_null(), ast->span);
    PlanExpr *e = bind__column(b, match->source, match->column, ast->span);
    return bind__mark_outer(b, scope, e) ? e : NULL;
}

static PlanExpr *
alias_expr(Binder *b, Scope *scope, const AstExpr *ast, bool *found_out)
{
    *found_out = false;
    Slice name = ast->u.column.name.text;
    const AstResults *aliases = scope->aliases;
    for (u32 i = 0; aliases != NULL && i < aliases->count; i++) {
        const AstResult *result = &aliases->items[i];
        if (!ast_name_present(&result->alias)) continue;
        if (!slice_equal_nocase(result->alias.text, name)) continue;
        *found_out = true;
        /* Stars before it moved the results; find it by its expression's place. */
        PlanExpr *e = NULL;
        for (u32 k = i; k < scope->core->results.count && e == NULL; k++) {
            if (scope->core->column != NULL && scope->core->column[k].name != NULL &&
                slice_equal_nocase(bind__text(scope->core->column[k].name), name))
                e = scope->core->results.items[k];
        }
        if (e == NULL && i < scope->core->results.count) e = scope->core->results.items[i];
        if (e == NULL) return NULL;
        if ((e->flags & PX_FLAG_HAS_AGG) != 0 &&
            (scope->flags & (SCOPE_AGG | SCOPE_WHERE)) != SCOPE_AGG) {
            return bind__fail_at(b, ast->span, "misuse of aliased aggregate %.*s", (int)name.bytes,
                                 name.p);
        }
        if ((e->flags & PX_FLAG_HAS_WIN) != 0 &&
            ((scope->flags & SCOPE_WIN) == 0 || scope != b->scope)) {
            return bind__fail(b, ERR_SQL, "misuse of aliased window function %.*s", (int)name.bytes,
                              name.p);
        }
        if ((scope->flags & SCOPE_ORDER) != 0) e = bind__window_copy(b, scope->core, e);
        if (e == NULL) return NULL;
        bind__track_level(b, scope->level);
        return bind__mark_outer(b, scope, e) ? e : NULL;
    }
    return NULL;
}

static PlanExpr *
name_failed(Binder *b, const AstExpr *ast)
{
    const AstColumnRef *ref = &ast->u.column;
    if (ref->qualifier == NULL && ref->name.quote == AST_QUOTE_NONE) {
        if (slice_equal_nocase(ref->name.text, SLICE_LITERAL("true")))
            return bind__const(b, cell_int(1), ast->span);
        if (slice_equal_nocase(ref->name.text, SLICE_LITERAL("false")))
            return bind__const(b, cell_int(0), ast->span);
    }
    bool doubled = ref->qualifier == NULL && ref->name.quote == AST_QUOTE_DOUBLE;
    if (doubled && !b->ctx->strings_double_off) {
        PlanNotes *notes = b->ctx->notes;
        if (notes != NULL) notes->name(notes->arg, b->sql, &ref->name, NULL, 0);
        return bind__text_const(b, ref->name.text, ast->span);
    }
    Slice schema = SLICE_NONE, table = SLICE_NONE, name = ref->name.text;
    if (ref->qualifier != NULL) {
        schema = ref->qualifier->schema.text;
        table = ref->qualifier->table.text;
    }
    if (doubled) {
        return bind__fail_at(b, ast->span,
                             "no such column: \"%.*s\" - should this be a string literal in "
                             "single-quotes?",
                             (int)name.bytes, (const char *)name.p);
    }
    return bind__fail_at(b, ast->span, "no such column: %.*s%s%.*s%s%.*s", (int)schema.bytes,
                         schema.p == NULL ? "" : (const char *)schema.p,
                         schema.p == NULL ? "" : ".", (int)table.bytes,
                         table.p == NULL ? "" : (const char *)table.p, table.p == NULL ? "" : ".",
                         (int)name.bytes, (const char *)name.p);
}

PlanExpr *
bind__name(Binder *b, const AstExpr *ast)
{
    const AstColumnRef *ref = &ast->u.column;
    for (Scope *scope = b->scope; scope != NULL; scope = scope->outer) {
        Match match = {0};
        if (!match_sources(b, scope, ref, ast->span, &match)) return NULL;
        match_rows(b, scope, ref, &match);
        if (match.count == 0 && match.tables == 1 && bind__is_rowid_name(ref->name.text) &&
            !match.last->no_rowid) {
            match.count = 1;
            match.source = match.last;
            match.column = COLUMN_ROWID;
        }
        if (match.count > 0) return match_expr(b, scope, &match, ast);
        if ((scope->flags & SCOPE_ALIAS) != 0 && ref->qualifier == NULL) {
            bool found;
            PlanExpr *e = alias_expr(b, scope, ast, &found);
            if (found) return e;
        }
    }
    return name_failed(b, ast);
}

const TableDef *
bind__virtual_table(Binder *b, const TableDef *stored, Slice name)
{
    ErrMsg msg = {.sql_offset = -1};
    if (b->ctx->find_virtual == NULL) {
        if (stored == NULL) return NULL;
        return bind__fail(b, ERR_SQL, "no such module: %s", stored->module);
    }
    const TableDef *table = b->ctx->find_virtual(b->ctx->virtual_arg, stored, name, &msg);
    if (msg.err != OK && b->err == OK) {
        b->err = msg.err;
        err_move(b->msg, &msg);
    }
    err_clear(&msg);
    if (table == NULL || b->err != OK) return NULL;
    const struct HostTable *host = table->host;
    if (host != NULL && b->fixed_schema != NULL && host->direct_only)
        return bind__fail(b, ERR_SQL, "unsafe use of virtual table \"%s\"", table->name);
    return table;
}

const TableDef *
bind__find_table(Binder *b, const AstName *schema, const AstName *name)
{
    const CatalogView *view = b->ctx->catalog;
    Slice schema_text = schema->text;
    bool found = true;
    const TableDef *table = NULL;
    if (schema_text.p == NULL && b->fixed_schema != NULL && !b->fixed_is_temp) {
        table = catalog_view_table(view, bind__text(b->fixed_schema), name->text, &found);
    } else {
        table = catalog_view_table(view, schema_text, name->text, &found);
    }
    if (table != NULL && !table->is_virtual) return table;
    bool names_main = schema_text.p == NULL ||
                      slice_equal_nocase(schema_text, SLICE_LITERAL("main"));
    /* The schema table of temp is there before anything else of it is. */
    bool temp_schema = slice_equal_nocase(schema_text, SLICE_LITERAL("temp")) &&
                       (slice_equal_nocase(name->text, SLICE_LITERAL("sqlite_master")) ||
                        slice_equal_nocase(name->text, SLICE_LITERAL("sqlite_schema")));
    if (table != NULL || names_main) {
        table = bind__virtual_table(b, table, name->text);
    } else if (temp_schema) {
        table = bind__virtual_table(b, NULL, SLICE_LITERAL("sqlite_temp_master"));
    }
    if (table != NULL || b->err != OK) return table;
    if (schema_text.p != NULL) {
        bind__fail(b, ERR_SQL, "no such table: %.*s.%.*s", (int)schema_text.bytes, schema_text.p,
                   (int)name->text.bytes, name->text.p);
    } else if (b->fixed_schema != NULL && !b->fixed_is_temp) {
        bind__fail(b, ERR_SQL, "no such table: %s.%.*s", b->fixed_schema, (int)name->text.bytes,
                   name->text.p);
    } else {
        bind__fail(b, ERR_SQL, "no such table: %.*s", (int)name->text.bytes, name->text.p);
    }
    return NULL;
}
