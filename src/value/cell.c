/*
 * cell.c -- comparing cells, their bytes and texts, copies, and readings as numbers.
 */
#include "value/cell.h"
#include "value/collate.h"
#include "value/number.h"

/* Integers below this stand exactly in a real, and SQLite takes reals below it for integers. */
#define REAL_EXACT_LIMIT ((i64)1 << 51)
/* The last reals before int64's ends. */
#define REAL_INT_END 9223372036854774784.0

static const u8 NO_BYTES[1];

const char *
cell_type_name(const Cell *cell)
{
    static const char *const names[] = {"null", "integer", "real", "text", "blob"};
    ASSERT(cell->type < COUNT_OF(names));
    return names[cell->type];
}

/* ---- comparison ---- */

int
number_compare_int_real(i64 a, f64 b)
{
    if (b < -9223372036854775808.0) return 1;
    if (b >= 9223372036854775808.0) return -1;
    i64 whole = (i64)b;
    if (a != whole) return a < whole ? -1 : 1;
    f64 fraction = b - (f64)whole;
    return (fraction < 0) - (fraction > 0);
}

static int
compare_numbers(const Cell *a, const Cell *b)
{
    if (a->type == CELL_INT) {
        if (b->type == CELL_REAL) return number_compare_int_real(a->u.i, b->u.r);
        return (a->u.i > b->u.i) - (a->u.i < b->u.i);
    }
    if (b->type == CELL_INT) return -number_compare_int_real(b->u.i, a->u.r);
    return (a->u.r > b->u.r) - (a->u.r < b->u.r);
}

static Slice
bytes_of(const Cell *cell)
{
    DCHECK((cell->flags & (CELL_BY_REF | CELL_ZEROBLOB)) == 0);
    return SLICE(cell->bytes == 0 ? NO_BYTES : cell->u.p, cell->bytes);
}

/* `zeros` is a zeroblob; the other may be one too. */
static int
compare_zeroblob(const Cell *zeros, const Cell *other)
{
    if ((other->flags & CELL_ZEROBLOB) == 0) {
        u32 shared = MIN_OF(zeros->bytes, other->bytes);
        for (u32 i = 0; i < shared; i++) {
            if (other->u.p[i] != 0) return -1;
        }
    }
    return (zeros->bytes > other->bytes) - (zeros->bytes < other->bytes);
}

/* Where a type stands in the order. */
static inline u32
type_class(const Cell *cell)
{
    static const u8 classes[] = {0, 1, 1, 2, 3};
    return classes[cell->type];
}

int
cell_compare(const Cell *a, const Cell *b, const Collation *collation)
{
    ASSERT(((a->flags | b->flags) & CELL_BY_REF) == 0);
    u32 class_a = type_class(a), class_b = type_class(b);
    if (class_a != class_b) return class_a < class_b ? -1 : 1;
    switch (class_a) {
    case 0: return 0;
    case 1: return compare_numbers(a, b);
    case 2: return collation_compare(collation, bytes_of(a), bytes_of(b));
    default:
        if (a->flags & CELL_ZEROBLOB) return compare_zeroblob(a, b);
        if (b->flags & CELL_ZEROBLOB) return -compare_zeroblob(b, a);
        return collation_compare(NULL, bytes_of(a), bytes_of(b));
    }
}

bool
cell_identical(const Cell *a, const Cell *b)
{
    if (a->type != b->type) return false;
    if (a->type == CELL_REAL || a->type == CELL_INT) return a->u.i == b->u.i; /* The bits. */
    return cell_compare(a, b, NULL) == 0;
}

/* ---- bytes ---- */

Err
cell_text_copy(const void *p, size_t bytes, Arena *arena, Cell *out)
{
    u8 *copy = arena_bytes(arena, bytes + 1);
    if (copy == NULL) return ERR_NOMEM;
    if (bytes > 0) memcpy(copy, p, bytes);
    copy[bytes] = 0;
    *out = cell_text(copy, bytes);
    out->flags = CELL_TERMINATED;
    return OK;
}

Err
cell_bytes(const Cell *cell, Arena *arena, Slice *bytes_out)
{
    ASSERT(cell->type == CELL_TEXT || cell->type == CELL_BLOB);
    ASSERT((cell->flags & CELL_BY_REF) == 0);
    if ((cell->flags & CELL_ZEROBLOB) == 0) {
        *bytes_out = bytes_of(cell);
        return OK;
    }
    u8 *zeros = arena_bytes(arena, (size_t)cell->bytes + 1);
    if (zeros == NULL) return ERR_NOMEM;
    memset(zeros, 0, (size_t)cell->bytes + 1);
    *bytes_out = SLICE(zeros, cell->bytes);
    return OK;
}

Err
cell_text_bytes(const Cell *cell, Arena *arena, Slice *text_out)
{
    if (cell->type == CELL_NULL) {
        *text_out = SLICE(NO_BYTES, 0);
        return OK;
    }
    if (!cell_is_number(cell)) return cell_bytes(cell, arena, text_out);
    char text[NUMBER_TEXT_BYTES];
    size_t bytes = cell->type == CELL_INT ? number_put_int(text, cell->u.i)
                                          : number_put_real(text, cell->u.r);
    Cell copy;
    Err err = cell_text_copy(text, bytes, arena, &copy);
    if (err == OK) *text_out = bytes_of(&copy);
    return err;
}

Err
cell_copy(const Cell *cell, Arena *arena, Cell *out)
{
    if (cell->type != CELL_TEXT && cell->type != CELL_BLOB) {
        *out = *cell;
        return OK;
    }
    Cell from = *cell, copy = from;
    if (from.flags & CELL_BY_REF) {
        LongRef *ref = arena_bytes(arena, sizeof(LongRef));
        if (ref == NULL) return ERR_NOMEM;
        *ref = *from.u.ref;
        copy.u.ref = ref;
    } else if ((from.flags & CELL_ZEROBLOB) == 0) {
        Err err = cell_text_copy(from.u.p, from.bytes, arena, &copy);
        if (err != OK) return err;
        copy.type = from.type;
        copy.subtype = from.subtype;
    }
    *out = copy;
    return OK;
}

/* ---- as a number ---- */

i64
real_to_int(f64 r)
{
    if (r < -REAL_INT_END) return I64_MIN;
    if (r > REAL_INT_END) return I64_MAX;
    return (i64)r;
}

bool
real_is_int(f64 r, i64 *out)
{
    if (!(r >= -9223372036854775808.0 && r < 9223372036854775808.0)) return false;
    *out = (i64)r;
    return (f64)*out == r;
}

bool
value__real_is_small_int(f64 r, i64 *out)
{
    if (!(r >= (f64)-REAL_EXACT_LIMIT && r < (f64)REAL_EXACT_LIMIT)) return false;
    *out = (i64)r;
    return (f64)*out == r;
}

/* Text or blob as the text of a number; a zeroblob has no digits. */
static inline Slice
digits_of(const Cell *cell)
{
    return cell->flags & CELL_ZEROBLOB ? SLICE(NO_BYTES, 0) : bytes_of(cell);
}

i64
cell_to_int(const Cell *cell)
{
    switch (cell->type) {
    case CELL_INT: return cell->u.i;
    case CELL_REAL: return real_to_int(cell->u.r);
    case CELL_NULL: return 0;
    default: return number_int_prefix(digits_of(cell));
    }
}

f64
cell_to_real(const Cell *cell)
{
    switch (cell->type) {
    case CELL_INT: return (f64)cell->u.i;
    case CELL_REAL: return cell->u.r;
    case CELL_NULL: return 0.0;
    default: return number_real(digits_of(cell));
    }
}

CellTruth
cell_truth(const Cell *cell)
{
    switch (cell->type) {
    case CELL_INT: return cell->u.i != 0 ? TRUTH_TRUE : TRUTH_FALSE;
    case CELL_NULL: return TRUTH_NULL;
    default: return cell_to_real(cell) != 0.0 ? TRUTH_TRUE : TRUTH_FALSE;
    }
}

Cell
cell_to_number(const Cell *cell)
{
    switch (cell->type) {
    case CELL_NULL: return cell_null();
    case CELL_INT: return cell_int(cell->u.i);
    case CELL_REAL: return cell_real(cell->u.r);
    default: break;
    }
    NumberScan scan = number_scan(digits_of(cell));
    if (scan.kind == NUMBER_NONE) return cell_int(0);
    /* Behind a NUL byte the two readings of SQLite part: whole for reals, not for integers. */
    if (scan.kind == NUMBER_INT && !scan.nul) return cell_int(scan.i);
    return cell_real(scan.r);
}

Cell
cell_numeric_value(const Cell *cell)
{
    Cell number = *cell;
    if (cell->type == CELL_TEXT) (void)value__text_to_number(&number, false);
    return number;
}

/*
 * Text that is wholly a number becomes one; true if it did.  `integers`: reals with an integral
 * value become integers.
 */
bool
value__text_to_number(Cell *cell, bool integers)
{
    NumberScan scan = number_scan(bytes_of(cell));
    if (scan.kind == NUMBER_NONE || !scan.whole) return false;
    Cell number = cell_real(scan.r);
    i64 small;
    if (scan.integer && value__real_is_small_int(scan.r, &small)) {
        number = cell_int(small);
    } else if (scan.kind == NUMBER_INT && !scan.nul) {
        number = cell_int(scan.i);
    } else if (integers) {
        value__real_to_int(&number);
    }
    number.subtype = cell->subtype;
    *cell = number;
    return true;
}

void
value__real_to_int(Cell *cell)
{
    i64 i = real_to_int(cell->u.r);
    if ((f64)i != cell->u.r || i == I64_MIN || i == I64_MAX) return;
    cell->type = CELL_INT;
    cell->u.i = i;
}
