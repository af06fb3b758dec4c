/*
 * bulk.h -- whole databases in and out of a session's main database, past SQL.
 *
 * For import, export, backup and serialization.  Loading puts rows into the trees of a new schema
 * as they are: no constraint is checked (unique indexes excepted, when they are built), no trigger
 * fires, nothing is counted as a change.  Dumping hands out every row and every index entry of one
 * snapshot, in key order, exactly as stored.
 *
 * Errors have their text in session_error().  Tasks: as for the session.  Every call may park.
 */
#pragma once

#include "session/session.h"
#include "sql/schema.h"
#include "value/key.h"

typedef enum BulkTree { BULK_NO_TREE, BULK_ROWID_TREE, BULK_KEY_TREE } BulkTree;

/* A row of sqlite_schema.  WITHOUT ROWID tables and indexes have a BULK_KEY_TREE. */
typedef struct BulkSchemaRow {
    i64 rowid;
    const char *type, *name, *table, *sql; /* `sql` NULL: an automatic index. */
    BulkTree tree;
} BulkSchemaRow;

/* ---- loading ---- */

typedef struct BulkLoad BulkLoad;

/*
 * Make the schema in the empty main database of a session without an open transaction, and commit
 * it.  Loading commits in portions: after an error the database holds what came before it, and the
 * caller throws it away.  Errors: ERR_MISUSE (not empty, inside a transaction), ERR_CORRUPT (rows
 * that make no schema), those of the store.
 */
MUST_CHECK Err bulk_load_begin(Session *session, const BulkSchemaRow *row, u32 count,
                               BulkLoad **load_out);
/* Ends the load without building anything; what was committed stays.  NULL is allowed. */
void bulk_load_close(BulkLoad *load);
/* The table of that name as the session has it, NULL if there is none. */
const TableDef *bulk_load_find(const BulkLoad *load, const char *name);
/* The rows that follow belong to this table. */
MUST_CHECK Err bulk_load_table(BulkLoad *load, const TableDef *table);
/* `row` has column_count cells; those of virtual columns are not looked at, those of the rowid
   column neither.  *exists_out: the key is there already; nothing was stored. */
MUST_CHECK Err bulk_load_row(BulkLoad *load, const Cell *row, i64 rowid, bool *exists_out);
/* Commit the rows, and fill an index from its table. */
MUST_CHECK Err bulk_load_index(BulkLoad *load, const IndexDef *index);
/* Fill all indexes of a table whose rows may break the unique ones: of rows that claim the same,
   the first stays, the others are deleted and counted. */
MUST_CHECK Err bulk_load_indexes_loose(BulkLoad *load, const TableDef *table, u64 *deleted_out);
/* Numbers of the database: user_version, application_id, ... */
MUST_CHECK Err bulk_load_number(BulkLoad *load, const char *name, i64 number);
/* Commit what is left. */
MUST_CHECK Err bulk_load_finish(BulkLoad *load);

/* ---- dumping ---- */

typedef struct BulkDump BulkDump;

/* Take a snapshot: begins a transaction unless one is open.  `end` gives it back. */
MUST_CHECK Err bulk_dump_begin(Session *session, BulkDump **dump_out);
void bulk_dump_end(BulkDump *dump); /* NULL is allowed. */
const TableDef *bulk_dump_find(const BulkDump *dump, const char *name);
const IndexDef *bulk_dump_find_index(const BulkDump *dump, const char *name);
MUST_CHECK Err bulk_dump_number(BulkDump *dump, const char *name, i64 *number_out); /* 0: unset. */

/* Cells live until the next one.  An error ends the dump and goes through. */
typedef Err (*BulkEach)(void *arg, const Cell *cell, i64 rowid);
/* Every row, as column_count cells; virtual columns are NULL.  Rowids rising, or in the order of
   the primary key. */
MUST_CHECK Err bulk_dump_table(BulkDump *dump, const TableDef *table, BulkEach each, void *arg);
/* How the cells of an entry are ordered.  `column` lives as long as the dump of the
   index. */
typedef struct BulkShape {
    u32 cells;
    const KeyColumn *column; /* [cells] */
} BulkShape;
/*
 * Every entry in the order of its key: the declared columns, then those primary-key columns of a
 * WITHOUT ROWID table that are not among them with the same collation; *shape_out is filled before
 * the first call.
 */
MUST_CHECK Err bulk_dump_index(BulkDump *dump, const IndexDef *index, BulkShape *shape_out,
                               BulkEach each, void *arg);
