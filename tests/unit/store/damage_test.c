/*
 * damage_test.c -- damaged files: an error that says so, or nothing lost; never a wrong answer.
 *
 * Method: make a store with an image and a log behind it, leave it open and copy its files. Damage
 * the copy (each bit of the heads, then random bits, bytes, runs, zeroed sectors, swapped blocks,
 * truncations) and open it.  Allowed are the errors that name damage, and the right contents; of
 * the log's very last commit, which nothing states to be durable, the loss is a torn tail.
 */
#include <fcntl.h>

#include "store_kit.h"

#define COMMITS 20u
#define ROWS    30u
#define FILES   2u

typedef struct Original {
    Kit kit;
    u8 *bytes[FILES];
    size_t count[FILES];
} Original;

static void
file_path(const Kit *kit, u32 file, char path[160])
{
    snprintf(path, 160, "%s%s", kit->path, file == 0 ? "" : "-log.00000001");
}

static void
write_whole(const Kit *kit, u32 file, const u8 *bytes, size_t count)
{
    char path[160];
    file_path(kit, file, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), (ssize_t)count);
    close(fd);
}

static void
read_whole(Original *original, u32 file)
{
    char path[160];
    file_path(&original->kit, file, path);
    RtStat stat;
    assert_int_equal(rt_file_stat(NULL, path, &stat, NULL), OK);
    original->count[file] = stat.size_bytes;
    original->bytes[file] = (u8 *)malloc(stat.size_bytes);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, original->bytes[file], stat.size_bytes), (ssize_t)stat.size_bytes);
    close(fd);
}

static void
make_original(Original *original)
{
    kit_start_fast(&original->kit);
    Store *store = kit_open(&original->kit);
    for (u32 number = 1; number <= COMMITS; number++) {
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        for (u32 row = 0; row < ROWS; row++) {
            char key[16], value[40];
            snprintf(key, sizeof(key), "key%03u", row);
            snprintf(value, sizeof(value), "%02u of row %u ...........", number, row);
            kit_put(txn, TREE_ROOT, key, value, STORE_PUT_ANY);
        }
        kit_commit(txn);
        if (number == COMMITS / 2) assert_int_equal(store_checkpoint(store, NULL), OK);
    }
    for (u32 file = 0; file < FILES; file++) {
        read_whole(original, file);
    }
    store_close(store);
}

static bool
is_damage(Err err)
{
    return err == ERR_CORRUPT || err == ERR_NOTADB || err == ERR_VERSION;
}

/* 0: refused as damaged; else the number of the last commit that is there. */
static u32
open_damaged(const Kit *kit)
{
    Store *store;
    ErrMsg msg = {0};
    Err err = kit_try_open(kit, &store, &msg);
    if (err != OK) {
        if (!is_damage(err)) print_error("%s: %s\n", err_name(err), err_message(&msg));
        assert_true(is_damage(err));
        err_clear(&msg);
        return 0;
    }
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    u32 number = 0;
    for (u32 row = 0; row < ROWS; row++) {
        char key[16], value[40];
        bool found;
        Slice got;
        snprintf(key, sizeof(key), "key%03u", row);
        assert_int_equal(store_get(txn, TREE_ROOT, kit_text(key), &found, &got), OK);
        assert_true(found && got.bytes > 2);
        if (row == 0) number = (u32)(got.p[0] - '0') * 10 + (u32)(got.p[1] - '0');
        snprintf(value, sizeof(value), "%02u of row %u ...........", number, row);
        assert_true(slice_equal(got, kit_text(value)));
    }
    u64 rows;
    assert_int_equal(store_count(txn, TREE_ROOT, &rows), OK);
    assert_int_equal(rows, ROWS);
    store_txn_rollback(txn);
    store_close(store);
    return number;
}

/* Open a copy in which `file` has these bytes; count the refusals. */
static void
try_bytes(const Original *original, u32 file, const u8 *bytes, size_t count, u32 *refused)
{
    Kit kit;
    kit_start_fast(&kit);
    for (u32 i = 0; i < FILES; i++) {
        if (i == file) {
            write_whole(&kit, i, bytes, count);
        } else {
            write_whole(&kit, i, original->bytes[i], original->count[i]);
        }
    }
    u32 number = open_damaged(&kit);
    assert_true(number == 0 || number >= COMMITS - 1);
    *refused += number == 0;
    kit_end(&kit);
}

static void
every_bit_of_the_heads(void **state)
{
    const Original *original = (const Original *)*state;
    u32 refused = 0;
    for (u32 file = 0; file < FILES; file++) {
        size_t count = original->count[file];
        u8 *bytes = (u8 *)malloc(count);
        for (u32 byte = 0; byte < 104; byte++) {
            /* Both copies of both slots at once, so that no other can help. */
            memcpy(bytes, original->bytes[file], count);
            for (u32 copy = 0; copy < (file == 0 ? 4 : 2); copy++) {
                bytes[copy * 4096 + byte] ^= (u8)(1u << (byte % 8));
            }
            u32 before = refused;
            try_bytes(original, file, bytes, count, &refused);
            bool used = file == 0 || byte < 64;
            assert_true(!used || refused > before);
        }
        free(bytes);
    }
}

static void
damage(Rng *rng, u8 *bytes, size_t *count)
{
    /* Mostly where something is: the first part of the file. */
    size_t reach = rng_below(rng, 4) == 0 ? *count : MIN_OF(*count, (size_t)60000);
    size_t at = rng_below(rng, reach);
    size_t run = MIN_OF((size_t)(1 + rng_below(rng, 700)), *count - at);
    switch (rng_below(rng, 6)) {
    case 0: bytes[at] ^= (u8)(1u << rng_below(rng, 8)); break;
    case 1: bytes[at] = (u8)rng_next(rng); break;
    case 2:
        for (size_t i = 0; i < run; i++) {
            bytes[at + i] = (u8)rng_next(rng);
        }
        break;
    case 3:
        memset(bytes + (at & ~(size_t)511), 0, MIN_OF((size_t)512, *count - (at & ~(size_t)511)));
        break;
    case 4: {
        size_t from = rng_below(rng, reach) & ~(size_t)63, to = at & ~(size_t)63;
        u8 block[64];
        if (from + 64 > *count || to + 64 > *count) break;
        memcpy(block, bytes + to, 64);
        memcpy(bytes + to, bytes + from, 64);
        memcpy(bytes + from, block, 64);
        break;
    }
    default: *count = at; break;
    }
}

static void
random_damage(void **state)
{
    const Original *original = (const Original *)*state;
    const char *wanted = getenv("STORE_SEEDS");
    u32 tries = wanted == NULL ? 500 : (u32)strtoul(wanted, NULL, 10);
    u32 refused = 0;
    Rng rng;
    rng_seed(&rng, 11);
    for (u32 i = 0; i < tries; i++) {
        u32 file = (u32)rng_below(&rng, FILES);
        size_t count = original->count[file];
        u8 *bytes = (u8 *)malloc(count);
        memcpy(bytes, original->bytes[file], count);
        damage(&rng, bytes, &count);
        if (file == 0 && count == 0) count = 1; /* An empty file is an empty store. */
        try_bytes(original, file, bytes, count, &refused);
        free(bytes);
    }
    assert_true(refused > tries / 8);
}

static void
missing_files(void **state)
{
    const Original *original = (const Original *)*state;
    for (u32 file = 0; file < FILES; file++) {
        Kit kit;
        kit_start_fast(&kit);
        write_whole(&kit, file, original->bytes[file], original->count[file]);
        if (file == 1) write_whole(&kit, 0, NULL, 0); /* The data file is lost, the log is not. */
        assert_int_equal(open_damaged(&kit), 0);
        kit_end(&kit);
    }
}

static int
setup(void **state)
{
    static Original original;
    make_original(&original);
    *state = &original;
    return 0;
}

static int
teardown(void **state)
{
    Original *original = (Original *)*state;
    for (u32 file = 0; file < FILES; file++) {
        free(original->bytes[file]);
    }
    kit_end(&original->kit);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_the_heads),
        cmocka_unit_test(random_damage),
        cmocka_unit_test(missing_files),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
