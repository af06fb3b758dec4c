/*
 * func_series.c -- generate_series(start [, stop [, step]]), as in SQLite's shell.
 */
#include "func/func_private.h"

#define STOP_DEFAULT 0xFFFFFFFF

enum { COLUMN_VALUE, COLUMN_START, COLUMN_STOP, COLUMN_STEP };

static const char *const COLUMNS[] = {"value", "start", "stop", "step"};

typedef struct Series {
    i64 start, stop, step;
    u64 left; /* Rows still to come. */
    i64 value, rowid;
} Series;

/* An argument as integer; *null_out if it is NULL, and then there are no rows. */
static i64
read_arg(const Cell *cell, i64 standard, bool *null_out)
{
    if (cell == NULL) return standard;
    if (cell->type == CELL_NULL) *null_out = true;
    return cell_to_int(cell);
}

/* Leave out what is outside of the limits; row numbers stay those of the whole series. */
static void
narrow(Series *series, const Cell *low, const Cell *high)
{
    bool null = false, none = low != NULL && (low->type == CELL_TEXT || low->type == CELL_BLOB);
    i64 least = read_arg(low, I64_MIN, &null), greatest = I64_MAX;
    if (high == NULL || high->type <= CELL_REAL) greatest = read_arg(high, I64_MAX, &null);
    if (null || none || least > greatest) series->left = 0;
    if (series->left == 0) return;
    bool up = series->step > 0;
    u64 step = up ? (u64)series->step : 0 - (u64)series->step;
    i64 from = up ? least : greatest, to = up ? greatest : least;
    if (up ? to < series->start : to > series->start) {
        series->left = 0;
        return;
    }
    u64 reach = up ? (u64)to - (u64)series->start : (u64)series->start - (u64)to;
    if (reach / step < series->left - 1) series->left = reach / step + 1;
    if (up ? from <= series->start : from >= series->start) return;
    u64 gap = up ? (u64)from - (u64)series->start : (u64)series->start - (u64)from;
    u64 skip = gap / step + (gap % step != 0);
    if (skip >= series->left) {
        series->left = 0;
        return;
    }
    series->left -= skip;
    series->rowid = (i64)skip;
    u64 last = (u64)series->start + (skip - 1) * (u64)series->step;
    series->value = (i64)last;
}

static Err
start(TableCall *call, const Cell *const *arg)
{
    Series *series = call->state;
    bool null = false;
    if (arg[0] == NULL) {
        return err_set(call->msg, ERR_SQL,
                       "first argument to \"generate_series()\" missing or unusable");
    }
    *series = (Series){.start = read_arg(arg[0], 0, &null),
                       .stop = read_arg(arg[1], STOP_DEFAULT, &null),
                       .step = read_arg(arg[2], 1, &null)};
    if (series->step == 0) series->step = 1;
    bool up = series->step > 0;
    if (null || (up ? series->start > series->stop : series->start < series->stop)) return OK;
    /* Differences in 64 bits without sign: they always fit. */
    u64 distance = up ? (u64)series->stop - (u64)series->start
                      : (u64)series->start - (u64)series->stop;
    u64 step = up ? (u64)series->step : 0 - (u64)series->step;
    u64 steps = distance / step;
    series->left = steps == U64_MAX ? U64_MAX : steps + 1;
    narrow(series, arg[3], arg[4]);
    return OK;
}

static Err
next(TableCall *call, bool *row_out)
{
    Series *series = call->state;
    *row_out = series->left > 0;
    if (series->left == 0) return OK;
    series->value = series->rowid == 0 ? series->start
                                       : (i64)((u64)series->value + (u64)series->step);
    series->left--;
    series->rowid++;
    return OK;
}

static Err
value(TableCall *call, u32 column, Cell *out)
{
    const Series *series = call->state;
    const i64 values[] = {series->value, series->start, series->stop, series->step};
    *out = cell_int(values[column]);
    return OK;
}

static i64
rowid(const TableCall *call)
{
    return ((const Series *)call->state)->rowid;
}

static void
end(TableCall *call)
{
    *(Series *)call->state = (Series){0};
}

const TableFunc func__series = {.name = "generate_series",
                                .column = COLUMNS,
                                .column_count = COUNT_OF(COLUMNS),
                                .hidden_from = COLUMN_START,
                                .has_limits = true,
                                .flags = FUNC_FALLIBLE | FUNC_INNOCUOUS,
                                .state_bytes = sizeof(Series),
                                .start = start,
                                .next = next,
                                .value = value,
                                .rowid = rowid,
                                .end = end};
