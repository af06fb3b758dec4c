/*
 * in_set.c -- membership in a long list of constants.
 *
 * Lists of integers become a sorted array, with a bit for each number if they lie close together;
 * everything else a set of key bytes.  The affinity of the comparison is applied to each item once
 * and to the value at each test.
 */
#include "exec/exec__write.h"
#include "exec/kernel.h"
#include "exec/keyset.h"
#include "exec/program.h"

#define BITS_MAX 65536u /* Numbers that lie within so many have a bit each. */

struct InSet {
    const PlanExpr *list;
    bool built, has_null, integers;
    i64 *number; /* Sorted, when `integers`. */
    u32 count;
    u64 *bits; /* From number[0] on; NULL: too far apart. */
    u64 span;  /* So many bits. */
    KeyMaker maker;
    KeySet set;
    const Collation *collation;
    InSet *next;
};

bool
exec__in_set_fits(const PlanExpr *in_list)
{
    for (u32 i = 1; i < in_list->arg_count; i++) {
        if (in_list->arg[i]->op != PX_CONST) return false;
    }
    return in_list->arg_count > 1 && in_list->collation != NULL &&
           in_list->collation->kind != COLLATION_HOST;
}

Err
exec__in_set_new(Exec *exec, const PlanExpr *in_list, InSet **set_out)
{
    InSet *set = ARENA_NEW(&exec->arena, InSet);
    if (set == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    set->list = in_list;
    set->collation = in_list->collation;
    exec__keyset_init(exec, &set->set);
    set->next = exec->sets;
    exec->sets = set;
    *set_out = set;
    return exec__keymaker_init(exec, &set->maker, &set->collation, 1);
}

void
exec__in_set_free(InSet *set)
{
    for (; set != NULL; set = set->next) {
        exec__keyset_free(&set->set);
        exec__keymaker_free(&set->maker);
    }
}

static void
sift_down(i64 *number, u32 root, u32 count)
{
    for (;;) {
        u32 child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && number[child] < number[child + 1]) child++;
        if (number[root] >= number[child]) return;
        i64 swap = number[root];
        number[root] = number[child];
        number[child] = swap;
        root = child;
    }
}

static void
sort_integers(i64 *number, u32 count)
{
    for (u32 i = count / 2; i-- > 0;) {
        sift_down(number, i, count);
    }
    for (u32 end = count; end-- > 1;) {
        i64 swap = number[0];
        number[0] = number[end];
        number[end] = swap;
        sift_down(number, 0, end);
    }
}

/* Numbers that lie close together get a bit each. */
static Err
bits_make(Exec *exec, InSet *set)
{
    u64 span = (u64)set->number[set->count - 1] - (u64)set->number[0];
    if (span >= BITS_MAX) return OK;
    set->bits = ARENA_NEW_ARRAY(&exec->arena, u64, span / 64 + 1);
    if (set->bits == NULL) return ERR_NOMEM;
    set->span = span + 1;
    for (u32 i = 0; i < set->count; i++) {
        u64 bit = (u64)set->number[i] - (u64)set->number[0];
        set->bits[bit / 64] |= (u64)1 << (bit % 64);
    }
    return OK;
}

static Err
build(Exec *exec, InSet *set)
{
    const PlanExpr *list = set->list;
    u32 items = list->arg_count - 1;
    Err err = OK;
    set->number = ARENA_NEW_ARRAY(&exec->arena, i64, items);
    if (set->number == NULL) return ERR_NOMEM;
    set->integers = true;
    set->count = 0;
    for (u32 i = 0; i < items; i++) {
        Cell item = list->arg[i + 1]->u.constant;
        if (item.type == CELL_NULL) {
            set->has_null = true;
            continue;
        }
        err = cell_apply_affinity(&item, exec__stamp_affinity(list->cmp_affinity), &exec->arena);
        if (err != OK) return err;
        if (item.type == CELL_INT) {
            set->number[set->count++] = item.u.i;
        } else {
            set->integers = false;
        }
        Slice key;
        u32 number;
        err = exec__key_make(&set->maker, &item, &key);
        if (err == OK) err = exec__keyset_add(&set->set, key, &number, NULL);
        if (err != OK) return err;
    }
    if (set->integers) sort_integers(set->number, set->count);
    if (set->integers && set->count > 0) err = bits_make(exec, set);
    set->built = err == OK;
    return err;
}

static bool
integers_hold(const InSet *set, i64 value)
{
    u32 low = 0, high = set->count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (set->number[middle] == value) return true;
        if (set->number[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

Err
exec__in_set_test(Exec *exec, InSet *set, const Cell *value, Arena *arena, Cell *out)
{
    Err err = set->built ? OK : build(exec, set);
    if (err != OK) return exec__fail(exec, err, NULL);
    *out = cell_null();
    if (value->type == CELL_NULL) return OK;
    Cell cell = *value;
    err = cell_apply_affinity(&cell, exec__stamp_affinity(set->list->cmp_affinity), arena);
    if (err != OK) return exec__fail(exec, err, NULL);
    bool found;
    if (set->integers && cell.type == CELL_INT) {
        found = integers_hold(set, cell.u.i);
    } else {
        Slice key;
        err = exec__key_make(&set->maker, &cell, &key);
        if (err != OK) return exec__fail(exec, err, NULL);
        found = exec__keyset_find(&set->set, key) != KEYSET_NONE;
    }
    if (found) *out = cell_int(1);
    if (!found && !set->has_null) *out = cell_int(0);
    return OK;
}

/* Does the comparison leave integers as they are? */
static bool
compares_integers(Exec *exec, const InSet *set)
{
    Cell one = cell_int(1);
    if (!set->integers || set->count == 0) return false;
    Err err = cell_apply_affinity(&one, exec__stamp_affinity(set->list->cmp_affinity),
                                  &exec->arena);
    return err == OK && one.type == CELL_INT;
}

Err
exec__in_set_truths(Exec *exec, InSet *set, const Batch *batch, const Vec *value, Arena *arena,
                    u8 *truth)
{
    Err err = set->built ? OK : build(exec, set);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (value->kind == VEC_INT && !value->constant && compares_integers(exec, set)) {
        u8 no = set->has_null ? EXEC_UNKNOWN : EXEC_FALSE;
        if (set->bits != NULL) {
            kernel_in_bits(batch, value, set->bits, set->number[0], set->span, no, truth);
        } else {
            kernel_in_sorted(batch, value, set->number, set->count, no, truth);
        }
        return OK;
    }
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        Cell cell = vec_cell(value, at), one;
        err = exec__in_set_test(exec, set, &cell, arena, &one);
        if (err != OK) return err;
        truth[at] = (u8)cell_truth(&one);
    }
    return OK;
}
