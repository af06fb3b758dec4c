/*
 * wal.c -- reservation, group commit, rotation.
 *
 * Two buffers: records are reserved in the active one under the latch and copied in outside it.
 * Whoever needs the log further than it is and finds no flush running becomes the leader: it swaps
 * the buffers, waits for the copies still under way, writes the batch, syncs if anybody asked for
 * it, and wakes those that are covered and one next leader.
 *
 * Before a sync the leader gathers: those whom the last sync served are about to come with their
 * next commits.  If it went at once, they would miss this sync and two groups would take turns, so
 * that each commit took two syncs.  It waits until as many have asked as stood here when the last
 * sync ended, at most for half of a sync, and less and less often where that gains nothing.
 *
 * Invariants: records end up in the file in the order of their reservation; `durable` <= `written`
 * <= the start of the active buffer; the bytes reserved and not written fit into the rest of the
 * current segment or into the spare one, so a full disk is met before a commit has its position,
 * never after.
 */
#include "store/wal/wal.h"

#include "rt/park.h"
#include "rt/random.h"
#include "rt/time.h"
#include "store/wal/wal_segment.h"

#define BUFFER_BYTES ((u32)1 << 20)
#define HEAD_BYTES   ((u32)sizeof(WalBatchHead))
/* Both buffers fit into any segment but the first. */
#define SPARE_BYTES_MIN ((u64)2 * BUFFER_BYTES + WAL_SEGMENT_DATA_START + 4096)
/* A shorter sync is over before somebody who waits for it has been put to sleep. */
#define GATHER_SYNC_NS_MIN (50 * RT_NS_PER_US)
#define GATHER_NS_MAX      (2 * RT_NS_PER_MS)
#define GATHER_SKIPS_MAX   64u

/* What the leader knows of those who want a sync.  Under the latch, but for sync_ns (the leader's)
   and the word. */
typedef struct WalGather {
    u32 asking;   /* Asked for a sync since the buffers were swapped. */
    u32 served;   /* Asked before: of the sync that runs. */
    u32 expected; /* How many were here when the last sync ended. */
    u32 skips;    /* Rounds to go without gathering. */
    u32 patience; /* Rounds that the next vain wait skips. */
    u64 sync_ns;  /* What a sync takes, averaged. */
    RtU32 word;   /* 1: the leader gathers; what it parks on. */
} WalGather;

typedef struct WalBuffer {
    u8 *p;
    u64 start;     /* Position of its batch head. */
    u32 used;      /* With the head. */
    u32 records;   /* Commits in it, for the group size. */
    RtU32 copiers; /* Places taken and not filled yet. */
} WalBuffer;

struct Wal {
    RtLatch *latch;
    RtDir *dir;
    char *name;
    u64 store_id, generation, previous_generation;

    /* Under the latch. */
    WalBuffer buffers[2];
    WalBuffer *active;
    RtU32 begun; /* Read without a latch. */
    bool flushing;
    u64 sync_need; /* Highest position that somebody wants durable. */
    WalGather gather;
    u64 pending;      /* Bytes reserved and not yet written, heads and padding included. */
    u64 current_room; /* Bytes left in the current segment. */
    u64 spare_room;   /* Of the spare segment; 0: none. */
    WalChunks *chunks;

    RtU64 written, durable;
    RtU32 failed;        /* The Err of the first failure. */
    RtU32 *failure_word; /* Of who watches; NULL: nobody. */
    RtU32 rounds;        /* Flushes ended; what waiters park on. */
    ErrMsg failure;

    /* Only the leader and, before `begun`, wal_begin(); the spare: under space_mutex. */
    WalSegment *segments; /* Oldest first; the last one is the current. */
    WalSegment *current;
    WalSegment *spare;
    u32 segment_no_next;
    RtMutex space_mutex;

    RtU64 stat_syncs, stat_bytes, stat_records;
};

static u64
align_position(u64 position)
{
    return (position + WAL_BATCH_ALIGN - 1) & ~(u64)(WAL_BATCH_ALIGN - 1);
}

Err
wal_open(RtDir *dir, const char *name, RtLatch *latch, const WalStart *start, Wal **wal_out)
{
    *wal_out = NULL;
    Wal *wal = MEM_NEW(Wal);
    char *name_copy = mem_strdup(name);
    if (wal == NULL || name_copy == NULL) {
        mem_free(wal);
        mem_free(name_copy);
        return ERR_NOMEM;
    }
    u64 position = align_position(start->position);
    wal->latch = latch;
    wal->dir = dir;
    wal->name = name_copy;
    wal->store_id = start->store_id;
    wal->previous_generation = start->previous_generation;
    wal->segment_no_next = start->segment_no;
    wal->active = &wal->buffers[0];
    wal->active->start = position;
    wal->active->used = HEAD_BYTES;
    wal->gather.patience = 1;
    rt_word_init(&wal->written, position);
    rt_word_init(&wal->durable, start->durable);
    *wal_out = wal;
    return OK;
}

void
wal_close(Wal *wal)
{
    if (wal == NULL) return;
    ASSERT(!wal->flushing);
    mem_free(wal->buffers[0].p);
    mem_free(wal->buffers[1].p);
    wal__segments_free(wal->segments);
    wal__segment_free(wal->spare);
    err_clear(&wal->failure);
    mem_free(wal->name);
    mem_free(wal);
}

bool
wal_is_begun(const Wal *wal)
{
    return rt_load_acquire(&wal->begun) != 0;
}

u64
wal_generation(const Wal *wal)
{
    return wal->generation;
}

static void
segment_adopt(Wal *wal, WalSegment *segment)
{
    segment->next = NULL;
    if (wal->segments == NULL) {
        wal->segments = segment;
    } else {
        wal->current->next = segment;
    }
    wal->current = segment;
}

Err
wal_begin(Wal *wal, ErrMsg *msg)
{
    ASSERT(!wal_is_begun(wal));
    for (u32 i = 0; i < 2; i++) {
        if (wal->buffers[i].p == NULL) wal->buffers[i].p = (u8 *)mem_alloc(BUFFER_BYTES);
        if (wal->buffers[i].p == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    }
    WalSegment *segment;
    u32 segment_no = wal->segment_no_next;
    Err err = wal__segment_create(wal->dir, wal->name, segment_no, WAL_SEGMENT_BYTES_FIRST,
                                  &segment, msg);
    if (err != OK) return err;
    u64 generation = PLANT(111) ? 1 : rt_random_u64() | 1;
    WalSegmentHead head = {.store_id = wal->store_id,
                           .generation = generation,
                           .previous_generation = wal->previous_generation,
                           .start = wal->active->start};
    err = wal__segment_start(segment, &head, msg);
    if (err != OK) {
        /* Perhaps on disk, perhaps not; without a batch it changes nothing.  Its number is used up,
           so that a later try does not meet it. */
        wal->segment_no_next = segment_no + 1;
        wal__segment_free(segment);
        return err;
    }
    wal->segment_no_next = segment_no + 1;
    segment_adopt(wal, segment);
    rt_latch_acquire(wal->latch);
    wal->generation = generation;
    wal->current_room = wal__segment_room(segment);
    rt_store_release(&wal->begun, 1u);
    rt_latch_release(wal->latch);
    return OK;
}

/* ---- failure ---- */

bool
wal_is_failed(const Wal *wal)
{
    return rt_load_acquire(&wal->failed) != 0;
}

void
wal_watch_failure(Wal *wal, RtU32 *word)
{
    wal->failure_word = word;
}

const char *
wal_failure_text(const Wal *wal, Err err)
{
    return wal_is_failed(wal) && wal->failure.err == err ? err_message(&wal->failure)
                                                         : err_text(err);
}

/* ---- space ---- */

/* Have a spare segment ready.  [parks] */
static Err
spare_make(Wal *wal)
{
    rt_mutex_lock(&wal->space_mutex);
    Err err = OK;
    if (wal->spare == NULL) {
        u64 bytes = MIN_OF(2 * wal->current->file_bytes, WAL_SEGMENT_BYTES_MAX);
        bytes = MAX_OF(bytes, SPARE_BYTES_MIN);
        WalSegment *spare;
        err = wal__segment_create(wal->dir, wal->name, wal->segment_no_next, bytes, &spare, NULL);
        if (err == OK) {
            wal->segment_no_next++;
            rt_latch_acquire(wal->latch);
            wal->spare = spare;
            wal->spare_room = wal__segment_room(spare);
            rt_latch_release(wal->latch);
        }
    }
    rt_mutex_unlock(&wal->space_mutex);
    return err;
}

/* Bytes in the file that a record of this size may need. */
static u64
room_of(u32 bytes)
{
    return ALIGN_UP(bytes, 8) + HEAD_BYTES + WAL_BATCH_ALIGN;
}

Err
wal_reserve(Wal *wal, u32 bytes)
{
    ASSERT(bytes <= WAL_PIECE_BYTES_MAX + WAL_RECORD_HEAD_BYTES);
    for (;;) {
        u32 failed = rt_load_acquire(&wal->failed);
        if (failed != 0) return (Err)failed;
        rt_latch_acquire(wal->latch);
        u64 need = wal->pending + room_of(bytes);
        bool has_room = need <= wal->current_room || need <= wal->spare_room;
        bool fits = ALIGN_UP(wal->active->used, 8) + bytes <= BUFFER_BYTES;
        if (has_room && fits && rt_load_relaxed(&wal->failed) == 0) return OK;
        bool wants_spare = !has_room && wal->spare_room == 0;
        u64 end = wal->active->start + wal->active->used;
        rt_latch_release(wal->latch);
        Err err = wants_spare ? spare_make(wal) : wal_flush(wal, end, false);
        if (err != OK) return err;
    }
}

void
wal_take(Wal *wal, u32 bytes, WalPlace *place_out)
{
    DCHECK(rt_latch_is_held(wal->latch));
    WalBuffer *buffer = wal->active;
    u32 at = (u32)ALIGN_UP(buffer->used, 8);
    ASSERT(at + bytes <= BUFFER_BYTES);
    if (buffer->used == HEAD_BYTES) wal->pending += HEAD_BYTES + WAL_BATCH_ALIGN;
    wal->pending += ALIGN_UP(bytes, 8);
    if (at > buffer->used) memset(buffer->p + buffer->used, 0, at - buffer->used);
    buffer->used = at + bytes;
    buffer->records++;
    rt_fetch_add(&buffer->copiers, 1);
    *place_out = (WalPlace){.to = buffer->p + at,
                            .bytes = bytes,
                            .end = buffer->start + buffer->used,
                            .buffer = buffer};
}

void
wal_filled(Wal *wal, const WalPlace *place)
{
    (void)wal;
    rt_fetch_sub(&place->buffer->copiers, 1);
}

u64
wal_next(const Wal *wal)
{
    const WalBuffer *buffer = wal->active;
    return buffer->used > HEAD_BYTES ? buffer->start + buffer->used : buffer->start;
}

void
wal_chunks_begin(Wal *wal, WalChunks *chunks)
{
    chunks->start = wal_next(wal);
    chunks->next = wal->chunks;
    wal->chunks = chunks;
}

void
wal_chunks_end(Wal *wal, WalChunks *chunks)
{
    WalChunks **link = &wal->chunks;
    while (*link != chunks) {
        ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = chunks->next;
}

u64
wal_oldest(const Wal *wal, u64 cut)
{
    u64 oldest = cut;
    for (const WalChunks *chunks = wal->chunks; chunks != NULL; chunks = chunks->next) {
        oldest = MIN_OF(oldest, chunks->start);
    }
    return oldest;
}

/* ---- gathering ---- */

/* Somebody asks for a flush; latch held.  True: the leader gathers and has enough of it. */
static bool
gather_ask(Wal *wal, bool sync)
{
    WalGather *gather = &wal->gather;
    if (sync) gather->asking++;
    if (rt_load_relaxed(&gather->word) == 0) return false;
    if (sync && gather->asking < gather->expected) return false;
    rt_store_release(&gather->word, 0);
    return true;
}

/* Is it worth while to wait for more?  Latch held. */
static bool
gather_pays(Wal *wal)
{
    WalGather *gather = &wal->gather;
    if (wal->sync_need <= rt_load_relaxed(&wal->durable)) return false;
    if (gather->sync_ns < GATHER_SYNC_NS_MIN || gather->asking >= gather->expected) return false;
    if (PLANT(142)) return false;
    if (gather->skips == 0) return true;
    gather->skips--;
    return false;
}

/* Wait a little for those who are about to ask for a sync too.  [parks] */
static void
gather(Wal *wal)
{
    WalGather *gather = &wal->gather;
    rt_latch_acquire(wal->latch);
    bool pays = gather_pays(wal);
    u32 before = gather->asking;
    if (pays) rt_store_release(&gather->word, 1);
    rt_latch_release(wal->latch);
    if (!pays) return;

    u64 deadline_ns = rt_deadline_after(MIN_OF(gather->sync_ns / 2, GATHER_NS_MAX));
    RtParkResult result = RT_WOKEN;
    while (rt_load_acquire(&gather->word) != 0 && result != RT_TIMEOUT) {
        result = rt_park(&gather->word, &gather->word, U32_MAX, 1u, deadline_ns, RT_PARK_NOCANCEL,
                         0);
    }
    rt_latch_acquire(wal->latch);
    rt_store_release(&gather->word, 0);
    /* Those who were here have lost half a sync, those who came have won at least that. */
    bool gained = gather->asking - before >= before || gather->asking >= gather->expected;
    if (gained) {
        gather->patience = 1;
    } else {
        gather->skips = gather->patience;
        gather->patience = MIN_OF(2 * gather->patience, GATHER_SKIPS_MAX);
    }
    rt_latch_release(wal->latch);
}

/* ---- flushing ---- */

/* Sync the current segment: all that is written becomes durable. */
static Err
sync_current(Wal *wal)
{
    u64 end = rt_load_relaxed(&wal->written);
    u64 start_ns = rt_now_ns();
    Err err = rt_file_sync(wal->current->file, &wal->failure);
    if (err != OK) return err;
    u64 sync_ns = rt_now_ns() - start_ns;
    wal->gather.sync_ns = (3 * wal->gather.sync_ns + MIN_OF(sync_ns, RT_NS_PER_S)) / 4;
    rt_fetch_add(&wal->stat_syncs, 1);
    rt_store_release(&wal->durable, end);
    return OK;
}

/* Go on in the spare segment.  What the old one holds is made durable first. */
static Err
rotate(Wal *wal)
{
    Err err = OK;
    bool unsynced = rt_load_relaxed(&wal->durable) < rt_load_relaxed(&wal->written);
    if (unsynced && !PLANT(104)) err = sync_current(wal);
    if (err != OK) return err;
    rt_latch_acquire(wal->latch);
    WalSegment *segment = wal->spare;
    rt_latch_release(wal->latch);
    ASSERT(segment != NULL); /* Room was secured at the reservation. */
    WalSegmentHead head = {.store_id = wal->store_id,
                           .generation = wal->generation,
                           .previous_generation = wal->previous_generation,
                           .start = rt_load_relaxed(&wal->written)};
    err = wal__segment_start(segment, &head, &wal->failure);
    if (err != OK) return err;
    rt_mutex_lock(&wal->space_mutex);
    rt_latch_acquire(wal->latch);
    wal->spare = NULL;
    wal->spare_room = 0;
    wal->current_room = wal__segment_room(segment);
    segment_adopt(wal, segment);
    rt_latch_release(wal->latch);
    rt_mutex_unlock(&wal->space_mutex);
    return OK;
}

static Err
write_batch(Wal *wal, WalBuffer *buffer)
{
    u32 rounds = 0;
    while (rt_load_acquire(&buffer->copiers) != 0) {
        rt_spin(&rounds);
    }
    u32 bytes = (u32)ALIGN_UP(buffer->used, WAL_BATCH_ALIGN);
    memset(buffer->p + buffer->used, 0, bytes - buffer->used);
    u64 seed = wal_batch_seed(wal->generation, buffer->start);
    u32 payload_bytes = buffer->used - HEAD_BYTES;
    WalBatchHead head = {
        .magic = WAL_BATCH_MAGIC,
        .payload_bytes = payload_bytes,
        .position = buffer->start,
        .generation = wal->generation,
        .durable = rt_load_relaxed(&wal->durable),
        .payload_checksum = checksum64(buffer->p + HEAD_BYTES, payload_bytes, seed)};
    head.checksum = checksum64(&head, offsetof(WalBatchHead, checksum), seed);
    memcpy(buffer->p, &head, sizeof(head));

    u64 end = buffer->start + bytes;
    if (end - wal->current->head.start > wal__segment_room(wal->current)) {
        Err err = rotate(wal);
        if (err != OK) return err;
    }
    u64 offset = WAL_SEGMENT_DATA_START + (buffer->start - wal->current->head.start);
    Err err = rt_file_write(wal->current->file, offset, buffer->p, bytes, &wal->failure);
    if (err != OK) return err;
    rt_fetch_add(&wal->stat_bytes, bytes);
    rt_fetch_add(&wal->stat_records, buffer->records);
    rt_store_release(&wal->written, end);
    return OK;
}

/* Make the other buffer the active one; latch held.  NULL: nothing to write. */
static WalBuffer *
swap_buffers(Wal *wal)
{
    WalBuffer *full = wal->active;
    wal->gather.served = wal->gather.asking;
    wal->gather.asking = 0;
    if (full->used == HEAD_BYTES) return NULL;
    WalBuffer *next = full == &wal->buffers[0] ? &wal->buffers[1] : &wal->buffers[0];
    next->start = full->start + ALIGN_UP(full->used, WAL_BATCH_ALIGN);
    next->used = HEAD_BYTES;
    next->records = 0;
    ASSERT(rt_load_relaxed(&next->copiers) == 0);
    wal->active = next;
    return full;
}

typedef struct WakeRun {
    u64 written, durable;
    bool failed, has_leader;
} WakeRun;

/* A waiter's argument: the position it needs, shifted, and whether durable. */
static RtPick
wake_filter(void *arg, const RtWaiterInfo *waiter)
{
    WakeRun *run = (WakeRun *)arg;
    u64 have = (waiter->arg & 1) != 0 ? run->durable : run->written;
    if (run->failed || have >= waiter->arg >> 1) return RT_PICK_TAKE;
    if (run->has_leader) return RT_PICK_SKIP;
    run->has_leader = true;
    return RT_PICK_TAKE;
}

/* One flush; `flushing` is ours.  The failure flag is looked at only now that the lead is taken,
   and set before it is given up. */
static void
lead(Wal *wal)
{
    if (!wal_is_failed(wal)) {
        gather(wal);
        rt_latch_acquire(wal->latch);
        WalBuffer *full = swap_buffers(wal);
        u64 need = wal->sync_need;
        rt_latch_release(wal->latch);
        Err err = full == NULL ? OK : write_batch(wal, full);
        if (err == OK && need > rt_load_relaxed(&wal->durable)) err = sync_current(wal);
        rt_latch_acquire(wal->latch);
        if (err == OK && full != NULL) {
            wal->current_room = wal__segment_room(wal->current) -
                                (rt_load_relaxed(&wal->written) - wal->current->head.start);
            const WalBuffer *active = wal->active;
            wal->pending = active->used == HEAD_BYTES ? 0
                                                      : ALIGN_UP(active->used, 8) + WAL_BATCH_ALIGN;
        }
        if (err != OK && !PLANT(109)) {
            if (wal->failure_word != NULL) rt_store_release(wal->failure_word, 1);
            rt_store_release(&wal->failed, (u32)err);
        }
        rt_latch_release(wal->latch);
    }
    rt_latch_acquire(wal->latch);
    wal->flushing = false;
    wal->gather.expected = wal->gather.served + wal->gather.asking;
    rt_fetch_add(&wal->rounds, 1);
    rt_latch_release(wal->latch);
    WakeRun run = {.written = rt_load_acquire(&wal->written),
                   .durable = rt_load_acquire(&wal->durable),
                   .failed = wal_is_failed(wal)};
    rt_unpark(&wal->rounds, RT_PARK_ALL, wake_filter, NULL, &run);
}

Err
wal_flush(Wal *wal, u64 lsn, bool sync)
{
    RtU64 *have = sync ? &wal->durable : &wal->written;
    for (bool is_new = true;; is_new = false) {
        u32 failed = rt_load_acquire(&wal->failed);
        if (rt_load_acquire(have) >= lsn) return OK;
        if (failed != 0) return (Err)failed;
        rt_latch_acquire(wal->latch);
        if (sync && wal->sync_need < lsn) wal->sync_need = lsn;
        bool leads = !wal->flushing;
        wal->flushing = true;
        u32 rounds = rt_load_relaxed(&wal->rounds);
        bool is_enough = is_new && gather_ask(wal, sync);
        rt_latch_release(wal->latch);
        if (is_enough) rt_unpark_all(&wal->gather.word);
        if (leads) {
            lead(wal);
        } else {
            rt_park(&wal->rounds, &wal->rounds, U32_MAX, rounds, RT_FOREVER, RT_PARK_NOCANCEL,
                    lsn << 1 | (sync ? 1u : 0u));
        }
    }
}

u64
wal_durable(const Wal *wal)
{
    return rt_load_acquire(&wal->durable);
}

/* ---- recycling ---- */

void
wal_recycle(Wal *wal, u64 oldest)
{
    for (;;) {
        WalSegment *old = NULL;
        rt_latch_acquire(wal->latch);
        if (wal->segments != NULL && wal->segments != wal->current &&
            wal->segments->next->head.start <= oldest) {
            old = wal->segments;
            wal->segments = old->next;
        }
        rt_latch_release(wal->latch);
        if (old == NULL) return;
        /* A file that stays is ignored by the next recovery and removed at the last close. */
        Err ignored = wal__segment_unlink(wal->dir, wal->name, old->segment_no, NULL);
        (void)ignored;
        wal__segment_free(old);
    }
}

u64
wal_bytes_since(const Wal *wal, u64 position)
{
    u64 written = rt_load_acquire(&wal->written);
    return written > position ? written - position : 0;
}

Err
wal_remove_all(RtDir *dir, const char *name, ErrMsg *msg)
{
    WalSegment *list;
    Err err = wal__segments_list(dir, name, false, &list, msg);
    if (err != OK) return err;
    /* Newest first: what a crash leaves is the older end, which the superblock has left behind. */
    while (list != NULL) {
        WalSegment **link = &list;
        while ((*link)->next != NULL) {
            link = &(*link)->next;
        }
        if (err == OK) err = wal__segment_unlink(dir, name, (*link)->segment_no, msg);
        wal__segment_free(*link);
        *link = NULL;
    }
    return err;
}

void
wal_stats(const Wal *wal, WalStats *stats_out)
{
    *stats_out = (WalStats){.syncs = rt_load_relaxed(&wal->stat_syncs),
                            .bytes = rt_load_relaxed(&wal->stat_bytes),
                            .groups = rt_load_relaxed(&wal->stat_records)};
}
