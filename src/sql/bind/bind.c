/*
 * bind.c -- memory, the sticky error, the authorizer and the list of tables used.
 */
#include "sql/bind/bind.h"

#include <stdarg.h>
#include <stdio.h>

void *
bind__no_memory(Binder *b)
{
    if (b->err == OK) b->err = err_set(b->msg, ERR_NOMEM, "out of memory");
    return NULL;
}

char *
bind__keep_text(Binder *b, Slice text)
{
    char *p = arena_strndup(b->arena, text.p, text.bytes);
    if (p == NULL && b->err == OK) b->err = err_set(b->msg, ERR_NOMEM, "out of memory");
    return p;
}

static void
fail(Binder *b, Err err, i32 offset, const char *format, va_list list)
{
    if (b->err != OK) return;
    if (b->ctx->notes != NULL) b->ctx->notes->failed_in = b->inner_name;
    b->err = err_vset_at(b->msg, err, offset, format, list);
}

void *
bind__fail(Binder *b, Err err, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail(b, err, -1, format, list);
    va_end(list);
    return NULL;
}

void *
bind__fail_at(Binder *b, Span span, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fail(b, ERR_SQL, b->sql_is_main ? (i32)span.offset : -1, format, list);
    va_end(list);
    return NULL;
}

bool
bind__push(Binder *b, ExprList *list, PlanExpr *expr)
{
    if (expr == NULL) return false;
    if (list->count == list->capacity) {
        u32 capacity = list->capacity == 0 ? 4 : list->capacity * 2;
        PlanExpr **items = BIND_ARRAY(b, PlanExpr *, capacity);
        if (items == NULL) return false;
        if (list->count > 0) memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = expr;
    return true;
}

Slice
bind__text(const char *text)
{
    return SLICE(text, text == NULL ? 0 : strlen(text));
}

bool
bind__authorize(Binder *b, int action, const char *first, const char *second, const char *database,
                bool *ignore_out)
{
    if (ignore_out != NULL) *ignore_out = false;
    if (b->ctx->authorize == NULL) return b->err == OK;
    int answer = b->ctx->authorize(b->ctx->authorize_arg, action, first, second, database,
                                   b->inner_name);
    if (answer == PLAN_AUTH_OK) return true;
    if (answer == PLAN_AUTH_IGNORE && ignore_out != NULL) {
        *ignore_out = true;
        return true;
    }
    if (answer != PLAN_AUTH_DENY && answer != PLAN_AUTH_IGNORE) {
        bind__fail(b, ERR_SQL, "authorizer malfunction");
    } else if (action == PLAN_AUTH_READ) {
        if (database != NULL && strcmp(database, "main") != 0) {
            bind__fail(b, ERR_AUTH, "access to %s.%s.%s is prohibited", database, first, second);
        } else {
            bind__fail(b, ERR_AUTH, "access to %s.%s is prohibited", first, second);
        }
    } else if (action == PLAN_AUTH_FUNCTION) {
        bind__fail(b, ERR_SQL, "not authorized to use function: %s", second);
    } else {
        bind__fail(b, ERR_AUTH, "not authorized");
    }
    return false;
}

bool
bind__use_table(Binder *b, const TableDef *table, bool writes)
{
    Plan *plan = b->plan;
    for (u32 i = 0; i < plan->table_count; i++) {
        if (plan->table[i].table == table) {
            plan->table[i].writes |= writes;
            return true;
        }
    }
    if (plan->table_count == b->use_capacity) {
        u32 capacity = b->use_capacity == 0 ? 4 : b->use_capacity * 2;
        PlanTableUse *uses = KEEP_ARRAY(b, PlanTableUse, capacity);
        if (uses == NULL) return false;
        if (plan->table_count > 0) memcpy(uses, plan->table, plan->table_count * sizeof(*uses));
        plan->table = uses;
        b->use_capacity = capacity;
    }
    plan->table[plan->table_count++] = (PlanTableUse){table, writes};
    return true;
}
