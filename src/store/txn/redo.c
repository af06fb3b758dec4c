/*
 * redo.c -- the redo stream.
 */
#include "store/txn/redo.h"

#include "store/file.h"

#define KEEP_BYTES ((size_t)1 << 16) /* Memory that a transaction object keeps. */

void
redo_append(StoreTxn *txn, RedoKind kind, TreeId tree, Slice key, Slice value)
{
    if (txn->store->wal == NULL) return;
    Buf *redo = &txn->redo;
    u8 *to = redo->p + redo->bytes;
    *to++ = (u8)kind;
    if (LIKELY((tree | key.bytes | value.bytes) < 128)) {
        to[0] = (u8)tree; /* As varint_put() writes them. */
        to[1] = (u8)key.bytes;
        to[2] = (u8)value.bytes;
        to += 3;
    } else {
        to += varint_put(to, tree);
        to += varint_put(to, key.bytes);
        to += varint_put(to, value.bytes);
    }
    if (key.bytes > 0) memcpy(to, key.p, key.bytes);
    if (value.bytes > 0) memcpy(to + key.bytes, value.p, value.bytes);
    redo->bytes = (size_t)(to - redo->p) + key.bytes + value.bytes;
    ASSERT(redo->bytes <= redo->capacity);
}

void
redo_cut(StoreTxn *txn, u64 position)
{
    if (txn->store->wal == NULL) return;
    ASSERT(position <= redo_position(txn));
    if (position >= txn->redo_done) {
        txn->redo.bytes = position - txn->redo_done;
        return;
    }
    /* The next piece says where it begins, and so voids what went ahead from there on. */
    if (!PLANT(131)) txn->redo_done = position;
    txn->redo.bytes = 0;
}

void
redo_piece(StoreTxn *txn, const WalPlace *place, u32 type, u64 ts)
{
    bool last = type == WAL_RECORD_COMMIT;
    size_t count = place->bytes - sizeof(WalRecordHead);
    WalRecordHead record = {.bytes = place->bytes,
                            .type = type,
                            .txn_id = rt_load_relaxed(&txn->state->id),
                            .stream_offset = txn->redo_done + txn->redo_taken,
                            .ts = ts,
                            .stream_bytes = last ? redo_position(txn) : 0};
    ASSERT(count <= redo_left(txn) && (!last || count == redo_left(txn)));
    memcpy(place->to, &record, sizeof(record));
    if (count > 0) memcpy(place->to + sizeof(record), txn->redo.p + txn->redo_taken, count);
    txn->redo_taken += count;
}

void
redo_drop_taken(StoreTxn *txn)
{
    size_t taken = txn->redo_taken, left = redo_left(txn);
    if (taken == 0) return;
    if (left > 0) memmove(txn->redo.p, txn->redo.p + taken, left);
    txn->redo.bytes = left;
    txn->redo_done += taken;
    txn->redo_taken = 0;
}

void
redo_spill_now(StoreTxn *txn)
{
    Store *store = txn->store;
    ASSERT(txn->redo_taken == 0);
    if (!file__log_is_ready(store)) {
        ErrMsg msg = {0};
        Err err = file__begin_log(store, &msg);
        err_clear(&msg);
        if (err != OK) return; /* The commit will say so. */
    }
    TxnState *state = txn->state;
    while (redo_left(txn) >= WAL_PIECE_BYTES_MAX) {
        WalPlace place;
        if (wal_reserve(store->wal, WAL_RECORD_HEAD_BYTES + WAL_PIECE_BYTES_MAX) != OK) break;
        if (!state->chunks_open) wal_chunks_begin(store->wal, &state->chunks);
        state->chunks_open = true;
        wal_take(store->wal, WAL_RECORD_HEAD_BYTES + WAL_PIECE_BYTES_MAX, &place);
        rt_latch_release(&store->commit_latch);
        redo_piece(txn, &place, WAL_RECORD_CHUNK, 0);
        wal_filled(store->wal, &place);
    }
    redo_drop_taken(txn);
}

void
redo_chunks_end(StoreTxn *txn)
{
    TxnState *state = txn->state;
    if (!state->chunks_open) return;
    wal_chunks_end(txn->store->wal, &state->chunks);
    state->chunks_open = false;
}

void
redo_reset(StoreTxn *txn)
{
    txn->redo_done = 0;
    txn->redo_taken = 0;
    buf_clear(&txn->redo);
    if (UNLIKELY(txn->redo.capacity > KEEP_BYTES)) buf_free(&txn->redo);
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
