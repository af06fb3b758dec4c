/*
 * schema.h -- tables, columns and indexes as plans and the executor see them.
 *
 * Made by the catalog, immutable, owned by a catalog snapshot that outlives every plan using it.
 * Together with plan.h this is all that layers above sql/ may read of a schema.
 */
#pragma once

#include "store/store.h"
#include "value/value.h"

#define COLUMN_ROWID ((u16)0xFFFF) /* "The rowid" where a column number is asked for. */
#define COLUMN_EXPR  ((u16)0xFFFE) /* An index column that is an expression. */

typedef enum Conflict {
    CONFLICT_DEFAULT = 0,
    CONFLICT_ABORT,
    CONFLICT_ROLLBACK,
    CONFLICT_FAIL,
    CONFLICT_IGNORE,
    CONFLICT_REPLACE
} Conflict;

typedef struct ColumnDef {
    const char *name;
    const char *type_text; /* As declared; NULL if none. */
    u8 affinity;           /* Affinity */
    u8 strict_type;        /* In STRICT tables: a StrictType. */
    bool not_null;
    u8 not_null_conflict; /* Conflict */
    bool primary_key;
    bool hidden;                /* Virtual-table hidden column. */
    u8 generated;               /* 0 no, 1 virtual, 2 stored */
    u16 stored_index;           /* Position in the record; virtual columns: unused. */
    const Collation *collation; /* BINARY if the program's is meant: */
    /* A collation that is not built in, as typed; each connection looks up what it has by that
       name.  NULL: none. */
    const char *host_collation;
    const char *default_sql;   /* Text of the DEFAULT expression; NULL if none. */
    const char *default_expr;  /* What it means: for DEFAULT abc that is the string 'abc'. */
    const char *generated_sql; /* Text of the generating expression. */
    Cell default_value;        /* Value of a constant default; for rows older than the column. */
} ColumnDef;

typedef enum StrictType {
    STRICT_NONE = 0,
    STRICT_ANY,
    STRICT_INT,
    STRICT_INTEGER,
    STRICT_REAL,
    STRICT_TEXT,
    STRICT_BLOB
} StrictType;

typedef struct IndexColumn {
    u16 column; /* Table column, COLUMN_ROWID or COLUMN_EXPR. */
    bool desc;
    const Collation *collation; /* Of the entries: BINARY where the program's was asked for. */
    const char *host_collation; /* Which that is; NULL: none. */
    const char *expr_sql;       /* For COLUMN_EXPR. */
} IndexColumn;

typedef enum IndexOrigin { INDEX_CREATED, INDEX_UNIQUE, INDEX_PRIMARY_KEY } IndexOrigin;

struct TableDef;

typedef struct IndexDef {
    const char *name;
    struct TableDef *table;
    TreeId tree;
    bool unique;
    u8 origin;             /* IndexOrigin */
    u8 conflict;           /* Conflict clause of the constraint. */
    u16 key_columns;       /* Declared columns. */
    IndexColumn *column;   /* key_columns of them. */
    const char *where_sql; /* Partial index: its condition; NULL if whole. */
    const char *sql;       /* CREATE INDEX text, NULL for automatic indexes. */
    /* sqlite_stat1 of when the catalog was read: rows, then rows that share the first column, the
       first two...: [key_columns + 1].  NULL: not analyzed. */
    f64 *stat;
    u32 stat_row_bytes;  /* 0: not told. */
    bool stat_unordered; /* Neither ranges nor order by this index. */
} IndexDef;

typedef struct CheckDef {
    const char *name; /* Constraint name, or NULL. */
    const char *sql;  /* Expression text as typed. */
} CheckDef;

typedef struct ForeignKeyDef {
    const char *name;
    const char *parent_table;
    u16 column_count;
    u16 *column;                /* Child columns. */
    const char **parent_column; /* NULL entries: the parent's primary key. */
    u8 on_delete, on_update;    /* ForeignAction */
    bool deferred;
} ForeignKeyDef;

typedef enum ForeignAction {
    FOREIGN_NO_ACTION,
    FOREIGN_RESTRICT,
    FOREIGN_SET_NULL,
    FOREIGN_SET_DEFAULT,
    FOREIGN_CASCADE
} ForeignAction;

typedef struct TableDef {
    const char *name;
    const char *schema; /* "main", "temp" or the name of an attached database. */
    u8 database;        /* 0 main, 1 temp, 2.. attached. */
    Store *store;       /* Where its trees live. */
    TreeId tree;
    bool without_rowid;
    bool strict;
    bool autoincrement;
    bool is_view;
    bool is_system; /* sqlite_schema and its kin. */
    /* A virtual table: no tree.  In a catalog it has no columns; a session that has its module
       makes a definition with columns and `host` of it. */
    bool is_virtual;
    const char *module;
    const char **module_args;
    u32 module_arg_count;
    struct HostTable *host;
    u16 column_count;
    u16 stored_count; /* Columns that a record holds (without virtual ones). */
    ColumnDef *column;
    u16 rowid_column;      /* The INTEGER PRIMARY KEY column, or COLUMN_ROWID if there is none. */
    IndexDef *primary_key; /* WITHOUT ROWID: its key (tree == table tree); else NULL. */
    u8 rowid_conflict;     /* Conflict clause of INTEGER PRIMARY KEY. */
    u16 index_count;
    IndexDef **index; /* In SQLite's order: newest first. */
    u16 check_count;
    CheckDef *check;
    u16 foreign_key_count;
    ForeignKeyDef *foreign_key;
    const char *sql;    /* CREATE text as stored. */
    i64 schema_row;     /* Its row of sqlite_schema. */
    u64 schema_lock_no; /* For store_txn_lock_schema. */
    u32 version;        /* Catalog version at which this definition appeared. */
    bool has_stat;      /* sqlite_stat1 speaks of it: */
    f64 stat_rows;
    u32 stat_row_bytes; /* 0: not told. */
} TableDef;
