/*
 * words.c -- the EXPLAIN QUERY PLAN line of a scan, in SQLite's words.
 */
#include "sql/plan/build.h"

static bool
put(Binder *b, Buf *buf, const char *text)
{
    if (buf_append_text(buf, text) == OK) return true;
    bind__fail(b, ERR_NOMEM, "out of memory");
    return false;
}

static const char *
key_name(const TableDef *table, const IndexDef *index, u32 at)
{
    if (index == NULL) return "rowid";
    u16 column = index->column[at].column;
    if (column == COLUMN_EXPR) return "<expr>";
    return column == COLUMN_ROWID ? "rowid" : table->column[column].name;
}

/* (a=? AND b>?) */
static bool
put_bounds(Binder *b, Buf *buf, const PlanScan *scan, const IndexDef *index)
{
    const TableDef *table = scan->table;
    const char *between = " (";
    for (u32 i = 0; i < scan->eq_count; i++) {
        if (!put(b, buf, between) || !put(b, buf, key_name(table, index, i)) || !put(b, buf, "=?"))
            return false;
        between = " AND ";
    }
    const char *ops[2] = {">?", "<?"};
    const PlanExpr *bounds[2] = {scan->low, scan->high};
    for (u32 i = 0; i < 2; i++) {
        if (bounds[i] == NULL) continue;
        if (!put(b, buf, between) || !put(b, buf, key_name(table, index, scan->eq_count)) ||
            !put(b, buf, ops[i]))
            return false;
        between = " AND ";
    }
    return between[1] == '(' || put(b, buf, ")");
}

static bool
put_scan(Binder *b, Buf *buf, const PlanScan *scan, const char *name, bool left, bool for_write)
{
    bool search = scan->eq_count > 0 || scan->low != NULL || scan->high != NULL;
    if (!put(b, buf, search ? "SEARCH " : "SCAN ") || !put(b, buf, name)) return false;
    const IndexDef *index = scan->index;
    if (index != NULL) {
        if (!put(b, buf,
                 scan->covering && !for_write ? " USING COVERING INDEX " : " USING INDEX ") ||
            !put(b, buf, index->name))
            return false;
    } else if (search && scan->table->without_rowid) {
        index = scan->table->primary_key;
        if (!put(b, buf, " USING PRIMARY KEY")) return false;
    } else if (search) {
        if (!put(b, buf, " USING INTEGER PRIMARY KEY")) return false;
    }
    if (!put_bounds(b, buf, scan, index)) return false;
    return !left || put(b, buf, " LEFT-JOIN");
}

static const char *
keep(Binder *b, Buf *buf)
{
    const char *text = b->err == OK ? bind__keep_text(b, buf_slice(buf)) : NULL;
    buf_free(buf);
    return text;
}

bool
plan__name_scan(Binder *b, PlanNode *node, const char *name, u8 join, bool for_write)
{
    if (!b->explain) return true;
    Buf buf = {0};
    (void)put_scan(b, &buf, &node->u.scan, name, (join & AST_JOIN_LEFT) != 0, for_write);
    node->eqp = keep(b, &buf);
    return node->eqp != NULL;
}

bool
plan__name_access(Binder *b, PlanNode *node, const char *name, const Access *access, u8 join)
{
    if (!b->explain) return true;
    static const PlanExpr bound = {.op = PX_CONST};
    PlanNode shown = {.kind = PLAN_SCAN};
    shown.u.scan = node->u.scan;
    shown.u.scan.index = access->index;
    shown.u.scan.covering = access->covering;
    shown.u.scan.eq_count = access->eq_count;
    shown.u.scan.low = access->low >= 0 ? (PlanExpr *)(uintptr_t)&bound : NULL;
    shown.u.scan.high = access->high >= 0 ? (PlanExpr *)(uintptr_t)&bound : NULL;
    if (!plan__name_scan(b, &shown, name, join, false)) return false;
    node->eqp = shown.eqp;
    return true;
}

/* A hash join stands where SQLite would make an automatic index. */
bool
plan__name_hash(Binder *b, PlanNode *right, const Source *source, const ExprList *keys, u8 join)
{
    if (!b->explain) return true;
    if (right->kind != PLAN_SCAN || keys->count == 0 || right->u.scan.eq_count > 0) return true;
    Buf buf = {0};
    (void)(put(b, &buf, "SEARCH ") && put(b, &buf, source->name) &&
           put(b, &buf, " USING AUTOMATIC COVERING INDEX ("));
    for (u32 i = 0; i < keys->count; i++) {
        const PlanExpr *key = plan__see_through(keys->items[i]);
        const char *name = "<expr>";
        if (key->op == PX_BOUND_COLUMN)
            name = key->u.bound.column == COLUMN_ROWID
                       ? "rowid"
                       : bind__column_name(key->u.bound.of, key->u.bound.column);
        (void)((i == 0 || put(b, &buf, " AND ")) && put(b, &buf, name) && put(b, &buf, "=?"));
    }
    (void)put(b, &buf, ")");
    if ((join & AST_JOIN_LEFT) != 0) (void)put(b, &buf, " LEFT-JOIN");
    right->eqp = keep(b, &buf);
    return right->eqp != NULL;
}

/* A subquery of FROM: the line above its body; "SCAN name" follows the body. */
bool
plan__name_source(Binder *b, PlanNode *node, const Source *source)
{
    if (!b->explain) return true;
    if (node->eqp != NULL) return true;
    char name[32];
    const char *shown = source->name;
    if (shown[0] == 0) {
        char *text = arena_printf(b->arena, "(subquery-%u)", source->number + 1);
        if (text == NULL) return bind__fail(b, ERR_NOMEM, "out of memory") != NULL;
        shown = text;
    }
    (void)name;
    const char *word = node->kind == PLAN_CTE_SCAN ? "SCAN" : "CO-ROUTINE";
    node->eqp = arena_printf(b->arena, "%s %s", word, shown);
    if (node->eqp == NULL) bind__fail(b, ERR_NOMEM, "out of memory");
    return node->eqp != NULL;
}
