/*
 * func_modifier.c -- the modifiers of date functions: '+1 day', 'start of month', 'utc' ...
 */
#include "func/func_moment.h"
#include "value/number.h"

typedef struct Modifier {
    FuncCall *call;
    Slice text;
    u32 index; /* Which argument it is. */
    Moment *m;
    bool ok;
} Modifier;

/* The text without `prefix`, in any case; false if it does not begin so. */
static bool
has_prefix(Slice text, const char *prefix, Slice *rest_out)
{
    size_t bytes = strlen(prefix);
    if (text.bytes < bytes || !slice_equal_nocase(SLICE(text.p, bytes), SLICE(prefix, bytes))) {
        return false;
    }
    *rest_out = SLICE(text.p + bytes, text.bytes - bytes);
    return true;
}

static bool
is_word(Slice text, const char *word)
{
    return slice_equal_nocase(text, SLICE(word, strlen(word)));
}

static void
need_fields(Moment *m)
{
    func__moment_need_date(m);
    func__moment_need_time(m);
}

static void
add_ms(Moment *m, i64 ms)
{
    m->ms = (i64)((u64)m->ms + (u64)ms); /* Wraps, and is then out of range. */
}

/* ---- what a number means ---- */

static void
set_unix_ms(Moment *m, f64 julian_ms)
{
    func__moment_drop_fields(m);
    m->ms = (i64)(julian_ms + 0.5);
    m->has_ms = true;
    m->raw = false;
}

static void
run_auto(Modifier *mod)
{
    Moment *m = mod->m;
    if (mod->index > 1) return;
    mod->ok = true;
    if (!m->raw || m->has_ms) {
        m->raw = false;
    } else if (m->seconds >= -210866760000.0 && m->seconds <= 253402300799.0) {
        set_unix_ms(m, m->seconds * 1000.0 + (f64)MOMENT_EPOCH_MS);
    }
}

static void
run_julianday(Modifier *mod)
{
    if (mod->index > 1 || !mod->m->has_ms || !mod->m->raw) return;
    mod->m->raw = false;
    mod->ok = true;
}

static void
run_unixepoch(Modifier *mod)
{
    if (mod->index > 1) return;
    f64 ms = mod->m->seconds * 1000.0 + (f64)MOMENT_EPOCH_MS;
    if (!(ms >= 0.0 && ms < (f64)(MOMENT_MS_MAX + 1))) return;
    set_unix_ms(mod->m, ms);
    mod->ok = true;
}

/* ---- local time ---- */

/* From UTC to local time.  Years outside of 1970-2037 borrow the rules of a year inside. */
static Err
to_local(FuncCall *call, Moment *m)
{
    func__moment_need_ms(m);
    Moment known = *m;
    i32 year_shift = 0;
    if (m->ms < MOMENT_EPOCH_MS || m->ms > 213014145600000) {
        need_fields(&known);
        year_shift = 2000 + known.year % 4 - known.year;
        known.year += year_shift;
        known.has_ms = false;
        func__moment_need_ms(&known);
    }
    i64 unix_s = known.ms / 1000 - MOMENT_EPOCH_MS / 1000;
    i32 offset_s;
    if (call->env == NULL || call->env->local_offset_s == NULL ||
        !call->env->local_offset_s(call->env->arg, unix_s, &offset_s)) {
        return err_set(call->msg, ERR_SQL, "local time unavailable");
    }
    Moment local = {.ms = (unix_s + offset_s) * 1000 + MOMENT_EPOCH_MS, .has_ms = true};
    need_fields(&local);
    m->year = local.year - year_shift;
    m->month = local.month;
    m->day = local.day;
    m->hour = local.hour;
    m->minute = local.minute;
    m->seconds = local.seconds + (f64)(m->ms % 1000) * 0.001;
    m->has_date = m->has_time = true;
    m->has_ms = m->raw = m->error = false;
    m->zone_min = 0;
    return OK;
}

static Err
run_localtime(Modifier *mod)
{
    Err err = func__moment_check_pure(mod->call);
    if (err == OK && !mod->m->local) err = to_local(mod->call, mod->m);
    if (err != OK) return err;
    mod->m->utc = false;
    mod->m->local = true;
    mod->ok = true;
    return OK;
}

/* From local time to UTC: guess, see what local time that is, correct. */
static Err
run_utc(Modifier *mod)
{
    Moment *m = mod->m;
    Err err = func__moment_check_pure(mod->call);
    if (err != OK) return err;
    mod->ok = true;
    if (m->utc) return OK;
    func__moment_need_ms(m);
    i64 wanted = m->ms, guess = m->ms, off = 0;
    for (u32 round = 0; round == 0 || (off != 0 && round <= 3); round++) {
        guess -= off;
        Moment local = {.ms = guess, .has_ms = true};
        err = to_local(mod->call, &local);
        if (err != OK) return err;
        func__moment_need_ms(&local);
        off = local.ms - wanted;
    }
    *m = (Moment){.ms = guess, .has_ms = true, .utc = true};
    return OK;
}

/* ---- edges and weekdays ---- */

static void
run_edge(Modifier *mod, Slice unit, bool end)
{
    Moment *m = mod->m;
    if (!m->has_ms && !m->has_date && !m->has_time) return;
    func__moment_need_date(m);
    m->has_time = true;
    m->hour = end ? 23 : 0;
    m->minute = end ? 59 : 0;
    m->seconds = end ? 59.999 : 0.0;
    m->raw = false;
    m->zone_min = 0;
    m->has_ms = false;
    mod->ok = true;
    if (is_word(unit, "day")) return;
    if (is_word(unit, "year")) {
        m->month = end ? 12 : 1;
        m->day = end ? 31 : 1;
    } else if (is_word(unit, "month")) {
        m->day = 1;
        if (!end) return;
        m->month++;
        if (m->month > 12) {
            m->month = 1;
            m->year++;
        }
        func__moment_measure_overflow(m);
        func__moment_need_ms(m);
        add_ms(m, -(i64)(m->days_over + 1) * MOMENT_DAY_MS);
        func__moment_drop_fields(m);
    } else {
        mod->ok = false;
    }
}

static void
run_weekday(Modifier *mod, Slice text)
{
    Moment *m = mod->m;
    NumberScan scan = number_scan(text);
    if (scan.kind == NUMBER_NONE || !scan.whole || scan.r < -6.0 || scan.r > 6.0) return;
    i32 wanted = (i32)scan.r;
    if ((f64)wanted != scan.r) return;
    if (wanted < 0) wanted = -wanted;
    need_fields(m);
    m->zone_min = 0;
    m->has_ms = false;
    func__moment_need_ms(m);
    i32 today = (i32)((m->ms + 3 * (MOMENT_DAY_MS / 2)) / MOMENT_DAY_MS % 7);
    if (today != wanted) {
        i32 days = wanted - today + (today > wanted ? 7 : 0);
        if (memchr(text.p, '-', text.bytes) != NULL) days -= 7;
        add_ms(m, (i64)days * MOMENT_DAY_MS);
    }
    func__moment_drop_fields(m);
    mod->ok = true;
}

/* ---- sums ---- */

static const struct {
    const char *name;
    f32 limit; /* Numbers must be smaller. */
    f32 seconds;
} UNITS[] = {
    {"second", 4.6427e+14f, 1.0f},    {"minute", 7.7379e+12f, 60.0f},
    {"hour", 1.2897e+11f, 3600.0f},   {"day", 5373485.0f, 86400.0f},
    {"month", 176546.0f, 2592000.0f}, {"year", 14713.0f, 31536000.0f},
};
enum { UNIT_MONTH = 4, UNIT_YEAR = 5 };

static void
add_unit(Moment *m, u32 unit, f64 count)
{
    f64 rounder = count < 0 ? -0.5 : 0.5;
    if (unit >= UNIT_MONTH) {
        i32 whole = (i32)count;
        need_fields(m);
        if (unit == UNIT_MONTH) {
            m->month += whole;
            func__moment_carry_months(m);
        } else {
            m->year += whole;
        }
        func__moment_measure_overflow(m);
        m->has_ms = false;
        count -= whole;
    }
    func__moment_need_ms(m);
    add_ms(m, (i64)(count * 1000.0 * (f64)UNITS[unit].seconds + rounder));
}

/* NNN unit */
static void
run_units(Modifier *mod, Slice name, f64 count)
{
    while (name.bytes > 0 && func__is_blank(*name.p)) {
        name = SLICE(name.p + 1, name.bytes - 1);
    }
    if (name.bytes < 3 || name.bytes > 10) return;
    if ((name.p[name.bytes - 1] | 0x20) == 's') name.bytes--;
    func__moment_need_ms(mod->m);
    mod->m->days_over = 0;
    for (u32 i = 0; i < COUNT_OF(UNITS); i++) {
        if (!is_word(name, UNITS[i].name)) continue;
        if (!(count > -(f64)UNITS[i].limit && count < (f64)UNITS[i].limit)) continue;
        add_unit(mod->m, i, count);
        mod->ok = true;
        break;
    }
    func__moment_drop_fields(mod->m);
}

/* HH:MM[:SS.FFF], added or (after '-') subtracted. */
static void
run_clock(Modifier *mod, MomentText text, bool subtract)
{
    Moment time = {0};
    if (!func__is_digit(func__moment_peek(&text, 0))) text.p++;
    if (!func__moment_read_time(text, &time)) return;
    func__moment_need_ms(&time);
    i64 ms = time.ms - MOMENT_DAY_MS / 2;
    ms %= MOMENT_DAY_MS;
    func__moment_need_ms(mod->m);
    func__moment_drop_fields(mod->m);
    add_ms(mod->m, subtract ? -ms : ms);
    mod->ok = true;
}

/* (+|-)YYYY-MM-DD [HH:MM...]; the year has `digits` digits. */
static void
run_calendar(Modifier *mod, u32 digits)
{
    Moment *m = mod->m;
    MomentText text = {mod->text.p + 1, mod->text.p + mod->text.bytes};
    u8 sign = *mod->text.p;
    i32 year, month, day;
    if (sign != '+' && sign != '-') return;
    if (!func__moment_digits(&text, digits, 0, 14712, &year)) return;
    if (func__moment_peek(&text, 0) != '-') return;
    text.p++;
    if (!func__moment_digits(&text, 2, 0, 11, &month)) return;
    if (func__moment_peek(&text, 0) != '-') return;
    text.p++;
    if (!func__moment_digits(&text, 2, 0, 30, &day)) return;

    i32 direction = sign == '-' ? -1 : 1;
    need_fields(m);
    m->has_ms = false;
    m->year += direction * year;
    m->month += direction * month;
    func__moment_carry_months(m);
    func__moment_measure_overflow(m);
    func__moment_need_ms(m);
    m->has_date = m->has_time = false;
    add_ms(m, (i64)direction * day * MOMENT_DAY_MS);
    if (func__moment_peek(&text, 0) == 0) {
        mod->ok = true;
        return;
    }
    if (!func__is_blank(func__moment_peek(&text, 0))) return;
    text.p++;
    MomentText ahead = text;
    i32 hour, minute;
    if (!func__moment_digits(&ahead, 2, 0, 24, &hour) || func__moment_peek(&ahead, 0) != ':')
        return;
    ahead.p++;
    if (!func__moment_digits(&ahead, 2, 0, 59, &minute)) return;
    run_clock(mod, text, sign == '-');
}

/* Where the number at the start of the text ends: at a colon, a blank, or the dash after a year. */
static size_t
number_bytes(Slice text)
{
    size_t n = 1;
    for (; n < text.bytes; n++) {
        if (text.p[n] == ':' || func__is_blank(text.p[n])) break;
        i32 year;
        MomentText digits = {text.p + 1, text.p + text.bytes};
        if (text.p[n] == '-' && (n == 5 || n == 6) &&
            func__moment_digits(&digits, (u32)n - 1, 0, 14712, &year)) {
            break;
        }
    }
    return n;
}

static void
run_number(Modifier *mod)
{
    size_t n = number_bytes(mod->text);
    NumberScan scan = number_scan(SLICE(mod->text.p, n));
    if (scan.kind == NUMBER_NONE || !scan.whole) return;
    u8 after = n < mod->text.bytes ? mod->text.p[n] : 0;
    MomentText text = {mod->text.p, mod->text.p + mod->text.bytes};
    if (after == '-') {
        run_calendar(mod, (u32)n - 1);
    } else if (after == ':') {
        run_clock(mod, text, *mod->text.p == '-');
    } else {
        run_units(mod, SLICE(mod->text.p + n, mod->text.bytes - n), scan.r);
    }
}

/* ---- words ---- */

static Err
run_word(Modifier *mod)
{
    Moment *m = mod->m;
    Slice rest;
    if (is_word(mod->text, "auto")) {
        run_auto(mod);
    } else if (is_word(mod->text, "julianday")) {
        run_julianday(mod);
    } else if (is_word(mod->text, "unixepoch") && m->raw) {
        run_unixepoch(mod);
    } else if (is_word(mod->text, "localtime")) {
        return run_localtime(mod);
    } else if (is_word(mod->text, "utc")) {
        return run_utc(mod);
    } else if (is_word(mod->text, "ceiling") || is_word(mod->text, "floor")) {
        bool back = (*mod->text.p | 0x20) == 'f';
        func__moment_need_ms(m);
        if (back) add_ms(m, -(i64)m->days_over * MOMENT_DAY_MS);
        func__moment_drop_fields(m);
        if (!back) m->days_over = 0;
        mod->ok = true;
    } else if (is_word(mod->text, "subsec") || is_word(mod->text, "subsecond")) {
        m->subsec = true;
        mod->ok = true;
    } else if (has_prefix(mod->text, "start of ", &rest)) {
        run_edge(mod, rest, false);
    } else if (has_prefix(mod->text, "end of ", &rest)) {
        run_edge(mod, rest, true);
    } else if (has_prefix(mod->text, "weekday ", &rest)) {
        run_weekday(mod, rest);
    }
    return OK;
}

Err
func__moment_modify(FuncCall *call, Slice text, u32 index, Moment *m, bool *ok_out)
{
    Modifier mod = {.call = call, .text = text, .index = index, .m = m};
    Err err = OK;
    if (text.bytes == 0) {
        /* No modifier. */
    } else if (*text.p == '+' || *text.p == '-' || func__is_digit(*text.p)) {
        run_number(&mod);
    } else {
        err = run_word(&mod);
    }
    *ok_out = mod.ok;
    return err;
}
