/*
 * space.h -- which slots of the data file are in use, and when they may be used again.
 *
 * A slot is a place for one page in the file.  It may be overwritten only when neither the last
 * complete checkpoint, nor the one being written, nor the current page map names it.  Time is
 * counted in intervals between cuts.  A slot is born in the interval in which it first entered a
 * map; when it leaves the current map, it is free at once if no cut came since its birth, else it
 * waits for the first complete checkpoint whose cut comes after it left.  A backup pins all that is
 * in use when it begins: a pinned slot may become free, but is not given out before the pin goes.
 *
 * Tasks: the caller's latch guards it all.
 */
#pragma once

#include "base/base.h"

#define SLOT_NONE U32_MAX

typedef struct Slot {
    u32 next; /* In one of the lists. */
    u32 born; /* Interval. */
} Slot;

/* Slots that were in use at one instant: not given out while the pin lasts. */
typedef struct SpacePin {
    struct SpacePin *next;
    u64 *used; /* A bit each. */
    u32 words;
} SpacePin;

typedef struct Space {
    u64 *used; /* A bit each. */
    Slot *slots;
    u32 room;     /* Entries of both arrays. */
    u32 end;      /* Slots from here on were never used. */
    u32 hint;     /* No slot below is free. */
    u32 taken;    /* Slots in use. */
    u32 interval; /* Now; cuts have ended all earlier ones. */
    u32 leaving;  /* Wait for the checkpoint that runs; list. */
    u32 left;     /* Wait for the one after; list. */
    u32 cut_only; /* Named by the running checkpoint's map only; list. */
    SpacePin *pins;
} Space;

void space_init(Space *space);
void space_free(Space *space);
/* Make room for so many slots; swaps in arrays that were allocated by space_grown(). */
typedef struct SpaceArrays {
    u64 *used;
    Slot *slots;
    u32 room;
} SpaceArrays;
/* Without the latch.  ERR_NOMEM, ERR_FULL when there can be no more. */
MUST_CHECK Err space_grown(u32 room_wanted, SpaceArrays *arrays_out);
/* With it: the old arrays come back in *arrays, to be freed without the latch. */
void space_adopt(Space *space, SpaceArrays *arrays);
void space_arrays_free(SpaceArrays *arrays);

/* The lowest free slot.  SLOT_NONE: there must be more room first. */
u32 space_take(Space *space);
/* While loading: the slot is in use.  False: it is already, or beyond the room. */
MUST_CHECK bool space_claim(Space *space, u32 slot);
/* The slot was never in a map, or in none that counts. */
void space_give(Space *space, u32 slot);
/* The slot has left the current map, and the running checkpoint's too if `both`. */
void space_retire(Space *space, u32 slot, bool both);
/* The slot is named by the running checkpoint's map only. */
void space_cut_only(Space *space, u32 slot);
/* The slot enters a map.  `at_cut`: that of the running checkpoint (too). */
void space_born(Space *space, u32 slot, bool at_cut);

void space_cut(Space *space);
void space_completed(Space *space);
void space_abandoned(Space *space);
/* Pin what is in use now; `words` of the pin has room for room / 64, or false. */
MUST_CHECK bool space_pin(Space *space, SpacePin *pin);
void space_unpin(Space *space, SpacePin *pin);
/* End of the last slot in use, or pinned. */
u32 space_used_end(const Space *space);
