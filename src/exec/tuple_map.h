/*
 * tuple_map.h -- finding tuples by their values, without making key bytes (private to exec/).
 *
 * A front for a KeySet: plain tuples (NULLs, integers, texts under BINARY) are hashed as they stand
 * in the vectors of a batch and compared with the cells of the tuple found.  A tuple that is not
 * found this way may still be in the KeySet (a real may equal an integer).
 */
#pragma once

#include "exec/exec__run.h"
#include "exec/rowbuf.h"

typedef struct TupleSlot {
    u32 hash;
    u32 number; /* Of the tuple, + 1; 0: free. */
} TupleSlot;

typedef struct TupleMap {
    u32 columns;
    const Collation *const *collation; /* [columns], or NULL: BINARY. */
    u64 seed;
    TupleSlot *slot;
    u32 count, mask;
} TupleMap;

#define TUPLE_NONE U32_MAX

void exec__tuples_init(Exec *exec, TupleMap *map, const Collation *const *collation, u32 columns);
void exec__tuples_clear(TupleMap *map);
void exec__tuples_drop(TupleMap *map); /* Clear, and free the memory. */
void exec__tuples_free(TupleMap *map);
/* Hashes of the live rows of a batch, at their positions. */
void exec__tuples_hash(const TupleMap *map, const Batch *batch, const Vec *vec, u32 *hash_out);
/* The number of the tuple at position `at`; its cells stand in row `number` of `rows`. */
u32 exec__tuples_find(const TupleMap *map, const RowBuf *rows, const Vec *vec, u32 at, u32 hash);
/* The same for all live rows; TUPLE_NONE where there is none. */
void exec__tuples_find_all(const TupleMap *map, const RowBuf *rows, const Batch *batch,
                           const Vec *vec, const u32 *hash, u32 *number_out);
/* Can the tuple be entered? */
bool exec__tuple_is_plain(const TupleMap *map, const Cell *cell);
MUST_CHECK Err exec__tuples_add(TupleMap *map, u32 hash, u32 number);
