/* layout.c -- see layout.h. */
#include "transfer/layout.h"

static void
layout_add(Layout *layout, const TableDef *table, u16 column)
{
    layout->column[layout->count] = column;
    layout->compact[layout->count] = table->column[column].affinity == AFFINITY_REAL;
    layout->count++;
}

/* Is key column `at` one that stands before it already? */
static bool
is_repeated(const IndexDef *key, u32 at)
{
    for (u32 i = 0; i < at; i++) {
        bool same = key->column[i].column == key->column[at].column;
        const Collation *a = key->column[i].collation, *b = key->column[at].collation;
        bool alike = a == b ||
                     (a != NULL && b != NULL && text_compare_nocase(a->name, b->name) == 0);
        if (same && alike) return true;
    }
    return false;
}

static bool
is_in_key(const IndexDef *key, u16 column)
{
    for (u32 i = 0; i < key->key_columns; i++) {
        if (key->column[i].column == column) return true;
    }
    return false;
}

Err
layout_make(const TableDef *table, Arena *arena, Layout *layout_out)
{
    const IndexDef *key = table->without_rowid ? table->primary_key : NULL;
    u32 most = table->column_count + (key != NULL ? key->key_columns : 0u) + 1;
    *layout_out = (Layout){.column = ARENA_NEW_ARRAY(arena, u16, most),
                           .compact = ARENA_NEW_ARRAY(arena, bool, most)};
    if (layout_out->column == NULL || layout_out->compact == NULL) return ERR_NOMEM;
    for (u32 i = 0; key != NULL && i < key->key_columns; i++) {
        if (!is_repeated(key, i)) layout_add(layout_out, table, key->column[i].column);
    }
    for (u16 c = 0; c < table->column_count; c++) {
        if (table->column[c].generated == 1) continue;
        if (key == NULL || !is_in_key(key, c)) layout_add(layout_out, table, c);
    }
    return OK;
}
