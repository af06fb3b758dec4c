/*
 * mem.c -- the allocation function, its fault switch, accounts and growable buffers.
 *
 * Blocks come from malloc with a 16-byte header in front: alignment offset and size, so that one
 * mem_free serves aligned blocks too.
 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/asserts.h"

typedef struct BlockHead {
    u64 bytes;
    u32 offset; /* From the malloc'd address to the user's. */
    u32 magic;
} BlockHead;

STATIC_ASSERT(sizeof(BlockHead) == 16);
#define BLOCK_MAGIC        0x5745464du /* From malloc. */
#define BLOCK_MAGIC_SOURCE 0x5745464eu /* From the source set. */

static const MemSource *mem_source;

static const MemSource *mem_source_last; /* Frees what it gave, also after it was unset. */

void
mem_set_source(const MemSource *source)
{
    mem_source = source;
    if (source != NULL) mem_source_last = source;
}

static _Atomic i64 fail_countdown; /* 0: disarmed; n: the nth allocation fails. */
static _Atomic bool fail_onwards;
static _Atomic bool fail_fired;

#ifdef WEFT_CHECK
static _Atomic u64 live_blocks;
#define LIVE_ADD(n) atomic_fetch_add_explicit(&live_blocks, (u64)(n), memory_order_relaxed)
#else
#define LIVE_ADD(n) ((void)0)
#endif

void
mem_fail_arm(u64 nth, bool onwards)
{
    fail_fired = false;
    fail_onwards = onwards;
    fail_countdown = (i64)nth;
}

bool
mem_fail_fired(void)
{
    return fail_fired;
}

u64
mem_live_blocks(void)
{
#ifdef WEFT_CHECK
    return live_blocks;
#else
    return 0;
#endif
}

void
mem_note_dropped(u64 blocks)
{
    (void)blocks;
    LIVE_ADD(-blocks);
}

static bool
fails_now(void)
{
    if (LIKELY(atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0)) return false;
    i64 left = atomic_fetch_sub(&fail_countdown, 1);
    if (left > 1) return false;
    if (left < 1) {
        /* Disarmed meanwhile, or past the point in a run that fails onwards. */
        fail_countdown = fail_onwards && fail_fired ? 1 : 0;
        return fail_onwards && fail_fired;
    }
    fail_fired = true;
    fail_countdown = fail_onwards ? 1 : 0;
    return true;
}

static BlockHead *
head_of(const void *block)
{
    BlockHead *head = (BlockHead *)((u8 *)(uintptr_t)block - sizeof(BlockHead));
    ASSERT(head->magic == BLOCK_MAGIC || head->magic == BLOCK_MAGIC_SOURCE);
    return head;
}

static void *
block_make(u8 *raw, size_t offset, size_t bytes)
{
    BlockHead *head = (BlockHead *)(void *)(raw + offset - sizeof(BlockHead));
    *head = (BlockHead){.bytes = bytes, .offset = (u32)offset, .magic = BLOCK_MAGIC};
    LIVE_ADD(1);
    return raw + offset;
}

/* A block of the source; aligned, since malloc'd memory is all it promises. */
static NOINLINE void *
source_get(size_t alignment, size_t bytes)
{
    u8 *raw = mem_source->get(bytes + alignment + sizeof(BlockHead));
    if (raw == NULL) return NULL;
    size_t offset = ALIGN_UP((uintptr_t)raw + sizeof(BlockHead), alignment) - (uintptr_t)raw;
    u8 *block = block_make(raw, offset, bytes);
    head_of(block)->magic = BLOCK_MAGIC_SOURCE;
    return block;
}

void *
mem_alloc(size_t bytes)
{
    if (fails_now() || bytes > SIZE_MAX / 2) return NULL;
    if (UNLIKELY(mem_source != NULL)) return source_get(sizeof(BlockHead), bytes);
    u8 *raw = malloc(bytes + sizeof(BlockHead));
    return raw == NULL ? NULL : block_make(raw, sizeof(BlockHead), bytes);
}

void *
mem_alloc_zeroed(size_t bytes)
{
    if (fails_now() || bytes > SIZE_MAX / 2) return NULL;
    if (UNLIKELY(mem_source != NULL)) {
        void *block = source_get(sizeof(BlockHead), bytes);
        return block == NULL ? NULL : memset(block, 0, bytes);
    }
    u8 *raw = calloc(1, bytes + sizeof(BlockHead));
    return raw == NULL ? NULL : block_make(raw, sizeof(BlockHead), bytes);
}

void *
mem_alloc_aligned(size_t alignment, size_t bytes)
{
    ASSERT((alignment & (alignment - 1)) == 0 && alignment <= (1u << 30));
    if (alignment < sizeof(BlockHead)) alignment = sizeof(BlockHead);
    if (fails_now() || bytes > SIZE_MAX / 2) return NULL;
    if (UNLIKELY(mem_source != NULL)) return source_get(alignment, bytes);
    u8 *raw = aligned_alloc(alignment, ALIGN_UP(bytes, alignment) + alignment);
    return raw == NULL ? NULL : block_make(raw, alignment, bytes);
}

size_t
mem_block_bytes(const void *block)
{
    return head_of(block)->bytes;
}

void *
mem_realloc(void *block, size_t bytes)
{
    if (block == NULL) return mem_alloc(bytes);
    if (fails_now() || bytes > SIZE_MAX / 2) return NULL;
    BlockHead *head = head_of(block);
    if (UNLIKELY(mem_source != NULL || head->magic != BLOCK_MAGIC)) {
        size_t keep = MIN_OF(head->bytes, bytes);
        void *larger = mem_source != NULL ? source_get(sizeof(BlockHead), bytes) : mem_alloc(bytes);
        if (larger == NULL) return NULL;
        memcpy(larger, block, keep);
        mem_free(block);
        return larger;
    }
    ASSERT(head->offset == sizeof(BlockHead)); /* Aligned blocks do not grow. */
    u8 *raw = realloc(head, bytes + sizeof(BlockHead));
    if (raw == NULL) return NULL;
    ((BlockHead *)(void *)raw)->bytes = bytes;
    return raw + sizeof(BlockHead);
}

void
mem_free(void *block)
{
    if (block == NULL) return;
    BlockHead *head = head_of(block);
    bool is_ours = head->magic == BLOCK_MAGIC;
    u8 *raw = (u8 *)block - head->offset;
    head->magic = 0;
    LIVE_ADD(-1);
    if (LIKELY(is_ours))
        free(raw);
    else
        mem_source_last->put(raw);
}

char *
mem_strndup(const void *text, size_t bytes)
{
    char *copy = mem_alloc(bytes + 1);
    if (copy == NULL) return NULL;
    if (bytes != 0) memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

char *
mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}

/* The account that refused may be gone when somebody asks. */
static void
note_refusal(MemAccount *account, const MemAccount *refuser)
{
    for (MemAccount *a = account; a != NULL; a = a->parent) {
        atomic_store_explicit(&a->refused_cap_bytes, refuser->cap_bytes, memory_order_relaxed);
        atomic_store_explicit(&a->refused_by, refuser->name, memory_order_relaxed);
    }
}

static void
note_peak(MemAccount *account, u64 used)
{
    u64 peak = atomic_load_explicit(&account->peak_bytes, memory_order_relaxed);
    while (used > peak &&
           !atomic_compare_exchange_weak_explicit(&account->peak_bytes, &peak, used,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Charge all or none; whose cap would be passed, and by how much.  `spare`: of three quarters. */
static ALWAYS_INLINE MemAccount *
charge_try(MemAccount *account, u64 bytes, bool spare, u64 *over_out)
{
    for (MemAccount *a = account; a != NULL; a = a->parent) {
        u64 used = atomic_fetch_add_explicit(&a->used_bytes, bytes, memory_order_relaxed) + bytes;
        u64 cap = atomic_load_explicit(&a->cap_bytes, memory_order_relaxed);
        if (spare) cap -= cap / 4;
        if (UNLIKELY(cap != 0 && used > cap)) {
            for (MemAccount *undo = account;; undo = undo->parent) {
                atomic_fetch_sub_explicit(&undo->used_bytes, bytes, memory_order_relaxed);
                if (undo == a) break;
            }
            *over_out = used - cap;
            return a;
        }
        note_peak(a, used);
    }
    return NULL;
}

#define RECLAIMS_MAX 16u /* Others may take what was given back for us. */

static NOINLINE Err
charge_after_reclaim(MemAccount *account, u64 bytes, MemAccount *refuser, u64 over)
{
    for (u32 i = 0; i < RECLAIMS_MAX; i++) {
        u64 cap = atomic_load_explicit(&refuser->cap_bytes, memory_order_relaxed);
        if (refuser->reclaim == NULL || bytes > cap) break;
        if (refuser->reclaim(refuser, over) == 0) break;
        refuser = charge_try(account, bytes, false, &over);
        if (refuser == NULL) return OK;
    }
    note_refusal(account, refuser);
    return ERR_NOMEM;
}

Err
mem_account_charge(MemAccount *account, u64 bytes)
{
    u64 over;
    MemAccount *refuser = charge_try(account, bytes, false, &over);
    if (LIKELY(refuser == NULL)) return OK;
    return charge_after_reclaim(account, bytes, refuser, over);
}

Err
mem_account_charge_spare(MemAccount *account, u64 bytes)
{
    u64 over;
    return charge_try(account, bytes, true, &over) == NULL ? OK : ERR_NOMEM;
}

void
mem_account_add(MemAccount *account, u64 bytes)
{
    for (MemAccount *a = account; a != NULL; a = a->parent)
        note_peak(a,
                  atomic_fetch_add_explicit(&a->used_bytes, bytes, memory_order_relaxed) + bytes);
}

const char *
mem_account_refused(MemAccount *account, u64 *cap_out)
{
    *cap_out = atomic_load_explicit(&account->refused_cap_bytes, memory_order_relaxed);
    /* Asked before every statement, and hardly ever set. */
    if (atomic_load_explicit(&account->refused_by, memory_order_relaxed) == NULL) return NULL;
    return atomic_exchange_explicit(&account->refused_by, NULL, memory_order_relaxed);
}

void
mem_account_release(MemAccount *account, u64 bytes)
{
    for (MemAccount *a = account; a != NULL; a = a->parent) {
        u64 before = atomic_fetch_sub_explicit(&a->used_bytes, bytes, memory_order_relaxed);
        ASSERT(before >= bytes);
    }
}

Err
buf_reserve(Buf *buf, size_t extra_bytes)
{
    if (LIKELY(buf->capacity - buf->bytes >= extra_bytes)) return OK;
    if (extra_bytes > SIZE_MAX / 4) return ERR_NOMEM;
    size_t need = buf->bytes + extra_bytes;
    size_t capacity = buf->capacity + buf->capacity / 2;
    if (capacity < need) capacity = need;
    if (capacity < 64) capacity = 64;
    u8 *p = mem_realloc(buf->p, capacity);
    if (p == NULL) return ERR_NOMEM;
    buf->p = p;
    buf->capacity = capacity;
    return OK;
}

Err
buf_append(Buf *buf, const void *bytes, size_t count)
{
    if (count == 0) return OK;
    Err err = buf_reserve(buf, count);
    if (err != OK) return err;
    memcpy(buf->p + buf->bytes, bytes, count);
    buf->bytes += count;
    return OK;
}

Err
buf_append_byte(Buf *buf, u8 byte)
{
    Err err = buf_reserve(buf, 1);
    if (err != OK) return err;
    buf->p[buf->bytes++] = byte;
    return OK;
}

Err
buf_append_text(Buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

Err
buf_vprintf(Buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    Err err = length < 0 ? ERR_INTERNAL : buf_reserve(buf, (size_t)length + 1);
    if (err == OK) {
        vsnprintf((char *)buf->p + buf->bytes, (size_t)length + 1, format, again);
        buf->bytes += (size_t)length;
    }
    va_end(again);
    return err;
}

Err
buf_printf(Buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Err err = buf_vprintf(buf, format, args);
    va_end(args);
    return err;
}

void
buf_clear(Buf *buf)
{
    buf->bytes = 0;
}

void
buf_free(Buf *buf)
{
    mem_free(buf->p);
    *buf = (Buf){0};
}
