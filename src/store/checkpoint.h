/*
 * checkpoint.h -- the description of a checkpoint: a kind byte and a struct for each thing.
 * docs/FORMAT.md has every byte.
 */
#pragma once

#include "store/store.h"

#define DESCRIBED_VERSION 2u /* 1: without spills. */
#define DESCRIBED_END     0u
#define DESCRIBED_TREE    1u
#define DESCRIBED_UNDO    2u /* Then the key, then the image.  Of one transaction newest first. */
#define DESCRIBED_LONG    3u /* A LongRef that only old versions name. */
#define DESCRIBED_SPILL   4u /* Undo that lies in pages; after the transaction's other undo. */
#define DESCRIBED_SPARED  5u /* Then a key, which the next spill is not to undo. */

typedef struct DescribedStart {
    u32 version;
    u32 long_serial; /* First not used. */
} DescribedStart;

typedef struct DescribedTree {
    TreeId id;
    u32 root; /* Page id. */
    u8 kind;  /* StoreTreeKind */
    u8 is_dropped;
    u8 reserved[6];
    u64 slots; /* About. */
    u64 number;
} DescribedTree;
STATIC_ASSERT(sizeof(DescribedTree) == 32);

typedef struct DescribedUndo {
    TreeId tree;
    u32 image_bytes;
    u16 key_bytes;
    u8 kind;       /* UndoKind */
    u8 slot_flags; /* Of the image. */
    u8 reserved[4];
} DescribedUndo;
STATIC_ASSERT(sizeof(DescribedUndo) == 16);

typedef struct DescribedSpill {
    TreeId id;
    u32 root;   /* Page id. */
    u64 pieces; /* To be undone; 0: the transaction had ended. */
} DescribedSpill;
STATIC_ASSERT(sizeof(DescribedSpill) == 16);

typedef struct DescribedSpared {
    TreeId tree;
    u32 key_bytes;
} DescribedSpared;
STATIC_ASSERT(sizeof(DescribedSpared) == 8);
