/*
 * check.c -- verify everything that can be verified while others work.
 */
#include <stdio.h>

#include "store/store_private.h"

typedef struct CheckRun {
    void (*report)(void *arg, const char *finding);
    void *arg;
    u64 findings;
} CheckRun;

static void PRINTF_LIKE(2, 3) finding(CheckRun *run, const char *format, ...);

static void
finding(CheckRun *run, const char *format, ...)
{
    char text[256];
    __builtin_va_list args;
    __builtin_va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    __builtin_va_end(args);
    run->findings++;
    if (run->report != NULL) run->report(run->arg, text);
}

/* Chains: newest first, one key, running writers on top only. */
static u64
check_chain(CheckRun *run, const Tree *tree, const Version *head)
{
    u64 unsettled = 0, newest = U64_MAX;
    for (const Version *version = head; version != NULL; version = version->older) {
        if (!slice_equal(version_key(version), version_key(head)) || version->tree != tree->id) {
            finding(run, "tree %u: a chain holds two keys", tree->id);
        }
        u64 ts = 0;
        if (version->writer != NULL) {
            unsettled++;
            ts = rt_load_acquire(&version->writer->status);
            if (ts == TXN_ABORTED) finding(run, "tree %u: an aborted version is left", tree->id);
            if (ts == TXN_RUNNING) ts = U64_MAX;
        }
        if (ts > newest) finding(run, "tree %u: a chain is out of order", tree->id);
        if (version->writer == NULL && version->older != NULL) {
            finding(run, "tree %u: a version below a settled one", tree->id);
        }
        newest = ts;
    }
    return unsettled;
}

static void
check_tree(CheckRun *run, Tree *tree)
{
    const char *what;
    rt_rwlock_lock_shared(&tree->lock);
    if (!mtree_verify(&tree->map, &what)) finding(run, "tree %u: %s", tree->id, what);
    u64 unsettled = 0;
    for (const MtreeLeaf *leaf = tree->map.first; leaf != NULL; leaf = leaf->next) {
        for (u32 i = 0; i < leaf->count; i++) {
            unsettled += check_chain(run, tree, leaf->slot[i]);
            if (tree->kind == STORE_TREE_INT && leaf->slot[i]->key_bytes != 8) {
                finding(run, "tree %u: a key of wrong length", tree->id);
            }
        }
    }
    if (unsettled != tree->unsettled) {
        finding(run, "tree %u: %llu versions are unsettled, %llu counted", tree->id,
                (unsigned long long)unsettled, (unsigned long long)tree->unsettled);
    }
    rt_rwlock_unlock_shared(&tree->lock);
}

Err
store_check(Store *store, void (*report)(void *arg, const char *finding), void *arg,
            u64 *findings_out)
{
    CheckRun run = {.report = report, .arg = arg};
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree != NULL) check_tree(&run, tree);
    }
    *findings_out = run.findings;
    return OK;
}
