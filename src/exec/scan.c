/*
 * scan.c -- PLAN_SCAN: rows of a table or an index, whole or in key ranges.
 *
 * Values bound to key columns come as single values or lists; a scan runs through all combinations
 * of its lists in value order (the odometer), one key range each.
 *
 * Entries are fetched from the store in runs that grow by demand.  An output batch never spans two
 * runs, so cells may point into the run.
 */
#include "exec/scan.h"

#include "exec/exec__write.h"
#include "exec/order.h"
#include "exec/vexpr.h"

#define RUN_BYTES BATCH_BYTES_MAX

/* ---- bounds ---- */

static Err
list_add(void *arg, const Cell *value)
{
    KeyList *list = arg;
    Cell cell = *value;
    if (cell.type == CELL_NULL) return OK;
    Err err = cell_apply_affinity(&cell, (Affinity)list->affinity, list->bytes);
    return err != OK ? err : exec__rowbuf_add(&list->values, &cell);
}

/* Values of an IN list in value order, each once; NULLs match nothing. */
static Err
list_fill(Exec *exec, Scan *scan, u32 part)
{
    const PlanKeyPart *plan = &scan->node.plan->u.scan.eq[part];
    KeyList *list = &scan->list[part];
    exec__rowbuf_clear(&list->values);
    if (plan->in_sub != NULL) {
        for (u32 i = 0; i < list->bind_count; i++) {
            Err err = exec__eval_in(exec, list->bind[i], NULL, &scan->bounds,
                                    &exec->reg[plan->in_sub->bind_reg[i]]);
            if (err != OK) return err;
        }
        Err err = exec__sub_each(exec, list->sub, list_add, list);
        if (err != OK) return exec->msg.err != OK ? err : exec__fail(exec, err, NULL);
    }
    for (u32 i = 0; i < plan->in_count; i++) {
        Cell value;
        Err err = exec__eval_in(exec, list->item[i], NULL, &scan->bounds, &value);
        if (err != OK) return err;
        err = list_add(list, &value);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    exec__cells_sort(list->values.cell, list->values.rows, list->collation);
    u32 kept = 0;
    for (u32 i = 0; i < list->values.rows; i++) {
        const Cell *cells = list->values.cell;
        if (kept > 0 && cell_compare(&cells[kept - 1], &cells[i], list->collation) == 0) continue;
        list->values.cell[kept++] = cells[i];
    }
    list->values.rows = kept;
    return OK;
}

/* Evaluate everything that the ranges depend on; *empty_out: nothing can match. */
static Err
bounds_start(Exec *exec, Scan *scan, bool *empty_out)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    *empty_out = false;
    arena_reset(&scan->bounds);
    for (u32 i = 0; i < plan->eq_count; i++) {
        if (plan->eq[i].value != NULL) {
            Err err = exec__eval_in(exec, scan->eq[i], NULL, &scan->bounds, &scan->eq_value[i]);
            if (err != OK) return err;
            if (scan->eq_value[i].type == CELL_NULL && !plan->eq[i].null_safe) *empty_out = true;
            continue;
        }
        Err err = list_fill(exec, scan, i);
        if (err != OK) return err;
        KeyList *list = &scan->list[i];
        list->next = list->descending && list->values.rows > 0 ? list->values.rows - 1 : 0;
        if (list->values.rows == 0) *empty_out = true;
    }
    if (*empty_out) return OK;
    if (plan->low != NULL) {
        Err err = exec__eval_in(exec, scan->low, NULL, &scan->bounds, &scan->low_value);
        if (err != OK) return err;
        if (scan->low_value.type == CELL_NULL) *empty_out = true;
    }
    if (plan->high != NULL) {
        Err err = exec__eval_in(exec, scan->high, NULL, &scan->bounds, &scan->high_value);
        if (err != OK) return err;
        if (scan->high_value.type == CELL_NULL) *empty_out = true;
    }
    return OK;
}

/* Advance the odometer of IN lists; false: all combinations are done. */
static bool
bounds_advance(Scan *scan)
{
    for (u32 i = scan->node.plan->u.scan.eq_count; i-- > 0;) {
        KeyList *list = &scan->list[i];
        if (!list->used) continue;
        if (list->descending ? list->next > 0 : list->next + 1 < list->values.rows) {
            list->next = list->descending ? list->next - 1 : list->next + 1;
            return true;
        }
        list->next = list->descending ? list->values.rows - 1 : 0;
    }
    return false;
}

static Err
range_build(Exec *exec, Scan *scan)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    const Cell *low = plan->low != NULL ? &scan->low_value : NULL;
    const Cell *high = plan->high != NULL ? &scan->high_value : NULL;
    for (u32 i = 0; i < plan->eq_count; i++) {
        if (scan->list[i].used) scan->eq_value[i] = scan->list[i].values.cell[scan->list[i].next];
    }
    Err err;
    if (scan->codec != NULL) {
        err = index_range_build(scan->codec, scan->eq_value, plan->eq_count, scan->null_safe, low,
                                plan->low_inclusive, high, plan->high_inclusive, &scan->range);
    } else {
        err = rowid_range_build(plan->eq_count > 0 ? scan->eq_value : NULL, low,
                                plan->low_inclusive, high, plan->high_inclusive, &scan->range);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* ---- fetching ---- */

/* A short range mostly ends within the first fetch, and then needs no second one to say so. */
#define FETCH_ROWS_MIN 4u

/* Entries from the start of the range, from behind the row of a trip, or from where the cursor is.
 */
static Err
cursor_fetch(Exec *exec, Scan *scan, u32 rows)
{
    bool backwards = scan->node.plan->u.scan.backwards;
    Err err;
    if (LIKELY(!scan->at_start && !scan->seek_behind)) {
        err = store_cursor_fetch(scan->cursor, rows, RUN_BYTES, backwards, &scan->run);
        return err == OK ? OK : exec__fail_store(exec, err, scan->txn);
    }
    Slice low = buf_slice(&scan->range.low), high = buf_slice(&scan->range.high);
    Slice from = backwards ? high : low;
    StoreSeek how = backwards ? STORE_SEEK_LT : STORE_SEEK_GE;
    if (from.bytes == 0) how = backwards ? STORE_SEEK_LAST : STORE_SEEK_FIRST;
    u8 last[TABLE_KEY_BYTES];
    if (backwards && scan->codec == NULL && from.bytes == TABLE_KEY_BYTES) {
        /* Rowids: at the last key itself, which the tree finds sooner than what lies before one. */
        store_be64(last, load_be64(from.p) - 1);
        from = SLICE(last, TABLE_KEY_BYTES);
        how = STORE_SEEK_LE;
    }
    if (UNLIKELY(scan->seek_behind)) {
        how = backwards ? STORE_SEEK_LT : STORE_SEEK_GT;
        from = buf_slice(&scan->behind);
    }
    scan->at_start = scan->seek_behind = false;
    err = store_cursor_set_bound(scan->cursor, backwards ? low : high, backwards);
    if (err == OK) {
        err = store_cursor_fetch_at(scan->cursor, how, from, rows, RUN_BYTES, &scan->run);
    }
    return err == OK ? OK : exec__fail_store(exec, err, scan->txn);
}

/* A range that holds one key at most: no cursor. */
static Err
point_fetch(Exec *exec, Scan *scan)
{
    bool found = false;
    scan->point_key = buf_slice(&scan->range.low);
    Err err = store_get(scan->txn, scan->tree, scan->point_key, &found, &scan->point_value);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    scan->run = (StoreRun){
        .rows = found ? 1 : 0, .key = &scan->point_key, .value = &scan->point_value, .end = true};
    return OK;
}

static Err
cursor_ready(Exec *exec, Scan *scan)
{
    if (scan->cursor_bind == exec->bind_no) return OK;
    if (scan->cursor == NULL) {
        Err err = store_cursor_open(scan->txn, scan->tree, &scan->cursor);
        if (err != OK) return exec__fail_store(exec, err, scan->txn);
    } else {
        store_cursor_rebind(scan->cursor, scan->txn, scan->tree);
    }
    scan->cursor_bind = exec->bind_no;
    return OK;
}

/* Begin the range at hand. */
static Err
range_start(Exec *exec, Scan *scan)
{
    Err err = range_build(exec, scan);
    scan->run = (StoreRun){.end = true};
    scan->run_next = 0;
    if (err != OK || scan->range.empty) return err;
    if (scan->range.point) return point_fetch(exec, scan);
    scan->run.end = false;
    scan->at_start = true;
    return cursor_ready(exec, scan);
}

/* After a trip: go on in the transaction as it is now. */
static Err
behind_ready(Exec *exec, Scan *scan)
{
    scan->txn = exec__txn(exec, scan->node.plan->u.scan.table);
    return cursor_ready(exec, scan);
}

/* Have at least one unread entry in the run, or scan->state == SCAN_DONE. */
Err
exec__scan_fill(Exec *exec, Scan *scan, u32 want)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    Err err = OK;
    if (scan->state == SCAN_NEW) {
        bool empty;
        scan->txn = exec__txn(exec, plan->table);
        scan->fetch_rows = MAX_OF(want, FETCH_ROWS_MIN);
        scan->at_start = scan->seek_behind = false;
        err = bounds_start(exec, scan, &empty);
        if (err != OK) return err;
        scan->state = empty ? SCAN_DONE : SCAN_OPEN;
        if (!empty) err = range_start(exec, scan);
    }
    while (err == OK && scan->state == SCAN_OPEN && scan->run_next == scan->run.rows) {
        if (scan->run.end) {
            if (bounds_advance(scan)) {
                err = range_start(exec, scan);
            } else {
                scan->state = SCAN_DONE;
            }
            continue;
        }
        /* The step that begins a range has been checked. */
        if (!scan->at_start) err = exec__check(exec);
        if (err == OK && UNLIKELY(scan->seek_behind)) err = behind_ready(exec, scan);
        if (err != OK) break;
        scan->run_next = 0;
        scan->run.rows = 0;
        /* Without a far end there is no end to find out about. */
        bool bounded = (plan->backwards ? scan->range.low : scan->range.high).bytes > 0;
        bool reads_ahead = bounded || scan->fetch_rows > FETCH_ROWS_MIN;
        u32 ahead = reads_ahead && !scan->exact ? scan->fetch_rows : want;
        u32 rows = MIN_OF(MAX_OF(want, ahead), scan->node.rows_max);
        err = cursor_fetch(exec, scan, rows);
        if (plan->eq_count == 0 && plan->low == NULL && plan->high == NULL)
            exec->status->full_scan_rows += scan->run.rows;
        scan->fetch_rows = MIN_OF(scan->fetch_rows * 2, BATCH_ROWS_MAX);
    }
    return err;
}

Err
exec__scan_count(Exec *exec, Scan *scan, u64 *rows_out, bool *can_out)
{
    bool empty;
    *rows_out = 0;
    *can_out = true;
    scan->txn = exec__txn(exec, scan->node.plan->u.scan.table);
    Err err = bounds_start(exec, scan, &empty);
    if (err == OK && !empty) err = range_build(exec, scan);
    if (err != OK || empty || scan->range.empty) return err;
    *can_out = !scan->range.recheck;
    if (scan->range.recheck) return OK;
    if (scan->range.point) {
        err = point_fetch(exec, scan);
        *rows_out = scan->run.rows;
        return err;
    }
    err = cursor_ready(exec, scan);
    if (err != OK) return err;
    err = store_cursor_set_bound(scan->cursor, buf_slice(&scan->range.high), false);
    if (err == OK) err = store_cursor_count(scan->cursor, buf_slice(&scan->range.low), rows_out);
    exec->operations += *rows_out;
    return err == OK ? OK : exec__fail_store(exec, err, scan->txn);
}

/* ---- decoding ---- */

/* Cells of one entry; *keep_out false: outside of the range after all (a key that was cut). */
Err
exec__scan_decode(Exec *exec, Scan *scan, u32 entry, Cell *row, bool *keep_out)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    Slice key = scan->run.key[entry], value = scan->run.value[entry];
    Arena *arena = &scan->node.bytes;
    u32 columns = scan->node.plan->columns;
    Err err = OK;
    *keep_out = true;
    if (UNLIKELY(scan->range.recheck) && scan->codec != NULL) {
        err = index_range_holds(scan->codec, &scan->range, key, value, arena, keep_out);
        if (err != OK) return exec__fail(exec, err, NULL);
        if (!*keep_out) return OK;
    }
    if (scan->index == NULL && scan->range.point) {
        return exec__scan_row(exec, scan, key, value, row);
    }
    if (scan->index == NULL) return exec__scan_entry(exec, scan, key, value, row);
    if (plan->covering) {
        err = index_decode(scan->codec, key, value, scan->position, columns, arena, row);
        /* What a look-up gave is gone with the next call on the store. */
        for (u32 i = 0; err == OK && scan->range.point && i < columns; i++) {
            if (row[i].type >= CELL_TEXT) err = cell_copy(&row[i], arena, &row[i]);
        }
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    err = index_table_key(scan->codec, key, value, arena, &scan->table_key);
    if (err != OK) return exec__fail(exec, err, NULL);
    bool found;
    Slice record;
    err = store_get(scan->txn, plan->table->tree, buf_slice(&scan->table_key), &found, &record);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    if (!found) {
        return exec__fail(exec, ERR_CORRUPT, "index %s has an entry without a row",
                          plan->index->name);
    }
    return exec__scan_row(exec, scan, buf_slice(&scan->table_key), record, row);
}

/* ---- the operator ---- */

#define BY_COLUMN_MIN 16u /* Fewer rows are made row by row. */

static void
scan_next(Exec *exec, ExecNode *node, u32 want)
{
    Scan *scan = (Scan *)node;
    u32 count = 0;
    Err err = OK;
    if (scan->single) want = 1;
    scan->last_looked = false;
    scan->last_by_column = scan->by_column && want >= BY_COLUMN_MIN;
    if (scan->last_by_column) {
        exec__scan_batch_next(exec, scan, want);
        return;
    }
    if (node->streaming && scan->entry_of == NULL) {
        scan->entry_of = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
        if (scan->entry_of == NULL) {
            exec__out_end(node, exec__fail(exec, ERR_NOMEM, NULL));
            return;
        }
    }
    while (count == 0) {
        arena_reset(&node->bytes);
        err = exec__scan_fill(exec, scan, want);
        if (err != OK || scan->state == SCAN_DONE) {
            exec__out_end(node, err);
            return;
        }
        err = exec__out_reserve(exec, node, want);
        while (err == OK && count < want && scan->run_next < scan->run.rows) {
            bool keep;
            err = exec__scan_decode(exec, scan, scan->run_next, scan->row, &keep);
            if (err != OK) break;
            if (keep && scan->filter != NULL) {
                ExecTruth truth = EXEC_FALSE;
                err = exec__truth_in(exec, scan->filter, scan->row, &node->bytes, &truth);
                keep = truth == EXEC_TRUE;
                if (err != OK) break;
            }
            scan->run_next++;
            if (!keep) continue;
            if (node->streaming) scan->entry_of[count] = scan->run_next - 1;
            for (u32 i = 0; i < node->plan->columns; i++) {
                node->buffer[i][count] = scan->row[i];
            }
            count++;
        }
        if (err != OK) break;
    }
    exec__out_rows(node, count, err);
}

Err
exec__scan_behind_key(Exec *exec, Scan *scan, Slice key)
{
    buf_clear(&scan->behind);
    Err err = buf_append(&scan->behind, key.p, key.bytes);
    if (err != OK) return exec__fail(exec, err, NULL);
    scan->seek_behind = true;
    scan->run = (StoreRun){.end = false};
    scan->run_next = 0;
    scan->fetch_rows = 1;
    return OK;
}

Err
exec__scan_behind(Exec *exec, Scan *scan, u32 entry)
{
    if (!scan->range.point) return exec__scan_behind_key(exec, scan, scan->run.key[entry]);
    scan->run_next = scan->run.rows;
    return OK;
}

static Err
scan_resume(Exec *exec, ExecNode *node, u32 used)
{
    Scan *scan = (Scan *)node;
    u32 entry = 0;
    if (scan->last_looked) {
        u8 key[TABLE_KEY_BYTES];
        table_key_put(scan->look_rowid[batch_at(&node->out, used - 1)], key);
        return exec__scan_behind_key(exec, scan, SLICE(key, TABLE_KEY_BYTES));
    }
    if (!scan->range.point) {
        entry = scan->last_by_column ? scan->entry_first + batch_at(&node->out, used - 1)
                                     : scan->entry_of[used - 1];
    }
    return exec__scan_behind(exec, scan, entry);
}

static void
scan_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    ((Scan *)node)->state = SCAN_NEW;
    ((Scan *)node)->look_wait = 0;
}

static void
scan_reset(Exec *exec, ExecNode *node)
{
    Scan *scan = (Scan *)node;
    (void)exec;
    scan->state = SCAN_NEW;
    scan->run = (StoreRun){.end = true};
    scan->run_next = 0;
    if (scan->cursor != NULL) store_cursor_rebind(scan->cursor, NULL, TREE_NONE);
    scan->cursor_bind = 0;
}

static void
scan_close(Exec *exec, ExecNode *node)
{
    Scan *scan = (Scan *)node;
    (void)exec;
    store_cursor_close(scan->cursor);
    range_free(&scan->range);
    buf_free(&scan->table_key);
    buf_free(&scan->behind);
    arena_free(&scan->bounds);
    for (u32 i = 0; scan->list != NULL && i < node->plan->u.scan.eq_count; i++) {
        if (scan->list[i].used) exec__rowbuf_free(&scan->list[i].values);
    }
}

static const NodeOps scan_ops = {.next = scan_next,
                                 .rewind = scan_rewind,
                                 .resume = scan_resume,
                                 .reset = scan_reset,
                                 .close = scan_close};

static Err
key_list_open(Exec *exec, Scan *scan, u32 part)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    const PlanKeyPart *key = &plan->eq[part];
    KeyList *list = &scan->list[part];
    exec__rowbuf_init(exec, &list->values, 1);
    list->used = true;
    list->descending = plan->backwards;
    list->bytes = &scan->bounds;
    /* Items of a list come converted from the plan; those of a subquery do not. */
    if (key->in_sub != NULL && key->in_sub->cmp != NULL) {
        list->affinity = key->in_sub->cmp[0].affinity;
    }
    if (scan->codec != NULL) {
        list->collation = scan->codec->column[part].collation;
        if (scan->codec->column[part].desc) list->descending = !list->descending;
    }
    Err err = exec__compile_list(exec, key->in_list, key->in_count, &list->item);
    if (err != OK || key->in_sub == NULL) return err;
    list->bind_count = key->in_sub->bind_count;
    err = exec__compile_list(exec, key->in_sub->bind_expr, list->bind_count, &list->bind);
    return err != OK ? err : exec__sub_open(exec, key->in_sub, &list->sub);
}

static Err
codecs_open(Exec *exec, Scan *scan)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    u32 columns = scan->node.plan->columns;
    Err err = table_codec_init(&scan->table, plan->table, &exec->arena);
    if (err != OK) return exec__fail(exec, err, NULL);
    scan->tree = plan->table->tree;
    scan->codec = plan->table->without_rowid ? &scan->table.primary : NULL;
    if (plan->index == NULL || plan->index == plan->table->primary_key) return OK;
    scan->index = plan->index;
    scan->tree = plan->index->tree;
    scan->codec = &scan->index_codec;
    err = index_codec_init(&scan->index_codec, plan->index, &exec->arena);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (!plan->covering) return OK;
    scan->position = ARENA_NEW_ARRAY(&exec->arena, u16, MAX_OF(columns, 1u));
    if (scan->position == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < columns; i++) {
        scan->position[i] = index_position(&scan->index_codec, plan->column[i]);
        if (scan->position[i] == INDEX_POSITION_NONE) {
            return exec__fail(exec, ERR_INTERNAL, "index %s does not cover column %u",
                              plan->index->name, plan->column[i]);
        }
    }
    return OK;
}

bool
exec__scan_is_single(const PlanScan *scan)
{
    if (scan->eq_count == 0) return false;
    for (u32 i = 0; i < scan->eq_count; i++) {
        if (scan->eq[i].value == NULL) return false;
    }
    const IndexDef *key = scan->index != NULL ? scan->index : scan->table->primary_key;
    if (key == NULL) return true; /* By rowid. */
    if (!key->unique || scan->eq_count < key->key_columns) return false;
    for (u32 i = 0; i < scan->eq_count; i++) {
        if (scan->eq[i].null_safe) return false;
    }
    return true;
}

Err
exec__scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    const PlanScan *ps = &plan->u.scan;
    Err err = exec__node_new(exec, plan, &scan_ops, sizeof(Scan), node_out);
    if (err != OK) return err;
    Scan *scan = (Scan *)*node_out;
    arena_init(&scan->bounds, exec->account);
    scan->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    u32 parts = MAX_OF(ps->eq_count, 1u);
    scan->eq_value = ARENA_NEW_ARRAY(&exec->arena, Cell, parts);
    scan->eq = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, parts);
    scan->null_safe = ARENA_NEW_ARRAY(&exec->arena, bool, parts);
    scan->list = ARENA_NEW_ARRAY(&exec->arena, KeyList, parts);
    if (scan->row == NULL || scan->eq_value == NULL || scan->eq == NULL || scan->list == NULL ||
        scan->null_safe == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    err = codecs_open(exec, scan);
    if (err == OK) err = exec__scan_places(exec, scan);
    for (u32 i = 0; err == OK && i < ps->eq_count; i++) {
        scan->null_safe[i] = ps->eq[i].null_safe;
        err = ps->eq[i].value != NULL ? exec__compile(exec, ps->eq[i].value, &scan->eq[i])
                                      : key_list_open(exec, scan, i);
    }
    if (err == OK && ps->low != NULL) err = exec__compile(exec, ps->low, &scan->low);
    if (err == OK && ps->high != NULL) err = exec__compile(exec, ps->high, &scan->high);
    if (err == OK && ps->filter != NULL) {
        err = exec__compile_condition(exec, ps->filter, &scan->filter);
    }
    scan->single = exec__scan_is_single(ps);
    if (err != OK || scan->index != NULL || scan->codec != NULL) return err;
    scan->by_column = ps->filter == NULL || exec__vexpr_fits(ps->filter);
    if (!scan->by_column || ps->filter == NULL) return OK;
    return exec__vexpr_open(exec, ps->filter, &scan->vfilter);
}
