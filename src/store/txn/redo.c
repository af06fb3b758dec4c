/*
 * redo.c -- the redo stream.
 *
 * The writer makes the bytes straight from the versions into the log's buffer, wherever a piece
 * begins or ends, so a commit needs no memory for its record, however long it is.
 */
#include "store/txn/redo.h"

#define OP_HEAD_BYTES_MAX 16u

static RedoKind
kind_of(const Version *version)
{
    switch ((VersionKind)version->kind) {
    case VERSION_VALUE: return REDO_PUT;
    case VERSION_TOMBSTONE: return REDO_DELETE;
    case VERSION_TREE_CREATE: return REDO_CREATE;
    case VERSION_TREE_DROP: return REDO_DROP;
    case VERSION_LOCK: break;
    }
    UNREACHABLE();
}

static u32
op_head(const Version *version, u8 head[OP_HEAD_BYTES_MAX])
{
    u32 bytes = 0;
    head[bytes++] = (u8)kind_of(version);
    bytes += (u32)varint_put(head + bytes, version->tree);
    bytes += (u32)varint_put(head + bytes, version->key_bytes);
    bytes += (u32)varint_put(head + bytes, version->value_bytes);
    return bytes;
}

static bool
is_logged(const Version *version)
{
    return (version->flags & (VERSION_SUPERSEDED | VERSION_DETACHED)) == 0;
}

static const Version *
next_logged(const Version *version)
{
    while (version != NULL && !is_logged(version)) {
        version = version->next;
    }
    return version;
}

void
redo_writer_start(RedoWriter *writer, const TxnState *state)
{
    *writer = (RedoWriter){.at = next_logged(state->first), .txn_id = state->id};
    u8 head[OP_HEAD_BYTES_MAX];
    for (const Version *version = writer->at; version != NULL;
         version = next_logged(version->next)) {
        writer->total_bytes += op_head(version, head) + (u64)version->key_bytes +
                               version->value_bytes;
    }
}

/* Copy the part of `from` that begins at *skip, at most `room` bytes; what is used up of skip is
   taken off it. */
static u64
copy_part(u8 *to, u64 room, const u8 *from, u64 bytes, u64 *skip)
{
    if (*skip >= bytes) {
        *skip -= bytes;
        return 0;
    }
    u64 count = MIN_OF(bytes - *skip, room);
    if (count > 0) memcpy(to, from + *skip, count);
    *skip = 0;
    return count;
}

void
redo_writer_piece(RedoWriter *writer, const WalPlace *place, u32 type, u64 ts)
{
    u8 *to = place->to;
    WalRecordHead record = {.bytes = place->bytes,
                            .type = type,
                            .txn_id = writer->txn_id,
                            .stream_offset = writer->done_bytes,
                            .ts = ts,
                            .stream_bytes = writer->total_bytes};
    memcpy(to, &record, sizeof(record));
    to += sizeof(record);
    u64 room = place->bytes - sizeof(record);
    u8 head[OP_HEAD_BYTES_MAX];
    while (room > 0) {
        const Version *version = writer->at;
        ASSERT(version != NULL);
        u32 head_bytes = op_head(version, head);
        u64 body_bytes = (u64)version->key_bytes + version->value_bytes;
        u64 skip = writer->at_bytes;
        u64 count = copy_part(to, room, head, head_bytes, &skip);
        if (count < room) {
            count += copy_part(to + count, room - count, version->bytes, body_bytes, &skip);
        }
        to += count;
        room -= count;
        writer->at_bytes += count;
        writer->done_bytes += count;
        if (writer->at_bytes < head_bytes + body_bytes) break;
        writer->at = next_logged(version->next);
        writer->at_bytes = 0;
    }
    ASSERT(room == 0);
}

bool
redo_next(Slice *stream, RedoOp *op_out)
{
    const u8 *p = stream->p, *end = p + stream->bytes;
    u64 number[3];
    if (p == end) return false;
    op_out->kind = *p++;
    if (op_out->kind < REDO_PUT || op_out->kind > REDO_DROP) return false;
    for (u32 i = 0; i < 3; i++) {
        size_t bytes = varint_get(p, end, &number[i]);
        if (bytes == 0) return false;
        p += bytes;
    }
    u64 rest = (u64)(end - p);
    if (number[0] > U32_MAX || number[1] > STORE_KEY_BYTES_MAX) return false;
    if (number[1] > rest || number[2] > rest - number[1]) return false;
    op_out->tree = (TreeId)number[0];
    op_out->key = (Slice){p, number[1]};
    op_out->value = (Slice){p + number[1], number[2]};
    p += number[1] + number[2];
    *stream = (Slice){p, (size_t)(end - p)};
    return true;
}
