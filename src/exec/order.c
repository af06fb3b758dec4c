/*
 * order.c -- sorts over row numbers, key items and numbers.
 *
 * Merge sorts begin with an insertion sort of short runs; a pair of runs that is in order already
 * is copied without comparing, so sorted input costs one pass.  Numbers, and the prefixes of keys,
 * are sorted by radix.
 */
#include "exec/order.h"

#include "rt/task.h"

#define RUN         12u
#define DIGIT_BITS  ORDER_DIGIT_BITS
#define DIGIT_COUNT (1u << DIGIT_BITS)
#define SMALL_SORT  48u
#define TURN_WIDTH  384u           /* So long runs are merged between two turns, */
#define TURN_ROWS   ((u32)1 << 15) /* and so many rows moved by radix. */

static void
order_insertion(u32 *order, u32 count, OrderBefore before, const void *arg)
{
    for (u32 i = 1; i < count; i++) {
        u32 row = order[i], at = i;
        while (at > 0 && before(arg, row, order[at - 1])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = row;
    }
}

static void
order_merge(const u32 *from, u32 *to, u32 middle, u32 end, OrderBefore before, const void *arg)
{
    u32 left = 0, right = middle, at = 0;
    if (middle >= end || !before(arg, from[middle], from[middle - 1])) {
        memcpy(to, from, end * sizeof(u32));
        return;
    }
    while (left < middle && right < end) {
        to[at++] = before(arg, from[right], from[left]) ? from[right++] : from[left++];
    }
    memcpy(to + at, from + left, (middle - left) * sizeof(u32));
    at += middle - left;
    memcpy(to + at, from + right, (end - right) * sizeof(u32));
}

void
exec__order_sort(u32 *order, u32 *scratch, u32 count, OrderBefore before, const void *arg)
{
    u32 *from = order, *to = scratch;
    for (u32 i = 0; i < count; i += RUN) {
        order_insertion(order + i, MIN_OF(RUN, count - i), before, arg);
    }
    for (u64 width = RUN; width < count; width *= 2) {
        for (u64 i = 0; i < count; i += 2 * width) {
            u32 end = (u32)MIN_OF(2 * width, count - i);
            order_merge(from + i, to + i, (u32)MIN_OF(width, (u64)end), end, before, arg);
            if (width >= TURN_WIDTH) rt_give_turn();
        }
        u32 *swap = from;
        from = to;
        to = swap;
    }
    if (from != order) memcpy(order, from, (size_t)count * sizeof(u32));
}

/* ---- key items ---- */

static void
items_insertion(SortItem *item, u32 count)
{
    for (u32 i = 1; i < count; i++) {
        SortItem moved = item[i];
        u32 at = i;
        while (at > 0 && exec__item_before(&moved, &item[at - 1])) {
            item[at] = item[at - 1];
            at--;
        }
        item[at] = moved;
    }
}

static void
items_merge(const SortItem *from, SortItem *to, u32 middle, u32 end)
{
    u32 left = 0, right = middle, at = 0;
    if (middle >= end || exec__item_before(&from[middle - 1], &from[middle])) {
        memcpy(to, from, end * sizeof(SortItem));
        return;
    }
    while (left < middle && right < end) {
        bool take_right = exec__item_before(&from[right], &from[left]);
        to[at++] = from[take_right ? right : left];
        right += take_right;
        left += !take_right;
    }
    memcpy(to + at, from + left, (middle - left) * sizeof(SortItem));
    at += middle - left;
    memcpy(to + at, from + right, (end - right) * sizeof(SortItem));
}

/* By comparisons: for few items and for runs with equal prefixes. */
static void
items_merge_sort(SortItem *item, SortItem *scratch, u32 count)
{
    SortItem *from = item, *to = scratch;
    for (u32 i = 0; i < count; i += RUN) {
        items_insertion(item + i, MIN_OF(RUN, count - i));
    }
    for (u64 width = RUN; width < count; width *= 2) {
        for (u64 i = 0; i < count; i += 2 * width) {
            u32 end = (u32)MIN_OF(2 * width, count - i);
            items_merge(from + i, to + i, (u32)MIN_OF(width, (u64)end), end);
            if (width >= TURN_WIDTH) rt_give_turn();
        }
        SortItem *swap = from;
        from = to;
        to = swap;
    }
    if (from != item) memcpy(item, from, (size_t)count * sizeof(SortItem));
}

/* Bytes that all keys have in common at their start. */
static u32
common_bytes(const SortItem *item, u32 count)
{
    u32 common = item[0].key_bytes;
    for (u32 i = 1; i < count && common > 0; i++) {
        u32 bytes = MIN_OF(common, item[i].key_bytes), same = 0;
        if (bytes == common && memcmp(item[i].key, item[0].key, common) == 0) continue;
        while (same < bytes && item[i].key[same] == item[0].key[same]) {
            same++;
        }
        common = same;
    }
    return common;
}

/* One stable radix pass over the prefixes; false: nothing was moved. */
static bool
items_pass(const SortItem *from, SortItem *to, u32 count, u32 shift, u32 *place)
{
    memset(place, 0, DIGIT_COUNT * sizeof(u32));
    for (u32 i = 0, end; i < count; rt_give_turn()) {
        for (end = MIN_OF(count, i + TURN_ROWS); i < end; i++) {
            place[(from[i].prefix >> shift) & (DIGIT_COUNT - 1)]++;
        }
    }
    u32 sum = 0;
    for (u32 i = 0; i < DIGIT_COUNT; i++) {
        u32 here = place[i];
        if (here == count) return false;
        place[i] = sum;
        sum += here;
    }
    for (u32 i = 0, end; i < count; rt_give_turn()) {
        for (end = MIN_OF(count, i + TURN_ROWS); i < end; i++) {
            to[place[(from[i].prefix >> shift) & (DIGIT_COUNT - 1)]++] = from[i];
        }
    }
    return true;
}

static void
items_radix(SortItem *item, SortItem *scratch, u32 count, u32 *place)
{
    SortItem *from = item, *to = scratch;
    u64 differ = 0;
    for (u32 i = 1; i < count; i++) {
        differ |= item[i].prefix ^ item[0].prefix;
    }
    for (u32 shift = 0; shift < 64; shift += DIGIT_BITS) {
        if ((differ >> shift & (DIGIT_COUNT - 1)) == 0) continue;
        if (!items_pass(from, to, count, shift, place)) continue;
        SortItem *swap = from;
        from = to;
        to = swap;
    }
    if (from != item) memcpy(item, from, (size_t)count * sizeof(SortItem));
}

/* The counts of a digit, kept from sort to sort; NULL: out of memory. */
static u32 *
place_ready(u32 **place_io)
{
    if (*place_io == NULL) *place_io = mem_alloc(DIGIT_COUNT * sizeof(u32));
    return *place_io;
}

/*
 * What all keys have in common is left out, so that the eight bytes of the prefix say as much as
 * possible; a radix sort by prefix leaves short runs of equal ones.  Items come in the order of
 * their rows or with places that say it, so ties are put right by the comparison.
 */
void
exec__items_sort(SortItem *item, SortItem *scratch, u32 count, u32 **place_io)
{
    u32 *place = count <= SMALL_SORT ? NULL : place_ready(place_io);
    if (place == NULL) { /* Short of memory: slower, and as right. */
        items_merge_sort(item, scratch, count);
        return;
    }
    u32 common = common_bytes(item, count);
    for (u32 i = 0; i < count; i++) {
        item[i].prefix = exec__key_prefix(item[i].key + common, (size_t)item[i].key_bytes - common);
        item[i].key += common;
        item[i].key_bytes -= common;
    }
    items_radix(item, scratch, count, place);
    for (u32 i = 0; i < count;) {
        u32 end = i + 1;
        while (end < count && item[end].prefix == item[i].prefix) {
            end++;
        }
        if (end - i > 1) items_merge_sort(item + i, scratch + i, end - i);
        i = end;
    }
    for (u32 i = 0; i < count; i++) {
        item[i].key -= common;
        item[i].key_bytes += common;
        if (common > 0) item[i].prefix = exec__key_prefix(item[i].key, item[i].key_bytes);
    }
}

/* ---- numbers ---- */

static void
numbers_insertion(NumberItem *item, u32 count)
{
    for (u32 i = 1; i < count; i++) {
        NumberItem moved = item[i];
        u32 at = i;
        while (at > 0 && moved.key < item[at - 1].key) {
            item[at] = item[at - 1];
            at--;
        }
        item[at] = moved;
    }
}

/* One stable pass over the digit at `shift`; false: all keys agree in it, nothing was moved. */
static bool
numbers_pass(const NumberItem *from, NumberItem *to, u32 count, u32 shift, u32 *place)
{
    memset(place, 0, DIGIT_COUNT * sizeof(u32));
    for (u32 i = 0, end; i < count; rt_give_turn()) {
        for (end = MIN_OF(count, i + TURN_ROWS); i < end; i++) {
            place[(from[i].key >> shift) & (DIGIT_COUNT - 1)]++;
        }
    }
    u32 sum = 0;
    for (u32 i = 0; i < DIGIT_COUNT; i++) {
        u32 here = place[i];
        if (here == count) return false;
        place[i] = sum;
        sum += here;
    }
    for (u32 i = 0, end; i < count; rt_give_turn()) {
        for (end = MIN_OF(count, i + TURN_ROWS); i < end; i++) {
            to[place[(from[i].key >> shift) & (DIGIT_COUNT - 1)]++] = from[i];
        }
    }
    return true;
}

Err
exec__numbers_sort(NumberItem *item, NumberItem *scratch, u32 count, u32 **place_io)
{
    NumberItem *from = item, *to = scratch;
    if (count <= SMALL_SORT) {
        numbers_insertion(item, count);
        return OK;
    }
    u32 *place = place_ready(place_io);
    if (place == NULL) return ERR_NOMEM;
    u64 differ = 0;
    for (u32 i = 1; i < count; i++) {
        differ |= item[i].key ^ item[0].key;
    }
    for (u32 shift = 0; shift < 64; shift += DIGIT_BITS) {
        if ((differ >> shift & (DIGIT_COUNT - 1)) == 0) continue;
        if (!numbers_pass(from, to, count, shift, place)) continue;
        NumberItem *swap = from;
        from = to;
        to = swap;
    }
    if (from != item) memcpy(item, from, (size_t)count * sizeof(NumberItem));
    return OK;
}

static void
cells_sift_down(Cell *cell, u32 root, u32 count, const Collation *collation)
{
    for (;;) {
        u32 child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && cell_compare(&cell[child], &cell[child + 1], collation) < 0) {
            child++;
        }
        if (cell_compare(&cell[root], &cell[child], collation) >= 0) return;
        Cell swap = cell[root];
        cell[root] = cell[child];
        cell[child] = swap;
        root = child;
    }
}

void
exec__cells_sort(Cell *cell, u32 count, const Collation *collation)
{
    for (u32 i = count / 2; i-- > 0;) {
        cells_sift_down(cell, i, count, collation);
    }
    for (u32 end = count; end-- > 1;) {
        Cell swap = cell[0];
        cell[0] = cell[end];
        cell[end] = swap;
        cells_sift_down(cell, 0, end, collation);
    }
}

Err
exec__keys_sort(const KeySetEntry *entry, u32 *order, u32 count)
{
    SortItem *item = mem_alloc(2 * (size_t)MAX_OF(count, 1u) * sizeof(SortItem));
    if (item == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < count; i++) {
        const KeySetEntry *key = &entry[order[i]];
        item[i] = (SortItem){.prefix = exec__key_prefix(key->p, key->bytes),
                             .key = key->p,
                             .key_bytes = key->bytes,
                             .row = order[i]};
    }
    u32 *place = NULL;
    exec__items_sort(item, item + count, count, &place);
    mem_free(place);
    for (u32 i = 0; i < count; i++) {
        order[i] = item[i].row;
    }
    mem_free(item);
    return OK;
}
