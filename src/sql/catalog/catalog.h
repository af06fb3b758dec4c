/*
 * catalog.h -- the schema of a database: immutable snapshots, and the changes that DDL makes.
 *
 * The truth is the table sqlite_schema (type, name, tbl_name, rootpage, sql) in an ordinary tree of
 * the store, whose number stands in TREE_ROOT, beside the schema version and the other numbers that
 * SQLite keeps in a file's header.  A Catalog is what one version of those rows says, parsed.  It
 * is made of one unit a table (the table, its indexes and triggers), shared between versions, so a
 * DDL statement parses only what it changes.
 *
 * Lifetimes: a Catalog is counted; TableDef, IndexDef and everything below live as long as some
 * Catalog that holds their unit.  A plan retains the catalogs it was made from.
 * Tasks: a Catalog is immutable; retain and release are safe from any task.
 */
#pragma once

#include "sql/parse/ast.h"
#include "sql/schema.h"

typedef struct Catalog Catalog;

typedef struct TriggerDef {
    const char *name;
    const char *table;
    const char *table_schema; /* As written before the table's name; NULL: nothing. */
    const char *sql;
    u8 time;  /* AstTriggerTime */
    u8 event; /* AstTriggerEvent */
    u16 of_count;
    const char **of_column; /* UPDATE OF */
    i64 schema_row;         /* Its row of sqlite_schema. */
} TriggerDef;

/* What a catalog needs to know of its surroundings; borrowed, must outlive the catalog. */
typedef struct CatalogEnv {
    const char *schema; /* "main", "temp", ...: copied. */
    u8 database;
    Store *store;
    /* Collation by name, or NULL; may be NULL: the three built-in ones.  For
       ddl_check_collations(). */
    const Collation *(*find_collation)(void *arg, Slice name);
    void *arg;
} CatalogEnv;

/* What the parser calls so (an AstConflict, whose order is another). */
Conflict catalog_conflict(unsigned ast_conflict);

/* ---- snapshots ---- */

/* The schema version that `txn` sees: one read of one key. */
MUST_CHECK Err catalog_version(StoreTxn *txn, u64 *version_out);
/* Read the schema that `txn` sees.  The caller owns one reference.  A row that cannot be understood
   is ERR_CORRUPT "malformed database schema (NAME) - WHY", as in SQLite. */
MUST_CHECK Err catalog_load(StoreTxn *txn, const CatalogEnv *env, Catalog **catalog_out,
                            ErrMsg *msg);
Catalog *catalog_retain(Catalog *catalog);
void catalog_release(Catalog *catalog); /* NULL is allowed. */
u64 catalog_get_version(const Catalog *catalog);
u64 catalog_bytes(const Catalog *catalog); /* Memory that it takes. */

/* Look-ups, without regard to ASCII case; NULL if there is none.  Views are tables with is_view.
   sqlite_schema answers to its other names too (sqlite_master, and in temp sqlite_temp_...). */
const TableDef *catalog_find_table(const Catalog *catalog, Slice name);
const IndexDef *catalog_find_index(const Catalog *catalog, Slice name);
const TriggerDef *catalog_find_trigger(const Catalog *catalog, Slice name);
/* Tables in the order of their rows; sqlite_schema is not among them. */
u32 catalog_table_count(const Catalog *catalog);
const TableDef *catalog_table_at(const Catalog *catalog, u32 at);
/* Is anything in it but sqlite_schema? */
bool catalog_has_objects(const Catalog *catalog);
/* Triggers of one table, newest first (the order in which they fire). */
u32 catalog_triggers(const Catalog *catalog, const TableDef *table,
                     const TriggerDef *const **triggers_out);

/* Triggers of the temporary database on tables of other ones, newest first. */
u32 catalog_loose_triggers(const Catalog *catalog, const TriggerDef *const **triggers_out);

/* The databases of a connection, in the order 0 main, 1 temp, 2.. attached. */
#define CATALOG_DATABASES_MAX 12
typedef struct CatalogView {
    u32 count;
    struct {
        const char *name;
        Catalog *catalog; /* NULL: temp that was never used. */
    } db[CATALOG_DATABASES_MAX];
} CatalogView;

/* An absent schema name (p == NULL) means: temp, main, then attached ones in order.
 *schema_found_out (may be NULL) is false if a schema was named that does not exist. */
const TableDef *
catalog_view_table(const CatalogView *view, Slice schema, Slice name, bool *schema_found_out);
const IndexDef *
catalog_view_index(const CatalogView *view, Slice schema, Slice name, bool *schema_found_out);
const TriggerDef *
catalog_view_trigger(const CatalogView *view, Slice schema, Slice name, u32 *database_out);
/* The table that a loose trigger stands on; NULL: there is none any more. */
const TableDef *catalog_loose_table(const CatalogView *view, const TriggerDef *trigger);
/* Number of the named database, or -1. */
i32 catalog_view_database(const CatalogView *view, Slice schema);

/* The definition of the virtual table `stored` with the columns that its module declares by the
   CREATE TABLE `sql`.  It lives in `arena` and borrows from `stored`. */
MUST_CHECK Err catalog_declared_table(const TableDef *stored, Slice sql, const CatalogEnv *env,
                                      Arena *arena, TableDef *table_out, ErrMsg *msg);

/* ---- header numbers: user_version, application_id, ... ---- */

MUST_CHECK Err catalog_get_number(StoreTxn *txn, const char *name,
                                  i64 *number_out); /* 0 if unset */
MUST_CHECK Err catalog_set_number(StoreTxn *txn, const char *name, i64 number);
/* Copy all schema rows to another database, whose trees have other numbers: tree t is new_tree[t]
   there, t < trees. */
MUST_CHECK Err catalog_copy_rows(StoreTxn *from, TreeId from_tree, StoreTxn *to, TreeId to_tree,
                                 const TreeId *new_tree, u32 trees);

/* Write one row as it is, for loading whole schemas: `type` is "table", "index", "view" or
   "trigger" (else ERR_CORRUPT), `sql` may be NULL.  Nothing is checked before the next
   catalog_load(). */
MUST_CHECK Err catalog_load_row(StoreTxn *txn, TreeId schema_tree, i64 rowid, const char *type,
                                const char *name, const char *table, TreeId tree, const char *sql);
/* A schema row as it stands in a serialized database; tree: a number of the caller's. */
typedef struct CatalogRow {
    i64 rowid;
    u8 type; /* 0 table, 1 index, 2 view, 3 trigger */
    const char *name, *table;
    const char *sql; /* NULL: none */
    TreeId tree;
} CatalogRow;
/* All rows of the schema tree, in `arena`. */
MUST_CHECK Err catalog_rows(StoreTxn *txn, TreeId schema_tree, Arena *arena, CatalogRow **row_out,
                            u32 *count_out);

/* ---- DDL ---- */

/*
 * A change: given the catalog `old` that `txn` sees, write the schema rows and trees inside `txn`
 * and hand out the catalog after the change (which becomes true when `txn` commits).  The version
 * is raised once a call.  Errors carry SQLite's messages: "table t already exists", "no such table:
 * t", "duplicate column name: a", ...  On error the caller undoes the statement.
 */
typedef struct DdlContext {
    StoreTxn *txn;
    const CatalogEnv *env;
    Catalog *old;
    Slice sql;           /* The statement's text, which the tree's spans refer to. */
    bool reserved_names; /* Names that begin with sqlite_ are allowed. */
    bool foreign_keys;   /* They are enforced. */
    ErrMsg *msg;
    /* ddl_drop_column(): do the expressions of the changed table, which is not yet in a catalog,
       or of one of its indexes mean something?  Asked in the order of sqlite_schema; the message
       goes to `msg`. */
    Err (*check_table)(void *arg, const TableDef *table);
    Err (*check_index)(void *arg, const TableDef *table, const IndexDef *index);
    void *check_arg;
} DdlContext;

/* Has the connection the collations that the statement names? */
MUST_CHECK Err ddl_check_collations(DdlContext *ddl, const AstStatement *statement);
MUST_CHECK Err ddl_create_table(DdlContext *ddl, const AstCreateTable *ast, Catalog **new_out);
/* sqlite_stat1, which ANALYZE fills; there is none yet. */
MUST_CHECK Err ddl_create_stat_table(DdlContext *ddl, Catalog **new_out);
/* sqlite_stat1 was filled: a version of the catalog that knows its numbers. */
MUST_CHECK Err ddl_read_statistics(DdlContext *ddl, Catalog **new_out);
/* For CREATE TABLE AS: a table with these column names and declared types (NULL entries: none);
   `columns_sql` is generated, as SQLite does. */
MUST_CHECK Err ddl_create_table_as(DdlContext *ddl, const AstCreateTable *ast, u32 column_count,
                                   const char *const *name, const char *const *type,
                                   Catalog **new_out);
/* Makes the row and an empty tree; the caller fills it (exec: index_build) from *index_out. */
MUST_CHECK Err ddl_create_index(DdlContext *ddl, const AstCreateIndex *ast, Catalog **new_out,
                                const IndexDef **index_out);
/* The row of a virtual table; making the table itself is up to the session. */
MUST_CHECK Err ddl_create_virtual(DdlContext *ddl, const AstCreateVirtual *ast, Catalog **new_out);
MUST_CHECK Err ddl_create_view(DdlContext *ddl, const AstCreateView *ast, Catalog **new_out);
/* `table`: what it stands on, of another database perhaps if the trigger is a temporary one; NULL:
   there is no such table. */
MUST_CHECK Err ddl_create_trigger(DdlContext *ddl, const AstCreateTrigger *ast,
                                  const TableDef *table, Catalog **new_out);
MUST_CHECK Err ddl_drop_table(DdlContext *ddl, const TableDef *table, Catalog **new_out);
MUST_CHECK Err ddl_drop_index(DdlContext *ddl, const IndexDef *index, Catalog **new_out);
/* ALTER TABLE.  The stored texts are edited and read again; ddl_rename_table() also edits the
   views, triggers and foreign keys of other tables that name the table. */
MUST_CHECK Err ddl_add_column(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                              Catalog **new_out);
/* May the column be dropped, as far as the table itself says?  *column_out: its number. */
MUST_CHECK Err ddl_check_dropped(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                                 u32 *column_out);
MUST_CHECK Err ddl_drop_column(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                               Catalog **new_out);
/* SET and DROP NOT NULL, ADD CHECK, DROP CONSTRAINT.  Whether rows pass is the caller's to see. */
MUST_CHECK Err ddl_alter_constraint(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                                    Catalog **new_out);
/* The table may be one of another database: then what the temporary one says of it is edited, and
   so for ddl_rename_column(). */
MUST_CHECK Err ddl_rename_table(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                                Catalog **new_out);
/* A token of a view's or trigger's text that means the column to be renamed, or a string there in
   double quotes, which gets single ones. */
typedef struct DdlNameUse {
    const char *sql; /* TableDef.sql or TriggerDef.sql of the catalog `old` */
    Span span;
    bool is_string;
} DdlNameUse;
/* The column exists.  Edits the table, its indexes, foreign keys of all tables, and the uses. */
MUST_CHECK Err ddl_rename_column(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                                 const DdlNameUse *use, u32 use_count, Catalog **new_out);
MUST_CHECK Err ddl_drop_trigger(DdlContext *ddl, const TriggerDef *trigger, Catalog **new_out);
