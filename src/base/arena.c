/*
 * arena.c -- allocations that die together.
 *
 * Chunks form a chain, newest first, and double in size up to a bound.  arena_reset keeps the
 * largest chunk, so a statement that runs again allocates nothing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/asserts.h"
#include "base/mem.h"

struct ArenaChunk {
    ArenaChunk *older;
    size_t bytes; /* Usable, after the header. */
};

#define CHUNK_HEAD_BYTES ALIGN_UP(sizeof(ArenaChunk), 16)
#define CHUNK_BYTES_MIN  ((size_t)2048 - CHUNK_HEAD_BYTES)
#define CHUNK_BYTES_MAX  ((size_t)65536 - CHUNK_HEAD_BYTES)

static u8 *
chunk_data(ArenaChunk *chunk)
{
    return (u8 *)chunk + CHUNK_HEAD_BYTES;
}

void
arena_init(Arena *arena, MemAccount *account)
{
    *arena = (Arena){.account = account};
}

void
arena_init_pooled(Arena *arena, MemAccount *account, ArenaPool *pool)
{
    *arena = (Arena){.account = account, .pool = pool};
}

/* ---- pools ---- */

#define POOL_BYTES      ((size_t)4096 - CHUNK_HEAD_BYTES) /* Of a pooled arena's first chunk. */
#define POOL_CHUNKS_MAX 12u

static bool
pool_put(ArenaPool *pool, ArenaChunk *chunk)
{
#ifdef WEFT_CHECK
    (void)pool, (void)chunk;
    return false;
#else
    if (pool == NULL || chunk->bytes != POOL_BYTES || pool->count == POOL_CHUNKS_MAX) return false;
    chunk->older = pool->chunk;
    pool->chunk = chunk;
    pool->count++;
    return true;
#endif
}

static ArenaChunk *
pool_get(ArenaPool *pool, size_t bytes)
{
    if (pool == NULL || pool->chunk == NULL || bytes != POOL_BYTES) return NULL;
    ArenaChunk *chunk = pool->chunk;
    pool->chunk = chunk->older;
    pool->count--;
    return chunk;
}

void
arena_pool_free(ArenaPool *pool)
{
    while (pool->chunk != NULL) {
        ArenaChunk *older = pool->chunk->older;
        mem_free(pool->chunk);
        pool->chunk = older;
    }
    pool->count = 0;
}

/* ---- chunks ---- */

static void
chunk_free(Arena *arena, ArenaChunk *chunk)
{
    arena->total_bytes -= chunk->bytes;
    if (arena->account != NULL) {
        mem_account_release(arena->account, chunk->bytes + CHUNK_HEAD_BYTES);
    }
    if (!pool_put(arena->pool, chunk)) mem_free(chunk);
}

void
arena__free(Arena *arena)
{
    while (arena->chunk != NULL) {
        ArenaChunk *older = arena->chunk->older;
        chunk_free(arena, arena->chunk);
        arena->chunk = older;
    }
    arena->next = arena->end = NULL;
}

void
arena_disown(Arena *arena)
{
    for (ArenaChunk *chunk = arena->chunk; chunk != NULL && arena->account != NULL;
         chunk = chunk->older)
        mem_account_release(arena->account, chunk->bytes + CHUNK_HEAD_BYTES);
    arena->account = NULL;
    arena->pool = NULL;
}

static void
use_chunk(Arena *arena, ArenaChunk *chunk)
{
    arena->chunk = chunk;
    arena->next = chunk_data(chunk);
    arena->end = arena->next + chunk->bytes;
}

void
arena__reset(Arena *arena)
{
    ArenaChunk *largest = NULL;
    for (ArenaChunk *chunk = arena->chunk; chunk != NULL; chunk = chunk->older) {
        if (largest == NULL || chunk->bytes > largest->bytes) largest = chunk;
    }
    if (largest == NULL) return;
    for (ArenaChunk *chunk = arena->chunk; chunk != NULL;) {
        ArenaChunk *older = chunk->older;
        if (chunk != largest) chunk_free(arena, chunk);
        chunk = older;
    }
    largest->older = NULL;
    use_chunk(arena, largest);
}

static bool
grow(Arena *arena, size_t need)
{
    size_t bytes = arena->pool != NULL ? POOL_BYTES : CHUNK_BYTES_MIN;
    if (arena->chunk != NULL) bytes = arena->chunk->bytes * 2;
    if (bytes > CHUNK_BYTES_MAX) bytes = CHUNK_BYTES_MAX;
    if (bytes < need) bytes = need;
    size_t charged = bytes + CHUNK_HEAD_BYTES;
    if (arena->account != NULL && mem_account_charge(arena->account, charged) != OK) return false;
    ArenaChunk *chunk = pool_get(arena->pool, bytes);
    if (chunk == NULL) chunk = mem_alloc(charged); /* Aligned to 16. */
    if (chunk == NULL) {
        if (arena->account != NULL) mem_account_release(arena->account, charged);
        return false;
    }
    *chunk = (ArenaChunk){.older = arena->chunk, .bytes = bytes};
    arena->total_bytes += bytes;
    use_chunk(arena, chunk);
    return true;
}

void *
arena__alloc_slow(Arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4 || !grow(arena, bytes + 16)) return NULL;
    return arena_alloc(arena, bytes);
}

void *
arena_bytes(Arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) return NULL;
    if (UNLIKELY(arena->next == NULL || (size_t)(arena->end - arena->next) < bytes)) {
        if (!grow(arena, bytes)) return NULL;
    }
    u8 *at = arena->next;
    arena->next += bytes;
    return at;
}

char *
arena_strndup(Arena *arena, const void *text, size_t bytes)
{
    char *copy = arena_bytes(arena, bytes + 1);
    if (copy == NULL) return NULL;
    if (bytes != 0) memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

char *
arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) return NULL;
    char *text = arena_bytes(arena, (size_t)length + 1);
    if (text == NULL) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

ArenaMark
arena_mark(const Arena *arena)
{
    return (ArenaMark){.chunk = arena->chunk, .next = arena->next};
}

void
arena_rewind(Arena *arena, ArenaMark mark)
{
    if (mark.chunk == NULL) {
        arena_reset(arena);
        return;
    }
    while (arena->chunk != mark.chunk) {
        ASSERT(arena->chunk != NULL);
        ArenaChunk *older = arena->chunk->older;
        chunk_free(arena, arena->chunk);
        arena->chunk = older;
    }
    arena->next = mark.next;
    arena->end = chunk_data(mark.chunk) + mark.chunk->bytes;
}
