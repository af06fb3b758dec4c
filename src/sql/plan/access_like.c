/*
 * access_like.c -- LIKE and GLOB with a constant beginning as a range of an index.
 *
 * The range only narrows: the call itself is always tested too.
 */
#include "sql/plan/build.h"

/* Bytes of the pattern before its first wildcard. */
static u32
literal_prefix(Slice pattern, bool glob)
{
    u32 bytes = 0;
    for (; bytes < pattern.bytes; bytes++) {
        u8 c = pattern.p[bytes];
        if (c == 0) break;
        if (glob ? c == '*' || c == '?' || c == '[' : c == '%' || c == '_') break;
    }
    return bytes;
}

/* A text that begins like a number could be one in a column without text affinity. */
static bool
may_be_number(Slice prefix)
{
    u8 c = prefix.p[0];
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c <= ' ';
}

static PlanExpr *
bound_text(Binder *b, Slice prefix, bool next, bool fold)
{
    char *copy = bind__keep_text(b, prefix);
    if (copy == NULL) return NULL;
    if (next) {
        u8 last = (u8)copy[prefix.bytes - 1];
        if (fold && last >= 'A' && last <= 'Z') last = (u8)(last + 32);
        copy[prefix.bytes - 1] = (char)(last + 1);
    }
    Cell cell = cell_text(copy, prefix.bytes);
    cell.flags = CELL_TERMINATED;
    return bind__const(b, cell, (Span){0, 0});
}

bool
plan__probe_like(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    const FuncDef *def = e->u.func.def;
    if ((def->flags & FUNC_LIKE) == 0 || e->arg_count != 2) return true;
    const PlanExpr *pattern = e->arg[0], *key = plan__see_through(e->arg[1]);
    if (pattern->op != PX_CONST || pattern->u.constant.type != CELL_TEXT) return true;
    if (key->op != PX_BOUND_COLUMN || key->u.bound.of != unit->source) return true;
    if (key->u.bound.column == COLUMN_ROWID) return true;
    bool glob = strcmp(def->name, "glob") == 0;
    Slice text = SLICE(pattern->u.constant.u.p, pattern->u.constant.bytes);
    u32 bytes = literal_prefix(text, glob);
    if (bytes == 0 || text.p[bytes - 1] == 0xFF) return true;
    Slice prefix = SLICE(text.p, bytes);
    const ColumnDef *column = &unit->source->table->column[key->u.bound.column];
    if (column->affinity != AFFINITY_TEXT && may_be_number(prefix)) return true;
    bool fold = !glob && !b->ctx->case_sensitive_like;
    Probe probe = {.kind = PROBE_LOW, .inclusive = true, .term = number};
    probe.column = (u16)key->u.bound.column;
    probe.collation = fold ? &collation_nocase : &collation_binary;
    probe.key = key;
    probe.text_range = true;
    (void)join;
    probe.value = bound_text(b, prefix, false, fold);
    if (probe.value == NULL || !plan__probe_push(b, unit, &probe)) return false;
    probe.kind = PROBE_HIGH;
    probe.inclusive = false;
    probe.value = bound_text(b, prefix, true, fold);
    return probe.value != NULL && plan__probe_push(b, unit, &probe);
}
