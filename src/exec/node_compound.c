/*
 * node_compound.c -- PLAN_COMPOUND: UNION ALL, UNION, EXCEPT, INTERSECT.
 *
 * UNION ALL gives its arms one after the other, each only when it is reached.  The others collect
 * and give their rows sorted by all columns.  Of equal rows within an arm the first one counts; of
 * equal rows in two arms UNION shows the right arm's, EXCEPT and INTERSECT the left arm's.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/order.h"
#include "exec/rowbuf.h"
#include "exec/sorter.h"

typedef struct Compound {
    ExecNode node;
    u32 current; /* UNION ALL: the arm that runs. */
    bool arm_open;
    KeyMaker maker;
    KeySet keys;
    RowBuf rows; /* Row i has key i. */
    u8 *met;     /* Row i of the left arm has been met in the right one. */
    u32 left_rows;
    u32 *order, *scratch;
    u32 count, capacity;
    bool ready;
    u32 next;
    Cell *row;
    /* Beyond the budget: all rows are sorted, with 1 behind those of arms but the first. */
    u64 held; /* As exec__spill_due() knows it. */
    bool spilled, late_open;
    Sorter sorter;
    Cell *tagged;
    Buf key;      /* Of the equal rows being looked at. */
    RowBuf ahead; /* The first row behind them. */
    RowBuf page;  /* Output rows read last. */
    u32 page_next;
} Compound;

static void
compound_rewind(Exec *exec, ExecNode *node)
{
    Compound *compound = (Compound *)node;
    (void)exec;
    compound->current = 0;
    compound->arm_open = false;
    compound->ready = false;
    compound->next = 0;
}

static void
union_all_next(Exec *exec, Compound *compound, u32 want)
{
    ExecNode *node = &compound->node;
    while (compound->current < node->plan->u.compound.arm_count) {
        ExecNode *arm = node->part[compound->current];
        if (!compound->arm_open) exec__rewind(exec, arm);
        compound->arm_open = true;
        const Batch *in = exec__next(exec, arm, want);
        if (in->count > 0 || in->err != OK) {
            memcpy(node->out.col, in->col, node->out.columns * sizeof(Vec));
            exec__out_rows(node, in->count, in->err);
            node->out.rows = in->rows;
            node->out.sel = in->sel;
            return;
        }
        compound->current++;
        compound->arm_open = false;
    }
    exec__out_end(node, OK);
}

/* ---- beyond the budget ---- */

static Err
late_open(Exec *exec, Compound *compound)
{
    const PlanNode *plan = compound->node.plan;
    u32 columns = plan->columns;
    if (compound->late_open) return OK;
    PlanSortKey *key = ARENA_NEW_ARRAY(&exec->arena, PlanSortKey, MAX_OF(columns, 1u));
    compound->tagged = ARENA_NEW_ARRAY(&exec->arena, Cell, columns + 1);
    if (key == NULL || compound->tagged == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < columns; i++) {
        key[i].collation = plan->u.compound.collation[i];
    }
    exec__rowbuf_init(exec, &compound->ahead, columns + 1);
    exec__rowbuf_init(exec, &compound->page, columns);
    compound->late_open = true; /* Even half made: it is freed. */
    return exec__sorter_init(exec, &compound->sorter, key, columns, columns + 1);
}

static Err
late_add(Compound *compound, const Cell *row, bool right)
{
    u32 columns = compound->rows.columns;
    memcpy(compound->tagged, row, columns * sizeof(Cell));
    compound->tagged[columns] = cell_int(right);
    return exec__sorter_add(&compound->sorter, row, compound->tagged);
}

/* What has been collected is sorted too, with what is known of it. */
static Err
rows_leave(Exec *exec, Compound *compound, u32 arm)
{
    bool is_union = compound->node.plan->u.compound.op == SET_UNION;
    Err err = late_open(exec, compound);
    for (u32 i = 0; err == OK && i < compound->rows.rows; i++) {
        const Cell *row = exec__rowbuf_row(&compound->rows, i);
        bool met = arm > 0 && (i >= compound->left_rows || compound->met[i] != 0);
        if (!met || !is_union) err = late_add(compound, row, false);
        if (err == OK && met) err = late_add(compound, row, true);
    }
    exec__rowbuf_drop(&compound->rows);
    exec__keyset_drop(&compound->keys);
    if (compound->held > 0) exec__spill_forget(exec, &compound->held);
    compound->spilled = err == OK;
    return err;
}

/* Half of the part of the budget, for the sort needs the rest. */
static Err
spill_check(Exec *exec, Compound *compound, u32 arm)
{
    if (compound->spilled) return OK;
    u64 memory = exec__rowbuf_memory(&compound->rows) + exec__keyset_memory(&compound->keys);
    (void)exec__spill_due(exec, &compound->held, memory);
    if (memory <= exec->spill.share_bytes) return OK;
    REACHED("exec: a set operation went on with a sort");
    Err err = rows_leave(exec, compound, arm);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static void
late_clear(Exec *exec, Compound *compound)
{
    if (compound->held > 0) exec__spill_forget(exec, &compound->held);
    compound->spilled = false;
    if (!compound->late_open) return;
    exec__sorter_start(&compound->sorter, U64_MAX);
    exec__rowbuf_clear(&compound->ahead);
    exec__rowbuf_clear(&compound->page);
    compound->page_next = 0;
}

/* The next row that is sorted, or the one ahead; *same_out: it equals those before it. */
static Err
late_row(Compound *compound, bool first, const Cell **row_out, bool *same_out)
{
    Slice key;
    *same_out = first;
    if (first && compound->ahead.rows > 0) {
        *row_out = exec__rowbuf_row(&compound->ahead, 0);
    } else {
        Err err = exec__sorter_next(&compound->sorter, NULL, row_out);
        if (err != OK || *row_out == NULL) return err;
    }
    Err err = exec__key_make(&compound->maker, *row_out, &key);
    if (err != OK) return err;
    if (!first) {
        *same_out = slice_equal(key, buf_slice(&compound->key));
        return OK;
    }
    buf_clear(&compound->key);
    return buf_append(&compound->key, key.p, key.bytes);
}

/* Look at the next equal rows; if they give one, it joins the page. */
static Err
late_group(Compound *compound, bool *found_out)
{
    u8 op = compound->node.plan->u.compound.op;
    u32 columns = compound->page.columns, place = compound->page.rows;
    bool left = false, right = false, same = false;
    const Cell *row;
    Err err = late_row(compound, true, &row, &same);
    *found_out = row != NULL;
    if (err != OK || row == NULL) return err;
    while (err == OK && row != NULL && same) {
        bool is_right = row[columns].u.i != 0;
        bool wanted = is_right ? !right && op == SET_UNION : !left && !right;
        if (wanted) compound->page.rows = place; /* It takes the place of the other. */
        if (wanted) err = exec__rowbuf_add(&compound->page, row);
        left |= !is_right;
        right |= is_right;
        exec__rowbuf_clear(&compound->ahead);
        if (err == OK) err = late_row(compound, false, &row, &same);
    }
    if (err == OK && row != NULL) err = exec__rowbuf_add(&compound->ahead, row);
    if (err != OK) return err;
    bool stays = op == SET_UNION || (left && right == (op == SET_INTERSECT));
    if (!stays) compound->page.rows = place;
    return OK;
}

static void
late_next(Exec *exec, Compound *compound, u32 want)
{
    ExecNode *node = &compound->node;
    RowBuf *page = &compound->page;
    Err err = OK;
    if (compound->page_next == page->rows) {
        bool found = true;
        exec__rowbuf_clear(page);
        compound->page_next = 0;
        while (err == OK && found && page->rows < want &&
               exec__rowbuf_memory(page) < BATCH_BYTES_MAX) {
            err = late_group(compound, &found);
        }
        if (err == OK)
            err = exec__check(exec);
        else
            err = exec__fail(exec, err, NULL);
    }
    u32 count = MIN_OF(want, page->rows - compound->page_next);
    if (err != OK || count == 0) {
        exec__out_end(node, err);
        return;
    }
    exec__out_from_rows(exec, node, page, NULL, compound->page_next, count);
    compound->page_next += count;
}

/* ---- the set ---- */

/* What one row of an arm does to the set. */
static Err
set_row(Exec *exec, Compound *compound, u32 arm)
{
    u8 op = compound->node.plan->u.compound.op;
    Slice key;
    u32 number;
    bool added;
    Err err;
    if (UNLIKELY(compound->spilled)) {
        err = late_add(compound, compound->row, arm > 0);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    err = exec__key_make(&compound->maker, compound->row, &key);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (op != SET_UNION && arm > 0) {
        number = exec__keyset_find(&compound->keys, key);
        if (number != KEYSET_NONE) compound->met[number] = 1;
        return OK;
    }
    err = exec__keyset_add(&compound->keys, key, &number, &added);
    if (err == OK && added) err = exec__rowbuf_add(&compound->rows, compound->row);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (added || arm == 0 || number >= compound->left_rows || compound->met[number]) return OK;
    compound->met[number] = 1;
    for (u32 i = 0; err == OK && i < compound->rows.columns; i++) {
        /* Bytes are copied only for what differs in more than its key. */
        const Cell *old = &exec__rowbuf_row(&compound->rows, number)[i];
        if (cell_identical(old, &compound->row[i])) continue;
        err = exec__rowbuf_set(&compound->rows, number, i, &compound->row[i]);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
arm_run(Exec *exec, Compound *compound, u32 arm)
{
    exec__rewind(exec, compound->node.part[arm]);
    for (;;) {
        const Batch *in = exec__next(exec, compound->node.part[arm],
                                     exec__demand(exec, BATCH_ROWS_MAX));
        for (u32 i = 0; i < in->count; i++) {
            exec__load_all(in, batch_at(in, i), compound->row);
            Err err = set_row(exec, compound, arm);
            if (err != OK) return err;
        }
        if (in->count == 0 || in->err != OK) return in->err;
        Err err = exec__check(exec);
        if (err == OK) err = spill_check(exec, compound, arm);
        if (err != OK) return err;
    }
}

/* Order of two rows by their cells, for host collations. */
static bool
row_before(const void *arg, u32 a, u32 b)
{
    const Compound *compound = arg;
    const Cell *x = exec__rowbuf_row(&compound->rows, a);
    const Cell *y = exec__rowbuf_row(&compound->rows, b);
    for (u32 i = 0; i < compound->rows.columns; i++) {
        int order = cell_compare(&x[i], &y[i], compound->node.plan->u.compound.collation[i]);
        if (order != 0) return order < 0;
    }
    return false;
}

/* Room for one flag and two row numbers a row. */
static Err
arrays_grow(Exec *exec, Compound *compound, u32 rows)
{
    rows = MAX_OF(rows, 1u);
    if (rows > compound->capacity) {
        u8 *met = mem_realloc(compound->met, rows);
        if (met != NULL) compound->met = met;
        u32 *order = mem_realloc(compound->order, (size_t)rows * sizeof(u32));
        if (order != NULL) compound->order = order;
        u32 *scratch = mem_realloc(compound->scratch, (size_t)rows * sizeof(u32));
        if (scratch != NULL) compound->scratch = scratch;
        if (met == NULL || order == NULL || scratch == NULL) {
            return exec__fail(exec, ERR_NOMEM, NULL);
        }
        compound->capacity = rows;
    }
    memset(compound->met, 0, rows);
    return OK;
}

static Err
set_make(Exec *exec, Compound *compound)
{
    const PlanNode *plan = compound->node.plan;
    u8 op = plan->u.compound.op;
    late_clear(exec, compound);
    exec__keyset_clear(&compound->keys);
    exec__keymaker_reset(&compound->maker);
    exec__rowbuf_clear(&compound->rows);
    Err err = OK;
    for (u32 arm = 0; err == OK && arm < plan->u.compound.arm_count; arm++) {
        if (arm == 1) {
            compound->left_rows = compound->rows.rows;
            err = arrays_grow(exec, compound, compound->rows.rows);
        }
        if (err == OK) err = arm_run(exec, compound, arm);
    }
    if (err == OK && op == SET_UNION) err = arrays_grow(exec, compound, compound->rows.rows);
    if (err != OK) return err;
    compound->count = 0;
    if (compound->spilled) {
        err = exec__sorter_finish(&compound->sorter);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    for (u32 i = 0; i < compound->rows.rows; i++) {
        bool keep = op == SET_UNION || (compound->met[i] != 0) == (op == SET_INTERSECT);
        if (keep) compound->order[compound->count++] = i;
    }
    if (!compound->maker.has_host) {
        err = exec__keys_sort(compound->keys.entry, compound->order, compound->count);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    exec__order_sort(compound->order, compound->scratch, compound->count, row_before, compound);
    return OK;
}

static void
compound_next(Exec *exec, ExecNode *node, u32 want)
{
    Compound *compound = (Compound *)node;
    if (node->plan->u.compound.op == SET_UNION_ALL) {
        union_all_next(exec, compound, want);
        return;
    }
    Err err = compound->ready ? OK : set_make(exec, compound);
    if (err != OK) {
        exec__out_end(node, err);
        return;
    }
    compound->ready = true;
    if (compound->spilled) {
        late_next(exec, compound, want);
        return;
    }
    u32 count = MIN_OF(want, compound->count - compound->next);
    exec__out_from_rows(exec, node, &compound->rows, compound->order, compound->next, count);
    compound->next += count;
}

static Err
compound_resume(Exec *exec, ExecNode *node, u32 used)
{
    Compound *compound = (Compound *)node;
    if (node->plan->u.compound.op == SET_UNION_ALL) {
        return exec__resume(exec, node->part[compound->current], used);
    }
    if (compound->spilled) {
        compound->page_next -= node->out.count - used;
    } else {
        compound->next -= node->out.count - used;
    }
    return OK;
}

static void
compound_reset(Exec *exec, ExecNode *node)
{
    Compound *compound = (Compound *)node;
    compound->ready = false;
    late_clear(exec, compound);
    exec__keyset_clear(&compound->keys);
    exec__rowbuf_clear(&compound->rows);
}

static void
compound_close(Exec *exec, ExecNode *node)
{
    Compound *compound = (Compound *)node;
    late_clear(exec, compound);
    exec__sorter_free(&compound->sorter);
    exec__rowbuf_free(&compound->ahead);
    exec__rowbuf_free(&compound->page);
    buf_free(&compound->key);
    exec__keyset_free(&compound->keys);
    exec__keymaker_free(&compound->maker);
    exec__rowbuf_free(&compound->rows);
    mem_free(compound->met);
    mem_free(compound->order);
    mem_free(compound->scratch);
}

static const NodeOps compound_ops = {.next = compound_next,
                                     .rewind = compound_rewind,
                                     .resume = compound_resume,
                                     .reset = compound_reset,
                                     .close = compound_close};

Err
exec__compound_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &compound_ops, sizeof(Compound), node_out);
    if (err != OK) return err;
    Compound *compound = (Compound *)*node_out;
    u32 arms = plan->u.compound.arm_count;
    exec__keyset_init(exec, &compound->keys);
    exec__rowbuf_init(exec, &compound->rows, plan->columns);
    compound->node.part = ARENA_NEW_ARRAY(&exec->arena, ExecNode *, MAX_OF(arms, 1u));
    compound->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    if (compound->node.part == NULL || compound->row == NULL)
        return exec__fail(exec, ERR_NOMEM, NULL);
    if (plan->u.compound.op != SET_UNION_ALL) {
        exec__spill_enlist(exec);
        exec__spill_enlist(exec); /* And the sort. */
        err = exec__keymaker_init(exec, &compound->maker, plan->u.compound.collation,
                                  plan->columns);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    for (u32 i = 0; err == OK && i < arms; i++) {
        err = exec__node_open(exec, plan->u.compound.arm[i], &compound->node.part[i]);
        if (err == OK && plan->u.compound.op == SET_UNION_ALL) compound->node.part_count++;
    }
    return err;
}
