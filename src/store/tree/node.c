/*
 * node.c -- layout of one page.
 *
 * Invariants: slots are sorted by key; heap_start <= every `at`; what lies between the slots' end
 * and heap_start is free; heap_garbage counts the rest that is unused.  prefix_bytes is the length
 * that both fences share (0 without an upper fence, and in integer trees).
 */
#include "store/tree/node.h"

#include "store/tree/node_fast.h"

/* ---- loads that may race ---- */

/* Each field is loaded once: what was checked is what is used. */

/* A whole page; by blocks, which costs less than it seems to take. */
static void
page_copy(u8 *to, const u8 *from, u32 bytes)
{
    for (u32 at = 0; at < bytes; at += 64) {
        memcpy(to + at, from + at, 64);
    }
}

/* ---- keys ---- */

static u64
head_of(Slice tail)
{
    if (LIKELY(tail.bytes >= 8)) return load_be64(tail.p);
    u64 head = 0;
    for (size_t i = 0; i < tail.bytes; i++) {
        head |= (u64)tail.p[i] << (56 - 8 * i);
    }
    return head;
}

/* Bytes of a key of which `tail_bytes` lie behind the prefix that go to the heap. */
static inline u32
rest_bytes(u32 tail_bytes)
{
    return tail_bytes > NODE_KEY_HEAD_BYTES ? tail_bytes - NODE_KEY_HEAD_BYTES : 0;
}

static inline Slice
rest_of(Slice tail)
{
    u32 skip = MIN_OF((u32)tail.bytes, NODE_KEY_HEAD_BYTES);
    return (Slice){tail.p + skip, tail.bytes - skip};
}

/* Order of a slot against a key tail with the same head. */
static int
compare_ties(Node node, const NodeSlot *slot, Slice tail)
{
    u32 key_bytes = NODE_LOAD(slot->key_bytes);
    Slice rest = node_bytes_clamped(node, NODE_LOAD(slot->at), rest_bytes(key_bytes));
    Slice wanted = rest_of(tail);
    if (rest.bytes > 0 && wanted.bytes > 0) return slice_compare(rest, wanted);
    /* One of them ends within the head: equal heads make it a zero-padded prefix. */
    return key_bytes < tail.bytes ? -1 : key_bytes > tail.bytes;
}

/* The key behind the node's prefix.  The key lies within the fences, so it has the prefix. */
static inline Slice
tail_of(Node node, Slice key)
{
    u32 prefix = NODE_LOAD(node_head(node)->prefix_bytes);
    if (prefix > key.bytes) prefix = (u32)key.bytes;
    if (prefix == 0) return key; /* An empty key may have no address. */
    return (Slice){key.p + prefix, key.bytes - prefix};
}

static inline bool
is_int(Node node)
{
    return (NODE_LOAD(node_head(node)->flags) & NODE_FLAG_INT) != 0;
}

/* The slots from `low` on have the head of the key: order them by what lies behind it. */
static NOINLINE u32
find_ties(Node node, u32 low, u32 end, u64 head, Slice tail, bool *exact_out)
{
    const NodeSlot *slots = node_slots(node);
    u32 count = head == U64_MAX ? end - low : node_find_head(slots + low, end - low, head + 1);
    while (count > 0) {
        u32 half = count / 2;
        int order = compare_ties(node, &slots[low + half], tail);
        if (order == 0) {
            *exact_out = true;
            return low + half;
        }
        low = order < 0 ? low + half + 1 : low;
        count = order < 0 ? count - half - 1 : half;
    }
    *exact_out = false;
    return low;
}

u32
node_find(Node node, Slice key, bool *exact_out)
{
    if (is_int(node) && LIKELY(key.bytes == 8)) {
        return node_find_int(node, load_be64(key.p), exact_out);
    }
    const NodeSlot *slots = node_slots(node);
    u32 count = node_count_clamped(node);
    Slice tail = tail_of(node, key);
    u64 head = head_of(tail);
    u32 low = node_find_head(slots, count, head);
    *exact_out = false;
    if (low == count || NODE_LOAD(slots[low].head) != head) return low;
    return find_ties(node, low, count, head, tail, exact_out);
}

static inline u32
child_at(Node node, u32 slot)
{
    if (slot == 0) return NODE_LOAD(node_head(node)->child_low);
    return NODE_LOAD(node_slots(node)[slot - 1].child);
}

u32
node_child(Node node, Slice key)
{
    bool exact;
    u32 slot = node_find(node, key, &exact);
    return child_at(node, exact ? slot + 1 : slot);
}

u32
node_child_before(Node node, Slice key)
{
    bool exact;
    u32 slot = node_find(node, key, &exact);
    if (slot == 0) return NODE_LOAD(node_head(node)->child_low);
    return NODE_LOAD(node_slots(node)[slot - 1].child);
}

u32
node_child_last(Node node)
{
    u32 count = node_count_clamped(node);
    if (count == 0) return NODE_LOAD(node_head(node)->child_low);
    return NODE_LOAD(node_slots(node)[count - 1].child);
}

NodeFences
node_fences(Node node)
{
    const NodeHead *head = node_head(node);
    u32 at = NODE_LOAD(head->fence_at), low = NODE_LOAD(head->low_bytes),
        high = NODE_LOAD(head->high_bytes);
    NodeFences fences = {.low = node_bytes_clamped(node, at, low),
                         .has_high = high != NODE_INFINITE};
    if (fences.has_high) fences.high = node_bytes_clamped(node, at + low, high);
    return fences;
}

/* As slice_compare(); most keys differ in their first bytes. */
static inline int
compare_keys(Slice a, Slice b)
{
    if (LIKELY(a.bytes >= 8 && b.bytes >= 8)) {
        u64 x = load_be64(a.p), y = load_be64(b.p);
        if (x != y) return x < y ? -1 : 1;
        if (a.bytes == 8 && b.bytes == 8) return 0;
    }
    return slice_compare(a, b);
}

int
node_against_fences(Node node, Slice key)
{
    NodeFences fences = node_fences(node);
    if (fences.low.bytes > 0 && compare_keys(key, fences.low) < 0) return -1;
    return fences.has_high && compare_keys(key, fences.high) >= 0 ? 1 : 0;
}

u32
node_enter(Node node, TreeId tree_id, u8 level, Slice key)
{
    const NodeHead *head = node_head(node);
    u8 flags = NODE_LOAD(head->flags);
    if (NODE_LOAD(head->tree_id) != tree_id || NODE_LOAD(head->level) != level) return 0;
    if ((flags & NODE_FLAG_DEAD) != 0) return 0;
    if ((flags & NODE_FLAG_INT) != 0 && LIKELY(key.bytes == 8)) {
        u64 wanted = load_be64(key.p);
        if (!node_holds_int(node, wanted)) return 0;
        return level == 0 ? 1 : node_child_int(node, wanted);
    }
    if (node_against_fences(node, key) != 0) return 0;
    return level == 0 ? 1 : node_child(node, key);
}

u32
node_read_key(Node node, u32 slot_no, u8 key[STORE_KEY_BYTES_MAX])
{
    const NodeHead *head = node_head(node);
    const NodeSlot *slot = &node_slots(node)[slot_no];
    Slice prefix = node_bytes_clamped(node, NODE_LOAD(head->fence_at),
                                      NODE_LOAD(head->prefix_bytes));
    u32 tail_bytes = NODE_LOAD(slot->key_bytes);
    if (prefix.bytes > STORE_KEY_BYTES_MAX) prefix.bytes = STORE_KEY_BYTES_MAX;
    u32 room = (u32)(STORE_KEY_BYTES_MAX - prefix.bytes);
    tail_bytes = MIN_OF(tail_bytes, room);
    memcpy(key, prefix.p, prefix.bytes);
    u8 *to = key + prefix.bytes;
    u8 first[NODE_KEY_HEAD_BYTES];
    store_be64(first, NODE_LOAD(slot->head));
    memcpy(to, first, MIN_OF(tail_bytes, NODE_KEY_HEAD_BYTES));
    Slice rest = node_bytes_clamped(node, NODE_LOAD(slot->at), rest_bytes(tail_bytes));
    if (rest.bytes > 0) memcpy(to + NODE_KEY_HEAD_BYTES, rest.p, rest.bytes);
    return (u32)prefix.bytes + tail_bytes;
}

/* Bytes at the end of a value's room that are not the value's: their number is written in the last
   of them, or, when that says 255, in the two before it. */
static u32
pad_of(Slice room)
{
    if (room.bytes == 0) return 0;
    u32 pad = NODE_LOAD(room.p[room.bytes - 1]);
    if (pad == 255 && room.bytes >= 3) {
        pad = NODE_LOAD(room.p[room.bytes - 3]) | (u32)NODE_LOAD(room.p[room.bytes - 2]) << 8;
    }
    return MIN_OF(pad, (u32)room.bytes);
}

/* The room of a slot's value. */
static inline Slice
value_room(Node node, const NodeSlot *slot)
{
    u32 at = NODE_LOAD(slot->at) + rest_bytes(NODE_LOAD(slot->key_bytes));
    return node_bytes_clamped(node, at, NODE_LOAD(slot->value_bytes));
}

Slice
node_read_value(Node node, u32 slot_no)
{
    const NodeSlot *slot = &node_slots(node)[slot_no];
    Slice value = value_room(node, slot);
    if (UNLIKELY((NODE_LOAD(slot->flags) & NODE_SLOT_PADDED) != 0)) value.bytes -= pad_of(value);
    return value;
}

/* ---- making ---- */

static u32
common_prefix(Slice a, Slice b)
{
    u32 most = (u32)MIN_OF(a.bytes, b.bytes), bytes = 0;
    while (bytes < most && a.p[bytes] == b.p[bytes]) {
        bytes++;
    }
    return bytes;
}

void
node_init(Node node, u32 page_id, TreeId tree_id, u8 level, bool is_int_tree,
          const NodeFences *fences)
{
    ASSERT(node.bytes >= NODE_BYTES_MIN && node.bytes <= NODE_BYTES_MAX);
    ASSERT(fences->low.bytes <= STORE_KEY_BYTES_MAX && fences->high.bytes <= STORE_KEY_BYTES_MAX);
    NodeHead head = {.page_id = page_id,
                     .tree_id = tree_id,
                     .level = level,
                     .flags = is_int_tree ? NODE_FLAG_INT : 0,
                     .low_bytes = (u16)fences->low.bytes,
                     .high_bytes = fences->has_high ? (u16)fences->high.bytes : NODE_INFINITE};
    u32 fence_bytes = (u32)fences->low.bytes + (fences->has_high ? (u32)fences->high.bytes : 0);
    head.heap_start = head.fence_at = node.bytes - fence_bytes;
    if (fences->has_high && !is_int_tree) {
        head.prefix_bytes = (u16)common_prefix(fences->low, fences->high);
    }
    u8 *to = node.p + head.fence_at;
    if (fences->low.bytes > 0) memcpy(to, fences->low.p, fences->low.bytes);
    if (fences->has_high && fences->high.bytes > 0) {
        memcpy(to + fences->low.bytes, fences->high.p, fences->high.bytes);
    }
    memcpy(node.p, &head, sizeof(head));
}

u32
node_entry_bytes_max(u32 page_bytes)
{
    /* Two fences of the greatest length, a table of writers, and slots stay free. */
    u32 fixed = NODE_HEAD_BYTES + 2 * (u32)STORE_KEY_BYTES_MAX + NODE_WRITERS_MAX * 8;
    u32 room = page_bytes - fixed;
    return room / NODE_ENTRIES_MIN - (u32)sizeof(NodeSlot);
}

/* ---- the heap ---- */

static inline u32
slots_end(const NodeHead *head)
{
    return NODE_HEAD_BYTES + head->count * (u32)sizeof(NodeSlot);
}

u32
node_room(Node node)
{
    const NodeHead *head = node_head(node);
    return head->heap_start - slots_end(head) + head->heap_garbage;
}

/* Collecting pays when it yields this part of a page, or when a split would not help. */
#define GARBAGE_PART 8u

static inline bool
collecting_pays(Node node, u32 garbage)
{
    return garbage >= node.bytes / GARBAGE_PART || node_head(node)->count < 2;
}

bool
node_takes(Node node, u32 bytes)
{
    const NodeHead *head = node_head(node);
    if (head->heap_start - slots_end(head) >= bytes) return true;
    return node_room(node) >= bytes && collecting_pays(node, head->heap_garbage);
}

static inline bool
is_leaf(const NodeHead *head)
{
    return head->level == 0;
}

/* Bytes that a slot has in the heap. */
static inline u32
heap_bytes_of(const NodeHead *head, const NodeSlot *slot)
{
    return rest_bytes(slot->key_bytes) + (is_leaf(head) ? slot->value_bytes : 0);
}

/* Rebuild the heap without garbage.  Slots, fences and writers stay what they are. */
static void
compact(Node node, u8 *scratch)
{
    NodeHead *head = node_head(node);
    NodeSlot *slots = node_slots(node);
    u32 from = head->heap_start;
    memcpy(scratch + from, node.p + from, node.bytes - from);
    u32 fence_bytes = head->low_bytes + (head->high_bytes == NODE_INFINITE ? 0u : head->high_bytes);
    u32 at = node.bytes - fence_bytes;
    memcpy(node.p + at, scratch + head->fence_at, fence_bytes);
    head->fence_at = at;
    if (head->writers_at != 0) {
        u32 bytes = head->writers_room * 8u;
        at = (at - bytes) & ~7u; /* Aligned: the ids are read as words. */
        memcpy(node.p + at, scratch + head->writers_at, bytes);
        head->writers_at = (u16)at;
    }
    for (u32 i = 0; i < head->count; i++) {
        u32 bytes = heap_bytes_of(head, &slots[i]);
        at -= bytes;
        memcpy(node.p + at, scratch + slots[i].at, bytes);
        slots[i].at = (u16)at;
    }
    head->heap_start = at;
    /* What alignment left unused before the table counts as garbage that cannot be collected; it
       is given back by not counting it at all. */
    head->heap_garbage = 0;
}

/* Make sure of `slot_bytes` behind the slots and `heap_bytes` before the heap, collecting garbage
   if need be and if that pays.  False: no room. */
static bool
secure(Node node, u32 slot_bytes, u32 heap_bytes, u8 *scratch)
{
    NodeHead *head = node_head(node);
    u32 need = slot_bytes + heap_bytes;
    if (head->heap_start - slots_end(head) >= need) return true;
    if (node_room(node) < need + 8) return false; /* 8: alignment of the table. */
    if (!collecting_pays(node, head->heap_garbage)) return false;
    compact(node, scratch);
    return head->heap_start - slots_end(head) >= need;
}

static ALWAYS_INLINE void
slot_open(Node node, u32 slot_no)
{
    NodeHead *head = node_head(node);
    NodeSlot *slots = node_slots(node);
    ASSERT(slot_no <= head->count);
    memmove(&slots[slot_no + 1], &slots[slot_no], (head->count - slot_no) * sizeof(NodeSlot));
    head->count++;
}

/* Place key rest and value into secured room; fills the slot's head, at and key_bytes. */
static ALWAYS_INLINE void
heap_put(Node node, NodeSlot *slot, Slice tail, Slice value)
{
    NodeHead *head = node_head(node);
    Slice rest = rest_of(tail);
    u32 at = head->heap_start - (u32)(rest.bytes + value.bytes);
    if (rest.bytes > 0) memcpy(node.p + at, rest.p, rest.bytes);
    if (value.bytes > 0) memcpy(node.p + at + rest.bytes, value.p, value.bytes);
    head->heap_start = at;
    slot->head = head_of(tail);
    slot->at = (u16)at;
    slot->key_bytes = (u16)tail.bytes;
}

bool
node_insert(Node node, u32 slot_no, Slice key, Slice value, u8 writer, u8 flags, u8 *scratch)
{
    NodeHead *head = node_head(node);
    ASSERT(is_leaf(head));
    DCHECK(node_against_fences(node, key) == 0);
    Slice tail = tail_of(node, key);
    u32 heap_bytes = rest_bytes((u32)tail.bytes) + (u32)value.bytes;
    if (!secure(node, sizeof(NodeSlot), heap_bytes, scratch)) return false;
    slot_open(node, slot_no);
    NodeSlot *slot = &node_slots(node)[slot_no];
    heap_put(node, slot, tail, value);
    slot->value_bytes = (u16)value.bytes;
    slot->writer = writer;
    slot->flags = flags;
    if ((flags & NODE_SLOT_TOMBSTONE) == 0) head->live++;
    return true;
}

/* Give the slot new heap bytes: its key rest again, then a longer value. */
static bool
replace_longer(Node node, NodeSlot *slot, Slice value, u8 *scratch)
{
    NodeHead *head = node_head(node);
    u32 rest = rest_bytes(slot->key_bytes);
    u32 old_bytes = rest + slot->value_bytes, new_bytes = rest + (u32)value.bytes;
    u8 key_rest[STORE_KEY_BYTES_MAX];
    bool fits = head->heap_start - slots_end(head) >= new_bytes;
    if (!fits) {
        if (node_room(node) + old_bytes < new_bytes + 8) return false;
        if (!collecting_pays(node, head->heap_garbage + old_bytes)) return false;
    }
    memcpy(key_rest, node.p + slot->at, rest);
    head->heap_garbage += old_bytes;
    if (!fits) {
        u16 key_bytes = slot->key_bytes;
        slot->key_bytes = slot->value_bytes = 0; /* Nothing of it is to be kept. */
        compact(node, scratch);
        slot->key_bytes = key_bytes;
    }
    u32 at = head->heap_start - new_bytes;
    ASSERT(at >= slots_end(head));
    memcpy(node.p + at, key_rest, rest);
    memcpy(node.p + at + rest, value.p, value.bytes);
    head->heap_start = at;
    slot->at = (u16)at;
    return true;
}

static inline void
count_live(NodeHead *head, const NodeSlot *slot, u8 flags)
{
    bool was_live = (slot->flags & NODE_SLOT_TOMBSTONE) == 0;
    bool is_live = (flags & NODE_SLOT_TOMBSTONE) == 0;
    head->live = (u16)(head->live + is_live - was_live);
}

bool
node_replace(Node node, u32 slot_no, Slice value, u8 writer, u8 flags, u8 *scratch)
{
    NodeHead *head = node_head(node);
    NodeSlot *slot = &node_slots(node)[slot_no];
    ASSERT(is_leaf(head) && slot_no < head->count);
    if (value.bytes <= slot->value_bytes) {
        u32 at = slot->at + rest_bytes(slot->key_bytes);
        if (value.bytes > 0) memmove(node.p + at, value.p, value.bytes);
        head->heap_garbage += slot->value_bytes - (u32)value.bytes;
    } else if (!replace_longer(node, slot, value, scratch)) {
        return false;
    }
    count_live(head, slot, flags);
    slot->value_bytes = (u16)value.bytes;
    slot->writer = writer;
    slot->flags = flags;
    return true;
}

/* Write a value into a longer room, and where it ends. */
static void
pad_put(u8 *room, u32 room_bytes, Slice value)
{
    u32 pad = room_bytes - (u32)value.bytes;
    if (value.bytes > 0) memmove(room, value.p, value.bytes);
    if (pad < 255) {
        room[room_bytes - 1] = (u8)pad;
        return;
    }
    room[room_bytes - 1] = 255;
    room[room_bytes - 2] = (u8)(pad >> 8);
    room[room_bytes - 3] = (u8)pad;
}

bool
node_write(Node node, u32 slot_no, Slice value, u8 writer, u8 flags, u8 *scratch)
{
    NodeHead *head = node_head(node);
    NodeSlot *slot = &node_slots(node)[slot_no];
    ASSERT(is_leaf(head) && slot_no < head->count && (flags & NODE_SLOT_PADDED) == 0);
    u8 *room = node.p + slot->at + rest_bytes(slot->key_bytes);
    if (value.bytes > slot->value_bytes) {
        if (!replace_longer(node, slot, value, scratch)) return false;
        slot->value_bytes = (u16)value.bytes;
    } else if ((flags & NODE_SLOT_TOMBSTONE) != 0) {
        ASSERT(value.bytes == 0);
    } else if (value.bytes == slot->value_bytes) {
        if (value.bytes > 0) memmove(room, value.p, value.bytes);
    } else {
        pad_put(room, slot->value_bytes, value);
        flags |= NODE_SLOT_PADDED;
    }
    count_live(head, slot, flags);
    slot->writer = writer;
    slot->flags = flags;
    return true;
}

void
node_trim(Node node, u32 slot_no)
{
    NodeHead *head = node_head(node);
    NodeSlot *slot = &node_slots(node)[slot_no];
    u32 kept = (u32)node_read_value(node, slot_no).bytes;
    if ((slot->flags & NODE_SLOT_TOMBSTONE) != 0) kept = 0;
    head->heap_garbage += slot->value_bytes - kept;
    slot->value_bytes = (u16)kept;
    slot->flags &= (u8)~NODE_SLOT_PADDED;
}

void
node_remove(Node node, u32 slot_no)
{
    NodeHead *head = node_head(node);
    NodeSlot *slots = node_slots(node);
    ASSERT(slot_no < head->count);
    if (is_leaf(head) && (slots[slot_no].flags & NODE_SLOT_TOMBSTONE) == 0) head->live--;
    head->heap_garbage += heap_bytes_of(head, &slots[slot_no]);
    memmove(&slots[slot_no], &slots[slot_no + 1], (head->count - slot_no - 1u) * sizeof(NodeSlot));
    head->count--;
}

bool
node_insert_child(Node node, Slice separator, u32 child, u8 *scratch)
{
    ASSERT(!is_leaf(node_head(node)));
    bool exact;
    u32 slot_no = node_find(node, separator, &exact);
    ASSERT(!exact);
    Slice tail = tail_of(node, separator);
    if (!secure(node, sizeof(NodeSlot), rest_bytes((u32)tail.bytes), scratch)) return false;
    slot_open(node, slot_no);
    NodeSlot *slot = &node_slots(node)[slot_no];
    heap_put(node, slot, tail, SLICE_NONE);
    slot->child = child;
    return true;
}

bool
node_remove_child(Node node, u32 child)
{
    const NodeHead *head = node_head(node);
    for (u32 i = 0; i < head->count; i++) {
        if (node_slots(node)[i].child != child) continue;
        node_remove(node, i);
        return true;
    }
    return false;
}

/* ---- split and merge ---- */

/* The same prefix on both sides: what is in the heap goes over as it is. */
static void
copy_slots_alike(Node target, Node source, u32 from, u32 to)
{
    NodeHead *head = node_head(target);
    NodeSlot *slot = &node_slots(target)[head->count];
    u32 at = head->heap_start;
    for (u32 i = from; i < to; i++, slot++) {
        *slot = node_slots(source)[i];
        u32 bytes = heap_bytes_of(head, slot);
        at -= bytes;
        memcpy(target.p + at, source.p + slot->at, bytes);
        slot->at = (u16)at;
        if (is_leaf(head) && (slot->flags & NODE_SLOT_TOMBSTONE) == 0) head->live++;
    }
    head->count = (u16)(head->count + (to - from));
    head->heap_start = at;
    ASSERT(head->heap_start >= slots_end(head));
}

/* Copy slots [from, to) of `source` behind those of `target`, whose fences hold them. */
static void
copy_slots(Node target, Node source, u32 from, u32 to)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    NodeHead *head = node_head(target);
    if (head->prefix_bytes == node_head(source)->prefix_bytes) {
        copy_slots_alike(target, source, from, to);
        return;
    }
    for (u32 i = from; i < to; i++) {
        const NodeSlot *old = &node_slots(source)[i];
        Slice key = {key_bytes, node_read_key(source, i, key_bytes)};
        Slice value = is_leaf(head) ? value_room(source, old) : SLICE_NONE;
        NodeSlot *slot = &node_slots(target)[head->count];
        head->count++;
        heap_put(target, slot, tail_of(target, key), value);
        slot->child = old->child; /* In leaves: value length, writer, flags. */
        if (is_leaf(head) && (old->flags & NODE_SLOT_TOMBSTONE) == 0) head->live++;
    }
    ASSERT(head->heap_start >= slots_end(head));
}

/* The table of writers goes along with the slots, indexes unchanged. */
static void
copy_writers(Node target, Node source)
{
    const NodeHead *from = node_head(source);
    NodeHead *head = node_head(target);
    if (from->writers_at == 0) return;
    u32 bytes = from->writers_room * 8u;
    u32 at = (head->heap_start - bytes) & ~7u;
    memcpy(target.p + at, source.p + from->writers_at, bytes);
    head->writers_at = (u16)at;
    head->writers_room = from->writers_room;
    head->heap_start = at;
}

/* First slot of the right part for rising keys: as much as possible stays, but the node now gets
   an upper fence, which needs room. */
static u32
split_slot_rising(Node node, Slice key)
{
    const NodeHead *head = node_head(node);
    u32 fence_bytes = head->prefix_bytes + (u32)key.bytes + head->low_bytes;
    u32 room = node.bytes - NODE_HEAD_BYTES - fence_bytes - head->writers_room * 8u - 8;
    u32 used = 0, slot = 0;
    for (; slot < head->count; slot++) {
        const NodeSlot *next = &node_slots(node)[slot];
        u32 bytes = (u32)sizeof(NodeSlot) + heap_bytes_of(head, next);
        /* Should it be the first of the right part, the fence is cut from its key. */
        if (used + bytes + next->key_bytes > room) break;
        used += bytes;
    }
    return MAX_OF(slot, 1u);
}

/* First slot of the right part: half of the bytes, or next to nothing for rising keys. */
static u32
split_slot(Node node, u32 at, Slice key)
{
    const NodeHead *head = node_head(node);
    if (at == head->count && head->right == NODE_PAGE_NONE) return split_slot_rising(node, key);
    u32 total = 0, sum = 0;
    for (u32 i = 0; i < head->count; i++) {
        total += (u32)sizeof(NodeSlot) + heap_bytes_of(head, &node_slots(node)[i]);
    }
    u32 slot = 0;
    while (slot < head->count - 1u && sum < total / 2) {
        sum += (u32)sizeof(NodeSlot) + heap_bytes_of(head, &node_slots(node)[slot]);
        slot++;
    }
    return MAX_OF(slot, 1u);
}

/* The shortest key above `below` and not above `above`. */
static u32
shortest_between(Slice below, Slice above, u8 separator[STORE_KEY_BYTES_MAX])
{
    u32 bytes = common_prefix(below, above) + 1;
    ASSERT(bytes <= above.bytes);
    memcpy(separator, above.p, bytes);
    return bytes;
}

static u32
choose_separator(Node node, u32 slot, u32 at, Slice key, u8 separator[STORE_KEY_BYTES_MAX])
{
    u8 below[STORE_KEY_BYTES_MAX], above[STORE_KEY_BYTES_MAX];
    const NodeHead *head = node_head(node);
    Slice low = {below, node_read_key(node, slot - 1, below)};
    Slice high = key;
    if (slot < head->count) high = (Slice){above, node_read_key(node, slot, above)};
    if (is_leaf(head) && (head->flags & NODE_FLAG_INT) == 0) {
        /* The entry still to come may be the highest of the left part or the lowest of the right.
         */
        bool between = at == slot && slot < head->count && slice_compare(key, low) > 0 &&
                       slice_compare(key, high) < 0;
        if (between) low = key;
        return shortest_between(low, high, separator);
    }
    memcpy(separator, high.p, high.bytes);
    return (u32)high.bytes;
}

/* Rising keys in a leaf of integers: nothing moves.  The left part gets its upper fence in front of
   its heap, the right one is empty.  False: not that case, or no room for the fence. */
static bool
split_off_end(Node node, Node right, u32 right_page_id, u32 at, Slice key)
{
    NodeHead *head = node_head(node);
    u32 fence_bytes = head->low_bytes + (u32)key.bytes;
    bool rises = is_leaf(head) && (head->flags & NODE_FLAG_INT) != 0 && at == head->count &&
                 head->right == NODE_PAGE_NONE && head->high_bytes == NODE_INFINITE;
    if (!rises || head->heap_start - slots_end(head) < fence_bytes) return false;
    NodeFences fences = {.low = key};
    node_init(right, right_page_id, head->tree_id, head->level, true, &fences);
    node_head(right)->right = head->right;
    node_head(right)->epoch = head->epoch;
    u32 to = head->heap_start - fence_bytes;
    memcpy(node.p + to, node.p + head->fence_at, head->low_bytes);
    memcpy(node.p + to + head->low_bytes, key.p, key.bytes);
    head->heap_garbage += head->low_bytes;
    head->heap_start = head->fence_at = to;
    head->high_bytes = (u16)key.bytes;
    head->right = right_page_id;
    return true;
}

void
node_split(Node node, Node right, u32 right_page_id, u32 at, Slice key, u8 *scratch,
           u8 separator[STORE_KEY_BYTES_MAX], u32 *separator_bytes_out)
{
    if (split_off_end(node, right, right_page_id, at, key)) {
        memcpy(separator, key.p, key.bytes);
        *separator_bytes_out = (u32)key.bytes;
        return;
    }
    page_copy(scratch, node.p, node.bytes);
    Node old = {scratch, node.bytes};
    const NodeHead *head = node_head(old);
    ASSERT(head->count >= 2);
    u32 slot = split_slot(old, at, key);
    if (!is_leaf(head) && slot == head->count) slot--; /* The right part needs its child_low. */
    u32 separator_bytes = choose_separator(old, slot, at, key, separator);
    NodeFences fences = node_fences(old);
    NodeFences left_fences = {
        .low = fences.low, .high = {separator, separator_bytes}, .has_high = true};
    NodeFences right_fences = {
        .low = {separator, separator_bytes}, .high = fences.high, .has_high = fences.has_high};
    bool is_int_tree = (head->flags & NODE_FLAG_INT) != 0;
    node_init(right, right_page_id, head->tree_id, head->level, is_int_tree, &right_fences);
    node_init(node, head->page_id, head->tree_id, head->level, is_int_tree, &left_fences);
    node_head(right)->right = head->right;
    node_head(node)->right = right_page_id;
    node_head(node)->child_low = head->child_low;
    node_head(node)->epoch = node_head(right)->epoch = head->epoch;
    node_head(node)->flags |= head->flags & NODE_FLAG_ASKS;
    node_head(right)->flags |= head->flags & NODE_FLAG_ASKS;
    copy_writers(node, old);
    copy_writers(right, old);
    copy_slots(node, old, 0, slot);
    if (is_leaf(head)) {
        copy_slots(right, old, slot, head->count);
    } else {
        /* The separator moves up; its child is the right part's lowest. */
        node_head(right)->child_low = node_slots(old)[slot].child;
        copy_slots(right, old, slot + 1, head->count);
    }
    *separator_bytes_out = separator_bytes;
}

/* Bytes that the entries of `node` need behind a prefix of `prefix_bytes`. */
static u32
entries_bytes(Node node, u32 prefix_bytes)
{
    const NodeHead *head = node_head(node);
    u32 longer = head->prefix_bytes - prefix_bytes;
    u32 bytes = 0;
    for (u32 i = 0; i < head->count; i++) {
        const NodeSlot *slot = &node_slots(node)[i];
        bytes += (u32)sizeof(NodeSlot) + rest_bytes(slot->key_bytes + longer) + slot->value_bytes;
    }
    return bytes;
}

bool
node_join(Node node, Node right, u8 *scratch)
{
    const NodeHead *gone = node_head(right);
    page_copy(scratch, node.p, node.bytes);
    Node old = {scratch, node.bytes};
    const NodeHead *head = node_head(old);
    ASSERT(is_leaf(head) && is_leaf(gone) && (head->count == 0 || gone->count == 0));
    NodeFences fences = node_fences(old), beyond = node_fences(right);
    NodeFences wide = {.low = fences.low, .high = beyond.high, .has_high = beyond.has_high};
    bool is_int_tree = (head->flags & NODE_FLAG_INT) != 0;
    Node full = head->count > 0 ? old : right;
    /* A wider node may have a shorter prefix: does everything still fit? */
    u32 prefix = wide.has_high && !is_int_tree ? common_prefix(wide.low, wide.high) : 0;
    u32 need = NODE_HEAD_BYTES + entries_bytes(full, prefix) +
               (u32)(wide.low.bytes + wide.high.bytes) + node_head(full)->writers_room * 8u + 8;
    if (need > node.bytes) return false;
    node_init(node, head->page_id, head->tree_id, 0, is_int_tree, &wide);
    node_head(node)->right = gone->right;
    node_head(node)->epoch = head->epoch;
    node_head(node)->flags |= node_head(full)->flags & NODE_FLAG_ASKS;
    copy_writers(node, full);
    copy_slots(node, full, 0, node_head(full)->count);
    return true;
}

/* ---- writers ---- */

static u64 *
writers_of(Node node)
{
    return (u64 *)(void *)(node.p + node_head(node)->writers_at);
}

const u64 *
node_writers(Node node, u32 *count_out)
{
    const NodeHead *head = node_head(node);
    u32 at = NODE_LOAD(head->writers_at), room = NODE_LOAD(head->writers_room);
    bool good = at != 0 && room <= NODE_WRITERS_MAX && at + room * 8u <= node.bytes;
    *count_out = good ? room : 0;
    return (const u64 *)(const void *)(node.p + (good ? at & ~7u : 0));
}

u64
node_writer_id(Node node, u8 index)
{
    const NodeHead *head = node_head(node);
    u32 at = NODE_LOAD(head->writers_at), room = NODE_LOAD(head->writers_room);
    if (at == 0 || index == 0 || index > room || at + room * 8u > node.bytes) return 0;
    return NODE_LOAD(((const u64 *)(const void *)(node.p + (at & ~7u)))[index - 1]);
}

u8
node_writer_find(Node node, u64 id)
{
    const NodeHead *head = node_head(node);
    for (u8 i = 0; i < head->writers_room; i++) {
        if (writers_of(node)[i] == id) return (u8)(i + 1);
    }
    return 0;
}

/* A larger table, the old ids in front.  False: no room. */
static bool
writers_grow(Node node, u8 *scratch)
{
    NodeHead *head = node_head(node);
    u32 room = head->writers_room == 0 ? 4 : MIN_OF(head->writers_room * 2u, NODE_WRITERS_MAX);
    if (room == head->writers_room) return false;
    if (head->heap_start - slots_end(head) < room * 8 + 8) {
        if (node_room(node) < room * 8 + 16) return false;
        compact(node, scratch); /* Seldom, and worth it: without a table every slot asks. */
    }
    u32 at = (head->heap_start - room * 8) & ~7u;
    u32 old_bytes = head->writers_room * 8u;
    memset(node.p + at, 0, room * 8);
    if (old_bytes > 0) memcpy(node.p + at, node.p + head->writers_at, old_bytes);
    head->heap_garbage += old_bytes;
    head->heap_start = at;
    head->writers_at = (u16)at;
    head->writers_room = (u8)room;
    return true;
}

u8
node_writer_add(Node node, u64 id, u8 *scratch)
{
    ASSERT(id != 0);
    u8 index = node_writer_find(node, 0);
    /* Not a bug, but what is rare made common: tables of two. */
    if (PLANT(140) && (index > 2 || (index == 0 && node_head(node)->writers_room > 0))) {
        return NODE_WRITER_ASK_MAP;
    }
    if (index == 0) {
        if (!writers_grow(node, scratch)) return NODE_WRITER_ASK_MAP;
        index = node_writer_find(node, 0);
    }
    writers_of(node)[index - 1] = id;
    return index;
}

void
node_writer_settle(Node node, u8 index)
{
    node_writers_settle(node, 1u << index);
}

void
node_writers_settle(Node node, u32 indexes)
{
    NodeHead *head = node_head(node);
    NodeSlot *slots = node_slots(node);
    ASSERT((indexes & 1) == 0 && indexes >> 1 >> head->writers_room == 0);
    for (u32 i = 0; i < head->count; i++) {
        u32 writer = slots[i].writer;
        if (writer <= NODE_WRITERS_MAX && (indexes >> writer & 1) != 0) {
            slots[i].writer = NODE_WRITER_SETTLED;
        }
    }
    for (u32 i = 0; i < head->writers_room; i++) {
        if ((indexes >> (i + 1) & 1) != 0) writers_of(node)[i] = 0;
    }
}

void
node_writers_wipe(Node node)
{
    NodeHead *head = node_head(node);
    if (!is_leaf(head)) return;
    for (u32 i = 0; i < head->count; i++) {
        node_slots(node)[i].writer = NODE_WRITER_SETTLED;
    }
    head->heap_garbage += head->writers_room * 8u;
    head->writers_at = 0;
    head->writers_room = 0;
    head->flags &= (u8)~NODE_FLAG_ASKS;
}

/* ---- verifying ---- */

/* The head by itself: does everything that it points to lie in the page? */
static const char *
verify_head(Node node)
{
    const NodeHead *head = node_head(node);
    u32 high_bytes = head->high_bytes == NODE_INFINITE ? 0u : head->high_bytes;
    if (head->count > (node.bytes - NODE_HEAD_BYTES) / sizeof(NodeSlot)) return "too many slots";
    if (head->heap_start > node.bytes || head->heap_start < slots_end(head)) {
        return "slots and heap overlap";
    }
    if (head->low_bytes > STORE_KEY_BYTES_MAX || high_bytes > STORE_KEY_BYTES_MAX ||
        head->fence_at < head->heap_start || head->fence_at > node.bytes ||
        node.bytes - head->fence_at < head->low_bytes + high_bytes) {
        return "fences outside the page";
    }
    if (head->writers_at != 0) {
        u32 bytes = head->writers_room * 8u;
        if (head->writers_at % 8 != 0 || head->writers_at < head->heap_start ||
            head->writers_at + bytes > node.bytes || head->writers_room > NODE_WRITERS_MAX) {
            return "table of writers outside the page";
        }
    } else if (head->writers_room != 0) {
        return "writers without a table";
    }
    NodeFences fences = node_fences(node);
    bool has_prefix = fences.has_high && (head->flags & NODE_FLAG_INT) == 0;
    u32 prefix = has_prefix ? common_prefix(fences.low, fences.high) : 0;
    if (head->prefix_bytes != prefix) return "wrong prefix";
    if (fences.has_high && slice_compare(fences.low, fences.high) >= 0) return "fences crossed";
    return NULL;
}

static const char *
verify_slot(Node node, u32 slot_no)
{
    const NodeHead *head = node_head(node);
    const NodeSlot *slot = &node_slots(node)[slot_no];
    u32 bytes = heap_bytes_of(head, slot);
    if (bytes > 0 && (slot->at < head->heap_start || slot->at + bytes > node.bytes)) {
        return "a slot points outside the heap";
    }
    if (head->prefix_bytes + (u32)slot->key_bytes > STORE_KEY_BYTES_MAX) return "a key too long";
    if ((head->flags & NODE_FLAG_INT) != 0 && slot->key_bytes != 8) return "a key of wrong length";
    if (slot->key_bytes < 8 && (slot->head & (U64_MAX >> (8 * slot->key_bytes))) != 0) {
        return "a head longer than its key";
    }
    u32 writer = is_leaf(head) ? slot->writer : 0;
    if (writer != NODE_WRITER_ASK_MAP && writer > head->writers_room) return "an unknown writer";
    return NULL;
}

const char *
node_verify(Node node)
{
    const NodeHead *head = node_head(node);
    const char *what = verify_head(node);
    if (what != NULL) return what;
    u8 keys[2][STORE_KEY_BYTES_MAX];
    Slice last = SLICE_NONE;
    u32 live = 0, used = 0;
    for (u32 i = 0; i < head->count; i++) {
        what = verify_slot(node, i);
        if (what != NULL) return what;
        u8 *bytes = keys[i & 1];
        Slice key = {bytes, node_read_key(node, i, bytes)};
        if (i > 0 && slice_compare(last, key) >= 0) return "keys out of order";
        if (node_against_fences(node, key) != 0) return "a key outside the fences";
        last = key;
        used += heap_bytes_of(head, &node_slots(node)[i]);
        live += is_leaf(head) && (node_slots(node)[i].flags & NODE_SLOT_TOMBSTONE) == 0;
    }
    if (head->live != live) return "wrong number of live entries";
    u32 high_bytes = head->high_bytes == NODE_INFINITE ? 0u : head->high_bytes;
    used += head->low_bytes + high_bytes + head->writers_room * 8u + head->heap_garbage;
    if (used > node.bytes - head->heap_start) return "entries share bytes";
    return NULL;
}
