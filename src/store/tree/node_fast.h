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
 * First of `count` slots whose head is not below `head`.  No branch depends on the keys: the first
 * step leaves a power of two of slots that may be it, each other one halves them.
 */
static ALWAYS_INLINE u32
node_find_head(const NodeSlot *slots, u32 count, u64 head)
{
    if (UNLIKELY(count == 0)) return 0;
    u32 width = 1u << (31 - (u32)__builtin_clz(count));
    const NodeSlot *at = slots;
    at += (count - width) & -(u32)(NODE_LOAD(slots[width - 1].head) < head);
    for (size_t step = width / 2 * sizeof(NodeSlot); step >= sizeof(NodeSlot); step /= 2) {
        const NodeSlot *next = (const NodeSlot *)(const void *)((const u8 *)at + step);
        at = __builtin_expect_with_probability(NODE_LOAD(next[-1].head) < head, 1, 0.5) ? next : at;
    }
    return (u32)(at - slots) + (NODE_LOAD(at->head) < head);
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

/* Do the fences of an integer node hold the key? */
static ALWAYS_INLINE bool
node_holds_int(Node node, u64 key)
{
    const NodeHead *head = node_head(node);
    u32 at = NODE_LOAD(head->fence_at);
    u32 low = NODE_LOAD(head->low_bytes), high = NODE_LOAD(head->high_bytes);
    if (LIKELY(low == 8 && high == 8)) {
        if (UNLIKELY(at > node.bytes - 16)) return false; /* Torn. */
        return key >= load_be64(node.p + at) && key < load_be64(node.p + at + 8);
    }
    u32 bytes = (low == 8 ? 8u : 0u) + (high == 8 ? 8u : 0u);
    if (at > node.bytes - bytes) return false;
    if (low == 8 && key < load_be64(node.p + at)) return false;
    return high != 8 || key < load_be64(node.p + at + (low == 8 ? 8 : 0));
}

/* Is this a node of that tree of integers, on that level, alive, whose fences hold the key? */
static ALWAYS_INLINE bool
node_is_int_home(Node node, TreeId tree_id, u32 level, u64 key)
{
    const NodeHead *head = node_head(node);
    u32 wanted = level | NODE_FLAG_INT << 8;
    u32 is = NODE_LOAD(head->level) | (NODE_LOAD(head->flags) & ~NODE_FLAG_ASKS) << 8;
    return LIKELY(NODE_LOAD(head->tree_id) == tree_id && is == wanted) && node_holds_int(node, key);
}

/* The child of an inner integer node that may hold the key. */
static ALWAYS_INLINE u32
node_child_int(Node node, u64 key)
{
    const NodeSlot *slots = node_slots(node);
    u32 count = node_count_clamped(node);
    /* Behind the last separator that is not above the key. */
    u32 slot = LIKELY(key != U64_MAX) ? node_find_head(slots, count, key + 1) : count;
    if (UNLIKELY(slot == 0)) return NODE_LOAD(node_head(node)->child_low);
    return NODE_LOAD(slots[slot - 1].child);
}
