/*
 * func_moment.h -- a moment as the date functions compute with it.
 *
 * A moment is known as milliseconds since noon of November 24, -4713 (julian day 0), or as a date
 * and a time of day, or as both; each form is computed from the others when it is needed.  The
 * calendar is the Gregorian one for all years.  The order in which forms are computed and dropped
 * is SQLite's, because it shows: 2023-02-31 stays as it is until something needs its day number.
 */
#pragma once

#include "func/func_private.h"

#define MOMENT_DAY_MS   86400000
#define MOMENT_EPOCH_MS 210866760000000 /* 1970-01-01 00:00 */
#define MOMENT_MS_MAX   464269060799999 /* 9999-12-31 23:59:59.999 */

typedef struct Moment {
    i64 ms;               /* has_ms */
    i32 year, month, day; /* has_date */
    i32 hour, minute;     /* has_time */
    f64 seconds;          /* has_time; or the number given, if `raw`. */
    i32 zone_min;         /* Minutes that date and time are ahead of UTC. */
    i32 days_over;        /* Days by which `day` is past the end of its month. */
    bool has_ms, has_date, has_time;
    bool raw;   /* A number that may be julian days or seconds since 1970. */
    bool error; /* Out of range: the result is NULL. */
    bool utc, local;
    bool subsec; /* Results show fractions of seconds. */
} Moment;

void func__moment_need_ms(Moment *m);
void func__moment_need_date(Moment *m);
void func__moment_need_time(Moment *m);
/* Forget date, time and zone. */
void func__moment_drop_fields(Moment *m);
/* Set days_over from the date. */
void func__moment_measure_overflow(Moment *m);
/* Bring month into 1..12, carrying into year. */
void func__moment_carry_months(Moment *m);
static inline bool
func__moment_in_range(i64 ms)
{
    return ms >= 0 && ms <= MOMENT_MS_MAX;
}

/* Text being read; the end reads as NUL. */
typedef struct MomentText {
    const u8 *p, *end;
} MomentText;

static inline u8
func__moment_peek(const MomentText *text, size_t ahead)
{
    return (size_t)(text->end - text->p) > ahead ? text->p[ahead] : 0;
}
bool func__is_blank(u8 c);
bool func__is_digit(u8 c);
/* Exactly `count` digits with a value in min..max; moves behind them. */
bool func__moment_digits(MomentText *text, u32 count, i32 min, i32 max, i32 *value_out);
/* HH:MM[:SS[.FFF]] [zone] up to the end of the text. */
bool func__moment_read_time(MomentText text, Moment *m);

/* What the arguments of a date function mean.  *ok_out false: the result is NULL. */
MUST_CHECK Err func__moment_from_args(FuncCall *call, u32 argc, const Cell *argv, Moment *m,
                                      bool *ok_out);
/* Apply one modifier, the `index`th argument; *ok_out false: it is none. */
MUST_CHECK Err func__moment_modify(FuncCall *call, Slice text, u32 index, Moment *m, bool *ok_out);
/* Error if the call may not depend on the present moment. */
MUST_CHECK Err func__moment_check_pure(FuncCall *call);
