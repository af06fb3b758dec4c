/*
 * mem.h -- the one allocation function of the engine, accounts, arenas and growable buffers.
 *
 * Every allocation may fail and the caller handles it.  Frees carry sizes where the caller knows
 * them; mem_alloc'd blocks remember their size, so mem_free takes only the pointer.  Tests make the
 * nth allocation fail with mem_fail_arm().
 */
#pragma once

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/types.h"

/* Zeroed / not zeroed.  NULL when memory is short. */
void *mem_alloc(size_t bytes);
void *mem_alloc_zeroed(size_t bytes);
/* NULL on failure, and then the old block stays valid. */
void *mem_realloc(void *block, size_t bytes);
/* NULL is allowed. */
void mem_free(void *block);
/* Bytes asked for when the block was allocated. */
size_t mem_block_bytes(const void *block);
void *mem_alloc_aligned(size_t alignment, size_t bytes); /* Freed by mem_free too. */
char *mem_strdup(const char *text);
char *mem_strndup(const void *text, size_t bytes);

#define MEM_NEW(T)          ((T *)mem_alloc_zeroed(sizeof(T)))
#define MEM_NEW_ARRAY(T, n) ((T *)mem_alloc_zeroed(sizeof(T) * (size_t)(n)))

/* Fault injection: the nth allocation from now fails (1 = the next); with `onwards` all later ones
   too.  0 disarms.  Returns through mem_fail_fired() whether it happened.  Thread-safe. */
void mem_fail_arm(u64 nth, bool onwards);
bool mem_fail_fired(void);
/*
 * Where blocks come from; NULL: malloc.  The simulator sets its own, so that it can drop the heap
 * of a process that crashed and fill new blocks with what it likes.  Blocks of one source may be
 * freed while another is set.  `get` returns 16-aligned memory.  mem_note_dropped() tells the leak
 * counter of blocks that a source dropped by itself.
 */
typedef struct MemSource {
    void *(*get)(size_t bytes);
    void (*put)(void *raw);
} MemSource;
void mem_set_source(const MemSource *source);
void mem_note_dropped(u64 blocks);

/* Live blocks handed out and not freed; for leak tests. */
u64 mem_live_blocks(void);

/*
 * An account: who may use how much.  Accounts form a chain statement -> session -> database ->
 * process; a charge counts in each of them and fails if one would pass its cap.  Lock-free.
 */
typedef struct MemAccount {
    struct MemAccount *parent; /* NULL at the root. */
    const char *name;
    _Atomic u64 used_bytes;
    _Atomic u64 peak_bytes;
    _Atomic u64 cap_bytes;            /* 0: no cap. */
    _Atomic(const char *) refused_by; /* See mem_account_refused(). */
    _Atomic u64 refused_cap_bytes;
    /* Asked to give back at least `bytes` of what is only kept for speed before a charge fails for
       this account's cap; returns what it gave.  Never parks.  NULL: nothing gives way. */
    u64 (*reclaim)(struct MemAccount *account, u64 bytes);
} MemAccount;

/* Set the cap of one account; 0: none. */
static inline void
mem_account_cap(MemAccount *account, u64 cap_bytes)
{
    atomic_store_explicit(&account->cap_bytes, cap_bytes, memory_order_relaxed);
}
MUST_CHECK Err mem_account_charge(MemAccount *account, u64 bytes);
/* For what is only kept for speed: asks nobody to give way, and leaves the last quarter of each cap
   to those who cannot do without.  ERR_NOMEM, and that is no refusal that anybody hears of. */
MUST_CHECK Err mem_account_charge_spare(MemAccount *account, u64 bytes);
/* Count what is in use already, whatever the caps say: later charges meet them. */
void mem_account_add(MemAccount *account, u64 bytes);
void mem_account_release(MemAccount *account, u64 bytes);
/* Whose cap the last charge in this account or below it that failed met: the name of that account
   and its cap.  NULL: none failed since the last question. */
const char *mem_account_refused(MemAccount *account, u64 *cap_out);

/*
 * Arena: allocations that die together.  Chunks come from mem_alloc and are charged to `account`
 * (may be NULL).  Not thread-safe.  All returned memory is zeroed and aligned to 16 bytes
 * (arena_bytes: not zeroed, aligned to 1).
 */
typedef struct ArenaChunk ArenaChunk;
/* Chunks that arenas of one owner hand on to each other: what is made and freed again and again
   then allocates nothing.  Zero-initialised is empty; the arenas must be freed first.  Not
   thread-safe.  Check builds keep nothing, so that every use after free is seen. */
typedef struct ArenaPool {
    ArenaChunk *chunk;
    u32 count;
} ArenaPool;
typedef struct Arena {
    ArenaChunk *chunk; /* Current; the chain leads to older ones. */
    u8 *next, *end;
    MemAccount *account;
    ArenaPool *pool; /* NULL: chunks come from mem_alloc. */
    size_t total_bytes;
} Arena;

typedef struct ArenaMark {
    ArenaChunk *chunk;
    u8 *next;
} ArenaMark;

void arena_init(Arena *arena, MemAccount *account);
/* With chunks of the pool (may be NULL), which outlives the arena. */
void arena_init_pooled(Arena *arena, MemAccount *account, ArenaPool *pool);
void arena_pool_free(ArenaPool *pool);
/* Frees everything; the arena may be used again. */
void arena__free(Arena *arena);
static inline void
arena_free(Arena *arena)
{
    if (arena->chunk != NULL) arena__free(arena);
}
/* From now on its memory is charged to no account and goes back to no pool. */
void arena_disown(Arena *arena);
/* Forgets everything but keeps the largest chunk, so that a rerun allocates nothing. */
void arena__reset(Arena *arena);
static inline void
arena_reset(Arena *arena)
{
    if (arena->chunk != NULL) arena__reset(arena);
}
/* NULL when memory is short or the account's cap is reached.  Inline, so that the zeroing of a
   known size is a few stores. */
void *arena__alloc_slow(Arena *arena, size_t bytes);
static inline void *
arena_alloc(Arena *arena, size_t bytes)
{
    size_t pad = (size_t)(0 - (uintptr_t)arena->next) & 15u;
    size_t room = (size_t)(arena->end - arena->next);
    if (UNLIKELY(arena->next == NULL || pad > room || room - pad < bytes)) {
        return arena__alloc_slow(arena, bytes);
    }
    u8 *at = arena->next + pad;
    arena->next = at + bytes;
    memset(at, 0, bytes);
    return at;
}
void *arena_bytes(Arena *arena, size_t bytes);
char *arena_strndup(Arena *arena, const void *text, size_t bytes); /* NUL-terminated copy. */
char *arena_printf(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
/* Bytes handed out, and what was lost at the ends of chunks. */
static inline size_t
arena_used(const Arena *arena)
{
    return arena->total_bytes - (size_t)(arena->end - arena->next);
}
ArenaMark arena_mark(const Arena *arena);
/* Give back all that was allocated since `mark`. */
void arena_rewind(Arena *arena, ArenaMark mark);

#define ARENA_NEW(arena, T)          ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_NEW_ARRAY(arena, T, n) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(n)))

/*
 * Buf: a growable run of bytes on mem_alloc.  Zero-initialised is empty.  An append that fails
 * leaves the contents unchanged and returns ERR_NOMEM.
 */
typedef struct Buf {
    u8 *p;
    size_t bytes, capacity;
} Buf;

MUST_CHECK Err buf_reserve(Buf *buf, size_t extra_bytes);
MUST_CHECK Err buf_append(Buf *buf, const void *bytes, size_t count);
MUST_CHECK Err buf_append_byte(Buf *buf, u8 byte);
MUST_CHECK Err buf_append_text(Buf *buf, const char *text);
MUST_CHECK Err buf_printf(Buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
MUST_CHECK Err buf_vprintf(Buf *buf, const char *format, va_list args) PRINTF_LIKE(2, 0);
void buf_clear(Buf *buf); /* Keeps the memory. */
void buf_free(Buf *buf);  /* NULL members afterwards. */
static inline Slice
buf_slice(const Buf *buf)
{
    return (Slice){buf->p, buf->bytes};
}
