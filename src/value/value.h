/*
 * value.h -- the SQL value: types, affinity, collation.  Rules are SQLite 3.54's.
 *
 * A Cell is one value of any type in 16 bytes.  It never owns its bytes: text and blobs are
 * borrowed from an arena, a page copy, a vector's heap or the caller.
 */
#pragma once

#include "base/base.h"

typedef enum CellType {
    CELL_NULL = 0,
    CELL_INT = 1,
    CELL_REAL = 2, /* Never NaN. */
    CELL_TEXT = 3, /* UTF-8, not NUL-terminated, may hold NUL. */
    CELL_BLOB = 4
} CellType;

typedef enum CellFlags {
    CELL_BY_REF = 1,    /* u.ref: a long value that is read on demand. */
    CELL_POINTER = 2,   /* sqlite3_bind_pointer: reads as NULL outside the function it goes to. */
    CELL_ZEROBLOB = 4,  /* `bytes` zero bytes; u.p is NULL. */
    CELL_TERMINATED = 8 /* A NUL byte follows the text. */
} CellFlags;

typedef struct LongRef LongRef;

typedef struct Cell {
    u32 bytes; /* TEXT, BLOB: length. */
    u8 type;   /* CellType */
    u8 subtype;
    u8 flags; /* CellFlags */
    u8 spare;
    union {
        i64 i;
        f64 r;
        const u8 *p;
        const LongRef *ref;
        void *pointer;
    } u;
} Cell;

STATIC_ASSERT(sizeof(Cell) == 16);

static inline Cell
cell_null(void)
{
    return (Cell){.type = CELL_NULL};
}
static inline Cell
cell_int(i64 i)
{
    return (Cell){.type = CELL_INT, .u.i = i};
}
/* NaN becomes NULL. */
static inline Cell
cell_real(f64 r)
{
    return r != r ? (Cell){.type = CELL_NULL} : (Cell){.type = CELL_REAL, .u.r = r};
}
static inline Cell
cell_text(const void *p, size_t bytes)
{
    return (Cell){.type = CELL_TEXT, .bytes = (u32)bytes, .u.p = (const u8 *)p};
}
static inline Cell
cell_blob(const void *p, size_t bytes)
{
    return (Cell){.type = CELL_BLOB, .bytes = (u32)bytes, .u.p = (const u8 *)p};
}

/* Order matters: from NUMERIC on an affinity is numeric. */
typedef enum Affinity {
    AFFINITY_NONE = 0, /* An expression without affinity. */
    AFFINITY_BLOB = 1,
    AFFINITY_TEXT = 2,
    AFFINITY_NUMERIC = 3,
    AFFINITY_INTEGER = 4,
    AFFINITY_REAL = 5
} Affinity;

typedef enum CollationKind {
    COLLATION_BINARY,
    COLLATION_NOCASE,
    COLLATION_RTRIM,
    COLLATION_HOST /* Compares through `compare`. */
} CollationKind;

typedef struct Collation {
    CollationKind kind;
    const char *name;
    int (*compare)(void *arg, Slice a, Slice b);
    void *arg;
} Collation;

extern const Collation collation_binary, collation_nocase, collation_rtrim;
