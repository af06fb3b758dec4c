/*
 * sorted_file.h -- records sorted by key in the temporary file, to look keys up in, and sets of
 * keys made of such files (private to exec/).
 *
 * In memory stay the first key of each block and a Bloom filter, ten bits a record; a look-up of a
 * key that is not there mostly reads nothing, any other reads one block, if it is not the one read
 * last.
 */
#pragma once

#include "exec/keyset.h"
#include "exec/spill.h"

typedef struct SortedFile {
    SpillRun run;
    SpillWriter writer;
    SpillReader reader;
    u32 at_block; /* In the reader's buffer, + 1; 0: none. */
    Arena bytes;  /* Fences and filter. */
    Slice *fence; /* By block: its first key. */
    u32 fence_capacity;
    u64 *bloom;
    u64 bloom_words;
    u64 seed;
    Buf head;
    Slice wanted; /* The key being looked up. */
} SortedFile;

/* `records`: at least so many will be put. */
MUST_CHECK Err exec__file_begin(Exec *exec, SortedFile *file, u64 records);
/* In rising order of keys; equal keys are found in the order they were put. */
MUST_CHECK Err exec__file_put(Exec *exec, SortedFile *file, Slice key, Slice row);
MUST_CHECK Err exec__file_end(Exec *exec, SortedFile *file);
void exec__file_free(Exec *exec, SortedFile *file); /* Zero-initialised is allowed. */
/* Look `key` up; it must stay where it is as long as its rows are read. */
MUST_CHECK Err exec__file_seek(Exec *exec, SortedFile *file, Slice key, bool *found_out);
/* The next row of the key, after a seek that found some; *found_out false: there are no more. */
MUST_CHECK Err exec__file_row(Exec *exec, SortedFile *file, Slice *row_out, bool *found_out);
/* All records from the front: rewind, then read with exec__file_next(). */
void exec__file_rewind(SortedFile *file);
MUST_CHECK Err exec__file_next(Exec *exec, SortedFile *file, Slice *key_out, bool *found_out);

/* ---- a KeySet that goes on in files ---- */

typedef struct SpillSet {
    u32 files, capacity;
    SortedFile *file; /* Older ones first. */
    u8 *level;        /* Of each file: it has taken in about SET_MERGE^level key sets. */
    u64 held;         /* As exec__spill_due() knows it. */
} SpillSet;

void exec__set_clear(Exec *exec, SpillSet *set);
void exec__set_free(Exec *exec, SpillSet *set);
/* All keys of `keys` go to a file; `keys` is empty afterwards. */
MUST_CHECK Err exec__set_flush(Exec *exec, SpillSet *set, KeySet *keys);
/* Is the key in one of the files? */
MUST_CHECK Err exec__set_has(Exec *exec, SpillSet *set, Slice key, bool *found_out);
/* Add the key to `keys` unless it is there or in a file; *number_out only if added. */
MUST_CHECK Err exec__set_add_slow(Exec *exec, SpillSet *set, KeySet *keys, Slice key,
                                  u32 *number_out, bool *added_out);
static inline Err
exec__set_add(Exec *exec, SpillSet *set, KeySet *keys, Slice key, u32 *number_out, bool *added_out)
{
    if (LIKELY(set->files == 0)) return exec__keyset_add(keys, key, number_out, added_out);
    return exec__set_add_slow(exec, set, keys, key, number_out, added_out);
}
