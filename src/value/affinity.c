/*
 * affinity.c -- affinities of declared types, applying them, CAST.
 */
#include "value/cell.h"
#include "value/number.h"

/* Words in a declared type, by their last bytes seen; the order of the tests is SQLite's. */
#define WORD4(a, b, c, d) ((u32)(a) << 24 | (u32)(b) << 16 | (u32)(c) << 8 | (u32)(d))
#define WORD3(a, b, c)    ((u32)(a) << 16 | (u32)(b) << 8 | (u32)(c))

Affinity
affinity_of_type(Slice declared_type)
{
    if (declared_type.bytes == 0) return AFFINITY_BLOB;
    Affinity affinity = AFFINITY_NUMERIC;
    u32 last = 0;
    for (size_t i = 0; i < declared_type.bytes; i++) {
        u8 c = declared_type.p[i];
        if (c >= 'A' && c <= 'Z') c |= 0x20;
        last = last << 8 | c;
        if ((last & 0xFFFFFF) == WORD3('i', 'n', 't')) return AFFINITY_INTEGER;
        switch (last) {
        case WORD4('c', 'h', 'a', 'r'):
        case WORD4('c', 'l', 'o', 'b'):
        case WORD4('t', 'e', 'x', 't'): affinity = AFFINITY_TEXT; break;
        case WORD4('b', 'l', 'o', 'b'):
            if (affinity != AFFINITY_TEXT) affinity = AFFINITY_BLOB;
            break;
        case WORD4('r', 'e', 'a', 'l'):
        case WORD4('f', 'l', 'o', 'a'):
        case WORD4('d', 'o', 'u', 'b'):
            if (affinity == AFFINITY_NUMERIC) affinity = AFFINITY_REAL;
            break;
        default: break;
        }
    }
    return affinity;
}

bool
affinity_keeps(Affinity affinity, CellType type)
{
    if (type == CELL_NULL || type == CELL_BLOB || affinity <= AFFINITY_BLOB) return true;
    if (affinity == AFFINITY_TEXT) return type == CELL_TEXT;
    if (affinity == AFFINITY_REAL) return false; /* Even a real: -0.0 becomes 0.0. */
    return type == CELL_INT;
}

/* A number becomes its text. */
static Err
number_to_text(Cell *cell, Arena *arena)
{
    char text[NUMBER_TEXT_BYTES];
    size_t bytes = cell->type == CELL_INT ? number_put_int(text, cell->u.i)
                                          : number_put_real(text, cell->u.r);
    u8 subtype = cell->subtype;
    Err err = cell_text_copy(text, bytes, arena, cell);
    if (err == OK) cell->subtype = subtype;
    return err;
}

static void
set_int(Cell *cell, i64 i)
{
    u8 subtype = cell->subtype;
    *cell = cell_int(i);
    cell->subtype = subtype;
}

static void
set_real(Cell *cell, f64 r)
{
    u8 subtype = cell->subtype;
    *cell = cell_real(r);
    cell->subtype = subtype;
}

Err
cell_apply_affinity(Cell *cell, Affinity affinity, Arena *arena)
{
    ASSERT((cell->flags & CELL_BY_REF) == 0);
    if (affinity == AFFINITY_TEXT) return cell_is_number(cell) ? number_to_text(cell, arena) : OK;
    if (affinity < AFFINITY_NUMERIC) return OK;
    if (cell->type == CELL_TEXT) {
        (void)value__text_to_number(cell, true);
    } else if (cell->type == CELL_REAL) {
        value__real_to_int(cell);
    }
    if (affinity == AFFINITY_REAL && cell->type == CELL_INT) set_real(cell, (f64)cell->u.i);
    return OK;
}

Err
cell_pair_apply_affinity(Cell *a, Cell *b, Affinity affinity, Arena *arena)
{
    if (affinity >= AFFINITY_NUMERIC) {
        if (a->type == CELL_TEXT) (void)value__text_to_number(a, false);
        if (b->type == CELL_TEXT) (void)value__text_to_number(b, false);
        return OK;
    }
    if (affinity != AFFINITY_TEXT) return OK;
    if (a->type == CELL_TEXT) return cell_is_number(b) ? number_to_text(b, arena) : OK;
    if (b->type == CELL_TEXT && cell_is_number(a)) return number_to_text(a, arena);
    return OK;
}

static void
cast_to_numeric(Cell *cell)
{
    if (cell_is_number(cell)) return;
    Slice text = SLICE(cell->u.p, cell->flags & CELL_ZEROBLOB ? 0 : cell->bytes);
    NumberScan scan = number_scan(text);
    i64 small;
    if (scan.kind != NUMBER_REAL) {
        set_int(cell, scan.kind == NUMBER_NONE ? 0 : scan.i);
    } else if (value__real_is_small_int(scan.r, &small)) {
        set_int(cell, small);
    } else {
        set_real(cell, scan.r);
    }
}

static Err
cast_to_bytes(Cell *cell, CellType type, Arena *arena)
{
    Slice bytes;
    if (cell_is_number(cell)) {
        Err err = number_to_text(cell, arena);
        if (err != OK) return err;
    } else if (cell->type == CELL_BLOB && type == CELL_TEXT && (cell->flags & CELL_ZEROBLOB)) {
        Err err = cell_bytes(cell, arena, &bytes);
        if (err != OK) return err;
        cell->u.p = bytes.p;
        cell->flags = CELL_TERMINATED;
    }
    cell->type = (u8)type;
    return OK;
}

Err
cell_cast(Cell *cell, Affinity affinity, Arena *arena)
{
    ASSERT((cell->flags & CELL_BY_REF) == 0);
    if (cell->type == CELL_NULL) return OK;
    switch (affinity) {
    case AFFINITY_NUMERIC: cast_to_numeric(cell); return OK;
    case AFFINITY_INTEGER: set_int(cell, cell_to_int(cell)); return OK;
    case AFFINITY_REAL: set_real(cell, cell_to_real(cell)); return OK;
    case AFFINITY_TEXT: return cast_to_bytes(cell, CELL_TEXT, arena);
    case AFFINITY_NONE:
    case AFFINITY_BLOB: return cast_to_bytes(cell, CELL_BLOB, arena);
    }
    UNREACHABLE();
}
