/*
 * key_test.c -- index keys and entries.
 *
 * Method: the table of the format, byte by byte; memcmp of random keys against cell_compare under
 * each collation, ascending and descending, one and several columns; entries give back their cells
 * bit for bit; cut keys; prefixes of texts; damaged bytes are refused without a stray read.
 */
#include "unit/value/oracle.h"
#include "value/key.h"
#include "value/record.h"
#include "value/sha256.h"

static const Collation *const COLLATIONS[] = {NULL, &collation_nocase, &collation_rtrim};

static void
keys_have_the_documented_bytes(void **state)
{
    (void)state;
    const struct {
        Cell cell;
        KeyColumn column;
        const char *bytes;
        size_t count;
    } cases[] = {
#define KEY(cell, column, text) {cell, column, text, sizeof(text) - 1}
#define PLAIN                   ((KeyColumn){0})
        KEY(cell_null(), PLAIN, "\x08"),
        KEY(cell_null(), ((KeyColumn){.nulls_last = true}), "\xFC"),
        KEY(cell_real(-__builtin_inf()), PLAIN, "\x16\x80\x0F\xFF\xFF\xFF\xFF\xFF\xFF"),
        KEY(cell_int(I64_MIN), PLAIN, "\x16\xBC\x1F\xFF\xFF\xFF\xFF\xFF\xFF"),
        KEY(cell_real(-9223372036854775808.0), PLAIN, "\x16\xBC\x1F\xFF\xFF\xFF\xFF\xFF\xFF"),
        KEY(cell_int(-300), PLAIN, "\x1D\xFD\xA7"),
        KEY(cell_real(-1.5), PLAIN, "\x1E\xFC\x7F\xFF\xFF\xFF\xFF\xFF\xFF"),
        KEY(cell_int(-1), PLAIN, "\x1E\xFD"),
        KEY(cell_real(-0.25), PLAIN, "\x1F\xC0\x2F\xFF\xFF\xFF\xFF\xFF\xFF"),
        KEY(cell_real(0.0), PLAIN, "\x20"),
        KEY(cell_real(-0.0), PLAIN, "\x20"),
        KEY(cell_int(0), PLAIN, "\x20"),
        KEY(cell_real(5e-324), PLAIN, "\x21\0\0\0\0\0\0\0\x01"),
        KEY(cell_real(0.5), PLAIN, "\x21\x3F\xE0\0\0\0\0\0\0"),
        KEY(cell_int(1), PLAIN, "\x22\x02"),
        KEY(cell_real(1.0), PLAIN, "\x22\x02"),
        KEY(cell_real(1.5), PLAIN, "\x22\x03\x80\0\0\0\0\0\0"),
        KEY(cell_int(127), PLAIN, "\x22\xFE"),
        KEY(cell_int(128), PLAIN, "\x23\x01\0"),
        KEY(cell_int(1000), PLAIN, "\x23\x07\xD0"),
        KEY(cell_int((i64)1 << 53), PLAIN, "\x28\x40\0\0\0\0\0\0"),
        KEY(cell_int(((i64)1 << 53) + 1), PLAIN, "\x28\x40\0\0\0\0\0\x02"),
        KEY(cell_int(I64_MAX), PLAIN, "\x29\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE"),
        KEY(cell_real(9223372036854775808.0), PLAIN, "\x2A\x43\xE0\0\0\0\0\0\0"),
        KEY(cell_text("", 0), PLAIN, "\x30\0"),
        KEY(cell_text("Ab", 2), PLAIN, "\x30\x41\x62\0"),
        KEY(cell_text("a\0b", 3), PLAIN, "\x30\x61\x01\x01\x62\0"),
        KEY(cell_text("\1", 1), PLAIN, "\x30\x01\x02\0"),
        KEY(cell_text("Ab ", 3), ((KeyColumn){.collation = &collation_nocase}),
            "\x30\x61\x62\x20\0"),
        KEY(cell_text("Ab ", 3), ((KeyColumn){.collation = &collation_rtrim}), "\x30\x41\x62\0"),
        KEY(cell_text("A\0b", 3), ((KeyColumn){.collation = &collation_nocase}),
            "\x30\x61\x01\x01\x01\x01\x01\x01\x01\x01\x03\0"),
        KEY(cell_blob("\0x", 2), PLAIN, "\x38\x01\x01x\0"),
        KEY(cell_int(300), ((KeyColumn){.desc = true}), "\xDC\xFD\xA7"),
        KEY(cell_text("a", 1), ((KeyColumn){.desc = true}), "\xCF\x9E\xFF"),
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Buf key = {0};
        assert_int_equal(key_append_cell(&key, &cases[i].cell, &cases[i].column), OK);
        assert_int_equal(key.bytes, cases[i].count);
        assert_memory_equal(key.p, cases[i].bytes, key.bytes);
        buf_free(&key);
    }
}

static void
row_suffixes_are_read_from_the_end(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 31);
    Buf key = {0}, last = {0};
    i64 last_rowid = 0;
    for (u32 i = 0; i < 20000; i++) {
        i64 rowid = random_int(&rng), back;
        size_t prefix;
        buf_clear(&key);
        assert_int_equal(key_append_rowid(&key, rowid), OK);
        if (i > 0) {
            int order = slice_compare(buf_slice(&key), buf_slice(&last));
            assert_int_equal((order > 0) - (order < 0),
                             (rowid > last_rowid) - (rowid < last_rowid));
        }
        buf_clear(&last);
        assert_int_equal(buf_append(&last, key.p, key.bytes), OK);
        last_rowid = rowid;
        assert_int_equal(key_rowid_suffix(buf_slice(&key), &back, &prefix), OK);
        assert_true(back == rowid && prefix == 0);
        u8 row[8], other[8];
        key_put_table_rowid(row, rowid);
        assert_true(key_table_rowid(row) == rowid);
        key_put_table_rowid(other, 0);
        int order = memcmp(row, other, 8);
        assert_int_equal((order > 0) - (order < 0), (rowid > 0) - (rowid < 0));
    }
    i64 back;
    size_t prefix;
    assert_int_equal(key_rowid_suffix(SLICE_LITERAL("\x81\x05\x82"), &back, &prefix), ERR_CORRUPT);
    assert_int_equal(key_rowid_suffix(SLICE_LITERAL("\x81"), &back, &prefix), ERR_CORRUPT);
    assert_int_equal(key_rowid_suffix(SLICE_LITERAL("\x20\x20"), &back, &prefix), ERR_CORRUPT);
    buf_free(&key);
    buf_free(&last);
}

static bool
starts_with(Slice key, Slice prefix)
{
    return key.bytes >= prefix.bytes && memcmp(key.p, prefix.p, prefix.bytes) == 0;
}

static void
key_order_is_the_order_of_values(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 32);
    Buf a_key = {0}, b_key = {0};
    for (u32 trial = 0; trial < 120000; trial++) {
        u8 room[2][64];
        Cell a = random_cell(&rng, room[0]), b = random_cell(&rng, room[1]);
        if (rng_below(&rng, 4) == 0 && a.type == CELL_INT) b = cell_real((f64)a.u.i);
        KeyColumn column = {.collation = COLLATIONS[rng_below(&rng, 3)],
                            .desc = rng_below(&rng, 2) == 0};
        buf_clear(&a_key);
        buf_clear(&b_key);
        assert_int_equal(key_append_cell(&a_key, &a, &column), OK);
        assert_int_equal(key_append_cell(&b_key, &b, &column), OK);
        int want = cell_compare(&a, &b, column.collation);
        int got = slice_compare(buf_slice(&a_key), buf_slice(&b_key));
        if (column.desc) got = -got;
        if ((got > 0) - (got < 0) != want) {
            oracle_print("a", &a);
            oracle_print("b", &b);
            fail();
        }
        if (want != 0) {
            assert_false(starts_with(buf_slice(&a_key), buf_slice(&b_key)));
            assert_false(starts_with(buf_slice(&b_key), buf_slice(&a_key)));
        }
        /* The end of the column is found whatever stands behind. */
        size_t bytes = a_key.bytes;
        assert_int_equal(buf_append(&a_key, "\xFF\x00\x38", 3), OK);
        assert_int_equal(key_column_bytes(a_key.p, a_key.p + a_key.bytes, column.desc), bytes);
        assert_int_equal(key_column_bytes(a_key.p, a_key.p + bytes - 1, column.desc), 0);
    }
    buf_free(&a_key);
    buf_free(&b_key);
}

enum { COLUMNS_MAX = 6 };

static void
random_layout(Rng *rng, KeyColumn *columns, KeyLayout *layout)
{
    layout->column = columns;
    layout->columns = 1 + (u32)rng_below(rng, COLUMNS_MAX);
    layout->rowid = (KeyRowid)rng_below(rng, 3);
    for (u32 i = 0; i < layout->columns; i++) {
        columns[i] = (KeyColumn){.collation = COLLATIONS[rng_below(rng, 3)],
                                 .desc = rng_below(rng, 2) == 0,
                                 .is_real = rng_below(rng, 4) == 0};
    }
}

static void
entries_give_back_their_cells(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 33);
    Buf key = {0}, value = {0};
    Arena arena;
    arena_init(&arena, NULL);
    u8 *big = mem_alloc(5000);
    for (u32 trial = 0; trial < 30000; trial++) {
        KeyColumn columns[COLUMNS_MAX];
        KeyLayout layout;
        Cell cells[COLUMNS_MAX], back[COLUMNS_MAX];
        u8 room[COLUMNS_MAX][64];
        random_layout(&rng, columns, &layout);
        for (u32 i = 0; i < layout.columns; i++) {
            cells[i] = random_cell(&rng, room[i]);
            if (columns[i].is_real && cells[i].type == CELL_INT) {
                cells[i] = cell_real((f64)cells[i].u.i);
            }
        }
        if (trial % 8 == 0) {
            size_t bytes = 900 + (size_t)rng_below(&rng, 200);
            for (size_t i = 0; i < bytes; i++) {
                big[i] = (u8)rng_below(&rng, 256);
            }
            cells[rng_below(&rng, layout.columns)] = trial % 16 == 0 ? cell_text(big, bytes)
                                                                     : cell_blob(big, bytes);
        }
        i64 rowid = random_int(&rng), rowid_back = 0;
        assert_int_equal(key_entry_encode(&layout, cells, NULL, rowid, &key, &value), OK);
        assert_true(key.bytes <= KEY_BYTES_WHOLE || key.bytes == KEY_BYTES_LONG);
        if (layout.rowid != KEY_NO_ROWID) {
            assert_int_equal(
                key_entry_rowid(&layout, buf_slice(&key), buf_slice(&value), &rowid_back), OK);
            assert_true(rowid_back == rowid);
        }
        assert_int_equal(
            key_entry_decode(&layout, buf_slice(&key), buf_slice(&value), &arena, back), OK);
        for (u32 i = 0; i < layout.columns; i++) {
            if (cell_identical(&cells[i], &back[i])) continue;
            oracle_print("cell", &cells[i]);
            oracle_print("back", &back[i]);
            fail();
        }
        arena_reset(&arena);
    }
    mem_free(big);
    arena_free(&arena);
    buf_free(&key);
    buf_free(&value);
}

static void
long_keys_are_cut_and_keep_their_columns(void **state)
{
    (void)state;
    u8 *text = mem_alloc(2000);
    memset(text, 'x', 2000);
    KeyColumn column = {0};
    KeyLayout layout = {.column = &column, .columns = 1, .rowid = KEY_ROWID_IN_KEY};
    Buf key = {0}, value = {0};

    /* 960 = tag + text + end + suffix of three bytes. */
    Cell cell = cell_text(text, 955);
    assert_int_equal(key_entry_encode(&layout, &cell, NULL, 7, &key, &value), OK);
    assert_int_equal(key.bytes, 960);
    assert_false(key_is_cut(buf_slice(&key)));
    assert_int_equal(value.bytes, 0);

    cell = cell_text(text, 956);
    assert_int_equal(key_entry_encode(&layout, &cell, NULL, 7, &key, &value), OK);
    assert_true(key_is_cut(buf_slice(&key)));
    u8 hash[SHA256_BYTES];
    sha256("\x81", 1, hash); /* All that was cut off: the last byte of the suffix. */
    assert_memory_equal(key.p + 960, hash, 16);

    /* A long value by reference goes into the value as one. */
    LongRef ref;
    long_ref_set(&ref, 5, 1500, text);
    Cell stored = {.type = CELL_TEXT, .flags = CELL_BY_REF, .bytes = 1500, .u.ref = &ref};
    cell = cell_text(text, 1500);
    assert_int_equal(key_entry_encode(&layout, &cell, &stored, -7, &key, &value), OK);
    assert_true(value.bytes < 64);
    Arena arena;
    arena_init(&arena, NULL);
    Cell back;
    i64 rowid;
    assert_int_equal(key_entry_decode(&layout, buf_slice(&key), buf_slice(&value), &arena, &back),
                     OK);
    assert_true(back.flags & CELL_BY_REF);
    assert_int_equal(long_ref_tree(back.u.ref), 5);
    assert_int_equal(long_ref_bytes(back.u.ref), 1500);
    assert_int_equal(key_entry_rowid(&layout, buf_slice(&key), buf_slice(&value), &rowid), OK);
    assert_int_equal(rowid, -7);
    arena_free(&arena);
    mem_free(text);
    buf_free(&key);
    buf_free(&value);
}

static void
unique_entries_with_null_carry_the_row_in_the_key(void **state)
{
    (void)state;
    KeyColumn columns[2] = {{0}};
    KeyLayout layout = {.column = columns, .columns = 2, .rowid = KEY_ROWID_IN_VALUE};
    Buf key = {0}, value = {0};
    Cell cells[2] = {cell_int(1), cell_int(2)};
    assert_int_equal(key_entry_encode(&layout, cells, NULL, 9, &key, &value), OK);
    assert_int_equal(key.bytes, 4);
    cells[1] = cell_null();
    assert_int_equal(key_entry_encode(&layout, cells, NULL, 9, &key, &value), OK);
    assert_int_equal(key.bytes, 2 + 1 + 3);
    i64 rowid;
    assert_int_equal(key_entry_rowid(&layout, buf_slice(&key), buf_slice(&value), &rowid), OK);
    assert_int_equal(rowid, 9);
    buf_free(&key);
    buf_free(&value);
}

static void
prefix_ends_bound_their_range(void **state)
{
    (void)state;
    u8 prefix[3] = {0x30, 0xFF, 0xFF};
    assert_int_equal(key_prefix_end(prefix, 3), 1);
    assert_int_equal(prefix[0], 0x31);
    u8 all[2] = {0xFF, 0xFF};
    assert_int_equal(key_prefix_end(all, 2), 0);
}

/* Damage a whole entry in every way a byte can be, and read it from a block of exactly its size. */
static void
damage_is_refused_or_read_within_bounds(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 34);
    Buf key = {0}, value = {0};
    Arena arena;
    arena_init(&arena, NULL);
    for (u32 trial = 0; trial < 60000; trial++) {
        KeyColumn columns[COLUMNS_MAX];
        KeyLayout layout;
        Cell cells[COLUMNS_MAX];
        u8 room[COLUMNS_MAX][64];
        random_layout(&rng, columns, &layout);
        for (u32 i = 0; i < layout.columns; i++) {
            cells[i] = random_cell(&rng, room[i]);
            if (columns[i].is_real && cells[i].type == CELL_INT) cells[i] = cell_null();
        }
        assert_int_equal(key_entry_encode(&layout, cells, NULL, 5, &key, &value), OK);
        Buf *victim = rng_below(&rng, 2) && value.bytes > 0 ? &value : &key;
        victim->p[rng_below(&rng, victim->bytes)] ^= (u8)(1u << rng_below(&rng, 8));
        if (rng_below(&rng, 3) == 0) victim->bytes = (size_t)rng_below(&rng, victim->bytes);
        u8 *k = mem_alloc(MAX_OF(key.bytes, 1)), *v = mem_alloc(MAX_OF(value.bytes, 1));
        if (key.bytes > 0) memcpy(k, key.p, key.bytes);
        if (value.bytes > 0) memcpy(v, value.p, value.bytes);
        Err err = key_entry_decode(&layout, SLICE(k, key.bytes), SLICE(v, value.bytes), &arena,
                                   cells);
        assert_true(err == OK || err == ERR_CORRUPT);
        i64 rowid;
        if (layout.rowid != KEY_NO_ROWID) {
            err = key_entry_rowid(&layout, SLICE(k, key.bytes), SLICE(v, value.bytes), &rowid);
            assert_true(err == OK || err == ERR_CORRUPT);
        }
        mem_free(k);
        mem_free(v);
        arena_reset(&arena);
    }
    arena_free(&arena);
    buf_free(&key);
    buf_free(&value);
}

static void
sha256_has_the_standard_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const u8 hash[8]; /* Its first bytes. */
    } cases[] = {
        {"", {0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14}},
        {"abc", {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea}},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         {0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8}},
    };
    u8 hash[SHA256_BYTES];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sha256(cases[i].text, strlen(cases[i].text), hash);
        assert_memory_equal(hash, cases[i].hash, 8);
    }
    u8 *million = mem_alloc(1000000);
    memset(million, 'a', 1000000);
    sha256(million, 1000000, hash);
    assert_memory_equal(hash, "\xcd\xc7\x6e\x5c\x99\x14\xfb\x92", 8);
    mem_free(million);
}

/* Random texts with bytes that keys escape: the prefix is that of the key that was made, and known
   for every plain text of seven bytes under BINARY. */
static void
text_prefixes_are_those_of_the_keys(void **state)
{
    static const u8 byte[] = {0, 1, 2, ' ', 'a', 'Z', 0xFF, 'b', 'c', 'd'};
    u64 random = 7;
    u32 known = 0;
    (void)state;
    for (u32 i = 0; i < 40000; i++) {
        u8 text[12];
        u32 bytes = i % 13;
        bool plain = bytes >= 7;
        for (u32 k = 0; k < bytes; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[k] = byte[(random >> 33) % sizeof(byte)];
            if ((i & 64) != 0 && text[k] < 2) text[k] = 'x';
            if (k < 7 && text[k] < 2) plain = false;
        }
        Cell cell = {.type = CELL_TEXT, .bytes = bytes, .u.p = text};
        for (u32 c = 0; c <= COUNT_OF(COLLATIONS); c++) {
            KeyColumn column = {.collation = c == 0 ? &collation_binary : COLLATIONS[c - 1],
                                .desc = (i & 128) != 0};
            Buf key = {0};
            u64 prefix;
            assert_int_equal(key_append_cell(&key, &cell, &column), OK);
            bool is_known = key_text_prefix(&cell, &column, &prefix);
            if (is_known) assert_true(prefix == load_be64(key.p));
            if (c <= 1) assert_int_equal(is_known, plain);
            known += is_known;
            buf_free(&key);
        }
    }
    assert_true(known > 1000);
    Cell number = cell_int(7);
    u64 prefix;
    assert_false(key_text_prefix(&number, &(KeyColumn){0}, &prefix));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_documented_bytes),
        cmocka_unit_test(row_suffixes_are_read_from_the_end),
        cmocka_unit_test(key_order_is_the_order_of_values),
        cmocka_unit_test(entries_give_back_their_cells),
        cmocka_unit_test(long_keys_are_cut_and_keep_their_columns),
        cmocka_unit_test(unique_entries_with_null_carry_the_row_in_the_key),
        cmocka_unit_test(text_prefixes_are_those_of_the_keys),
        cmocka_unit_test(prefix_ends_bound_their_range),
        cmocka_unit_test(damage_is_refused_or_read_within_bounds),
        cmocka_unit_test(sha256_has_the_standard_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
