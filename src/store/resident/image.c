/*
 * image.c -- writing and reading the image.
 *
 * The image is one stream of entries cut into blocks; an entry may cross blocks.  Each block has
 * a checksum seeded with the image and its number, so a block of another image or place does not
 * pass.
 */
#include "store/resident/image.h"

#define ENTRY_TREE 1u
#define ENTRY_ROW  2u
#define ENTRY_END  3u

#define BLOCK_HEAD ((u32)sizeof(ImageBlockHead))

/* ---- heads ---- */

static u64
head_checksum(const ImageHead *head)
{
    return checksum64(head, offsetof(ImageHead, checksum), IMAGE_MAGIC);
}

static u64
head_offset(u64 sequence, u32 copy)
{
    return ((sequence & 1) * 2 + copy) * IMAGE_HEAD_BYTES;
}

Err
image_head_write(RtFile *file, ImageHead *head, ErrMsg *msg)
{
    head->magic = IMAGE_MAGIC;
    head->version = IMAGE_VERSION;
    head->checksum = head_checksum(head);
    for (u32 copy = 0; copy < 2; copy++) {
        Err err = rt_file_write(file, head_offset(head->sequence, copy), head, sizeof(*head), msg);
        if (err != OK) return err;
    }
    return OK;
}

Err
image_head_read(RtFile *file, ImageHead *head_out, bool *found_out, ErrMsg *msg)
{
    *found_out = false;
    for (u32 copy = 0; copy < 4; copy++) {
        ImageHead head;
        size_t got;
        Err err = rt_file_read(file, copy * (u64)IMAGE_HEAD_BYTES, &head, sizeof(head), &got, msg);
        if (err != OK) return err;
        if (got < sizeof(head) || head.magic != IMAGE_MAGIC) continue;
        if (head.version != IMAGE_VERSION) {
            return err_set(msg, ERR_VERSION, "%s: file format %u is not known", rt_file_name(file),
                           head.version);
        }
        if (head.checksum != head_checksum(&head)) continue;
        if ((head.sequence & 1) * 2 != (copy & 2u)) continue; /* Not in its place. */
        if (*found_out && head.sequence <= head_out->sequence) continue;
        *head_out = head;
        *found_out = true;
    }
    return OK;
}

/* ---- writing ---- */

static u64
block_offset(u64 block_no)
{
    return IMAGE_DATA_START + block_no * IMAGE_BLOCK_BYTES;
}

static u64
block_checksum(const u8 *block, u64 image_id)
{
    ImageBlockHead head;
    memcpy(&head, block, sizeof(head));
    u64 seed = checksum64(&head, offsetof(ImageBlockHead, checksum), image_id);
    return checksum64(block + BLOCK_HEAD, head.bytes, seed);
}

Err
image_writer_start(ImageWriter *writer, RtFile *file, u64 image_id, ErrMsg *msg)
{
    *writer = (ImageWriter){.file = file, .msg = msg, .image_id = image_id, .used = BLOCK_HEAD};
    writer->block = (u8 *)mem_alloc(IMAGE_BLOCK_BYTES);
    return writer->block == NULL ? err_set(msg, ERR_NOMEM, "out of memory") : OK;
}

static Err
block_flush(ImageWriter *writer)
{
    ImageBlockHead head = {.magic = IMAGE_BLOCK_MAGIC,
                           .bytes = writer->used - BLOCK_HEAD,
                           .block_no = writer->block_no};
    memcpy(writer->block, &head, sizeof(head));
    head.checksum = block_checksum(writer->block, writer->image_id);
    memcpy(writer->block, &head, sizeof(head));
    Err err = rt_file_write(writer->file, block_offset(writer->block_no), writer->block,
                            writer->used, writer->msg);
    if (err != OK) return err;
    writer->block_no++;
    writer->used = BLOCK_HEAD;
    return OK;
}

static Err
emit(ImageWriter *writer, const u8 *bytes, size_t count)
{
    while (count > 0) {
        size_t room = IMAGE_BLOCK_BYTES - writer->used;
        if (room == 0) {
            Err err = block_flush(writer);
            if (err != OK) return err;
            continue;
        }
        size_t part = MIN_OF(room, count);
        memcpy(writer->block + writer->used, bytes, part);
        writer->used += (u32)part;
        bytes += part;
        count -= part;
    }
    return OK;
}

Err
image_writer_tree(ImageWriter *writer, TreeId id, StoreTreeKind kind)
{
    u8 entry[16] = {ENTRY_TREE};
    size_t bytes = 1 + varint_put(entry + 1, id);
    entry[bytes++] = (u8)kind;
    return emit(writer, entry, bytes);
}

Err
image_writer_row(ImageWriter *writer, Slice key, Slice value)
{
    u8 entry[24] = {ENTRY_ROW};
    size_t bytes = 1 + varint_put(entry + 1, key.bytes);
    bytes += varint_put(entry + bytes, value.bytes);
    writer->rows++;
    Err err = emit(writer, entry, bytes);
    if (err == OK) err = emit(writer, key.p, key.bytes);
    if (err == OK) err = emit(writer, value.p, value.bytes);
    return err;
}

Err
image_writer_end(ImageWriter *writer)
{
    u8 entry[16] = {ENTRY_END};
    size_t bytes = 1 + varint_put(entry + 1, writer->rows);
    Err err = emit(writer, entry, bytes);
    return err == OK ? block_flush(writer) : err;
}

void
image_writer_free(ImageWriter *writer)
{
    mem_free(writer->block);
    writer->block = NULL;
}

/* ---- reading ---- */

typedef struct ImageReader {
    RtFile *file;
    ErrMsg *msg;
    const ImageHead *head;
    u64 block_no; /* Of the next block. */
    u32 used, at; /* Of the present one. */
    u8 *block;
    Buf key, value;
    u64 rows;
} ImageReader;

static Err
damaged(const ImageReader *reader, const char *what)
{
    u64 block_no = reader->block_no == 0 ? 0 : reader->block_no - 1;
    return err_set(reader->msg, ERR_CORRUPT, "%s is damaged: %s, block %llu, offset %llu",
                   rt_file_name(reader->file), what, (unsigned long long)block_no,
                   (unsigned long long)block_offset(block_no));
}

static Err
block_next(ImageReader *reader)
{
    u64 block_no = reader->block_no++;
    if (block_no >= reader->head->image_blocks) return damaged(reader, "the image has no end");
    size_t got;
    Err err = rt_file_read(reader->file, block_offset(block_no), reader->block, IMAGE_BLOCK_BYTES,
                           &got, reader->msg);
    if (err != OK) return err;
    ImageBlockHead head;
    if (got < sizeof(head)) return damaged(reader, "the file is cut short");
    memcpy(&head, reader->block, sizeof(head));
    if (head.magic != IMAGE_BLOCK_MAGIC || head.block_no != block_no ||
        head.bytes > IMAGE_BLOCK_BYTES - BLOCK_HEAD) {
        return damaged(reader, "a block has a wrong head");
    }
    if (got < BLOCK_HEAD + (size_t)head.bytes) return damaged(reader, "the file is cut short");
    if (head.checksum != block_checksum(reader->block, reader->head->image_id)) {
        return damaged(reader, "a block has a wrong checksum");
    }
    reader->at = BLOCK_HEAD;
    reader->used = BLOCK_HEAD + head.bytes;
    return OK;
}

static Err
take(ImageReader *reader, u8 *to, size_t count)
{
    while (count > 0) {
        if (reader->at == reader->used) {
            Err err = block_next(reader);
            if (err != OK) return err;
            continue;
        }
        size_t part = MIN_OF((size_t)(reader->used - reader->at), count);
        memcpy(to, reader->block + reader->at, part);
        reader->at += (u32)part;
        to += part;
        count -= part;
    }
    return OK;
}

static Err
take_varint(ImageReader *reader, u64 *value_out)
{
    u8 bytes[10];
    for (u32 i = 0; i < 10; i++) {
        Err err = take(reader, &bytes[i], 1);
        if (err != OK) return err;
        if (varint_get(bytes, bytes + i + 1, value_out) > 0) return OK;
    }
    return damaged(reader, "a wrong number");
}

static Err
take_slice(ImageReader *reader, Buf *buf, u64 bytes, Slice *slice_out)
{
    /* Mostly it lies in the present block as a whole. */
    if (bytes <= reader->used - reader->at) {
        *slice_out = (Slice){reader->block + reader->at, bytes};
        reader->at += (u32)bytes;
        return OK;
    }
    buf_clear(buf);
    if (buf_reserve(buf, bytes) != OK) return err_set(reader->msg, ERR_NOMEM, "out of memory");
    *slice_out = (Slice){buf->p, bytes};
    return take(reader, buf->p, bytes);
}

static Err
read_row(ImageReader *reader, const ImageSink *sink)
{
    u64 key_bytes, value_bytes;
    Err err = take_varint(reader, &key_bytes);
    if (err == OK) err = take_varint(reader, &value_bytes);
    if (err != OK) return err;
    if (key_bytes > STORE_KEY_BYTES_MAX || value_bytes > STORE_VALUE_BYTES_MAX) {
        return damaged(reader, "an entry is too long");
    }
    Slice key, value;
    err = take_slice(reader, &reader->key, key_bytes, &key);
    if (err != OK) return err;
    if (value_bytes > reader->used - reader->at && key.p != reader->key.p) {
        /* The next block will overwrite the key. */
        buf_clear(&reader->key);
        err = buf_append(&reader->key, key.p, key.bytes);
        if (err != OK) return err_set(reader->msg, err, "out of memory");
        key = buf_slice(&reader->key);
    }
    err = take_slice(reader, &reader->value, value_bytes, &value);
    if (err != OK) return err;
    reader->rows++;
    err = sink->row(sink->arg, key, value);
    return err == ERR_CORRUPT ? damaged(reader, "keys out of order") : err;
}

static Err
read_entries(ImageReader *reader, const ImageSink *sink)
{
    bool has_tree = false;
    for (;;) {
        u8 kind;
        Err err = take(reader, &kind, 1);
        if (err != OK) return err;
        if (kind == ENTRY_ROW && has_tree) {
            err = read_row(reader, sink);
        } else if (kind == ENTRY_TREE) {
            u64 id;
            u8 tree_kind;
            err = take_varint(reader, &id);
            if (err == OK) err = take(reader, &tree_kind, 1);
            if (err != OK) return err;
            if (id >= reader->head->tree_next || tree_kind > STORE_TREE_INT) {
                return damaged(reader, "a wrong tree");
            }
            has_tree = true;
            err = sink->tree(sink->arg, (TreeId)id, (StoreTreeKind)tree_kind);
            if (err == ERR_CORRUPT) return damaged(reader, "a tree appears twice");
        } else if (kind == ENTRY_END) {
            u64 rows;
            err = take_varint(reader, &rows);
            if (err != OK) return err;
            bool complete = rows == reader->rows && rows == reader->head->rows &&
                            reader->block_no == reader->head->image_blocks;
            return complete ? OK : damaged(reader, "the number of entries is wrong");
        } else {
            return damaged(reader, "an unknown entry");
        }
        if (err != OK) return err;
    }
}

Err
image_read(RtFile *file, const ImageHead *head, const ImageSink *sink, ErrMsg *msg)
{
    ImageReader reader = {.file = file, .msg = msg, .head = head};
    reader.block = (u8 *)mem_alloc(IMAGE_BLOCK_BYTES);
    if (reader.block == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    Err err = read_entries(&reader, sink);
    mem_free(reader.block);
    buf_free(&reader.key);
    buf_free(&reader.value);
    return err;
}
