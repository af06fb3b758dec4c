/*
 * state.c -- the table of transaction states.
 */
#include "store/txn/state.h"

#include "store/store_private.h"

STATIC_ASSERT(TXN_TABLE_FIRST == 64);

void
txn_table_init(TxnTable *table, MemAccount *account)
{
    table->account = account;
    rt_latch_init(&table->latch, STORE_RANK_STATES);
}

static u32
shelf_states(u32 shelf_no)
{
    return TXN_TABLE_FIRST << shelf_no;
}

static void
notes_free(TxnState *state)
{
    while (state->tree_notes != NULL) {
        TreeNote *note = state->tree_notes;
        state->tree_notes = note->older;
        mem_free(note);
    }
    while (state->doomed_inserts != NULL) {
        DoomedInsert *doomed = state->doomed_inserts;
        state->doomed_inserts = doomed->next;
        mem_free(doomed);
    }
}

void
txn_table_free(TxnTable *table)
{
    for (u32 i = 0; i < TXN_TABLE_SHELFS; i++) {
        TxnState *shelf = (TxnState *)rt_load_relaxed(&table->shelfs[i]);
        for (u32 k = 0; shelf != NULL && k < shelf_states(i); k++) {
            undo_free(&shelf[k].undo);
            notes_free(&shelf[k]);
        }
        mem_free(shelf);
    }
}

/* Put the states of one more shelf on the free list; latch not held. */
static Err
shelf_add(TxnTable *table)
{
    rt_latch_acquire(&table->latch);
    u32 made = table->made;
    rt_latch_release(&table->latch);
    u32 shelf_no = 31u - (u32)__builtin_clz(made + TXN_TABLE_FIRST) - 6;
    if (shelf_no >= TXN_TABLE_SHELFS) return ERR_LIMIT;
    u32 count = shelf_states(shelf_no);
    TxnState *shelf = MEM_NEW_ARRAY(TxnState, count);
    if (shelf == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < count; i++) {
        shelf[i].index = made + i;
        shelf[i].undo.account = table->account;
        shelf[i].free_next = i + 1 < count ? &shelf[i + 1] : NULL;
    }
    rt_latch_acquire(&table->latch);
    bool ours = table->made == made;
    if (ours) {
        rt_store_release(&table->shelfs[shelf_no], (void *)shelf);
        table->made += count;
        shelf[count - 1].free_next = table->free_first;
        table->free_first = shelf;
    }
    rt_latch_release(&table->latch);
    if (!ours) mem_free(shelf);
    return OK;
}

Err
txn_table_take(TxnTable *table, StoreTxn *txn, TxnState **state_out)
{
    *state_out = NULL;
    rt_latch_acquire(&table->latch);
    while (table->free_first == NULL) {
        rt_latch_release(&table->latch);
        Err err = shelf_add(table);
        if (err != OK) return err;
        rt_latch_acquire(&table->latch);
    }
    TxnState *state = table->free_first;
    table->free_first = state->free_next;
    u64 serial = ++table->serial;
    table->live++;
    rt_latch_release(&table->latch);
    ASSERT(rt_load_relaxed(&state->id) == 0);
    rt_store_release(&state->status, TXN_RUNNING);
    rt_store_release(&state->lsn, 0);
    rt_store_relaxed(&state->refs, 0);
    rt_store_relaxed(&state->doomed, 0);
    rt_store_relaxed(&state->ended, 0);
    rt_store_relaxed(&state->named, 0);
    rt_store_relaxed(&state->txn, (void *)txn);
    state->owns_token = state->pruned = false;
    rt_store_release(&state->id, serial << TXN_ID_INDEX_BITS | state->index);
    *state_out = state;
    return OK;
}

void
txn_table_give(TxnTable *table, TxnState *state)
{
    ASSERT(state->first == NULL && state->waiters == NULL && !state->is_open);
    ASSERT(rt_load_relaxed(&state->pins) == 0 && !state->chunks_open);
    ASSERT(rt_load_relaxed(&state->id) != 0);
    ASSERT(rt_load_relaxed(&state->spill) == NULL && state->before_bytes == 0);
    rt_store(&state->id, 0);
    undo_reset(&state->undo);
    notes_free(state);
    rt_latch_acquire(&table->latch);
    state->free_next = table->free_first;
    table->free_first = state;
    if (--table->live == 0) {
        rt_store_release(&table->floor, (table->serial + 1) << TXN_ID_INDEX_BITS);
    }
    rt_latch_release(&table->latch);
}
