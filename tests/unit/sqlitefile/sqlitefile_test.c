/*
 * sqlitefile_test.c -- SQLite's file format, read and written.
 *
 * Method: pinned bytes of numbers, records and texts; files of every page size, encoding and vacuum
 * mode are written, read back row for row, and checked by SQLite itself; every byte of a file's
 * first pages and random bytes elsewhere are damaged, and reading must end with an error or, in
 * salvage mode, with findings and the rows of the other pages; every allocation fails once.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/sqlitefile/memory_file.h"

static void
numbers_have_the_documented_bytes(void **state)
{
    (void)state;
    static const u64 edge[] = {0,       1,       127,        128,          16383,
                               16384,   2097151, 2097152,    (u64)1 << 56, ((u64)1 << 56) - 1,
                               U64_MAX, I64_MAX, U64_MAX - 1};
    u8 bytes[SQF_VARINT_BYTES];
    u64 back;
    for (u32 i = 0; i < COUNT_OF(edge); i++) {
        u32 used = sqf_varint_put(bytes, edge[i]);
        assert_int_equal(used, sqf_varint_bytes(edge[i]));
        assert_int_equal(sqf_varint_get(bytes, bytes + used, &back), used);
        assert_true(back == edge[i]);
        assert_int_equal(sqf_varint_get(bytes, bytes + used - 1, &back), 0);
    }
    static const u8 wanted[] = {0x81, 0x00};
    assert_int_equal(sqf_varint_put(bytes, 128), 2);
    assert_memory_equal(bytes, wanted, 2);
}

static void
records_have_the_documented_bytes(void **state)
{
    (void)state;
    Cell cell[] = {cell_null(),          cell_int(0),      cell_int(1),
                   cell_int(-2),         cell_int(300),    cell_int(-40000),
                   cell_real(2.0),       cell_real(2.0),   cell_text("h\xc3\xa4", 3),
                   cell_blob("\0\1", 2), cell_int(I64_MIN)};
    bool compact[COUNT_OF(cell)] = {[6] = true};
    static const u8 wanted[] = {12,   0,    8,    9,    1,    2,    3, 1, 7, 19, 16, 6, 0xfe, 0x01,
                                0x2c, 0xff, 0x63, 0xc0, 2,    0x40, 0, 0, 0, 0,  0,  0, 0,    'h',
                                0xc3, 0xa4, 0,    1,    0x80, 0,    0, 0, 0, 0,  0,  0};
    Buf out = {0};
    Arena arena;
    Cell back[16];
    u32 count;
    arena_init(&arena, NULL);
    assert_int_equal(sqf_record_encode(cell, COUNT_OF(cell), compact, SQF_UTF8, &out), OK);
    assert_int_equal(out.bytes, sizeof(wanted));
    assert_memory_equal(out.p, wanted, sizeof(wanted));
    assert_int_equal(sqf_record_decode(buf_slice(&out), SQF_UTF8, &arena, 16, back, &count), OK);
    assert_int_equal(count, COUNT_OF(cell));
    cell[6] = cell_int(2);
    for (u32 i = 0; i < count; i++)
        assert_true(cell_identical(&cell[i], &back[i]));
    for (size_t cut = 0; cut < out.bytes; cut++) {
        u8 *exact = mem_alloc(cut + 1); /* So that a stray read shows. */
        memcpy(exact, out.p, cut);
        Err err = sqf_record_decode(SLICE(exact, cut), SQF_UTF8, &arena, 16, back, &count);
        assert_int_equal(err, ERR_CORRUPT);
        mem_free(exact);
    }
    buf_free(&out);
    arena_free(&arena);
}

static void
text_goes_through_utf16(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    static const u8 le[] = {'a', 0, 0xe4, 0, 0xac, 0x20, 0x3d, 0xd8, 0, 0xde};
    static const u8 broken[] = {0x3d, 0xd8, 'x', 0, 0x00, 0xde, 7};
    Buf out = {0};
    Arena arena;
    Cell cell;
    arena_init(&arena, NULL);
    assert_int_equal(sqf_text_encode(SLICE_LITERAL(text), SQF_UTF16LE, &out), OK);
    assert_int_equal(out.bytes, sizeof(le));
    assert_memory_equal(out.p, le, sizeof(le));
    assert_int_equal(sqf_text_decode(out.p, out.bytes, SQF_UTF16LE, &arena, &cell), OK);
    assert_true(slice_equal(SLICE(cell.u.p, cell.bytes), SLICE_LITERAL(text)));
    assert_int_equal(sqf_text_decode(broken, sizeof(broken), SQF_UTF16LE, &arena, &cell), OK);
    assert_true(
        slice_equal(SLICE(cell.u.p, cell.bytes), SLICE_LITERAL("\xef\xbf\xbdx\xef\xbf\xbd")));
    buf_free(&out);
    arena_free(&arena);
}

/* SQLite's opinion of the bytes: "ok" or its first complaint. */
static void
sqlite_says(Slice bytes, u64 rows)
{
    char path[] = "/tmp/weft-sqlitefile-XXXXXX", sql[100];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.p, bytes.bytes), (ssize_t)bytes.bytes);
    close(fd);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("SQLite: %s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    sqlite3_finalize(stmt);
    snprintf(sql, sizeof(sql), "SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM w)");
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_true(sqlite3_column_int64(stmt, 0) == (i64)(2 * rows));
    sqlite3_finalize(stmt);
    /* It can be written to as well. */
    assert_int_equal(sqlite3_exec(db,
                                  "DELETE FROM t WHERE a % 3 = 0; INSERT INTO w SELECT a, 1, 2, 3, "
                                  "4 FROM t; VACUUM",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    unlink(path);
}

static void
files_of_every_kind_come_back(void **state)
{
    (void)state;
    static const u64 rows[] = {0, 1, 5, 40, 900};
    u64 seed = 1;
    for (u32 page_bytes = 512; page_bytes <= 65536; page_bytes *= 2) {
        for (u32 i = 0; i < 15; i++, seed++) {
            SqfCreate create = {.page_bytes = page_bytes,
                                .reserved_bytes = i % 4 == 3 ? 32 : 0,
                                .encoding = (SqfEncoding)(i % 3 + 1),
                                .vacuum = (SqfVacuum)(seed % 3)};
            Made made = {0};
            Seen seen = {0};
            u64 count = rows[i % COUNT_OF(rows)];
            if (page_bytes > 4096) count = MIN_OF(count, (u64)200);
            assert_int_equal(made_file(seed, count, &create, &made), OK);
            sqlite_says(buf_slice(&made.file), count);
            assert_int_equal(seen_file(buf_slice(&made.file), false, &seen, NULL), OK);
            assert_true(seen.rows == 2 * count && seen.hash == made.hash);
            buf_free(&made.file);
            arena_free(&seen.arena);
        }
    }
}

/* Read a damaged file both ways; nothing but the sanitizers and these limits judge. */
static void
read_damaged(const Made *made, u8 *bytes, u64 *kept_out)
{
    Seen strict = {0}, salvaged = {0};
    u64 findings = 0;
    Slice file = SLICE(bytes, made->file.bytes);
    Err err = seen_file(file, false, &strict, NULL);
    Err lenient = seen_file(file, true, &salvaged, &findings);
    assert_true(err == OK || err == ERR_CORRUPT || err == ERR_NOTADB || err == ERR_VERSION);
    assert_true(lenient == OK || lenient == ERR_NOTADB || lenient == ERR_VERSION ||
                lenient == ERR_CORRUPT);
    /* The header apart, salvage always ends well, and never finds less. */
    if (lenient == OK) assert_true(salvaged.rows >= strict.rows);
    if (lenient == OK && err == ERR_CORRUPT) assert_true(findings > 0);
    *kept_out += salvaged.rows;
    arena_free(&strict.arena);
    arena_free(&salvaged.arena);
}

static void
damage_is_met_with_errors(void **state)
{
    (void)state;
    SqfCreate create = {.page_bytes = 512, .encoding = SQF_UTF8, .vacuum = SQF_VACUUM_FULL};
    Made made = {0};
    u64 kept = 0;
    Rng rng;
    rng_seed(&rng, 7);
    assert_int_equal(made_file(3, 60, &create, &made), OK);
    u8 *bytes = mem_alloc(made.file.bytes);
    for (u32 at = 0; at < 512; at++) {
        memcpy(bytes, made.file.p, made.file.bytes);
        bytes[at] ^= (u8)(1 + rng_below(&rng, 255));
        read_damaged(&made, bytes, &kept);
    }
    kept = 0;
    for (u32 round = 0; round < 1500; round++) {
        memcpy(bytes, made.file.p, made.file.bytes);
        u64 times = 1 + rng_below(&rng, 4);
        for (u64 i = 0; i < times; i++) {
            u64 at = 512 + rng_below(&rng, made.file.bytes - 512);
            /* Half of it where a page has its head and pointers. */
            if (rng_below(&rng, 2) == 0) at = at / 512 * 512 + rng_below(&rng, 24);
            bytes[at] = (u8)rng_next(&rng);
        }
        read_damaged(&made, bytes, &kept);
    }
    assert_true(kept > 1500 * 60); /* Most rows of most files are there. */
    for (size_t cut = 0; cut < made.file.bytes; cut += 97) {
        Seen seen = {0};
        u8 *exact = mem_alloc(cut + 1);
        memcpy(exact, made.file.p, cut);
        Err err = seen_file(SLICE(exact, cut), true, &seen, NULL);
        assert_true(err == OK || err == ERR_NOTADB || err == ERR_CORRUPT);
        mem_free(exact);
        arena_free(&seen.arena);
    }
    mem_free(bytes);
    buf_free(&made.file);
}

static void
every_failing_allocation_is_survived(void **state)
{
    (void)state;
    SqfCreate create = {.page_bytes = 512, .encoding = SQF_UTF16LE, .vacuum = SQF_VACUUM_FULL};
    bool fired = true;
    u64 before = mem_live_blocks();
    for (u64 nth = 1; fired; nth++) {
        Made made = {0};
        Seen seen = {0};
        mem_fail_arm(nth, false);
        Err err = made_file(1, 20, &create, &made);
        if (err == OK) err = seen_file(buf_slice(&made.file), false, &seen, NULL);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        assert_true(!fired || err == ERR_NOMEM);
        assert_true(fired || err == OK);
        arena_free(&seen.arena);
        buf_free(&made.file);
        assert_true(mem_live_blocks() == before);
    }
}

static void
impossible_files_are_refused(void **state)
{
    (void)state;
    Buf file = {0};
    SqfTarget target = {&file, memory_write};
    SqfWriter *writer;
    ErrMsg msg = {0};
    SqfCreate bad[] = {{.page_bytes = 500},
                       {.page_bytes = 131072},
                       {.page_bytes = 512, .reserved_bytes = 40},
                       {.page_bytes = 1024, .reserved_bytes = 256}};
    for (u32 i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(sqf_writer_open(&bad[i], &target, 0, &writer, &msg), ERR_MISUSE);
    SqfCreate good = {0};
    assert_int_equal(sqf_writer_open(&good, &target, 1, &writer, &msg), OK);
    assert_int_equal(sqf_tree_begin(writer, 0, false, &msg), OK);
    assert_int_equal(sqf_tree_row(writer, 5, SLICE_LITERAL("\1"), &msg), OK);
    assert_int_equal(sqf_tree_row(writer, 5, SLICE_LITERAL("\1"), &msg), ERR_MISUSE);
    sqf_writer_close(writer);
    err_clear(&msg);
    buf_free(&file);
}

static void
file_put(const char *path, Slice bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.p, 1, bytes.bytes, file), bytes.bytes);
    fclose(file);
}

/* Somebody writes to the file, or replaces it, while it is read. */
static void
a_change_meanwhile_is_noticed(void **state)
{
    (void)state;
    SqfCreate create = {.page_bytes = 512, .encoding = SQF_UTF8};
    Made made = {0};
    char path[] = "/tmp/weft-sqlitefile-XXXXXX";
    ErrMsg msg = {0};
    Sqf *sqf;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(made_file(9, 30, &create, &made), OK);
    file_put(path, buf_slice(&made.file));
    assert_int_equal(sqf_open_file(path, false, NULL, NULL, &sqf, &msg), OK);
    assert_int_equal(sqf_unchanged(sqf, &msg), OK);
    made.file.p[SQF_AT_CHANGE_COUNTER + 3]++;
    file_put(path, buf_slice(&made.file));
    assert_int_equal(sqf_unchanged(sqf, &msg), ERR_BUSY);
    sqf_close(sqf);
    assert_int_equal(sqf_open_file(path, false, NULL, NULL, &sqf, &msg), OK);
    unlink(path);
    assert_int_equal(sqf_unchanged(sqf, &msg), ERR_BUSY);
    sqf_close(sqf);
    assert_int_equal(sqf_open_file(path, false, NULL, NULL, &sqf, &msg), ERR_NOTFOUND);
    err_clear(&msg);
    buf_free(&made.file);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_the_documented_bytes),
        cmocka_unit_test(records_have_the_documented_bytes),
        cmocka_unit_test(text_goes_through_utf16),
        cmocka_unit_test(files_of_every_kind_come_back),
        cmocka_unit_test(damage_is_met_with_errors),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(impossible_files_are_refused),
        cmocka_unit_test(a_change_meanwhile_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
