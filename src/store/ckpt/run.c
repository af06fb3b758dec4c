/*
 * run.c -- one checkpoint, from the cut to the superblock.
 *
 * Pages go out in batches: their slots are taken together, so that free stretches of the file are
 * written by one call.  Copies put aside go first, because writers may wait for their memory.
 */
#include "store/ckpt/ckpt_impl.h"

#include "rt/task.h"

#define BATCH_PAGES 32u

typedef struct BatchItem {
    u64 word; /* Of the page when it was copied. */
    u32 page_id, slot;
    bool is_aside; /* It has changed since. */
} BatchItem;

typedef struct Run {
    Ckpt *ckpt;
    const CkptClient *client;
    CkptCut cut;
    u64 epoch;
    u32 pages_end, chunks_end; /* As of the cut. */
    SlotList chains;           /* Of this one. */
    u64 description, directory;
    u32 count;
    BatchItem items[BATCH_PAGES];
    u8 *bytes; /* BATCH_PAGES pages. */
    ErrMsg *msg;
} Run;

u64
ckpt_cut_here(Ckpt *ckpt)
{
    rt_latch_acquire(&ckpt->latch);
    u64 cut = page_ops_cut(&ckpt->ops);
    space_cut(&ckpt->space);
    page_map_cut(&ckpt->map);
    rt_latch_release(&ckpt->latch);
    return cut;
}

/* ---- batches ---- */

/* Seal the pages and write each stretch of neighbouring slots by one call. */
static Err
batch_write(Run *run)
{
    Ckpt *ckpt = run->ckpt;
    Err err = ckpt_settle(ckpt, run->msg);
    for (u32 from = 0; from < run->count && err == OK;) {
        u32 to = from;
        do {
            u8 *page = run->bytes + (size_t)to * ckpt->page_bytes;
            store_u64(page, ckpt__checksum(ckpt, run->items[to].slot, page));
            to++;
        } while (to < run->count && run->items[to].slot == run->items[to - 1].slot + 1);
        err = rt_file_write(ckpt->file, ckpt__offset(ckpt, run->items[from].slot),
                            run->bytes + (size_t)from * ckpt->page_bytes,
                            (size_t)(to - from) * ckpt->page_bytes, run->msg);
        from = to;
    }
    return err;
}

/* The image of a page as of the cut lies in its slot: say so in the maps. */
static void
image_place(Ckpt *ckpt, u32 page_id, u64 entry)
{
    PageMap *map = &ckpt->map;
    u64 now = page_map_get(map, page_id), then = page_map_get_cut(map, page_id);
    u32 slot = map_slot(entry);
    space_born(&ckpt->space, slot, true);
    bool is_gone = !PLANT(155) && page_map_is_gone(map, page_id, ckpt->space.interval);
    if (now == then && !is_gone) {
        page_map_set(map, page_id, entry, true);
        if (now != 0) space_retire(&ckpt->space, map_slot(now), true);
        return;
    }
    /* The page was evicted again, or is gone, since the cut. */
    page_map_set_cut(map, page_id, entry);
    space_cut_only(&ckpt->space, slot);
}

/* False: this checkpoint is lost, the slots are still the caller's. */
static bool
batch_place(Run *run)
{
    Ckpt *ckpt = run->ckpt;
    rt_latch_acquire(&ckpt->latch);
    /* Without the cut's entries nobody can tell whether a page was evicted again. */
    bool is_lost = ckpt->map.broken;
    for (u32 i = 0; i < run->count && !is_lost; i++) {
        u64 checksum = load_u64(run->bytes + (size_t)i * ckpt->page_bytes);
        image_place(ckpt, run->items[i].page_id, map_entry(run->items[i].slot, checksum));
    }
    rt_latch_release(&ckpt->latch);
    for (u32 i = 0; i < run->count && !is_lost; i++) {
        const BatchItem *item = &run->items[i];
        if (!item->is_aside) (void)pool_clean(ckpt->pool_file, item->page_id, item->word);
    }
    if (!is_lost) rt_fetch_add(&ckpt->pages_written, run->count);
    return !is_lost;
}

static Err
short_of_memory(Run *run)
{
    return err_set(run->msg, ERR_NOMEM, "out of memory during a checkpoint");
}

static Err
batch_flush(Run *run)
{
    Ckpt *ckpt = run->ckpt;
    Err err = OK;
    u32 taken = 0;
    while (taken < run->count && err == OK) {
        err = ckpt__slot_take(ckpt, &run->items[taken].slot);
        if (err == OK) taken++;
    }
    if (err != OK) err_set(run->msg, err, "no room for the checkpoint");
    if (err == OK) err = batch_write(run);
    if (err == OK && !batch_place(run)) err = short_of_memory(run);
    if (err != OK) {
        for (u32 i = 0; i < taken; i++) {
            ckpt__slot_give(ckpt, run->items[i].slot);
        }
    }
    run->count = 0;
    return err;
}

static u8 *
batch_next(Run *run)
{
    return run->bytes + (size_t)run->count * run->ckpt->page_bytes;
}

/* ---- pages ---- */

static void
copies_freed(Ckpt *ckpt, u32 count)
{
    rt_fetch_sub(&ckpt->copies_open, count);
    rt_mutex_lock(&ckpt->throttle_mutex);
    rt_cond_broadcast(&ckpt->throttle_cond, &ckpt->throttle_mutex);
    rt_mutex_unlock(&ckpt->throttle_mutex);
}

static CopyAside *
copy_pop(Ckpt *ckpt)
{
    rt_latch_acquire(&ckpt->latch);
    CopyAside *copy = ckpt->copies;
    if (copy != NULL) ckpt->copies = copy->next;
    rt_latch_release(&ckpt->latch);
    return copy;
}

/* Write what was put aside. */
static Err
write_copies(Run *run)
{
    Ckpt *ckpt = run->ckpt;
    Err err = OK;
    u32 count = 0;
    while (err == OK) {
        CopyAside *copy = copy_pop(ckpt);
        if (copy == NULL) break;
        if (run->count == BATCH_PAGES) err = batch_flush(run);
        memcpy(batch_next(run), copy->bytes, ckpt->page_bytes);
        run->items[run->count++] = (BatchItem){.page_id = copy->page_id, .is_aside = true};
        mem_free(copy);
        count++;
    }
    if (err == OK) err = batch_flush(run);
    if (count > 0) copies_freed(ckpt, count);
    return err;
}

/* Forget what was put aside. */
static void
drop_copies(Ckpt *ckpt)
{
    u32 count = 0;
    for (CopyAside *copy = copy_pop(ckpt); copy != NULL; copy = copy_pop(ckpt)) {
        mem_free(copy);
        count++;
    }
    copies_freed(ckpt, count);
}

/* Take the image of a page if it is dirty from before the cut and the cut has none. */
static Err
page_take(Run *run, u32 page_id)
{
    Ckpt *ckpt = run->ckpt;
    for (;;) {
        u64 word = pool_word(ckpt->pool_file, page_id);
        if ((word & PAGE_STATE) != PAGE_RESIDENT || (word & PAGE_DIRTY) == 0) return OK;
        PageView view;
        Err err = pool_view(ckpt->pool_file, page_id, true, &view);
        if (err == ERR_NOTFOUND) return OK;
        if (err != OK) return err_set(run->msg, err, "page %u cannot be read", page_id);
        u8 *to = batch_next(run);
        rt_copy_racy(to, view.bytes, ckpt->page_bytes);
        word = view.word;
        if (!pool_view_end(&view)) continue;
        if (((NodeHead *)(void *)to)->epoch > run->epoch) return OK;
        rt_latch_acquire(&ckpt->latch);
        bool ours = page_map_claim(&ckpt->map, page_id, ckpt->space.interval);
        rt_latch_release(&ckpt->latch);
        if (ours) run->items[run->count++] = (BatchItem){.page_id = page_id, .word = word};
        return OK;
    }
}

static bool
is_broken(Ckpt *ckpt)
{
    rt_latch_acquire(&ckpt->latch);
    bool broken = ckpt->map.broken;
    rt_latch_release(&ckpt->latch);
    return broken;
}

static Err
write_pages(Run *run)
{
    Ckpt *ckpt = run->ckpt;
    Err err = OK;
    for (u32 id = 1; id < run->pages_end && err == OK; id++) {
        bool urgent = rt_load_relaxed(&ckpt->copies_open) > ckpt->copies_max / 2;
        if (run->count == BATCH_PAGES || (urgent && run->count > 0)) err = batch_flush(run);
        if (err == OK && urgent) err = write_copies(run);
        if (err == OK) err = page_take(run, id);
        if (id % 1024 == 0) rt_give_turn(); /* A checkpoint is not cancelled. */
    }
    if (err == OK) err = batch_flush(run);
    /* No page can be put aside any more: the cut has the images of all. */
    if (err == OK) err = write_copies(run);
    return err == OK && is_broken(ckpt) ? short_of_memory(run) : err;
}

/* ---- the map ---- */

static Err
chunk_write(Run *run, u32 number)
{
    Ckpt *ckpt = run->ckpt;
    u8 *page = run->bytes;
    MapHead head = {.magic = MAP_MAGIC, .number = number, .epoch = run->epoch};
    memset(page, 0, ckpt->page_bytes);
    memcpy(page, &head, sizeof(head));
    rt_latch_acquire(&ckpt->latch);
    MapChunk *chunk = ckpt->map.chunks[number];
    bool changed = chunk->cut_changed;
    memcpy(page + sizeof(head), page_map_cut_entries(chunk), ckpt->map.per_chunk * sizeof(u64));
    rt_latch_release(&ckpt->latch);
    if (!changed) return OK;
    u32 slot;
    Err err = ckpt__slot_take(ckpt, &slot);
    if (err != OK) return err_set(run->msg, err, "no room for the checkpoint");
    err = ckpt__write(ckpt, slot, page, run->msg);
    if (err != OK) {
        ckpt__slot_give(ckpt, slot);
        return err;
    }
    chunk->cut_disk = map_entry(slot, load_u64(page));
    rt_fetch_add(&ckpt->chunks_written, 1);
    return OK;
}

/* The changed chunks, and a directory of all. */
static Err
write_map(Run *run)
{
    Ckpt *ckpt = run->ckpt;
    Err err = OK;
    for (u32 i = 0; i < run->chunks_end && err == OK; i++) {
        err = chunk_write(run, i);
    }
    CkptStream stream = {0};
    if (err == OK) err = chain_start(&stream, ckpt, run->epoch, &run->chains, run->msg);
    if (err == OK) {
        err = ckpt_stream_put(&stream, &run->chunks_end, sizeof(run->chunks_end), run->msg);
    }
    for (u32 i = 0; i < run->chunks_end && err == OK; i++) {
        rt_latch_acquire(&ckpt->latch); /* The list of chunks may be moved. */
        const MapChunk *chunk = ckpt->map.chunks[i];
        rt_latch_release(&ckpt->latch);
        u64 entry = chunk->cut_disk != 0 ? chunk->cut_disk : chunk->disk;
        err = ckpt_stream_put(&stream, &entry, sizeof(entry), run->msg);
    }
    if (err == OK) err = chain_finish(&stream, &run->directory, run->msg);
    chain_free(&stream);
    return err;
}

static Err
write_description(Run *run)
{
    CkptStream stream;
    Err err = chain_start(&stream, run->ckpt, run->epoch, &run->chains, run->msg);
    if (err == OK) err = run->client->describe(run->client->arg, &stream, run->msg);
    if (err == OK) err = chain_finish(&stream, &run->description, run->msg);
    chain_free(&stream);
    return err;
}

/* ---- the end ---- */

static Err
write_super(Run *run, u32 flags)
{
    Ckpt *ckpt = run->ckpt;
    rt_latch_acquire(&ckpt->latch);
    u32 slots_end = ckpt->space.end;
    rt_latch_release(&ckpt->latch);
    Super super = {.flags = flags,
                   .sequence = ckpt->super.sequence + 1,
                   .store_id = ckpt->super.store_id,
                   .epoch = run->epoch,
                   .cut_ts = run->cut.ts,
                   .cut_lsn = run->cut.lsn,
                   .oldest_lsn = run->cut.oldest_lsn,
                   .log_generation = run->cut.log_generation,
                   .directory = run->directory,
                   .description = run->description,
                   .slots_end = slots_end,
                   .pages_end = run->pages_end,
                   .tree_next = run->cut.tree_next,
                   .page_bytes = ckpt->page_bytes};
    Err err = ckpt_settle(ckpt, run->msg);
    if (err != OK) return err;
    /* Whatever goes wrong from here on, the file may hold either. */
    err = super_write(ckpt->file, &super, run->msg);
    if (err == OK) err = rt_file_sync(ckpt->file, run->msg);
    if (err != OK) return ckpt__fail(ckpt, err);
    ckpt->super = super;
    return OK;
}

/* Give back what only the former checkpoint needed, or what only this one would have. */
static void
settle_slots(Run *run, bool completed)
{
    Ckpt *ckpt = run->ckpt;
    SlotList gone = completed ? ckpt->chains : run->chains;
    rt_latch_acquire(&ckpt->latch);
    for (u32 i = 0; i < ckpt->map.count; i++) {
        MapChunk *chunk = ckpt->map.chunks[i];
        u64 unused = completed ? chunk->disk : chunk->cut_disk;
        if (chunk->cut_disk == 0) continue;
        if (unused != 0) space_give(&ckpt->space, map_slot(unused));
        if (completed) chunk->disk = chunk->cut_disk;
    }
    for (u32 i = 0; i < gone.count; i++) {
        space_give(&ckpt->space, gone.slots[i]);
    }
    if (completed) {
        space_completed(&ckpt->space);
        ckpt->chains = run->chains;
    } else {
        space_abandoned(&ckpt->space);
    }
    page_map_uncut(&ckpt->map, completed);
    page_ops_uncut(&ckpt->ops);
    rt_latch_release(&ckpt->latch);
    mem_free(gone.slots);
    drop_copies(ckpt);
}

static Err
run_all(Run *run, u32 flags)
{
    Ckpt *ckpt = run->ckpt;
    page_ops_drain(&ckpt->ops, run->epoch);
    rt_latch_acquire(&ckpt->latch);
    run->pages_end = ckpt->pages_end;
    rt_latch_release(&ckpt->latch);
    run->chunks_end = (run->pages_end + ckpt->map.per_chunk - 1) / ckpt->map.per_chunk;
    Err err = ckpt__pages_reserve(ckpt, run->pages_end); /* Of a file without a page, the first. */
    if (err != OK) return err_set(run->msg, err, "out of memory");
    err = write_description(run);
    if (err == OK) err = write_copies(run);
    if (err == OK) err = write_pages(run);
    if (err == OK) err = write_map(run);
    if (err == OK && !PLANT(153)) {
        err = rt_file_sync(ckpt->file, run->msg);
        if (err != OK) return ckpt__fail(ckpt, err);
    }
    if (err == OK) err = run->client->log_durable(run->client->arg, run->cut.lsn, run->msg);
    return err == OK ? write_super(run, flags) : err;
}

Err
ckpt_run(Ckpt *ckpt, const CkptClient *client, u32 flags, ErrMsg *msg)
{
    rt_mutex_lock(&ckpt->run_mutex);
    Run *run = MEM_NEW(Run);
    Err err = run == NULL ? err_set(msg, ERR_NOMEM, "out of memory") : OK;
    if (err == OK && ckpt_has_failed(ckpt)) {
        err = err_set(msg, ERR_IO, "a write to %s has failed; it must be opened again",
                      rt_file_name(ckpt->file));
    }
    if (err != OK) goto done;
    run->ckpt = ckpt;
    run->client = client;
    run->msg = msg;
    run->bytes = (u8 *)mem_alloc_aligned(4096, (size_t)BATCH_PAGES * ckpt->page_bytes);
    if (run->bytes == NULL) {
        err = err_set(msg, ERR_NOMEM, "out of memory");
        goto done;
    }
    err = client->cut(client->arg, &run->cut, msg);
    run->epoch = rt_load_relaxed(&ckpt->ops.cut);
    if (err == OK) err = run_all(run, flags);
    if (run->epoch != 0) settle_slots(run, err == OK);
    client->ended(client->arg, err == OK);

done:
    if (run != NULL) mem_free(run->bytes);
    mem_free(run);
    rt_mutex_unlock(&ckpt->run_mutex);
    return err;
}

Err
ckpt_write_super(Ckpt *ckpt, const Super *wanted, ErrMsg *msg)
{
    rt_mutex_lock(&ckpt->run_mutex);
    Super super = *wanted;
    super.sequence = ckpt->super.sequence + 1;
    Err err = OK;
    if (ckpt_has_failed(ckpt)) {
        err = err_set(msg, ERR_IO, "a write to %s has failed; it must be opened again",
                      rt_file_name(ckpt->file));
    } else {
        err = ckpt_settle(ckpt, msg);
        if (err == OK) err = super_write(ckpt->file, &super, msg);
        if (err == OK) err = rt_file_sync(ckpt->file, msg);
        if (err != OK) err = ckpt__fail(ckpt, err);
        if (err == OK) ckpt->super = super;
    }
    rt_mutex_unlock(&ckpt->run_mutex);
    return err;
}

void
ckpt_trim(Ckpt *ckpt)
{
    rt_mutex_lock(&ckpt->run_mutex);
    rt_latch_acquire(&ckpt->latch);
    u32 end = space_used_end(&ckpt->space);
    /* After a failure the file may hold a checkpoint that is not known. */
    bool worth = end < ckpt->space.end && !ckpt_has_failed(ckpt);
    /* Nobody may take a slot beyond the end while the file is cut there. */
    if (worth) ckpt->space.end = end;
    ckpt->trims = worth;
    rt_latch_release(&ckpt->latch);
    if (worth) {
        /* The slots are given back all the same if it fails. */
        Err ignored = ckpt_settle(ckpt, NULL);
        if (ignored == OK) ignored = rt_file_truncate(ckpt->file, ckpt__offset(ckpt, end), NULL);
        rt_latch_acquire(&ckpt->latch);
        ckpt->trims = false;
        rt_latch_release(&ckpt->latch);
        rt_mutex_lock(&ckpt->throttle_mutex);
        rt_cond_broadcast(&ckpt->throttle_cond, &ckpt->throttle_mutex);
        rt_mutex_unlock(&ckpt->throttle_mutex);
    }
    rt_mutex_unlock(&ckpt->run_mutex);
}
