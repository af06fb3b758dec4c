/*
 * copy.c -- copying one complete checkpoint to another file while the next ones are made.
 *
 * The slots of a complete checkpoint are never written while it counts; a pin lets it count longer.
 * What to copy follows from the superblock: the directory, the description, the parts of the map,
 * and the pages that these name.  Each goes to the slot that it has, since places and checksums
 * speak of slots; what nobody names stays a hole.
 */
#include "store/ckpt/ckpt_impl.h"

typedef enum CopyStage { COPY_DIRECTORY, COPY_DESCRIPTION, COPY_PARTS, COPY_DONE } CopyStage;

struct CkptCopy {
    Ckpt *ckpt;
    SpacePin pin;
    Super super;
    CopyStage stage;
    u64 chain_next; /* Place of the page of the chain that comes next; 0: none. */
    u32 chain_index;
    Buf directory; /* Its bytes. */
    u32 part;      /* Of the map: the next one to be read. */
    u32 entry;     /* Of the part before: the next one to be copied. */
    u64 *entries;  /* Of that part. */
    u8 *page;
    u64 copied, most;
};

static Err
damaged(const CkptCopy *copy, const char *what, u32 number, ErrMsg *msg)
{
    return err_set(msg, ERR_CORRUPT, "%s is damaged: %s %u does not fit",
                   rt_file_name(copy->ckpt->file), what, number);
}

/* Nothing is given back between the look at the superblock and the pin: the mutex is held. */
static Err
pin_newest(CkptCopy *copy)
{
    Ckpt *ckpt = copy->ckpt;
    for (bool done = false; !done;) {
        rt_latch_acquire(&ckpt->latch);
        u32 words = ckpt->space.room / 64;
        rt_latch_release(&ckpt->latch);
        mem_free(copy->pin.used);
        copy->pin.used = MEM_NEW_ARRAY(u64, words + 1);
        if (copy->pin.used == NULL) return ERR_NOMEM;
        copy->pin.words = words;
        rt_latch_acquire(&ckpt->latch);
        done = space_pin(&ckpt->space, &copy->pin);
        copy->most = ckpt->space.taken;
        rt_latch_release(&ckpt->latch);
    }
    return OK;
}

Err
ckpt_copy_open(Ckpt *ckpt, CkptCopy **copy_out, ErrMsg *msg)
{
    *copy_out = NULL;
    CkptCopy *copy = MEM_NEW(CkptCopy);
    if (copy == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    copy->page = (u8 *)mem_alloc_aligned(4096, ckpt->page_bytes);
    copy->entries = MEM_NEW_ARRAY(u64, ckpt->map.per_chunk);
    Err err = copy->page == NULL || copy->entries == NULL ? ERR_NOMEM : OK;
    rt_mutex_lock(&ckpt->run_mutex);
    copy->super = ckpt->super;
    if (err == OK) {
        copy->ckpt = ckpt;
        err = pin_newest(copy);
        if (err != OK) copy->ckpt = NULL; /* Nothing is pinned. */
    }
    rt_mutex_unlock(&ckpt->run_mutex);
    if (err != OK) {
        ckpt_copy_close(copy);
        return err_set(msg, err, "out of memory");
    }
    copy->entry = ckpt->map.per_chunk;
    copy->chain_next = copy->super.directory;
    *copy_out = copy;
    return OK;
}

void
ckpt_copy_close(CkptCopy *copy)
{
    if (copy == NULL) return;
    if (copy->ckpt != NULL) {
        rt_latch_acquire(&copy->ckpt->latch);
        space_unpin(&copy->ckpt->space, &copy->pin);
        rt_latch_release(&copy->ckpt->latch);
    }
    mem_free(copy->pin.used);
    mem_free(copy->page);
    mem_free(copy->entries);
    buf_free(&copy->directory);
    mem_free(copy);
}

static Err
slot_put(CkptCopy *copy, RtFile *to, u32 slot, ErrMsg *msg)
{
    Err err = rt_file_write(to, ckpt__offset(copy->ckpt, slot), copy->page, copy->ckpt->page_bytes,
                            msg);
    if (err == OK) copy->copied++;
    return err;
}

/* One page of the directory or of the description; what the former says is kept. */
static Err
chain_page(CkptCopy *copy, RtFile *to, ErrMsg *msg)
{
    ChainHead head;
    if (copy->chain_next > copy->super.slots_end) {
        return damaged(copy, "page of a chain", copy->chain_index, msg);
    }
    u32 slot = (u32)(copy->chain_next - 1);
    Err err = ckpt__read(copy->ckpt, slot, copy->page, msg);
    if (err != OK) return err;
    memcpy(&head, copy->page, sizeof(head));
    if (head.magic != CHAIN_MAGIC || head.epoch != copy->super.epoch ||
        head.index != copy->chain_index ||
        head.bytes > copy->ckpt->page_bytes - sizeof(ChainHead)) {
        return damaged(copy, "page of a chain", copy->chain_index, msg);
    }
    size_t kept = copy->directory.bytes;
    if (copy->stage == COPY_DIRECTORY &&
        buf_append(&copy->directory, copy->page + sizeof(head), head.bytes) != OK) {
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    err = slot_put(copy, to, slot, msg);
    if (err != OK) {
        copy->directory.bytes = kept; /* The step is tried again. */
        return err;
    }
    copy->chain_next = head.next;
    copy->chain_index++;
    return OK;
}

static Err
part_page(CkptCopy *copy, RtFile *to, u64 entry, ErrMsg *msg)
{
    MapHead head;
    u32 slot = map_slot(entry);
    if (slot >= copy->super.slots_end)
        return damaged(copy, "part of the page map", copy->part, msg);
    Err err = ckpt__read(copy->ckpt, slot, copy->page, msg);
    if (err != OK) return err;
    memcpy(&head, copy->page, sizeof(head));
    if (head.magic != MAP_MAGIC || head.number != copy->part ||
        (head.checksum & MAP_TAG) != (entry & MAP_TAG)) {
        return damaged(copy, "part of the page map", copy->part, msg);
    }
    err = slot_put(copy, to, slot, msg);
    if (err != OK) return err;
    memcpy(copy->entries, copy->page + sizeof(head), copy->ckpt->map.per_chunk * sizeof(u64));
    copy->entry = 0;
    return OK;
}

static Err
data_page(CkptCopy *copy, RtFile *to, u32 page_id, u64 entry, ErrMsg *msg)
{
    u32 slot = map_slot(entry);
    if (slot >= copy->super.slots_end) return damaged(copy, "the slot of page", page_id, msg);
    Err err = ckpt__read(copy->ckpt, slot, copy->page, msg);
    if (err != OK) return err;
    if ((load_u64(copy->page) & MAP_TAG) != (entry & MAP_TAG) ||
        ((const NodeHead *)(const void *)copy->page)->page_id != page_id) {
        return damaged(copy, "the slot of page", page_id, msg);
    }
    return slot_put(copy, to, slot, msg);
}

/* The next page that the map names, or the next part of it. */
static Err
map_page(CkptCopy *copy, RtFile *to, ErrMsg *msg)
{
    u32 each = copy->ckpt->map.per_chunk;
    while (copy->entry < each) {
        u64 entry = copy->entries[copy->entry];
        if (entry != 0) {
            Err err = data_page(copy, to, (copy->part - 1) * each + copy->entry, entry, msg);
            if (err == OK) copy->entry++;
            return err;
        }
        copy->entry++;
    }
    size_t at = sizeof(u32) + (size_t)copy->part * sizeof(u64);
    if (at >= copy->directory.bytes) {
        copy->stage = COPY_DONE;
        return OK;
    }
    u64 entry = load_u64(copy->directory.p + at);
    Err err = entry == 0 ? OK : part_page(copy, to, entry, msg);
    if (err == OK) copy->part++;
    return err;
}

/* The directory has been read whole: it is a number of parts, and so many entries. */
static Err
directory_check(CkptCopy *copy, ErrMsg *msg)
{
    size_t bytes = copy->directory.bytes;
    if (bytes == 0) return OK; /* There is no page. */
    u32 parts = bytes < sizeof(u32) ? 0 : load_u32(copy->directory.p);
    bool fits = bytes == sizeof(u32) + (size_t)parts * sizeof(u64);
    return fits ? OK : damaged(copy, "the directory of its page map, parts:", parts, msg);
}

Err
ckpt_copy_step(CkptCopy *copy, RtFile *to, u32 pages, bool *more_out, ErrMsg *msg)
{
    Err err = OK;
    u64 end = copy->copied + pages;
    while (err == OK && copy->stage != COPY_DONE && copy->copied < end) {
        if (copy->stage == COPY_PARTS) {
            err = map_page(copy, to, msg);
        } else if (copy->chain_next != 0) {
            err = chain_page(copy, to, msg);
        } else if (copy->stage == COPY_DESCRIPTION) {
            copy->stage = COPY_PARTS;
        } else {
            err = directory_check(copy, msg);
            if (err != OK) break;
            copy->stage = COPY_DESCRIPTION;
            copy->chain_next = copy->super.description;
            copy->chain_index = 0;
        }
    }
    *more_out = copy->stage != COPY_DONE;
    return err;
}

Super
ckpt_copy_super(const CkptCopy *copy)
{
    Super super = copy->super;
    super.flags |= SUPER_CLEAN;
    super.sequence = MAX_OF(super.sequence, (u64)1);
    super.oldest_lsn = super.cut_lsn; /* What was open at the cut is undone, and never committed. */
    return super;
}

void
ckpt_copy_progress(const CkptCopy *copy, u64 *done_out, u64 *most_out)
{
    *done_out = copy->copied;
    *most_out = MAX_OF(copy->most, copy->copied);
}
