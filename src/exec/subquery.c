/*
 * subquery.c -- subqueries inside expressions.
 *
 * A subquery that depends on nothing outside runs once a run and its result is kept; one that does
 * keeps its result as long as the registers it reads stay as they were.  In a write statement
 * correlated subqueries run at each use, because the data change under them.
 *
 * Uncorrelated IN makes a set of key bytes; correlated IN compares row by row and stops at a match.
 */
#include "exec/exec__write.h"
#include "exec/int_set.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/rowbuf.h"
#include "exec/short.h"
#include "exec/sorted_file.h"
#include "exec/spool.h"
#include "exec/sub_keyed.h"
#include "exec/watch.h"

struct ExecSub {
    const PlanSub *plan;
    ExecNode *root;
    ExecShort *chain; /* The short path; NULL: the plan has another shape. */
    RegWatch exists_watch, row_watch, set_watch;
    bool exists;
    RowBuf first; /* The first row, or nothing. */
    KeyMaker maker;
    KeySet set;       /* Rows without NULLs. */
    SpillSet spilled; /* Those for which it had no room. */
    IntSet ints;      /* The same rows again while all are integers, for whole batches. */
    bool all_ints;
    SpoolReader reader;
    RowSpool rows; /* All rows, when a row has several columns; else unused. */
    u64 set_rows;
    bool has_null;
    Cell *cell;      /* Scratch: one row. */
    bool keep_empty; /* The run at hand is one without rows, for `keyed`. */
    SubKeyed *keyed; /* The other way to run it; NULL: there is none. */
};

Err
exec__sub_open(Exec *exec, const PlanSub *plan, ExecSub **sub_out)
{
    ASSERT(plan->number < exec->plan->sub_count);
    *sub_out = exec->sub[plan->number];
    if (*sub_out != NULL) return OK;
    ExecSub *sub = ARENA_NEW(&exec->arena, ExecSub);
    if (sub == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    sub->plan = plan;
    u32 columns = plan->root->columns;
    exec__rowbuf_init(exec, &sub->first, columns);
    if (plan->cmp != NULL) exec__spill_enlist(exec);
    exec__spool_init(exec, &sub->rows, columns);
    exec__keyset_init(exec, &sub->set);
    sub->cell = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(columns, 1u));
    const Collation **collation = ARENA_NEW_ARRAY(&exec->arena, const Collation *,
                                                  MAX_OF(columns, 1u));
    if (sub->cell == NULL || collation == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    exec->sub[plan->number] = sub;
    *sub_out = sub;
    for (u32 i = 0; plan->cmp != NULL && i < columns; i++) {
        collation[i] = plan->cmp[i].collation;
    }
    Err err = exec__keymaker_init(exec, &sub->maker, collation, columns);
    if (err != OK) return exec__fail(exec, err, NULL);
    bool fresh_before = exec->opening_fresh;
    if (exec->plan->write != NULL && plan->correlated) exec->opening_fresh = true;
    err = exec__node_open(exec, plan->root, &sub->root);
    if (err == OK && !exec->env->watch)
        err = exec__short_open(exec, plan->root, true, sub->cell, &sub->chain);
    if (err == OK) err = exec__watch_open(exec, &sub->exists_watch, plan->root);
    if (err == OK) err = exec__watch_open(exec, &sub->row_watch, plan->root);
    if (err == OK) err = exec__watch_open(exec, &sub->set_watch, plan->root);
    exec->opening_fresh = fresh_before;
    if (err == OK && plan->keyed != NULL) err = exec__keyed_open(exec, plan, &sub->keyed);
    if (plan->is_volatile) {
        sub->exists_watch.never = sub->row_watch.never = sub->set_watch.never = true;
    }
    return err;
}

void
exec__sub_close(Exec *exec, ExecSub *sub)
{
    if (sub == NULL) return;
    exec__spool_close(exec, &sub->reader);
    exec__spool_free(exec, &sub->rows);
    exec__set_free(exec, &sub->spilled);
    exec__rowbuf_free(&sub->first);
    exec__keyset_free(&sub->set);
    exec__ints_free(&sub->ints);
    exec__keymaker_free(&sub->maker);
    exec__watch_close(&sub->exists_watch);
    exec__watch_close(&sub->row_watch);
    exec__watch_close(&sub->set_watch);
    exec__keyed_close(sub->keyed);
    exec__short_close(sub->chain);
}

void
exec__sub_reset(Exec *exec, ExecSub *sub)
{
    exec__spool_close(exec, &sub->reader);
    exec__spool_clear(exec, &sub->rows);
    exec__set_clear(exec, &sub->spilled);
    if (sub->chain != NULL) exec__short_reset(exec, sub->chain);
    exec__watch_forget(&sub->exists_watch);
    exec__watch_forget(&sub->row_watch);
    exec__watch_forget(&sub->set_watch);
    exec__rowbuf_clear(&sub->first);
    exec__keyset_clear(&sub->set);
    exec__keyed_reset(sub->keyed);
}

/* The first row, into sub->cell. */
static Err
first_row(Exec *exec, ExecSub *sub, bool *row_out)
{
    ExecShort *chain = sub->chain;
    *row_out = false;
    if (chain != NULL) {
        exec__short_start(chain);
        Err err = exec__short_next(exec, chain, row_out);
        if (err != OK) return err;
        if (chain->state != SHORT_DECLINED) return OK;
    }
    exec__rewind(exec, sub->root);
    if (chain != NULL) exec__short_hand_over(chain);
    const Batch *in = exec__next(exec, sub->root, 1);
    if (in->count == 0) return in->err;
    exec__load_all(in, batch_at(in, 0), sub->cell);
    *row_out = true;
    return OK;
}

Err
exec__sub_exists(Exec *exec, ExecSub *sub, Arena *arena, bool *exists_out)
{
    if (!exec__watch_same(exec, &sub->exists_watch)) {
        bool by_key;
        Err err = exec__keyed_ready(exec, sub->keyed, &by_key);
        if (err == OK && by_key) {
            u32 row;
            err = exec__keyed_find(exec, sub->keyed, arena, &row);
            *exists_out = row != KEYED_NONE;
        }
        if (err != OK || by_key) return err;
        err = exec__watch_begin(exec, &sub->exists_watch);
        if (err != OK) return err;
        err = first_row(exec, sub, &sub->exists);
        if (err != OK) return err;
        exec__watch_done(exec, &sub->exists_watch);
    }
    *exists_out = sub->exists;
    return OK;
}

/* The other way's answer, if it is at hand. */
static Err
scalar_by_key(Exec *exec, ExecSub *sub, u32 column, Arena *arena, Cell *out, bool *done_out)
{
    const Cell *value = NULL;
    u32 row;
    Err err = exec__keyed_ready(exec, sub->keyed, done_out);
    if (err != OK || !*done_out) return err;
    err = exec__keyed_find(exec, sub->keyed, arena, &row);
    if (err != OK) return err;
    if (row != KEYED_NONE) {
        value = exec__keyed_value(sub->keyed, row, column);
    } else if (sub->plan->keyed->is_aggregate) {
        /* No rows: as written it tells what that gives, once. */
        const Cell *empty = exec__keyed_empty(sub->keyed);
        *done_out = empty != NULL;
        sub->keep_empty = empty == NULL;
        if (empty == NULL) return OK;
        value = &empty[column];
    }
    *out = cell_null();
    if (value == NULL) return OK;
    err = cell_copy(value, arena, out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

Err
exec__sub_scalar(Exec *exec, ExecSub *sub, u32 column, Arena *arena, Cell *out)
{
    if (!exec__watch_same(exec, &sub->row_watch)) {
        bool done;
        Err err = scalar_by_key(exec, sub, column, arena, out, &done);
        if (err != OK || done) return err;
        err = exec__watch_begin(exec, &sub->row_watch);
        if (err != OK) return err;
        exec__rowbuf_clear(&sub->first);
        bool row;
        err = first_row(exec, sub, &row);
        if (err != OK) return err;
        if (row) err = exec__rowbuf_add(&sub->first, sub->cell);
        if (err != OK) return exec__fail(exec, err, NULL);
        exec__watch_done(exec, &sub->row_watch);
        if (sub->keep_empty && sub->first.rows > 0) {
            sub->keep_empty = false;
            err = exec__keyed_set_empty(exec, sub->keyed, exec__rowbuf_row(&sub->first, 0));
            if (err != OK) return err;
        }
    }
    *out = cell_null();
    if (sub->first.rows == 0) return OK;
    /* The row may be replaced before the value has been used. */
    Err err = cell_copy(&exec__rowbuf_row(&sub->first, 0)[column], arena, out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* Give one side of the comparison the affinities of the stamps. */
static Err
stamp_cells(Exec *exec, const ExecSub *sub, Cell *cell, Arena *arena, bool *null_out)
{
    *null_out = false;
    for (u32 i = 0; i < sub->plan->columns; i++) {
        if (cell[i].type == CELL_NULL) *null_out = true;
        Err err = cell_apply_affinity(&cell[i], exec__stamp_affinity(sub->plan->cmp[i].affinity),
                                      arena);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

/* The row in sub->cell. */
static Err
ints_add(ExecSub *sub)
{
    bool is_new;
    if (!sub->all_ints) return OK;
    if (sub->plan->columns == 1 && sub->cell[0].type == CELL_INT && sub->spilled.files == 0) {
        return exec__ints_add(&sub->ints, 0, false, sub->cell[0].u.i, &is_new);
    }
    sub->all_ints = false;
    exec__ints_free(&sub->ints);
    return OK;
}

static Err
set_row(Exec *exec, ExecSub *sub, Arena *arena)
{
    bool has_null;
    Err err = stamp_cells(exec, sub, sub->cell, arena, &has_null);
    if (err != OK) return err;
    sub->set_rows++;
    if (has_null) sub->has_null = true;
    if (sub->plan->columns > 1) {
        err = exec__spool_add(exec, &sub->rows, sub->cell);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    if (has_null) return OK;
    Slice key;
    u32 number;
    bool added;
    err = exec__key_make(&sub->maker, sub->cell, &key);
    if (err == OK) {
        err = exec__set_add(exec, &sub->spilled, &sub->set, key, &number, &added);
    }
    if (err == OK) err = ints_add(sub);
    u64 memory = exec__keyset_memory(&sub->set) + exec__ints_memory(&sub->ints);
    if (err == OK && exec__spill_due(exec, &sub->spilled.held, memory)) {
        err = exec__set_flush(exec, &sub->spilled, &sub->set);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
set_make(Exec *exec, ExecSub *sub)
{
    if (exec__watch_same(exec, &sub->set_watch)) return OK;
    Err err = exec__watch_begin(exec, &sub->set_watch);
    if (err != OK) return err;
    exec__keyset_clear(&sub->set);
    exec__keymaker_reset(&sub->maker);
    exec__spool_clear(exec, &sub->rows);
    exec__set_clear(exec, &sub->spilled);
    exec__ints_clear(&sub->ints);
    sub->all_ints = true;
    sub->set_rows = 0;
    sub->has_null = false;
    exec__rewind(exec, sub->root);
    for (;;) {
        const Batch *in = exec__next(exec, sub->root, exec__demand(exec, BATCH_ROWS_MAX));
        for (u32 i = 0; i < in->count; i++) {
            exec__load_all(in, batch_at(in, i), sub->cell);
            err = set_row(exec, sub, &sub->root->bytes);
            if (err != OK) return err;
        }
        if (in->err != OK) return in->err;
        if (in->count == 0) break;
        err = exec__check(exec);
        if (err != OK) return err;
    }
    exec__watch_done(exec, &sub->set_watch);
    return OK;
}

/* value = row, column by column: false decides, else NULL, else true. */
static Err
row_equals(Exec *exec, const ExecSub *sub, const Cell *value, const Cell *row, Arena *arena,
           ExecTruth *truth_out)
{
    *truth_out = EXEC_TRUE;
    for (u32 i = 0; i < sub->plan->columns; i++) {
        const PlanStamp *stamp = &sub->plan->cmp[i];
        ExecTruth truth;
        Err err = exec__compare_cells(exec, PX_EQ, stamp->affinity, stamp->collation, &value[i],
                                      &row[i], arena, &truth);
        if (err != OK) return err;
        if (truth == EXEC_UNKNOWN) *truth_out = EXEC_UNKNOWN;
        if (truth != EXEC_FALSE) continue;
        *truth_out = EXEC_FALSE;
        return OK;
    }
    return OK;
}

static Err
in_set(Exec *exec, ExecSub *sub, const Cell *value, Arena *arena, Cell *out)
{
    Err err = set_make(exec, sub);
    if (err != OK) return err;
    *out = cell_int(0);
    if (sub->set_rows == 0) return OK;
    bool has_null;
    memcpy(sub->cell, value, sub->plan->columns * sizeof(Cell));
    err = stamp_cells(exec, sub, sub->cell, arena, &has_null);
    if (err != OK) return err;
    if (!has_null) {
        Slice key;
        err = exec__key_make(&sub->maker, sub->cell, &key);
        if (err != OK) return exec__fail(exec, err, NULL);
        bool found = exec__keyset_find(&sub->set, key) != KEYSET_NONE;
        if (!found && sub->spilled.files > 0) {
            err = exec__set_has(exec, &sub->spilled, key, &found);
            if (err != OK) return exec__fail(exec, err, NULL);
        }
        if (found) {
            *out = cell_int(1);
            return OK;
        }
        if (!sub->has_null) return OK;
    }
    if (sub->plan->columns == 1) {
        *out = cell_null();
        return OK;
    }
    /* NULLs somewhere: unknown if some row differs in no column. */
    exec__spool_rewind(&sub->reader);
    for (;;) {
        ExecTruth truth;
        const Cell *row;
        err = exec__spool_row(exec, &sub->rows, &sub->reader, &row);
        if (err != OK) return exec__fail(exec, err, NULL);
        if (row == NULL) break;
        err = row_equals(exec, sub, sub->cell, row, arena, &truth);
        if (err != OK) return err;
        if (truth == EXEC_UNKNOWN) {
            *out = cell_null();
            return OK;
        }
    }
    return OK;
}

bool
exec__sub_is_fixed(const PlanSub *plan)
{
    return !plan->correlated && !plan->is_volatile;
}

/* Are values that are integers compared as such? */
static bool
compares_ints(Exec *exec, const ExecSub *sub)
{
    Cell one = cell_int(1);
    Err err = cell_apply_affinity(&one, exec__stamp_affinity(sub->plan->cmp[0].affinity),
                                  &exec->run_arena);
    return err == OK && one.type == CELL_INT;
}

Err
exec__sub_in_truths(Exec *exec, ExecSub *sub, const Batch *batch, const Vec *value, Arena *arena,
                    u8 *truth)
{
    ASSERT(exec__sub_is_fixed(sub->plan) && sub->plan->columns == 1);
    Err err = set_make(exec, sub);
    if (err != OK) return err;
    bool by_int = value->kind == VEC_INT && !value->constant && sub->all_ints &&
                  sub->spilled.files == 0 && sub->set_rows > 0 && compares_ints(exec, sub);
    u8 no = sub->has_null ? EXEC_UNKNOWN : EXEC_FALSE;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        if (LIKELY(by_int)) {
            bool found = exec__ints_has(&sub->ints, value->u.i[at]);
            truth[at] = found ? EXEC_TRUE : no;
            if (value->null != NULL && value->null[at]) truth[at] = EXEC_UNKNOWN;
            continue;
        }
        Cell cell = vec_cell(value, at), one;
        err = in_set(exec, sub, &cell, arena, &one);
        if (err != OK) return err;
        truth[at] = (u8)cell_truth(&one);
    }
    return OK;
}

/* Correlated: run it and stop at the first match. */
static Err
in_stream(Exec *exec, ExecSub *sub, const Cell *value, Arena *arena, Cell *out)
{
    u32 want = 1;
    *out = cell_int(0);
    exec__rewind(exec, sub->root);
    for (;;) {
        const Batch *in = exec__next(exec, sub->root, exec__demand(exec, want));
        for (u32 i = 0; i < in->count; i++) {
            ExecTruth truth;
            exec__load_all(in, batch_at(in, i), sub->cell);
            Err err = row_equals(exec, sub, value, sub->cell, arena, &truth);
            if (err != OK) return err;
            if (truth == EXEC_TRUE) {
                *out = cell_int(1);
                return OK;
            }
            if (truth == EXEC_UNKNOWN) *out = cell_null();
        }
        if (in->count == 0 || in->err != OK) return in->err;
        want = MIN_OF(want * 2, BATCH_ROWS_MAX);
        Err err = exec__check(exec);
        if (err != OK) return err;
    }
}

Err
exec__sub_in(Exec *exec, ExecSub *sub, const Cell *value, Arena *arena, Cell *out)
{
    ASSERT(sub->plan->cmp != NULL);
    if (sub->plan->correlated || sub->plan->is_volatile) {
        bool by_key;
        Err err = exec__keyed_ready(exec, sub->keyed, &by_key);
        if (err != OK) return err;
        if (by_key) return exec__keyed_in(exec, sub->keyed, value, arena, out);
        return in_stream(exec, sub, value, arena, out);
    }
    return in_set(exec, sub, value, arena, out);
}

Err
exec__sub_each(Exec *exec, ExecSub *sub, ExecSubEach each, void *arg)
{
    exec__rewind(exec, sub->root);
    for (;;) {
        const Batch *in = exec__next(exec, sub->root, exec__demand(exec, BATCH_ROWS_MAX));
        for (u32 i = 0; i < in->count; i++) {
            Cell value = vec_cell(&in->col[0], batch_at(in, i));
            Err err = each(arg, &value);
            if (err != OK) return err;
        }
        if (in->count == 0 || in->err != OK) return in->err;
        Err err = exec__check(exec);
        if (err != OK) return err;
    }
}
