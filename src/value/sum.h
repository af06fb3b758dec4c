/*
 * sum.h -- the state of sum(), total() and avg(): shared by the functions and by exec's kernels.
 *
 * While all values are integers the sum and its lowest and highest prefix are kept in 128 bits, so
 * that runs of rows can be combined in order and still tell whether some prefix left int64.  From
 * the first real (or the first overflow) on, a Kahan-Babuska-Neumaier sum runs beside.
 *
 * A zeroed Sum is empty.
 */
#pragma once

#include "base/base.h"

__extension__ typedef __int128 i128;

typedef struct Sum {
    i128 whole, low, high; /* Sum of the integers; its lowest and highest prefix. */
    f64 r, error;          /* Once `approximate`: the sum is r + error. */
    i64 count;
    bool approximate;
    bool real; /* A real was seen: integers no longer overflow. */
} Sum;

static inline bool
sum_fits_int64(i128 v)
{
    return v >= I64_MIN && v <= I64_MAX;
}

static inline f64
sum_magnitude(f64 r)
{
    return r < 0 ? -r : r;
}

static inline void
sum_add_real(Sum *sum, f64 r)
{
    f64 total = sum->r + r;
    if (sum_magnitude(sum->r) > sum_magnitude(r)) {
        sum->error += (sum->r - total) + r;
    } else {
        sum->error += (r - total) + sum->r;
    }
    sum->r = total;
}

/* Integers that a real cannot hold go in two parts. */
#define SUM_EXACT_LIMIT ((i64)1 << 52)
#define SUM_LOW_PART    16384

static inline void
sum_add_int(Sum *sum, i64 i)
{
    if (i > -SUM_EXACT_LIMIT && i < SUM_EXACT_LIMIT) {
        sum_add_real(sum, (f64)i);
        return;
    }
    i64 low = i % SUM_LOW_PART;
    sum_add_real(sum, (f64)(i - low));
    sum_add_real(sum, (f64)low);
}

/* From an integer sum to an approximate one. */
static inline void
sum_go_approximate(Sum *sum, i128 whole)
{
    sum->approximate = true;
    sum->error = 0.0;
    if (whole > -SUM_EXACT_LIMIT && whole < SUM_EXACT_LIMIT) {
        sum->r = (f64)whole;
        return;
    }
    i128 low = whole % SUM_LOW_PART;
    sum->r = (f64)(whole - low);
    sum->error = (f64)low;
}

static inline void
sum_integer(Sum *sum, i64 i, bool add)
{
    if (!sum->real) {
        i128 before = sum->whole;
        sum->whole += add ? (i128)i : -(i128)i;
        if (sum->whole < sum->low) sum->low = sum->whole;
        if (sum->whole > sum->high) sum->high = sum->whole;
        if (!sum->approximate) {
            if (sum_fits_int64(sum->whole)) return;
            sum_go_approximate(sum, before);
        }
    }
    if (add) {
        sum_add_int(sum, i);
    } else if (i != I64_MIN) {
        sum_add_int(sum, -i);
    } else {
        sum_add_int(sum, I64_MAX);
        sum_add_int(sum, 1);
    }
}

static inline void
sum_real(Sum *sum, f64 r)
{
    if (!sum->approximate) sum_go_approximate(sum, sum->whole);
    sum_add_real(sum, r);
}

/* Feed one value that is not NULL. */
static inline void
sum_feed_int(Sum *sum, i64 i)
{
    sum->count++;
    sum_integer(sum, i, true);
}
static inline void
sum_feed_real(Sum *sum, f64 r)
{
    sum->count++;
    sum_real(sum, r);
    sum->real = true;
}
