/*
 * backup_test.c -- copies of a store that goes on being written.
 *
 * Method: rows, long values and an open transaction; the backup begins; between its steps all rows
 * are changed and checkpoints made, so that every slot that is not pinned is used again.  The copy
 * must hold exactly what was committed at the beginning, pass the check, and work as a store.  The
 * same with the pin planted away, which must be noticed; and with every allocation and every file
 * call failing once, or all from the nth on (as a crash would have it): under the copy's name there
 * is the whole of it or nothing, and a next backup succeeds.
 */
#include <errno.h>

#include "rt/fault.h"
#include "store_kit.h"

#define ROWS       240u
#define LONG_EACH  40u /* Every so manieth value is long. */
#define LONG_BYTES 40000u

typedef struct Scene {
    Kit kit;
    Store *store;
    char path[112]; /* Of the copy. */
    u8 *value;      /* LONG_BYTES. */
} Scene;

static Slice
value_of(Scene *scene, u32 row, u8 with)
{
    size_t bytes = row % LONG_EACH == 0 ? LONG_BYTES : 300;
    memset(scene->value, with, bytes);
    return (Slice){scene->value, bytes};
}

static Err
put_rows(Scene *scene, StoreTxn *txn, u8 with)
{
    Err err = OK;
    for (u32 row = 0; row < ROWS && err == OK; row++) {
        u8 key[8];
        StoreVerdict verdict;
        store_be64(key, row);
        err = store_put(txn, TREE_ROOT, (Slice){key, 8}, value_of(scene, row, with), STORE_PUT_ANY,
                        &verdict);
    }
    return err;
}

static Err
change_all(Scene *scene, u8 with)
{
    StoreTxn *txn;
    StoreTxnOptions options = {.level = STORE_SNAPSHOT, .sync = STORE_SYNC_NORMAL};
    Err err = store_txn_begin(scene->store, &options, &txn);
    if (err != OK) return err;
    err = put_rows(scene, txn, with);
    if (err == OK) return store_txn_commit(txn, NULL);
    store_txn_rollback(txn);
    return err;
}

static void
scene_start(Scene *scene)
{
    *scene = (Scene){0};
    kit_start_fast(&scene->kit);
    snprintf(scene->path, sizeof(scene->path), "%s/copy.db", scene->kit.dir);
    scene->value = (u8 *)malloc(LONG_BYTES);
    assert_non_null(scene->value);
    scene->store = kit_open(&scene->kit);
    assert_int_equal(change_all(scene, 'a'), OK);
}

static void
scene_end(Scene *scene)
{
    store_close(scene->store);
    free(scene->value);
    kit_end(&scene->kit);
}

/* Every row of the store at `path` is as change_all() made it, and nothing else is there. */
static void
expect_all(Scene *scene, Store *store, u8 with)
{
    kit_check(store);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    u64 rows;
    assert_int_equal(store_count(txn, TREE_ROOT, &rows), OK);
    assert_int_equal(rows, ROWS);
    for (u32 row = 0; row < ROWS; row++) {
        u8 key[8];
        bool found;
        Slice got;
        store_be64(key, row);
        assert_int_equal(store_get(txn, TREE_ROOT, (Slice){key, 8}, &found, &got), OK);
        assert_true(found && slice_equal(got, value_of(scene, row, with)));
    }
    store_txn_rollback(txn);
}

static void
expect_copy(Scene *scene, u8 with)
{
    Store *copy;
    ErrMsg msg = {0};
    StoreOptions options = {0};
    Err err = store_open(rt_process_default(), scene->path, &options, &copy, &msg);
    if (err != OK) print_error("copy: %s\n", err_message(&msg));
    assert_int_equal(err, OK);
    expect_all(scene, copy, with);
    store_close(copy);
}

/* ---- the copy ---- */

/* Back up in steps of seven pages, changing every row and making a checkpoint between them. */
static Err
backup_among_changes(Scene *scene, u32 changes)
{
    StoreBackup *backup;
    Err err = store_backup_open(scene->store, scene->path, &backup, NULL);
    if (err != OK) return err;
    bool more = true;
    u64 before = 0, done, most;
    for (u32 i = 0; more && err == OK; i++) {
        if (i < changes) err = change_all(scene, (u8)('b' + i));
        if (i < changes && err == OK) err = store_checkpoint(scene->store, NULL);
        if (err == OK) err = store_backup_step(backup, 7, &more, NULL);
        store_backup_progress(backup, &done, &most);
        assert_true(done <= before + 7 && done <= most);
        before = done;
    }
    if (err == OK) assert_int_equal(store_backup_step(backup, 1, &more, NULL), OK);
    store_backup_close(backup);
    return err;
}

static void
the_copy_is_of_its_beginning(void **state)
{
    (void)state;
    Scene scene;
    scene_start(&scene);
    /* Open at the cut, its pages are in the checkpoint: the copy must undo it. */
    StoreTxn *open = kit_begin(scene.store, STORE_SNAPSHOT);
    u8 key[8];
    StoreVerdict verdict;
    store_be64(key, ROWS + 5);
    assert_int_equal(store_put(open, TREE_ROOT, (Slice){key, 8}, value_of(&scene, 0, 'x'),
                               STORE_PUT_INSERT, &verdict),
                     OK);
    assert_int_equal(backup_among_changes(&scene, 6), OK);
    store_txn_rollback(open);
    expect_all(&scene, scene.store, 'g');
    expect_copy(&scene, 'a');
    expect_copy(&scene, 'a'); /* What the first has undone in memory is undone again. */

    /* It is a store like others: written, closed, opened. */
    Scene second = {.kit = scene.kit, .value = scene.value};
    StoreOptions options = {0};
    assert_int_equal(store_open(rt_process_default(), scene.path, &options, &second.store, NULL),
                     OK);
    assert_int_equal(change_all(&second, 'z'), OK);
    store_close(second.store);
    expect_copy(&scene, 'z');
    expect_all(&scene, scene.store, 'g');
    scene_end(&scene);
}

/* Pinned slots come back: many rounds of changes do not make the file grow. */
static void
space_comes_back_after_a_backup(void **state)
{
    (void)state;
    Scene scene;
    scene_start(&scene);
    StoreStats stats;
    u64 after_first = 0;
    for (u32 round = 0; round < 6; round++) {
        assert_int_equal(backup_among_changes(&scene, 3), OK);
        assert_int_equal(unlink(scene.path), 0);
        store_stats(scene.store, &stats);
        if (round == 1) after_first = stats.file_bytes;
    }
    assert_true(stats.file_bytes <= after_first + after_first / 4);
    scene_end(&scene);
}

/* Without the pin, slots are written over while they wait to be copied: each is verified. */
static void
a_missing_pin_is_noticed(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    Scene scene;
    scene_start(&scene);
    plant_set(159, true);
    Err err = backup_among_changes(&scene, 6);
    plant_set(159, false);
    assert_int_equal(err, ERR_CORRUPT);
    assert_int_equal(access(scene.path, F_OK), -1);
    assert_int_equal(change_all(&scene, 'y'), OK);
    assert_int_equal(backup_among_changes(&scene, 6), OK);
    expect_copy(&scene, 'y');
    scene_end(&scene);
#endif
}

static void
a_store_without_a_commit_is_copied(void **state)
{
    (void)state;
    Scene scene;
    scene_start(&scene);
    Kit kit;
    kit_start_fast(&kit);
    Store *empty = kit_open(&kit);
    StoreBackup *backup;
    bool more = true;
    assert_int_equal(store_backup_open(empty, scene.path, &backup, NULL), OK);
    while (more) {
        assert_int_equal(store_backup_step(backup, 100, &more, NULL), OK);
    }
    store_backup_close(backup);
    store_close(empty);
    kit_end(&kit);
    Scene second = {.kit = scene.kit, .value = scene.value};
    StoreOptions options = {0};
    assert_int_equal(store_open(rt_process_default(), scene.path, &options, &second.store, NULL),
                     OK);
    assert_int_equal(change_all(&second, 'q'), OK);
    store_close(second.store);
    expect_copy(&scene, 'q');
    scene_end(&scene);
}

/* ---- refusals ---- */

static void
expect_refused(Store *store, const char *path, Err wanted, const char *text)
{
    StoreBackup *backup;
    ErrMsg msg = {0};
    assert_int_equal(store_backup_open(store, path, &backup, &msg), wanted);
    assert_null(backup);
    if (strstr(err_message(&msg), text) == NULL) print_error("%s\n", err_message(&msg));
    assert_non_null(strstr(err_message(&msg), text));
    err_clear(&msg);
}

static void
touch(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("x", file) >= 0);
    fclose(file);
}

static void
what_cannot_be_is_refused(void **state)
{
    (void)state;
    Scene scene;
    scene_start(&scene);
    expect_refused(scene.store, scene.kit.path, ERR_EXISTS, "already exists");
    expect_refused(scene.store, "/nonexistent/copy.db", ERR_CANTOPEN, "unable to open");
    Store *memory = kit_open_memory();
    expect_refused(memory, scene.path, ERR_UNSUPPORTED, "in memory");
    store_close(memory);

    StoreBackup *backup;
    assert_int_equal(store_backup_open(scene.store, scene.path, &backup, NULL), OK);
    expect_refused(scene.store, scene.path, ERR_OWNED, "another backup");
    touch(scene.path); /* Somebody else makes it meanwhile: it is not written over. */
    ErrMsg msg = {0};
    bool more = true;
    Err err = OK;
    while (more && err == OK) {
        err = store_backup_step(backup, 1000, &more, &msg);
    }
    assert_int_equal(err, ERR_EXISTS);
    err_clear(&msg);
    store_backup_close(backup);
    assert_int_equal(unlink(scene.path), 0);

    char partial[128];
    snprintf(partial, sizeof(partial), "%s-partial", scene.path);
    assert_int_equal(access(partial, F_OK), -1);
    touch(partial); /* As a crash leaves it. */
    assert_int_equal(backup_among_changes(&scene, 0), OK);
    assert_int_equal(access(partial, F_OK), -1);
    expect_copy(&scene, 'a');
    scene_end(&scene);
}

/* A store opened to read only whose log is not in its file has pages in memory only. */
static void
a_log_that_cannot_be_applied_is_refused(void **state)
{
    (void)state;
    Scene scene;
    Kit after_kill;
    Store *store;
    scene_start(&scene);
    kit_copy(&scene.kit, &after_kill);
    StoreOptions options = {.read_only = true};
    assert_int_equal(store_open(rt_process_default(), after_kill.path, &options, &store, NULL), OK);
    expect_refused(store, scene.path, ERR_UNSUPPORTED, "needs its log");
    store_close(store);
    kit_end(&after_kill);
    scene_end(&scene);
}

/* ---- faults ---- */

/* Whatever failed: nothing or the whole copy, the source works, and the next backup does. */
static void
judge(Scene *scene, Err err)
{
    char partial[128];
    snprintf(partial, sizeof(partial), "%s-partial", scene->path);
    if (access(scene->path, F_OK) == 0) {
        expect_copy(scene, 'a');
        assert_int_equal(unlink(scene->path), 0);
    } else {
        assert_int_not_equal(err, OK);
    }
    store_close(scene->store);
    scene->store = kit_open(&scene->kit);
    expect_all(scene, scene->store, 'a');
    assert_int_equal(backup_among_changes(scene, 1), OK);
    assert_int_equal(access(partial, F_OK), -1);
    expect_copy(scene, 'a');
}

static void
every_allocation_fails_once(void **state)
{
    (void)state;
    bool fired = true;
    u64 n;
    for (n = 1; fired; n++) {
        Scene scene;
        scene_start(&scene);
        mem_fail_arm(n, false);
        Err err = backup_among_changes(&scene, 0);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        if (!fired) assert_int_equal(err, OK);
        judge(&scene, err);
        scene_end(&scene);
    }
    assert_true(n > 15);
}

static bool
one_fault(u64 n, int error, bool onwards)
{
    Scene scene;
    scene_start(&scene);
    u64 blocks = mem_live_blocks();
    if (onwards) {
        rt_fault_arm_onwards(n, error);
    } else {
        rt_fault_arm(n, error);
    }
    Err err = backup_among_changes(&scene, 0);
    bool fired = rt_fault_fired();
    rt_fault_arm(0, 0);
    if (!fired) assert_int_equal(err, OK);
    if (n > 1) assert_true(mem_live_blocks() <= blocks + 64);
    judge(&scene, err);
    scene_end(&scene);
    return fired;
}

static void
every_file_call_fails_once(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, RT_FAULT_SHORT};
    for (u32 i = 0; i < COUNT_OF(errors); i++) {
        for (u32 onwards = 0; onwards < (errors[i] == RT_FAULT_SHORT ? 1u : 2u); onwards++) {
            /* Pages are many and alike: of those in the middle every tenth. */
            u64 n = 1;
            while (one_fault(n, errors[i], onwards != 0)) {
                n += n < 32 ? 1 : 10;
            }
            assert_true(n > 50);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_is_of_its_beginning),
        cmocka_unit_test(space_comes_back_after_a_backup),
        cmocka_unit_test(a_missing_pin_is_noticed),
        cmocka_unit_test(a_store_without_a_commit_is_copied),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_log_that_cannot_be_applied_is_refused),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(every_file_call_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
