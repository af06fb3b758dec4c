/*
 * why.c -- EXPLAIN ANALYZE: in plain words, why a scan reads what it reads.
 */
#include "sql/plan/build.h"

static const char *
rows_text(Binder *b, f64 rows)
{
    u64 count = rows >= 9e18 ? (u64)I64_MAX : (u64)(MAX_OF(rows, 0.0) + 0.5);
    char *text = arena_printf(b->arena, "%llu row%s", (unsigned long long)count,
                              count == 1 ? "" : "s");
    if (text == NULL) bind__fail(b, ERR_NOMEM, "out of memory");
    return text;
}

/* How the scan begins: "a look-up by 2 columns of index i", "a range of the rowid". */
static const char *
look_up(Binder *b, const Access *access, const TableDef *table)
{
    const char *what = access->index != NULL  ? access->index->name
                       : table->without_rowid ? "the primary key"
                                              : "the rowid";
    const char *kind = access->index != NULL ? "index " : "";
    bool range = access->low >= 0 || access->high >= 0;
    char *text;
    if (access->eq_count > 1) {
        text = arena_printf(b->arena, "%u columns of %s%s%s", access->eq_count, kind, what,
                            range ? " and a range of the next" : "");
    } else if (access->eq_count == 1) {
        text = arena_printf(b->arena, "%s%s%s", kind, what,
                            range ? " by its first column and a range of the next" : "");
    } else {
        text = arena_printf(b->arena, "a range of %s%s", kind, what);
    }
    if (text == NULL) bind__fail(b, ERR_NOMEM, "out of memory");
    return text;
}

static const char *
why_whole(Binder *b, const Unit *u, const Access *access, const char *all)
{
    const TableDef *table = u->source->table;
    if (access->ordered && access->index != NULL)
        return arena_printf(b->arena,
                            "index %s gives the rows in the order that is wanted, so that "
                            "nothing is sorted",
                            access->index->name);
    if (access->ordered) return "the rows lie in the order that is wanted";
    if (access->index != NULL)
        return arena_printf(b->arena,
                            "index %s has all columns that are needed and is smaller than "
                            "the table (%s)",
                            access->index->name, all);
    if (u->probe_count == 0)
        return arena_printf(b->arena,
                            "WHERE and ON compare nothing that an index%s begins with: all "
                            "of about %s are read",
                            table->without_rowid ? " or the primary key" : " or the rowid", all);
    return arena_printf(b->arena,
                        "reading all of about %s costs less than the look-ups that WHERE "
                        "and ON would allow",
                        all);
}

bool
plan__why_scan(Binder *b, const Unit *u, const Access *access, PlanNode *node)
{
    if (!b->explain || u->source->table == NULL) return true;
    const TableDef *table = u->source->table;
    const char *all = rows_text(b, u->rows), *some = rows_text(b, access->rows);
    if (all == NULL || some == NULL) return false;
    bool search = access->eq_count > 0 || access->low >= 0 || access->high >= 0;
    if (!search) {
        node->why = why_whole(b, u, access, all);
    } else {
        const char *way = look_up(b, access, table);
        if (way == NULL) return false;
        if (access->one_row) {
            node->why = arena_printf(b->arena,
                                     "looked up by %s: a key has at most one row, the "
                                     "table about %s",
                                     way, all);
        } else {
            node->why = arena_printf(b->arena, "looked up by %s: about %s instead of about %s%s",
                                     way, some, all,
                                     access->covering && access->index != NULL
                                         ? "; the index has all columns that are needed"
                                         : "");
        }
    }
    return node->why != NULL || bind__fail(b, ERR_NOMEM, "out of memory") != NULL;
}
