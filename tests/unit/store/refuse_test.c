/*
 * refuse_test.c -- each kind of bad input and bad luck has an error of its own.
 *
 * Method: a good store is closed; then its file is spoiled in one way, or one kind of system call
 * fails, and opening must give that error and a message that names it.  The file's bytes are what
 * they were before, and with the cause gone the store opens with every row.  A full disk is met in
 * a running store: what was refused can be taken back, reading goes on, and so does writing once
 * there is room.
 */
#include <errno.h>

#include "rt/fault.h"
#include "store/ckpt/super.h"
#include "store_kit.h"

#define ROWS 500u

static void
put_rows(StoreTxn *txn, const char *value)
{
    char key[16];
    for (u32 i = 0; i < ROWS; i++) {
        snprintf(key, sizeof(key), "%06u", i);
        kit_put(txn, TREE_ROOT, key, value, STORE_PUT_ANY);
    }
}

static void
expect_rows(Store *store, const char *value)
{
    char key[16];
    kit_check(store);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < ROWS; i++) {
        snprintf(key, sizeof(key), "%06u", i);
        kit_expect(txn, TREE_ROOT, key, value);
    }
    store_txn_rollback(txn);
}

static void
make_good(Kit *kit)
{
    kit_start_fast(kit);
    Store *store = kit_open(kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    put_rows(txn, "good");
    kit_commit(txn);
    store_close(store);
}

static u8 *
read_whole(const char *path, size_t *bytes_out)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *bytes_out = (size_t)ftell(file);
    rewind(file);
    u8 *bytes = (u8 *)malloc(*bytes_out + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *bytes_out, file), *bytes_out);
    fclose(file);
    return bytes;
}

static void
write_whole(const char *path, const u8 *bytes, size_t count)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void
expect_refused(const Kit *kit, Err wanted, const char *text)
{
    Store *store;
    ErrMsg msg = {0};
    Err err = kit_try_open(kit, &store, &msg);
    if (err != wanted || strstr(err_message(&msg), text) == NULL) {
        fail_msg("wanted %d \"%s\", got %d \"%s\"", (int)wanted, text, (int)err, err_message(&msg));
    }
    err_clear(&msg);
}

/* ---- spoiled files ---- */

typedef void (*SpoilSuper)(Super *super);

static void
seal(Super *super)
{
    super->checksum = checksum64(super, offsetof(Super, checksum), SUPER_MAGIC);
}

static void
wrong_magic(Super *super)
{
    super->magic ^= 0xff;
}

static void
newer_version(Super *super)
{
    super->version = SUPER_VERSION + 1;
    seal(super);
}

static void
format_one(Super *super)
{
    memcpy(super, "WEFTDB1", 8);
}

static void
odd_page_size(Super *super)
{
    super->page_bytes = 12288;
    seal(super);
}

static void
huge_page_size(Super *super)
{
    super->page_bytes = 1u << 30;
    seal(super);
}

static void
wrong_checksum(Super *super)
{
    super->cut_ts ^= 1;
}

static void
map_elsewhere(Super *super)
{
    super->directory = (u64)super->slots_end + 5;
    seal(super);
}

static void
no_such_description(Super *super)
{
    super->description = super->directory;
    seal(super);
}

static void
spoiled_superblocks_are_named(void **state)
{
    (void)state;
    static const struct {
        SpoilSuper spoil;
        Err err;
        const char *text;
    } cases[] = {
        {wrong_magic, ERR_NOTADB, "file is not a database"},
        {newer_version, ERR_VERSION, "file format 3 is not known"},
        {format_one, ERR_VERSION, "file format 1 is not supported any more"},
        {odd_page_size, ERR_CORRUPT, "no superblock of it is intact"},
        {huge_page_size, ERR_CORRUPT, "no superblock of it is intact"},
        {wrong_checksum, ERR_CORRUPT, "no superblock of it is intact"},
        {map_elsewhere, ERR_CORRUPT, "the chain of its checkpoint is broken"},
        {no_such_description, ERR_CORRUPT, "is damaged"},
    };
    Kit kit;
    make_good(&kit);
    size_t bytes, after_bytes;
    u8 *good = read_whole(kit.path, &bytes);
    for (u32 i = 0; i < COUNT_OF(cases); i++) {
        u8 *bad = (u8 *)malloc(bytes);
        assert_non_null(bad);
        memcpy(bad, good, bytes);
        for (u32 copy = 0; copy < 4; copy++) {
            Super super;
            memcpy(&super, bad + copy * SUPER_COPY_BYTES, sizeof(super));
            if (super.magic != SUPER_MAGIC) continue;
            cases[i].spoil(&super);
            memcpy(bad + copy * SUPER_COPY_BYTES, &super, sizeof(super));
        }
        write_whole(kit.path, bad, bytes);
        expect_refused(&kit, cases[i].err, cases[i].text);
        u8 *after = read_whole(kit.path, &after_bytes);
        assert_int_equal(after_bytes, bytes);
        assert_memory_equal(after, bad, bytes);
        free(after);
        free(bad);
    }
    write_whole(kit.path, good, bytes);
    Store *store = kit_open(&kit);
    expect_rows(store, "good");
    store_close(store);
    free(good);
    kit_end(&kit);
}

static void
spoiled_files_are_named(void **state)
{
    (void)state;
    Kit kit;
    make_good(&kit);
    size_t bytes;
    u8 *good = read_whole(kit.path, &bytes);
    write_whole(kit.path, good, 16384 + 100);
    expect_refused(&kit, ERR_CORRUPT, "it ends before slot ");
    write_whole(kit.path, good, 50);
    expect_refused(&kit, ERR_NOTADB, "file is not a database");
    u8 foreign[20000];
    memset(foreign, 'x', sizeof(foreign));
    write_whole(kit.path, foreign, sizeof(foreign));
    expect_refused(&kit, ERR_NOTADB, "file is not a database");
    memcpy(foreign, "SQLite format 3", 16);
    write_whole(kit.path, foreign, sizeof(foreign));
    expect_refused(&kit, ERR_NOTADB,
                   "is a SQLite database; to bring its contents over run: weft import");
    free(good);
    kit_end(&kit);
}

/* ---- who may not ---- */

static void
a_second_owner_is_told(void **state)
{
    (void)state;
    Kit kit;
    make_good(&kit);
    RtFile *file;
    assert_int_equal(rt_file_open(NULL, kit.path, RT_FILE_READ | RT_FILE_WRITE, &file, NULL), OK);
    assert_int_equal(rt_file_own(file, true, NULL, NULL), OK);
    expect_refused(&kit, ERR_OWNED, "is in use by another copy of the engine in this process");
    rt_file_close(file);
    Store *store = kit_open(&kit);
    expect_rows(store, "good");
    store_close(store);
    kit_end(&kit);
}

/* Without regard to who runs the tests: the system's answer is made up. */
static void
what_the_system_refuses_is_named(void **state)
{
    (void)state;
    static const struct {
        u32 calls;
        int error;
        Err err;
        const char *text;
    } cases[] = {
        {RT_FAULT_OPEN, EACCES, ERR_PERM, "Permission denied"},
        {RT_FAULT_OPEN, EROFS, ERR_READONLY, "Read-only file system"},
        {RT_FAULT_OPEN, EMFILE, ERR_LIMIT, "Too many open files"},
        {RT_FAULT_OPEN, EIO, ERR_CANTOPEN, "Input/output error"},
        {RT_FAULT_READ, EIO, ERR_IO_READ, "Input/output error"},
    };
    Kit kit;
    make_good(&kit);
    for (u32 i = 0; i < COUNT_OF(cases); i++) {
        for (u32 nth = 1; nth <= 2; nth++) { /* The directory, then the file. */
            rt_fault_only(cases[i].calls);
            rt_fault_arm_onwards(nth, cases[i].error);
            expect_refused(&kit, cases[i].err, cases[i].text);
            rt_fault_arm(0, 0);
        }
    }
    Store *store = kit_open(&kit);
    expect_rows(store, "good");
    store_close(store);
    kit_end(&kit);
}

/* ---- in a running store ---- */

static void
a_full_disk_is_met_and_left(void **state)
{
    (void)state;
    Kit kit;
    make_good(&kit);
    Store *store = kit_open(&kit);
    for (u32 round = 0; round < 2; round++) { /* The log is to begin; and it has begun. */
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        put_rows(txn, "never");
        rt_fault_only(RT_FAULT_WRITE | RT_FAULT_SIZE);
        rt_fault_arm_onwards(1, ENOSPC);
        ErrMsg msg = {0};
        Err err = round == 0 ? store_txn_commit(txn, &msg) : OK;
        if (round == 0) {
            assert_int_equal(err, ERR_FULL);
            assert_non_null(strstr(err_message(&msg), "No space left on device"));
        } else {
            store_txn_rollback(txn);
            assert_int_equal(store_checkpoint(store, &msg), ERR_FULL);
        }
        assert_true(rt_fault_fired());
        err_clear(&msg);
        expect_rows(store, round == 0 ? "good" : "again");
        rt_fault_arm(0, 0);
        txn = kit_begin(store, STORE_SNAPSHOT);
        put_rows(txn, "again");
        kit_commit(txn);
        assert_int_equal(store_checkpoint(store, NULL), OK);
        txn = kit_begin(store, STORE_SNAPSHOT); /* For the next checkpoint. */
        put_rows(txn, "again");
        kit_commit(txn);
        expect_rows(store, "again");
    }
    /* The last close finds no room: nothing is lost. */
    rt_fault_only(RT_FAULT_WRITE | RT_FAULT_SIZE);
    rt_fault_arm_onwards(1, ENOSPC);
    store_close(store);
    assert_true(rt_fault_fired());
    rt_fault_arm(0, 0);
    store = kit_open(&kit);
    expect_rows(store, "again");
    store_close(store);
    kit_end(&kit);
}

/* Far more rows than the pool holds, not checkpointed: what is dirty cannot leave it. */
static Err
far_put(StoreTxn *txn, u32 row, u8 with)
{
    u8 key[8], value[2000];
    StoreVerdict verdict;
    store_be64(key, row);
    memset(value, with, sizeof(value));
    return store_put(txn, TREE_ROOT, (Slice){key, 8}, SLICE(value, sizeof(value)), STORE_PUT_ANY,
                     &verdict);
}

static void
a_pool_that_cannot_write_says_full(void **state)
{
    (void)state;
    const u32 rows = 5500; /* 11 MB, of which 8 fit; less than would start a checkpoint. */
    Kit kit;
    kit_start_fast(&kit);
    Store *store;
    StoreOptions options = {.create = true, .pool_bytes = (u64)8 << 20};
    assert_int_equal(store_open(rt_process_default(), kit.path, &options, &store, NULL), OK);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 row = 0; row < rows; row++) {
        assert_int_equal(far_put(txn, row, 'a'), OK);
    }
    kit_commit(txn);
    txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(far_put(txn, rows - 1, 'b'), OK); /* Its leaf is in the pool. */
    rt_fault_only(RT_FAULT_WRITE | RT_FAULT_SIZE);
    rt_fault_arm_onwards(1, ENOSPC);
    Err err = OK;
    for (u32 row = 0; row < rows && err == OK; row += 14) { /* Less than the log takes ahead. */
        err = far_put(txn, row, 'b');
    }
    assert_int_equal(err, ERR_FULL);
    assert_non_null(strstr(err_message(store_txn_error(txn)), err_text(ERR_FULL)));
    assert_true(rt_fault_calls() < 2000); /* It does not try every page again and again. */
    store_txn_rollback(txn);
    rt_fault_arm(0, 0);
    txn = kit_begin(store, STORE_SNAPSHOT); /* There is room again. */
    for (u32 row = 0; row < rows; row += 100) {
        assert_int_equal(far_put(txn, row, 'c'), OK);
    }
    kit_commit(txn);
    store_close(store);
    assert_int_equal(store_open(rt_process_default(), kit.path, &options, &store, NULL), OK);
    kit_check(store);
    txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 row = 0; row < rows; row++) {
        u8 key[8];
        bool found;
        Slice got;
        store_be64(key, row);
        assert_int_equal(store_get(txn, TREE_ROOT, (Slice){key, 8}, &found, &got), OK);
        assert_true(found && got.p[0] == (row % 100 == 0 ? 'c' : 'a'));
    }
    store_txn_rollback(txn);
    store_close(store);
    kit_end(&kit);
}

static void
a_failed_sync_is_named_and_ends_the_writing(void **state)
{
    (void)state;
    Kit kit;
    make_good(&kit);
    Store *store = kit_open(&kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    put_rows(txn, "known");
    kit_commit(txn);
    txn = kit_begin(store, STORE_SNAPSHOT);
    put_rows(txn, "unknown");
    rt_fault_only(RT_FAULT_SYNC);
    rt_fault_arm(1, EIO);
    ErrMsg msg = {0};
    assert_int_equal(store_txn_commit(txn, &msg), ERR_IO_SYNC);
    err_clear(&msg);
    rt_fault_arm(0, 0);
    expect_rows(store, "known");
    txn = kit_begin(store, STORE_SNAPSHOT);
    StoreVerdict verdict;
    Err err = store_put(txn, TREE_ROOT, kit_text("x"), kit_text("y"), STORE_PUT_ANY, &verdict);
    assert_int_equal(err, ERR_IO);
    store_txn_rollback(txn);
    store_close(store);
    kit_end(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spoiled_superblocks_are_named),
        cmocka_unit_test(spoiled_files_are_named),
        cmocka_unit_test(a_second_owner_is_told),
        cmocka_unit_test(what_the_system_refuses_is_named),
        cmocka_unit_test(a_full_disk_is_met_and_left),
        cmocka_unit_test(a_pool_that_cannot_write_says_full),
        cmocka_unit_test(a_failed_sync_is_named_and_ends_the_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
