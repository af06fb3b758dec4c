/*
 * ddl__impl.h -- the steps that statements changing the schema share.
 *
 * Private to session/.  The functions that return an Err leave its message with the session.
 */
#pragma once

#include "session/session__impl.h"

/* Where a schema change happens. */
typedef struct Ddl {
    Session *session;
    Stmt *stmt;
    u32 database;
    DdlContext context;
    ErrMsg msg;
} Ddl;

/* Set up the change of one database; in single mode this takes its token, which may mean a fresh
   snapshot and so another catalog: look names up afterwards. */
MUST_CHECK Err ddl__context(Ddl *ddl, u32 database);
MUST_CHECK Err ddl__fail(Ddl *ddl, Err err);
/* Keep writers of the table out, and make those that come later notice. */
MUST_CHECK Err ddl__lock(Ddl *ddl, const TableDef *table);
/* The change is made: `catalog` is what the session sees from now on. */
void ddl__done(Ddl *ddl, Catalog *catalog);
/* Expressions of the table must mean something. */
MUST_CHECK Err ddl__check_table(Ddl *ddl, const TableDef *table);
/* The same for DdlContext.check_table; arg: Ddl. */
MUST_CHECK Err ddl__check_unnamed_table(void *arg, const TableDef *table);
MUST_CHECK Err ddl__check_index(void *arg, const TableDef *table, const IndexDef *index);
/* Run a statement inside the change; *row_out: it gave a row. */
MUST_CHECK Err ddl__run_counted(Ddl *ddl, const char *sql, bool *row_out);
MUST_CHECK Err ddl__run(Ddl *ddl, const char *sql);

/* The same change where the temporary database speaks of the table; *any_out false: it says
   nothing, or is itself the one that is changed. */
MUST_CHECK Err ddl__temp(const Ddl *ddl, Ddl *temp_out, bool *any_out);
/* Temporary triggers go with the table of another database that they stand on. */
MUST_CHECK Err ddl__drop_loose_triggers(Ddl *ddl, const TableDef *table);

/* alter.c */
MUST_CHECK Err ddl__alter_table(Ddl *ddl, const AstAlter *ast);
/* analyze.c */
MUST_CHECK Err ddl__analyze(Ddl *ddl, const AstObject *ast);
/* Forget what ANALYZE found out: rows of sqlite_stat1, if it exists, whose column "tbl" or "idx"
   is `value`. */
MUST_CHECK Err ddl__forget_statistics(Ddl *ddl, const char *column, const char *value);
