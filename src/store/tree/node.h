/*
 * node.h -- one page of a tree: fences, sorted slots with 8-byte heads, a heap of bytes.
 *
 * Layout (docs/FORMAT.md has the bytes): a head of 64 bytes, the slots upwards behind it, the heap
 * downwards from the end.  A node holds the keys k with low <= k < high; the bytes that both fences
 * share at their start are shared by all its keys and left out (prefix truncation).  Of the rest of
 * a key, the first eight bytes stand in the slot as a number (the head), what follows lies in the
 * heap before the value.  A tree of integer keys has no prefixes: the head is the key.
 *
 * Each leaf slot has a writer byte: 0 settled; 1 to 254 an entry of the leaf's table of writers;
 * 255: ask the version map.  Inner slots have a child instead; child_low leads to what is below the
 * first separator.
 *
 * Two kinds of callers:
 *   - writers hold the page exclusively; everything is consistent and asserted.
 *   - optimistic readers may see bytes change under them.  For them are node_find(), node_child()
 *     and node_read_*(): every field is loaded once and clamped to the page, so they end and touch
 *     nothing outside it, whatever the bytes; the caller validates afterwards.
 */
#pragma once

#include "base/base.h"
#include "store/store.h"

#define NODE_HEAD_BYTES     64u
#define NODE_BYTES_MIN      4096u
#define NODE_BYTES_MAX      65536u
#define NODE_WRITERS_MAX    30u
#define NODE_WRITER_SETTLED 0u
#define NODE_WRITER_ASK_MAP 255u
#define NODE_SLOT_TOMBSTONE 1u
#define NODE_SLOT_LONG      2u /* The value refers to pages of its own (longval/). */
#define NODE_SLOT_PADDED    4u /* The value is shorter than its room; see node_write(). */
#define NODE_PAGE_NONE      0u
#define NODE_INFINITE       0xffffu /* As high_bytes: no upper fence. */
#define NODE_FLAG_INT       1u      /* Keys are 8 bytes; no prefix. */
#define NODE_FLAG_DEAD      2u      /* Merged away; lead on to the right. */
#define NODE_FLAG_ASKS      4u      /* Some slot may have NODE_WRITER_ASK_MAP. */
#define NODE_KEY_HEAD_BYTES 8u
#define NODE_ENTRIES_MIN    4u /* So many of the largest entries fit into any leaf. */

typedef struct NodeHead {
    u64 checksum; /* Filled in when the page is written to disk. */
    u32 page_id;
    u32 tree_id;
    u64 epoch;     /* Of the last change. */
    u32 right;     /* Right sibling, or NODE_PAGE_NONE. */
    u32 child_low; /* Inner nodes: child below the first separator. */
    u16 count;     /* Slots. */
    u16 live;      /* Leaf slots that are no tombstones. */
    u16 prefix_bytes;
    u16 low_bytes;
    u16 high_bytes; /* Or NODE_INFINITE. */
    u8 level;       /* 0: leaf. */
    u8 flags;
    u32 heap_start;   /* Lowest byte of the heap in use. */
    u32 heap_garbage; /* Bytes in it that nothing refers to. */
    u32 fence_at;     /* Low fence, then high fence, as whole keys. */
    u16 writers_at;   /* Table of writers, NODE_WRITERS_MAX ids at most; 0: none. */
    u8 writers_room;  /* Entries that it has room for. */
    u8 reserved;
} NodeHead;
STATIC_ASSERT(sizeof(NodeHead) == NODE_HEAD_BYTES);

typedef struct NodeSlot {
    u64 head;      /* First bytes of the key behind the prefix, big-endian, zero-padded. */
    u16 at;        /* In the page: the key from head on, then the value. */
    u16 key_bytes; /* Behind the prefix, head included. */
    union {
        struct {
            u16 value_bytes; /* Of the value's room; PADDED: the value is shorter. */
            u8 writer;
            u8 flags; /* NODE_SLOT_* */
        };
        u32 child;
    };
} NodeSlot;
STATIC_ASSERT(sizeof(NodeSlot) == 16);

/* A page in memory. */
typedef struct Node {
    u8 *p; /* 8-aligned. */
    u32 bytes;
} Node;

/* One field of a page that may change meanwhile, loaded once: for optimistic readers. */
#define NODE_LOAD(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static inline NodeHead *
node_head(Node node)
{
    return (NodeHead *)(void *)node.p;
}

static inline NodeSlot *
node_slots(Node node)
{
    return (NodeSlot *)(void *)(node.p + NODE_HEAD_BYTES);
}

/* ---- making ---- */

typedef struct NodeFences {
    Slice low;  /* Inclusive; empty: lower than every key. */
    Slice high; /* Exclusive; `has_high` false: none. */
    bool has_high;
} NodeFences;

/* An empty node.  The fences' bytes are copied. */
void
node_init(Node node, u32 page_id, TreeId tree_id, u8 level, bool is_int, const NodeFences *fences);
/* The fences, pointing into the node. */
NodeFences node_fences(Node node);

/* Longest key plus value that may be put into a leaf of this size, fences allowed for. */
u32 node_entry_bytes_max(u32 page_bytes);

/* ---- looking, exclusively or optimistically ---- */

/* If this is the node of that tree and level that holds `key`: of an inner node the child that may
   hold it, of a leaf 1; else 0. */
u32 node_enter(Node node, TreeId tree_id, u8 level, Slice key);
/* First slot whose key is not below `key`; *exact_out: it is the key. */
u32 node_find(Node node, Slice key, bool *exact_out);
/* Inner node: the child that may hold `key`. */
u32 node_child(Node node, Slice key);
/* Where the key lies against the fences: negative below, 0 inside, positive at or above high. */
int node_against_fences(Node node, Slice key);
/* The key of a slot, copied; returns its length (clamped to STORE_KEY_BYTES_MAX). */
u32 node_read_key(Node node, u32 slot, u8 key[STORE_KEY_BYTES_MAX]);
/* The value of a leaf slot, clamped to the page. */
Slice node_read_value(Node node, u32 slot);

/* ---- changing; exclusive.  `scratch` is a page of the same size to rebuild in. ---- */

/* Bytes that may still be added, garbage collected. */
u32 node_room(Node node);
/*
 * Would an entry of `bytes` (slot, key, value; 16 to spare) be taken?  Garbage is collected only
 * when there is enough of it: a full leaf whose rows grow would else be rebuilt for each of them,
 * so it says no, and is split.
 */
bool node_takes(Node node, u32 bytes);
/* Put a new entry at the slot that node_find() gave.  False: no room, unchanged. */
MUST_CHECK bool
node_insert(Node node, u32 slot, Slice key, Slice value, u8 writer, u8 flags, u8 *scratch);
/* Change value, writer and flags.  False: no room, unchanged. */
MUST_CHECK bool node_replace(Node node, u32 slot, Slice value, u8 writer, u8 flags, u8 *scratch);
/*
 * The same, but the slot never loses room: what was there before, and everything that was there
 * before that since the last node_trim(), can be written back without asking for more.  A tombstone
 * (`value` empty, NODE_SLOT_TOMBSTONE) keeps the bytes that it buries.  So undoing never needs
 * room.  Flags without PADDED.
 */
MUST_CHECK bool node_write(Node node, u32 slot, Slice value, u8 writer, u8 flags, u8 *scratch);
/* Give up the room that node_write() kept. */
void node_trim(Node node, u32 slot);
void node_remove(Node node, u32 slot);
/* Inner node: the child for keys from `separator` on, which was split off to the right. */
MUST_CHECK bool node_insert_child(Node node, Slice separator, u32 child, u8 *scratch);
/* Inner node: take out the separator that leads to `child`.  False: it is child_low or not there.
 */
MUST_CHECK bool node_remove_child(Node node, u32 child);

/*
 * Split off the upper part into `right`, an uninitialised page.  `at`: the slot where the entry
 * that did not fit belongs; rising keys (at == count in the rightmost node) leave `node` full.
 * The separator (the low fence of `right`) is copied out.
 */
void node_split(Node node, Node right, u32 right_page_id, u32 at, Slice key, u8 *scratch,
                u8 separator[STORE_KEY_BYTES_MAX], u32 *separator_bytes_out);
/* Take over entries, upper fence and link of the right sibling; one of the two leaves is empty.
   False: it would not fit, unchanged. */
MUST_CHECK bool node_join(Node node, Node right, u8 *scratch);
/* Inner node: the child that may hold what comes before `key`; the last child. */
u32 node_child_before(Node node, Slice key);
u32 node_child_last(Node node);

/* ---- writers ---- */

/* Index of a writer's id in the table; 0: not there. */
u8 node_writer_find(Node node, u64 id);
/* Add an id: its index, or NODE_WRITER_ASK_MAP when there is no room. */
u8 node_writer_add(Node node, u64 id, u8 *scratch);
u64 node_writer_id(Node node, u8 index);
/* The table as an array, clamped to the page; its entries may race. */
const u64 *node_writers(Node node, u32 *count_out);
/* The writer is settled: its slots get writer 0, its entry is free. */
void node_writer_settle(Node node, u8 index);
/* The same for all writers whose bit (1 << index) is set, in one pass. */
void node_writers_settle(Node node, u32 indexes);
/* Forget all writers: pages of an earlier life of the process. */
void node_writers_wipe(Node node);

/* Everything that can be checked about one page, also about bytes from the disk; NULL: it is
   sound, else a word about what is wrong. */
const char *node_verify(Node node);
