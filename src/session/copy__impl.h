/*
 * copy__impl.h -- what copying a database and reading one from bytes share (private to session/).
 */
#pragma once

#include "session/session__impl.h"

static inline StoreTreeKind
copy__tree_kind(const TableDef *table)
{
    return table->without_rowid ? STORE_TREE_BYTES : STORE_TREE_INT;
}

/* Number of a database by name, -1: none. */
i32 copy__find_database(const Session *session, const char *name);
/* A transaction and its catalogs; session__autocommit_end() afterwards. */
MUST_CHECK Err copy__source_begin(Session *session);
/* Empty the target in a transaction that may write; then fill it and end with the outcome: commit,
   or take all back. */
MUST_CHECK Err copy__target_begin(Session *to, u32 database, ErrMsg *msg);
MUST_CHECK Err copy__target_end(Session *to, u32 database, Err err, ErrMsg *msg);
