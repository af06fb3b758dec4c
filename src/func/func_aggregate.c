/*
 * func_aggregate.c -- count, sum, total, avg, min, max, group_concat.
 *
 * The state of sum(), total() and avg() is value/sum.h's, so that exec can feed it by itself.
 */
#include "func/func_private.h"
#include "value/sum.h"

/* ---- count ---- */

static Err
step_count(FuncCall *call, u32 argc, const Cell *argv)
{
    i64 *count = call->state;
    if (argc == 0 || argv->type != CELL_NULL) ++*count;
    return OK;
}

static Err
inverse_count(FuncCall *call, u32 argc, const Cell *argv)
{
    i64 *count = call->state;
    if (argc == 0 || argv->type != CELL_NULL) --*count;
    return OK;
}

static Err
value_count(FuncCall *call, Cell *result_out)
{
    *result_out = cell_int(*(const i64 *)call->state);
    return OK;
}

static Err
combine_count(FuncCall *call, const void *other)
{
    *(i64 *)call->state += *(const i64 *)other;
    return OK;
}

/* ---- sums ---- */

static Err
step_sum(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    Sum *sum = call->state;
    Cell number = cell_numeric_value(argv);
    if (number.type == CELL_NULL) return OK;
    if (number.type == CELL_INT) {
        sum_feed_int(sum, number.u.i);
    } else {
        sum_feed_real(sum, cell_to_real(&number));
    }
    return OK;
}

static Err
inverse_sum(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    Sum *sum = call->state;
    Cell number = cell_numeric_value(argv);
    if (number.type == CELL_NULL) return OK;
    sum->count--;
    if (number.type == CELL_INT) {
        sum_integer(sum, number.u.i, false);
    } else {
        sum_real(sum, -cell_to_real(&number));
    }
    return OK;
}

static Err
combine_sum(FuncCall *call, const void *state)
{
    Sum *sum = call->state;
    const Sum *other = state;
    sum->count += other->count;
    if (!sum->real && !other->real) {
        if (sum->whole + other->low < sum->low) sum->low = sum->whole + other->low;
        if (sum->whole + other->high > sum->high) sum->high = sum->whole + other->high;
        sum->whole += other->whole;
        if (!sum_fits_int64(sum->low) || !sum_fits_int64(sum->high))
            sum_go_approximate(sum, sum->whole);
        return OK;
    }
    Sum behind = *other;
    if (!sum->approximate) sum_go_approximate(sum, sum->whole);
    if (!behind.approximate) sum_go_approximate(&behind, behind.whole);
    sum_add_real(sum, behind.r);
    sum->error += behind.error;
    sum->real = true;
    return OK;
}

static f64
sum_as_real(const Sum *sum)
{
    if (!sum->approximate) return (f64)sum->whole;
    /* An error term that is no number would spoil an infinite sum. */
    return sum->error - sum->error == 0.0 ? sum->r + sum->error : sum->r;
}

static Err
value_sum(FuncCall *call, Cell *result_out)
{
    const Sum *sum = call->state;
    if (sum->count <= 0) return OK;
    if (!sum->real && (!sum_fits_int64(sum->low) || !sum_fits_int64(sum->high))) {
        return err_set(call->msg, ERR_SQL, "integer overflow");
    }
    *result_out = sum->approximate ? cell_real(sum_as_real(sum)) : cell_int((i64)sum->whole);
    return OK;
}

static Err
value_total(FuncCall *call, Cell *result_out)
{
    *result_out = cell_real(sum_as_real(call->state));
    return OK;
}

static Err
value_avg(FuncCall *call, Cell *result_out)
{
    const Sum *sum = call->state;
    if (sum->count > 0) *result_out = cell_real(sum_as_real(sum) / (f64)sum->count);
    return OK;
}

/* ---- min and max ---- */

typedef struct Extreme {
    Cell best; /* Its bytes are in `bytes`. */
    Buf bytes;
    bool some;
} Extreme;

static Err
extreme_keep(Extreme *extreme, const Cell *cell)
{
    Cell copy = *cell;
    if ((cell->type == CELL_TEXT || cell->type == CELL_BLOB) &&
        (cell->flags & CELL_ZEROBLOB) == 0) {
        Buf bytes = extreme->bytes;
        bytes.bytes = 0;
        Err err = buf_append(&bytes, cell->u.p, cell->bytes);
        if (err != OK) return err;
        extreme->bytes = bytes;
        copy.u.p = bytes.p;
        copy.flags = 0;
    }
    extreme->best = copy;
    extreme->some = true;
    return OK;
}

static Err
extreme_step(FuncCall *call, const Cell *cell, bool greatest)
{
    Extreme *extreme = call->state;
    call->took_row = !extreme->some;
    if (cell->type == CELL_NULL) return OK;
    if (extreme->some) {
        int order = cell_compare(&extreme->best, cell, call->collation);
        if (greatest ? order >= 0 : order <= 0) return OK;
    }
    call->took_row = true;
    return extreme_keep(extreme, cell);
}

static Err
step_min(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    return extreme_step(call, argv, false);
}
static Err
step_max(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    return extreme_step(call, argv, true);
}

static Err
combine_min(FuncCall *call, const void *other)
{
    const Extreme *behind = other;
    return behind->some ? extreme_step(call, &behind->best, false) : OK;
}
static Err
combine_max(FuncCall *call, const void *other)
{
    const Extreme *behind = other;
    return behind->some ? extreme_step(call, &behind->best, true) : OK;
}

static Err
value_extreme(FuncCall *call, Cell *result_out)
{
    const Extreme *extreme = call->state;
    return extreme->some ? cell_copy(&extreme->best, call->arena, result_out) : OK;
}

static void
free_extreme(FuncCall *call)
{
    Extreme *extreme = call->state;
    buf_free(&extreme->bytes);
}

/* ---- group_concat ---- */

typedef struct Concat {
    Buf text;       /* Separators stand before all texts but the first. */
    size_t start;   /* What inverse took away at the front. */
    Buf separators; /* u32 lengths of the separators in `text`, in order. */
    size_t gone;    /* Bytes of `separators` that inverse took away. */
    i64 count;      /* Texts in it. */
    bool begun;     /* A text stands there, though it may be empty. */
} Concat;

static Err
concat_append(FuncCall *call, Concat *concat, Slice bytes)
{
    Err err = func__check_length(call, concat->text.bytes - concat->start + bytes.bytes);
    return err != OK ? err : buf_append(&concat->text, bytes.p, bytes.bytes);
}

static Err
step_concat(FuncCall *call, u32 argc, const Cell *argv)
{
    Concat *concat = call->state;
    if (argv[0].type == CELL_NULL) return OK;
    Slice text, separator = SLICE_LITERAL(",");
    Err err = func__text_arg(call, &argv[0], &text);
    if (err == OK && argc == 2) err = func__text_arg(call, &argv[1], &separator);
    if (err == OK && concat->begun) {
        u32 bytes = (u32)separator.bytes;
        err = concat_append(call, concat, separator);
        if (err == OK) err = buf_append(&concat->separators, &bytes, sizeof(bytes));
    }
    if (err == OK) err = concat_append(call, concat, text);
    if (err != OK) return err;
    concat->begun = true;
    concat->count++;
    return OK;
}

/* Forget the front once it is more than half of the buffer. */
static void
drop_front(Buf *buf, size_t *front)
{
    if (*front < 64 || *front < buf->bytes / 2) return;
    memmove(buf->p, buf->p + *front, buf->bytes - *front);
    buf->bytes -= *front;
    *front = 0;
}

static Err
inverse_concat(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)argc;
    Concat *concat = call->state;
    if (argv[0].type == CELL_NULL) return OK;
    Slice text;
    Err err = func__text_arg(call, &argv[0], &text);
    if (err != OK) return err;
    size_t gone = text.bytes;
    concat->count--;
    if (concat->separators.bytes > concat->gone) {
        gone += load_u32(concat->separators.p + concat->gone);
        concat->gone += sizeof(u32);
    }
    concat->start = MIN_OF(concat->start + gone, concat->text.bytes);
    /* SQLite starts over as soon as nothing is left of the text, and so loses separators, and then
       bytes, next to empty texts; we count texts instead. */
    if (concat->count == 0) {
        buf_clear(&concat->text);
        buf_clear(&concat->separators);
        concat->start = concat->gone = 0;
        concat->begun = false;
    }
    drop_front(&concat->text, &concat->start);
    drop_front(&concat->separators, &concat->gone);
    return OK;
}

static Err
value_concat(FuncCall *call, Cell *result_out)
{
    const Concat *concat = call->state;
    if (concat->count <= 0) return OK;
    return func__result_text(call, concat->text.p == NULL ? NULL : concat->text.p + concat->start,
                             concat->text.bytes - concat->start, result_out);
}

static void
free_concat(FuncCall *call)
{
    Concat *concat = call->state;
    buf_free(&concat->text);
    buf_free(&concat->separators);
}

#define COUNT_DEF(argc)                                                              \
    {                                                                                \
        .name = "count", .argc_min = argc, .argc_max = argc, .kind = FUNC_AGGREGATE, \
        .flags = FUNC_INNOCUOUS | FUNC_COUNT, .state_bytes = sizeof(i64),            \
        .kernel = FUNC_KERNEL_COUNT, .step = step_count, .inverse = inverse_count,   \
        .value = value_count, .combine = combine_count                               \
    }
#define SUM_DEF(n, value_fn, f)                                                               \
    {                                                                                         \
        .name = n, .argc_min = 1, .argc_max = 1, .kind = FUNC_AGGREGATE,                      \
        .flags = FUNC_INNOCUOUS | (f), .state_bytes = sizeof(Sum), .kernel = FUNC_KERNEL_SUM, \
        .step = step_sum, .inverse = inverse_sum, .value = value_fn, .combine = combine_sum   \
    }
#define EXTREME_DEF(n, f)                                                         \
    {                                                                             \
        .name = #n, .argc_min = 1, .argc_max = 1, .kind = FUNC_AGGREGATE,         \
        .flags = FUNC_INNOCUOUS | FUNC_MINMAX | FUNC_COLLATES | (f),              \
        .state_bytes = sizeof(Extreme), .step = step_##n, .value = value_extreme, \
        .combine = combine_##n, .state_free = free_extreme                        \
    }
#define CONCAT_DEF(n, argc)                                                    \
    {                                                                          \
        .name = n, .argc_min = argc, .argc_max = argc, .kind = FUNC_AGGREGATE, \
        .flags = FUNC_INNOCUOUS | FUNC_ORDERED, .state_bytes = sizeof(Concat), \
        .step = step_concat, .inverse = inverse_concat, .value = value_concat, \
        .state_free = free_concat                                              \
    }

static const FuncDef DEFS[] = {
    COUNT_DEF(0),
    COUNT_DEF(1),
    SUM_DEF("sum", value_sum, FUNC_FALLIBLE),
    SUM_DEF("total", value_total, 0),
    SUM_DEF("avg", value_avg, 0),
    EXTREME_DEF(min, 0),
    EXTREME_DEF(max, FUNC_MAX),
    CONCAT_DEF("group_concat", 1),
    CONCAT_DEF("group_concat", 2),
    CONCAT_DEF("string_agg", 2),
};

FUNC_FAMILY(func__aggregate, DEFS);
