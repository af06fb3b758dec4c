/*
 * page_map.h -- from page ids to slots: now, and as of the running checkpoint's cut.
 *
 * The whole map is in memory, 8 bytes a page, in chunks that are the map's pages on disk.  A chunk
 * is written again only when it changed.  While a checkpoint runs, a change that is not of its cut
 * first copies the chunk's entries aside: those are the cut's.
 *
 * An entry: slot + 1 in the upper 40 bits, the low 24 bits of the page's checksum (so that a page
 * that the disk lost the newest write of is noticed) in the lower; 0: no such page.
 *
 * Tasks: the caller's latch guards it all, except that page_map_chunk_new() is called without it.
 */
#pragma once

#include "base/base.h"

#define MAP_HEAD_BYTES 32u
#define MAP_TAG_BITS   24u
#define MAP_TAG        (((u64)1 << MAP_TAG_BITS) - 1)

static inline u64
map_entry(u32 slot, u64 checksum)
{
    return ((u64)slot + 1) << MAP_TAG_BITS | (checksum & MAP_TAG);
}
static inline u32
map_slot(u64 entry)
{
    return (u32)((entry >> MAP_TAG_BITS) - 1);
}

typedef struct MapChunk {
    u64 disk;     /* Where it is in the last complete checkpoint; 0: nowhere. */
    u64 cut_disk; /* Where the running one has put it; 0: not written. */
    bool changed; /* Since `disk`, but for what `cut_changed` stands for. */
    bool cut_changed;
    u32 claims_of; /* The interval that the claims belong to. */
    u64 *cut;      /* Entries as of the cut; NULL: as now. */
    u64 *claims;   /* A bit a page: the cut has its image; then a bit a page: gone since. */
    u64 entries[];
} MapChunk;

typedef struct PageMap {
    u32 per_chunk; /* Entries. */
    u32 count;     /* Chunks. */
    u32 room;
    MapChunk **chunks;
    bool cutting; /* A checkpoint runs. */
    bool broken;  /* No memory to keep its map: it must be given up. */
} PageMap;

void page_map_init(PageMap *map, u32 page_bytes);
void page_map_free(PageMap *map);
/* A chunk to be appended.  NULL: out of memory. */
MapChunk *page_map_chunk_new(const PageMap *map);
void page_map_chunk_free(MapChunk *chunk);
/* Append; `chunks` has room. */
void page_map_append(PageMap *map, MapChunk *chunk);
static inline u32
page_map_end(const PageMap *map)
{
    return map->count * map->per_chunk;
}

u64 page_map_get(const PageMap *map, u32 page_id);
/* As the cut sees it. */
u64 page_map_get_cut(const PageMap *map, u32 page_id);
/* Change the current map, and the cut's too if `both`. */
void page_map_set(PageMap *map, u32 page_id, u64 entry, bool both);
/* Change the cut's only. */
void page_map_set_cut(PageMap *map, u32 page_id, u64 entry);
/* Say that the cut of this interval has the page's image.  False: it had it already. */
bool page_map_claim(PageMap *map, u32 page_id, u32 interval);
bool page_map_is_claimed(const PageMap *map, u32 page_id, u32 interval);
/* Say that the page left its tree after the cut: an image of it concerns the cut's map only. */
void page_map_set_gone(PageMap *map, u32 page_id, u32 interval);
bool page_map_is_gone(const PageMap *map, u32 page_id, u32 interval);

void page_map_cut(PageMap *map);
/* The checkpoint is over; its chunks' places are the caller's to take from cut_disk first. */
void page_map_uncut(PageMap *map, bool completed);
/* The entries of a chunk as of the cut. */
const u64 *page_map_cut_entries(const MapChunk *chunk);
