/*
 * store_kit.h -- what the store's tests share: directories, short calls that must succeed.
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/file.h"
#include "rt/process.h"
#include "store/store.h"
#include "unit/cmocka_all.h"

typedef struct Kit {
    char dir[64];
    char path[96];
} Kit;

/* Allocations that live when what exists once per process is gone; no store is open. */
static inline u64
kit_live_blocks(void)
{
    rt_process_close(rt_process_default());
    return mem_live_blocks();
}

static inline void
kit_remove(const char *dir)
{
    DIR *names = opendir(dir);
    assert_non_null(names);
    for (struct dirent *name; (name = readdir(names)) != NULL;) {
        if (name->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(names), name->d_name, 0), 0);
    }
    closedir(names);
    assert_int_equal(rmdir(dir), 0);
}

static inline void
kit_start(Kit *kit)
{
    memcpy(kit->dir, "/tmp/weft-store-XXXXXX", sizeof("/tmp/weft-store-XXXXXX"));
    assert_non_null(mkdtemp(kit->dir));
    snprintf(kit->path, sizeof(kit->path), "%s/t.db", kit->dir);
}

/* The same on a memory disk if there is one: for tests that open very many files. */
static inline void
kit_start_fast(Kit *kit)
{
    snprintf(kit->dir, sizeof(kit->dir), "/dev/shm/weft-store-XXXXXX");
    if (mkdtemp(kit->dir) == NULL) {
        kit_start(kit);
        return;
    }
    snprintf(kit->path, sizeof(kit->path), "%s/t.db", kit->dir);
}

static inline void
kit_end(Kit *kit)
{
    kit_remove(kit->dir);
}

/* A copy of the directory as it is now: what a kill would leave. */
static inline void
kit_copy(const Kit *from, Kit *to)
{
    char command[240];
    if (strncmp(from->dir, "/tmp", 4) == 0) {
        kit_start(to);
    } else {
        kit_start_fast(to);
    }
    snprintf(command, sizeof(command), "cp -a '%s'/. '%s'", from->dir, to->dir);
    assert_int_equal(system(command), 0);
}

static inline Err
kit_try_open(const Kit *kit, Store **store_out, ErrMsg *msg)
{
    StoreOptions options = {.create = true};
    return store_open(rt_process_default(), kit->path, &options, store_out, msg);
}

static inline Store *
kit_open(const Kit *kit)
{
    Store *store;
    ErrMsg msg = {0};
    Err err = kit_try_open(kit, &store, &msg);
    if (err != OK) print_error("open: %s\n", err_message(&msg));
    assert_int_equal(err, OK);
    return store;
}

static inline Store *
kit_open_memory(void)
{
    Store *store;
    StoreOptions options = {.in_memory = true};
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &store, NULL), OK);
    return store;
}

static inline StoreTxn *
kit_begin_wait(Store *store, StoreLevel level, StoreSync sync, u64 wait_ns)
{
    StoreTxn *txn;
    StoreTxnOptions options = {.level = level, .sync = sync, .wait_ns = wait_ns};
    assert_int_equal(store_txn_begin(store, &options, &txn), OK);
    return txn;
}

static inline StoreTxn *
kit_begin(Store *store, StoreLevel level)
{
    return kit_begin_wait(store, level, STORE_SYNC_FULL, 0);
}

static inline void
kit_commit(StoreTxn *txn)
{
    ErrMsg msg = {0};
    Err err = store_txn_commit(txn, &msg);
    if (err != OK) print_error("commit: %s\n", err_message(&msg));
    assert_int_equal(err, OK);
}

static inline Slice
kit_text(const char *p)
{
    return (Slice){(const u8 *)p, strlen(p)};
}

static inline StoreVerdict
kit_put(StoreTxn *txn, TreeId tree, const char *key, const char *value, StorePut mode)
{
    StoreVerdict verdict;
    assert_int_equal(store_put(txn, tree, kit_text(key), kit_text(value), mode, &verdict), OK);
    return verdict;
}

static inline StoreVerdict
kit_delete(StoreTxn *txn, TreeId tree, const char *key)
{
    StoreVerdict verdict;
    assert_int_equal(store_delete(txn, tree, kit_text(key), &verdict), OK);
    return verdict;
}

/* NULL: must be absent. */
static inline void
kit_expect(StoreTxn *txn, TreeId tree, const char *key, const char *value)
{
    bool found;
    Slice got;
    assert_int_equal(store_get(txn, tree, kit_text(key), &found, &got), OK);
    assert_int_equal(found, value != NULL);
    if (value != NULL) assert_true(slice_equal(got, kit_text(value)));
}

static inline void
kit_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("check: %s\n", what);
}

static inline void
kit_check(Store *store)
{
    u64 findings;
    assert_int_equal(store_check(store, kit_finding, NULL, &findings), OK);
    assert_int_equal(findings, 0);
}
