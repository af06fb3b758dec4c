/*
 * check.c -- verification of what is in memory: trees, entries, chains.
 *
 * Others go on working meanwhile: every page is looked at as it was at one instant, the shape of a
 * tree while nothing splits or merges, a chain under its latch.
 */
#include <stdarg.h>
#include <stdio.h>

#include "store/version/row.h"

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
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    run->findings++;
    if (run->report != NULL) run->report(run->arg, text);
}

/* Newest first, one key; what stands below the top was committed. */
static void
check_chain(CheckRun *run, const Before *head)
{
    u64 newest = U64_MAX;
    for (const Before *before = head; before != NULL; before = before->older) {
        if (!slice_equal(before_key(before), before_key(head)) || before->tree != head->tree) {
            finding(run, "tree %u: a chain holds two keys", head->tree);
        }
        if (before_is(before, BEFORE_MARKER | BEFORE_OWN)) continue;
        if (before->ts > newest) finding(run, "tree %u: a chain is out of order", head->tree);
        newest = before->ts;
    }
}

static void
check_versions(CheckRun *run, VersionMap *map)
{
    for (u32 i = 0; i < VERSION_STRIPES; i++) {
        VersionStripe *stripe = &map->stripes[i];
        rt_latch_acquire(&stripe->latch);
        for (u32 k = 0; k < stripe->buckets; k++) {
            const Before *head = stripe->bucket[k];
            for (; head != NULL; head = head->next_bucket) {
                check_chain(run, head);
            }
        }
        rt_latch_release(&stripe->latch);
    }
}

static Err
check_tree(CheckRun *run, Tree *tree)
{
    const char *what;
    u64 entries;
    if (rt_load_acquire(&tree->gone) != 0) return OK;
    Err err = btree_verify(&tree->map, &what, &entries);
    if (rt_load_acquire(&tree->gone) != 0) return OK;
    if (err == OK && what != NULL) finding(run, "tree %u: %s", tree->id, what);
    return err;
}

Err
store_check(Store *store, void (*report)(void *arg, const char *finding), void *arg,
            u64 *findings_out)
{
    CheckRun run = {.report = report, .arg = arg};
    u32 end = rt_load_acquire(&store->tree_next);
    Err err = OK;
    for (TreeId id = 1; id < end && err == OK; id++) {
        Tree *tree = store__tree(store, id);
        if (tree != NULL) err = check_tree(&run, tree);
    }
    check_versions(&run, &store->versions);
    *findings_out = run.findings;
    return err;
}
