/*
 * join_file.h -- the build side of a hash join beyond the memory budget (private to exec/).
 *
 * The rows are sorted by key bytes into one file, in which probe rows look theirs up
 * (sorted_file.h): the probe side is still read once, from front to back, so order, errors and
 * trips are as they were, and keys with very many rows need no memory.  Where every build row is
 * wanted in its own order (no keys; RIGHT and FULL for the unmatched) they also stand in a spool.
 */
#pragma once

#include "exec/sorted_file.h"
#include "exec/sorter.h"
#include "exec/spool.h"

typedef struct JoinFile {
    bool ready;  /* Opened once. */
    bool in_use; /* The build side is here. */
    u32 columns;
    bool keyed;    /* Has keys. */
    bool ordered;  /* Has the spool. */
    Sorter sorter; /* Rows with their numbers behind them. */
    SortedFile file;
    RowSpool all;
    SpoolReader candidates, unmatched;
    u64 rows;
    Cell *row; /* The row read last, and its number. */
    Buf key;   /* Looked up last. */
    Buf row_buf;
    u8 *matched; /* One bit a row. */
} JoinFile;

/* The build side goes to a file from now on. */
MUST_CHECK Err exec__join_file_begin(Exec *exec, JoinFile *file, u32 columns, bool keyed,
                                     bool ordered);
/* Add a build row; `usable` false: its key matches nothing. */
MUST_CHECK Err exec__join_file_add(Exec *exec, JoinFile *file, Slice key, bool usable,
                                   const Cell *row);
/* All rows are in. */
MUST_CHECK Err exec__join_file_end(Exec *exec, JoinFile *file);
void exec__join_file_clear(Exec *exec, JoinFile *file);
void exec__join_file_free(Exec *exec, JoinFile *file);
/* Before the probe side is read: nothing is matched. */
MUST_CHECK Err exec__join_file_unmatch(Exec *exec, JoinFile *file);

/* Find the candidates of a probe row, without the first `skip` of them; `key` is ignored if there
   are no keys.  *found_out: there may be some. */
MUST_CHECK Err exec__join_file_probe(Exec *exec, JoinFile *file, Slice key, u64 skip,
                                     bool *found_out);
/* The next one, good until the next call; NULL: that was all.  Its number stands behind it. */
MUST_CHECK Err exec__join_file_next(Exec *exec, JoinFile *file, const Cell **row_out);

static inline bool
exec__join_file_is_matched(const JoinFile *file, u64 number)
{
    return (file->matched[number / 8] >> number % 8 & 1) != 0;
}
static inline void
exec__join_file_match(JoinFile *file, u64 number)
{
    file->matched[number / 8] |= (u8)(1u << number % 8);
}
/* Row number `number` of all, and after it the next ones: for the unmatched. */
MUST_CHECK Err exec__join_file_at(Exec *exec, JoinFile *file, u64 number, const Cell **row_out);
