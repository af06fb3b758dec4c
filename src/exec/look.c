/*
 * look.c -- one row of a table by its whole key.
 *
 * It gives what the scan operator would give.  A key value of a kind that needs more thought than
 * an equality of bytes goes through the operator's own steps.
 */
#include "exec/look.h"

#include "exec/exec__write.h"

bool
exec__look_fits(const PlanScan *scan)
{
    bool covering = scan->covering && scan->index != NULL;
    return exec__scan_is_single(scan) && scan->low == NULL && scan->high == NULL && !covering;
}

/* A parameter or register that is compared with the rowid: an integer needs no conversion. */
static void
key_at_once(Look *look, const PlanScan *scan)
{
    if (scan->index != NULL || scan->table->without_rowid) return;
    const PlanExpr *value = scan->eq[0].value;
    if (value->op == PX_AFFINITY) value = value->arg[0];
    if (value->op == PX_PARAM) look->key = OPERAND(AT_PARAM, value->u.number - 1);
    if (value->op == PX_REG) look->key = OPERAND(AT_REG, value->u.number);
    look->key_at_once = value->op == PX_PARAM || value->op == PX_REG;
}

void
exec__look_init(Look *look, Scan *scan)
{
    *look = (Look){.scan = scan, .count = scan->node.plan->columns};
    key_at_once(look, &scan->node.plan->u.scan);
}

typedef enum Found {
    FOUND_NONE,
    FOUND_KEY,
    FOUND_UNSURE /* A value of another kind: ask the operator. */
} Found;

static bool
rowid_at_once(const Exec *exec, const Look *look, u8 *rowid_key)
{
    if (UNLIKELY(!look->key_at_once)) return false;
    const Cell *base = OPERAND_BASE(look->key) == AT_PARAM ? exec->param : exec->reg;
    const Cell *value = base + OPERAND_INDEX(look->key);
    if (UNLIKELY(value->type != CELL_INT)) return false;
    table_key_put(value->u.i, rowid_key);
    return true;
}

/* Through a unique index to the key of the table. */
static Err
key_by_index(Exec *exec, Scan *scan, Slice *key_io, Found *found_out)
{
    bool found;
    Slice entry;
    *found_out = FOUND_NONE;
    Err err = store_get(scan->txn, scan->tree, *key_io, &found, &entry);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    if (!found) return OK;
    err = index_table_key(scan->codec, *key_io, entry, &scan->node.bytes, &scan->table_key);
    *key_io = buf_slice(&scan->table_key);
    *found_out = FOUND_KEY;
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* The key of the row in the table's tree. */
static Err
find_key(Exec *exec, Look *look, u8 *rowid_key, Slice *key_out, Found *found_out)
{
    Scan *scan = look->scan;
    const PlanScan *plan = &scan->node.plan->u.scan;
    *key_out = SLICE(rowid_key, TABLE_KEY_BYTES);
    *found_out = FOUND_KEY;
    if (LIKELY(rowid_at_once(exec, look, rowid_key))) return OK;
    for (u32 i = 0; i < plan->eq_count; i++) {
        Err err = exec__eval_in(exec, scan->eq[i], NULL, &scan->node.bytes, &scan->eq_value[i]);
        if (err != OK) return err;
    }
    if (scan->codec == NULL) {
        *found_out = scan->eq_value[0].type == CELL_INT ? FOUND_KEY : FOUND_UNSURE;
        if (*found_out == FOUND_KEY) table_key_put(scan->eq_value[0].u.i, rowid_key);
        return OK;
    }
    Err err = index_range_build(scan->codec, scan->eq_value, plan->eq_count, scan->null_safe, NULL,
                                false, NULL, false, &scan->range);
    if (err != OK) return exec__fail(exec, err, NULL);
    *found_out = scan->range.empty                           ? FOUND_NONE
                 : scan->range.point && !scan->range.recheck ? FOUND_KEY
                                                             : FOUND_UNSURE;
    if (*found_out != FOUND_KEY) return OK;
    *key_out = buf_slice(&scan->range.low);
    return scan->index == NULL ? OK : key_by_index(exec, scan, key_out, found_out);
}

/* As the operator does it. */
static NOINLINE Err
look_by_scan(Exec *exec, Look *look, Cell *row, bool *found_out)
{
    Scan *scan = look->scan;
    bool keep = true;
    REACHED("exec: a look-up by a value of another kind");
    exec__rewind(exec, &scan->node);
    Err err = exec__scan_fill(exec, scan, 1);
    if (err != OK || scan->state == SCAN_DONE) return err;
    err = exec__scan_decode(exec, scan, scan->run_next, scan->row, &keep);
    if (err != OK || !keep) return err;
    if (scan->filter != NULL) {
        ExecTruth truth = EXEC_FALSE;
        err = exec__truth_in(exec, scan->filter, scan->row, &scan->node.bytes, &truth);
        if (err != OK || truth != EXEC_TRUE) return err;
    }
    for (u32 i = 0; i < look->count; i++) {
        row[i] = scan->row[look->pick != NULL ? look->pick[i] : i];
    }
    scan->node.counters.rows++;
    *found_out = true;
    return OK;
}

Err
exec__look(Exec *exec, Look *look, Cell *row, bool *found_out)
{
    Scan *scan = look->scan;
    const PlanScan *plan = &scan->node.plan->u.scan;
    u8 rowid_key[TABLE_KEY_BYTES];
    Slice key, record;
    Found found;
    bool exists;
    *found_out = false;
    if (scan->node.bytes.chunk != NULL) arena_reset(&scan->node.bytes);
    scan->txn = exec__txn(exec, plan->table);
    Err err = find_key(exec, look, rowid_key, &key, &found);
    if (err != OK || found == FOUND_NONE) return err;
    if (UNLIKELY(found == FOUND_UNSURE)) return look_by_scan(exec, look, row, found_out);
    err = store_get(scan->txn, plan->table->tree, key, &exists, &record);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    if (!exists) {
        if (scan->index == NULL) return OK;
        return exec__fail(exec, ERR_CORRUPT, "index %s has an entry without a row",
                          plan->index->name);
    }
    if (look->pick != NULL) {
        err = exec__scan_pick(exec, scan, key, record, look->pick, look->count, row);
    } else {
        err = exec__scan_row(exec, scan, key, record, row);
    }
    if (err != OK) return err;
    if (scan->filter != NULL) {
        ExecTruth truth = EXEC_FALSE;
        err = exec__truth_in(exec, scan->filter, row, &scan->node.bytes, &truth);
        if (err != OK || truth != EXEC_TRUE) return err;
    }
    scan->node.counters.rows++;
    *found_out = true;
    return OK;
}

void
exec__look_reset(Exec *exec, Look *look)
{
    Scan *scan = look->scan;
    scan->txn = NULL;
    if (UNLIKELY(scan->state != SCAN_NEW)) {
        exec__node_reset(exec, &scan->node);
        return;
    }
    if (scan->node.bytes.chunk != NULL) arena_reset(&scan->node.bytes);
}
