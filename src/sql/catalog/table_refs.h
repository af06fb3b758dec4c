/*
 * table_refs.h -- where a statement's text names a table: for ALTER TABLE RENAME.
 *
 * Private to catalog/.
 */
#pragma once

#include "sql/parse/ast.h"

typedef struct TableRefs {
    Slice name; /* Looked for, without regard to case. */
    /* In the temporary database: only behind this schema's name, or alone if `bare`; p NULL: all.
     */
    Slice schema;
    bool bare;
    Slice seen_schema; /* While walking: what stands before the next name. */
    Arena *arena;
    Span *span; /* Tokens found, in the order of the walk. */
    u32 count, capacity;
    bool out_of_memory;
} TableRefs;

/* Collect every token of `ast` that names the table: FROM terms, targets, qualifiers of columns,
   REFERENCES, the table of an index or trigger.  A common table expression of that name hides the
   table in its statement. */
void table_refs_collect(TableRefs *refs, const AstStatement *ast);
/* `text` with every token found replaced by `new_name` (quoted if it must be).  NULL: no memory. */
char *table_refs_replace(TableRefs *refs, Slice text, Slice new_name);
