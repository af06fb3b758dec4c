/*
 * func_date.c -- date(), time(), datetime(), julianday(), unixepoch(), strftime(), timediff() and
 * the CURRENT_ words.
 */
#include "func/func_moment.h"
#include "value/number.h"

/* A number with at least `width` digits; the sign counts as one. */
static char *
put_number(char *p, i32 value, i32 width, char pad)
{
    char digits[12];
    i32 count = 0;
    u32 rest = value < 0 ? 0 - (u32)value : (u32)value;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0) {
        *p++ = '-';
        width--;
    }
    for (i32 i = count; i < width; i++) {
        *p++ = pad;
    }
    while (count > 0) {
        *p++ = digits[--count];
    }
    return p;
}

static char *
put_date(char *p, const Moment *m)
{
    p = put_number(p, m->year, 4, '0');
    *p++ = '-';
    p = put_number(p, m->month, 2, '0');
    *p++ = '-';
    return put_number(p, m->day, 2, '0');
}

/* Date with the year's four digits behind the sign, as date() and datetime() print it. */
static char *
put_date_signed(char *p, const Moment *m)
{
    Moment copy = *m;
    if (copy.year < 0) {
        *p++ = '-';
        copy.year = -copy.year;
    }
    return put_date(p, &copy);
}

static char *
put_hour_minute(char *p, const Moment *m)
{
    p = put_number(p, m->hour, 2, '0');
    *p++ = ':';
    return put_number(p, m->minute, 2, '0');
}

static char *
put_time(char *p, const Moment *m, bool subsec)
{
    p = put_hour_minute(p, m);
    *p++ = ':';
    if (!subsec) return put_number(p, (i32)m->seconds, 2, '0');
    i32 ms = (i32)(1000.0 * m->seconds + 0.5);
    p = put_number(p, ms / 1000 % 100, 2, '0');
    *p++ = '.';
    return put_number(p, ms % 1000, 3, '0');
}

typedef enum DateShape { SHAPE_DATE = 1, SHAPE_TIME = 2 } DateShape;

static Err
shaped(FuncCall *call, u32 argc, const Cell *argv, u32 shape, Cell *result_out)
{
    Moment m;
    bool ok;
    Err err = func__moment_from_args(call, argc, argv, &m, &ok);
    if (err != OK || !ok) return err;
    char text[64], *p = text;
    if (shape & SHAPE_DATE) {
        func__moment_need_date(&m);
        p = put_date_signed(p, &m);
    }
    if (shape == (SHAPE_DATE | SHAPE_TIME)) *p++ = ' ';
    if (shape & SHAPE_TIME) {
        func__moment_need_time(&m);
        p = put_time(p, &m, m.subsec);
    }
    return func__result_text(call, text, (size_t)(p - text), result_out);
}

static Err
run_date(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return shaped(call, argc, argv, SHAPE_DATE, result_out);
}
static Err
run_time(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return shaped(call, argc, argv, SHAPE_TIME, result_out);
}
static Err
run_datetime(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    return shaped(call, argc, argv, SHAPE_DATE | SHAPE_TIME, result_out);
}

static Err
run_julianday(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    Moment m;
    bool ok;
    Err err = func__moment_from_args(call, argc, argv, &m, &ok);
    if (err == OK && ok) *result_out = cell_real((f64)m.ms / (f64)MOMENT_DAY_MS);
    return err;
}

static Err
run_unixepoch(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    Moment m;
    bool ok;
    Err err = func__moment_from_args(call, argc, argv, &m, &ok);
    if (err != OK || !ok) return err;
    *result_out = m.subsec ? cell_real((f64)(m.ms - MOMENT_EPOCH_MS) / 1000.0)
                           : cell_int(m.ms / 1000 - MOMENT_EPOCH_MS / 1000);
    return OK;
}

/* ---- strftime ---- */

/* Days since January 1 of the same year. */
static i32
day_of_year(const Moment *m)
{
    Moment first = *m;
    first.has_ms = false;
    first.month = first.day = 1;
    func__moment_need_ms(&first);
    return (i32)((m->ms - first.ms + MOMENT_DAY_MS / 2) / MOMENT_DAY_MS);
}

/* Days since the last Monday, or Sunday. */
static i32
days_after_monday(const Moment *m)
{
    return (i32)((m->ms + MOMENT_DAY_MS / 2) / MOMENT_DAY_MS % 7);
}
static i32
days_after_sunday(const Moment *m)
{
    return (i32)((m->ms + 3 * (MOMENT_DAY_MS / 2)) / MOMENT_DAY_MS % 7);
}

/* The Thursday of the same week: its year is the ISO year. */
static Moment
iso_thursday(const Moment *m)
{
    Moment thursday = *m;
    thursday.ms += (i64)(3 - days_after_monday(m)) * MOMENT_DAY_MS;
    thursday.has_date = false;
    func__moment_need_date(&thursday);
    return thursday;
}

static char *
put_seconds(char *p, f64 seconds)
{
    if (seconds > 59.999) seconds = 59.999;
    if (seconds < 9.9995) *p++ = '0';
    return p + func__put_real(p, seconds, 'f', 3);
}

/* Conversions of weeks and years by ISO 8601 and by first Sundays and Mondays. */
static char *
put_week(char *p, u8 letter, const Moment *m)
{
    Moment thursday;
    switch (letter) {
    case 'U': return put_number(p, (day_of_year(m) - days_after_sunday(m) + 7) / 7, 2, '0');
    case 'W': return put_number(p, (day_of_year(m) - days_after_monday(m) + 7) / 7, 2, '0');
    default: break;
    }
    thursday = iso_thursday(m);
    if (letter == 'V') return put_number(p, day_of_year(&thursday) / 7 + 1, 2, '0');
    if (letter == 'g') return put_number(p, thursday.year % 100, 2, '0');
    return put_number(p, thursday.year, 4, '0');
}

/* One conversion; NULL for a letter that is none. */
static char *
put_conversion(char *p, u8 letter, const Moment *m)
{
    i32 hour12 = m->hour % 12 == 0 ? 12 : m->hour % 12;
    switch (letter) {
    case 'd': return put_number(p, m->day, 2, '0');
    case 'e': return put_number(p, m->day, 2, ' ');
    case 'f': return put_seconds(p, m->seconds);
    case 'F': return put_date(p, m);
    case 'H': return put_number(p, m->hour, 2, '0');
    case 'k': return put_number(p, m->hour, 2, ' ');
    case 'I': return put_number(p, hour12, 2, '0');
    case 'l': return put_number(p, hour12, 2, ' ');
    case 'j': return put_number(p, day_of_year(m) + 1, 3, '0');
    case 'J': return p + func__put_real(p, (f64)m->ms / (f64)MOMENT_DAY_MS, 'g', 16);
    case 'm': return put_number(p, m->month, 2, '0');
    case 'M': return put_number(p, m->minute, 2, '0');
    case 'p': memcpy(p, m->hour >= 12 ? "PM" : "AM", 2); return p + 2;
    case 'P': memcpy(p, m->hour >= 12 ? "pm" : "am", 2); return p + 2;
    case 'R': return put_hour_minute(p, m);
    case 's':
        if (m->subsec) {
            return p + func__put_real(p, (f64)(m->ms - MOMENT_EPOCH_MS) / 1000.0, 'f', 3);
        }
        return p + number_put_int(p, m->ms / 1000 - MOMENT_EPOCH_MS / 1000);
    case 'S': return put_number(p, (i32)m->seconds, 2, '0');
    case 'T': return put_time(p, m, false);
    case 'u': *p = (char)('1' + (days_after_sunday(m) + 6) % 7); return p + 1;
    case 'w': *p = (char)('0' + days_after_sunday(m)); return p + 1;
    case 'U':
    case 'V':
    case 'W':
    case 'G':
    case 'g': return put_week(p, letter, m);
    case 'Y': return put_number(p, m->year, 4, '0');
    case '%': *p = '%'; return p + 1;
    default: return NULL;
    }
}

static Err
run_strftime(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    Moment m;
    Slice format;
    bool ok;
    if (argc == 0 || argv[0].type == CELL_NULL) return OK;
    Err err = func__c_text_arg(call, &argv[0], &format);
    if (err == OK) err = func__moment_from_args(call, argc - 1, argv + 1, &m, &ok);
    if (err != OK || !ok) return err;
    func__moment_need_date(&m);
    func__moment_need_time(&m);

    Buf out = {0};
    const u8 *p = format.p, *end = p + format.bytes;
    while (err == OK && p < end) {
        const u8 *percent = memchr(p, '%', (size_t)(end - p));
        if (percent == NULL) percent = end;
        err = buf_append(&out, p, (size_t)(percent - p));
        p = percent;
        if (err != OK || p == end) break;
        char text[64];
        char *stop = p + 1 < end ? put_conversion(text, p[1], &m) : NULL;
        if (stop == NULL) {
            buf_free(&out);
            return OK; /* NULL for the whole. */
        }
        err = buf_append(&out, text, (size_t)(stop - text));
        p += 2;
    }
    if (err == OK) err = func__result_text(call, out.p, out.bytes, result_out);
    buf_free(&out);
    return err;
}

/* ---- timediff ---- */

static void
renew_ms(Moment *m)
{
    m->has_ms = false;
    func__moment_need_ms(m);
}

/*
 * Bring `from` to the year and month of `to`, counting, then step months back (or on) until it is
 * not past `to`.  `direction` 1: from <= to.
 */
static void
count_months(const Moment *to, Moment *from, i32 direction, i32 *years_out, i32 *months_out)
{
    i32 years = direction * (to->year - from->year);
    if (years != 0) {
        from->year = to->year;
        renew_ms(from);
    }
    i32 months = direction * (to->month - from->month);
    if (months < 0) {
        years--;
        months += 12;
    }
    if (months != 0) {
        from->month = to->month;
        renew_ms(from);
    }
    while (direction > 0 ? to->ms < from->ms : to->ms > from->ms) {
        if (--months < 0) {
            months = 11;
            years--;
        }
        from->month -= direction;
        if (from->month < 1) {
            from->month = 12;
            from->year--;
        } else if (from->month > 12) {
            from->month = 1;
            from->year++;
        }
        renew_ms(from);
    }
    *years_out = years;
    *months_out = months;
}

static Err
run_timediff(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out)
{
    (void)argc;
    Moment to, from;
    bool ok;
    Err err = func__moment_from_args(call, 1, &argv[0], &to, &ok);
    if (err == OK && ok) err = func__moment_from_args(call, 1, &argv[1], &from, &ok);
    if (err != OK || !ok) return err;
    func__moment_need_date(&to);
    func__moment_need_time(&to);
    func__moment_need_date(&from);
    func__moment_need_time(&from);
    i32 direction = to.ms >= from.ms ? 1 : -1, years, months;
    count_months(&to, &from, direction, &years, &months);
    /* What is left, as days and time after a first of January. */
    Moment rest = {.ms = direction * (to.ms - from.ms) + 148699540800000, .has_ms = true};
    func__moment_need_date(&rest);
    func__moment_need_time(&rest);

    char text[64], *p = text;
    *p++ = direction > 0 ? '+' : '-';
    p = put_number(p, years, 4, '0');
    *p++ = '-';
    p = put_number(p, months, 2, '0');
    *p++ = '-';
    p = put_number(p, rest.day - 1, 2, '0');
    *p++ = ' ';
    p = put_hour_minute(p, &rest);
    *p++ = ':';
    p = put_seconds(p, rest.seconds);
    return func__result_text(call, text, (size_t)(p - text), result_out);
}

#define DATE(n, low, high, fn)                                                   \
    {                                                                            \
        .name = n, .argc_min = low, .argc_max = high, .kind = FUNC_SCALAR,       \
        .flags = FUNC_INNOCUOUS | FUNC_SLOW_CHANGE | FUNC_FALLIBLE, .scalar = fn \
    }

static const FuncDef DEFS[] = {
    DATE("date", 0, -1, run_date),           DATE("time", 0, -1, run_time),
    DATE("datetime", 0, -1, run_datetime),   DATE("julianday", 0, -1, run_julianday),
    DATE("unixepoch", 0, -1, run_unixepoch), DATE("strftime", 0, -1, run_strftime),
    DATE("timediff", 2, 2, run_timediff),    DATE("current_date", 0, 0, run_date),
    DATE("current_time", 0, 0, run_time),    DATE("current_timestamp", 0, 0, run_datetime),
};

FUNC_FAMILY(func__date, DEFS);
