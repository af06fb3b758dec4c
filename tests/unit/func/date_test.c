/*
 * date_test.c -- date and time functions.
 *
 * Method: values recorded from SQLite 3.54.1; with a library that new, random moments and random
 * modifiers must give the same there and here, local time included.
 */
#include <time.h>

#include "unit/func/func_oracle.h"

static bool
local_offset_s(void *arg, i64 unix_s, i32 *offset_s_out)
{
    (void)arg;
    time_t t = (time_t)unix_s;
    struct tm tm;
    if (localtime_r(&t, &tm) == NULL) return false;
    *offset_s_out = (i32)tm.tm_gmtoff;
    return true;
}

static size_t
random_moment(Rng *rng, char *p)
{
    static const char *const zones[] = {"",       "",   "",       "Z",     " +02:00",
                                        "-11:30", "z ", "+00:00", "+15:00"};
    const char *zone = zones[rng_below(rng, COUNT_OF(zones))];
    int year = (int)rng_below(rng, rng_below(rng, 4) ? 2100 : 10000),
        month = (int)rng_below(rng, 13), day = 1 + (int)rng_below(rng, 31),
        hour = (int)rng_below(rng, 25), minute = (int)rng_below(rng, 60),
        second = (int)rng_below(rng, 60);
    if (rng_below(rng, 3)) hour %= 24;
    switch (rng_below(rng, 9)) {
    case 0: return (size_t)sprintf(p, "%04d-%02d-%02d", year, month, day);
    case 1:
        return (size_t)sprintf(p, "%s%04d-%02d-%02d %02d:%02d%s", rng_below(rng, 9) ? "" : "-",
                               year, month, day, hour, minute, zone);
    case 2:
        return (size_t)sprintf(p, "%02d:%02d:%02d.%03d%s", hour, minute, second,
                               (int)rng_below(rng, 1000), zone);
    case 3: return (size_t)sprintf(p, "%02d:%02d", hour, minute);
    case 4:
        return (size_t)sprintf(p, "%d.%d", (int)rng_below(rng, 5400000),
                               (int)rng_below(rng, 100000));
    case 5: return (size_t)sprintf(p, "%lld", (long long)rng_below(rng, 4000000000u) - 1000000000);
    default:
        return (size_t)sprintf(p, "%04d-%02d-%02d%c%02d:%02d:%02d.%0*d%s", year, month, day,
                               " T"[rng_below(rng, 2)], hour, minute, second,
                               1 + (int)rng_below(rng, 5), (int)rng_below(rng, 1000), zone);
    }
}

static size_t
random_modifier(Rng *rng, char *p)
{
    static const char *const words[] = {"start of day",
                                        "start of month",
                                        "start of year",
                                        "end of day",
                                        "end of month",
                                        "end of year",
                                        "START OF MONTH",
                                        "auto",
                                        "unixepoch",
                                        "julianday",
                                        "floor",
                                        "ceiling",
                                        "subsec",
                                        "subsecond",
                                        "localtime",
                                        "utc",
                                        "weekday 0",
                                        "weekday 3",
                                        "weekday -2",
                                        "weekday 9",
                                        "start of week",
                                        "bogus",
                                        "+",
                                        "start of",
                                        "weekday 1.5"};
    static const char *const units[] = {"second", "seconds", "minute", "hour",   "hours",
                                        "day",    "days",    "month",  "months", "MONTHS",
                                        "year",   "years",   "week"};
    switch (rng_below(rng, 5)) {
    case 0:
    case 1: return (size_t)sprintf(p, "%s", words[rng_below(rng, COUNT_OF(words))]);
    case 2:
        return (size_t)sprintf(p, "%c%02d:%02d:%02d", "+-0"[rng_below(rng, 3)],
                               (int)rng_below(rng, 25), (int)rng_below(rng, 60),
                               (int)rng_below(rng, 60));
    case 3:
        return (size_t)sprintf(p, "%c%04d-%02d-%02d%s", "+-"[rng_below(rng, 2)],
                               (int)rng_below(rng, 30), (int)rng_below(rng, 13),
                               (int)rng_below(rng, 32), rng_below(rng, 2) ? "" : " 12:34");
    default:
        return (size_t)sprintf(p, "%s%d%s %s", rng_below(rng, 2) ? "+" : "-",
                               (int)rng_below(rng, rng_below(rng, 3) ? 40 : 100000),
                               rng_below(rng, 3) ? "" : ".75",
                               units[rng_below(rng, COUNT_OF(units))]);
    }
}

static size_t
random_format(Rng *rng, char *p)
{
    static const char letters[] = "deEfFGgHkIlJjmMpPRsSTuUVwWYyx%";
    size_t at = 0;
    for (u64 n = rng_below(rng, 4); n > 0; n--) {
        at += (size_t)sprintf(p + at, "a%%%c",
                              letters[rng_below(rng, rng_below(rng, 9) ? 25 : 30)]);
    }
    return at;
}

static void
dates_agree_with_sqlite(void **state)
{
    (void)state;
    if (!oracle_is_new()) skip(); /* Many modifiers are new; see the recorded ones. */
    static const char *const names[] = {"date",      "time",     "datetime", "julianday",
                                        "unixepoch", "strftime", "timediff"};
    assert_int_equal(setenv("TZ", "Europe/Berlin", 1), 0);
    tzset();
    FuncOracle o;
    func_oracle_open(&o);
    o.env.local_offset_s = local_offset_s;
    Rng rng;
    rng_seed(&rng, 71);
    for (u32 n = 0; n < COUNT_OF(names); n++) {
        bool format = n == 5, diff = n == 6;
        for (u32 argc = format || diff ? 2 : 1; argc <= (diff ? 2u : 4u); argc++) {
            sqlite3_stmt *stmt = func_oracle_stmt(&o, names[n], argc);
            assert_non_null(stmt);
            for (u32 trial = 0; trial < 12000; trial++) {
                char text[4][128];
                Cell argv[4];
                for (u32 a = 0; a < argc; a++) {
                    bool moment = diff || a == (format ? 1u : 0u);
                    size_t bytes = format && a == 0 ? random_format(&rng, text[a])
                                   : moment         ? random_moment(&rng, text[a])
                                                    : random_modifier(&rng, text[a]);
                    argv[a] = cell_text(text[a], bytes);
                    if (moment && rng_below(&rng, 12) == 0) argv[a] = cell_real(random_real(&rng));
                    if (moment && rng_below(&rng, 12) == 0) argv[a] = cell_int(random_int(&rng));
                    if (rng_below(&rng, 200) == 0) argv[a] = cell_null();
                }
                func_oracle_check(&o, stmt, names[n], argc, argv);
            }
            sqlite3_finalize(stmt);
        }
    }
    func_oracle_close(&o);
}

static const struct {
    const char *name, *args[4], *want; /* Results as text, NULL for NULL. */
} RECORDED[] = {
    {"date", {"2023-02-31"}, "2023-03-03"},
    {"date", {"2024-02-29", "+1 year"}, "2025-03-01"},
    {"date", {"2024-02-29", "+1 year", "floor"}, "2025-02-28"},
    {"date", {"2023-01-31", "+1 month"}, "2023-03-03"},
    {"date", {"2023-01-31", "+1 month", "floor"}, "2023-02-28"},
    {"datetime", {"2023-12-31 24:00"}, "2024-01-01 00:00:00"},
    {"datetime", {"2023-06-15 12:34:56.789", "subsec"}, "2023-06-15 12:34:56.789"},
    {"datetime", {"2023-06-15T12:34:56+02:00"}, "2023-06-15 10:34:56"},
    {"time", {"12:00", "+90 minutes"}, "13:30:00"},
    {"time", {"00:00", "-1 second"}, "23:59:59"},
    {"datetime", {"1092941466", "unixepoch"}, "2004-08-19 18:51:06"},
    {"datetime", {"1092941466", "auto"}, "2004-08-19 18:51:06"},
    {"datetime", {"2460000.5"}, "2023-02-25 00:00:00"},
    {"datetime", {"-4713-11-24 12:00:00"}, "-4713-11-24 12:00:00"},
    {"datetime", {"9999-12-31 23:59:59", "+1 second"}, NULL},
    {"julianday", {"2000-01-01 12:00"}, "2451545.0"},
    {"unixepoch", {"1970-01-01 00:00:01"}, "1"},
    {"unixepoch", {"2023-06-15 12:34:56.789", "subsec"}, "1686832496.789"},
    {"date", {"2023-06-15", "weekday 0"}, "2023-06-18"},
    {"date", {"2023-06-15", "weekday -1"}, "2023-06-12"},
    {"date", {"2023-06-15", "start of year"}, "2023-01-01"},
    {"date", {"2023-06-15", "start of month", "+1 month", "-1 day"}, "2023-06-30"},
    {"datetime", {"2023-06-15", "end of month"}, "2023-06-30 23:59:59"},
    {"datetime", {"2023-06-15 10:00", "+0001-02-03 04:05"}, "2024-08-18 14:05:00"},
    {"datetime", {"2023-06-15 10:00", "-0001-02-03"}, "2022-04-12 10:00:00"},
    {"date", {"2023-13-01"}, NULL},
    {"date", {"2023-6-1"}, NULL},
    {"date", {"junk"}, NULL},
    {"date", {"2023-06-15", "junk"}, NULL},
    {"date", {"2023-06-15", "+1 fortnight"}, NULL},
    {"strftime", {"%Y-%m-%d %H:%M:%f", "2023-06-15 12:34:56.789"}, "2023-06-15 12:34:56.789"},
    {"strftime",
     {"%j %J %s %w %u %U %W %V %G %g", "2021-01-03 06:00"},
     "003 2459217.75 1609653600 0 7 01 00 53 2020 20"},
    {"strftime",
     {"%e %k %l %I %p %P %R %T %F", "2021-01-03 15:04:05"},
     " 3 15  3 03 PM pm 15:04 15:04:05 2021-01-03"},
    {"strftime", {"%%", "2021-01-03"}, "%"},
    {"strftime", {"%x", "2021-01-03"}, NULL},
    {"strftime", {"", "2021-01-03"}, ""},
    {"strftime", {"%V %G", "2020-12-31"}, "53 2020"},
    {"strftime", {"%V %G", "2018-12-31"}, "01 2019"},
    {"timediff", {"2023-06-15", "2022-01-31 12:00"}, "+0001-04-14 12:00:00.000"},
    {"timediff", {"2022-01-31 12:00", "2023-06-15"}, "-0001-04-14 12:00:00.000"},
    {"timediff", {"2000-02-29", "1999-03-01"}, "+0000-11-28 00:00:00.000"},
    {"timediff", {"2000-01-01", "2000-01-01"}, "+0000-00-00 00:00:00.000"},
    {"date", {"2023-06-15 12:00", "+12.5 hours"}, "2023-06-16"},
    {"date", {"2023-03-01", "-1 days"}, "2023-02-28"},
    {"datetime", {"12:00"}, "2000-01-01 12:00:00"},
    {"datetime", {"0"}, "-4713-11-24 12:00:00"},
};

static void
dates_as_recorded(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    for (size_t i = 0; i < COUNT_OF(RECORDED); i++) {
        Cell argv[4], got;
        u32 argc = 0;
        for (; argc < 4 && RECORDED[i].args[argc] != NULL; argc++) {
            argv[argc] = cell_text(RECORDED[i].args[argc], strlen(RECORDED[i].args[argc]));
        }
        assert_int_equal(func_oracle_call(&o, RECORDED[i].name, argc, argv, &got), OK);
        if (RECORDED[i].want == NULL) {
            assert_int_equal(got.type, CELL_NULL);
            continue;
        }
        assert_int_equal(cell_cast(&got, AFFINITY_TEXT, &o.arena), OK);
        assert_int_equal(got.bytes, strlen(RECORDED[i].want));
        assert_memory_equal(got.u.p, RECORDED[i].want, got.bytes);
    }
    func_oracle_close(&o);
}

static void
now_is_what_the_session_says(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    Cell got, argv[2] = {cell_text("now", 3), cell_text("localtime", 9)};
    assert_int_equal(func_oracle_call(&o, "date", 1, argv, &got), ERR_MISUSE);
    i64 now_ms = 1700000000123;
    o.env.arg = &now_ms;
    o.env.now_ms = func_oracle_now_ms;
    assert_int_equal(func_oracle_call(&o, "datetime", 1, argv, &got), OK);
    assert_memory_equal(got.u.p, "2023-11-14 22:13:20", 20);
    assert_int_equal(func_oracle_call(&o, "current_timestamp", 0, NULL, &got), OK);
    assert_memory_equal(got.u.p, "2023-11-14 22:13:20", 20);
    assert_int_equal(func_oracle_call(&o, "unixepoch", 0, NULL, &got), OK);
    assert_true(got.u.i == 1700000000);
    argv[0] = cell_text("subsec", 6);
    assert_int_equal(func_oracle_call(&o, "unixepoch", 1, argv, &got), OK);
    assert_true(got.u.r == 1700000000.123);
    assert_int_equal(func_oracle_call(&o, "date", 2, argv, &got), ERR_SQL);
    assert_string_equal(err_message(&o.msg), "local time unavailable");

    const FuncDef *def = func_find(&o.table, SLICE_LITERAL("date"), 1, NULL);
    FuncCall call = {.def = def,
                     .env = &o.env,
                     .arena = &o.arena,
                     .msg = &o.msg,
                     .pure_in = "a CHECK constraint"};
    argv[0] = cell_text("now", 3);
    assert_int_equal(def->scalar(&call, 1, argv, &got), ERR_SQL);
    assert_string_equal(err_message(&o.msg),
                        "non-deterministic use of date() in a CHECK constraint");
    func_oracle_close(&o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_agree_with_sqlite),
        cmocka_unit_test(dates_as_recorded),
        cmocka_unit_test(now_is_what_the_session_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
