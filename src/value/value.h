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
    CELL_BY_REF = 1,     /* u.ref: a long value that is read on demand. */
    CELL_POINTER = 2,    /* sqlite3_bind_pointer: reads as NULL outside the function it goes to. */
    CELL_ZEROBLOB = 4,   /* `bytes` zero bytes; u.p is NULL. */
    CELL_TERMINATED = 8, /* A NUL byte follows the text. */
    CELL_FROM_KEY = 16   /* In records only: a NULL cell that says "taken from the key". */
} CellFlags;

/* A long value by reference, as it stands in a record (record.h has the accessors). */
typedef struct LongRef {
    u8 tree[8], bytes[8], prefix[8];
} LongRef;

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

/* The affinity that a column's declared type gives it; an empty type gives BLOB. */
Affinity affinity_of_type(Slice declared_type);

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

/*
 * Rules for the functions below:
 *   1. A cell with CELL_BY_REF is loaded by the caller first (asserted).  A pointer value reads as
 *      NULL, a zeroblob as that many zero bytes.
 *   2. Where an Arena is passed, new bytes come from it and the only error is ERR_NOMEM, unless
 *      the function says more.  Nothing else allocates.
 *   3. Subtypes are not looked at.  Affinities, CAST and copies keep the one a cell has; results of
 *      operators have none.
 */

static inline bool
cell_is_null(const Cell *cell)
{
    return cell->type == CELL_NULL;
}
static inline bool
cell_is_number(const Cell *cell)
{
    return cell->type == CELL_INT || cell->type == CELL_REAL;
}

/* "null", "integer", "real", "text", "blob", as typeof() says. */
const char *cell_type_name(const Cell *cell);

/* NULL < numbers < TEXT < BLOB; -1, 0 or 1.  NULLs are equal.  `collation` NULL means BINARY. */
int cell_compare(const Cell *a, const Cell *b, const Collation *collation);
/* Exact, also beyond 2^53. */
int number_compare_int_real(i64 a, f64 b);

/* Convert as a column of that affinity does when the value is stored in it. */
MUST_CHECK Err cell_apply_affinity(Cell *cell, Affinity affinity, Arena *arena);
/* Convert both sides of a comparison as its stamp says: a numeric affinity turns text that is a
   number into one; TEXT turns numbers into text if the other side is text. */
MUST_CHECK Err cell_pair_apply_affinity(Cell *a, Cell *b, Affinity affinity, Arena *arena);
/* Would a value of this type pass through that affinity unchanged, whatever it is? */
bool affinity_keeps(Affinity affinity, CellType type);

/* CAST: BLOB, TEXT, NUMERIC, INTEGER or REAL. */
MUST_CHECK Err cell_cast(Cell *cell, Affinity affinity, Arena *arena);

/* Truth in WHERE and the like. */
typedef enum CellTruth { TRUTH_FALSE = 0, TRUTH_TRUE = 1, TRUTH_NULL = 2 } CellTruth;
CellTruth cell_truth(const Cell *cell);

/* The value as an integer or a real, as CAST and sqlite3_value_int64/double do: the longest
   numeric prefix of text counts, NULL is 0. */
i64 cell_to_int(const Cell *cell);
f64 cell_to_real(const Cell *cell);
/* The operand of arithmetic: an INT or REAL cell, or NULL for NULL. */
Cell cell_to_number(const Cell *cell);
/* What sqlite3_value_numeric_type and abs(), sum() see: a number if text is wholly one, else the
   cell itself. */
Cell cell_numeric_value(const Cell *cell);

/* The bytes of the value read as text (sqlite3_value_text): numbers are printed, blobs are taken
   as they are, NULL gives no bytes. */
MUST_CHECK Err cell_text_bytes(const Cell *cell, Arena *arena, Slice *text_out);
/* The bytes of a TEXT or BLOB cell, zeroblobs expanded. */
MUST_CHECK Err cell_bytes(const Cell *cell, Arena *arena, Slice *bytes_out);
/* Copy with its bytes into `arena` (text is NUL-terminated there); `out` may be `cell`. */
MUST_CHECK Err cell_copy(const Cell *cell, Arena *arena, Cell *out);
/* A new TEXT cell with a NUL-terminated copy of the bytes. */
MUST_CHECK Err cell_text_copy(const void *p, size_t bytes, Arena *arena, Cell *out);
/* Same type and same bytes or bits: what a program could tell apart. */
bool cell_identical(const Cell *a, const Cell *b);

/* Operators.  NULL operands give NULL. */
Cell cell_add(const Cell *a, const Cell *b);
Cell cell_sub(const Cell *a, const Cell *b);
Cell cell_mul(const Cell *a, const Cell *b);
Cell cell_div(const Cell *a, const Cell *b);
Cell cell_rem(const Cell *a, const Cell *b);
Cell cell_neg(const Cell *a);
Cell cell_bit_and(const Cell *a, const Cell *b);
Cell cell_bit_or(const Cell *a, const Cell *b);
Cell cell_bit_not(const Cell *a);
Cell cell_shl(const Cell *a, const Cell *b);
Cell cell_shr(const Cell *a, const Cell *b);
/* ||.  Errors: ERR_NOMEM, ERR_TOOBIG (more than length_max bytes). */
MUST_CHECK Err cell_concat(const Cell *a, const Cell *b, u64 length_max, Arena *arena, Cell *out);

/* Integer arithmetic that tells overflow: false, and then *out is the wrapped value. */
static inline bool
int_add(i64 a, i64 b, i64 *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool
int_sub(i64 a, i64 b, i64 *out)
{
    return !__builtin_sub_overflow(a, b, out);
}
static inline bool
int_mul(i64 a, i64 b, i64 *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
/* a shifted left by `by` bits as SQL does: negative `by` shifts right, 64 and more empties. */
i64 int_shift_left(i64 a, i64 by);
/* Cut off the fraction; beyond int64 the nearest end of it. */
i64 real_to_int(f64 r);
/* True if r is exactly the integer *out (-0.0 counts as 0). */
bool real_is_int(f64 r, i64 *out);
