/*
 * func_moment.c -- the calendar, and reading moments from text and numbers.
 */
#include "func/func_moment.h"
#include "value/number.h"

#define YEAR_MIN (-4713)
#define YEAR_MAX 9999
/* Numbers below this are julian days. */
#define JULIAN_DAY_END 5373484.5

bool
func__is_blank(u8 c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool
func__is_digit(u8 c)
{
    return c >= '0' && c <= '9';
}

/* ---- calendar ---- */

static i64
floor_div(i64 a, i64 b)
{
    return a / b - (a % b < 0);
}

/* Days from 1970-01-01 to a date.  Years begin in March here, so that the leap day is the last. */
static i64
days_of_date(i64 year, i32 month, i32 day)
{
    i64 shifted = month <= 2 ? year - 1 : year;
    i32 march_month = month <= 2 ? month + 9 : month - 3;
    i64 leap_days = floor_div(shifted, 4) - floor_div(shifted, 100) + floor_div(shifted, 400);
    return shifted * 365 + leap_days + (153 * march_month + 2) / 5 + day - 1 - 719468;
}

static void
date_of_days(i64 days, Moment *m)
{
    i64 since = days + 719468; /* Days since March 1 of year 0. */
    i64 era = floor_div(since, 146097);
    i32 day_of_era = (i32)(since - era * 146097);
    i32 year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) /
                      365;
    i32 day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    i32 march_month = (5 * day_of_year + 2) / 153;
    m->day = day_of_year - (153 * march_month + 2) / 5 + 1;
    m->month = march_month < 10 ? march_month + 3 : march_month - 9;
    m->year = (i32)(year_of_era + era * 400) + (m->month <= 2);
}

static i32
days_in_month(i32 year, i32 month)
{
    static const u8 days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month < 1 || month > 12) return 30;
    return month == 2 && leap ? 29 : days[month - 1];
}

void
func__moment_measure_overflow(Moment *m)
{
    i32 last = days_in_month(m->year, m->month);
    m->days_over = m->day > last ? m->day - last : 0;
}

void
func__moment_carry_months(Moment *m)
{
    i32 years = m->month > 0 ? (m->month - 1) / 12 : (m->month - 12) / 12;
    m->year += years;
    m->month -= years * 12;
}

void
func__moment_drop_fields(Moment *m)
{
    m->has_date = m->has_time = false;
    m->zone_min = 0;
}

static void
fail(Moment *m)
{
    *m = (Moment){.error = true};
}

void
func__moment_need_ms(Moment *m)
{
    if (m->has_ms) return;
    i32 year = 2000, month = 1, day = 1;
    if (m->has_date) {
        year = m->year;
        month = m->month;
        day = m->day;
    } else if (m->has_time && m->hour == 24) {
        m->hour = 0;
        day = 2;
    }
    if (year < YEAR_MIN || year > YEAR_MAX || m->raw) {
        fail(m);
        return;
    }
    m->ms = days_of_date(year, month, day) * MOMENT_DAY_MS + MOMENT_EPOCH_MS;
    m->has_ms = true;
    if (!m->has_time) return;
    m->ms += (i64)m->hour * 3600000 + m->minute * 60000 + (i64)(m->seconds * 1000 + 0.5);
    if (m->zone_min == 0) return;
    m->ms -= (i64)m->zone_min * 60000;
    func__moment_drop_fields(m);
    m->utc = true;
    m->local = false;
}

void
func__moment_need_date(Moment *m)
{
    if (m->has_date) return;
    if (!m->has_ms) {
        m->year = 2000;
        m->month = m->day = 1;
    } else if (!func__moment_in_range(m->ms)) {
        fail(m);
        return;
    } else {
        date_of_days(floor_div(m->ms - MOMENT_EPOCH_MS, MOMENT_DAY_MS), m);
    }
    m->has_date = true;
}

void
func__moment_need_time(Moment *m)
{
    if (m->has_time) return;
    func__moment_need_ms(m);
    i32 day_ms = (i32)((m->ms + MOMENT_DAY_MS / 2) % MOMENT_DAY_MS);
    m->seconds = (day_ms % 60000) / 1000.0;
    m->minute = day_ms / 60000 % 60;
    m->hour = day_ms / 3600000;
    m->raw = false;
    m->has_time = true;
}

/* ---- reading ---- */

bool
func__moment_digits(MomentText *text, u32 count, i32 min, i32 max, i32 *value_out)
{
    i32 value = 0;
    for (u32 i = 0; i < count; i++) {
        u8 c = func__moment_peek(text, i);
        if (!func__is_digit(c)) return false;
        value = value * 10 + (c - '0');
    }
    if (value < min || value > max) return false;
    text->p += count;
    *value_out = value;
    return true;
}

static bool
read_byte(MomentText *text, u8 c)
{
    if (func__moment_peek(text, 0) != c) return false;
    text->p++;
    return true;
}

static void
skip_blanks(MomentText *text)
{
    while (func__is_blank(func__moment_peek(text, 0))) {
        text->p++;
    }
}

/* A zone (or none) and the end of the text. */
static bool
read_zone(MomentText *text, Moment *m)
{
    skip_blanks(text);
    m->zone_min = 0;
    u8 c = func__moment_peek(text, 0);
    if (c == 0) return true;
    if (c != '+' && c != '-' && c != 'Z' && c != 'z') return false;
    text->p++;
    if (c == '+' || c == '-') {
        i32 hours, minutes;
        if (!func__moment_digits(text, 2, 0, 14, &hours) || !read_byte(text, ':') ||
            !func__moment_digits(text, 2, 0, 59, &minutes)) {
            return false;
        }
        m->zone_min = (c == '-' ? -1 : 1) * (hours * 60 + minutes);
    }
    if (m->zone_min == 0) {
        m->utc = true;
        m->local = false;
    }
    skip_blanks(text);
    return func__moment_peek(text, 0) == 0;
}

/* .FFF, cut so that it never rounds up to a whole second. */
static f64
read_fraction(MomentText *text)
{
    if (func__moment_peek(text, 0) != '.' || !func__is_digit(func__moment_peek(text, 1))) return 0;
    f64 value = 0.0, scale = 1.0;
    text->p++;
    while (func__is_digit(func__moment_peek(text, 0))) {
        value = value * 10.0 + (*text->p++ - '0');
        scale *= 10.0;
    }
    value /= scale;
    return value > 0.999 ? 0.999 : value;
}

bool
func__moment_read_time(MomentText text, Moment *m)
{
    i32 hour, minute, second = 0;
    f64 fraction = 0.0;
    if (!func__moment_digits(&text, 2, 0, 24, &hour) || !read_byte(&text, ':') ||
        !func__moment_digits(&text, 2, 0, 59, &minute)) {
        return false;
    }
    if (read_byte(&text, ':')) {
        if (!func__moment_digits(&text, 2, 0, 59, &second)) return false;
        fraction = read_fraction(&text);
    }
    if (hour == 24 && (minute != 0 || second != 0 || fraction != 0.0)) return false;
    m->has_ms = false;
    m->raw = false;
    m->has_time = true;
    m->hour = hour;
    m->minute = minute;
    m->seconds = second + fraction;
    return read_zone(&text, m);
}

/* 24:00 is midnight of the day after. */
static void
carry_midnight(i32 *year, i32 *month, i32 *day)
{
    i32 last = days_in_month(*year, *month);
    if (++*day <= last) return;
    *day -= last;
    if (++*month <= 12) return;
    *month = 1;
    ++*year;
}

/* [-]YYYY-MM-DD [time] */
static bool
read_date(MomentText text, Moment *m)
{
    i32 year, month, day;
    bool negative = read_byte(&text, '-');
    if (!func__moment_digits(&text, 4, 0, 14712, &year) || !read_byte(&text, '-') ||
        !func__moment_digits(&text, 2, 1, 12, &month) || !read_byte(&text, '-') ||
        !func__moment_digits(&text, 2, 1, 31, &day)) {
        return false;
    }
    while (func__is_blank(func__moment_peek(&text, 0)) || func__moment_peek(&text, 0) == 'T') {
        text.p++;
    }
    if (func__moment_read_time(text, m)) {
        if (m->hour == 24) {
            m->hour = 0;
            carry_midnight(&year, &month, &day);
        }
    } else if (func__moment_peek(&text, 0) == 0) {
        m->has_time = false;
    } else {
        return false;
    }
    m->has_ms = false;
    m->has_date = true;
    m->year = negative ? -year : year;
    m->month = month;
    m->day = day;
    func__moment_measure_overflow(m);
    if (m->zone_min != 0) func__moment_need_ms(m);
    return true;
}

static void
set_number(Moment *m, f64 r)
{
    m->seconds = r;
    m->raw = true;
    if (r < 0.0 || r >= JULIAN_DAY_END) return;
    m->ms = (i64)(r * (f64)MOMENT_DAY_MS + 0.5);
    m->has_ms = true;
}

Err
func__moment_check_pure(FuncCall *call)
{
    if (call->pure_in == NULL) return OK;
    return err_set(call->msg, ERR_SQL, "non-deterministic use of %s() in %s", call->def->name,
                   call->pure_in);
}

static Err
set_now(FuncCall *call, Moment *m, bool *ok_out)
{
    Err err = func__moment_check_pure(call);
    if (err != OK) return err;
    if (call->env == NULL || call->env->now_ms == NULL) {
        return err_set(call->msg, ERR_MISUSE, "%s() needs a session", call->def->name);
    }
    m->ms = call->env->now_ms(call->env->arg) + MOMENT_EPOCH_MS;
    m->has_ms = true;
    m->utc = true;
    m->local = false;
    func__moment_drop_fields(m);
    *ok_out = m->ms > 0;
    return OK;
}

static bool
is_word(Slice text, const char *word)
{
    return slice_equal_nocase(text, SLICE(word, strlen(word)));
}

static Err
read_moment(FuncCall *call, Slice text, Moment *m, bool *ok_out)
{
    MomentText at = {text.p, text.p + text.bytes};
    *ok_out = true;
    if (read_date(at, m) || func__moment_read_time(at, m)) return OK;
    if (is_word(text, "now")) return set_now(call, m, ok_out);
    NumberScan scan = number_scan(text);
    if (scan.kind != NUMBER_NONE && scan.whole) {
        set_number(m, scan.r);
        return OK;
    }
    if (is_word(text, "subsec") || is_word(text, "subsecond")) {
        m->subsec = true;
        return set_now(call, m, ok_out);
    }
    *ok_out = false;
    return OK;
}

Err
func__moment_from_args(FuncCall *call, u32 argc, const Cell *argv, Moment *m, bool *ok_out)
{
    *m = (Moment){0};
    *ok_out = true;
    if (argc == 0) return set_now(call, m, ok_out);
    Err err = OK;
    Slice text;
    if (cell_is_number(&argv[0])) {
        set_number(m, cell_to_real(&argv[0]));
    } else if (argv[0].type == CELL_NULL) {
        *ok_out = false;
    } else {
        err = func__c_text_arg(call, &argv[0], &text);
        if (err == OK) err = read_moment(call, text, m, ok_out);
    }
    for (u32 i = 1; i < argc && err == OK && *ok_out; i++) {
        *ok_out = argv[i].type != CELL_NULL;
        if (*ok_out) err = func__c_text_arg(call, &argv[i], &text);
        if (err == OK && *ok_out) err = func__moment_modify(call, text, i, m, ok_out);
    }
    if (err != OK || !*ok_out) return err;
    func__moment_need_ms(m);
    *ok_out = !m->error && func__moment_in_range(m->ms);
    /* 2023-02-31 alone means March 3. */
    if (argc == 1 && m->has_date && m->day > 28) m->has_date = false;
    return OK;
}
