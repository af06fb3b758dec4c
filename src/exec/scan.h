/*
 * scan.h -- the run state of a scan (private to exec/): shared by the operator, its kernels and
 * the short path.
 */
#pragma once

#include "exec/node.h"
#include "exec/rowbuf.h"
#include "exec/table_codec.h"

/* The values of one IN list over a key column. */
typedef struct KeyList {
    bool used;
    bool descending; /* Probes go from the largest value down. */
    u8 affinity;     /* What values of a subquery are converted to first. */
    Arena *bytes;    /* For that. */
    const Collation *collation;
    ExecProgram **item;
    ExecSub *sub;
    u32 bind_count;
    ExecProgram **bind;
    RowBuf values; /* One column: sorted, each value once. */
    u32 next;      /* The value of the range at hand. */
} KeyList;

typedef enum ScanState { SCAN_NEW, SCAN_OPEN, SCAN_DONE } ScanState;

typedef struct Scan {
    ExecNode node;
    TableCodec table;
    IndexCodec index_codec;
    const IndexDef *index;   /* NULL: the table's own tree. */
    const IndexCodec *codec; /* Of the tree scanned; NULL: rowid keys. */
    u16 *position;           /* Covering: where an entry holds each output cell. */
    TreeId tree;
    ExecProgram **eq, *low, *high, *filter;
    bool *null_safe;
    KeyList *list; /* Per equality column; unused ones for single values. */
    Cell *eq_value, low_value, high_value;
    Arena bounds; /* Bytes of those, from rewind to rewind. */
    KeyRange range;
    u8 state; /* ScanState */
    StoreTxn *txn;
    StoreCursor *cursor;
    u64 cursor_bind;  /* exec->bind_no when it was bound to its transaction. */
    bool at_start;    /* The next fetch is the first of its range. */
    bool seek_behind; /* After a trip: fetch from behind `behind` on. */
    Buf behind;
    u32 *entry_of; /* Streaming: by output row, its entry in the run. */
    u32 fetch_rows;
    bool exact; /* As many as are asked for are enough: no reading ahead. */
    StoreRun run;
    u32 run_next;
    Slice point_key, point_value;
    Buf table_key;
    Cell *row;           /* Scratch: one row of output cells. */
    struct Place *place; /* Rowid tables: where each output column stands in a usual record. */
    /* Column by column (scan_batch.c): rowid tables, and a filter that is total. */
    bool single; /* One row at most. */
    bool by_column;
    bool
        last_by_column; /* The last batch was made so: row i is entry entry_first + its position. */
    u32 entry_first;
    struct VExpr *vfilter;
    u8 **null; /* Per output column; NULL: buffers not made yet. */
    u16 *sel;
    /* Where the rows lie (scan_look.c). */
    struct LookJob *job; /* Per output column. */
    u32 header_bytes;    /* Of a usual record; 0: only rowids are wanted. */
    u32 *look_record;    /* Of a piece: where its records are. */
    u32 first_jobs;      /* So many columns are decoded for all rows. */
    bool has_second;     /* Some columns are not read by the filter. */
    bool takes_text;     /* Some column of this batch is made of cells. */
    bool last_looked;    /* The last batch was made so. */
    u32 look_wait;       /* So many batches are made of copies first. */
    i64 *look_rowid;     /* Streaming: by position, for trips. */
    u8 *text, *text_end; /* Room for bytes of the batch's cells, in the last slab used. */
    u8 **text_slab;
    size_t text_slab_bytes;
    u32 text_slabs; /* Used by this batch. */
} Scan;

/* Have at least one unread entry in scan->run, or scan->state == SCAN_DONE. */
MUST_CHECK Err exec__scan_fill(Exec *exec, Scan *scan, u32 want);
/* The number of entries that a scan without filter and lists would give; *can_out false: they have
   to be looked at one by one. */
MUST_CHECK Err exec__scan_count(Exec *exec, Scan *scan, u64 *rows_out, bool *can_out);
/* Does the filter read the output column? */
bool exec__scan_filter_reads(const Scan *scan, u32 column);
/* Is the next batch worth a look? */
bool exec__scan_may_look(Scan *scan, u32 want);
/* Make a batch of entries where they lie.  *looked_out false: nothing has happened.  *more_out: no
   row passed the filter, go on. */
MUST_CHECK Err exec__scan_look(Exec *exec, Scan *scan, u32 want, bool *looked_out, bool *more_out);
/* A trip: go on behind the entry with this key. */
MUST_CHECK Err exec__scan_behind_key(Exec *exec, Scan *scan, Slice key);
/* The same for an entry of the run. */
MUST_CHECK Err exec__scan_behind(Exec *exec, Scan *scan, u32 entry);
/* The output cells of a row of the table; bytes are copied to the node's arena. */
MUST_CHECK Err exec__scan_row(Exec *exec, Scan *scan, Slice key, Slice record, Cell *row);
/* The same for an entry of the run, which bytes may point to. */
MUST_CHECK Err exec__scan_entry(Exec *exec, Scan *scan, Slice key, Slice record, Cell *row);
/* The first for some output columns: out[i] is column pick[i]. */
MUST_CHECK Err exec__scan_pick(Exec *exec, Scan *scan, Slice key, Slice record, const u32 *pick,
                               u32 count, Cell *out);
/* Can the scan give no more than one row? */
bool exec__scan_is_single(const PlanScan *scan);
/* Find out where the output columns stand in records (rowid tables). */
MUST_CHECK Err exec__scan_places(Exec *exec, Scan *scan);
/* The operator's next() for scans with by_column. */
void exec__scan_batch_next(Exec *exec, Scan *scan, u32 want);
/* The output cells of an entry of the run; *keep_out false: outside of the range after all. */
MUST_CHECK Err exec__scan_decode(Exec *exec, Scan *scan, u32 entry, Cell *row, bool *keep_out);
