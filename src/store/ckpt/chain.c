/*
 * chain.c -- byte streams in pages that lead from one to the next.
 *
 * A page is written when the next one's slot is known, so the chain is whole when its last page
 * is.
 */
#include "store/ckpt/ckpt_impl.h"

Err
chain_start(CkptStream *stream, Ckpt *ckpt, u64 epoch, SlotList *slots, ErrMsg *msg)
{
    *stream = (CkptStream){
        .ckpt = ckpt, .epoch = epoch, .slot = SLOT_NONE, .first = SLOT_NONE, .slots = slots};
    stream->page = (u8 *)mem_alloc_aligned(4096, ckpt->page_bytes);
    return stream->page == NULL ? err_set(msg, ERR_NOMEM, "out of memory") : OK;
}

void
chain_free(CkptStream *stream)
{
    mem_free(stream->page);
    stream->page = NULL;
}

/* Write the page that is being filled. */
static Err
page_write(CkptStream *stream, u64 next, ErrMsg *msg)
{
    ChainHead head = {.magic = CHAIN_MAGIC,
                      .index = stream->index,
                      .epoch = stream->epoch,
                      .next = next,
                      .bytes = stream->used - (u32)sizeof(ChainHead)};
    memcpy(stream->page, &head, sizeof(head));
    memset(stream->page + stream->used, 0, stream->ckpt->page_bytes - stream->used);
    return ckpt__write(stream->ckpt, stream->slot, stream->page, msg);
}

/* Begin another page, and write the one before. */
static Err
page_next(CkptStream *stream, ErrMsg *msg)
{
    u32 slot;
    Err err = ckpt__slot_take(stream->ckpt, &slot);
    if (err != OK) return err_set(msg, err, "no room for the checkpoint");
    err = ckpt__slot_list_add(stream->slots, slot);
    if (err != OK) {
        ckpt__slot_give(stream->ckpt, slot);
        return err_set(msg, err, "out of memory");
    }
    if (stream->first == SLOT_NONE) {
        stream->first = slot;
    } else {
        err = page_write(stream, (u64)slot + 1, msg);
        if (err != OK) return err;
        stream->index++;
    }
    stream->slot = slot;
    stream->used = (u32)sizeof(ChainHead);
    return OK;
}

Err
ckpt_stream_put(CkptStream *stream, const void *bytes, size_t count, ErrMsg *msg)
{
    const u8 *from = (const u8 *)bytes;
    while (count > 0) {
        u32 room = stream->slot == SLOT_NONE ? 0 : stream->ckpt->page_bytes - stream->used;
        if (room == 0) {
            Err err = page_next(stream, msg);
            if (err != OK) return err;
            continue;
        }
        size_t part = MIN_OF((size_t)room, count);
        memcpy(stream->page + stream->used, from, part);
        stream->used += (u32)part;
        from += part;
        count -= part;
    }
    return OK;
}

Err
chain_finish(CkptStream *stream, u64 *first_out, ErrMsg *msg)
{
    *first_out = stream->first == SLOT_NONE ? 0 : (u64)stream->first + 1;
    return stream->first == SLOT_NONE ? OK : page_write(stream, 0, msg);
}

/* ---- reading ---- */

static Err
damaged(const CkptReader *reader, ErrMsg *msg)
{
    return err_set(msg, ERR_CORRUPT, "%s is damaged: the chain of its checkpoint is broken",
                   rt_file_name(reader->ckpt->file));
}

Err
chain_open(CkptReader *reader, Ckpt *ckpt, u64 first, SlotList *slots, ErrMsg *msg)
{
    *reader = (CkptReader){.ckpt = ckpt, .epoch = ckpt->super.epoch, .next = first, .slots = slots};
    reader->page = (u8 *)mem_alloc_aligned(4096, ckpt->page_bytes);
    return reader->page == NULL ? err_set(msg, ERR_NOMEM, "out of memory") : OK;
}

static Err
page_load(CkptReader *reader, ErrMsg *msg)
{
    Ckpt *ckpt = reader->ckpt;
    ChainHead head;
    if (reader->next - 1 >= ckpt->super.slots_end) return damaged(reader, msg);
    u32 slot = (u32)(reader->next - 1);
    Err err = ckpt__read(ckpt, slot, reader->page, msg);
    if (err != OK) return err;
    memcpy(&head, reader->page, sizeof(head));
    bool fits = head.magic == CHAIN_MAGIC && head.epoch == reader->epoch &&
                head.index == reader->index && head.bytes <= ckpt->page_bytes - sizeof(head);
    if (!fits) return damaged(reader, msg);
    if (reader->slots != NULL) {
        err = ckpt__slot_list_add(reader->slots, slot);
        if (err != OK) return err_set(msg, err, "out of memory");
    }
    reader->index++;
    reader->next = head.next;
    reader->at = (u32)sizeof(head);
    reader->end = (u32)sizeof(head) + head.bytes;
    return OK;
}

Err
chain_get(CkptReader *reader, void *bytes, size_t count, ErrMsg *msg)
{
    u8 *to = (u8 *)bytes;
    while (count > 0) {
        if (reader->at == reader->end) {
            Err err = page_load(reader, msg);
            if (err != OK) return err;
            continue;
        }
        size_t part = MIN_OF((size_t)(reader->end - reader->at), count);
        memcpy(to, reader->page + reader->at, part);
        reader->at += (u32)part;
        to += part;
        count -= part;
    }
    return OK;
}

Err
chain_skip(CkptReader *reader, ErrMsg *msg)
{
    while (reader->next != 0) {
        Err err = page_load(reader, msg);
        if (err != OK) return err;
    }
    return OK;
}

Err
ckpt_reader_open(Ckpt *ckpt, CkptReader **reader_out, ErrMsg *msg)
{
    *reader_out = MEM_NEW(CkptReader);
    if (*reader_out == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    /* At an opening it has just been read and checked. */
    if (ckpt->description.page != NULL) {
        **reader_out = ckpt->description;
        ckpt->description = (CkptReader){0};
        return OK;
    }
    Err err = chain_open(*reader_out, ckpt, ckpt->super.description, NULL, msg);
    if (err != OK) {
        ckpt_reader_close(*reader_out);
        *reader_out = NULL;
    }
    return err;
}

Err
ckpt_reader_get(CkptReader *reader, void *bytes, size_t count, ErrMsg *msg)
{
    return chain_get(reader, bytes, count, msg);
}

bool
ckpt_reader_is_at_end(CkptReader *reader)
{
    return reader->at == reader->end && reader->next == 0;
}

void
ckpt_reader_close(CkptReader *reader)
{
    if (reader == NULL) return;
    mem_free(reader->page);
    mem_free(reader);
}
