/*
 * open_set.c -- entering, leaving, pinning.
 */
#include "store/txn/open_set.h"

void
open_set_enter(Store *store, TxnState *state)
{
    if (LIKELY(state->is_open)) return;
    rt_latch_acquire(&store->commit_latch);
    state->is_open = true;
    state->open_newer = NULL;
    state->open_older = store->open_newest;
    if (state->open_older != NULL) state->open_older->open_newer = state;
    store->open_newest = state;
    rt_latch_release(&store->commit_latch);
}

void
open_set_leave(Store *store, TxnState *state)
{
    if (!state->is_open) return;
    if (state->open_newer != NULL) {
        state->open_newer->open_older = state->open_older;
    } else {
        store->open_newest = state->open_older;
    }
    if (state->open_older != NULL) state->open_older->open_newer = state->open_newer;
    state->is_open = false;
}

u64
open_set_count(const Store *store)
{
    u64 count = 0;
    for (const TxnState *state = store->open_newest; state != NULL; state = state->open_older) {
        count++;
    }
    return count;
}

void
open_set_pin(Store *store, OpenSet *set, u64 room)
{
    set->count = 0;
    for (TxnState *state = store->open_newest; state != NULL; state = state->open_older) {
        ASSERT(set->count < room);
        rt_fetch_add(&state->pins, 1);
        set->states[set->count++] = state;
    }
}

void
open_set_unpin(Store *store, OpenSet *set)
{
    for (u64 i = 0; i < set->count; i++) {
        TxnState *state = set->states[i];
        rt_latch_acquire(&store->commit_latch);
        bool last = rt_fetch_sub(&state->pins, 1) == 1;
        bool aborted = rt_load_relaxed(&state->status) == TXN_ABORTED &&
                       rt_load_acquire(&state->ended) != 0;
        rt_latch_release(&store->commit_latch);
        if (last && aborted) settle__hand_over(store, state);
    }
    set->count = 0;
}

static bool
is_doomed_at(Store *store, const TxnState *state, const UndoEntry *entry, u64 cut)
{
    bool doomed = false;
    rt_latch_acquire(&store->doom_latch);
    for (const DoomedInsert *note = state->doomed_inserts; note != NULL; note = note->next) {
        if (note->undone > cut || note->tree != entry->tree) continue;
        if (slice_equal((Slice){note->key, note->key_bytes}, undo_key(entry))) doomed = true;
    }
    rt_latch_release(&store->doom_latch);
    return doomed;
}

Err
open_set_undo(Store *store, const TxnState *state, u64 cut,
              Err (*each)(void *arg, const OpenUndo *undo), void *arg)
{
    UndoWalk walk = undo_walk_up_to(&state->undo, cut);
    const UndoChunk *chunk;
    const UndoEntry *entry;
    Err err = OK;
    while (err == OK && (entry = undo_walk_next(&walk, &chunk)) != NULL) {
        u32 undone = rt_load_relaxed(&entry->undone);
        if (undone != 0 && chunk->epoch + undone - 1 <= cut) continue;
        OpenUndo undo = {.tree = entry->tree, .kind = entry->kind};
        if (entry->kind == UNDO_INSERT) {
            if (is_doomed_at(store, state, entry, cut)) continue;
            undo.key = undo_key(entry);
        } else if (entry->kind == UNDO_BEFORE) {
            const Before *before = undo_before(entry);
            /* Acquire: with the mark comes its epoch. */
            bool is_undone = (rt_load_acquire(&before->flags) & BEFORE_UNDONE) != 0;
            if (is_undone && before->undone <= cut) continue;
            undo.key = before_key(before);
            undo.image = before_image(before);
            undo.slot_flags = before->slot_flags;
        }
        err = each(arg, &undo);
    }
    return err;
}
