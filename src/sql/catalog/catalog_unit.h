/*
 * catalog_unit.h -- a table (or view) with its indexes and triggers: what catalogs are made of.
 *
 * Private to catalog/.  A unit is immutable once built and counted, so that a new catalog version
 * shares all units that its DDL statement did not touch.  It keeps the schema rows that it was
 * built from, because changing it means building it again from rows.
 */
#pragma once

#include "rt/word.h"
#include "sql/catalog/catalog.h"

typedef enum RowType { ROW_TABLE, ROW_INDEX, ROW_VIEW, ROW_TRIGGER } RowType;

/* One row of sqlite_schema. */
typedef struct SchemaRow {
    i64 rowid;
    RowType type;
    const char *name;
    const char *table; /* tbl_name */
    TreeId tree;       /* rootpage; TREE_NONE for views and triggers */
    const char *sql;   /* NULL for automatic indexes */
} SchemaRow;

typedef struct CatalogUnit {
    RtU32 references;
    Arena arena; /* Owns all below, this struct excepted. */
    const char *table_name;
    u32 row_count;
    SchemaRow *row;  /* In order of rowid. */
    TableDef *table; /* NULL: triggers of a table in another database. */
    u32 trigger_count;
    const TriggerDef **trigger; /* Newest first. */
} CatalogUnit;

typedef struct UnitContext {
    const CatalogEnv *env;
    u32 version;
    bool creating; /* Check names and meaning as CREATE does; stored text is taken as it is. */
    const char *after_what; /* ALTER: for messages; else NULL. */
    ErrMsg *msg;
    /* With after_what: of DdlContext, may be NULL. */
    Err (*check_table)(void *arg, const TableDef *table);
    Err (*check_index)(void *arg, const TableDef *table, const IndexDef *index);
    void *check_arg;
} UnitContext;

/* Build a unit from its rows (copied).  Automatic indexes without a row get TREE_NONE. */
MUST_CHECK Err catalog__unit_build(const UnitContext *context, const SchemaRow *row, u32 row_count,
                                   CatalogUnit **unit_out);
void catalog__unit_release(CatalogUnit *unit);

/* table_build.c: fill a TableDef from its syntax tree.  Its strings go to `arena`. */
MUST_CHECK Err catalog__table_build(const UnitContext *context, Arena *arena, Slice sql,
                                    const AstCreateTable *ast, TableDef *table);
/* index_build.c: fill an IndexDef from CREATE INDEX. */
MUST_CHECK Err catalog__index_build(const UnitContext *context, Arena *arena, Slice sql,
                                    const AstCreateIndex *ast, TableDef *table, IndexDef *index);
/* virtual.c: module and arguments of CREATE VIRTUAL TABLE. */
MUST_CHECK Err catalog__virtual_build(Arena *arena, Slice sql, const AstCreateVirtual *ast,
                                      TableDef *table);
/* ddl.c: may a table of that name be made? */
MUST_CHECK Err catalog__table_name_is_free(DdlContext *ddl, const AstName *name);
/* A collation by name: one of the built-in ones, or BINARY and the name of the program's. */
MUST_CHECK Err catalog__collation(Arena *arena, Slice name, const Collation **collation_out,
                                  const char **host_out);
/* UNIQUE and PRIMARY KEY need an order that the store knows. */
MUST_CHECK Err catalog__check_unique(const UnitContext *context, const IndexColumn *column,
                                     u32 count);
/* Put `index` first among the table's indexes. */
MUST_CHECK Err catalog__table_add_index(Arena *arena, TableDef *table, IndexDef *index);
/* Number of the column, -1 if there is none of that name. */
i32 catalog__column_find(const TableDef *table, Slice name);
bool catalog__is_rowid_name(Slice name);
/* A column, or the rowid by one of its names. */
bool catalog__names_column(const TableDef *table, Slice name);
/* Trimmed copy of a span of the text. */
char *catalog__span_copy(Arena *arena, Slice sql, Span span);

/* schema_rows.c: the rows in the store. */
#define SCHEMA_TREE_NUMBER    "schema_tree"
#define SCHEMA_VERSION_NUMBER "schema_version"
MUST_CHECK Err catalog__rows_read(StoreTxn *txn, TreeId tree, Arena *arena, SchemaRow **row_out,
                                  u32 *count_out, ErrMsg *msg);
MUST_CHECK Err catalog__row_insert(StoreTxn *txn, TreeId tree, const SchemaRow *row);
MUST_CHECK Err catalog__row_delete(StoreTxn *txn, TreeId tree, i64 rowid);

/* statistics.c: rows of sqlite_stat1 into a catalog whose units nobody else holds yet; the numbers
   of a unit that takes the place of another. */
MUST_CHECK Err catalog__statistics_load(StoreTxn *txn, const Catalog *catalog);
MUST_CHECK Err catalog__statistics_keep(const CatalogUnit *before, CatalogUnit *unit);

/* catalog.c: the next version, with `unit` in the place of `replaced` (either may be NULL).  Takes
   over the caller's reference on `unit`, also on error. */
MUST_CHECK Err catalog__derive(const Catalog *old, u64 version, const CatalogUnit *replaced,
                               CatalogUnit *unit, Catalog **catalog_out);
/* The unit of a table; of triggers only if no table is called so. */
CatalogUnit *catalog__unit_of(const Catalog *catalog, Slice table_name);
CatalogUnit *catalog__unit_of_trigger(const Catalog *catalog, const TriggerDef *trigger);
/* Is it of another database's table? */
bool catalog__is_loose(const Catalog *catalog, const CatalogUnit *unit, const TriggerDef *trigger);
u32 catalog__unit_count(const Catalog *catalog);
const CatalogUnit *catalog__unit_at(const Catalog *catalog, u32 at);
/* ddl.c: finish a change: `unit` takes the place of `before`; either may be NULL.  Takes over
   `unit`, also on error. */
MUST_CHECK Err catalog__finish(DdlContext *ddl, const CatalogUnit *before, CatalogUnit *unit,
                               Catalog **new_out);
MUST_CHECK Err catalog__unit_rebuild(DdlContext *ddl, const SchemaRow *row, u32 row_count,
                                     const char *after_what, CatalogUnit **unit_out);
/* alter.c: parse a stored text; a unit's rows for editing (NULL: no memory). */
MUST_CHECK Err catalog__parse_stored(DdlContext *ddl, Arena *arena, const char *sql,
                                     AstStatement **ast_out);
SchemaRow *catalog__rows_copy(Arena *arena, const CatalogUnit *unit);
/* rename.c: give the strings in double quotes of a table's or an index's text single ones. */
MUST_CHECK Err catalog__fix_strings(DdlContext *ddl, Arena *arena, const TableDef *table,
                                    SchemaRow *row);
TreeId catalog__schema_tree(const Catalog *catalog);
i64 catalog__rowid_max(const Catalog *catalog);
