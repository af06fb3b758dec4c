/*
 * scan_batch.c -- scans of rowid tables, a column at a time.
 *
 * A run of records becomes vectors: a column of integers an i64 array, of reals an f64 array,
 * everything else cells that point into the run.  The kind is guessed from the declared type and
 * kept as long as the values agree; the first that does not turns that column of that batch into
 * cells.
 *
 * With a filter, only its columns are decoded for all rows; the others for the rows that passed.
 * Damage and rare forms of records (wide directory, columns added later, long values) are left to
 * the codec.
 */
#include "exec/exec__write.h"
#include "exec/scan_place.h"
#include "exec/vexpr.h"

static Place
place_of(const TableDef *table, u32 column)
{
    u32 count = table->stored_count;
    return (Place){.head = (u16)(count << 8),
                   .start_mask = column > 0 ? 0xFFF : 0,
                   .word = 2 + 2 * column,
                   .header_bytes = 2 + 2 * count,
                   /* A wide count has no usual form: no record is long enough. */
                   .bytes_min = count <= 255 ? MAX_OF(2 + 2 * count, 8u) : U32_MAX};
}

Err
exec__scan_places(Exec *exec, Scan *scan)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    const TableDef *table = plan->table;
    u32 columns = scan->node.plan->columns;
    if (table->without_rowid) return OK;
    scan->place = ARENA_NEW_ARRAY(&exec->arena, Place, MAX_OF(columns, 1u));
    if (scan->place == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < columns; i++) {
        u16 number = plan->column[i];
        bool is_rowid = number == COLUMN_ROWID || number == table->rowid_column;
        scan->place[i] = place_of(table, is_rowid ? 0 : table->column[number].stored_index);
        scan->place[i].is_rowid = is_rowid;
    }
    return OK;
}

/* One cell; false: ask the codec. */
static ALWAYS_INLINE bool
field_cell(Slice key, Slice record, const Place *place, Cell *out)
{
    if (place->is_rowid) {
        *out = cell_int(table_key_rowid(key));
        return true;
    }
    Field field = field_at(record, place);
    switch (field.code) {
    case FIELD_NULL: *out = cell_null(); return true;
    case FIELD_INT:
        if (field.bytes > 8) return false;
        *out = cell_int(field_int(field));
        return true;
    case FIELD_REAL:
        if (field.bytes != 8) return false;
        *out = cell_real(field_real(field));
        return true;
    case FIELD_TEXT:
    case FIELD_BLOB:
        if (field.bytes > 0xFFF) return false;
        *out = (Cell){.type = (u8)field.code - FIELD_TEXT + CELL_TEXT,
                      .bytes = field.bytes,
                      .u.p = field.end - field.bytes};
        return true;
    default: return false;
    }
}

/* One cell; its bytes are copied to the node's arena if `copy`. */
static ALWAYS_INLINE Err
row_cell(Exec *exec, Scan *scan, Slice key, Slice record, u32 column, bool copy, Cell *out)
{
    Arena *arena = &scan->node.bytes;
    Err err = OK;
    if (scan->place == NULL || !field_cell(key, record, &scan->place[column], out)) {
        const u16 *number = &scan->node.plan->u.scan.column[column];
        err = table_decode(&scan->table, key, record, number, 1, arena, out);
    }
    if (copy && err == OK && out->type >= CELL_TEXT) err = cell_copy(out, arena, out);
    return LIKELY(err == OK) ? OK : exec__fail(exec, err, NULL);
}

Err
exec__scan_row(Exec *exec, Scan *scan, Slice key, Slice record, Cell *row)
{
    for (u32 i = 0; i < scan->node.plan->columns; i++) {
        Err err = row_cell(exec, scan, key, record, i, true, &row[i]);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__scan_entry(Exec *exec, Scan *scan, Slice key, Slice record, Cell *row)
{
    if (scan->place == NULL) {
        Err err = table_decode(&scan->table, key, record, scan->node.plan->u.scan.column,
                               scan->node.plan->columns, &scan->node.bytes, row);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    for (u32 i = 0; i < scan->node.plan->columns; i++) {
        Err err = row_cell(exec, scan, key, record, i, false, &row[i]);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__scan_pick(Exec *exec, Scan *scan, Slice key, Slice record, const u32 *pick, u32 count,
                Cell *out)
{
    for (u32 i = 0; i < count; i++) {
        Err err = row_cell(exec, scan, key, record, pick[i], true, &out[i]);
        if (err != OK) return err;
    }
    return OK;
}

/* Which rows of the run to decode: positions first..first+count, all or those of `sel`. */
typedef struct Rows {
    const Slice *key, *record; /* Of position 0. */
    const u16 *sel;            /* NULL: all. */
    u32 count;
    u32 extent; /* Positions lie below it. */
} Rows;

static ALWAYS_INLINE u32
rows_at(const u16 *sel, u32 nth)
{
    return sel != NULL ? sel[nth] : nth;
}

/* Each gives how many rows it could do; the next one has another kind of value.  `null` is all
   zeroes before.  This loop is field_at() and field_int() with the usual case straight through:
   an integer of 1 to 8 bytes. */
static ALWAYS_INLINE u32
ints_loop(const Slice *record, const u16 *sel, u32 count, const Place *usual, i64 *out, u8 *null,
          bool *has_null)
{
    const Place place = *usual; /* In registers. */
    const u32 words_at = place.word - 2, behind_head = place.header_bytes - 8;
    for (u32 n = 0; n < count; n++) {
        u32 at = rows_at(sel, n);
        const u8 *p = record[at].p;
        const size_t bytes = record[at].bytes;
        if (UNLIKELY(bytes < place.bytes_min || load_u16(p) != place.head)) return n;
        u32 words = load_u32(p + words_at); /* Where the column starts, and its own word. */
        u32 end = (words >> 16) - (FIELD_INT << 12);
        u32 less = end - (words & place.start_mask) - 1; /* Its bytes less one. */
        u32 from = behind_head + end;                    /* Of the eight bytes before its end. */
        if (LIKELY(end <= 0xFFF && less < 8 && from <= bytes - 8)) {
            out[at] = (i64)load_u64(p + from) >> (56 - 8 * less);
            continue;
        }
        Field field = field_at(record[at], &place);
        if (field.code == FIELD_INT && field.bytes == 0) {
            out[at] = 0;
        } else if (field.code == FIELD_NULL) {
            out[at] = 0;
            null[at] = 1;
            *has_null = true;
        } else {
            return n;
        }
    }
    return count;
}

static u32
decode_ints(const Rows *rows, const Place *place, i64 *out, u8 *null, bool *has_null)
{
    if (rows->sel == NULL) {
        return ints_loop(rows->record, NULL, rows->count, place, out, null, has_null);
    }
    return ints_loop(rows->record, rows->sel, rows->count, place, out, null, has_null);
}

static u32
decode_reals(const Rows *rows, const Place *place, f64 *out, u8 *null, bool *has_null)
{
    const Slice *record = rows->record;
    const u16 *sel = rows->sel;
    u32 count = rows->count;
    for (u32 n = 0; n < count; n++) {
        u32 at = rows_at(sel, n);
        Field field = field_at(record[at], place);
        if (field.code == FIELD_REAL_INT && field.bytes <= 8) {
            out[at] = (f64)field_int(field);
        } else if (field.code == FIELD_REAL && field.bytes == 8) {
            out[at] = field_real(field);
        } else if (field.code == FIELD_NULL) {
            out[at] = 0.0;
            null[at] = 1;
            *has_null = true;
        } else {
            return n;
        }
    }
    return count;
}

/* A field that the fast form does not know. */
static Err
decode_slow(Exec *exec, Scan *scan, const Rows *rows, u32 at, u32 column, Cell *out)
{
    u16 table_column = scan->node.plan->u.scan.column[column];
    Err err = table_decode(&scan->table, rows->key[at], rows->record[at], &table_column, 1,
                           &scan->node.bytes, out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
decode_cells(Exec *exec, Scan *scan, const Rows *rows, u32 column, const Place *place, Cell *out)
{
    for (u32 n = 0; n < rows->count; n++) {
        u32 at = rows_at(rows->sel, n);
        Field field = field_at(rows->record[at], place);
        Err err = OK;
        switch (field.code) {
        case FIELD_NULL: out[at] = cell_null(); break;
        case FIELD_TEXT:
        case FIELD_BLOB:
            if (UNLIKELY(field.bytes > 0xFFF)) {
                err = decode_slow(exec, scan, rows, at, column, &out[at]);
            } else {
                out[at] = (Cell){.type = (u8)field.code - FIELD_TEXT + CELL_TEXT,
                                 .bytes = field.bytes,
                                 .u.p = field.end - field.bytes};
            }
            break;
        default: err = decode_slow(exec, scan, rows, at, column, &out[at]); break;
        }
        if (err != OK) return err;
    }
    return OK;
}

static void
decode_rowids(const Rows *rows, i64 *out)
{
    for (u32 n = 0; n < rows->count; n++) {
        u32 at = rows_at(rows->sel, n);
        out[at] = table_key_rowid(rows->key[at]);
    }
}

/* Make output column `column` for the rows. */
static Err
decode_column(Exec *exec, Scan *scan, const Rows *rows, u32 column)
{
    const TableDef *table = scan->node.plan->u.scan.table;
    const Place *place = &scan->place[column];
    u16 number = scan->node.plan->u.scan.column[column];
    void *buffer = scan->node.buffer[column];
    u8 *null = scan->null[column];
    Vec *vec = &scan->node.out.col[column];
    bool has_null = false;
    if (place->is_rowid) {
        decode_rowids(rows, buffer);
        *vec = (Vec){.kind = VEC_INT, .u.i = buffer};
        return OK;
    }
    u32 done = 0;
    memset(null, 0, rows->extent);
    switch (table->column[number].affinity) {
    case AFFINITY_REAL:
        done = decode_reals(rows, place, buffer, null, &has_null);
        *vec = (Vec){.kind = VEC_REAL, .u.r = buffer, .null = has_null ? null : NULL};
        break;
    case AFFINITY_INTEGER:
    case AFFINITY_NUMERIC:
    case AFFINITY_BLOB:
    case AFFINITY_NONE:
        done = decode_ints(rows, place, buffer, null, &has_null);
        *vec = (Vec){.kind = VEC_INT, .u.i = buffer, .null = has_null ? null : NULL};
        break;
    default: break;
    }
    if (done == rows->count && done > 0) return OK;
    *vec = (Vec){.kind = VEC_CELL, .u.cell = buffer};
    return decode_cells(exec, scan, rows, column, place, buffer);
}

bool
exec__scan_filter_reads(const Scan *scan, u32 column)
{
    const ExecProgram *filter = scan->filter;
    for (u32 i = 0; filter != NULL && i < filter->column_count; i++) {
        if (filter->column[i] == column) return true;
    }
    return false;
}

/* Columns that the filter reads, or the others. */
static Err
decode_columns(Exec *exec, Scan *scan, const Rows *rows, bool for_filter)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < scan->node.plan->columns; i++) {
        if (exec__scan_filter_reads(scan, i) != for_filter) continue;
        err = decode_column(exec, scan, rows, i);
    }
    return err;
}

/*
 * What a look-up gave is gone with the next call on the store, also one by another node; the cells
 * of a batch must live until the next call on this one.
 */
static Err
point_keep(Exec *exec, Scan *scan)
{
    Slice value = scan->point_value;
    if (!scan->range.point || scan->run_next == scan->run.rows || value.bytes == 0) return OK;
    u8 *kept = arena_bytes(&scan->node.bytes, value.bytes);
    if (kept == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    memcpy(kept, value.p, value.bytes);
    scan->point_value.p = kept;
    return OK;
}

/* One chunk of the run as the output; *more_out: no row passed, go on. */
static Err
chunk_next(Exec *exec, Scan *scan, u32 want, bool *more_out)
{
    ExecNode *node = &scan->node;
    u32 left = scan->run.rows - scan->run_next;
    u32 count = scan->filter == NULL ? MIN_OF(left, want) : left;
    Rows rows = {.key = scan->run.key + scan->run_next,
                 .record = scan->run.value + scan->run_next,
                 .count = count,
                 .extent = count};
    Err err = exec__out_reserve(exec, node, MAX_OF(count, want));
    *more_out = false;
    scan->entry_first = scan->run_next;
    if (err != OK) return err;
    if (scan->filter == NULL) {
        err = decode_columns(exec, scan, &rows, false);
        exec__out_rows(node, err == OK ? count : 0, err);
        scan->run_next += count;
        return err;
    }
    node->out.rows = count;
    node->out.count = count;
    node->out.sel = NULL;
    u32 selected = 0, taken = 0;
    err = decode_columns(exec, scan, &rows, true);
    if (err == OK) {
        err = exec__vselect(exec, scan->vfilter, &node->out, want, &node->bytes, scan->sel,
                            &selected, &taken);
    }
    rows.sel = scan->sel;
    rows.count = selected;
    if (err == OK && selected > 0) err = decode_columns(exec, scan, &rows, false);
    if (err != OK) return err;
    scan->run_next += taken;
    node->out.sel = scan->sel;
    node->out.count = selected;
    node->out.err = OK;
    node->out.last = false;
    *more_out = selected == 0;
    return OK;
}

/* Buffers, at first use. */
static Err
scan_batch_ready(Exec *exec, Scan *scan)
{
    if (scan->null != NULL) return OK;
    u32 columns = MAX_OF(scan->node.plan->columns, 1u);
    scan->sel = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    u8 **null = ARENA_NEW_ARRAY(&exec->arena, u8 *, columns);
    if (scan->sel == NULL || null == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < columns; i++) {
        null[i] = arena_bytes(&exec->arena, BATCH_ROWS_MAX);
        if (null[i] == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    scan->null = null;
    return OK;
}

void
exec__scan_batch_next(Exec *exec, Scan *scan, u32 want)
{
    ExecNode *node = &scan->node;
    Err err = scan_batch_ready(exec, scan);
    bool more = true;
    while (err == OK && more) {
        arena_reset(&node->bytes);
        bool looked = false;
        scan->last_looked = false;
        if (exec__scan_may_look(scan, want))
            err = exec__scan_look(exec, scan, want, &looked, &more);
        if (err == OK && looked) {
            if (!more) return;
            continue;
        }
        if (err == OK) err = exec__scan_fill(exec, scan, want);
        if (err != OK || scan->state == SCAN_DONE) break;
        err = point_keep(exec, scan);
        if (err == OK) err = chunk_next(exec, scan, want, &more);
        if (err == OK && !more) return;
    }
    exec__out_end(node, err);
}
