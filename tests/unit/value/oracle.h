/*
 * oracle.h -- SQLite as the oracle of value/ and func/: random cells, bound to a statement there,
 * and its results as cells.
 *
 * The installed library may be older than 3.54, whose rules we follow.  Where the two are known to
 * differ (text of reals, last digits), cells are drawn so that they agree, unless the library is
 * new enough.
 */
#pragma once

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/cmocka_all.h"
#include "value/value.h"

static inline bool
oracle_is_new(void)
{
    return sqlite3_libversion_number() >= 3054000;
}

static inline sqlite3 *
oracle_open(void)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) abort();
    return db;
}

static inline sqlite3_stmt *
oracle_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fprintf(stderr, "oracle: %s: %s\n", sql, sqlite3_errmsg(db));
        abort();
    }
    return stmt;
}

static inline void
oracle_bind(sqlite3_stmt *stmt, int at, const Cell *cell)
{
    int bytes = (int)cell->bytes;
    switch (cell->type) {
    case CELL_NULL: sqlite3_bind_null(stmt, at); break;
    case CELL_INT: sqlite3_bind_int64(stmt, at, cell->u.i); break;
    case CELL_REAL: sqlite3_bind_double(stmt, at, cell->u.r); break;
    case CELL_TEXT:
        sqlite3_bind_text(stmt, at, (const char *)cell->u.p, bytes, SQLITE_TRANSIENT);
        break;
    default:
        if (cell->flags & CELL_ZEROBLOB) {
            sqlite3_bind_zeroblob(stmt, at, bytes);
        } else {
            sqlite3_bind_blob(stmt, at, bytes == 0 ? (const void *)"" : cell->u.p, bytes,
                              SQLITE_TRANSIENT);
        }
    }
}

/* Points into the statement's row. */
static inline Cell
oracle_column(sqlite3_stmt *stmt, int at)
{
    switch (sqlite3_column_type(stmt, at)) {
    case SQLITE_INTEGER: return cell_int(sqlite3_column_int64(stmt, at));
    case SQLITE_FLOAT: return cell_real(sqlite3_column_double(stmt, at));
    case SQLITE_TEXT: {
        const void *p = sqlite3_column_text(stmt, at);
        return cell_text(p, (size_t)sqlite3_column_bytes(stmt, at));
    }
    case SQLITE_BLOB: {
        const void *p = sqlite3_column_blob(stmt, at);
        return cell_blob(p, (size_t)sqlite3_column_bytes(stmt, at));
    }
    default: return cell_null();
    }
}

static inline void
oracle_print(const char *what, const Cell *cell)
{
    fprintf(stderr, "  %s: ", what);
    switch (cell->type) {
    case CELL_NULL: fprintf(stderr, "NULL\n"); break;
    case CELL_INT: fprintf(stderr, "int %lld\n", (long long)cell->u.i); break;
    case CELL_REAL: fprintf(stderr, "real %.17g (%a)\n", cell->u.r, cell->u.r); break;
    default:
        fprintf(stderr, "%s[%u]%s '", cell->type == CELL_TEXT ? "text" : "blob", cell->bytes,
                cell->flags & CELL_ZEROBLOB ? " zeroblob" : "");
        for (u32 i = 0; i < cell->bytes && (cell->flags & CELL_ZEROBLOB) == 0; i++) {
            u8 c = cell->u.p[i];
            fprintf(stderr, c >= 32 && c < 127 ? "%c" : "\\x%02x", c);
        }
        fprintf(stderr, "'\n");
    }
}

/* ---- random cells ---- */

static inline i64
random_int(Rng *rng)
{
    static const i64 ends[] = {0,
                               1,
                               -1,
                               2,
                               63,
                               64,
                               65,
                               -64,
                               127,
                               128,
                               255,
                               256,
                               I64_MAX,
                               I64_MIN,
                               I64_MAX - 1,
                               I64_MIN + 1,
                               (i64)1 << 53,
                               ((i64)1 << 53) + 1,
                               ((i64)1 << 53) - 1,
                               -((i64)1 << 53) - 1,
                               (i64)1 << 51,
                               -((i64)1 << 51),
                               ((i64)1 << 51) - 1,
                               3037000500};
    switch (rng_below(rng, 4)) {
    case 0: return ends[rng_below(rng, COUNT_OF(ends))];
    case 1: return (i64)rng_below(rng, 200) - 100;
    default: {
        i64 v = (i64)(rng_next(rng) >> rng_below(rng, 64));
        return rng_below(rng, 2) ? (i64)(0 - (u64)v) : v;
    }
    }
}

static inline f64
random_real(Rng *rng)
{
    static const f64 ends[] = {0.0,  -0.0,  0.5,  -0.5,  1.0,  -1.0, 1.5,    0.1,
                               1e10, -1e10, 1e-3, 100.0, 2.25, 1e14, 3.75e5, 0.015625};
    static const f64 wild[] = {9007199254740992.0,
                               9007199254740994.0,
                               2251799813685248.0,
                               -2251799813685248.0,
                               2251799813685247.0,
                               9223372036854775808.0,
                               -9223372036854775808.0,
                               9223372036854774784.0,
                               -9223372036854774784.0,
                               9223372036854773760.0,
                               1e300,
                               5e-324,
                               1.7976931348623157e308,
                               2.2250738585072014e-308,
                               1e18,
                               1e19,
                               1.8446744073709552e19};
    if (oracle_is_new() && rng_below(rng, 3) == 0) {
        u64 bits = rng_next(rng);
        f64 r;
        memcpy(&r, &bits, sizeof(r));
        if (rng_below(rng, 2) == 0) return wild[rng_below(rng, COUNT_OF(wild))];
        if (rng_below(rng, 50) == 0) return (f64)__builtin_inff();
        return r - r == 0.0 ? r : 1.0 / 3;
    }
    if (rng_below(rng, 2) == 0) return ends[rng_below(rng, COUNT_OF(ends))];
    return (f64)((i64)rng_below(rng, 2000000) - 1000000) / (f64)((u64)1 << rng_below(rng, 6));
}

/* Text bytes into `p` (64 of room); returns how many. */
static inline size_t
random_text(Rng *rng, u8 *p)
{
    static const char *const words[] = {"",
                                        "a",
                                        "A",
                                        "ab",
                                        "AB ",
                                        "aB  ",
                                        " ",
                                        "abc",
                                        "_",
                                        "1",
                                        "1.0",
                                        "01",
                                        " 12",
                                        "12 ",
                                        "-7",
                                        "+7",
                                        "1e2",
                                        "1.5e1",
                                        ".5",
                                        "5.",
                                        "0x10",
                                        "1e",
                                        "-",
                                        "1 2",
                                        "12abc",
                                        "3.7xyz",
                                        "-0",
                                        "-0.0",
                                        "1e5x",
                                        "0.0",
                                        "00",
                                        "\xC3\xA4",
                                        "z",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "true",
                                        "100000000000000000000"};
    if (rng_below(rng, 2) == 0) {
        const char *word = words[rng_below(rng, COUNT_OF(words))];
        memcpy(p, word, strlen(word));
        return strlen(word);
    }
    static const u8 letters[] = "aAbBzZ019 ._-+eE%\0\n\xC3\xA4\xF0\x9F\x98\x80";
    size_t bytes = (size_t)rng_below(rng, 9);
    for (size_t i = 0; i < bytes; i++) {
        p[i] = letters[rng_below(rng, sizeof(letters) - 1)];
    }
    if (rng_below(rng, 3) != 0) { /* Mostly digits. */
        static const u8 digits[] = "0123456789.e-+ ";
        for (size_t i = 0; i < bytes; i++) {
            if (rng_below(rng, 2)) p[i] = digits[rng_below(rng, oracle_is_new() ? 15 : 10)];
        }
    }
    /* Older versions read a number before a NUL byte, and broken UTF-8, differently. */
    if (!oracle_is_new() && memchr(p, 0, bytes) != NULL) p[0] = 'z';
    for (size_t i = 0; i < bytes && !oracle_is_new(); i++) {
        if (p[i] >= 0x80) p[i] = 'y';
    }
    return bytes;
}

/* A random cell; its bytes go to `room` (64 bytes). */
static inline Cell
random_cell(Rng *rng, u8 *room)
{
    switch (rng_below(rng, 8)) {
    case 0: return cell_null();
    case 1:
    case 2: return cell_int(random_int(rng));
    case 3:
    case 4: return cell_real(random_real(rng));
    case 5:
    case 6: return cell_text(room, random_text(rng, room));
    default: {
        Cell cell = cell_blob(room, random_text(rng, room));
        if (rng_below(rng, 6) == 0) cell.flags = CELL_ZEROBLOB, cell.u.p = NULL;
        return cell;
    }
    }
}
