/*
 * layout.h -- how SQLite's records hold a table's columns; private to transfer/.
 */
#pragma once

#include "sql/schema.h"

/* Column i of a record is column[i] of the table.  Rowid tables: all columns that are stored, in
   order.  WITHOUT ROWID: those of the primary key, each once a collation, then the rest. */
typedef struct Layout {
    u16 *column;
    bool *compact; /* Columns of REAL affinity. */
    u32 count;
} Layout;

MUST_CHECK Err layout_make(const TableDef *table, Arena *arena, Layout *layout_out);
