/*
 * scan_look.c -- scans of rowid tables whose rows are read where they lie.
 *
 * A look of the store names leaves that the transaction sees as they stand.  Each piece of it is
 * decoded, all wanted columns one after the other while the leaf is in the cache, into vectors of
 * our own, and only then is it asked whether the leaf stood still; if not, or if an entry is of a
 * rare form, the batch is made from copies instead (scan_batch.c).  With a filter, its columns are
 * decoded first, and the others in a second pass for the rows that passed.
 *
 * Bytes of a leaf may change under these loops: every offset is checked against the page, and what
 * came of it is thrown away when the leaf has changed.
 */
#include "exec/exec__write.h"
#include "exec/scan_place.h"
#include "exec/vexpr.h"

#define LOOK_ROWS_MIN 256u /* Fewer are not worth two visits of each leaf. */
#define LOOK_WAIT     8u   /* So many batches of copies after a look that came to nothing. */
#define TEXT_STEP     16u  /* Short texts are copied as so many bytes. */
/* A slab a piece, in each of two passes. */
#define TEXT_SLABS_MAX (2 * STORE_LOOK_PIECES_MAX)
/* Leaves of smaller entries are asked for as a whole while the one before is read. */
#define DENSE_BYTES 128u

/* How a column is decoded. */
typedef enum LookMode { LOOK_ROWID, LOOK_INTS, LOOK_REALS, LOOK_CELLS } LookMode;

typedef struct LookJob {
    Place place;
    u8 mode;    /* LookMode of this batch. */
    u8 usual;   /* LookMode by the declared type. */
    bool first; /* Read by the filter, or there is none. */
    bool has_null;
    void *out;
    u8 *null;
} LookJob;

/* What a loop reads: rows of a piece. */
typedef struct LookRows {
    const StorePiece *piece;
    const u32 *record; /* Of the nth row: where it is in the page, and its bytes << 16. */
    const u16 *sel;    /* Positions in the batch; NULL: all of the piece. */
    u32 count;
    const u8 *ahead; /* Of the next page, to be asked for with the first row ... */
    u32 ahead_step;  /* ... and so many bytes on with each; 0: none. */
} LookRows;

/* How much a look has. */
typedef struct LookSpan {
    u32 rows, pieces;
} LookSpan;

typedef enum LookResult { LOOK_DONE, LOOK_OTHER_KIND, LOOK_FAILED } LookResult;

/* One field as the loops see it; `end` NULL: not of the usual form. */
typedef struct LookField {
    const u8 *end;
    u32 code;
    u32 bytes;
} LookField;

/* A field of a record that lies in the page, and so does its directory. */
static ALWAYS_INLINE LookField
look_field(const u8 *page, const Place *place, u32 record)
{
    const u8 *p = page + (record & 0xFFFF);
    if (UNLIKELY(load_u16(p) != place->head)) return (LookField){NULL, 0, 0};
    u32 words = load_u32(p + place->word - 2); /* Where the column starts, and its own word. */
    u32 here = words >> 16, end = here & 0xFFF, start = words & place->start_mask;
    u32 behind = place->header_bytes + end;
    if (UNLIKELY(behind > record >> 16 || start > end)) return (LookField){NULL, 0, 0};
    return (LookField){p + behind, here >> 12, end - start};
}

/* The second half of an entry: where its value is, and what kind it is of. */
static ALWAYS_INLINE u64
entry_half(const StoreEntry *entry)
{
    return load_u64((const u8 *)entry + offsetof(StoreEntry, at));
}

/* Where the record of an entry is; *bad_io: not in the page, shorter than its directory, or not
   plain.  Numbers are read as the eight bytes before their end. */
static ALWAYS_INLINE u32
record_of(u64 half, u32 page_bytes, u32 header_bytes, u64 *bad_io)
{
    u32 at = half & 0xFFFF, bytes = (u32)(half >> 32) & 0xFFFF;
    *bad_io |= half >> 56 | (u64)(at + bytes > page_bytes) | (u64)(at < 8 || bytes < header_bytes);
    return at | bytes << 16;
}

/* The records of all rows of a piece, or of the selected ones.  False: some cannot be read here. */
static bool
records_find(const StorePiece *piece, const u16 *sel, u32 count, u32 header_bytes, u32 *record)
{
    u64 bad = 0;
    const u32 page_bytes = piece->page_bytes;
    const StoreEntry *entry = piece->entry;
    if (sel == NULL && piece->step == 1) {
        for (u32 n = 0; n < count; n++) {
            record[n] = record_of(entry_half(&entry[n]), page_bytes, header_bytes, &bad);
        }
        return bad == 0;
    }
    for (u32 n = 0; n < count; n++) {
        i64 at = sel != NULL ? (i64)(sel[n] - piece->first) : (i64)n;
        u64 half = entry_half(&entry[at * piece->step]);
        record[n] = record_of(half, page_bytes, header_bytes, &bad);
    }
    return bad == 0;
}

/* A number of 0 to 8 bytes that ends at `end`; the eight bytes before it can be read. */
static ALWAYS_INLINE i64
look_int(const u8 *end, u32 bytes)
{
    return bytes != 0 ? (i64)load_u64(end - 8) >> (64 - 8 * bytes) : 0;
}

/* The usual case, an integer of 1 to 8 bytes, goes straight through. */
static ALWAYS_INLINE LookResult
ints_loop(const LookRows *rows, const u16 *sel, const Place *usual, LookJob *job)
{
    const Place place = *usual; /* In registers. */
    const u8 *page = rows->piece->page, *ahead = rows->ahead;
    const u32 *record = rows->record;
    const u32 first = rows->piece->first, behind_head = place.header_bytes - 8;
    i64 *out = job->out;
    for (u32 n = 0; n < rows->count; n++) {
        u32 at = sel != NULL ? sel[n] : first + n;
        const u8 *p = page + (record[n] & 0xFFFF);
        if (sel == NULL) {
            __builtin_prefetch(ahead);
            ahead += rows->ahead_step;
        }
        if (UNLIKELY(load_u16(p) != place.head)) return LOOK_FAILED;
        u32 words = load_u32(p + place.word - 2);
        u32 end = (words >> 16) - (FIELD_INT << 12);
        u32 less = end - (words & place.start_mask) - 1; /* Its bytes less one. */
        if (LIKELY(end <= 0xFFF && less < 8 && place.header_bytes + end <= record[n] >> 16)) {
            out[at] = (i64)load_u64(p + (i32)(behind_head + end)) >> (56 - 8 * less);
            continue;
        }
        LookField field = look_field(page, &place, record[n]);
        if (field.end == NULL) return LOOK_FAILED;
        if (field.code > FIELD_INT || field.bytes != 0) return LOOK_OTHER_KIND;
        out[at] = 0;
        if (field.code == FIELD_NULL) {
            job->null[at] = 1;
            job->has_null = true;
        }
    }
    return LOOK_DONE;
}

static ALWAYS_INLINE LookResult
reals_loop(const LookRows *rows, const u16 *sel, const Place *usual, LookJob *job)
{
    const Place place = *usual;
    const u8 *page = rows->piece->page, *ahead = rows->ahead;
    f64 *out = job->out;
    for (u32 n = 0; n < rows->count; n++) {
        u32 at = sel != NULL ? sel[n] : rows->piece->first + n;
        if (sel == NULL) {
            __builtin_prefetch(ahead);
            ahead += rows->ahead_step;
        }
        LookField field = look_field(page, &place, rows->record[n]);
        if (UNLIKELY(field.end == NULL)) return LOOK_FAILED;
        /* Both ways of holding a real come in any order: no branch tells them apart. */
        u32 bytes = MIN_OF(field.bytes, 8u);
        f64 raw;
        memcpy(&raw, field.end - 8, sizeof(raw));
        if (LIKELY(field.code == FIELD_REAL || (field.code == FIELD_REAL_INT && bytes > 0))) {
            if (UNLIKELY(field.bytes > 8 || (field.code == FIELD_REAL && bytes != 8))) {
                return LOOK_FAILED;
            }
            f64 whole = (f64)((i64)load_u64(field.end - 8) >> (64 - 8 * bytes));
            out[at] = field.code == FIELD_REAL ? raw : whole;
            continue;
        }
        if (field.code != FIELD_NULL && field.code != FIELD_REAL_INT) return LOOK_OTHER_KIND;
        out[at] = 0.0;
        if (field.code == FIELD_NULL) {
            job->null[at] = 1;
            job->has_null = true;
        }
    }
    return LOOK_DONE;
}

/* Copy a text or blob to the batch's bytes; false: no room, or not all of it is in the page. */
static ALWAYS_INLINE bool
text_take(const StorePiece *piece, Scan *scan, LookField field, Cell *out)
{
    size_t bytes = field.bytes;
    const u8 *from = field.end - bytes;
    u8 *to = scan->text;
    if (UNLIKELY((size_t)(scan->text_end - to) < bytes + TEXT_STEP)) return false;
    if (LIKELY(bytes <= TEXT_STEP && from + TEXT_STEP <= piece->page + piece->page_bytes)) {
        memcpy(to, from, TEXT_STEP);
    } else {
        memcpy(to, from, bytes);
    }
    scan->text += bytes;
    *out = (Cell){
        .type = (u8)(field.code - FIELD_TEXT + CELL_TEXT), .bytes = (u32)bytes, .u.p = to};
    return true;
}

static ALWAYS_INLINE bool
cell_take(const StorePiece *piece, Scan *scan, LookField field, Cell *out)
{
    switch (field.code) {
    case FIELD_NULL: *out = cell_null(); return true;
    case FIELD_INT: *out = cell_int(look_int(field.end, field.bytes)); return field.bytes <= 8;
    case FIELD_REAL_INT:
        *out = cell_real((f64)look_int(field.end, field.bytes));
        return field.bytes <= 8;
    case FIELD_REAL: {
        f64 raw;
        memcpy(&raw, field.end - 8, sizeof(raw));
        *out = cell_real(raw);
        return field.bytes == 8;
    }
    case FIELD_TEXT:
    case FIELD_BLOB: return text_take(piece, scan, field, out);
    default: return false;
    }
}

static LookResult
cells_loop(Scan *scan, const LookRows *rows, LookJob *job)
{
    const StorePiece piece = *rows->piece;
    const Place place = job->place;
    Cell *out = job->out;
    const u16 *sel = rows->sel;
    const u8 *ahead = rows->ahead;
    for (u32 n = 0; n < rows->count; n++, ahead += rows->ahead_step) {
        u32 at = sel != NULL ? sel[n] : piece.first + n;
        __builtin_prefetch(ahead);
        LookField field = look_field(piece.page, &place, rows->record[n]);
        if (UNLIKELY(field.end == NULL)) return LOOK_FAILED;
        if (UNLIKELY(!cell_take(&piece, scan, field, &out[at]))) return LOOK_FAILED;
    }
    return LOOK_DONE;
}

static void
rowids_loop(const LookRows *rows, i64 *out)
{
    const StorePiece *piece = rows->piece;
    for (u32 n = 0; n < rows->count; n++) {
        u32 at = rows->sel != NULL ? rows->sel[n] : piece->first + n;
        u64 key = piece->entry[(i64)(at - piece->first) * piece->step].key;
        out[at] = (i64)(key ^ (u64)1 << 63);
    }
}

static LookResult
job_run(Scan *scan, const LookRows *rows, LookJob *job)
{
    const u16 *sel = rows->sel;
    switch ((LookMode)job->mode) {
    case LOOK_ROWID: rowids_loop(rows, job->out); return LOOK_DONE;
    case LOOK_INTS:
        return sel == NULL ? ints_loop(rows, NULL, &job->place, job)
                           : ints_loop(rows, sel, &job->place, job);
    case LOOK_REALS:
        return sel == NULL ? reals_loop(rows, NULL, &job->place, job)
                           : reals_loop(rows, sel, &job->place, job);
    default: return cells_loop(scan, rows, job);
    }
}

/* All columns of one phase for one piece. */
static LookResult
piece_decode(Scan *scan, const StorePiece *piece, const u16 *sel, u32 count, bool first)
{
    u32 columns = scan->node.plan->columns;
    u32 jobs = MAX_OF(scan->first_jobs, 1u);
    bool dense = piece->page_bytes < DENSE_BYTES * piece->rows && piece->ahead != piece->page;
    LookRows rows = {.piece = piece, .record = scan->look_record, .sel = sel, .count = count};
    rows.ahead = piece->ahead;
    if (sel == NULL && dense) rows.ahead_step = piece->page_bytes / (piece->rows * jobs) + 1;
    if (!records_find(piece, sel, count, scan->header_bytes, scan->look_record)) return LOOK_FAILED;
    for (u32 i = 0; i < columns; i++) {
        LookJob *job = &scan->job[i];
        if (job->first != first) continue;
        LookResult result = job_run(scan, &rows, job);
        if (result == LOOK_OTHER_KIND) job->mode = LOOK_CELLS;
        if (result != LOOK_DONE) return result;
        rows.ahead += (size_t)count * rows.ahead_step;
    }
    if (first && scan->node.streaming) rowids_loop(&rows, scan->look_rowid);
    return LOOK_DONE;
}

/* Room for the texts of a piece, in slabs that stay for the next batch.  Pieces read from a torn
   page may want more, and then fail. */
static bool
text_room(Exec *exec, Scan *scan, const StorePiece *piece)
{
    size_t wanted = piece->page_bytes + TEXT_STEP;
    if (!scan->takes_text || (size_t)(scan->text_end - scan->text) >= wanted) return true;
    if (scan->text_slab_bytes == 0) scan->text_slab_bytes = wanted;
    if (UNLIKELY(wanted > scan->text_slab_bytes || scan->text_slabs == TEXT_SLABS_MAX))
        return false;
    u8 **slab = &scan->text_slab[scan->text_slabs];
    if (*slab == NULL) *slab = EXEC_ROOM(exec, u8, wanted);
    if (*slab == NULL) return false;
    scan->text_slabs++;
    scan->text = *slab;
    scan->text_end = *slab + wanted;
    return true;
}

/* Decode the piece that is open, and close it. */
static LookResult
piece_take(Exec *exec, Scan *scan, const StorePiece *piece, const u16 *sel, u32 count, bool first)
{
    LookResult result = LOOK_FAILED;
    if (text_room(exec, scan, piece)) result = piece_decode(scan, piece, sel, count, first);
    if (!store_look_end(scan->cursor, result == LOOK_DONE)) return LOOK_FAILED;
    return result;
}

/* The first pass: all rows of leaf after leaf, until there are `want` or a leaf is of another
   kind.  Leaves before that one are good. */
static LookResult
pass_all(Exec *exec, Scan *scan, u32 want, LookSpan *span)
{
    StorePiece piece;
    *span = (LookSpan){0};
    while (span->rows < want && store_look_next(scan->cursor, want - span->rows, &piece)) {
        LookResult result = piece_take(exec, scan, &piece, NULL, piece.rows, true);
        if (result != LOOK_DONE) return result;
        span->rows += piece.rows;
        span->pieces++;
    }
    return span->rows > 0 ? LOOK_DONE : LOOK_FAILED;
}

/* The second pass: the rows that passed. */
static LookResult
pass_selected(Exec *exec, Scan *scan, const LookSpan *span, const u16 *sel, u32 count)
{
    u32 next = 0;
    for (u32 i = 0; i < span->pieces && next < count; i++) {
        StorePiece piece;
        if (!store_look_again(scan->cursor, i, &piece)) return LOOK_FAILED;
        u32 from = next;
        while (next < count && sel[next] < piece.first + piece.rows)
            next++;
        LookResult result = piece_take(exec, scan, &piece, sel + from, next - from, false);
        if (result != LOOK_DONE) return result;
    }
    return LOOK_DONE;
}

/* The vectors of a phase, once it is done. */
static void
vectors_set(Scan *scan, bool first)
{
    for (u32 i = 0; i < scan->node.plan->columns; i++) {
        const LookJob *job = &scan->job[i];
        if (job->first != first) continue;
        const u8 *null = job->has_null ? job->null : NULL;
        Vec *vec = &scan->node.out.col[i];
        if (job->mode == LOOK_CELLS) {
            *vec = (Vec){.kind = VEC_CELL, .u.cell = job->out};
        } else if (job->mode == LOOK_REALS) {
            *vec = (Vec){.kind = VEC_REAL, .u.r = job->out, .null = null};
        } else {
            *vec = (Vec){.kind = VEC_INT, .u.i = job->out, .null = null};
        }
    }
}

static LookMode
mode_of(const TableDef *table, u16 column, bool is_rowid)
{
    if (is_rowid) return LOOK_ROWID;
    switch (table->column[column].affinity) {
    case AFFINITY_REAL: return LOOK_REALS;
    case AFFINITY_INTEGER:
    case AFFINITY_NUMERIC:
    case AFFINITY_BLOB:
    case AFFINITY_NONE: return LOOK_INTS;
    default: return LOOK_CELLS;
    }
}

static Err
look_ready(Exec *exec, Scan *scan)
{
    if (scan->job != NULL) return OK;
    const PlanScan *plan = &scan->node.plan->u.scan;
    u32 columns = scan->node.plan->columns;
    LookJob *job = ARENA_NEW_ARRAY(&exec->arena, LookJob, MAX_OF(columns, 1u));
    if (job == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < columns; i++) {
        job[i].place = scan->place[i];
        if (!scan->place[i].is_rowid) scan->header_bytes = scan->place[i].header_bytes;
        job[i].usual = (u8)mode_of(plan->table, plan->column[i], scan->place[i].is_rowid);
        job[i].first = scan->filter == NULL || exec__scan_filter_reads(scan, i);
        job[i].null = scan->null[i];
    }
    scan->text_slab = ARENA_NEW_ARRAY(&exec->arena, u8 *, TEXT_SLABS_MAX);
    if (scan->text_slab == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    scan->look_record = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
    if (scan->look_record == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    if (scan->node.streaming) {
        scan->look_rowid = EXEC_ROOM(exec, i64, BATCH_ROWS_MAX);
        if (scan->look_rowid == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    for (u32 i = 0; i < columns; i++) {
        scan->has_second = scan->has_second || !job[i].first;
        scan->first_jobs += job[i].first;
    }
    scan->job = job;
    return OK;
}

/* Everything as before the first pass. */
static Err
look_reset(Exec *exec, Scan *scan, u32 want)
{
    Err err = exec__out_reserve(exec, &scan->node, want);
    scan->takes_text = false;
    scan->text = scan->text_end = NULL;
    scan->text_slabs = 0;
    for (u32 i = 0; i < scan->node.plan->columns; i++) {
        LookJob *job = &scan->job[i];
        job->has_null = false;
        job->out = scan->node.buffer[i];
        if (job->mode == LOOK_INTS || job->mode == LOOK_REALS) memset(job->null, 0, want);
        if (job->mode == LOOK_CELLS) scan->takes_text = true;
    }
    return err;
}

/* Those columns that the filter does not read, for the rows that pass it. */
static Err
look_filter(Exec *exec, Scan *scan, u32 want, const LookSpan *span, LookResult *result_out)
{
    ExecNode *node = &scan->node;
    u32 selected, taken;
    Err err = exec__vselect(exec, scan->vfilter, &node->out, want, &node->bytes, scan->sel,
                            &selected, &taken);
    if (err != OK) return err;
    ASSERT(taken == span->rows);
    *result_out = LOOK_DONE;
    if (scan->has_second) *result_out = pass_selected(exec, scan, span, scan->sel, selected);
    if (*result_out == LOOK_DONE) vectors_set(scan, false);
    node->out.sel = scan->sel;
    node->out.count = selected;
    return OK;
}

/* The batch of a look; *span_out without rows: from copies, please. */
static Err
look_decode(Exec *exec, Scan *scan, u32 want, LookSpan *span_out)
{
    ExecNode *node = &scan->node;
    LookResult result = LOOK_OTHER_KIND;
    for (u32 i = 0; i < node->plan->columns; i++) {
        scan->job[i].mode = scan->job[i].usual;
    }
    while (result == LOOK_OTHER_KIND) {
        Err err = look_reset(exec, scan, want);
        if (err != OK) return err;
        bool starts = store_look_start(scan->cursor, node->plan->u.scan.backwards);
        result = starts ? pass_all(exec, scan, want, span_out) : LOOK_FAILED;
        if (result == LOOK_FAILED && span_out->rows > 0) result = LOOK_DONE; /* What there is. */
        if (result != LOOK_DONE) continue;
        vectors_set(scan, true);
        node->out.rows = node->out.count = span_out->rows;
        node->out.sel = NULL;
        node->out.err = OK;
        node->out.last = false;
        if (scan->filter != NULL) err = look_filter(exec, scan, want, span_out, &result);
        if (err != OK) return err;
    }
    if (result != LOOK_DONE) *span_out = (LookSpan){0};
    return OK;
}

bool
exec__scan_may_look(Scan *scan, u32 want)
{
    if (scan->state != SCAN_OPEN || scan->run_next != scan->run.rows || scan->run.end) return false;
    if (scan->at_start || scan->seek_behind || scan->exact || want < LOOK_ROWS_MIN) return false;
    if (scan->node.plan->columns > 0 && scan->place[0].bytes_min == U32_MAX) return false;
    if (scan->look_wait == 0) return true;
    scan->look_wait--;
    return false;
}

Err
exec__scan_look(Exec *exec, Scan *scan, u32 want, bool *looked_out, bool *more_out)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    LookSpan span = {0};
    *looked_out = *more_out = false;
    Err err = exec__check(exec);
    if (err == OK) err = look_ready(exec, scan);
    if (err == OK) err = look_decode(exec, scan, MIN_OF(want, scan->node.rows_max), &span);
    if (err != OK) return err;
    if (span.rows == 0) {
        scan->look_wait = LOOK_WAIT;
        return OK;
    }
    bool end;
    err = store_look_done(scan->cursor, &end);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    if (plan->eq_count == 0 && plan->low == NULL && plan->high == NULL)
        exec->status->full_scan_rows += span.rows;
    scan->run = (StoreRun){.end = end};
    scan->run_next = 0;
    scan->last_looked = *looked_out = true;
    *more_out = scan->node.out.count == 0;
    return OK;
}
