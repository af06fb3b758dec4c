/*
 * record_test.c -- rows as bytes.
 *
 * Method: random rows round-trip through every reader; recorded bytes pin the format; every flipped
 * bit and every cut is refused or read within bounds (blocks of exact size, for the sanitizer).
 */
#include "unit/value/oracle.h"
#include "value/record.h"

static void
records_have_the_documented_bytes(void **state)
{
    (void)state;
    Cell cells[] = {cell_null(),        cell_int(0),        cell_int(-2),
                    cell_int(300),      cell_real(0.5),     cell_real(3.0),
                    cell_text("ab", 2), cell_blob("\0", 1), cell_from_key()};
    static const u8 want[] = {0,  9,    0,  0x00, 0,  0x10, 1,    0x10, 3,    0x10, 11,   0x20,
                              12, 0x30, 14, 0x40, 15, 0x50, 15,   0xF0, 0xFE, 0x2C, 0x01, 0,
                              0,  0,    0,  0,    0,  0xE0, 0x3F, 3,    'a',  'b',  0};
    Buf out = {0};
    assert_int_equal(record_encode(cells, COUNT_OF(cells), &out), OK);
    assert_int_equal(out.bytes, sizeof(want));
    assert_memory_equal(out.p, want, sizeof(want));
    assert_int_equal(record_size(cells, COUNT_OF(cells)), sizeof(want));
    Record record;
    assert_int_equal(record_open(buf_slice(&out), &record), OK);
    assert_int_equal(record_column_type(&record, 5), CELL_REAL);
    assert_int_equal(record_column_type(&record, 8), 0xFF);
    Cell back;
    assert_int_equal(record_column(&record, 8, &back), OK);
    assert_true(back.type == CELL_NULL && back.flags == CELL_FROM_KEY);
    buf_free(&out);
}

static void
check_reads(Slice bytes, const Cell *cells, u32 count)
{
    Record record;
    assert_int_equal(record_open(bytes, &record), OK);
    assert_int_equal(record.columns, count);
    Cell *back = mem_alloc_zeroed(sizeof(Cell) * (count + 1));
    u32 read;
    assert_int_equal(record_columns(&record, count + 1, back, &read), OK);
    assert_int_equal(read, count);
    for (u32 i = 0; i < count; i++) {
        Cell one;
        assert_true(cell_identical(&back[i], &cells[i]));
        assert_int_equal(record_column(&record, i, &one), OK);
        assert_true(cell_identical(&one, &cells[i]));
        assert_int_equal(record_column_type(&record, i), cells[i].type);
    }
    if (count > 1) {
        u16 wanted[3] = {(u16)(count - 1), 0, (u16)count};
        Cell some[3] = {cell_int(1), cell_int(2), cell_int(3)};
        assert_int_equal(record_columns_some(&record, wanted, 3, some), OK);
        assert_true(cell_identical(&some[0], &cells[count - 1]));
        assert_true(cell_identical(&some[1], &cells[0]));
        assert_true(some[2].u.i == 3); /* Not there: left alone. */
    }
    mem_free(back);
}

static void
rows_round_trip(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 41);
    enum { COLUMNS_MAX = 600 };
    Cell *cells = mem_alloc(sizeof(Cell) * COLUMNS_MAX);
    u8(*room)[64] = mem_alloc(COLUMNS_MAX * 64);
    Buf out = {0};
    for (u32 trial = 0; trial < 3000; trial++) {
        u32 count = (u32)rng_below(&rng, trial % 50 == 0 ? COLUMNS_MAX : 12);
        for (u32 i = 0; i < count; i++) {
            cells[i] = random_cell(&rng, room[i]);
        }
        buf_clear(&out);
        assert_int_equal(record_encode(cells, count, &out), OK);
        assert_int_equal(record_size(cells, count), out.bytes);
        u8 *exact = mem_alloc(out.bytes);
        memcpy(exact, out.p, out.bytes);
        check_reads(SLICE(exact, out.bytes), cells, count);
        mem_free(exact);
    }
    buf_free(&out);
    mem_free(cells);
    mem_free(room);
}

static void
wide_records_begin_where_they_must(void **state)
{
    (void)state;
    u8 *text = mem_alloc_zeroed(70000);
    Buf out = {0};
    static const u32 sizes[] = {4094, 4095, 4096, 70000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        Cell cells[] = {cell_text(text, sizes[i]), cell_null()};
        buf_clear(&out);
        assert_int_equal(record_encode(cells, 2, &out), OK);
        assert_int_equal(out.p[0], sizes[i] > 4095 ? 1 : 0);
        check_reads(buf_slice(&out), cells, 2);
    }
    LongRef ref;
    long_ref_set(&ref, 77, 1u << 29, text);
    Cell cells[] = {{.type = CELL_TEXT, .flags = CELL_BY_REF, .bytes = 1u << 29, .u.ref = &ref},
                    {.type = CELL_BLOB, .flags = CELL_BY_REF, .bytes = 1u << 29, .u.ref = &ref}};
    buf_clear(&out);
    assert_int_equal(record_encode(cells, 2, &out), OK);
    Record record;
    assert_int_equal(record_open(buf_slice(&out), &record), OK);
    Cell back[2];
    assert_int_equal(record_columns(&record, 2, back, NULL), OK);
    assert_true(back[0].type == CELL_TEXT && back[1].type == CELL_BLOB);
    assert_true(back[1].flags == CELL_BY_REF && back[1].bytes == 1u << 29);
    assert_int_equal(long_ref_tree(back[1].u.ref), 77);

    Cell huge[2] = {{.type = CELL_BLOB, .flags = CELL_ZEROBLOB, .bytes = 1u << 28},
                    {.type = CELL_BLOB, .flags = CELL_ZEROBLOB, .bytes = 1u << 28}};
    assert_int_equal(record_encode(huge, 2, &out), ERR_TOOBIG);
    assert_int_equal(record_size(huge, 2), 0);
    buf_free(&out);
    mem_free(text);
}

static void
damage_is_refused_or_read_within_bounds(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 42);
    Buf out = {0};
    for (u32 trial = 0; trial < 300; trial++) {
        Cell cells[8], back[9];
        u8 room[8][64];
        for (u32 i = 0; i < 8; i++) {
            cells[i] = random_cell(&rng, room[i]);
        }
        buf_clear(&out);
        assert_int_equal(record_encode(cells, 1 + (u32)rng_below(&rng, 8), &out), OK);
        for (size_t at = 0; at < out.bytes * 8; at++) {
            size_t bytes = at % 5 == 0 ? (size_t)rng_below(&rng, out.bytes) : out.bytes;
            u8 *exact = mem_alloc(MAX_OF(bytes, 1));
            memcpy(exact, out.p, bytes);
            if (at / 8 < bytes) exact[at / 8] ^= (u8)(1u << (at % 8));
            Record record;
            Err err = record_open(SLICE(exact, bytes), &record);
            if (err == OK) err = record_columns(&record, 9, back, NULL);
            assert_true(err == OK || err == ERR_CORRUPT);
            for (u32 i = 0; err == OK && i < MIN_OF(record.columns, 9); i++) {
                if ((back[i].type == CELL_TEXT || back[i].type == CELL_BLOB) &&
                    (back[i].flags & CELL_BY_REF) == 0 && back[i].bytes > 0) {
                    assert_true(back[i].u.p + back[i].bytes <= exact + bytes);
                }
            }
            mem_free(exact);
        }
    }
    buf_free(&out);
}

/* A record with columns replaced is the record of the replaced cells. */
static void
patched_records_are_whole(void **state)
{
    (void)state;
    static const char filler[2200] = "filler";
    Rng rng;
    rng_seed(&rng, 4);
    Buf old = {0}, want = {0}, got = {0};
    u32 patched = 0;
    for (u32 n = 0; n < 20000; n++) {
        Cell cells[6], fresh[3];
        u16 column[3];
        u32 count = 1 + (u32)rng_below(&rng, 6), changes = 1 + (u32)rng_below(&rng, 3);
        for (u32 i = 0; i < count + changes; i++) {
            Cell *cell = i < count ? &cells[i] : &fresh[i - count];
            switch (rng_below(&rng, 5)) {
            case 0: *cell = cell_null(); break;
            case 1: *cell = cell_int((i64)rng_next(&rng) >> rng_below(&rng, 64)); break;
            case 2: *cell = cell_real((f64)rng_below(&rng, 9) / 2); break;
            case 3: *cell = cell_text(filler, rng_below(&rng, 20)); break;
            default: *cell = cell_blob(filler, rng_below(&rng, 40) == 0 ? sizeof(filler) : 3);
            }
        }
        buf_clear(&old);
        buf_clear(&want);
        buf_clear(&got);
        assert_int_equal(record_encode(cells, count, &old), OK);
        for (u32 i = 0; i < changes; i++) {
            column[i] = (u16)rng_below(&rng, count);
            cells[column[i]] = fresh[i];
        }
        assert_int_equal(record_encode(cells, count, &want), OK);
        bool done;
        assert_int_equal(record_patch(buf_slice(&old), column, fresh, changes, &got, &done), OK);
        if (!done) continue;
        patched++;
        assert_true(slice_equal(buf_slice(&got), buf_slice(&want)));
    }
    assert_true(patched > 15000);
    buf_free(&old);
    buf_free(&want);
    buf_free(&got);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patched_records_are_whole),
        cmocka_unit_test(records_have_the_documented_bytes),
        cmocka_unit_test(rows_round_trip),
        cmocka_unit_test(wide_records_begin_where_they_must),
        cmocka_unit_test(damage_is_refused_or_read_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
