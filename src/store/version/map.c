/*
 * map.c -- a striped hash map of chains.
 *
 * Each stripe has its own latch and buckets, which double when there are more chains than buckets;
 * growing is optional (a full map is only slower), so nothing that undoes needs memory.
 */
#include "store/version/map.h"

#include "store/store_private.h"

#define BUCKETS_FIRST 8u
#define CHARGE_BYTES  ((u64)16 << 10) /* Of a stripe, at a time. */

void
version_map_init(VersionMap *map, MemAccount *account)
{
    map->account = account;
    for (u32 i = 0; i < VERSION_STRIPES; i++) {
        rt_latch_init(&map->stripes[i].latch, STORE_RANK_VERSIONS);
    }
}

static VersionStripe *
stripe_of(const VersionMap *map, u64 hash)
{
    return (VersionStripe *)(uintptr_t)&map->stripes[hash % VERSION_STRIPES];
}

static Before **
bucket_of(const VersionStripe *stripe, u64 hash)
{
    return &stripe->bucket[hash / VERSION_STRIPES & (stripe->buckets - 1)];
}

static u64
cost_of(const Before *before)
{
    return sizeof(Before) + 16 + before->key_bytes + (u64)before->value_bytes;
}

/* Stripe latched: the account follows in steps, and a cap that is met stops who writes next. */
static NOINLINE void
stripe_charge(VersionMap *map, VersionStripe *stripe, u64 bytes)
{
    if (map->account == NULL) return;
    u64 wanted = ALIGN_UP(bytes, CHARGE_BYTES);
    if (wanted < stripe->charged) {
        mem_account_release(map->account, stripe->charged - wanted);
    } else if (pool_charge_reserving(map->account, wanted - stripe->charged) != OK) {
        REACHED("version: the account is full");
        mem_account_add(map->account, wanted - stripe->charged);
        rt_store_release(&map->started, 0);
    }
    stripe->charged = wanted;
}

/* Stripe latched. */
static void
stripe_count(VersionMap *map, VersionStripe *stripe, u64 befores, u64 change)
{
    u64 bytes = rt_load_relaxed(&stripe->bytes) + change;
    rt_store_relaxed(&stripe->befores, rt_load_relaxed(&stripe->befores) + befores);
    rt_store_relaxed(&stripe->bytes, bytes);
    /* Not at each step to and fro. */
    if (UNLIKELY(bytes > stripe->charged || bytes + 2 * CHARGE_BYTES <= stripe->charged))
        stripe_charge(map, stripe, bytes);
}

void
version_map_count(const VersionMap *map, u64 *befores_out, u64 *bytes_out)
{
    *befores_out = *bytes_out = 0;
    for (u32 i = 0; i < VERSION_STRIPES; i++) {
        *befores_out += rt_load_relaxed(&map->stripes[i].befores);
        *bytes_out += rt_load_relaxed(&map->stripes[i].bytes);
    }
}

void
version_map_free(VersionMap *map)
{
    for (u32 i = 0; i < VERSION_STRIPES; i++) {
        VersionStripe *stripe = &map->stripes[i];
        for (u32 k = 0; k < stripe->buckets; k++) {
            for (Before *head = stripe->bucket[k]; head != NULL;) {
                Before *next = head->next_bucket;
                while (head != NULL) {
                    Before *older = head->older;
                    before_free(head);
                    head = older;
                }
                head = next;
            }
        }
        mem_free(stripe->bucket);
        stripe->bucket = NULL;
        stripe->buckets = 0;
        if (map->account != NULL) mem_account_release(map->account, stripe->charged);
        stripe->charged = 0;
    }
}

void
version_lock(VersionMap *map, u64 hash)
{
    rt_latch_acquire(&stripe_of(map, hash)->latch);
}

void
version_unlock(VersionMap *map, u64 hash)
{
    rt_latch_release(&stripe_of(map, hash)->latch);
}

static void
rehash(VersionStripe *stripe, Before **bucket, u32 buckets)
{
    Before **old = stripe->bucket;
    u32 old_buckets = stripe->buckets;
    stripe->bucket = bucket;
    stripe->buckets = buckets;
    for (u32 i = 0; i < old_buckets; i++) {
        for (Before *head = old[i]; head != NULL;) {
            Before *next = head->next_bucket;
            Before **to = bucket_of(stripe, head->hash);
            head->next_bucket = *to;
            *to = head;
            head = next;
        }
    }
}

Err
version_map_start(VersionMap *map)
{
    Err err = OK;
    rt_mutex_lock(&map->start_mutex);
    for (u32 i = 0; i < VERSION_STRIPES && err == OK; i++) {
        VersionStripe *stripe = &map->stripes[i];
        if (stripe->bucket != NULL) continue;
        Before **bucket = MEM_NEW_ARRAY(Before *, BUCKETS_FIRST);
        if (bucket == NULL) {
            err = ERR_NOMEM;
            break;
        }
        rt_latch_acquire(&stripe->latch);
        stripe->bucket = bucket;
        stripe->buckets = BUCKETS_FIRST;
        rt_latch_release(&stripe->latch);
    }
    /* Is there room for one more step?  Then rows may be written again. */
    if (err == OK && map->account != NULL) err = pool_charge_reserving(map->account, CHARGE_BYTES);
    if (err == OK) {
        if (map->account != NULL) mem_account_release(map->account, CHARGE_BYTES);
        rt_store_release(&map->started, 1);
    }
    rt_mutex_unlock(&map->start_mutex);
    return err;
}

void
version_grow(VersionMap *map, u64 hash)
{
    VersionStripe *stripe = stripe_of(map, hash);
    rt_latch_acquire(&stripe->latch);
    u32 have = stripe->buckets;
    bool full = stripe->chains > have;
    rt_latch_release(&stripe->latch);
    if (!full) return;
    Before **bucket = MEM_NEW_ARRAY(Before *, (u64)have * 2);
    if (bucket == NULL) return;
    Before **garbage = bucket;
    rt_latch_acquire(&stripe->latch);
    if (stripe->buckets == have) {
        garbage = stripe->bucket;
        rehash(stripe, bucket, have * 2);
    }
    rt_latch_release(&stripe->latch);
    mem_free(garbage);
}

static bool
is_of(const Before *head, u64 hash, TreeId tree, Slice key)
{
    return head->hash == hash && head->tree == tree && slice_equal(before_key(head), key);
}

Before *
version_head(const VersionMap *map, u64 hash, TreeId tree, Slice key)
{
    const VersionStripe *stripe = stripe_of(map, hash);
    if (stripe->buckets == 0) return NULL;
    Before *head = *bucket_of(stripe, hash);
    while (head != NULL && !is_of(head, hash, tree, key)) {
        head = head->next_bucket;
    }
    return head;
}

/* The pointer that leads to the head of this key's chain, or the end of the bucket. */
static Before **
link_of(VersionStripe *stripe, const Before *before)
{
    Before **link = bucket_of(stripe, before->hash);
    while (*link != NULL && !is_of(*link, before->hash, before->tree, before_key(before))) {
        link = &(*link)->next_bucket;
    }
    return link;
}

/* The first image of the same transaction, if `before` is one of its own and comes over `head`. */
static Before *
lowest_of(const Before *before, Before *head)
{
    if (!before_is(before, BEFORE_OWN) || head == NULL) return NULL;
    if (head->creator_id != before->creator_id || before_is(head, BEFORE_MARKER)) return NULL;
    return before_is(head, BEFORE_OWN) ? head->lowest : head;
}

bool
version_link(VersionMap *map, Before *before)
{
    VersionStripe *stripe = stripe_of(map, before->hash);
    ASSERT(stripe->buckets > 0 && !before_is(before, BEFORE_LINKED));
    Before **link = link_of(stripe, before);
    Before *head = *link;
    before->older = head;
    before->newer = NULL;
    before->lowest = lowest_of(before, head);
    if (head != NULL) head->newer = before;
    before->next_bucket = head == NULL ? NULL : head->next_bucket;
    if (head == NULL) stripe->chains++;
    *link = before;
    before_mark(before, BEFORE_LINKED);
    stripe_count(map, stripe, 1, cost_of(before));
    return stripe->chains > stripe->buckets;
}

void
version_unlink(VersionMap *map, Before *before)
{
    VersionStripe *stripe = stripe_of(map, before->hash);
    ASSERT(before_is(before, BEFORE_LINKED));
    /* Once for each of them, as only the first is named. */
    for (Before *own = before->newer; own != NULL && own->lowest == before; own = own->newer) {
        own->lowest = NULL;
    }
    if (before->older != NULL) before->older->newer = before->newer;
    if (before->newer != NULL) {
        before->newer->older = before->older;
    } else {
        Before **link = link_of(stripe, before);
        ASSERT(*link == before);
        if (before->older != NULL) {
            before->older->next_bucket = before->next_bucket;
            *link = before->older;
        } else {
            *link = before->next_bucket;
            stripe->chains--;
        }
    }
    before->older = before->newer = before->next_bucket = before->lowest = NULL;
    before_unmark(before, BEFORE_LINKED);
    stripe_count(map, stripe, (u64)-1, (u64)-cost_of(before));
}

/* ---- memory of Befores ---- */

#define CHUNK_BYTES   ((u32)16 << 10)
#define CHUNK_HELD    ((u32)1 << 30)
#define CHUNK_SINGLES 8u /* A transaction that makes no more should not hold a chunk. */

/* Those in a chunk and its arena keep it: `live` is CHUNK_HELD less what was freed while the arena
   fills it, then the number of those that live. */
struct BeforeChunk {
    RtU32 live;
    u32 used; /* Bytes, from the start of the chunk. */
    u32 given;
};

static void
chunk_release(BeforeChunk *chunk, u32 count)
{
    if (rt_fetch_sub(&chunk->live, count) == count) mem_free(chunk);
}

void
before_arena_end(BeforeArena *arena)
{
    if (arena->chunk != NULL) chunk_release(arena->chunk, CHUNK_HELD - arena->chunk->given);
    *arena = (BeforeArena){0};
}

/* The fields, and the bytes. */
static ALWAYS_INLINE void
before_fill(Before *before, TreeId tree, u64 hash, Slice key, Slice image)
{
    *before = (Before){
        .hash = hash, .tree = tree, .key_bytes = (u16)key.bytes, .value_bytes = (u32)image.bytes};
    if (key.bytes > 0) memcpy(before->bytes, key.p, key.bytes);
    if (image.bytes > 0) memcpy(before->bytes + key.bytes, image.p, image.bytes);
}

Before *
before_new(TreeId tree, u64 hash, Slice key, Slice image)
{
    Before *before = (Before *)mem_alloc(sizeof(Before) + key.bytes + image.bytes);
    if (before != NULL) before_fill(before, tree, hash, key, image);
    return before;
}

static bool
chunk_start(BeforeArena *arena)
{
    BeforeChunk *chunk = (BeforeChunk *)mem_alloc(CHUNK_BYTES);
    if (chunk == NULL) return false;
    *chunk = (BeforeChunk){.used = (u32)ALIGN_UP(sizeof(BeforeChunk), 8)};
    rt_store_relaxed(&chunk->live, CHUNK_HELD);
    if (arena->chunk != NULL) chunk_release(arena->chunk, CHUNK_HELD - arena->chunk->given);
    arena->chunk = chunk;
    return true;
}

Before *
before_new_in(BeforeArena *arena, TreeId tree, u64 hash, Slice key, Slice image)
{
    size_t bytes = ALIGN_UP(sizeof(Before) + key.bytes + image.bytes, 8);
    if (UNLIKELY(arena->singles < CHUNK_SINGLES || bytes > CHUNK_BYTES / 4)) {
        arena->singles++;
        return before_new(tree, hash, key, image);
    }
    BeforeChunk *chunk = arena->chunk;
    if (UNLIKELY(chunk == NULL || CHUNK_BYTES - chunk->used < bytes)) {
        if (!chunk_start(arena)) return NULL;
        chunk = arena->chunk;
    }
    u32 at = chunk->used;
    Before *before = (Before *)(void *)((u8 *)chunk + at);
    chunk->used = at + (u32)bytes;
    chunk->given++;
    before_fill(before, tree, hash, key, image);
    before->chunk_at = at;
    return before;
}

void
before_free(Before *before)
{
    if (before == NULL) return;
    if (before->chunk_at == 0) {
        mem_free(before);
    } else {
        chunk_release((BeforeChunk *)(void *)((u8 *)before - before->chunk_at), 1);
    }
}

/* ---- lists ---- */

void
before_append(TxnState *state, Before *before)
{
    before->prev = state->last;
    before->next = NULL;
    if (state->last != NULL) {
        state->last->next = before;
    } else {
        state->first = before;
    }
    state->last = before;
    state->befores++;
    state->before_bytes += cost_of(before);
}

void
before_remove(TxnState *state, Before *before)
{
    ASSERT(state->befores > 0);
    if (before->prev != NULL) {
        before->prev->next = before->next;
    } else {
        state->first = before->next;
    }
    if (before->next != NULL) {
        before->next->prev = before->prev;
    } else {
        state->last = before->prev;
    }
    before->next = before->prev = NULL;
    state->befores--;
    state->before_bytes -= cost_of(before);
}
