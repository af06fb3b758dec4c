/*
 * node_fast.h -- searching nodes of integer keys, to be inlined where a look must be short.
 *
 * All of it may be called on pages that change meanwhile, as node.h says: fields are loaded once
 * and clamped, and the caller validates.
 */
#pragma once

#include "store/tree/node.h"

static ALWAYS_INLINE u32
node_count_clamped(Node node)
{
    u32 count = NODE_LOAD(node_head(node)->count);
    u32 most = (node.bytes - NODE_HEAD_BYTES) / (u32)sizeof(NodeSlot);
    return LIKELY(count <= most) ? count : most;
}

/*
 * First of `count` slots whose head is not below `head` (`above`: is above it).  No branch depends
 * on the keys: the first step leaves a power of two of slots that may be it, each other one halves
 * them.
 */
static ALWAYS_INLINE u32
node_search(const NodeSlot *slots, u32 count, u64 head, bool above)
{
    if (UNLIKELY(count == 0)) return 0;
    u32 width = 1u << (31 - (u32)__builtin_clz(count));
    const NodeSlot *at = slots;
    u64 middle = NODE_LOAD(slots[width - 1].head);
    at += (count - width) & -(u32)(above ? middle <= head : middle < head);
    for (size_t step = width / 2 * sizeof(NodeSlot); step >= sizeof(NodeSlot); step /= 2) {
        const NodeSlot *next = (const NodeSlot *)(const void *)((const u8 *)at + step);
        middle = NODE_LOAD(next[-1].head);
        bool beyond = above ? middle <= head : middle < head;
        at = __builtin_expect_with_probability(beyond, 1, 0.5) ? next : at;
    }
    middle = NODE_LOAD(at->head);
    return (u32)(at - slots) + (above ? middle <= head : middle < head);
}

static ALWAYS_INLINE u32
node_find_head(const NodeSlot *slots, u32 count, u64 head)
{
    return node_search(slots, count, head, false);
}

/* node_find() in a node of integer keys. */
static ALWAYS_INLINE u32
node_find_int(Node node, u64 key, bool *exact_out)
{
    const NodeSlot *slots = node_slots(node);
    u32 count = node_count_clamped(node);
    *exact_out = false;
    if (UNLIKELY(count == 0) || NODE_LOAD(slots[count - 1].head) < key) return count; /* Rising. */
    /* Keys without gaps stand where they must. */
    u64 guess = key - NODE_LOAD(slots[0].head);
    if (guess < count && NODE_LOAD(slots[guess].head) == key) {
        *exact_out = true;
        return (u32)guess;
    }
    u32 slot = node_find_head(slots, count, key);
    *exact_out = slot < count && NODE_LOAD(slots[slot].head) == key;
    return slot;
}

/* A run of bytes in the page, cut to it. */
static ALWAYS_INLINE Slice
node_bytes_clamped(Node node, u32 at, u32 bytes)
{
    if (UNLIKELY(at > node.bytes)) at = node.bytes;
    if (UNLIKELY(bytes > node.bytes - at)) bytes = node.bytes - at;
    return (Slice){node.p + at, bytes};
}

/* The value of a leaf slot without flags. */
static ALWAYS_INLINE Slice
node_value_plain(Node node, const NodeSlot *slot)
{
    u32 key_bytes = NODE_LOAD(slot->key_bytes);
    u32 rest = key_bytes > NODE_KEY_HEAD_BYTES ? key_bytes - NODE_KEY_HEAD_BYTES : 0;
    return node_bytes_clamped(node, NODE_LOAD(slot->at) + rest, NODE_LOAD(slot->value_bytes));
}

/* node_writer_id() */
static ALWAYS_INLINE u64
node_writer_id_fast(Node node, u32 index)
{
    const NodeHead *head = node_head(node);
    u32 at = NODE_LOAD(head->writers_at), room = NODE_LOAD(head->writers_room);
    if (UNLIKELY(index - 1 >= room || at - 1 >= node.bytes - room * 8u)) return 0;
    return NODE_LOAD(((const u64 *)(const void *)(node.p + (at & ~7u)))[index - 1]);
}

/* Do the fences of an integer node hold the key? */
static ALWAYS_INLINE bool
node_holds_int(Node node, u64 key)
{
    const NodeHead *head = node_head(node);
    u32 at = NODE_LOAD(head->fence_at);
    u32 low = NODE_LOAD(head->low_bytes), high = NODE_LOAD(head->high_bytes);
    u32 bytes = (low == 8 ? 8u : 0u) + (high == 8 ? 8u : 0u);
    if (at > node.bytes - bytes) return false; /* Torn. */
    if (low == 8 && key < load_be64(node.p + at)) return false;
    return high != 8 || key < load_be64(node.p + at + (low == 8 ? 8 : 0));
}

/*
 * What an integer node of a level looks like from prefix_bytes to flags, read as one number: with
 * both fences, and with none (the root).
 */
#define NODE_SHAPE_LEVEL ((u64)1 << 48)
#define NODE_SHAPE_INT   ((u64)8 << 16 | (u64)8 << 32 | (u64)NODE_FLAG_INT << 56)
#define NODE_SHAPE_ROOT  ((u64)NODE_INFINITE << 32 | (u64)NODE_FLAG_INT << 56)
STATIC_ASSERT(offsetof(NodeHead, low_bytes) == offsetof(NodeHead, prefix_bytes) + 2);
STATIC_ASSERT(offsetof(NodeHead, high_bytes) == offsetof(NodeHead, prefix_bytes) + 4);
STATIC_ASSERT(offsetof(NodeHead, level) == offsetof(NodeHead, prefix_bytes) + 6);
STATIC_ASSERT(offsetof(NodeHead, flags) == offsetof(NodeHead, prefix_bytes) + 7);

/* Is this a node of that tree of integers, on that level, alive, whose fences hold the key? */
static ALWAYS_INLINE bool
node_is_int_home(Node node, TreeId tree_id, u32 level, u64 key)
{
    const NodeHead *head = node_head(node);
    if (UNLIKELY(NODE_LOAD(head->tree_id) != tree_id)) return false;
    u64 shape = load_u64((const u8 *)&head->prefix_bytes) & ~((u64)NODE_FLAG_ASKS << 56);
    shape -= level * NODE_SHAPE_LEVEL;
    if (LIKELY(shape == NODE_SHAPE_INT)) {
        u32 at = NODE_LOAD(head->fence_at);
        if (UNLIKELY(at > node.bytes - 16)) return false; /* Torn. */
        return key >= load_be64(node.p + at) && key < load_be64(node.p + at + 8);
    }
    if (shape == NODE_SHAPE_ROOT) return true;
    return NODE_LOAD(head->level) == level && (NODE_LOAD(head->flags) & NODE_FLAG_INT) != 0 &&
           (NODE_LOAD(head->flags) & NODE_FLAG_DEAD) == 0 && node_holds_int(node, key);
}

/* The child of an inner integer node that may hold the key. */
static ALWAYS_INLINE u32
node_child_int(Node node, u64 key)
{
    const NodeSlot *slots = node_slots(node);
    /* Behind the last separator that is not above the key. */
    u32 slot = node_search(slots, node_count_clamped(node), key, true);
    if (UNLIKELY(slot == 0)) return NODE_LOAD(node_head(node)->child_low);
    return NODE_LOAD(slots[slot - 1].child);
}
