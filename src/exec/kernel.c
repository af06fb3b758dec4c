/*
 * kernel.c -- plain loops over vectors.
 *
 * Each loop is written once over "position n": with a selection the position is looked up, without
 * one the compiler makes a dense loop of it.
 */
#include "exec/kernel.h"

/* Compiled for several widths of registers; the loader chooses.  Sanitizers want none of it, and
   clang 14 gives the chosen function another name than the callers use. */
#if defined(__x86_64__) && !defined(WEFT_ASAN) && !defined(WEFT_TSAN) && !defined(__clang__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define WIDE
#endif

#define EACH_LIVE(batch, at) \
    for (u32 n_ = 0, at = 0; \
         n_ < (batch)->count && ((at = (batch)->sel != NULL ? (batch)->sel[n_] : n_), true); n_++)

/* NULLs of the result of a binary operator: where either side is NULL. */
static bool
merge_nulls(const Batch *batch, const Vec *a, const Vec *b, u8 *null)
{
    const u8 *x = a->constant ? NULL : a->null, *y = b->constant ? NULL : b->null;
    if (x == NULL && y == NULL) return false;
    if (x != NULL && y != NULL) {
        EACH_LIVE(batch, at)
        {
            null[at] = x[at] | y[at];
        }
        return true;
    }
    const u8 *one = x != NULL ? x : y;
    EACH_LIVE(batch, at)
    {
        null[at] = one[at];
    }
    return true;
}

/* Stride 0 for constants. */
static inline u32
stride(const Vec *vec)
{
    return vec->constant ? 0 : 1;
}

/* False: some row overflowed. */
WIDE static bool
int_arithmetic(u8 op, const Batch *batch, const Vec *a, const Vec *b, i64 *out)
{
    const i64 *x = a->u.i, *y = b->u.i;
    u32 xs = stride(a), ys = stride(b);
    bool overflow = false;
    switch (op) {
    case PX_ADD:
        EACH_LIVE(batch, at)
        {
            overflow |= __builtin_add_overflow(x[at * xs], y[at * ys], &out[at]);
        }
        return !overflow;
    case PX_SUB:
        EACH_LIVE(batch, at)
        {
            overflow |= __builtin_sub_overflow(x[at * xs], y[at * ys], &out[at]);
        }
        return !overflow;
    case PX_MUL:
        EACH_LIVE(batch, at)
        {
            overflow |= __builtin_mul_overflow(x[at * xs], y[at * ys], &out[at]);
        }
        return !overflow;
    default: return false;
    }
}

/* Quotient or remainder; a zero divisor gives NULL.  False: the one quotient that overflows. */
static bool
int_division(u8 op, const Batch *batch, const Vec *a, const Vec *b, i64 *out, u8 *null,
             bool *has_null)
{
    const i64 *x = a->u.i, *y = b->u.i;
    u32 xs = stride(a), ys = stride(b);
    if (!*has_null) {
        EACH_LIVE(batch, at)
        {
            null[at] = 0;
        }
    }
    *has_null = true;
    EACH_LIVE(batch, at)
    {
        i64 p = x[at * xs], q = y[at * ys];
        out[at] = 0;
        if (q == 0) {
            null[at] = 1;
        } else if (q == -1) {
            if (op == PX_DIV && p == I64_MIN) return false;
            out[at] = op == PX_DIV ? -p : 0;
        } else {
            out[at] = op == PX_DIV ? p / q : p % q;
        }
    }
    return true;
}

static inline f64
real_at(const Vec *vec, u32 at)
{
    u32 place = vec->constant ? 0 : at;
    return vec->kind == VEC_REAL ? vec->u.r[place] : (f64)vec->u.i[place];
}

/* Reals, or one side integers; false: some result is not a number (that is NULL). */
WIDE static bool
real_arithmetic(u8 op, const Batch *batch, const Vec *a, const Vec *b, f64 *out)
{
    bool odd = false;
    EACH_LIVE(batch, at)
    {
        f64 x = real_at(a, at), y = real_at(b, at);
        f64 r = op == PX_ADD ? x + y : op == PX_SUB ? x - y : op == PX_MUL ? x * y : x / y;
        odd |= r != r || (op == PX_DIV && y == 0.0);
        out[at] = r;
    }
    return !odd;
}

bool
kernel_arithmetic(u8 op, const Batch *batch, const Vec *a, const Vec *b, void *data, u8 *null,
                  Vec *out)
{
    if (a->kind == VEC_CELL || b->kind == VEC_CELL) return false;
    bool has_null = merge_nulls(batch, a, b, null);
    if (a->kind == VEC_INT && b->kind == VEC_INT) {
        bool done = op == PX_DIV || op == PX_REM
                        ? int_division(op, batch, a, b, data, null, &has_null)
                        : int_arithmetic(op, batch, a, b, data);
        *out = (Vec){.kind = VEC_INT, .u.i = data, .null = has_null ? null : NULL};
        return done;
    }
    if (op == PX_REM || !real_arithmetic(op, batch, a, b, data)) return false;
    *out = (Vec){.kind = VEC_REAL, .u.r = data, .null = has_null ? null : NULL};
    return true;
}

Cell
kernel_arithmetic_cell(u8 op, const Cell *a, const Cell *b)
{
    switch (op) {
    case PX_ADD: return cell_add(a, b);
    case PX_SUB: return cell_sub(a, b);
    case PX_MUL: return cell_mul(a, b);
    case PX_DIV: return cell_div(a, b);
    default: return cell_rem(a, b);
    }
}

/* One loop a comparison operator and element type: over all rows against one value, which the
   compiler turns into wide instructions, or over the live rows. */
#define COMPARE_ONE(op_)                                \
    do {                                                \
        if (ys == 0 && xs == 1 && batch->sel == NULL) { \
            for (u32 i = 0; i < batch->count; i++)      \
                truth[i] = x[i] op_ only;               \
        } else {                                        \
            EACH_LIVE(batch, at)                        \
            {                                           \
                truth[at] = x[at * xs] op_ y[at * ys];  \
            }                                           \
        }                                               \
    } while (0)

#define COMPARE_LOOPS()                 \
    switch (op) {                       \
    case PX_EQ: COMPARE_ONE(==); break; \
    case PX_NE: COMPARE_ONE(!=); break; \
    case PX_LT: COMPARE_ONE(<); break;  \
    case PX_LE: COMPARE_ONE(<=); break; \
    case PX_GT: COMPARE_ONE(>); break;  \
    default: COMPARE_ONE(>=); break;    \
    }

WIDE static void
compare_ints(u8 op, const Batch *batch, const i64 *x, u32 xs, const i64 *y, u32 ys,
             u8 *restrict truth)
{
    const i64 only = y[0];
    COMPARE_LOOPS()
}

WIDE static void
compare_reals(u8 op, const Batch *batch, const f64 *x, u32 xs, const f64 *y, u32 ys,
              u8 *restrict truth)
{
    const f64 only = y[0];
    COMPARE_LOOPS()
}

/* Integers against reals: exact, by value.h's comparison. */
static void
compare_mixed(u8 op, const Batch *batch, const Vec *a, const Vec *b, u8 *truth)
{
    bool turned = a->kind == VEC_REAL;
    const i64 *x = turned ? b->u.i : a->u.i;
    const f64 *y = turned ? a->u.r : b->u.r;
    u32 xs = turned ? stride(b) : stride(a), ys = turned ? stride(a) : stride(b);
    EACH_LIVE(batch, at)
    {
        int order = number_compare_int_real(x[at * xs], y[at * ys]);
        if (turned) order = -order;
        truth[at] = op == PX_EQ   ? order == 0
                    : op == PX_NE ? order != 0
                    : op == PX_LT ? order < 0
                    : op == PX_LE ? order <= 0
                    : op == PX_GT ? order > 0
                                  : order >= 0;
    }
}

bool
kernel_compare(u8 op, const Batch *batch, const Vec *a, const Vec *b, u8 *truth)
{
    if (a->kind == VEC_CELL || b->kind == VEC_CELL) return false;
    if (a->kind == VEC_INT && b->kind == VEC_INT) {
        compare_ints(op, batch, a->u.i, stride(a), b->u.i, stride(b), truth);
    } else if (a->kind == VEC_REAL && b->kind == VEC_REAL) {
        compare_reals(op, batch, a->u.r, stride(a), b->u.r, stride(b), truth);
    } else {
        compare_mixed(op, batch, a, b, truth);
    }
    const Vec *side[2] = {a, b};
    for (u32 i = 0; i < 2; i++) {
        const u8 *null = side[i]->constant ? NULL : side[i]->null;
        if (null == NULL) continue;
        EACH_LIVE(batch, at)
        {
            if (null[at]) truth[at] = EXEC_UNKNOWN;
        }
    }
    return true;
}

WIDE void
kernel_and(const Batch *batch, u8 *truth, const u8 *more)
{
    /* FALSE wins, then UNKNOWN. */
    EACH_LIVE(batch, at)
    {
        u8 a = truth[at], b = more[at];
        truth[at] = a == EXEC_FALSE || b == EXEC_FALSE ? EXEC_FALSE : (u8)(a > b ? a : b);
    }
}

WIDE void
kernel_or(const Batch *batch, u8 *truth, const u8 *more)
{
    /* TRUE wins, then UNKNOWN. */
    EACH_LIVE(batch, at)
    {
        u8 a = truth[at], b = more[at];
        truth[at] = a == EXEC_TRUE || b == EXEC_TRUE ? EXEC_TRUE : (u8)(a > b ? a : b);
    }
}

void
kernel_not(const Batch *batch, u8 *truth)
{
    static const u8 turned[] = {EXEC_TRUE, EXEC_FALSE, EXEC_UNKNOWN};
    EACH_LIVE(batch, at)
    {
        truth[at] = turned[truth[at]];
    }
}

void
kernel_null(const Batch *batch, const Vec *a, bool is_null, u8 *truth)
{
    if (a->kind != VEC_CELL && (a->null == NULL || a->constant)) {
        EACH_LIVE(batch, at)
        {
            truth[at] = !is_null;
        }
    } else if (a->kind != VEC_CELL) {
        EACH_LIVE(batch, at)
        {
            truth[at] = (a->null[at] != 0) == is_null;
        }
    } else {
        u32 step = stride(a);
        EACH_LIVE(batch, at)
        {
            truth[at] = (a->u.cell[at * step].type == CELL_NULL) == is_null;
        }
    }
}

/* The rows without a value. */
static void
unknown_nulls(const Batch *batch, const Vec *a, u8 *truth)
{
    const u8 *null = a->null;
    if (null == NULL) return;
    EACH_LIVE(batch, at)
    {
        if (null[at]) truth[at] = EXEC_UNKNOWN;
    }
}

void
kernel_in_bits(const Batch *batch, const Vec *a, const u64 *bits, i64 first, u64 span, u8 no,
               u8 *truth)
{
    EACH_LIVE(batch, at)
    {
        u64 bit = (u64)a->u.i[at] - (u64)first;
        bool in = bit < span && (bits[bit / 64] >> (bit % 64) & 1) != 0;
        truth[at] = in ? EXEC_TRUE : no;
    }
    unknown_nulls(batch, a, truth);
}

void
kernel_in_sorted(const Batch *batch, const Vec *a, const i64 *number, u32 count, u8 no, u8 *truth)
{
    EACH_LIVE(batch, at)
    {
        i64 value = a->u.i[at];
        u32 from = 0;
        for (u32 left = count; left > 1; left -= left / 2) {
            if (number[from + left / 2] <= value) from += left / 2;
        }
        truth[at] = number[from] == value ? EXEC_TRUE : no;
    }
    unknown_nulls(batch, a, truth);
}

void
kernel_truth(const Batch *batch, const Vec *a, u8 *truth)
{
    if (a->kind == VEC_INT) {
        u32 step = stride(a);
        const u8 *null = a->constant ? NULL : a->null;
        EACH_LIVE(batch, at)
        {
            truth[at] = a->u.i[at * step] != 0;
        }
        if (null == NULL) return;
        EACH_LIVE(batch, at)
        {
            if (null[at]) truth[at] = EXEC_UNKNOWN;
        }
        return;
    }
    EACH_LIVE(batch, at)
    {
        Cell cell = vec_cell(a, at);
        truth[at] = (u8)cell_truth(&cell);
    }
}

void
kernel_truth_values(const Batch *batch, const u8 *truth, i64 *data, u8 *null, Vec *out)
{
    EACH_LIVE(batch, at)
    {
        data[at] = truth[at] == EXEC_TRUE;
        null[at] = truth[at] == EXEC_UNKNOWN;
    }
    *out = (Vec){.kind = VEC_INT, .u.i = data, .null = null};
}

/* The lanes of the bits of a number below 16, lowest first, 16 bits each. */
static const u64 lanes_of_four[16] = {
    0x0, 0x0,     0x1,     0x10000,     0x2,     0x20000,     0x20001,     0x200010000,
    0x3, 0x30000, 0x30001, 0x300010000, 0x30002, 0x300020000, 0x300020001, 0x3000200010000,
};

/* The true ones of four truths in a row, without asking each. */
static ALWAYS_INLINE u32
pick_four(u32 mask, u32 at, u16 *sel, u32 count)
{
    store_u64(sel + count, lanes_of_four[mask] + at * 0x0001000100010001u);
    return count + (0x4332322132212110u >> (4 * mask) & 15);
}

/* The true ones of eight truths in a row: mostly none. */
static ALWAYS_INLINE u32
pick_eight(const u8 *truth, u32 at, u16 *sel, u32 count)
{
    u64 eight = load_u64(truth + at) & 0x0101010101010101u; /* UNKNOWN is 2. */
    if (eight == 0) return count;
    u32 mask = (u32)(eight * 0x0102040810204080u >> 56);
    count = pick_four(mask & 15, at, sel, count);
    return pick_four(mask >> 4, at + 4, sel, count);
}

WIDE u32
kernel_count(const Batch *batch, const u8 *truth)
{
    u32 count = 0;
    for (u32 i = 0; i < batch->count; i++)
        count += truth[i] == EXEC_TRUE;
    return count;
}

u32
kernel_pick(const Batch *batch, const u8 *truth, u16 *sel)
{
    u32 count = 0;
    if (batch->sel == NULL) {
        u32 at = 0;
        for (; at + 8 <= batch->count; at += 8) {
            count = pick_eight(truth, at, sel, count);
        }
        for (; at < batch->count; at++) {
            sel[count] = (u16)at;
            count += truth[at] == EXEC_TRUE;
        }
        return count;
    }
    for (u32 n = 0; n < batch->count; n++) {
        u16 at = batch->sel[n];
        sel[count] = at;
        count += truth[at] == EXEC_TRUE;
    }
    return count;
}

#define LANES 8u

/* The extreme in lanes of its own, then among them; then the first place that has it. */
#define BEST_LOOP(T, op_)                                       \
    do {                                                        \
        T best[LANES];                                          \
        u32 i = 0;                                              \
        for (u32 lane = 0; lane < LANES; lane++)                \
            best[lane] = x[0];                                  \
        for (; i + LANES <= count; i += LANES) {                \
            for (u32 lane = 0; lane < LANES; lane++) {          \
                T y = x[i + lane];                              \
                best[lane] = y op_ best[lane] ? y : best[lane]; \
            }                                                   \
        }                                                       \
        for (; i < count; i++)                                  \
            best[0] = x[i] op_ best[0] ? x[i] : best[0];        \
        for (u32 lane = 1; lane < LANES; lane++) {              \
            if (best[lane] op_ best[0]) best[0] = best[lane];   \
        }                                                       \
        for (i = 0; x[i] != best[0]; i++) {                     \
        }                                                       \
        return i;                                               \
    } while (0)

WIDE u32
kernel_best_int(const i64 *x, u32 count, bool greatest)
{
    if (greatest) BEST_LOOP(i64, >);
    BEST_LOOP(i64, <);
}

WIDE u32
kernel_best_real(const f64 *x, u32 count, bool greatest)
{
    if (greatest) BEST_LOOP(f64, >);
    BEST_LOOP(f64, <);
}
