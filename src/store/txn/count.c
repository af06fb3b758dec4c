/*
 * count.c -- changes of the number of rows, and their sums.
 */
#include "store/txn/count.h"

#include "store/store_private.h"

#define KEEP_ROOM 64u /* Changes that a transaction object keeps memory for. */

/* The change of a tree, or NULL.  Statements go round the same trees, so it is mostly the one after
   the last. */
static CountChange *
change_of(CountChanges *changes, const Tree *tree)
{
    u32 at = changes->last;
    for (u32 i = 0; i < changes->count; i++) {
        if (at >= changes->count) at = 0;
        if (changes->change[at].tree == tree) {
            changes->last = at;
            return &changes->change[at];
        }
        at++;
    }
    return NULL;
}

Err
count_reserve(StoreTxn *txn)
{
    CountChanges *changes = &txn->counts;
    if (LIKELY(changes->count < changes->room)) return OK;
    u32 room = changes->room * 2 + 8;
    CountChange *change = (CountChange *)mem_realloc(changes->change, room * sizeof(CountChange));
    if (change == NULL) return ERR_NOMEM;
    changes->change = change;
    changes->room = room;
    return OK;
}

void
count_note(StoreTxn *txn, Tree *tree, i64 rows)
{
    CountChanges *changes = &txn->counts;
    CountChange *change = change_of(changes, tree);
    if (change == NULL) {
        ASSERT(changes->count < changes->room);
        changes->last = changes->count++;
        change = &changes->change[changes->last];
        *change = (CountChange){.tree = tree};
    }
    change->rows += rows;
}

void
count_publish(StoreTxn *txn, u64 ts, u64 lsn)
{
    const CountChanges *changes = &txn->counts;
    for (u32 i = 0; i < changes->count; i++) {
        RowCount *count = &changes->change[i].tree->row_count;
        count->rows += (u64)changes->change[i].rows;
        count->ts = ts;
        if (lsn != 0) count->lsn = lsn;
    }
}

void
count_reset(StoreTxn *txn)
{
    CountChanges *changes = &txn->counts;
    changes->count = changes->last = 0;
    if (UNLIKELY(changes->room > KEEP_ROOM)) count_free(txn);
}

void
count_free(StoreTxn *txn)
{
    mem_free(txn->counts.change);
    txn->counts = (CountChanges){0};
}

static u64
own_rows(StoreTxn *txn, const Tree *tree)
{
    const CountChange *own = change_of(&txn->counts, tree);
    return own == NULL ? 0 : (u64)own->rows;
}

bool
count_look(StoreTxn *txn, Tree *tree, u64 *rows_out, u64 *lsn_out)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->commit_latch);
    RowCount count = tree->row_count;
    rt_latch_release(&store->commit_latch);
    /* What is committed up to the snapshot is in it: both came under one latch. */
    *rows_out = count.rows + own_rows(txn, tree);
    *lsn_out = count.lsn;
    return count.is_known && (count.ts <= txn->snapshot || PLANT(136));
}

void
count_learn(StoreTxn *txn, Tree *tree, u64 rows, u64 lsn)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->commit_latch);
    RowCount *count = &tree->row_count;
    if (!count->is_known && count->ts <= txn->snapshot) {
        count->rows = rows - own_rows(txn, tree);
        count->lsn = MAX_OF(count->lsn, lsn);
        count->is_known = true;
    }
    rt_latch_release(&store->commit_latch);
}
