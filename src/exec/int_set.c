/*
 * int_set.c -- a set of integers by group: bitmap and hash table.
 */
#include "exec/int_set.h"

#define WINDOW_MIN ((u64)1 << 10)
#define WINDOW_MAX ((u64)1 << 22)
#define SLOTS_MIN  64u

void
exec__ints_clear(IntSet *set)
{
    if (set->bits_set > 0) memset(set->bits, 0, set->window / 8);
    if (set->count > 0) memset(set->group, 0, ((size_t)set->mask + 1) * sizeof(u32));
    set->bits_set = 0;
    set->count = 0;
}

u64
exec__ints_memory(const IntSet *set)
{
    u64 slots = set->value != NULL ? (u64)set->mask + 1 : 0;
    return set->window / 8 + slots * (sizeof(i64) + sizeof(u32));
}

void
exec__ints_free(IntSet *set)
{
    mem_free(set->bits);
    mem_free(set->value);
    mem_free(set->group);
    *set = (IntSet){0};
}

/* Worth a bitmap that reaches it?  One number in 64 should be in it. */
static bool
fits_window(const IntSet *set, u64 value)
{
    if (value >= WINDOW_MAX) return false;
    return value < WINDOW_MIN || value / 64 <= set->bits_set + 1;
}

static Err
window_grow(IntSet *set, u64 value)
{
    u64 window = MAX_OF(set->window * 2, WINDOW_MIN);
    while (window <= value) {
        window *= 2;
    }
    u64 *bits = mem_realloc(set->bits, window / 8);
    if (bits == NULL) return ERR_NOMEM;
    memset((u8 *)bits + set->window / 8, 0, (window - set->window) / 8);
    set->bits = bits;
    set->window = window;
    return OK;
}

static inline u32
slot_of(const IntSet *set, u32 group, i64 value)
{
    u64 hash = ((u64)value ^ ((u64)group << 40)) * 0x9E3779B97F4A7C15u;
    return (u32)((hash ^ hash >> 32) & set->mask);
}

static Err
table_grow(IntSet *set)
{
    IntSet old = *set;
    u32 slots = old.group == NULL ? SLOTS_MIN : (old.mask + 1) * 2;
    set->value = mem_alloc((size_t)slots * sizeof(i64));
    set->group = mem_alloc_zeroed((size_t)slots * sizeof(u32));
    if (set->value == NULL || set->group == NULL) {
        mem_free(set->value);
        mem_free(set->group);
        *set = old;
        return ERR_NOMEM;
    }
    set->mask = slots - 1;
    for (u32 i = 0; old.group != NULL && i <= old.mask; i++) {
        if (old.group[i] == 0) continue;
        u32 at = slot_of(set, old.group[i] - 1, old.value[i]);
        while (set->group[at] != 0) {
            at = (at + 1) & set->mask;
        }
        set->value[at] = old.value[i];
        set->group[at] = old.group[i];
    }
    mem_free(old.value);
    mem_free(old.group);
    return OK;
}

static bool
table_has(const IntSet *set, u32 group, i64 value, u32 *at_out)
{
    u32 at = slot_of(set, group, value);
    while (set->group[at] != 0) {
        if (set->value[at] == value && set->group[at] == group + 1) return true;
        at = (at + 1) & set->mask;
    }
    *at_out = at;
    return false;
}

bool
exec__ints_in_table(const IntSet *set, i64 value)
{
    u32 at;
    return table_has(set, 0, value, &at);
}

Err
exec__ints_add(IntSet *set, u32 group, bool grouped, i64 value, bool *new_out)
{
    u32 at = 0;
    *new_out = false;
    if (!grouped && (u64)value < set->window) {
        u64 *word = &set->bits[(u64)value / 64], bit = (u64)1 << ((u64)value % 64);
        if ((*word & bit) != 0) return OK;
        /* The bitmap may have grown over numbers that went to the table. */
        if (set->count > 0 && table_has(set, group, value, &at)) return OK;
        *word |= bit;
        set->bits_set++;
        *new_out = true;
        return OK;
    }
    if (set->count > 0 && table_has(set, group, value, &at)) return OK;
    *new_out = true;
    if (!grouped && fits_window(set, (u64)value)) {
        Err err = window_grow(set, (u64)value);
        if (err != OK) return err;
        set->bits[(u64)value / 64] |= (u64)1 << ((u64)value % 64);
        set->bits_set++;
        return OK;
    }
    if (set->group == NULL || set->count > set->mask / 2) {
        Err err = table_grow(set);
        if (err != OK) return err;
    }
    (void)table_has(set, group, value, &at);
    set->value[at] = value;
    set->group[at] = group + 1;
    set->count++;
    return OK;
}

bool
exec__ints_next(const IntSet *set, u64 *at, u32 *group_out, i64 *value_out)
{
    u64 slots = set->count > 0 ? (u64)set->mask + 1 : 0;
    for (; *at < set->window; ++*at) {
        if ((set->bits[*at / 64] >> (*at % 64) & 1) == 0) continue;
        *group_out = 0;
        *value_out = (i64)(*at)++;
        return true;
    }
    for (; *at < set->window + slots; ++*at) {
        u64 slot = *at - set->window;
        if (set->group[slot] == 0) continue;
        *group_out = set->group[slot] - 1;
        *value_out = set->value[slot];
        ++*at;
        return true;
    }
    return false;
}
