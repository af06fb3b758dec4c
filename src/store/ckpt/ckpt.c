/*
 * ckpt.c -- the object, the pages of the file, and what the pool asks for.
 *
 * Who evicts a page writes it to a fresh slot.  Which maps get that slot is decided when the page
 * is latched again: if a checkpoint runs, the page is from before its cut and the cut has no image
 * of it, both; else the current one.
 */
#include "store/ckpt/ckpt_impl.h"

#define IDS_STEP   1024u
#define SLOTS_STEP 1024u

/* ---- slots ---- */

u64
ckpt__checksum(const Ckpt *ckpt, u32 slot, const u8 *page)
{
    return checksum64(page + 8, ckpt->page_bytes - 8, hash_u64(slot, ckpt->seed));
}

Err
ckpt__read(Ckpt *ckpt, u32 slot, u8 *page, ErrMsg *msg)
{
    Err err = rt_file_read_exact(ckpt->file, ckpt__offset(ckpt, slot), page, ckpt->page_bytes, msg);
    if (err == ERR_IO_SHORT_READ) {
        return err_set(msg, ERR_CORRUPT, "%s is damaged: it ends before slot %u",
                       rt_file_name(ckpt->file), slot);
    }
    if (err != OK) return err;
    if (load_u64(page) == ckpt__checksum(ckpt, slot, page)) return OK;
    return err_set(msg, ERR_CORRUPT, "%s is damaged: the checksum of slot %u does not fit",
                   rt_file_name(ckpt->file), slot);
}

Err
ckpt__write(Ckpt *ckpt, u32 slot, u8 *page, ErrMsg *msg)
{
    store_u64(page, ckpt__checksum(ckpt, slot, page));
    Err err = ckpt_settle(ckpt, msg);
    if (err != OK) return err;
    return rt_file_write(ckpt->file, ckpt__offset(ckpt, slot), page, ckpt->page_bytes, msg);
}

Err
ckpt_settle(Ckpt *ckpt, ErrMsg *msg)
{
    if (rt_load_acquire(&ckpt->unsettled) == 0 || PLANT(103)) return OK;
    Err err = OK;
    rt_mutex_lock(&ckpt->settle_mutex);
    if (rt_load_relaxed(&ckpt->unsettled) != 0) {
        Super super = ckpt->super; /* Nobody changes it before this is done. */
        err = super_write(ckpt->file, &super, msg);
        if (err == OK) err = rt_file_sync(ckpt->file, msg);
        if (err != OK) {
            err = ckpt__fail(ckpt, err);
        } else {
            rt_store_release(&ckpt->unsettled, 0);
        }
    }
    rt_mutex_unlock(&ckpt->settle_mutex);
    return err;
}

static bool
is_trimming(Ckpt *ckpt)
{
    rt_latch_acquire(&ckpt->latch);
    bool trims = ckpt->trims;
    rt_latch_release(&ckpt->latch);
    return trims;
}

static void
trim_wait(Ckpt *ckpt)
{
    rt_mutex_lock(&ckpt->throttle_mutex);
    while (is_trimming(ckpt)) {
        rt_cond_wait(&ckpt->throttle_cond, &ckpt->throttle_mutex);
    }
    rt_mutex_unlock(&ckpt->throttle_mutex);
}

Err
ckpt__slot_take(Ckpt *ckpt, u32 *slot_out)
{
    for (;;) {
        rt_latch_acquire(&ckpt->latch);
        bool trims = ckpt->trims;
        u32 slot = trims ? SLOT_NONE : space_take(&ckpt->space);
        u32 room = ckpt->space.room;
        rt_latch_release(&ckpt->latch);
        *slot_out = slot;
        if (slot != SLOT_NONE) return OK;
        if (trims) {
            trim_wait(ckpt);
            continue;
        }
        SpaceArrays arrays;
        Err err = space_grown(room + MAX_OF(room / 2, SLOTS_STEP), &arrays);
        if (err != OK) return err;
        rt_latch_acquire(&ckpt->latch);
        space_adopt(&ckpt->space, &arrays);
        rt_latch_release(&ckpt->latch);
        space_arrays_free(&arrays);
    }
}

void
ckpt__slot_give(Ckpt *ckpt, u32 slot)
{
    rt_latch_acquire(&ckpt->latch);
    space_give(&ckpt->space, slot);
    rt_latch_release(&ckpt->latch);
}

Err
ckpt__slot_list_add(SlotList *list, u32 slot)
{
    if (list->count == list->room) {
        u32 room = list->room * 2 + 16;
        u32 *slots = (u32 *)mem_realloc(list->slots, room * sizeof(u32));
        if (slots == NULL) return ERR_NOMEM;
        list->slots = slots;
        list->room = room;
    }
    list->slots[list->count++] = slot;
    return OK;
}

Err
ckpt__fail(Ckpt *ckpt, Err err)
{
    if (ckpt->failure_word != NULL) rt_store_release(ckpt->failure_word, 1);
    rt_store_release(&ckpt->failed, 1);
    return err;
}

void
ckpt_watch_failure(Ckpt *ckpt, RtU32 *word)
{
    ASSERT(!ckpt_has_failed(ckpt));
    ckpt->failure_word = word;
}

bool
ckpt_has_failed(const Ckpt *ckpt)
{
    return rt_load_acquire(&ckpt->failed) != 0;
}

/* ---- page ids ---- */

/* One more chunk of the map, unless others have made it. */
static Err
chunk_append(Ckpt *ckpt, u32 end)
{
    MapChunk *chunk = page_map_chunk_new(&ckpt->map);
    if (chunk == NULL) return ERR_NOMEM;
    MapChunk **old = NULL;
    rt_latch_acquire(&ckpt->latch);
    u32 room = ckpt->map.room;
    bool is_full = ckpt->map.count == room;
    rt_latch_release(&ckpt->latch);
    MapChunk **wider = is_full ? MEM_NEW_ARRAY(MapChunk *, room * 2 + 16) : NULL;
    if (is_full && wider == NULL) {
        page_map_chunk_free(chunk);
        return ERR_NOMEM;
    }
    rt_latch_acquire(&ckpt->latch);
    if (wider != NULL && ckpt->map.room == room) {
        old = ckpt->map.chunks;
        if (old != NULL) memcpy(wider, old, ckpt->map.count * sizeof(*wider));
        ckpt->map.chunks = wider;
        ckpt->map.room = room * 2 + 16;
        wider = NULL;
    }
    if (page_map_end(&ckpt->map) < end && ckpt->map.count < ckpt->map.room) {
        page_map_append(&ckpt->map, chunk);
        chunk = NULL;
    }
    rt_latch_release(&ckpt->latch);
    page_map_chunk_free(chunk);
    mem_free(wider);
    mem_free(old);
    return OK;
}

/* Room to take back all ids below `end`. */
static Err
ids_grow(Ckpt *ckpt, u32 end)
{
    u32 room = end + MAX_OF(end / 2, IDS_STEP);
    u32 *wider = MEM_NEW_ARRAY(u32, room);
    if (wider == NULL) return ERR_NOMEM;
    u32 *old = wider;
    rt_latch_acquire(&ckpt->latch);
    if (ckpt->ids_room < room) {
        old = ckpt->ids_free;
        if (old != NULL) memcpy(wider, old, ckpt->ids_count * sizeof(u32));
        ckpt->ids_free = wider;
        ckpt->ids_room = room;
    }
    rt_latch_release(&ckpt->latch);
    mem_free(old);
    return OK;
}

Err
ckpt__pages_reserve(Ckpt *ckpt, u32 end)
{
    for (;;) {
        rt_latch_acquire(&ckpt->latch);
        bool few_chunks = page_map_end(&ckpt->map) < end, few_ids = ckpt->ids_room < end;
        rt_latch_release(&ckpt->latch);
        if (!few_chunks && !few_ids) return OK;
        Err err = few_chunks ? chunk_append(ckpt, end) : ids_grow(ckpt, end);
        if (err != OK) return err;
    }
}

static Err
page_id_take(void *arg, u32 *page_id_out)
{
    Ckpt *ckpt = (Ckpt *)arg;
    for (;;) {
        u32 page_id = 0;
        rt_latch_acquire(&ckpt->latch);
        u32 end = ckpt->pages_end;
        if (ckpt->ids_count > 0) {
            page_id = ckpt->ids_free[--ckpt->ids_count];
        } else if (end < page_map_end(&ckpt->map) && end < ckpt->ids_room) {
            page_id = ckpt->pages_end++;
        }
        rt_latch_release(&ckpt->latch);
        *page_id_out = page_id;
        if (page_id != 0) return OK;
        if (end == U32_MAX) return ERR_FULL;
        Err err = ckpt__pages_reserve(ckpt, end + 1);
        if (err != OK) return err;
    }
}

static void
page_id_give(void *arg, u32 page_id)
{
    Ckpt *ckpt = (Ckpt *)arg;
    rt_latch_acquire(&ckpt->latch);
    ASSERT(ckpt->ids_count < ckpt->ids_room);
    ckpt->ids_free[ckpt->ids_count++] = page_id;
    rt_latch_release(&ckpt->latch);
}

BtreePages
ckpt_pages(Ckpt *ckpt)
{
    return (BtreePages){.arg = ckpt, .take = page_id_take, .give = page_id_give, .ops = &ckpt->ops};
}

PageOps *
ckpt_ops(Ckpt *ckpt)
{
    return &ckpt->ops;
}

/* ---- what the pool asks for ---- */

static Err
client_load(void *arg, u32 page_id, u8 *bytes)
{
    Ckpt *ckpt = (Ckpt *)arg;
    rt_latch_acquire(&ckpt->latch);
    u64 entry = page_map_get(&ckpt->map, page_id);
    rt_latch_release(&ckpt->latch);
    if (entry == 0) return ERR_CORRUPT; /* A link to a page that is not there. */
    ErrMsg msg = {0};
    Err err = ckpt__read(ckpt, map_slot(entry), bytes, &msg);
    NodeHead *head = (NodeHead *)(void *)bytes;
    if (err == OK &&
        ((load_u64(bytes) & MAP_TAG) != (entry & MAP_TAG) || head->page_id != page_id)) {
        err = err_set(&msg, ERR_CORRUPT, "%s is damaged: slot %u is not the newest of page %u",
                      rt_file_name(ckpt->file), map_slot(entry), page_id);
    }
    if (err != OK) {
        log_line(LOG_ERROR, "page %u: %s", page_id, err_message(&msg));
    } else if (head->epoch <= ckpt->opened_epoch && head->level == 0) {
        node_writers_wipe((Node){bytes, ckpt->page_bytes});
    }
    err_clear(&msg);
    return err;
}

/* A page on its way out. */
typedef struct Evicted {
    u64 epoch, checksum;
    u32 slot;
} Evicted;

static Err
client_write(void *arg, u32 page_id, u8 *bytes, u64 *place_out)
{
    Ckpt *ckpt = (Ckpt *)arg;
    (void)page_id;
    u64 epoch = ((const NodeHead *)(const void *)bytes)->epoch;
    if (epoch == PAGE_EPOCH_NONE) return ERR_BUSY; /* Of no tree: it is never written. */
    if (ckpt->is_read_only) return ERR_READONLY;
    if (ckpt_has_failed(ckpt)) return ERR_IO;
    Evicted *evicted = MEM_NEW(Evicted);
    if (evicted == NULL) return ERR_NOMEM;
    Err err = ckpt__slot_take(ckpt, &evicted->slot);
    if (err == OK) {
        err = ckpt__write(ckpt, evicted->slot, bytes, NULL);
        if (err != OK) ckpt__slot_give(ckpt, evicted->slot);
    }
    if (err != OK) {
        mem_free(evicted);
        return err;
    }
    evicted->epoch = epoch;
    evicted->checksum = load_u64(bytes);
    *place_out = (u64)(uintptr_t)evicted;
    return OK;
}

/* Put a page's new place into the current map, and into the cut's. */
static void
place(Ckpt *ckpt, u32 page_id, u64 entry, bool both)
{
    u64 old = page_map_get(&ckpt->map, page_id);
    u64 old_cut = both ? page_map_get_cut(&ckpt->map, page_id) : 0;
    page_map_set(&ckpt->map, page_id, entry, both);
    if (entry != 0) space_born(&ckpt->space, map_slot(entry), both);
    if (old == 0) return;
    /* The cut may name another one, which then stays with the last complete checkpoint. */
    space_retire(&ckpt->space, map_slot(old), both && old_cut == old);
}

static void
client_placed(void *arg, u32 page_id, u64 place_no)
{
    Ckpt *ckpt = (Ckpt *)arg;
    Evicted *evicted = (Evicted *)(uintptr_t)place_no;
    rt_latch_acquire(&ckpt->latch);
    u64 cut = rt_load_relaxed(&ckpt->ops.cut);
    bool both = cut != 0 && evicted->epoch <= cut && !PLANT(157) &&
                page_map_claim(&ckpt->map, page_id, ckpt->space.interval);
    place(ckpt, page_id, map_entry(evicted->slot, evicted->checksum), both);
    rt_latch_release(&ckpt->latch);
    mem_free(evicted);
}

static void
client_discarded(void *arg, u32 page_id, u64 place_no)
{
    Evicted *evicted = (Evicted *)(uintptr_t)place_no;
    (void)page_id;
    ckpt__slot_give((Ckpt *)arg, evicted->slot);
    mem_free(evicted);
}

PoolClient
ckpt_pool_client(Ckpt *ckpt)
{
    return (PoolClient){.arg = ckpt,
                        .load = client_load,
                        .write = client_write,
                        .placed = client_placed,
                        .discarded = client_discarded};
}

/* ---- what operations ask for ---- */

static void
ops_copy_aside(void *arg, u32 page_id, const u8 *bytes)
{
    Ckpt *ckpt = (Ckpt *)arg;
    rt_latch_acquire(&ckpt->latch);
    bool wanted = !PLANT(151) && rt_load_relaxed(&ckpt->ops.cut) != 0 && !ckpt->map.broken &&
                  !page_map_is_claimed(&ckpt->map, page_id, ckpt->space.interval);
    rt_latch_release(&ckpt->latch);
    if (!wanted) return;
    CopyAside *copy = (CopyAside *)mem_alloc(offsetof(CopyAside, bytes) + ckpt->page_bytes);
    if (copy != NULL) {
        copy->page_id = page_id;
        memcpy(copy->bytes, bytes, ckpt->page_bytes);
    }
    rt_latch_acquire(&ckpt->latch);
    if (copy == NULL) {
        ckpt->map.broken = true; /* This checkpoint will be given up. */
    } else if (page_map_claim(&ckpt->map, page_id, ckpt->space.interval)) {
        copy->next = ckpt->copies;
        ckpt->copies = copy;
        ckpt->copy_total++;
        rt_fetch_add(&ckpt->copies_open, 1);
        copy = NULL;
    }
    rt_latch_release(&ckpt->latch);
    mem_free(copy);
}

static void
ops_forget(void *arg, u32 page_id, u64 epoch)
{
    Ckpt *ckpt = (Ckpt *)arg;
    rt_latch_acquire(&ckpt->latch);
    u64 cut = rt_load_relaxed(&ckpt->ops.cut);
    bool both = cut == 0 || epoch <= cut;
    if (!both) page_map_set_gone(&ckpt->map, page_id, ckpt->space.interval);
    place(ckpt, page_id, 0, both && cut != 0);
    rt_latch_release(&ckpt->latch);
}

static void
ops_throttle(void *arg)
{
    Ckpt *ckpt = (Ckpt *)arg;
    if (rt_load_relaxed(&ckpt->copies_open) < ckpt->copies_max) return;
    rt_mutex_lock(&ckpt->throttle_mutex);
    while (rt_load_relaxed(&ckpt->copies_open) >= ckpt->copies_max &&
           rt_load_relaxed(&ckpt->ops.cut) != 0) {
        rt_cond_wait(&ckpt->throttle_cond, &ckpt->throttle_mutex);
    }
    rt_mutex_unlock(&ckpt->throttle_mutex);
}

/* ---- opening ---- */

static Err
ckpt_new(RtFile *file, u32 page_bytes, u64 store_id, u32 frames, Ckpt **ckpt_out, ErrMsg *msg)
{
    *ckpt_out = NULL;
    Ckpt *ckpt = (Ckpt *)mem_alloc_aligned(64, sizeof(Ckpt));
    if (ckpt == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    memset(ckpt, 0, sizeof(*ckpt));
    ckpt->file = file;
    ckpt->page_bytes = page_bytes;
    ckpt->data_start = MAX_OF((u64)4 * SUPER_COPY_BYTES, (u64)page_bytes);
    ckpt->seed = hash_u64(store_id, SUPER_MAGIC);
    ckpt->pages_end = 1; /* 0 is no page. */
    ckpt->copies_max = MAX_OF(frames / 8, 8u);
    rt_latch_init(&ckpt->latch, CKPT_RANK_MAP);
    space_init(&ckpt->space);
    page_map_init(&ckpt->map, page_bytes);
    ckpt->super = (Super){.store_id = store_id, .page_bytes = page_bytes, .pages_end = 1};
    rt_word_init(&ckpt->ops.epoch, 1);
    ckpt->ops.arg = ckpt;
    ckpt->ops.copy_aside = ops_copy_aside;
    ckpt->ops.forget = ops_forget;
    ckpt->ops.throttle = ops_throttle;
    *ckpt_out = ckpt;
    return OK;
}

Err
ckpt_create(RtFile *file, u32 page_bytes, u64 store_id, u32 frames, Ckpt **ckpt_out, ErrMsg *msg)
{
    return ckpt_new(file, page_bytes, store_id, frames, ckpt_out, msg);
}

static Err
claim(Ckpt *ckpt, u32 slot, ErrMsg *msg)
{
    if (slot < ckpt->super.slots_end && space_claim(&ckpt->space, slot)) return OK;
    return err_set(msg, ERR_CORRUPT, "%s is damaged: slot %u is named twice or out of bounds",
                   rt_file_name(ckpt->file), slot);
}

static bool
are_zeros(const u64 *words, u32 count)
{
    return count == 0 ||
           (words[0] == 0 && memcmp(words, words + 1, (count - 1) * sizeof(u64)) == 0);
}

/* Read the chunk of the map that its directory puts at `entry`. */
static Err
chunk_load(Ckpt *ckpt, u32 number, u64 entry, u8 *page, ErrMsg *msg)
{
    MapChunk *chunk = ckpt->map.chunks[number];
    Err err = claim(ckpt, map_slot(entry), msg);
    if (err == OK) err = ckpt__read(ckpt, map_slot(entry), page, msg);
    if (err != OK) return err;
    MapHead head;
    memcpy(&head, page, sizeof(head));
    if (head.magic != MAP_MAGIC || head.number != number ||
        (head.checksum & MAP_TAG) != (entry & MAP_TAG)) {
        return err_set(msg, ERR_CORRUPT, "%s is damaged: part %u of the page map is not there",
                       rt_file_name(ckpt->file), number);
    }
    chunk->disk = entry;
    memcpy(chunk->entries, page + sizeof(head), ckpt->map.per_chunk * sizeof(u64));
    /* Those of pages; behind them there are zeros only, as before page 1. */
    u32 first = number * ckpt->map.per_chunk;
    u32 pages = ckpt->pages_end > first ? ckpt->pages_end - first : 0;
    pages = MIN_OF(pages, ckpt->map.per_chunk);
    for (u32 i = 0; i < pages && err == OK; i++) {
        if (chunk->entries[i] == 0) continue;
        err = claim(ckpt, first + i > 0 ? map_slot(chunk->entries[i]) : SLOT_NONE, msg);
    }
    if (err != OK || are_zeros(chunk->entries + pages, ckpt->map.per_chunk - pages)) return err;
    return claim(ckpt, SLOT_NONE, msg);
}

static Err
map_load(Ckpt *ckpt, ErrMsg *msg)
{
    CkptReader reader;
    u8 *page = (u8 *)mem_alloc_aligned(4096, ckpt->page_bytes);
    Err err = chain_open(&reader, ckpt, ckpt->super.directory, &ckpt->chains, msg);
    if (page == NULL) err = err_set(msg, ERR_NOMEM, "out of memory");
    u32 count = 0;
    if (err == OK) err = chain_get(&reader, &count, sizeof(count), msg);
    if (err == OK && count != ckpt->map.count) {
        err = err_set(msg, ERR_CORRUPT, "%s is damaged: its page map has %u parts",
                      rt_file_name(ckpt->file), count);
    }
    for (u32 i = 0; i < count && err == OK; i++) {
        u64 entry;
        err = chain_get(&reader, &entry, sizeof(entry), msg);
        if (err == OK && entry != 0) err = chunk_load(ckpt, i, entry, page, msg);
    }
    if (err == OK) err = chain_skip(&reader, msg);
    mem_free(reader.page);
    mem_free(page);
    return err;
}

/* The slots of the description are in use; reading them all checks them too. */
static Err
description_claim(Ckpt *ckpt, ErrMsg *msg)
{
    CkptReader reader;
    Err err = chain_open(&reader, ckpt, ckpt->super.description, &ckpt->chains, msg);
    if (err == OK) err = chain_skip(&reader, msg);
    if (err == OK && reader.index == 1) {
        /* One page: who opens the file reads it from here. */
        reader.slots = NULL;
        ckpt->description = reader;
        return OK;
    }
    mem_free(reader.page);
    return err;
}

static Err
load_all(Ckpt *ckpt, ErrMsg *msg)
{
    const Super *super = &ckpt->super;
    SpaceArrays arrays;
    Err err = space_grown(super->slots_end + SLOTS_STEP, &arrays);
    if (err == OK) {
        space_adopt(&ckpt->space, &arrays);
        err = ckpt__pages_reserve(ckpt, MAX_OF(super->pages_end, 1u));
    }
    if (err != OK) return err_set(msg, err, "out of memory");
    ckpt->pages_end = MAX_OF(super->pages_end, 1u);
    if (super->directory != 0) err = map_load(ckpt, msg);
    if (err == OK && super->description != 0) err = description_claim(ckpt, msg);
    for (u32 i = 0; i < ckpt->chains.count && err == OK; i++) {
        err = claim(ckpt, ckpt->chains.slots[i], msg);
    }
    for (u32 i = ckpt->pages_end; i > 1 && err == OK; i--) {
        if (page_map_get(&ckpt->map, i - 1) == 0) ckpt->ids_free[ckpt->ids_count++] = i - 1;
    }
    return err;
}

Err
ckpt_open(RtFile *file, const Super *super, u32 frames, Ckpt **ckpt_out, ErrMsg *msg)
{
    Ckpt *ckpt;
    *ckpt_out = NULL;
    Err err = ckpt_new(file, super->page_bytes, super->store_id, frames, &ckpt, msg);
    if (err != OK) return err;
    ckpt->super = *super;
    rt_store_relaxed(&ckpt->unsettled, 1);
    ckpt->opened_epoch = super->epoch;
    rt_word_init(&ckpt->ops.epoch, super->epoch + 1);
    err = load_all(ckpt, msg);
    if (err != OK) {
        ckpt_free(ckpt);
        return err;
    }
    *ckpt_out = ckpt;
    return OK;
}

void
ckpt_free(Ckpt *ckpt)
{
    if (ckpt == NULL) return;
    space_free(&ckpt->space);
    page_map_free(&ckpt->map);
    mem_free(ckpt->ids_free);
    mem_free(ckpt->chains.slots);
    mem_free(ckpt->description.page);
    mem_free(ckpt);
}

Err
ckpt_attach(Ckpt *ckpt, PoolFile *pool_file)
{
    ckpt->pool_file = pool_file;
    for (u32 id = 1; id < ckpt->pages_end; id++) {
        if (page_map_get(&ckpt->map, id) == 0) continue;
        Err err = pool_file_adopt(pool_file, id);
        if (err != OK) return err;
    }
    return OK;
}

void
ckpt_set_read_only(Ckpt *ckpt)
{
    ckpt->is_read_only = true;
}

const Super *
ckpt_super(const Ckpt *ckpt)
{
    return &ckpt->super;
}

void
ckpt_stats(Ckpt *ckpt, CkptStats *stats_out)
{
    rt_latch_acquire(&ckpt->latch);
    *stats_out = (CkptStats){.slots_end = ckpt->space.end,
                             .slots_taken = ckpt->space.taken,
                             .copies_aside = ckpt->copy_total,
                             .pages_written = rt_load_relaxed(&ckpt->pages_written),
                             .chunks_written = rt_load_relaxed(&ckpt->chunks_written)};
    rt_latch_release(&ckpt->latch);
}
