/*
 * number_sort.c -- sorting rows by numbers.
 *
 * A last key that rises with the row number already is left out, since the sort is stable.  What
 * the other keys differ in mostly fits, together with the row number, into one 64-bit word: then
 * the words are sorted by radix, over the bits of the keys alone.  Else pairs of key and row are
 * sorted, once a key, the last key first.
 */
#include "exec/number_sort.h"

#include "rt/task.h"

#define DIGIT_BITS_MAX ORDER_DIGIT_BITS
#define DIGITS_MAX     6u /* Of 64 bits. */
#define SMALL_SORT     48u

void
exec__number_room_free(NumberRoom *room)
{
    mem_free(room->item);
    mem_free(room->scratch);
    mem_free(room->place);
    *room = (NumberRoom){0};
}

static Err
room_reserve(NumberRoom *room, size_t bytes)
{
    if (bytes <= room->bytes) return OK;
    /* Nothing in it is worth keeping. */
    exec__number_room_free(room);
    room->item = mem_alloc(bytes);
    room->scratch = mem_alloc(bytes);
    room->place = mem_alloc(sizeof(u32) << DIGIT_BITS_MAX);
    if (room->item == NULL || room->scratch == NULL || room->place == NULL) {
        exec__number_room_free(room);
        return ERR_NOMEM;
    }
    room->bytes = bytes;
    return OK;
}

static bool
is_rising(const u64 *key, u32 count)
{
    for (u32 i = 1; i < count; i++) {
        if (key[i] < key[i - 1]) return false;
    }
    return true;
}

typedef struct KeyRange {
    u64 low;
    u32 bits;
} KeyRange;

static KeyRange
range_of(const u64 *key, u32 count)
{
    u64 low = U64_MAX, high = 0;
    for (u32 i = 0; i < count; i++) {
        low = MIN_OF(low, key[i]);
        high = MAX_OF(high, key[i]);
    }
    return (KeyRange){low, bits_of(high - low)};
}

static void
words_insertion(u64 *word, u32 count)
{
    for (u32 i = 1; i < count; i++) {
        u64 moved = word[i];
        u32 at = i;
        while (at > 0 && moved < word[at - 1]) {
            word[at] = word[at - 1];
            at--;
        }
        word[at] = moved;
    }
}

/* Sort words by the bits from `low_bit` on; those below rise.  Returns where they are. */
static u64 *
words_radix(u64 *word, u64 *scratch, u32 *place, u32 count, u32 low_bit, u32 bits)
{
    if (count <= SMALL_SORT) {
        words_insertion(word, count);
        return word;
    }
    u32 digits = (bits + DIGIT_BITS_MAX - 1) / DIGIT_BITS_MAX;
    if (digits == 0) return word;
    u32 width = (bits + digits - 1) / digits, buckets = 1u << width;
    for (u32 digit = 0; digit < digits; digit++) {
        u32 shift = low_bit + digit * width, mask = buckets - 1, sum = 0;
        memset(place, 0, buckets * sizeof(u32));
        for (u32 i = 0; i < count; i++) {
            place[(u32)(word[i] >> shift) & mask]++;
        }
        for (u32 i = 0; i < buckets; i++) {
            u32 here = place[i];
            place[i] = sum;
            sum += here;
        }
        for (u32 i = 0; i < count; i++) {
            u64 moved = word[i];
            scratch[place[(u32)(moved >> shift) & mask]++] = moved;
        }
        rt_give_turn(); /* Who is to stop does so afterwards. */
        u64 *swap = word;
        word = scratch;
        scratch = swap;
    }
    return word;
}

static Err
order_packed(NumberRoom *room, u64 *const *key, const KeyRange *range, u32 key_count, u32 count,
             u32 row_bits, u32 *order_out)
{
    Err err = room_reserve(room, (size_t)count * sizeof(u64));
    if (err != OK) return err;
    u64 *word = room->item;
    if (key_count == 1) {
        for (u32 i = 0; i < count; i++) {
            word[i] = (key[0][i] - range[0].low) << row_bits | i;
        }
    } else {
        for (u32 i = 0; i < count; i++) {
            u64 both = (key[0][i] - range[0].low) << range[1].bits | (key[1][i] - range[1].low);
            word[i] = both << row_bits | i;
        }
    }
    u32 bits = range[0].bits + (key_count > 1 ? range[1].bits : 0);
    word = words_radix(word, room->scratch, room->place, count, row_bits, bits);
    u64 mask = ((u64)1 << row_bits) - 1;
    for (u32 i = 0; i < count; i++) {
        order_out[i] = (u32)(word[i] & mask);
    }
    return OK;
}

/* By the last key first: each sort keeps the order of the one before among equals. */
static Err
order_pairs(NumberRoom *room, u64 *const *key, u32 key_count, u32 count, u32 *order_out)
{
    Err err = room_reserve(room, (size_t)count * sizeof(NumberItem));
    if (err != OK) return err;
    NumberItem *item = room->item;
    for (u32 k = key_count; k-- > 0;) {
        for (u32 i = 0; i < count; i++) {
            item[i] = (NumberItem){.key = key[k][order_out[i]], .row = order_out[i]};
        }
        err = exec__numbers_sort(item, room->scratch, count, &room->place);
        if (err != OK) return err;
        for (u32 i = 0; i < count; i++) {
            order_out[i] = item[i].row;
        }
    }
    return OK;
}

Err
exec__number_order(NumberRoom *room, u64 *const *key, u32 key_count, u32 count, u32 *order_out)
{
    ASSERT(key_count <= NUMBER_KEYS_MAX);
    while (key_count > 0 && is_rising(key[key_count - 1], count)) {
        key_count--;
    }
    KeyRange range[NUMBER_KEYS_MAX] = {{0, 0}};
    u32 row_bits = bits_of(count), bits = row_bits;
    for (u32 k = 0; k < key_count; k++) {
        range[k] = range_of(key[k], count);
        bits += range[k].bits;
    }
    if (key_count > 0 && bits <= 64) {
        /* Shifts by all of 64 bits: a range of 0 bits has nothing to shift. */
        return order_packed(room, key, range, key_count, count, row_bits, order_out);
    }
    for (u32 i = 0; i < count; i++) {
        order_out[i] = i;
    }
    return order_pairs(room, key, key_count, count, order_out);
}
