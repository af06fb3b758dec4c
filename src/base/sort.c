/*
 * sort.c -- introsort: quicksort by the median of three, insertion sort for short runs, and heap
 * sort where quicksort splits badly too often.
 */
#include "base/sort.h"

#include "base/asserts.h"
#include "base/bytes.h"

#define SHORT_RUN 12

typedef struct Sort {
    size_t item_bytes;
    SortCompare compare;
} Sort;

static void
items_swap(u8 *a, u8 *b, size_t bytes)
{
    while (bytes >= sizeof(u64)) {
        u64 word = load_u64(a);
        store_u64(a, load_u64(b));
        store_u64(b, word);
        a += sizeof(u64);
        b += sizeof(u64);
        bytes -= sizeof(u64);
    }
    for (; bytes > 0; bytes--) {
        u8 byte = *a;
        *a++ = *b;
        *b++ = byte;
    }
}

static void
insertion_sort(const Sort *sort, u8 *from, u8 *end)
{
    for (u8 *at = from + sort->item_bytes; at < end; at += sort->item_bytes)
        for (u8 *to = at; to > from && sort->compare(to - sort->item_bytes, to) > 0;
             to -= sort->item_bytes)
            items_swap(to - sort->item_bytes, to, sort->item_bytes);
}

static void
sift_down(const Sort *sort, u8 *items, size_t at, size_t count)
{
    for (;;) {
        size_t child = 2 * at + 1, bytes = sort->item_bytes;
        if (child >= count) return;
        if (child + 1 < count &&
            sort->compare(items + child * bytes, items + (child + 1) * bytes) < 0)
            child++;
        if (sort->compare(items + at * bytes, items + child * bytes) >= 0) return;
        items_swap(items + at * bytes, items + child * bytes, bytes);
        at = child;
    }
}

static void
heap_sort(const Sort *sort, u8 *items, size_t count)
{
    for (size_t at = count / 2; at > 0; at--)
        sift_down(sort, items, at - 1, count);
    for (size_t left = count - 1; left > 0; left--) {
        items_swap(items, items + left * sort->item_bytes, sort->item_bytes);
        sift_down(sort, items, 0, left);
    }
}

/* Move the median of first, middle and last to the front. */
static void
median_first(const Sort *sort, u8 *first, u8 *middle, u8 *last)
{
    u8 *median = middle;
    if (sort->compare(first, middle) < 0) {
        if (sort->compare(middle, last) > 0) median = sort->compare(first, last) < 0 ? last : first;
    } else if (sort->compare(middle, last) < 0) {
        median = sort->compare(first, last) < 0 ? first : last;
    }
    if (median != first) items_swap(first, median, sort->item_bytes);
}

/* Split around the item in front; returns the address where it ends up. */
static u8 *
partition(const Sort *sort, u8 *from, u8 *end)
{
    size_t bytes = sort->item_bytes;
    u8 *left = from, *right = end;
    for (;;) {
        do {
            left += bytes;
        } while (left < end && sort->compare(left, from) < 0);
        do {
            right -= bytes;
        } while (sort->compare(right, from) > 0);
        if (left >= right) break;
        items_swap(left, right, bytes);
    }
    items_swap(from, right, bytes);
    return right;
}

void
sort_items(void *items, size_t count, size_t item_bytes, SortCompare compare)
{
    struct {
        u8 *from, *end;
        u32 depth;
    } todo[64]; /* The smaller part is done first, so log2(count) are enough. */
    Sort sort = {item_bytes, compare};
    u32 waiting = 1;
    ASSERT(item_bytes > 0);
    if (count < 2) return;
    todo[0].from = items;
    todo[0].end = todo[0].from + count * item_bytes;
    todo[0].depth = 2 * bits_of(count);
    while (waiting > 0) {
        u8 *from = todo[--waiting].from, *end = todo[waiting].end;
        u32 depth = todo[waiting].depth;
        size_t items_here = (size_t)(end - from) / item_bytes;
        if (items_here <= SHORT_RUN) {
            insertion_sort(&sort, from, end);
            continue;
        }
        if (depth == 0) {
            heap_sort(&sort, from, items_here);
            continue;
        }
        median_first(&sort, from, from + items_here / 2 * item_bytes, end - item_bytes);
        u8 *pivot = partition(&sort, from, end);
        u8 *right = pivot + item_bytes;
        bool left_is_larger = pivot - from > end - right;
        ASSERT(waiting + 2 <= COUNT_OF(todo));
        todo[waiting].from = left_is_larger ? from : right;
        todo[waiting].end = left_is_larger ? pivot : end;
        todo[waiting++].depth = depth - 1;
        todo[waiting].from = left_is_larger ? right : from;
        todo[waiting].end = left_is_larger ? end : pivot;
        todo[waiting++].depth = depth - 1;
    }
}
