/*
 * in_set.c -- membership in a long list of constants.
 *
 * Lists of integers become a sorted array; everything else a set of key bytes.  The affinity of
 * the comparison is applied to each item once and to the value at each test.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/program.h"

struct InSet {
    const PlanExpr *list;
    bool built, has_null, integers;
    i64 *number; /* Sorted, when `integers`. */
    u32 count;
    KeyMaker maker;
    KeySet set;
    const Collation *collation;
    InSet *next;
};

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

static Err
build(Exec *exec, InSet *set)
{
    const PlanExpr *list = set->list;
    u32 items = list->arg_count - 1;
    set->number = ARENA_NEW_ARRAY(&exec->arena, i64, items);
    if (set->number == NULL) return ERR_NOMEM;
    set->integers = true;
    for (u32 i = 0; i < items; i++) {
        Cell item = list->arg[i + 1]->u.constant;
        if (item.type == CELL_NULL) {
            set->has_null = true;
            continue;
        }
        Err err = cell_apply_affinity(&item, exec__stamp_affinity(list->cmp_affinity),
                                      &exec->arena);
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
    set->built = true;
    return OK;
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
