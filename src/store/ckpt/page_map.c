/*
 * page_map.c -- the chunks and their copies.
 */
#include "store/ckpt/page_map.h"

void
page_map_init(PageMap *map, u32 page_bytes)
{
    *map = (PageMap){.per_chunk = (page_bytes - MAP_HEAD_BYTES) / (u32)sizeof(u64)};
}

void
page_map_free(PageMap *map)
{
    for (u32 i = 0; i < map->count; i++) {
        page_map_chunk_free(map->chunks[i]);
    }
    mem_free(map->chunks);
    *map = (PageMap){0};
}

MapChunk *
page_map_chunk_new(const PageMap *map)
{
    MapChunk *chunk = (MapChunk *)mem_alloc_zeroed(sizeof(MapChunk) + map->per_chunk * sizeof(u64));
    u64 *claims = MEM_NEW_ARRAY(u64, 2 * ((map->per_chunk + 63) / 64));
    if (chunk == NULL || claims == NULL) {
        mem_free(chunk);
        mem_free(claims);
        return NULL;
    }
    chunk->claims = claims;
    return chunk;
}

void
page_map_chunk_free(MapChunk *chunk)
{
    if (chunk == NULL) return;
    mem_free(chunk->cut);
    mem_free(chunk->claims);
    mem_free(chunk);
}

void
page_map_append(PageMap *map, MapChunk *chunk)
{
    ASSERT(map->count < map->room);
    map->chunks[map->count++] = chunk;
}

u64
page_map_get(const PageMap *map, u32 page_id)
{
    if (page_id >= page_map_end(map)) return 0;
    return map->chunks[page_id / map->per_chunk]->entries[page_id % map->per_chunk];
}

const u64 *
page_map_cut_entries(const MapChunk *chunk)
{
    return chunk->cut != NULL ? chunk->cut : chunk->entries;
}

u64
page_map_get_cut(const PageMap *map, u32 page_id)
{
    if (page_id >= page_map_end(map)) return 0;
    const u64 *entries = page_map_cut_entries(map->chunks[page_id / map->per_chunk]);
    return entries[page_id % map->per_chunk];
}

void
page_map_set(PageMap *map, u32 page_id, u64 entry, bool both)
{
    MapChunk *chunk = map->chunks[page_id / map->per_chunk];
    u32 at = page_id % map->per_chunk;
    if (!map->cutting) {
        chunk->entries[at] = entry;
        chunk->changed = true;
        return;
    }
    if (!both && chunk->cut == NULL && !map->broken) {
        size_t bytes = map->per_chunk * sizeof(u64);
        chunk->cut = (u64 *)mem_alloc(bytes);
        if (chunk->cut != NULL) memcpy(chunk->cut, chunk->entries, bytes);
        if (chunk->cut == NULL) map->broken = true;
    }
    chunk->entries[at] = entry;
    if (both && chunk->cut != NULL) chunk->cut[at] = entry;
    if (both) chunk->cut_changed = true;
    if (!both || chunk->cut != NULL) chunk->changed = true;
}

void
page_map_set_cut(PageMap *map, u32 page_id, u64 entry)
{
    MapChunk *chunk = map->chunks[page_id / map->per_chunk];
    if (map->broken) return;
    ASSERT(chunk->cut != NULL);
    chunk->cut[page_id % map->per_chunk] = entry;
    chunk->cut_changed = true;
}

/* ---- what is known of pages during a checkpoint ---- */

static u32
words_of(const PageMap *map)
{
    return (map->per_chunk + 63) / 64;
}

/* The bits of claims (0) or of what is gone (1), emptied if they are of an earlier checkpoint. */
static u64 *
bits_now(const PageMap *map, MapChunk *chunk, u32 which, u32 interval)
{
    if (chunk->claims_of != interval) {
        memset(chunk->claims, 0, 2 * words_of(map) * sizeof(u64));
        chunk->claims_of = interval;
    }
    return chunk->claims + which * words_of(map);
}

static bool
bit_is_set(const PageMap *map, u32 page_id, u32 which, u32 interval)
{
    MapChunk *chunk = map->chunks[page_id / map->per_chunk];
    u32 at = page_id % map->per_chunk;
    return (bits_now(map, chunk, which, interval)[at / 64] >> (at % 64) & 1) != 0;
}

static void
bit_set(const PageMap *map, u32 page_id, u32 which, u32 interval)
{
    MapChunk *chunk = map->chunks[page_id / map->per_chunk];
    u32 at = page_id % map->per_chunk;
    bits_now(map, chunk, which, interval)[at / 64] |= (u64)1 << (at % 64);
}

bool
page_map_is_claimed(const PageMap *map, u32 page_id, u32 interval)
{
    return bit_is_set(map, page_id, 0, interval);
}

bool
page_map_claim(PageMap *map, u32 page_id, u32 interval)
{
    if (bit_is_set(map, page_id, 0, interval)) return false;
    bit_set(map, page_id, 0, interval);
    return true;
}

void
page_map_set_gone(PageMap *map, u32 page_id, u32 interval)
{
    bit_set(map, page_id, 1, interval);
}

bool
page_map_is_gone(const PageMap *map, u32 page_id, u32 interval)
{
    return bit_is_set(map, page_id, 1, interval);
}

/* ---- cuts ---- */

void
page_map_cut(PageMap *map)
{
    ASSERT(!map->cutting);
    map->cutting = true;
    map->broken = false;
    for (u32 i = 0; i < map->count; i++) {
        map->chunks[i]->cut_changed = map->chunks[i]->changed;
        map->chunks[i]->changed = false;
    }
}

void
page_map_uncut(PageMap *map, bool completed)
{
    map->cutting = false;
    for (u32 i = 0; i < map->count; i++) {
        MapChunk *chunk = map->chunks[i];
        mem_free(chunk->cut);
        chunk->cut = NULL;
        chunk->cut_disk = 0;
        if (!completed && chunk->cut_changed) chunk->changed = true;
        chunk->cut_changed = false;
    }
}
