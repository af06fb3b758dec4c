/*
 * arith.c -- the arithmetic, bit and text operators.
 *
 * Two integers give an integer while it fits; everything else goes through reals, and a real
 * result that is no number is NULL.
 */
#include "value/value.h"

typedef enum ArithOp { ARITH_ADD, ARITH_SUB, ARITH_MUL, ARITH_DIV, ARITH_REM } ArithOp;

/* The integer result, if there is one; division by zero is NULL. */
static bool
arith_int(ArithOp op, i64 a, i64 b, Cell *out)
{
    i64 result;
    switch (op) {
    case ARITH_ADD:
        if (!int_add(a, b, &result)) return false;
        break;
    case ARITH_SUB:
        if (!int_sub(a, b, &result)) return false;
        break;
    case ARITH_MUL:
        if (!int_mul(a, b, &result)) return false;
        break;
    case ARITH_DIV:
        if (b == 0) {
            *out = cell_null();
            return true;
        }
        if (b == -1 && a == I64_MIN) return false;
        result = a / b;
        break;
    default:
        if (b == 0) {
            *out = cell_null();
            return true;
        }
        result = b == -1 ? 0 : a % b; /* I64_MIN % -1 would trap. */
        break;
    }
    *out = cell_int(result);
    return true;
}

static Cell
arith(ArithOp op, const Cell *left, const Cell *right)
{
    Cell a = cell_to_number(left), b = cell_to_number(right), out;
    if (a.type == CELL_NULL || b.type == CELL_NULL) return cell_null();
    if (a.type == CELL_INT && b.type == CELL_INT && arith_int(op, a.u.i, b.u.i, &out)) return out;

    f64 x = cell_to_real(left), y = cell_to_real(right);
    switch (op) {
    case ARITH_ADD: return cell_real(x + y);
    case ARITH_SUB: return cell_real(x - y);
    case ARITH_MUL: return cell_real(x * y);
    case ARITH_DIV: return y == 0.0 ? cell_null() : cell_real(x / y);
    default: break;
    }
    /* The remainder is one of integers even here, and real only in type. */
    if (!arith_int(ARITH_REM, cell_to_int(left), cell_to_int(right), &out)) UNREACHABLE();
    return out.type == CELL_NULL ? out : cell_real((f64)out.u.i);
}

Cell
cell_add(const Cell *a, const Cell *b)
{
    return arith(ARITH_ADD, a, b);
}
Cell
cell_sub(const Cell *a, const Cell *b)
{
    return arith(ARITH_SUB, a, b);
}
Cell
cell_mul(const Cell *a, const Cell *b)
{
    return arith(ARITH_MUL, a, b);
}
Cell
cell_div(const Cell *a, const Cell *b)
{
    return arith(ARITH_DIV, a, b);
}
Cell
cell_rem(const Cell *a, const Cell *b)
{
    return arith(ARITH_REM, a, b);
}

/* Zero minus the value: -(0.0) is 0.0, and the smallest integer becomes a real. */
Cell
cell_neg(const Cell *a)
{
    Cell zero = cell_int(0);
    return arith(ARITH_SUB, &zero, a);
}

static bool
any_null(const Cell *a, const Cell *b)
{
    return a->type == CELL_NULL || b->type == CELL_NULL;
}

Cell
cell_bit_and(const Cell *a, const Cell *b)
{
    return any_null(a, b) ? cell_null() : cell_int(cell_to_int(a) & cell_to_int(b));
}
Cell
cell_bit_or(const Cell *a, const Cell *b)
{
    return any_null(a, b) ? cell_null() : cell_int(cell_to_int(a) | cell_to_int(b));
}
Cell
cell_bit_not(const Cell *a)
{
    return a->type == CELL_NULL ? cell_null() : cell_int(~cell_to_int(a));
}

i64
int_shift_left(i64 a, i64 by)
{
    if (by >= 64) return 0;
    if (by >= 0) return (i64)((u64)a << by);
    if (by <= -64) return a < 0 ? -1 : 0;
    return a >> -by;
}

Cell
cell_shl(const Cell *a, const Cell *b)
{
    return any_null(a, b) ? cell_null() : cell_int(int_shift_left(cell_to_int(a), cell_to_int(b)));
}

Cell
cell_shr(const Cell *a, const Cell *b)
{
    if (any_null(a, b)) return cell_null();
    i64 by = cell_to_int(b);
    return cell_int(int_shift_left(cell_to_int(a), by == I64_MIN ? I64_MAX : -by));
}

Err
cell_concat(const Cell *a, const Cell *b, u64 length_max, Arena *arena, Cell *out)
{
    *out = cell_null();
    if (any_null(a, b)) return OK;
    Slice left, right;
    Err err = cell_text_bytes(a, arena, &left);
    if (err == OK) err = cell_text_bytes(b, arena, &right);
    if (err != OK) return err;
    size_t bytes = left.bytes + right.bytes;
    if (bytes > length_max || bytes > U32_MAX) return ERR_TOOBIG;
    u8 *text = arena_bytes(arena, bytes + 1);
    if (text == NULL) return ERR_NOMEM;
    if (left.bytes > 0) memcpy(text, left.p, left.bytes);
    if (right.bytes > 0) memcpy(text + left.bytes, right.p, right.bytes);
    text[bytes] = 0;
    *out = cell_text(text, bytes);
    out->flags = CELL_TERMINATED;
    return OK;
}
