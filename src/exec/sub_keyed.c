/*
 * sub_keyed.c -- a correlated subquery run once, its rows kept by key.
 *
 * The first row of each key stands in `rows`, numbered as the key is.  For IN a second set holds
 * key and value together, and each key knows whether one of its values is NULL.
 *
 * The run as a whole may fail where the subquery as written would not, because it looks at rows
 * that no outer row asks for.  Such an error is dropped, and this way is not tried again.
 */
#include "exec/sub_keyed.h"

#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/rowbuf.h"
#include "exec/watch.h"

struct SubKeyed {
    const PlanSub *plan;
    const PlanKeyed *keyed;
    ExecNode *root;
    RegWatch watch; /* Of `root`: it reads no registers, but the run and the data must be these. */
    ExecProgram **probe;
    KeyMaker maker;
    KeySet keys;
    RowBuf rows;
    bool is_in;
    KeyMaker pair_maker; /* IN: keys and the value. */
    KeySet pairs;
    u8 *has_null; /* IN: by key. */
    u32 has_null_capacity;
    u64 runs; /* Of the subquery as written. */
    bool given_up;
    bool has_empty;
    RowBuf empty;
    Cell *cell; /* Scratch: a row of `root`. */
    Cell *key;  /* Scratch: keys and a value. */
};

static Err
make_keys(Exec *exec, SubKeyed *sub)
{
    u32 keys = sub->keyed->key_count;
    const Collation **collation = ARENA_NEW_ARRAY(&exec->arena, const Collation *, keys + 1);
    if (collation == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < keys + (sub->is_in ? 1 : 0); i++)
        collation[i] = sub->keyed->stamp[i].collation;
    Err err = exec__keymaker_init(exec, &sub->maker, collation, keys);
    if (err == OK && sub->is_in)
        err = exec__keymaker_init(exec, &sub->pair_maker, collation, keys + 1);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

Err
exec__keyed_open(Exec *exec, const PlanSub *plan, SubKeyed **keyed_out)
{
    SubKeyed *sub = ARENA_NEW(&exec->arena, SubKeyed);
    if (sub == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    sub->plan = plan;
    sub->keyed = plan->keyed;
    sub->is_in = plan->cmp != NULL;
    *keyed_out = sub; /* From here on it is closed with the rest. */
    u32 columns = sub->keyed->root->columns;
    exec__rowbuf_init(exec, &sub->rows, columns);
    exec__rowbuf_init(exec, &sub->empty, plan->root->columns);
    exec__keyset_init(exec, &sub->keys);
    exec__keyset_init(exec, &sub->pairs);
    sub->cell = ARENA_NEW_ARRAY(&exec->arena, Cell, columns);
    sub->key = ARENA_NEW_ARRAY(&exec->arena, Cell, sub->keyed->key_count + 1);
    if (sub->cell == NULL || sub->key == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Err err = make_keys(exec, sub);
    if (err == OK)
        err = exec__compile_list(exec, sub->keyed->probe, sub->keyed->key_count, &sub->probe);
    if (err == OK) err = exec__node_open(exec, sub->keyed->root, &sub->root);
    if (err == OK) err = exec__watch_open(exec, &sub->watch, sub->keyed->root);
    return err;
}

void
exec__keyed_close(SubKeyed *sub)
{
    if (sub == NULL) return;
    exec__rowbuf_free(&sub->rows);
    exec__rowbuf_free(&sub->empty);
    exec__keyset_free(&sub->keys);
    exec__keyset_free(&sub->pairs);
    exec__keymaker_free(&sub->maker);
    exec__keymaker_free(&sub->pair_maker);
    exec__watch_close(&sub->watch);
    mem_free(sub->has_null);
}

static void
clear(SubKeyed *sub)
{
    exec__rowbuf_clear(&sub->rows);
    exec__rowbuf_clear(&sub->empty);
    exec__keyset_clear(&sub->keys);
    exec__keyset_clear(&sub->pairs);
    sub->has_empty = false;
}

void
exec__keyed_reset(SubKeyed *sub)
{
    if (sub == NULL) return;
    exec__watch_forget(&sub->watch);
    clear(sub);
    sub->runs = 0;
    sub->given_up = false;
}

/* ---- making it ---- */

/* Apply the stamps to keys (and the value, at the end); *usable_out false: a NULL that equals
   nothing. */
static Err
stamp_keys(Exec *exec, const SubKeyed *sub, u32 count, Arena *arena, bool *usable_out)
{
    *usable_out = true;
    for (u32 i = 0; i < count; i++) {
        Cell *cell = &sub->key[i];
        if (cell->type == CELL_NULL && i < sub->keyed->key_count && !sub->keyed->null_safe[i])
            *usable_out = false;
        Err err = cell_apply_affinity(cell, exec__stamp_affinity(sub->keyed->stamp[i].affinity),
                                      arena);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static Err
note_null(SubKeyed *sub, u32 number, bool added, bool is_null)
{
    if (number >= sub->has_null_capacity) {
        u32 capacity = MAX_OF(sub->has_null_capacity * 2, 64u);
        u8 *larger = mem_realloc(sub->has_null, capacity);
        if (larger == NULL) return ERR_NOMEM;
        sub->has_null = larger;
        sub->has_null_capacity = capacity;
    }
    if (added) sub->has_null[number] = 0;
    if (is_null) sub->has_null[number] = 1;
    return OK;
}

static Err
keep_row(Exec *exec, SubKeyed *sub, Arena *arena)
{
    u32 keys = sub->keyed->key_count, number;
    bool usable, added;
    Slice bytes;
    memcpy(sub->key, sub->cell, (keys + (sub->is_in ? 1 : 0)) * sizeof(Cell));
    Err err = stamp_keys(exec, sub, keys + (sub->is_in ? 1 : 0), arena, &usable);
    if (err != OK || !usable) return err;
    err = exec__key_make(&sub->maker, sub->key, &bytes);
    if (err == OK) err = exec__keyset_add(&sub->keys, bytes, &number, &added);
    if (err == OK && added && !sub->is_in) err = exec__rowbuf_add(&sub->rows, sub->cell);
    if (err == OK && sub->is_in) {
        bool is_null = sub->key[keys].type == CELL_NULL;
        err = note_null(sub, number, added, is_null);
        if (err == OK && !is_null) err = exec__key_make(&sub->pair_maker, sub->key, &bytes);
        if (err == OK && !is_null) err = exec__keyset_add(&sub->pairs, bytes, &number, NULL);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
make(Exec *exec, SubKeyed *sub)
{
    Err err = exec__watch_begin(exec, &sub->watch);
    if (err != OK) return err;
    clear(sub);
    exec__keymaker_reset(&sub->maker);
    if (sub->is_in) exec__keymaker_reset(&sub->pair_maker);
    exec__rewind(exec, sub->root);
    for (;;) {
        const Batch *in = exec__next(exec, sub->root, exec__demand(exec, BATCH_ROWS_MAX));
        for (u32 i = 0; i < in->count; i++) {
            exec__load_all(in, batch_at(in, i), sub->cell);
            err = keep_row(exec, sub, &sub->root->bytes);
            if (err != OK) return err;
        }
        if (in->err != OK) return in->err;
        if (in->count == 0) break;
        err = exec__check(exec);
        if (err != OK) return err;
    }
    exec__watch_done(exec, &sub->watch);
    return OK;
}

Err
exec__keyed_ready(Exec *exec, SubKeyed *sub, bool *ready_out)
{
    *ready_out = false;
    if (sub == NULL || sub->given_up || sub->watch.never) return OK;
    if (!exec__watch_same(exec, &sub->watch)) {
        /* It costs as much again after each change of the data. */
        if (sub->runs++ < sub->keyed->runs_before) return OK;
        sub->runs = 0;
        Err err = make(exec, sub);
        if (err == ERR_SQL || err == ERR_TOOBIG) {
            err_clear(&exec->msg);
            sub->given_up = true;
            return OK;
        }
        if (err != OK) return err;
    }
    *ready_out = true;
    return OK;
}

/* ---- asking ---- */

static Err
probe(Exec *exec, SubKeyed *sub, Arena *arena, u32 *number_out)
{
    bool usable;
    Slice bytes;
    *number_out = KEYSET_NONE;
    for (u32 i = 0; i < sub->keyed->key_count; i++) {
        Err err = exec__eval_in(exec, sub->probe[i], NULL, arena, &sub->key[i]);
        if (err != OK) return err;
    }
    Err err = stamp_keys(exec, sub, sub->keyed->key_count, arena, &usable);
    if (err != OK || !usable) return err;
    err = exec__key_make(&sub->maker, sub->key, &bytes);
    if (err != OK) return exec__fail(exec, err, NULL);
    *number_out = exec__keyset_find(&sub->keys, bytes);
    return OK;
}

Err
exec__keyed_find(Exec *exec, SubKeyed *sub, Arena *arena, u32 *row_out)
{
    Err err = probe(exec, sub, arena, row_out);
    STATIC_ASSERT(KEYED_NONE == KEYSET_NONE);
    return err;
}

const Cell *
exec__keyed_value(const SubKeyed *sub, u32 row, u32 column)
{
    ASSERT(!sub->is_in && row < sub->rows.rows);
    return &exec__rowbuf_row(&sub->rows, row)[sub->keyed->key_count + column];
}

Err
exec__keyed_in(Exec *exec, SubKeyed *sub, const Cell *value, Arena *arena, Cell *out)
{
    u32 number, keys = sub->keyed->key_count;
    Slice bytes;
    *out = cell_int(0);
    Err err = probe(exec, sub, arena, &number);
    if (err != OK || number == KEYSET_NONE) return err;
    *out = cell_null();
    if (value->type == CELL_NULL) return OK;
    sub->key[keys] = *value;
    err = cell_apply_affinity(&sub->key[keys],
                              exec__stamp_affinity(sub->keyed->stamp[keys].affinity), arena);
    if (err == OK) err = exec__key_make(&sub->pair_maker, sub->key, &bytes);
    if (err != OK) return exec__fail(exec, err, NULL);
    bool found = exec__keyset_find(&sub->pairs, bytes) != KEYSET_NONE;
    if (found || !sub->has_null[number]) *out = cell_int(found);
    return OK;
}

const Cell *
exec__keyed_empty(const SubKeyed *sub)
{
    return sub->has_empty ? exec__rowbuf_row(&sub->empty, 0) : NULL;
}

Err
exec__keyed_set_empty(Exec *exec, SubKeyed *sub, const Cell *row)
{
    exec__rowbuf_clear(&sub->empty);
    Err err = exec__rowbuf_add(&sub->empty, row);
    sub->has_empty = err == OK;
    return err == OK ? OK : exec__fail(exec, err, NULL);
}
