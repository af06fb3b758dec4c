/*
 * look.c -- single slots of a file, for who wants to see them; nothing else of it is read.
 */
#include "store/ckpt/ckpt_impl.h"

Err
ckpt_look_open(RtFile *file, const Super *super, Ckpt **ckpt_out, ErrMsg *msg)
{
    Err err = ckpt_create(file, super->page_bytes, super->store_id, 0, ckpt_out, msg);
    if (err == OK) (*ckpt_out)->super = *super;
    return err;
}

/* The place of a part of the map; 0: it is not there. */
static Err
part_find(Ckpt *ckpt, u32 number, u64 *entry_out, ErrMsg *msg)
{
    CkptReader reader;
    u32 count = 0;
    *entry_out = 0;
    if (ckpt->super.directory == 0) return OK;
    Err err = chain_open(&reader, ckpt, ckpt->super.directory, NULL, msg);
    if (err == OK) err = chain_get(&reader, &count, sizeof(count), msg);
    for (u32 i = 0; err == OK && number < count && i <= number; i++) {
        err = chain_get(&reader, entry_out, sizeof(*entry_out), msg);
    }
    mem_free(reader.page);
    return err;
}

Err
ckpt_look_find(Ckpt *ckpt, u32 page_id, bool *found_out, u32 *slot_out, ErrMsg *msg)
{
    u32 number = page_id / ckpt->map.per_chunk;
    u64 part, entry;
    *found_out = false;
    Err err = part_find(ckpt, number, &part, msg);
    if (err != OK || part == 0) return err;
    u8 *page = (u8 *)mem_alloc_aligned(4096, ckpt->page_bytes);
    if (page == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    err = ckpt__read(ckpt, map_slot(part), page, msg);
    if (err == OK) {
        size_t at = sizeof(MapHead) + (size_t)(page_id % ckpt->map.per_chunk) * sizeof(u64);
        entry = load_u64(page + at);
        *found_out = entry != 0;
        *slot_out = map_slot(entry);
    }
    mem_free(page);
    return err;
}

Err
ckpt_look_slot(Ckpt *ckpt, u32 slot, u8 *page, CkptSlotLook *look_out, ErrMsg *msg)
{
    *look_out = (CkptSlotLook){.kind = CKPT_SLOT_NODE};
    Err err = rt_file_read_exact(ckpt->file, ckpt__offset(ckpt, slot), page, ckpt->page_bytes, msg);
    if (err == ERR_IO_SHORT_READ) {
        return err_set(msg, ERR_CORRUPT, "%s ends before slot %u", rt_file_name(ckpt->file), slot);
    }
    if (err != OK) return err;
    look_out->fits = load_u64(page) == ckpt__checksum(ckpt, slot, page);
    ChainHead chain;
    MapHead map;
    memcpy(&chain, page, sizeof(chain));
    memcpy(&map, page, sizeof(map));
    if (chain.magic == CHAIN_MAGIC) {
        *look_out = (CkptSlotLook){.kind = CKPT_SLOT_CHAIN,
                                   .fits = look_out->fits,
                                   .epoch = chain.epoch,
                                   .number = chain.index,
                                   .next = chain.next,
                                   .used = chain.bytes};
    } else if (map.magic == MAP_MAGIC) {
        look_out->kind = CKPT_SLOT_MAP;
        look_out->epoch = map.epoch;
        look_out->number = map.number;
        for (u32 i = 0; i < ckpt->map.per_chunk; i++) {
            look_out->used += load_u64(page + sizeof(map) + i * sizeof(u64)) != 0;
        }
    }
    return OK;
}
