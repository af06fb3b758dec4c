/*
 * redo.h -- what a transaction changed, as bytes for the log, and back.
 *
 * The redo stream of a transaction is the sequence of its operations; docs/FORMAT.md has the
 * bytes.  It travels in pieces: chunk records and, last, the commit record.
 */
#pragma once

#include "store/txn/version.h"
#include "store/wal/wal.h"

typedef struct RedoWriter {
    const Version *at; /* The operation being written. */
    u64 at_bytes;      /* Of it, bytes that are out. */
    u64 txn_id;
    u64 total_bytes, done_bytes;
    bool open; /* Chunks have been registered with the log. */
    WalChunks chunks;
} RedoWriter;

/* Ready to write the redo stream of a transaction that still runs. */
void redo_writer_start(RedoWriter *writer, const TxnState *state);
/* Fill a place in the log with a record head and the next bytes of the stream. */
void redo_writer_piece(RedoWriter *writer, const WalPlace *place, u32 type, u64 ts);

typedef enum RedoKind { REDO_PUT = 1, REDO_DELETE, REDO_CREATE, REDO_DROP } RedoKind;

typedef struct RedoOp {
    u8 kind; /* RedoKind */
    TreeId tree;
    Slice key, value; /* CREATE: the value is one byte, the tree's kind. */
} RedoOp;

/* Take the next operation off a stream; false at the end or when it is damaged. */
bool redo_next(Slice *stream, RedoOp *op_out);
