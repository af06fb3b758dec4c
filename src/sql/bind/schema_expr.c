/*
 * schema_expr.c -- expressions stored in the schema: generated columns, CHECK, DEFAULT, index
 * expressions, conditions of partial indexes.
 */
#include "sql/bind/bind.h"

#include "sql/parse/parse.h"

typedef struct Saved {
    Slice sql;
    Scope *scope;
    WithScope *with;
    AggTrack *track;
    const char *clause;
    bool sql_is_main;
} Saved;

static void
enter(Binder *b, Saved *saved, Scope *scope, Slice sql, const char *clause)
{
    *saved = (Saved){b->sql, b->scope, b->with, b->track, b->clause, b->sql_is_main};
    b->sql = sql;
    b->sql_is_main = false;
    b->scope = scope;
    b->with = NULL;
    b->track = NULL;
    b->clause = clause;
}

static void
leave(Binder *b, const Saved *saved)
{
    b->sql = saved->sql;
    b->sql_is_main = saved->sql_is_main;
    b->scope = saved->scope;
    b->with = saved->with;
    b->track = saved->track;
    b->clause = saved->clause;
}

const char *
bind__pure_place(const Binder *b)
{
    static const struct {
        const char *clause, *place;
    } places[] = {{"CHECK constraints", "a CHECK constraint"},
                  {"generated columns", "a generated column"},
                  {"index expressions", "an index"},
                  {"partial index WHERE clauses", "an index"}};
    for (u32 i = 0; b->clause != NULL && i < COUNT_OF(places); i++) {
        if (strcmp(b->clause, places[i].clause) == 0) return places[i].place;
    }
    return NULL;
}

static bool
bind_text(Binder *b, Source *source, Slice sql, const char *clause, bool quiet, PlanExpr **expr_out,
          ExprList *list_out)
{
    AstExpr *ast = NULL;
    Err err = sql_parse_expr(b->scratch, sql, &(ParseOptions){.stored = true}, &ast, b->msg);
    if (err != OK) {
        if (b->err == OK) b->err = err;
        return false;
    }
    u8 *kept = NULL;
    if (quiet && source != NULL) {
        kept = BIND_ARRAY(b, u8, source->column_count + 1);
        if (kept == NULL) return false;
        memcpy(kept, source->used, source->column_count + 1);
    }
    Scope scope = {.flags = SCOPE_SCHEMA, .clause = clause};
    Source *list[1] = {source};
    scope.source = list;
    scope.source_count = source == NULL ? 0 : 1;
    Saved saved;
    enter(b, &saved, &scope, sql, clause);
    bool good;
    if (list_out != NULL) {
        good = bind__conjuncts(b, ast, list_out, 0);
    } else {
        *expr_out = bind__expr(b, ast);
        good = *expr_out != NULL;
    }
    leave(b, &saved);
    if (kept != NULL) memcpy(source->used, kept, source->column_count + 1);
    return good;
}

PlanExpr *
bind__schema_expr(Binder *b, Source *source, Slice sql, const char *clause, bool quiet)
{
    PlanExpr *e = NULL;
    return bind_text(b, source, sql, clause, quiet, &e, NULL) ? e : NULL;
}

bool
bind__schema_conjuncts(Binder *b, Source *source, Slice sql, const char *clause, ExprList *out)
{
    return bind_text(b, source, sql, clause, true, NULL, out);
}
