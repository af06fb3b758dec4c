/*
 * copy__impl.h -- what copying a database at once and in steps share (private to session/).
 */
#pragma once

#include "session/session__impl.h"

#define COPY_PAGE_ROWS 64u

typedef struct CopyTree {
    TreeId from;
    StoreTreeKind kind;
    u64 pages; /* Left; at least 1 until it is copied. */
} CopyTree;

/* The content of a database on its way from one transaction to another. */
typedef struct CopyWork {
    StoreTxn *from, *to;
    const Catalog *catalog; /* Of the source. */
    CopyTree *tree;
    u32 trees, at;       /* Those before `at` are copied. */
    StoreCursor *cursor; /* On tree[at]; NULL: not begun. */
    TreeId *new_tree;    /* By number in the source. */
    u32 new_trees;
    u64 pages_left; /* The last one is the schema's. */
} CopyWork;

/* copy__work_free() also after an error. */
MUST_CHECK Err copy__work_begin(CopyWork *work, Store *store, StoreTxn *from,
                                const Catalog *catalog, StoreTxn *to);
/* Copy up to `pages` of them; with none left the target is complete. */
MUST_CHECK Err copy__work_run(CopyWork *work, u64 pages);
void copy__work_free(CopyWork *work);

/* Number of a database by name, -1: none. */
i32 copy__find_database(const Session *session, const char *name);
/* Empty the target in a transaction that may write; then fill it and end with the outcome: commit,
   or take all back. */
MUST_CHECK Err copy__target_begin(Session *to, u32 database, ErrMsg *msg);
MUST_CHECK Err copy__target_end(Session *to, u32 database, Err err, ErrMsg *msg);
