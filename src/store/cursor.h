/*
 * cursor.h -- what cursor.c, cursor_fetch.c and cursor_look.c share.
 */
#pragma once

#include "store/version/spill.h"

typedef enum CursorSide {
    CURSOR_NOWHERE, /* No position: every move finds nothing until a seek. */
    CURSOR_BEFORE,
    CURSOR_ON,
    CURSOR_AFTER
} CursorSide;

typedef enum CursorGuess {
    GUESS_NONE,
    GUESS_FORWARD,   /* Where a move forward begins. */
    GUESS_BACKWARDS, /* Where one backwards begins. */
    GUESS_ENTRY      /* The entry that the cursor is on. */
} CursorGuess;

/* What row_resolve() has said of one key, during one call. */
typedef struct CursorAsked {
    bool valid;
    u32 key_bytes;
    RowSeen seen;
    Buf value;
    u8 key[STORE_KEY_BYTES_MAX];
} CursorAsked;

/* Where a move begins: at `key`, in the leaf that `where` says. */
typedef struct CursorPlace {
    BtreeWhere where;
    bool backwards, inclusive;
    u32 next_leaf; /* A guess. */
    Slice key;     /* Perhaps in `bytes`. */
    u8 bytes[STORE_KEY_BYTES_MAX];
} CursorPlace;

/* One leaf of a look: entries first, first + step, ... while its word is `word`. */
typedef struct LookPiece {
    u64 word;
    u32 page_id;
    u32 rows;
    u32 first_row;
    i32 first;
} LookPiece;

/* Where a look ends. */
typedef struct LookStop {
    bool through; /* The last leaf was looked at to its end. */
    bool more;    /* Another leaf may follow. */
    u8 side;      /* CursorSide, of the key. */
    u32 key_bytes;
    u8 key[8];
    i32 slot; /* If not through: the first one not looked at. */
} LookStop;

/* A look: the leaves that it has, and the one that is open. */
typedef struct CursorLook {
    u32 count, rows;
    bool backwards;
    bool adds; /* The open piece is new. */
    bool last; /* The bound lies in its leaf. */
    i32 to;    /* The slots of its leaf that are wanted end before this one. */
    u64 lsn, lsn_open;
    LookStop stop; /* Behind the last piece. */
    CursorPlace next;
    PageView view;
    LookPiece open;
    LookPiece piece[STORE_LOOK_PIECES_MAX];
} CursorLook;

struct StoreCursor {
    StoreTxn *txn;
    Tree *tree;
    TreeId tree_id;
    u8 side; /* CursorSide */
    bool bound_inclusive;
    /* A guess: the leaf of the position.  While its word is `word`, `index` is a slot in it. */
    u8 guess; /* CursorGuess: what that slot is. */
    u32 leaf;
    i32 index;
    u64 word;
    Slice current; /* The value, in `value`; valid with CURSOR_ON. */
    Buf value;
    Buf bound; /* Empty: none. */
    /* The leaf that was looked at is full of tombstones, and begins here. */
    bool has_graves;
    Buf graves;
    CursorLook *look;   /* NULL until one was asked for. */
    CursorAsked *asked; /* NULL until an image in a spill was in the way. */

    /* The run that was handed out last. */
    u32 run_capacity;
    Slice *run_keys, *run_values;
    u8 *run_long; /* Is this row's value still to be read? */
    u8 **slabs;   /* Of a page and a lead each. */
    u32 slab_count, slab_room;
    u32 slabs_used;
    u8 *free_from, *free_to; /* What is left of the slab that rows are copied to. */
    u8 **longs;              /* Long values of the run. */
    u32 long_count, long_room;

    u32 key_bytes;
    u8 key[STORE_KEY_BYTES_MAX];
};

MUST_CHECK Err cursor__start(StoreCursor *cursor);
/* The place of the cursor's position.  `onto`: the entry that it is on counts. */
void cursor__place_of(const StoreCursor *cursor, bool backwards, bool onto, CursorPlace *place_out);
/* The place where a seek begins; false: nothing can be there. */
bool cursor__place_at(StoreSeek how, Slice key, CursorPlace *place_out);
/* View the leaf of a place, by the guess if that holds.  [parks] */
MUST_CHECK Err cursor__leaf_view(StoreCursor *cursor, const CursorPlace *place, bool scan,
                                 PageView *view_out);
/* First slot of a viewed leaf that a move from the place comes to; may be off either end. */
i32 cursor__first_slot(const StoreCursor *cursor, const PageView *view, Node node,
                       const CursorPlace *place);
/* The place where the neighbour of a leaf begins.  False: there is none. */
bool cursor__next_leaf(Node node, CursorPlace *place);
void cursor__place_copy(CursorPlace *to, const CursorPlace *from);
void cursor__remember(StoreCursor *cursor, u32 leaf, u64 word, CursorGuess guess, i32 index);
void cursor__stand(StoreCursor *cursor, CursorSide side, Slice key);
/* SERIALIZABLE: note what a move has covered: from `from` (NULL: the end it started at) to where
   the cursor is now, or to the end of the tree in the direction of the move. */
MUST_CHECK Err cursor__note_move(StoreCursor *cursor, const Slice *from, bool backwards,
                                 bool found);
/* Ask what the transaction sees of a key, for the next look at it in this call.  [parks] */
MUST_CHECK Err cursor__ask(StoreCursor *cursor, Slice key);
/* If that key has been asked for, its answer, with the value copied to `to`. */
bool cursor__asked(const StoreCursor *cursor, Slice key, u8 *to, RowSeen *seen_out);
static inline void
cursor__ask_reset(StoreCursor *cursor)
{
    if (UNLIKELY(cursor->asked != NULL)) cursor->asked->valid = false;
}
/* See whether a viewed leaf should be purged; once the view has held: purge it. */
void cursor__graves_keep(StoreCursor *cursor, Node node);
static ALWAYS_INLINE void
cursor__graves_note(StoreCursor *cursor, Node node)
{
    const NodeHead *head = node_head(node);
    cursor->has_graves = false;
    if (LIKELY(NODE_LOAD(head->count) < NODE_LOAD(head->live) + ROW_GRAVES_FEW)) return;
    cursor__graves_keep(cursor, node);
}
void cursor__graves_purge(StoreCursor *cursor);
/* The slots [*from_out, *to_out) of a viewed leaf, or downwards, that a read from the place wants;
 *last_out: the bound lies in it, nothing of the next leaf is wanted. */
void cursor__range_of(const StoreCursor *cursor, const CursorPlace *place, bool backwards,
                      const PageView *view, i32 *from_out, i32 *to_out, bool *last_out);
void cursor__run_free(StoreCursor *cursor);
